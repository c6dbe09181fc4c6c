//! Where the board is.
//!
//! The first of these that answers decides: `--db`, `$BLACKBOARD_DB`, a `.blackboard/` directory on the way up from
//! the working directory, the home configuration, `~/.pai/blackboard/local.db`. [`find`] only looks: it creates
//! nothing, starts no other program and reads no environment, which comes in as values.
//!
//! A worktree of a git repository is searched as if the working directory was the same place in the main worktree,
//! so that all worktrees share one board.

mod repository;
mod tree;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use blackboard::{Code, Refusal, Result};

pub(crate) use self::tree::{Tree, lexically};
use crate::config::{self, CONFIG_FILE, Database};
use crate::environment::Environment;

/// The name of the database in a directory that holds a board.
pub(crate) const DATABASE_FILE: &str = "local.db";

/// What the search goes by.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    /// `--db`.
    pub(crate) db: Option<OsString>,
    /// The environment of the process.
    pub(crate) environment: Environment,
    /// The working directory, as an absolute path.
    pub(crate) current_dir: PathBuf,
}

/// The answer, and how it came about.
#[derive(Debug, PartialEq)]
pub(crate) struct Location {
    /// The board.
    pub(crate) target: Target,
    /// What decided.
    pub(crate) source: Source,
    /// The configuration for every board, whether or not it exists; none without a home directory.
    pub(crate) home_config: Option<PathBuf>,
    /// The configuration of the project whose board it is, whether or not it exists.
    pub(crate) project_config: Option<PathBuf>,
    /// `$BLACKBOARD_HOME` or `~/.pai/blackboard`; none without a home directory.
    pub(crate) home: Option<PathBuf>,
    /// What was passed over on the way, as sentences for people.
    pub(crate) warnings: Vec<String>,
}

/// What keeps the board.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Target {
    /// A database file, as an absolute path.
    File(PathBuf),
    /// The URL of a Redis server.
    Redis(String),
}

/// What decided where the board is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Source {
    /// `--db`.
    Option,
    /// `$BLACKBOARD_DB`.
    Environment,
    /// This directory of a project.
    Project(PathBuf),
    /// `database.operatorPath` in the home configuration.
    HomeConfiguration,
    /// Nothing else: it is the board of this user.
    Home,
}

/// Where the board is.
pub(crate) fn find(request: &Request) -> Result<Location> {
    let Request { db, environment, current_dir } = request;
    let home = home(request);
    let home_config = home.as_ref().map(|home| home.join(CONFIG_FILE));
    let Database { operator_path, project_directory, .. } = config::database(home_config.as_deref())?;
    let mut warnings = Vec::new();

    let (target, source) = if let Some(db) = db {
        (target(db, "--db", current_dir)?, Source::Option)
    } else if let Some(database) = &environment.database {
        (target(database, "BLACKBOARD_DB", current_dir)?, Source::Environment)
    } else if let Some(directory) = find_project(request, &project_directory, &mut warnings) {
        (Target::File(directory.join(DATABASE_FILE)), Source::Project(directory))
    } else {
        let Some(home) = &home else { return Err(no_home().into()) };
        match operator_path {
            Some(path) => {
                let path = expand_tilde(&path, user_home(request).as_deref());
                (target(path.as_os_str(), "database.operatorPath", home)?, Source::HomeConfiguration)
            }
            None => (Target::File(home.join(DATABASE_FILE)), Source::Home),
        }
    };
    // A home may itself be called `.blackboard`; its configuration is read once, with all its rights.
    let project_config =
        project_config(&target, &project_directory).filter(|file| Some(file) != home_config.as_ref());
    Ok(Location { target, source, home_config, project_config, home, warnings })
}

/// Where a new board of this project belongs: at the root of the main worktree, or here outside a repository.
pub(crate) fn new_project_directory(request: &Request) -> Result<PathBuf> {
    let name = config::database(home_config(request).as_deref())?.project_directory;
    Ok(match repository::containing(&request.current_dir, ceiling(request).as_deref()) {
        Some(repository) => repository.main.join(name),
        None => request.current_dir.join(name),
    })
}

/// The location of the board in this directory of a project, before the search finds it.
pub(crate) fn in_project(request: &Request, directory: &Path) -> Location {
    Location {
        target: Target::File(directory.join(DATABASE_FILE)),
        source: Source::Project(directory.to_owned()),
        home_config: home_config(request),
        project_config: Some(directory.join(CONFIG_FILE)),
        home: home(request),
        warnings: Vec::new(),
    }
}

/// The tree of files around the working directory: the worktree, or outside a repository the directory that has a
/// board, or else all files of the machine. The working directory would not do: what is reserved from one directory has
/// to be found from every other.
pub(crate) fn tree(request: &Request) -> Result<Tree> {
    let current_dir = request.current_dir.clone();
    if let Some(repository) = repository::containing(&current_dir, ceiling(request).as_deref()) {
        return Tree::new(repository.root, &repository.main, current_dir);
    }
    let name = config::database(home_config(request).as_deref())?.project_directory;
    // What is odd about a directory on the way is said where the board is looked for.
    let project = find_project(request, &name, &mut Vec::new());
    let root = project.and_then(|directory| directory.parent().map(Path::to_owned));
    let everything = || current_dir.ancestors().last().unwrap_or(&current_dir).to_owned();
    let root = root.unwrap_or_else(everything);
    Tree::new(root.clone(), &root, current_dir)
}

/// The repository around the working directory: the root of its main worktree, and the working directory as it would be
/// there.
pub(crate) fn main_worktree(request: &Request) -> Option<(PathBuf, PathBuf)> {
    let repository = repository::containing(&request.current_dir, ceiling(request).as_deref())?;
    let inside = request.current_dir.strip_prefix(&repository.root).unwrap_or(Path::new(""));
    Some((repository.main.clone(), repository.main.join(inside)))
}

fn user_home(request: &Request) -> Option<PathBuf> {
    request.environment.user_home.as_ref().map(|home| request.current_dir.join(home))
}

/// The configuration for every board, whether or not it exists; none without a home directory.
pub(crate) fn home_config(request: &Request) -> Option<PathBuf> {
    home(request).map(|home| home.join(CONFIG_FILE))
}

/// `$BLACKBOARD_HOME` or `~/.pai/blackboard`; none without a home directory.
pub(crate) fn home(request: &Request) -> Option<PathBuf> {
    match &request.environment.home {
        Some(home) => Some(request.current_dir.join(home)),
        None => user_home(request).map(|home| home.join(".pai/blackboard")),
    }
}

/// The home directory as the working directory would spell it, which never goes through a symbolic link.
fn ceiling(request: &Request) -> Option<PathBuf> {
    user_home(request).map(|home| fs::canonicalize(&home).unwrap_or(home))
}

/// Walks up from the working directory to the root of the repository, the home directory or the root of all.
fn find_project(request: &Request, name: &str, warnings: &mut Vec<String>) -> Option<PathBuf> {
    let current_dir = &request.current_dir;
    let ceiling = ceiling(request);
    let (start, end) = match repository::containing(current_dir, ceiling.as_deref()) {
        Some(repository) => {
            let inside = current_dir.strip_prefix(&repository.root).unwrap_or(Path::new(""));
            (repository.main.join(inside), Some(repository.main))
        }
        None => (current_dir.clone(), ceiling),
    };
    for directory in start.ancestors() {
        let candidate = directory.join(name);
        match is_own_directory(&candidate) {
            Ok(true) => return Some(candidate),
            Ok(false) => {}
            Err(reason) => warnings.push(format!("skipped {}: {reason}", config::printable(&candidate))),
        }
        if Some(directory) == end.as_deref() {
            break;
        }
    }
    None
}

/// Whether it is a directory that this user owns; if it is something else, why it is not to be trusted.
pub(crate) fn is_own_directory(path: &Path) -> Result<bool, String> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(false);
        }
        Err(error) => return Err(error.to_string()),
    };
    if metadata.is_symlink() {
        Err("it is a symbolic link".to_owned())
    } else if !metadata.is_dir() {
        Err("it is not a directory".to_owned())
    } else if let Some(owner) = other_owner(&metadata) {
        Err(format!("it belongs to another user (uid {owner})"))
    } else {
        Ok(true)
    }
}

/// The user that it belongs to, if that is another one.
#[cfg(unix)]
pub(crate) fn other_owner(metadata: &fs::Metadata) -> Option<u32> {
    let owner = std::os::unix::fs::MetadataExt::uid(metadata);
    (owner != rustix::process::geteuid().as_raw()).then_some(owner)
}

/// Where files have access lists instead of one owner, the directory's own protection has to do.
#[cfg(not(unix))]
pub(crate) fn other_owner(_metadata: &fs::Metadata) -> Option<u32> {
    None
}

/// The configuration beside a board that lies in the directory of a project, however the board was named: all
/// agents on one board have to go by the same thresholds.
fn project_config(target: &Target, project_directory: &str) -> Option<PathBuf> {
    let Target::File(file) = target else { return None };
    let directory = file.parent()?;
    directory.ends_with(project_directory).then(|| directory.join(CONFIG_FILE))
}

/// What `--db` and its like mean: a URL of Redis, a directory with a board in it, or the file itself.
fn target(text: &OsStr, name: &str, base: &Path) -> Result<Target> {
    if text.is_empty() {
        return Err(Refusal::new(Code::InvalidValue, format!("{name} is empty"))
            .hint("name a file or a directory")
            .into());
    }
    // A URL may carry a password, so no message repeats more of it than its scheme.
    match text.to_str().and_then(|text| text.split_once("://")) {
        Some(("redis" | "rediss", _)) => return Ok(Target::Redis(text.to_string_lossy().into_owned())),
        Some((scheme, _)) if is_scheme(scheme) => {
            return Err(Refusal::new(
                Code::InvalidValue,
                format!("{name} is a {scheme}:// URL, which can't keep a board"),
            )
            .hint("name a file or a directory")
            .into());
        }
        _ => {}
    }
    let names_directory = text.as_encoded_bytes().ends_with(b"/");
    let path: PathBuf = base.join(text).components().collect();
    Ok(Target::File(if names_directory || path.is_dir() { path.join(DATABASE_FILE) } else { path }))
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
}

/// No shell expands the `~` of a path in a configuration file.
fn expand_tilde(path: &str, user_home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~/"), user_home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

pub(crate) fn no_home() -> Refusal {
    Refusal::new(Code::Usage, "there is no place for a board: neither HOME nor BLACKBOARD_HOME is set")
        .hint("set BLACKBOARD_HOME, or name the board with --db")
}

#[cfg(test)]
mod tests;
