//! Files of other programs: read with distrust, and replaced as a whole.
//!
//! A file that is a link is never written. A link on the way to it is followed: a user who keeps the directory of a platform
//! elsewhere wants it changed there. A link that leads out of a project is not: it may have come with a clone.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::content::EditError;
use crate::disk::{self, Access};

/// A platform may keep its state with its settings, which comes to some megabytes.
const LARGEST_FILE: u64 = 16 * 1024 * 1024;
const TOO_LARGE: &str = "it is larger than 16 MB";

/// A file that may be edited.
#[derive(Debug)]
pub struct Found {
    /// What is in it.
    pub text: String,
    /// Its mode, which it keeps.
    pub permissions: Permissions,
}

/// Reads a file that is to be edited; `None` if there is none.
pub fn to_edit(file: &Path) -> Result<Option<Found>, EditError> {
    let metadata = match fs::symlink_metadata(file) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(EditError(format!("it can't be read ({error})"))),
    };
    let trouble = |reason: &str| Err(EditError(reason.to_owned()));
    if metadata.is_symlink() {
        let leads_to = fs::read_link(file).unwrap_or_default();
        // The user keeps the file somewhere else, and should see what changes there.
        return Err(EditError(format!("it is a symbolic link to {}", leads_to.display())));
    }
    if !metadata.is_file() {
        return trouble("it is not a plain file");
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
            return trouble("it has another name too (a hard link), which would keep the old text");
        }
    }
    let bytes = fs::read(file).map_err(|error| EditError(format!("it can't be read ({error})")))?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(Found { text, permissions: metadata.permissions() })),
        Err(_) => trouble("it is not UTF-8 text"),
    }
}

/// Refuses a file in a directory that a link leads out of the project to.
pub fn check_inside(file: &Path, project: Option<&PathBuf>) -> Result<(), EditError> {
    let Some(project) = project else { return Ok(()) };
    let Ok(root) = fs::canonicalize(project) else { return Ok(()) };
    let below = file.ancestors().skip(1).take_while(|directory| *directory != project.as_path());
    for directory in below {
        // What does not exist is created below what does.
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

/// Reads a file that is only looked at, wherever a link leads.
pub fn to_look_at(file: &Path) -> Result<Option<String>, EditError> {
    match fs::metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(EditError(format!("it can't be read ({error})"))),
        Ok(metadata) if !metadata.is_file() => return Err(EditError("it is not a plain file".to_owned())),
        Ok(metadata) if metadata.len() > LARGEST_FILE => {
            return Err(EditError::shape(TOO_LARGE));
        }
        Ok(_) => {}
    }
    fs::read_to_string(file).map(Some).map_err(|error| EditError(format!("it can't be read ({error})")))
}

/// Where the text from before we came is kept.
pub fn backup_of(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".before-blackboard");
    file.with_file_name(name)
}

/// Puts a file in its place: all of it or nothing.
pub fn replace(file: &Path, text: &str, access: Access<'_>) -> io::Result<()> {
    disk::replace(file, access, |out| out.write_all(text.as_bytes()))
}
