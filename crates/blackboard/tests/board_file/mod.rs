//! A board in a file of its own, for tests that open it more than once.

use std::path::PathBuf;

use blackboard::Board;
use tempfile::TempDir;

/// A directory with a board, gone with the value.
pub(crate) struct BoardFile {
    directory: TempDir,
}

impl BoardFile {
    pub(crate) fn new() -> BoardFile {
        BoardFile { directory: testkit::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.beside("")
    }

    /// The file beside the database whose name goes on like this.
    pub(crate) fn beside(&self, ending: &str) -> PathBuf {
        self.directory.path().join(format!("local.db{ending}"))
    }

    /// The board with connections of its own, as another process would have.
    pub(crate) fn board(&self) -> Board {
        Board::open(&self.path()).unwrap()
    }
}
