//! Finds the git repository of a directory by reading the file system: starting `git` would cost more than the complete
//! command.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// `.git` and `commondir` contain one path; anything longer was not written by git.
const LONGEST_LINK: u64 = 8 * 1024;

/// The repository that contains a directory.
#[derive(Debug, PartialEq)]
pub(super) struct Repository {
    /// The root of the worktree that the directory is in.
    pub(super) root: PathBuf,
    /// The path that all worktrees of the repository share: the root of the main worktree, or the repository itself if
    /// it is bare.
    pub(super) main: PathBuf,
}

/// The repository that contains `directory`, searched up to `ceiling`.
pub(super) fn containing(directory: &Path, ceiling: Option<&Path>) -> Option<Repository> {
    for root in directory.ancestors() {
        if let Some(main) = main_worktree(root) {
            return Some(Repository { root: root.to_owned(), main });
        }
        if Some(root) == ceiling {
            return None;
        }
    }
    None
}

/// The main worktree, if this is the root of a linked worktree.
fn main_worktree(root: &Path) -> Option<PathBuf> {
    let link = root.join(".git");
    if fs::metadata(&link).ok()?.is_dir() {
        return Some(root.to_owned());
    }
    let git_directory = root.join(path_in(read_link_file(&link)?.strip_prefix(b"gitdir:")?)?);
    // Only a linked worktree has a `commondir`. A submodule has none and is a separate repository.
    let Some(common) = read_link_file(&git_directory.join("commondir")) else {
        return git_directory.is_dir().then(|| root.to_owned());
    };
    let common = fs::canonicalize(git_directory.join(path_in(&common)?)).ok()?;
    match common.parent() {
        Some(main) if common.ends_with(".git") => Some(main.to_owned()),
        _ => Some(common),
    }
}

/// The content of a short regular file; `None` for a pipe, because reading it could block forever.
fn read_link_file(path: &Path) -> Option<Vec<u8>> {
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut content = Vec::new();
    File::open(path).ok()?.take(LONGEST_LINK).read_to_end(&mut content).ok()?;
    Some(content)
}

#[cfg(unix)]
fn path_in(content: &[u8]) -> Option<&Path> {
    let path = content.trim_ascii();
    (!path.is_empty()).then(|| Path::new(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(path)))
}

/// On systems where paths are not bytes, git writes them as UTF-8.
#[cfg(not(unix))]
fn path_in(content: &[u8]) -> Option<&Path> {
    let path = std::str::from_utf8(content.trim_ascii()).ok()?;
    (!path.is_empty()).then(|| Path::new(path))
}
