//! Directories that are private to the user from the start: of a board, or of its sidecars.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Creates a directory and its missing parents, private to the user, whatever the umask is. Returns the created ones,
/// the outermost first. An existing directory does not change.
///
/// ```
/// # let scratch = tempfile::tempdir()?;
/// let directory = scratch.path().join("boards").join("mine");
/// let created = blackboard::store::create_private_directory(&directory)?;
/// assert_eq!(created.len(), 2);
/// assert!(blackboard::store::create_private_directory(&directory)?.is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn create_private_directory(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let is_missing = |path: &&Path| !path.as_os_str().is_empty() && fs::symlink_metadata(path).is_err();
    let mut missing: Vec<_> = directory.ancestors().take_while(is_missing).collect();
    missing.reverse();
    let mut created = Vec::new();
    for path in missing {
        match create_private(path) {
            Ok(()) => created.push(path.to_owned()),
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    // The existing file may not be a directory. Using it then fails by itself.
    if created.is_empty() {
        fs::DirBuilder::new().recursive(true).create(directory)?;
    }
    Ok(created)
}

#[cfg(unix)]
fn create_private(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    fs::DirBuilder::new().mode(0o700).create(directory)?;
    // The umask may have removed rights that the owner needs.
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn create_private(directory: &Path) -> io::Result<()> {
    fs::create_dir(directory)
}
