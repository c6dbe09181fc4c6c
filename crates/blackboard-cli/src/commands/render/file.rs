//! The file of a render: read, and replaced atomically.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use blackboard::swarm::{Dialect, LeftEntry, MAX_FILE_BYTES, SwarmView, render};
use blackboard::{Code, Error, Fault, Refusal, Result};

use crate::commands::export::{not_written, refuse_what_is_no_plain_file};
use crate::disk::{Access, remove_leftovers, replace_unless};

/// How often a file is rendered again because it was changed meanwhile.
const ATTEMPTS: usize = 20;

/// The file of a render.
pub struct TargetFile {
    path: PathBuf,
}

/// What a render did to the file.
pub struct WrittenFile {
    /// Whether the file is another one than before.
    pub changed: bool,
    /// The entries of the file that the board does not have like this.
    pub left: Vec<LeftEntry>,
}

/// Why a file was not replaced.
enum Failure {
    /// Another program has changed it since it was read.
    Changed,
    Io(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Io(error)
    }
}

impl TargetFile {
    /// The file at this path.
    pub fn new(path: PathBuf) -> TargetFile {
        TargetFile { path }
    }

    /// Its name for output.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Its size and time, which change when a person saves it.
    pub fn state(&self) -> Option<(u64, SystemTime)> {
        let metadata = fs::symlink_metadata(&self.path).ok()?;
        Some((metadata.len(), metadata.modified().ok()?))
    }

    /// Replaces the rendered parts. If a person saves the file meanwhile, it is rendered again.
    pub fn write(&self, view: &SwarmView, dialect: Dialect) -> Result<WrittenFile> {
        remove_leftovers(&self.path);
        for _ in 0..ATTEMPTS {
            let (existing, permissions) = self.read()?;
            let rendered = render(view, dialect, existing.as_deref().unwrap_or_default())?;
            let left = rendered.left;
            if existing.as_deref() == Some(&*rendered.text) {
                return Ok(WrittenFile { changed: false, left });
            }
            let access = permissions.as_ref().map_or(Access::Private, Access::Like);
            let write = |out: &mut BufWriter<File>| Ok(out.write_all(rendered.text.as_bytes())?);
            let replaced = replace_unless(&self.path, access, write, || {
                let current = read_bytes(&self.path)?;
                if current.as_deref() == existing.as_deref().map(str::as_bytes) {
                    Ok(())
                } else {
                    Err(Failure::Changed)
                }
            });
            match replaced {
                Ok(()) => return Ok(WrittenFile { changed: true, left }),
                Err(Failure::Changed) => {}
                Err(Failure::Io(error)) => return Err(not_written(&self.path, error)),
            }
        }
        Err(Refusal::new(Code::Conflict, format!("{} keeps changing", self.path.display()))
            .hint("end the other program that writes it")
            .into())
    }

    fn read(&self) -> Result<(Option<String>, Option<Permissions>)> {
        refuse_what_is_no_plain_file(&self.path, "name a plain file")?;
        let name = self.path.display();
        let unread = |error| Fault::new(Code::Io, format!("{name} cannot be read")).because(error);
        let Some(bytes) = read_bytes(&self.path).map_err(unread)? else {
            return Ok((None, None));
        };
        if bytes.len() > MAX_FILE_BYTES {
            return Err(Error::invalid(format!(
                "{name} has more than the {MAX_FILE_BYTES} bytes that are allowed"
            )));
        }
        let text =
            String::from_utf8(bytes).map_err(|_| Error::invalid(format!("{name} is not text in UTF-8")))?;
        Ok((Some(text), fs::metadata(&self.path).map(|metadata| metadata.permissions()).ok()))
    }
}

/// The bytes of a file, a little more than are allowed at most; `None` if it does not exist.
fn read_bytes(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_may_not_be_written_is_read_only() {
        let file = Path::new("board.md");
        for (kind, code) in [
            (io::ErrorKind::PermissionDenied, Code::ReadOnly),
            (io::ErrorKind::ReadOnlyFilesystem, Code::ReadOnly),
            (io::ErrorKind::NotFound, Code::Io),
        ] {
            assert_eq!(not_written(file, kind.into()).code(), code, "{kind}");
        }
    }
}
