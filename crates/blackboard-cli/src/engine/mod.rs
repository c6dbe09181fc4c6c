//! The engines of boards: which one a location has, how it is opened, and what programs keep beside it.

mod redis;
mod sqlite;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use blackboard::clock::Clock;
use blackboard::store::sqlite::Upgraded;
use blackboard::store::{LoadingBoard, Sidecars, Store};
use blackboard::{Error, Result};

use self::redis::RedisServer;
use self::sqlite::SqliteFile;
use crate::config::Database;
use crate::envelope::BoardState;
use crate::environment::Environment;
use crate::location::{Location, Source, Target, no_home};

/// The engine of one board, which may not exist.
pub trait Engine: Send + Sync {
    /// The location of the board, for human output.
    fn name(&self) -> String;

    /// Whether the board exists.
    fn exists(&self) -> bool;

    /// The identity that distinguishes this board from another one at the same location; `None` if it does not exist.
    fn identity(&self) -> Option<String>;

    /// The location of the board's sidecars.
    fn sidecars(&self) -> &dyn Sidecars;

    /// What a person should know about the files that the engine needs.
    fn warning(&self) -> Option<&str> {
        None
    }

    /// Creates the directory of the sidecars of an existing board, if it is missing. Boards in a file have it.
    fn create_sidecar_directory(&self) -> io::Result<()> {
        self.sidecars().create_directory()
    }

    /// The file of the board, if it is in one.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// Whether maintenance is due and takes too long for a process with a deadline.
    fn is_maintenance_overdue(&self) -> bool {
        false
    }

    /// Opens the store of the board. `None` if it does not exist and must not be created.
    fn open(&self, database: &Database, opening: Opening) -> Result<Option<OpenStore>>;

    /// Whether it is a board of ivy-blackboard.
    fn needs_upgrade(&self, _: &Database) -> bool {
        false
    }

    /// Upgrades a board of ivy-blackboard. `None` if it is a board of this program already.
    fn upgrade(&self, _: &Database) -> Result<Option<Upgraded>> {
        Ok(None)
    }

    /// Considers how a hook ended. Hooks leave a server alone for a while that does not answer.
    fn note_hook_end(&self, _: HookEnd<'_>) {}

    /// Creates the board to copy another one into. Refuses if it exists, unless it is an interrupted copy and is replaced.
    fn create_to_load(&self, _: &Database, _: Opening, _replaces: bool) -> Result<Box<dyn LoadingBoard>> {
        Err(Error::invalid(format!("no board can be copied to {}", self.name())))
    }
}

/// How the calls of a hook on its open board ended.
#[derive(Clone, Copy, Debug)]
pub enum HookEnd<'a> {
    /// All of them were answered.
    Answered,
    /// One of them failed, or was refused.
    Failed(&'a Error),
    /// The time limit of the hook passed before.
    OutOfTime,
}

/// How a board is opened, apart from its configuration.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Whether it is created, and whether it is written.
    pub mode: Mode,
    /// Whether the process keeps it open, while others may delete or replace it.
    pub stays_open: bool,
    /// How long all writes together may wait for other writers. A hook gives up a write rather than be late.
    pub write_limit: Option<Duration>,
    /// Whether any board at the location will do, also if this machine has used another one there, which was lost.
    pub accepts_any_board: bool,
    /// How long each call may wait for a server.
    pub patience: Patience,
    /// Whether a note says that a call waits for a server.
    pub notes_waiting: bool,
}

/// How long each call may wait for a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// As long as the engine finds useful.
    Usual,
    /// At most this long.
    AtMost(Duration),
    /// At most this long, and not at all if the server did not answer a moment ago: the call can do without it.
    Brief(Duration),
}

impl Patience {
    /// The limit that replaces that of the engine.
    pub const fn limit(self) -> Option<Duration> {
        match self {
            Patience::Usual => None,
            Patience::AtMost(limit) | Patience::Brief(limit) => Some(limit),
        }
    }
}

/// Whether a board is created, and whether it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is created if it does not exist.
    Create,
    /// It is not created.
    Existing,
    /// It is not created, and nothing is ever written to it.
    ReadOnly,
}

impl Opening {
    /// For a process that does one thing and exits.
    pub const fn new(mode: Mode) -> Opening {
        Opening {
            mode,
            stays_open: false,
            write_limit: None,
            accepts_any_board: false,
            patience: Patience::Usual,
            notes_waiting: false,
        }
    }

    /// The same with a note on stderr about a server that the process waits for.
    #[must_use]
    pub const fn noting_waits(self, notes_waiting: bool) -> Opening {
        Opening { notes_waiting, ..self }
    }

    /// For a process that keeps the board open.
    pub const fn staying(mode: Mode) -> Opening {
        Opening { stays_open: true, ..Opening::new(mode) }
    }

    /// For a hook, which gives up a write rather than be late. Only the start of a session creates a missing board, so
    /// that agents see each other without setup.
    pub const fn hook(starts_session: bool, write_limit: Duration) -> Opening {
        let mode = if starts_session { Mode::Create } else { Mode::Existing };
        Opening { write_limit: Some(write_limit), ..Opening::new(mode) }
    }

    /// Whether a server that did not answer a moment ago is left alone, and the call fails at once.
    pub const fn backs_off(&self) -> bool {
        self.write_limit.is_some() || matches!(self.patience, Patience::Brief(_))
    }
}

/// A store that was opened.
pub struct OpenStore {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The clock that it uses.
    pub clock: Arc<dyn Clock>,
    /// The special state of the board, apart from [`BoardState::Missing`].
    pub state: Option<BoardState>,
}

/// The engine of the board at this location, to find its sidecars.
pub fn engine_at(location: &Location) -> Result<Arc<dyn Engine>> {
    engine_for(location, &Environment::default())
}

/// The engine of the board at this location. Only this function distinguishes engines.
pub fn engine_for(location: &Location, environment: &Environment) -> Result<Arc<dyn Engine>> {
    match &location.target {
        Target::File(file) => {
            let owns_directory = location.project_config.is_some() || location.source == Source::Home;
            // A path on the command line may be mistyped. Every other location was configured once.
            let creates_directories = location.source != Source::Option;
            Ok(Arc::new(SqliteFile::new(file, owns_directory, creates_directories)))
        }
        Target::Redis(url) => {
            let home = location.home.as_deref().ok_or_else(no_home)?;
            of_server(url, home, environment)
        }
    }
}

/// The engine of the board at this URL of a server.
pub fn of_server(url: &str, home: &Path, environment: &Environment) -> Result<Arc<dyn Engine>> {
    Ok(Arc::new(RedisServer::new(url, home, environment)?))
}

/// The engine of a board in this file, which is no board of a project.
pub fn of_file(file: &Path) -> Arc<dyn Engine> {
    Arc::new(SqliteFile::new(file, false, true))
}
