//! Which board a hook uses.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use blackboard::clock::{Clock, SystemClock};
use blackboard::store::sqlite::{Sqlite, SqliteOptions, Waiting};
use blackboard::{Board, Code, Refusal, Result};

use crate::config::{self, Config};
use crate::context::{self, Context};
use crate::location::{self, Request, Target};

/// The board of a session, and what applies to it.
pub struct Place {
    pub board: Board,
    pub config: Config,
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
pub fn log_directories(request: &Request) -> Vec<PathBuf> {
    match location::find(request) {
        Ok(location) => directories_of(&location),
        Err(_) => location::home(request).into_iter().collect(),
    }
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
    log: &super::LogFile,
) -> Result<Place> {
    let request = request(context, directory);
    let location = location::find(&request).inspect_err(|_| log.locate(&log_directories(&request)))?;
    log.locate(&directories_of(&location));
    // What is odd about a configuration is told to people, by the commands that they run.
    let (config, _) = config::load(
        location.home_config.as_deref(),
        location.project_config.as_deref(),
        context.environment(),
    )?;
    let Target::File(file) = &location.target else {
        return Err(Refusal::new(Code::InvalidValue, "hooks need a board in a file").into());
    };
    let options = SqliteOptions {
        busy_timeout: lock,
        waiting: Waiting::QueueNoLonger,
        check_git: create,
        ..context::options(&config, location.project_config.is_some())
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let store = if create {
        Some(Sqlite::open(file, clock.clone(), &options)?)
    } else {
        Sqlite::open_existing(file, clock.clone(), &options)?
    };
    let store = store.ok_or_else(|| Refusal::new(Code::AgentNotFound, "there is no board"))?;
    let board = Board::on(Arc::new(store), clock).with_settings(context.settings(&config));
    if create {
        log.locate(&directories_of(&location));
    }
    Ok(Place { board, config })
}
