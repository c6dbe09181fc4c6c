//! Finds the location of the board.
//!
//! The first of these that is set or exists is used: `--db`, `$BLACKBOARD_DB`, a `.blackboard/` directory in the
//! working directory or a parent, the home configuration, `~/.pai/blackboard/local.db`. [`find`] creates nothing,
//! starts no other program and does not read the environment; it gets that as a value.
//!
//! In a worktree of a git repository, the search starts at the same path in the main worktree, so that all worktrees
//! share one board.

mod board_name;
mod repository;
mod tree;

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use blackboard::store::redis;
use blackboard::{Code, Refusal, Result};

pub use self::board_name::BoardName;
use self::repository::Repository;
pub(crate) use self::tree::{Tree, lexically};
use crate::config::{self, CONFIG_FILE, Database};
use crate::environment::Environment;

/// The name of the database in a board's directory.
pub(crate) const DATABASE_FILE: &str = "local.db";

/// The input of the search.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    /// `--db`.
    pub(crate) db: Option<BoardName>,
    /// The environment of the process.
    pub(crate) environment: Environment,
    /// The working directory, as an absolute path.
    pub(crate) current_dir: PathBuf,
}

/// The result of the search.
#[derive(Debug, PartialEq)]
pub(crate) struct Location {
    /// The board.
    pub(crate) target: Target,
    /// What determined the location.
    pub(crate) source: Source,
    /// The configuration for all boards, whether or not it exists; `None` without a home directory.
    pub(crate) home_config: Option<PathBuf>,
    /// The configuration of the board's project, whether or not it exists.
    pub(crate) project_config: Option<PathBuf>,
    /// `$BLACKBOARD_HOME` or `~/.pai/blackboard`; `None` without a home directory.
    pub(crate) home: Option<PathBuf>,
    /// Whether the working directory is in a repository that has no board.
    pub(crate) is_missing_in_repository: bool,
    /// Warnings about directories that were skipped.
    pub(crate) warnings: Vec<String>,
}

/// The storage of the board.
#[derive(Clone, PartialEq)]
pub(crate) enum Target {
    /// A database file, as an absolute path.
    File(PathBuf),
    /// The URL of a Redis server.
    Redis(String),
}

/// Without the password of a URL.
impl fmt::Debug for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::File(file) => formatter.debug_tuple("File").field(file).finish(),
            Target::Redis(url) => formatter.debug_tuple("Redis").field(&without_password(url)).finish(),
        }
    }
}

/// What determined the location of the board.
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
    /// The default: the board of this user.
    Home,
}

/// Finds the location of the board.
pub(crate) fn find(request: &Request) -> Result<Location> {
    find_named(request, "--db")
}

/// The same for a board that another argument than `--db` names. `argument` is its name.
pub(crate) fn find_named(request: &Request, argument: &str) -> Result<Location> {
    let Request { db, environment, current_dir } = request;
    let home = home(request);
    let home_config = home.as_ref().map(|home| home.join(CONFIG_FILE));
    let Database { operator_path, project_directory, .. } = config::database(home_config.as_deref())?;
    let (mut warnings, mut is_missing_in_repository) = (Vec::new(), false);

    let (target, source) = if let Some(db) = db {
        (target(db, argument, current_dir)?, Source::Option)
    } else if let Some(database) = &environment.database {
        (target(database, "BLACKBOARD_DB", current_dir)?, Source::Environment)
    } else {
        let ceiling = ceiling(request);
        let repository = repository::containing(current_dir, ceiling.as_deref());
        let is_in_repository = repository.is_some();
        if let Some(directory) =
            find_project(current_dir, repository, ceiling, &project_directory, &mut warnings)
        {
            (Target::File(directory.join(DATABASE_FILE)), Source::Project(directory))
        } else {
            is_missing_in_repository = is_in_repository;
            let Some(home) = &home else { return Err(no_home().into()) };
            match operator_path {
                Some(path) => {
                    let path = expand_tilde(&path.to_string_lossy(), user_home(request).as_deref());
                    (target(path.as_os_str(), "database.operatorPath", home)?, Source::HomeConfiguration)
                }
                None => (Target::File(home.join(DATABASE_FILE)), Source::Home),
            }
        }
    };
    // A home may itself be named `.blackboard`. Its configuration is read once, with all its permissions.
    let project_config =
        project_config(&target, &project_directory).filter(|file| Some(file) != home_config.as_ref());
    Ok(Location { target, source, home_config, project_config, home, is_missing_in_repository, warnings })
}

/// The location of a new board of this project: the root of the main worktree, or the working directory outside of a
/// repository.
pub(crate) fn new_project_directory(request: &Request) -> Result<PathBuf> {
    let name = config::database(home_config(request).as_deref())?.project_directory;
    Ok(match repository::containing(&request.current_dir, ceiling(request).as_deref()) {
        Some(repository) => repository.main.join(name),
        None => request.current_dir.join(name),
    })
}

/// The location of the board in this project directory, before it exists.
pub(crate) fn in_project(request: &Request, directory: &Path) -> Location {
    Location {
        target: Target::File(directory.join(DATABASE_FILE)),
        source: Source::Project(directory.to_owned()),
        home_config: home_config(request),
        project_config: Some(directory.join(CONFIG_FILE)),
        home: home(request),
        is_missing_in_repository: false,
        warnings: Vec::new(),
    }
}

/// The file tree of the working directory: its worktree, or outside of a repository the directory that has a board, or
/// the complete file system. The working directory is not enough: a file reserved from one directory has to be found
/// from every other.
pub(crate) fn tree(request: &Request) -> Result<Tree> {
    let (current_dir, ceiling) = (request.current_dir.clone(), ceiling(request));
    if let Some(repository) = repository::containing(&current_dir, ceiling.as_deref()) {
        return Tree::new(repository.root, &repository.main, current_dir);
    }
    let name = config::database(home_config(request).as_deref())?.project_directory;
    // Warnings about directories are printed by the search for the board.
    let project = find_project(&current_dir, None, ceiling, &name, &mut Vec::new());
    let root = project.and_then(|directory| directory.parent().map(Path::to_owned));
    let everything = || current_dir.ancestors().last().unwrap_or(&current_dir).to_owned();
    let root = root.unwrap_or_else(everything);
    Tree::new(root.clone(), &root, current_dir)
}

/// The repository of the working directory: the root of its main worktree, and the path of the working directory in it.
pub(crate) fn main_worktree(request: &Request) -> Option<(PathBuf, PathBuf)> {
    let repository = repository::containing(&request.current_dir, ceiling(request).as_deref())?;
    let inside = request.current_dir.strip_prefix(&repository.root).unwrap_or(Path::new(""));
    Some((repository.main.clone(), repository.main.join(inside)))
}

/// The repository of the working directory: the root of its worktree, and that of its main worktree.
pub(crate) fn worktree(request: &Request) -> Option<(PathBuf, PathBuf)> {
    let repository = repository::containing(&request.current_dir, ceiling(request).as_deref())?;
    Some((repository.root, repository.main))
}

/// The nearest directory, from the working directory up to the home directory, that has a directory of this user with this
/// name.
pub(crate) fn nearest_with(request: &Request, name: &str) -> Option<PathBuf> {
    let ceiling = ceiling(request);
    for directory in request.current_dir.ancestors() {
        if is_own_directory(&directory.join(name)) == Ok(true) {
            return Some(directory.to_owned());
        }
        if Some(directory) == ceiling.as_deref() {
            break;
        }
    }
    None
}

fn user_home(request: &Request) -> Option<PathBuf> {
    request.environment.user_home.as_ref().map(|home| request.current_dir.join(home))
}

/// The configuration for all boards, whether or not it exists; `None` without a home directory.
pub(crate) fn home_config(request: &Request) -> Option<PathBuf> {
    home(request).map(|home| home.join(CONFIG_FILE))
}

/// `$BLACKBOARD_HOME` or `~/.pai/blackboard`; `None` without a home directory.
pub(crate) fn home(request: &Request) -> Option<PathBuf> {
    match &request.environment.home {
        Some(home) => Some(request.current_dir.join(home)),
        None => user_home(request).map(|home| home.join(".pai/blackboard")),
    }
}

/// The home directory without symbolic links, as in the working directory.
fn ceiling(request: &Request) -> Option<PathBuf> {
    user_home(request).map(|home| fs::canonicalize(&home).unwrap_or(home))
}

/// Searches upward from the working directory to the root of the repository, the home directory or the root of the file
/// system.
fn find_project(
    current_dir: &Path,
    repository: Option<Repository>,
    ceiling: Option<PathBuf>,
    name: &str,
    warnings: &mut Vec<String>,
) -> Option<PathBuf> {
    let (start, end) = match repository {
        Some(repository) => {
            let inside = current_dir.strip_prefix(&repository.root).unwrap_or(Path::new(""));
            (repository.main.join(inside), Some(repository.main))
        }
        None => (current_dir.to_owned(), ceiling),
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

/// Whether it is a directory of this user; an error says why it cannot be trusted.
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

/// The owner, if it is another user.
#[cfg(unix)]
pub(crate) fn other_owner(metadata: &fs::Metadata) -> Option<u32> {
    let owner = std::os::unix::fs::MetadataExt::uid(metadata);
    (owner != rustix::process::geteuid().as_raw()).then_some(owner)
}

/// On systems with access lists instead of one owner, the directory's own protection has to suffice.
#[cfg(not(unix))]
pub(crate) fn other_owner(_metadata: &fs::Metadata) -> Option<u32> {
    None
}

/// The configuration beside a board in a project directory, however the board was named: all agents on one board must
/// use the same thresholds.
fn project_config(target: &Target, project_directory: &str) -> Option<PathBuf> {
    let directory = match target {
        Target::File(file) => file.parent()?,
        Target::Redis(_) => return None,
    };
    directory.ends_with(project_directory).then(|| directory.join(CONFIG_FILE))
}

/// Parses `--db` and similar values: a Redis URL, a directory with a board, or the file itself.
fn target(text: &OsStr, name: &str, base: &Path) -> Result<Target> {
    if text.is_empty() {
        return Err(Refusal::new(Code::InvalidValue, format!("{name} is empty")).hint(FORMS).into());
    }
    match text.to_str() {
        Some(url) if is_server(url) => return Ok(Target::Redis(url.to_owned())),
        Some(text) => refuse_mistyped_url(text, name)?,
        None => {}
    }
    let names_directory = text.as_encoded_bytes().ends_with(b"/");
    let path: PathBuf = base.join(text).components().collect();
    Ok(Target::File(if names_directory || path.is_dir() { path.join(DATABASE_FILE) } else { path }))
}

/// What names a board.
const FORMS: &str = "name a file, a directory or a server: redis://host:port?board=NAME";

/// Refuses a text that was meant as a URL. It may contain a password, so messages repeat no part of it but its scheme. A
/// file with such a name has a path: `./redis:notes.db`.
fn refuse_mistyped_url(text: &str, name: &str) -> Result<()> {
    let is_around = |letter: char| letter.is_whitespace() || "\"'`‘’“”«»<".contains(letter);
    let start = text.trim_start_matches(is_around);
    if has_scheme_without_colon(start) {
        let mistake = format!("{name} looks like a URL without :// after its scheme");
        return Err(Refusal::new(Code::InvalidValue, mistake).hint(FORMS).into());
    }
    let Some((scheme, rest)) = start.split_once(':').filter(|(scheme, _)| !scheme.contains(['/', '\\']))
    else {
        return Ok(());
    };
    let lower = scheme.to_ascii_lowercase();
    let family = lower.split('+').next().unwrap_or_default();
    let is_redis = ["redis", "rediss"].contains(&family);
    let is_valkey = ["valkey", "valkeys"].contains(&family);
    let has_slashes = rest.starts_with("//");
    if !is_redis && !is_valkey && !has_slashes {
        return Ok(());
    }
    let (mistake, hint) = if start.len() < text.len() {
        let mistake = format!("{name} is a URL after a space or a quotation mark");
        (mistake, "leave out the space and the quotation mark; a shell removes only its own quotation marks")
    } else if is_valkey {
        (
            format!("{name} has the scheme {lower}"),
            "a Valkey server has the scheme redis: redis://host:port?board=NAME",
        )
    } else if is_redis {
        let mistake = match redis::SCHEMES.contains(&lower.as_str()) {
            true if has_slashes => format!("{name} has its scheme in capital letters"),
            true => format!("{name} has no // after {scheme}:"),
            false => format!("{name} has an unknown scheme"),
        };
        let form = match lower.split_once('+').map(|(_, kind)| kind) {
            Some("unix") => "the form is redis+unix:///path/of/socket?board=NAME",
            Some("sentinel") => "the form is redis+sentinel://host1,host2/service?board=NAME",
            _ if family == "rediss" => {
                "the form is rediss://host:port?board=NAME; for a file, write ./ before it"
            }
            _ => "the form is redis://host:port?board=NAME; for a file, write ./ before it",
        };
        (mistake, form)
    } else if is_scheme(scheme) {
        (format!("{name} is a {scheme}:// URL, which cannot hold a board"), FORMS)
    } else {
        (format!("{name} looks like a URL, and has no scheme of a server"), FORMS)
    };
    Err(Refusal::new(Code::InvalidValue, mistake).hint(hint).into())
}

/// Whether a text begins like `redis//` or `redis;//`. Its password must not be printed as a part of a path.
fn has_scheme_without_colon(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let is_of_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '+';
    let (word, rest) = lower.split_at(lower.find(|letter| !is_of_word(letter)).unwrap_or(lower.len()));
    let family = word.split('+').next().unwrap_or_default();
    let is_scheme = ["redis", "rediss", "valkey", "valkeys"].contains(&family);
    // One character in place of the colon, or none.
    let mut after = rest.chars();
    let is_near = rest.starts_with("//") || (after.next() != Some(':') && after.as_str().starts_with("//"));
    is_scheme && is_near
}

/// The URL of a board without its password. The user stays. Of a URL that cannot be read, nothing before the last `@`
/// stays but the user.
pub(crate) fn without_password(url: &str) -> Cow<'_, str> {
    if let Ok(address) = url.parse::<redis::Address>() {
        return address.without_password().to_owned().into();
    }
    let parts = url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?)));
    match parts {
        Some((scheme, (login, address))) if redis::SCHEMES.contains(&scheme) => {
            match login.split_once(':').map_or(login, |(user, _)| user) {
                "" => format!("{scheme}://{address}").into(),
                user => format!("{scheme}://{user}@{address}").into(),
            }
        }
        _ => url.into(),
    }
}

/// Whether a text is the URL of a board on a server.
pub(crate) fn is_server(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| redis::SCHEMES.contains(&scheme))
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
}

/// No shell expands `~` in a configuration file.
fn expand_tilde(path: &str, user_home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~/"), user_home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

pub(crate) fn no_home() -> Refusal {
    Refusal::new(Code::Usage, "no location for a board: neither HOME nor BLACKBOARD_HOME is set")
        .hint("set BLACKBOARD_HOME, or name the board with --db")
}

#[cfg(test)]
mod tests;
