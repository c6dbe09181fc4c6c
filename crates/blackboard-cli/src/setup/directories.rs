//! The directories that setup has created. `setup remove` deletes these once they are empty, and no others: an empty
//! directory that existed before setup belongs to the user.
//!
//! They are recorded in one file in the home of this program, not in the directories themselves, which may belong to a
//! repository. A directory that is not recorded, for example because two setups ran at the same time, stays.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use blackboard::store::create_private_directory;
use serde::{Deserialize, Serialize};

use crate::disk::{self, Access};

const RECORD: &str = "setup-directories.json";
const LARGEST_RECORD: u64 = 1024 * 1024;

/// The record, as it was read, with the changes of this call.
pub struct CreatedDirectories {
    record: PathBuf,
    directories: Vec<Created>,
    is_changed: bool,
}

#[derive(Serialize, Deserialize)]
struct Created {
    path: PathBuf,
    /// When it was created, in nanoseconds since 1970, if the file system stores that. A directory that the user has
    /// deleted and created again is not ours.
    time: Option<u64>,
}

impl CreatedDirectories {
    /// The record in the home of this program. A record that cannot be read is empty.
    pub fn recorded_in(home: &Path) -> CreatedDirectories {
        let record = home.join(RECORD);
        let text = disk::plain_text(&record, LARGEST_RECORD).unwrap_or_default();
        CreatedDirectories {
            directories: serde_json::from_str(&text).unwrap_or_default(),
            record,
            is_changed: false,
        }
    }

    /// Creates the home of this program, private to the user.
    pub fn create_home(&mut self) -> io::Result<()> {
        if let Some(home) = self.record.parent().map(Path::to_owned) {
            for path in create_private_directory(&home)? {
                self.add(&path);
            }
        }
        Ok(())
    }

    /// Creates a directory and its missing parents.
    pub fn create(&mut self, directory: &Path) -> io::Result<()> {
        let missing: Vec<_> = directory.ancestors().take_while(|path| !path.exists()).collect();
        for path in missing.into_iter().rev() {
            match fs::create_dir(path) {
                Ok(()) => self.add(path),
                // Another process was faster.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Deletes a directory and its parents, as far as setup created them and they are empty.
    pub fn delete_empty(&mut self, directory: &Path) {
        for path in directory.ancestors() {
            let is_ours = self.directories.iter().any(|created| created.is(path));
            if !is_ours || fs::remove_dir(path).is_err() {
                return;
            }
            self.drop_if(|created| created.path == path);
        }
    }

    /// Removes the parents of a file from the record, except those that are still in use.
    pub fn forget_parents(&mut self, file: &Path, is_used: impl Fn(&Path) -> bool) {
        self.drop_if(|created| file.starts_with(&created.path) && !is_used(&created.path));
    }

    /// Writes the record. If no directories are left, deletes it, and the directories that were created for it.
    pub fn save(mut self) {
        if !self.is_changed {
            return;
        }
        // Without the record the directories stay, and nothing else depends on it.
        let _ = if self.directories.iter().all(|created| self.record.starts_with(&created.path)) {
            self.delete()
        } else {
            self.write()
        };
    }

    fn write(&mut self) -> io::Result<()> {
        self.create_home()?;
        let directories = &self.directories;
        disk::replace(&self.record, Access::Private, |out| {
            serde_json::to_writer_pretty(&mut *out, directories)?;
            out.write_all(b"\n")
        })
    }

    fn delete(&mut self) -> io::Result<()> {
        match fs::remove_file(&self.record) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        if let Some(home) = self.record.parent().map(Path::to_owned) {
            self.delete_empty(&home);
        }
        Ok(())
    }

    fn add(&mut self, path: &Path) {
        self.directories.retain(|created| created.path != path);
        self.directories.push(Created { path: path.to_owned(), time: creation_time(path) });
        self.is_changed = true;
    }

    fn drop_if(&mut self, is_dropped: impl Fn(&Created) -> bool) {
        let before = self.directories.len();
        self.directories.retain(|created| !is_dropped(created));
        self.is_changed |= self.directories.len() != before;
    }
}

impl Created {
    fn is(&self, path: &Path) -> bool {
        self.path == path && self.time == creation_time(path)
    }
}

fn creation_time(path: &Path) -> Option<u64> {
    let created = fs::symlink_metadata(path).ok()?.created().ok()?;
    created.duration_since(UNIX_EPOCH).ok()?.as_nanos().try_into().ok()
}
