//! The project of a directory, and the files of its spoke.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use blackboard::project::ProjectIdentity;
use blackboard::{Code, Error, Fault, Refusal, Result};

use super::{DIRECTORY, Manifest, manifest};
use crate::disk::{self, Access};
use crate::hub::folder::{Folder, LARGEST_FILE, Problem};
use crate::identity::{self, Remote};
use crate::location::{self, Request};

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
        let root = location::nearest_with(request, DIRECTORY).unwrap_or_else(|| request.current_dir.clone());
        SpokeProject { main: root.clone(), root, is_repository: false, remote: None }
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

    /// The text of one of its files; `None` if it does not exist. It is read as a hub reads it.
    pub fn read(&self, name: &str) -> Result<Option<String>> {
        let content = self.content(name)?.transpose();
        content.map_err(|problem| unusable(&self.file(name), problem))
    }

    /// The same. Only `.collab/` itself has to be readable.
    pub fn content(&self, name: &str) -> Result<Option<std::result::Result<String, Problem>>> {
        let Some(directory) = self.open_directory()? else { return Ok(None) };
        Ok(directory.read(name, LARGEST_FILE).transpose())
    }

    /// Replaces one of its files atomically, and creates `.collab/` if it is missing.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        self.open_directory()?;
        let directory = self.root.join(DIRECTORY);
        fs::create_dir_all(&directory).map_err(|error| fault(&directory, "created", error))?;
        let file = self.file(name);
        write(&file, text)?;
        Ok(file)
    }

    /// Its `.collab/`; `None` if it does not exist. A link is refused: it may have come with a clone.
    fn open_directory(&self) -> Result<Option<Folder>> {
        let Some(root) = open(&self.root)? else { return Ok(None) };
        root.folder(DIRECTORY).map_err(|problem| unusable(&self.root.join(DIRECTORY), problem))
    }
}

/// The text of a file that the user named; `None` if it does not exist.
pub fn read(file: &Path) -> Result<Option<String>> {
    content(file)?.transpose().map_err(|problem| unusable(file, problem))
}

/// The same. Only its directory has to be readable.
pub fn content(file: &Path) -> Result<Option<std::result::Result<String, Problem>>> {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let Some(name) = file.file_name() else { return Ok(None) };
    let name = name.to_str().ok_or_else(|| unusable(file, Problem::NotText))?;
    let Some(directory) = open(parent.unwrap_or(Path::new(".")))? else { return Ok(None) };
    Ok(directory.read(name, LARGEST_FILE).transpose())
}

fn open(directory: &Path) -> Result<Option<Folder>> {
    match Folder::open(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some).map_err(|error| fault(directory, "read", error)),
    }
}

fn unusable(file: &Path, problem: Problem) -> Error {
    let message = format!("{} {problem}", file.display());
    let hint = match problem {
        Problem::Link => "replace the link with what it points to",
        Problem::NotAFile => "name a plain file",
        Problem::NotADirectory => "rename it",
        Problem::TooLarge { .. } | Problem::NotText => return Error::invalid(message),
        Problem::Io(error) => return fault(file, "read", error),
    };
    Refusal::new(Code::UnsafePermissions, message).hint(hint).into()
}

/// Replaces a file atomically. It keeps its permissions; a new one has the usual ones, because it is made to be committed.
pub fn write(file: &Path, text: &str) -> Result<()> {
    check_plain_file(file)?;
    disk::remove_leftovers(file);
    let permissions = fs::metadata(file).map(|metadata| metadata.permissions()).ok();
    let access = permissions.as_ref().map_or(Access::Usual, Access::Like);
    disk::replace(file, access, |out| out.write_all(text.as_bytes()))
        .map_err(|error| fault(file, "written", error))
}

/// Refuses to replace a link, a directory or a device.
fn check_plain_file(file: &Path) -> Result<()> {
    match fs::symlink_metadata(file) {
        Ok(metadata) if metadata.is_symlink() => Err(unusable(file, Problem::Link)),
        Ok(metadata) if !metadata.is_file() => Err(unusable(file, Problem::NotAFile)),
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
