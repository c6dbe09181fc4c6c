//! Which board a hook uses.

use std::path::{Path, PathBuf};
use std::time::Duration;

use blackboard::store::{Sidecar, SidecarDirectory, Sidecars};
use blackboard::{Board, Code, Refusal, Result};

use crate::config::Config;
use crate::context::Context;
use crate::location::{self, Location, Request};
use crate::open::{Mode, Opening, engine_at};

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

/// Where the hook log may be: with the sidecars of the board, or in the home of boards.
pub fn log_files(request: &Request) -> Vec<PathBuf> {
    match location::find(request) {
        Ok(location) => log_files_at(&location),
        Err(_) => location::home(request).iter().map(|home| log_file_in(home)).collect(),
    }
}

fn log_files_at(location: &Location) -> Vec<PathBuf> {
    let own = engine_at(location).ok().map(|engine| engine.sidecars().path(Sidecar::HookLog));
    own.into_iter().chain(location.home.as_deref().map(log_file_in)).collect()
}

fn log_file_in(home: &Path) -> PathBuf {
    SidecarDirectory::new(home).path(Sidecar::HookLog)
}

/// Opens the board. Only the start of a session creates one that does not exist, so that agents see each other without any
/// setup; a later call has nothing to do there.
pub fn open(
    context: &Context,
    directory: Option<&Path>,
    create: bool,
    write_limit: Duration,
    log: &super::LogFile,
) -> Result<Place> {
    let request = request(context, directory);
    let location = location::find(&request).inspect_err(|_| log.locate(&log_files(&request)))?;
    log.locate(&log_files_at(&location));
    // Commands that people run print what is odd about a configuration.
    let resolved = context.resolve_at(&location, |_| {})?;
    let mode = if create { Mode::Create } else { Mode::Existing };
    let opening = Opening { check_git: create, write_limit: Some(write_limit), ..Opening::new(mode) };
    let opened = resolved.open(opening)?;
    let board = opened.existing().ok_or_else(|| Refusal::new(Code::AgentNotFound, "there is no board"))?;
    if create {
        // Its directory may be new.
        log.locate(&log_files_at(&location));
    }
    Ok(Place { board, config: resolved.config })
}
