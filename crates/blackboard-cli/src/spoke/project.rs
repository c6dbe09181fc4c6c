//! The project of a directory, and the files of its spoke.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use blackboard::project::ProjectIdentity;
use blackboard::{Code, Error, Fault, Refusal, Result};

use super::{DIRECTORY, Manifest, manifest};
use crate::disk::{self, Access};
use crate::identity::{self, Remote};
use crate::location::{self, Request};
use crate::yaml::Limits;

/// The project of a directory.
#[derive(Clone, Debug)]
pub struct SpokeProject {
    /// The root of its worktree, or the directory that has its `.collab/`.
    pub root: PathBuf,
    /// The root of the main worktree, which a registered path or a board may name.
    main: PathBuf,
    /// Whether it is in a git repository.
    pub is_repository: bool,
    /// Its remote.
    pub remote: Option<Remote>,
}

impl SpokeProject {
    /// The project of the working directory: its repository, or outside of one the nearest directory with `.collab/`, or the
    /// working directory.
    pub fn find(request: &Request) -> SpokeProject {
        if let Some((root, main)) = location::worktree(request) {
            let remote = identity::remote(&main);
            return SpokeProject { root, main, is_repository: true, remote };
        }
        let here = &request.current_dir;
        let root = here.ancestors().find(|directory| directory.join(DIRECTORY).is_dir()).unwrap_or(here);
        SpokeProject { root: root.to_owned(), main: root.to_owned(), is_repository: false, remote: None }
    }

    /// The project whose root is this directory, wherever it is.
    pub fn in_directory(directory: &Path) -> SpokeProject {
        let root = directory.to_owned();
        let is_repository = root.join(".git").exists();
        let remote = identity::remote(&root);
        SpokeProject { main: root.clone(), root, is_repository, remote }
    }

    /// Its name: as its manifest says, or the name that hooks give to sessions here.
    pub fn name(&self) -> String {
        let manifest = self.read(manifest::FILE).ok().flatten().and_then(|text| Manifest::check(&text).value);
        let of_manifest = manifest.map(|manifest| manifest.project).filter(|project| !project.is_empty());
        of_manifest.unwrap_or_else(|| self.session_project())
    }

    /// The project of sessions that start here, if none is registered: `identity::project`.
    pub fn session_project(&self) -> String {
        let directory = self.main.file_name().and_then(OsStr::to_str);
        let remote = self.remote.as_ref().map(|remote| remote.name.as_str());
        remote.or(directory).unwrap_or("project").to_owned()
    }

    /// What identifies it on a board with this name. A board in the project belongs to it.
    pub fn identity(&self, board: &str) -> ProjectIdentity {
        let directory_of_board = Path::new(board).parent().and_then(Path::parent);
        let owns_board =
            directory_of_board.is_some_and(|directory| directory == self.root || directory == self.main);
        let mut directories = vec![self.root.clone()];
        if self.main != self.root {
            directories.push(self.main.clone());
        }
        ProjectIdentity {
            names: vec![self.session_project()],
            directories,
            repository: self.remote.as_ref().and_then(|remote| remote.repository.clone()),
            owns_board,
        }
    }

    /// The path of one of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.root.join(DIRECTORY).join(name)
    }

    /// The text of one of its files; `None` if it does not exist.
    pub fn read(&self, name: &str) -> Result<Option<String>> {
        self.check_directory()?;
        read(&self.file(name))
    }

    /// Replaces one of its files atomically, and creates `.collab/` if it is missing.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        self.check_directory()?;
        let directory = self.root.join(DIRECTORY);
        fs::create_dir_all(&directory).map_err(|error| fault(&directory, "created", error))?;
        let file = self.file(name);
        write(&file, text)?;
        Ok(file)
    }

    /// Refuses a `.collab` that is a link out of the project: it may have come with a clone.
    fn check_directory(&self) -> Result<()> {
        let directory = self.root.join(DIRECTORY);
        if !fs::symlink_metadata(&directory).is_ok_and(|metadata| metadata.is_symlink()) {
            return Ok(());
        }
        match (fs::canonicalize(&directory), fs::canonicalize(&self.root)) {
            (Ok(directory), Ok(root)) if directory.starts_with(&root) => Ok(()),
            _ => Err(Refusal::new(
                Code::UnsafePermissions,
                format!("{} is a symbolic link that leaves the project", directory.display()),
            )
            .hint("replace the link with a directory")
            .into()),
        }
    }
}

/// The text of a file; `None` if it does not exist. A link, a device or a file that is too large is refused.
pub fn read(file: &Path) -> Result<Option<String>> {
    let name = file.display();
    refuse_what_is_no_file(file)?;
    let opened = match File::open(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|error| fault(file, "read", error))?,
    };
    let mut bytes = Vec::new();
    let limit = Limits::FILE.bytes;
    opened.take(limit as u64 + 1).read_to_end(&mut bytes).map_err(|error| fault(file, "read", error))?;
    if bytes.len() > limit {
        return Err(Error::invalid(format!("{name} has more than {limit} bytes")));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| Error::invalid(format!("{name} is not text in UTF-8")))
}

/// Replaces a file atomically. It keeps its permissions; a new one has the usual ones, because it is made to be committed.
pub fn write(file: &Path, text: &str) -> Result<()> {
    refuse_what_is_no_file(file)?;
    disk::remove_leftovers(file);
    let permissions = fs::metadata(file).map(|metadata| metadata.permissions()).ok();
    let access = permissions.as_ref().map_or(Access::Usual, Access::Like);
    disk::replace(file, access, |out| out.write_all(text.as_bytes()))
        .map_err(|error| fault(file, "written", error))
}

fn refuse_what_is_no_file(file: &Path) -> Result<()> {
    match fs::symlink_metadata(file) {
        Ok(metadata) if !metadata.is_file() => {
            let what = if metadata.is_symlink() { "a symbolic link" } else { "not a plain file" };
            Err(Refusal::new(Code::UnsafePermissions, format!("{} is {what}", file.display()))
                .hint("name a plain file")
                .into())
        }
        _ => Ok(()),
    }
}

fn fault(file: &Path, what: &str, error: io::Error) -> Error {
    let message = format!("{} cannot be {what}", file.display());
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Refusal::new(Code::ReadOnly, format!("{message}: {error}"))
                .hint("check the permissions of the file and of its directory")
                .into()
        }
        _ => Fault::new(Code::Io, message).because(error).into(),
    }
}
