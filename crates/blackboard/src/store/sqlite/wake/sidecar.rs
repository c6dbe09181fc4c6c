//! The file that holds the word: found, created, and distrusted as the database is.
//!
//! It is a plain file of this user, closed to everybody else, under one name, one page long, and empty but for the word.
//! Anything else is left as it is and not used. There is nothing in it worth having, so that it is odd is no reason to
//! refuse the board.
//!
//! Every use looks at the name once more: a file that was deleted or replaced is let go, and the one that stands there now
//! is opened. So processes that live for long go on waking each other, whatever is done to the file; those who sleep in
//! that moment wake by themselves.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::super::{open, trust};
use super::word::{FutexWord, LENGTH};

/// The file beside the database, and the word that was found in it last.
pub(super) struct Sidecar {
    path: PathBuf,
    found: Mutex<Option<Arc<FutexWord>>>,
}

/// Whether a file that is not there, or not complete, is created.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Create,
    Leave,
}

impl Sidecar {
    pub(super) fn new(path: PathBuf) -> Sidecar {
        Sidecar { path, found: Mutex::default() }
    }

    /// The word, if somebody waits or has waited.
    pub(super) fn existing(&self) -> Option<Arc<FutexWord>> {
        self.word(Missing::Leave)
    }

    /// The word, for one who waits.
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

/// The word in an opened file, if the file is what its name promised.
fn checked(file: File) -> io::Result<Option<FutexWord>> {
    let metadata = file.metadata()?;
    if !is_page_of_ours(&metadata) {
        return Ok(None);
    }
    // Somebody else's file of that name and length is not written to.
    let mut page = [0; LENGTH];
    file.read_exact_at(&mut page, 0)?;
    let is_empty = page[size_of::<u32>()..].iter().all(|byte| *byte == 0);
    Ok(if is_empty { FutexWord::new(file, &metadata) } else { None })
}

/// Writes the page of a file that was just created, by this process or by one that did not get any further. It is
/// written, not left as a hole, so that changing the word never needs room on a disk that has become full.
fn fill(file: File) -> io::Result<File> {
    // A second one who fills it could take back a change of the word.
    file.try_lock()?;
    if is_begun(&file.metadata()?) {
        let filled = file.write_all_at(&[0; LENGTH], 0);
        // So that the next one begins anew.
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
