//! The file with the word: found, created, and checked like the database.
//!
//! It is a plain file of this user, private, with one name, one page long, and zero except for the word. Any other
//! file is left alone and not used. It contains no data, so a wrong one is no reason to refuse the board.
//!
//! Every use checks the name again: a file that was deleted or replaced is closed, and the current one is opened. So
//! long-lived processes keep waking each other, whatever happens to the file. Threads that sleep at that moment wake
//! by their timeout.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::super::{open, trust};
use super::word::{FutexWord, LENGTH};

/// The file beside the database, and the last word that was found in it.
pub(super) struct Sidecar {
    path: PathBuf,
    found: Mutex<Option<Arc<FutexWord>>>,
}

/// Whether a missing or incomplete file is created.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Create,
    Leave,
}

impl Sidecar {
    pub(super) fn new(path: PathBuf) -> Sidecar {
        Sidecar { path, found: Mutex::default() }
    }

    /// The word, if a process waits or has waited.
    pub(super) fn existing(&self) -> Option<Arc<FutexWord>> {
        self.word(Missing::Leave)
    }

    /// The word, for a waiting thread.
    pub(super) fn existing_or_new(&self) -> Option<Arc<FutexWord>> {
        self.word(Missing::Create)
    }

    fn word(&self, missing: Missing) -> Option<Arc<FutexWord>> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let metadata = fs::symlink_metadata(&self.path);
        if let (Ok(metadata), Some(word)) = (&metadata, &*found)
            && is_page_of_ours(metadata)
            && word.is_in(metadata)
        {
            return Some(word.clone());
        }
        let file = match metadata {
            Ok(metadata) if is_page_of_ours(&metadata) => self.open(false),
            Ok(metadata) if missing == Missing::Create && is_begun(&metadata) => {
                self.open(false).and_then(fill)
            }
            Err(error) if missing == Missing::Create && error.kind() == io::ErrorKind::NotFound => {
                self.open(true).and_then(fill)
            }
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        *found = file.and_then(checked).ok().flatten().map(Arc::new);
        found.clone()
    }

    fn open(&self, new: bool) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(new);
        open::private(&mut options);
        let file = options.open(&self.path)?;
        if new {
            open::keep_for_owner(&file)?;
        }
        Ok(file)
    }
}

/// The word in an opened file, if the file passes the checks.
fn checked(file: File) -> io::Result<Option<FutexWord>> {
    let metadata = file.metadata()?;
    if !is_page_of_ours(&metadata) {
        return Ok(None);
    }
    // A foreign file of that name and length is not written.
    let mut page = [0; LENGTH];
    file.read_exact_at(&mut page, 0)?;
    let is_empty = page[size_of::<u32>()..].iter().all(|byte| *byte == 0);
    Ok(if is_empty { FutexWord::new(file, &metadata) } else { None })
}

/// Writes the page of a file that this process or an interrupted one has created. It is written, not left as a hole,
/// so that changing the word needs no space on a full disk.
fn fill(file: File) -> io::Result<File> {
    // A second process that fills it could revert a change of the word.
    file.try_lock()?;
    if is_begun(&file.metadata()?) {
        let filled = file.write_all_at(&[0; LENGTH], 0);
        // So that the next process begins again.
        filled.or_else(|error| file.set_len(0).and(Err(error)))?;
    }
    file.unlock()?;
    Ok(file)
}

fn is_page_of_ours(metadata: &Metadata) -> bool {
    metadata.len() == LENGTH as u64 && trust::is_private(metadata)
}

fn is_begun(metadata: &Metadata) -> bool {
    metadata.len() == 0 && trust::is_private(metadata)
}
