//! A board in its own file, for tests that open it more than once.

use std::path::PathBuf;

use blackboard::Board;
use tempfile::TempDir;

/// A directory with a board, removed with the value.
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

    /// The file beside the database with this ending.
    pub(crate) fn beside(&self, ending: &str) -> PathBuf {
        self.directory.path().join(format!("local.db{ending}"))
    }

    /// The board with its own connections, as in another process.
    pub(crate) fn board(&self) -> Board {
        Board::open(&self.path()).unwrap()
    }
}
