//! Files of other programs: read with checks, and replaced atomically.
//!
//! A file that is a symbolic link is never written. Links in its parent directories are followed: a user who keeps the
//! directory of a platform elsewhere wants it changed there. A link that leads out of a project is refused, because it
//! may have come with a clone.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::content::EditError;
use crate::disk::{self, Access};

/// Some platforms keep state of several megabytes in their settings.
const LARGEST_FILE: u64 = 16 * 1024 * 1024;
const TOO_LARGE: &str = "it is larger than 16 MB";

/// A file that may be edited.
#[derive(Debug)]
pub struct SettingsFile {
    /// Its text.
    pub text: String,
    /// Its mode, which is kept.
    pub permissions: Permissions,
}

/// Reads a file that will be edited; `None` if it does not exist.
pub fn to_edit(file: &Path) -> Result<Option<SettingsFile>, EditError> {
    let metadata = match fs::symlink_metadata(file) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(EditError(format!("it cannot be read ({error})"))),
    };
    let trouble = |reason: &str| Err(EditError(reason.to_owned()));
    if metadata.is_symlink() {
        let leads_to = fs::read_link(file).unwrap_or_default();
        // The user keeps the file somewhere else, and should see what changes there.
        return Err(EditError(format!("it is a symbolic link to {}", leads_to.display())));
    }
    if !metadata.is_file() {
        return trouble("it is not a regular file");
    }
    if metadata.len() > LARGEST_FILE {
        return trouble(TOO_LARGE);
    }
    if metadata.permissions().readonly() {
        return trouble("it is read-only");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return trouble("it belongs to another user");
        }
        if metadata.nlink() > 1 {
            return trouble("it has another hard link, which would keep the old text");
        }
    }
    let bytes = fs::read(file).map_err(|error| EditError(format!("it cannot be read ({error})")))?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(SettingsFile { text, permissions: metadata.permissions() })),
        Err(_) => trouble("it is not UTF-8 text"),
    }
}

/// Refuses a file whose directory a symbolic link moves out of the project.
pub fn check_inside(file: &Path, project: Option<&PathBuf>) -> Result<(), EditError> {
    let Some(project) = project else { return Ok(()) };
    let Ok(root) = fs::canonicalize(project) else { return Ok(()) };
    let below = file.ancestors().skip(1).take_while(|directory| *directory != project.as_path());
    for directory in below {
        // Missing directories are created below the first existing one.
        let Ok(real) = fs::canonicalize(directory) else { continue };
        if real.starts_with(&root) {
            return Ok(());
        }
        let name = directory.strip_prefix(project).unwrap_or(directory);
        let (name, real) = (name.display(), real.display());
        return Err(EditError(format!("{name} is a symbolic link to {real}, outside of the project")));
    }
    Ok(())
}

/// Reads a file without editing it, through any symbolic links.
pub fn to_look_at(file: &Path) -> Result<Option<String>, EditError> {
    match fs::metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(EditError(format!("it cannot be read ({error})"))),
        Ok(metadata) if !metadata.is_file() => return Err(EditError("it is not a regular file".to_owned())),
        Ok(metadata) if metadata.len() > LARGEST_FILE => {
            return Err(EditError::shape(TOO_LARGE));
        }
        Ok(_) => {}
    }
    fs::read_to_string(file).map(Some).map_err(|error| EditError(format!("it cannot be read ({error})")))
}

/// The path of the backup of a file.
pub fn backup_of(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".before-blackboard");
    file.with_file_name(name)
}

/// Replaces a file atomically.
pub fn replace(file: &Path, text: &str, access: Access<'_>) -> io::Result<()> {
    disk::replace(file, access, |out| out.write_all(text.as_bytes()))
}
