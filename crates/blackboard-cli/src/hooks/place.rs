//! Which board a hook uses, and as whom it registers.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use blackboard::clock::{Clock, SystemClock};
use blackboard::store::sqlite::{Sqlite, SqliteOptions, Waiting};
use blackboard::{Board, Code, Refusal, Result};

use super::Platform;
use super::call::Call;
use crate::config::{self, Config};
use crate::context::{self, Context};
use crate::environment::Environment;
use crate::location::{self, Request, Target};

/// Git's configuration is short; anything longer is not read to its end.
const LONGEST_CONFIGURATION: u64 = 64 * 1024;

/// The board of a session, and what applies to it.
pub struct Place {
    pub board: Board,
    pub config: Config,
}

/// Where a call is made: where the session was started, if the platform says so, or where it is now. A session that
/// changes into another repository stays on its board.
pub fn directory(platform: &Platform, call: &Call, environment: &Environment) -> Option<PathBuf> {
    let started = environment.claude_project.as_ref().map(PathBuf::from);
    let started = started.filter(|path| platform.id == "claude" && path.is_absolute() && path.is_dir());
    // As a working directory would be spelled, which never goes through a link.
    started
        .or_else(|| call.directory.clone())
        .and_then(|path| path.canonicalize().ok())
        .filter(|path| path.is_dir())
}

/// What the search for the board goes by.
pub fn request(context: &Context, directory: Option<&Path>) -> Request {
    let mut request = context.request();
    if let Some(directory) = directory {
        directory.clone_into(&mut request.current_dir);
    }
    request
}

/// Where the log may lie: beside the board, or in the home of boards.
pub fn log_directories(context: &Context, directory: Option<&Path>) -> Vec<PathBuf> {
    let Ok(location) = location::find(&request(context, directory)) else { return Vec::new() };
    directories_of(&location)
}

fn directories_of(location: &location::Location) -> Vec<PathBuf> {
    let beside = match &location.target {
        Target::File(file) => file.parent().map(Path::to_owned),
        Target::Redis(_) => None,
    };
    beside.into_iter().chain(location.home.clone()).collect()
}

/// Opens the board. Only the start of a session creates one that does not exist, so that agents see each other without
/// anybody setting something up; whoever comes later has nothing to do there.
pub fn open(
    context: &Context,
    directory: Option<&Path>,
    create: bool,
    lock: Duration,
    log: &super::Log,
) -> Result<Place> {
    let location = location::find(&request(context, directory))?;
    log.locate(&directories_of(&location));
    // What is odd about a configuration is told to people, by the commands that they run.
    let (config, _) = config::load(
        location.home_config.as_deref(),
        location.project_config.as_deref(),
        context.environment(),
    );
    let Target::File(file) = &location.target else {
        return Err(Refusal::new(Code::InvalidValue, "hooks need a board in a file").into());
    };
    let options =
        SqliteOptions { busy_timeout: lock, waiting: Waiting::QueueNoLonger, ..context::options(&config) };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let store = if create {
        Some(Sqlite::open(file, clock.clone(), &options)?)
    } else {
        Sqlite::open_existing(file, clock.clone(), &options)?
    };
    let store = store.ok_or_else(|| Refusal::new(Code::AgentNotFound, "there is no board"))?;
    let board = Board::on(Arc::new(store), clock).with_settings(context.settings(&config));
    log.locate(&directories_of(&location));
    Ok(Place { board, config })
}

/// What a session calls itself.
pub fn name(platform: &Platform, config: &Config, environment: &Environment) -> String {
    let given = environment.agent_name.as_deref().and_then(OsStr::to_str).map(str::trim);
    let given = given.filter(|name| !name.is_empty()).map(str::to_owned);
    given.or_else(|| config.agent_name.clone()).unwrap_or_else(|| platform.name.to_owned())
}

/// Where a session works: the registered project whose path holds the directory, else the name of the git remote, else
/// that of the directory.
pub fn project(board: &Board, request: &Request) -> Result<Option<String>> {
    let here = &request.current_dir;
    let main = location::main_worktree(request);
    let holds = |path: &str| {
        let path = Path::new(path);
        here.starts_with(path) || main.as_ref().is_some_and(|(_, same)| same.starts_with(path))
    };
    let registered = board.projects().list()?.into_iter().map(|listed| listed.project);
    let nearest = registered
        .filter(|project| project.local_path.as_deref().is_some_and(holds))
        .max_by_key(|project| project.local_path.as_ref().map_or(0, String::len));
    if let Some(project) = nearest {
        return Ok(Some(project.project_id));
    }
    let root = main.map(|(root, _)| root);
    let remote = root.as_deref().and_then(remote_name);
    let directory = root.as_deref().unwrap_or(here);
    Ok(remote.or_else(|| directory.file_name().and_then(OsStr::to_str).map(str::to_owned)))
}

/// What the remote of a repository is called: `repo` for `git@host:owner/repo.git`.
fn remote_name(root: &Path) -> Option<String> {
    let ordinary = root.join(".git/config");
    let file = if ordinary.is_file() { ordinary } else { root.join("config") };
    if !fs::metadata(&file).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    fs::File::open(file).ok()?.take(LONGEST_CONFIGURATION).read_to_string(&mut text).ok()?;
    name_in_configuration(&text)
}

/// The name in the address of `origin`, or of the first remote if there is none.
fn name_in_configuration(text: &str) -> Option<String> {
    let mut section = "";
    let mut first = None;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if let Some(("url", address)) =
            line.split_once('=').map(|(key, value)| (key.trim(), value.trim()))
            && section.starts_with("[remote ")
        {
            let name = address.trim_end_matches('/').rsplit(['/', ':', '\\']).next().unwrap_or_default();
            let name = name.strip_suffix(".git").unwrap_or(name).trim_matches('"');
            if name.is_empty() {
                continue;
            }
            if section == "[remote \"origin\"]" {
                return Some(name.to_owned());
            }
            first.get_or_insert_with(|| name.to_owned());
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_called_as_its_origin_is() {
        for (address, expected) in [
            ("git@github.com:owner/repo.git", Some("repo")),
            ("https://github.com/owner/repo", Some("repo")),
            ("https://github.com/owner/repo.git/", Some("repo")),
            ("/srv/git/repo.git", Some("repo")),
            ("host:repo", Some("repo")),
            ("", None),
        ] {
            let text = format!("[core]\n\turl = no\n[remote \"origin\"]\n\turl = {address}\n\tfetch = x\n");
            assert_eq!(name_in_configuration(&text).as_deref(), expected, "{address}");
        }
        let two =
            "[remote \"up\"]\nurl=a/first\n[remote \"origin\"]\nurl = a/own.git\n[branch \"x\"]\nurl = no";
        assert_eq!(name_in_configuration(two).as_deref(), Some("own"));
        let other = "[remote \"up\"]\n  url = a/first\n";
        assert_eq!(name_in_configuration(other).as_deref(), Some("first"));
        assert_eq!(name_in_configuration("nonsense"), None);
    }
}
