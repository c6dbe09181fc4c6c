//! Reads files of a checkout that others wrote: no link is followed, no pipe is waited for, no file is read beyond its limit.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use crate::spoke::DIRECTORY as COLLAB;
use crate::spoke::{manifest, operator, status};

/// How many bytes a file of a spoke or a hub may have.
pub const LARGEST_FILE: u64 = 256 * 1024;

/// How many entries of a directory are read.
const MOST_ENTRIES: usize = 10_000;

/// How many bytes of text are read from a hub: git stores a text that many files have only once, so that a small repository
/// can have many gigabytes of text.
pub const LARGEST_HUB: u64 = 32 * 1024 * 1024;

/// The text of a file, or why it cannot be used.
pub type Content = Result<String, String>;

/// Files by their paths, without those that do not exist.
pub type Files = BTreeMap<String, Content>;

/// The files of a spoke that are read.
pub const COLLAB_FILES: [&str; 3] = [manifest::FILE, status::FILE, operator::FILE];

/// The files of a spoke. It is empty if there is no `.collab/`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Collab {
    /// Why the directory cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The files that exist.
    pub files: Files,
}

impl Collab {
    /// Whether the repository has no `.collab/`, or nothing in it that belongs there.
    pub fn is_missing(&self) -> bool {
        self.problem.is_none() && self.files.is_empty()
    }

    /// Reads `.collab/` in this directory.
    pub fn read(directory: &Folder) -> Collab {
        Collab::read_within(directory, &mut Budget::new(LARGEST_HUB))
    }

    /// The same, as a part of a hub.
    pub fn read_within(directory: &Folder, budget: &mut Budget) -> Collab {
        let collab = match directory.folder(COLLAB) {
            Ok(Some(collab)) => collab,
            Ok(None) => return Collab::default(),
            Err(problem) => {
                return Collab { problem: Some(format!("{COLLAB} {problem}")), files: Files::new() };
            }
        };
        let read = |name: &&'static str| Some(((*name).to_owned(), collab.text_within(name, budget)?));
        Collab { problem: None, files: COLLAB_FILES.iter().filter_map(read).collect() }
    }
}

/// Why a file or a directory cannot be used. It completes a sentence that begins with its name.
#[derive(Debug)]
pub enum Problem {
    /// It is a link, which is not followed.
    Link,
    /// It is a directory, a device or a pipe.
    NotAFile,
    /// It is not a directory.
    NotADirectory,
    /// It has more bytes than are read.
    TooLarge { size: u64, most: u64 },
    /// It is not UTF-8.
    NotText,
    /// It cannot be read.
    Io(io::Error),
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Link => out.write_str("is a symbolic link"),
            Problem::NotAFile => out.write_str("is not a plain file"),
            Problem::NotADirectory => out.write_str("is not a directory"),
            Problem::TooLarge { size, most } => out.write_str(&too_large(*size, *most)),
            Problem::NotText => out.write_str("is not UTF-8"),
            Problem::Io(error) => write!(out, "cannot be read: {error}"),
        }
    }
}

/// The text of bytes that were read.
pub fn text_of(bytes: Vec<u8>) -> Content {
    String::from_utf8(bytes).map_err(|_| Problem::NotText.to_string())
}

/// How many bytes of text may still be read. After the first text that exceeds it, none is read.
#[derive(Debug)]
pub struct Budget {
    all: u64,
    left: Option<u64>,
}

impl Budget {
    /// A number of bytes for all texts together.
    pub fn new(all: u64) -> Budget {
        Budget { all, left: Some(all) }
    }

    /// Counts a text of this size. The error completes a sentence that begins with the name of its file.
    pub fn take(&mut self, size: u64) -> Result<(), String> {
        self.left = self.left.and_then(|left| left.checked_sub(size));
        self.left.map(drop).ok_or_else(|| self.problem())
    }

    /// Whether a text did not fit.
    pub fn is_exceeded(&self) -> bool {
        self.left.is_none()
    }

    fn problem(&self) -> String {
        format!("was not read: only {} MB are read from a hub", self.all / (1024 * 1024))
    }
}

/// Why a file of this size is not read.
pub fn too_large(size: u64, most: u64) -> String {
    format!("is too large: {size} bytes, at most {most} are read")
}

/// An open directory.
pub struct Folder {
    #[cfg(unix)]
    directory: rustix::fd::OwnedFd,
    #[cfg(not(unix))]
    directory: std::path::PathBuf,
}

impl Folder {
    /// The text of a file of a hub; `None` if it does not exist.
    pub fn text_within(&self, name: &str, budget: &mut Budget) -> Option<Content> {
        // Without space for it, a file is opened only to see whether it exists.
        let most = if budget.is_exceeded() { 0 } else { LARGEST_FILE };
        match self.text(name, most)? {
            _ if budget.is_exceeded() => Some(Err(budget.problem())),
            Ok(text) => Some(budget.take(text.len() as u64).map(|()| text)),
            Err(problem) => Some(Err(problem)),
        }
    }

    /// The text of a file in it, or why it cannot be used; `None` if it does not exist.
    pub fn text(&self, name: &str, most: u64) -> Option<Content> {
        self.read(name, most).map_err(|problem| problem.to_string()).transpose()
    }
}

#[cfg(unix)]
mod unix {
    use std::fs::File;
    use std::io::Read;

    use rustix::fd::OwnedFd;
    use rustix::fs::{Dir, Mode, OFlags, open, openat};
    use rustix::io::Errno;

    use super::{Folder, MOST_ENTRIES, Path, Problem, io};

    /// What opening a link without following it returns; FreeBSD has its own error for it.
    fn is_link(error: Errno) -> bool {
        matches!(error, Errno::LOOP | Errno::MLINK)
    }

    fn flags() -> OFlags {
        OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK
    }

    impl Folder {
        /// A directory that the user named. Links in its path are the user's own.
        pub fn open(path: &Path) -> io::Result<Folder> {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECTORY;
            Ok(Folder { directory: open(path, flags, Mode::empty())? })
        }

        /// A directory in it; `None` if it does not exist.
        pub fn folder(&self, name: &str) -> Result<Option<Folder>, Problem> {
            match openat(&self.directory, name, flags() | OFlags::DIRECTORY, Mode::empty()) {
                Ok(directory) => Ok(Some(Folder { directory })),
                Err(Errno::NOENT) => Ok(None),
                Err(error) if is_link(error) => Err(Problem::Link),
                // With `O_DIRECTORY`, a link is not a directory.
                Err(Errno::NOTDIR) if self.is_link(name) => Err(Problem::Link),
                Err(Errno::NOTDIR) => Err(Problem::NotADirectory),
                Err(error) => Err(Problem::Io(error.into())),
            }
        }

        fn is_link(&self, name: &str) -> bool {
            use rustix::fs::{AtFlags, FileType, statat};
            statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|status| FileType::from_raw_mode(status.st_mode) == FileType::Symlink)
        }

        /// The text of a file in it; `None` if it does not exist.
        pub fn read(&self, name: &str, most: u64) -> Result<Option<String>, Problem> {
            match openat(&self.directory, name, flags(), Mode::empty()) {
                Ok(file) => read(file, most).map(Some),
                Err(Errno::NOENT) => Ok(None),
                Err(error) if is_link(error) => Err(Problem::Link),
                Err(error) => Err(Problem::Io(error.into())),
            }
        }

        /// The names in it, sorted. Those that are not UTF-8 are left out.
        pub fn names(&self) -> io::Result<Vec<String>> {
            let mut names = Vec::new();
            for entry in Dir::read_from(&self.directory)?.take(MOST_ENTRIES) {
                let entry = entry?;
                if let Some(name) =
                    entry.file_name().to_str().ok().filter(|name| !matches!(*name, "." | ".."))
                {
                    names.push(name.to_owned());
                }
            }
            names.sort_unstable();
            Ok(names)
        }
    }

    fn read(file: OwnedFd, most: u64) -> Result<String, Problem> {
        let mut file = File::from(file);
        let metadata = file.metadata().map_err(Problem::Io)?;
        if !metadata.is_file() {
            return Err(Problem::NotAFile);
        }
        let mut bytes = Vec::new();
        (&mut file).take(most + 1).read_to_end(&mut bytes).map_err(Problem::Io)?;
        if bytes.len() as u64 > most {
            return Err(Problem::TooLarge { size: metadata.len().max(most + 1), most });
        }
        String::from_utf8(bytes).map_err(|_| Problem::NotText)
    }
}

/// Without descriptors of directories, each name is checked before it is used.
#[cfg(not(unix))]
mod other {
    use std::fs;
    use std::io::{ErrorKind, Read};

    use super::{Folder, MOST_ENTRIES, Path, Problem, io};

    impl Folder {
        /// A directory that the user named.
        pub fn open(path: &Path) -> io::Result<Folder> {
            let directory = fs::canonicalize(path)?;
            if directory.is_dir() { Ok(Folder { directory }) } else { Err(ErrorKind::NotADirectory.into()) }
        }

        /// A directory in it; `None` if it does not exist.
        pub fn folder(&self, name: &str) -> Result<Option<Folder>, Problem> {
            match self.metadata(name) {
                Ok(metadata) if metadata.is_dir() => {
                    Ok(Some(Folder { directory: self.directory.join(name) }))
                }
                Ok(metadata) if metadata.is_symlink() => Err(Problem::Link),
                Ok(_) => Err(Problem::NotADirectory),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(Problem::Io(error)),
            }
        }

        /// The text of a file in it; `None` if it does not exist.
        pub fn read(&self, name: &str, most: u64) -> Result<Option<String>, Problem> {
            match self.metadata(name) {
                Ok(metadata) if metadata.is_symlink() => Err(Problem::Link),
                Ok(metadata) if !metadata.is_file() => Err(Problem::NotAFile),
                Ok(metadata) if metadata.len() > most => {
                    Err(Problem::TooLarge { size: metadata.len(), most })
                }
                Ok(_) => {
                    let mut bytes = Vec::new();
                    let read = fs::File::open(self.directory.join(name))
                        .and_then(|file| file.take(most).read_to_end(&mut bytes));
                    read.map_err(Problem::Io)?;
                    String::from_utf8(bytes).map(Some).map_err(|_| Problem::NotText)
                }
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(Problem::Io(error)),
            }
        }

        /// The names in it, sorted. Those that are not UTF-8 are left out.
        pub fn names(&self) -> io::Result<Vec<String>> {
            let entries = fs::read_dir(&self.directory)?.take(MOST_ENTRIES).flatten();
            let mut names: Vec<_> =
                entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
            names.sort_unstable();
            Ok(names)
        }

        /// Of one name, which must not be a path.
        fn metadata(&self, name: &str) -> io::Result<fs::Metadata> {
            if name.contains(['/', '\\', ':']) || name == ".." {
                return Err(ErrorKind::InvalidInput.into());
            }
            fs::symlink_metadata(self.directory.join(name))
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use testkit::process::RunToEnd as _;

    use super::*;

    #[test]
    fn only_plain_files_inside_of_the_directory_are_read() {
        let scratch = testkit::tempdir().unwrap();
        let collab = scratch.path().join("project").join(COLLAB);
        fs::create_dir_all(&collab).unwrap();
        fs::write(scratch.path().join("secret.yaml"), "secret: 1").unwrap();
        fs::write(collab.join("manifest.yaml"), "name: a").unwrap();
        fs::write(collab.join("other.yaml"), "name: b").unwrap();
        symlink(scratch.path().join("secret.yaml"), collab.join("status.yaml")).unwrap();
        fs::create_dir(collab.join("operator.yaml")).unwrap();
        let read = |name: &str| Collab::read(&Folder::open(&scratch.path().join(name)).unwrap());
        let expected = Collab {
            problem: None,
            files: [
                ("manifest.yaml", Ok("name: a".to_owned())),
                ("operator.yaml", Err("is not a plain file".to_owned())),
                ("status.yaml", Err("is a symbolic link".to_owned())),
            ]
            .map(|(name, content)| (name.to_owned(), content))
            .into(),
        };
        assert_eq!(read("project"), expected);
        assert!(read("project/.collab").is_missing());
        fs::create_dir(scratch.path().join("linked")).unwrap();
        symlink(&collab, scratch.path().join("linked").join(COLLAB)).unwrap();
        assert_eq!(read("linked").problem.as_deref(), Some(".collab is a symbolic link"));
    }

    #[test]
    fn texts_beyond_a_budget_are_not_read() {
        let scratch = testkit::tempdir().unwrap();
        for (name, text) in [("a", "123456"), ("b", "1234567"), ("c", "1")] {
            fs::write(scratch.path().join(name), text).unwrap();
        }
        let folder = Folder::open(scratch.path()).unwrap();
        let mut budget = Budget::new(10);
        let problem = || Some(Err("was not read: only 0 MB are read from a hub".to_owned()));
        assert_eq!(folder.text_within("a", &mut budget), Some(Ok("123456".to_owned())));
        assert_eq!(folder.text_within("b", &mut budget), problem());
        // The one after it would fit. It is refused too, so that what is read does not depend on sizes.
        assert_eq!(folder.text_within("c", &mut budget), problem());
        assert_eq!(folder.text_within("none", &mut budget), None);
    }

    #[test]
    fn large_files_other_encodings_and_pipes_are_refused() {
        let scratch = testkit::tempdir().unwrap();
        fs::write(scratch.path().join("large"), "x".repeat(101)).unwrap();
        fs::write(scratch.path().join("full"), "x".repeat(100)).unwrap();
        fs::write(scratch.path().join("binary"), b"\xff").unwrap();
        let made = std::process::Command::new("mkfifo").arg(scratch.path().join("pipe")).run_to_end();
        assert!(made.status.success());
        let folder = Folder::open(scratch.path()).unwrap();
        let problem = |name| folder.text(name, 100).unwrap().unwrap_err();
        assert_eq!(problem("large"), "is too large: 101 bytes, at most 100 are read");
        assert_eq!(problem("binary"), "is not UTF-8");
        assert_eq!(problem("pipe"), "is not a plain file");
        assert_eq!(folder.text("full", 100), Some(Ok("x".repeat(100))));
        assert_eq!(folder.text("none", 100), None);
        assert_eq!(folder.names().unwrap(), ["binary", "full", "large", "pipe"]);
    }
}
