//! Syncs the directory of a board to disk.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Waits until the names in the directory of a new board are on disk, and those of the directories that were created
/// for it.
#[cfg(unix)]
pub(super) fn sync(board: &Path, created: &[PathBuf]) -> io::Result<()> {
    let containing = |path: &Path| {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        fs::File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
    };
    containing(board)?;
    created.iter().rev().try_for_each(|directory| containing(directory))
}

/// On other systems a directory cannot be opened as a file.
#[cfg(not(unix))]
pub(super) fn sync(_board: &Path, _created: &[PathBuf]) -> io::Result<()> {
    Ok(())
}
