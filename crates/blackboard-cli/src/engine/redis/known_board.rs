//! A small file with the id of the board that this machine has used at a URL.
//!
//! A server that has lost its data has no board, or another one, under the same name. Its revisions start again, so that
//! an old fence token or revision could match. With the file, every command of this machine notices that.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use blackboard::store::create_private_directory;

use crate::disk::{self, Access};

/// The name of the file among the sidecars of the board.
const FILE: &str = "board";

/// A text that is longer is no id.
const MAX_ID: u64 = 64;

/// The board that this machine has used.
pub(super) struct KnownBoard {
    file: PathBuf,
}

impl KnownBoard {
    pub(super) fn in_directory(directory: &Path) -> KnownBoard {
        KnownBoard { file: directory.join(FILE) }
    }

    /// Its id. A file that has none is the same as none.
    pub(super) fn id(&self) -> Option<String> {
        let text = disk::plain_text(&self.file, MAX_ID)?;
        let id = text.trim_end();
        let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_id.then(|| id.to_owned())
    }

    /// Remembers another board. Without the file, this machine takes whatever board the server has.
    pub(super) fn remember(&self, id: &str) {
        let _ = self.write(id);
    }

    fn write(&self, id: &str) -> io::Result<()> {
        if let Some(directory) = self.file.parent() {
            create_private_directory(directory)?;
        }
        disk::replace(&self.file, Access::Private, |out| writeln!(out, "{id}"))
    }

    /// Forgets the board.
    pub(super) fn forget(&self) {
        let _ = fs::remove_file(&self.file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn board_is_remembered_replaced_and_forgotten() {
        let directory = testkit::tempdir().unwrap();
        let known = KnownBoard::in_directory(&directory.path().join("remote"));
        assert_eq!(known.id(), None);
        for id in ["a1", "b2"] {
            known.remember(id);
            assert_eq!(known.id().as_deref(), Some(id));
        }
        known.forget();
        assert_eq!(known.id(), None);
    }

    #[test]
    fn file_without_an_id_is_the_same_as_none() {
        let directory = testkit::tempdir().unwrap();
        let known = KnownBoard::in_directory(directory.path());
        for text in ["", "\n", "two words", &"a".repeat(100)] {
            fs::write(&known.file, text).unwrap();
            assert_eq!(known.id(), None, "{text}");
        }
    }
}
