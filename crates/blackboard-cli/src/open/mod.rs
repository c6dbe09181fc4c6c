//! Opens boards, for commands, hooks, the MCP server, the dashboard and the demo. No other module does that.
//!
//! A [`ResolvedBoard`] is a located board: its engine (`engine/`) and its configuration. [`ResolvedBoard::open`] opens it.
//! A command declares what it needs with an [`Access`], and [`Context::open`] does the rest: it locates the board
//! (`location/`, `config/`), opens it, finds the session (`session.rs`), and sweeps without waiting for a lock. A
//! server that outlives boards has a [`KeptBoard`].
//!
//! | Edge | Opens | Session | Sweeps |
//! |---|---|---|---|
//! | command | [`Context::open`] with an [`Access`] | `session::Search` | with its first read or commit |
//! | hook (`hooks/handle.rs`) | [`Opening::hook`] | the id that its platform names | after its answer, if it wrote |
//! | MCP call (`mcp/state.rs`) | [`KeptBoard`] | `session::Client` | as a command |
//! | dashboard (`web/feed.rs`) | [`Mode::ReadOnly`](crate::engine::Mode) | none | never |

mod access;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use blackboard::clock::{Clock, SystemClock};
use blackboard::search::{CatchUp, IndexLocation};
use blackboard::store::sqlite::Upgraded;
use blackboard::store::{Memory, Sidecar, Store};
use blackboard::{Board, Code, Error, Result, Settings};

pub use self::access::Access;
use crate::config::{self, Config};
use crate::context::{Context, warn};
use crate::engine::{self, Engine, Mode, OpenStore, Opening};
use crate::envelope::BoardState;
use crate::environment::Environment;
use crate::location::{self, Location, Source};
use crate::notify::Notifier;

/// A located board, which may not exist. It can be sent to another thread and opened there.
#[derive(Clone)]
pub struct ResolvedBoard {
    /// Its engine.
    pub engine: Arc<dyn Engine>,
    /// Its configuration.
    pub config: Config,
    /// The settings of its rules, from that configuration.
    pub settings: Settings,
    /// What starts commands after events, if any are configured.
    pub notifier: Option<Arc<Notifier>>,
    /// Whether it is the default board of this user, because the repository of the working directory has none.
    pub replaces_repository_board: bool,
    /// Whether a board of ivy-blackboard is upgraded when it is opened: `BLACKBOARD_UPGRADE=1`.
    pub upgrades: bool,
}

/// An opened board.
pub struct OpenBoard {
    /// The board; an empty one if it does not exist and must not be created.
    pub board: Board,
    /// Its special state.
    pub state: Option<BoardState>,
    /// The upgrade, if this call has upgraded it.
    pub upgraded: Option<Box<Upgraded>>,
}

impl OpenBoard {
    /// The board, if it exists.
    pub fn existing(self) -> Option<Board> {
        (self.state != Some(BoardState::Missing)).then_some(self.board)
    }
}

impl ResolvedBoard {
    /// Where its search index is. A board that does not exist has none.
    pub fn search_index(&self) -> IndexLocation {
        let path = self.engine.sidecars().path(Sidecar::SearchIndex);
        let is_missing = match self.engine.file() {
            Some(file) => !file.exists(),
            None => path.parent().is_some_and(|directory| !directory.exists()),
        };
        if is_missing { IndexLocation::Memory } else { IndexLocation::File(path) }
    }

    /// The board at a location. `warn` gets warnings about the location and the configuration.
    pub fn at(
        location: &Location,
        environment: &Environment,
        allow_secret_looking: bool,
        mut warn: impl FnMut(&str),
    ) -> Result<ResolvedBoard> {
        let (config, warnings) =
            config::load(location.home_config.as_deref(), location.project_config.as_deref(), environment)?;
        location.warnings.iter().chain(&warnings).map(String::as_str).for_each(&mut warn);
        let (engine, settings) =
            (engine::engine_for(location, environment)?, config.settings(allow_secret_looking));
        engine.warning().into_iter().for_each(warn);
        let notifier = Notifier::new(&config, location, environment, &engine);
        let replaces_repository_board = location.source == Source::Home && location.is_missing_in_repository;
        let upgrades = environment.upgrade.as_deref().is_some_and(|value| value == "1");
        Ok(ResolvedBoard { engine, config, settings, notifier, replaces_repository_board, upgrades })
    }

    /// A board in this file, without any configuration of the user.
    pub fn unconfigured(file: &Path) -> ResolvedBoard {
        ResolvedBoard::with_defaults(engine::of_file(file), false)
    }

    /// The board at this URL of a server, without any configuration of the user. Programs write it, and their values are
    /// not checked for credentials.
    pub fn unconfigured_on(url: &str, home: &Path, environment: &Environment) -> Result<ResolvedBoard> {
        Ok(ResolvedBoard::with_defaults(engine::of_server(url, home, environment)?, true))
    }

    fn with_defaults(engine: Arc<dyn Engine>, allow_secret_looking: bool) -> ResolvedBoard {
        let config = Config::default();
        let settings = config.settings(allow_secret_looking);
        ResolvedBoard {
            engine,
            config,
            settings,
            notifier: None,
            replaces_repository_board: false,
            upgrades: false,
        }
    }

    /// Opens the board.
    pub fn open(&self, opening: Opening) -> Result<OpenBoard> {
        let (opened, upgraded) = match self.engine.open(&self.config.database, opening) {
            // A hook has no time for it.
            Err(error)
                if error.code() == Code::UpgradeNeeded && self.upgrades && opening.write_limit.is_none() =>
            {
                let upgraded = self.upgrade()?;
                (self.engine.open(&self.config.database, opening)?, upgraded)
            }
            opened => (opened?, None),
        };
        Ok(match opened {
            Some(OpenStore { store, clock, state }) => {
                // A board works without sidecars. A program that needs one reports that it cannot be created.
                let _ = self.engine.create_sidecar_directory();
                let board = self.board(store, clock);
                let board = match &self.notifier {
                    Some(notifier) => notifier.observe(board),
                    None => board,
                };
                OpenBoard { board, state, upgraded: upgraded.map(Box::new) }
            }
            None => OpenBoard { board: self.empty(), state: Some(BoardState::Missing), upgraded: None },
        })
    }

    /// Upgrades a board of ivy-blackboard. `None` if it is a board of this program already. Its sessions that have not been
    /// seen for long are marked stale at once, so that the first list is right.
    pub fn upgrade(&self) -> Result<Option<Upgraded>> {
        let upgraded = self.engine.upgrade(&self.config.database)?;
        if upgraded.is_some()
            && let Ok(Some(opened)) = self.engine.open(&self.config.database, Opening::new(Mode::Existing))
        {
            // What fails here is left to the next sweep.
            let _ = self.board(opened.store, opened.clock).sweep_upgraded();
        }
        Ok(upgraded)
    }

    /// The empty board that represents a missing one.
    pub fn empty(&self) -> Board {
        let clock = Arc::new(SystemClock);
        self.board(Arc::new(Memory::new(clock.clone())), clock)
    }

    fn board(&self, store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Board {
        Board::on(store, clock).with_settings(self.settings.clone())
    }
}

/// A board that a server keeps open, while other processes may create, delete or replace it.
pub struct KeptBoard {
    resolved: ResolvedBoard,
    current: Mutex<CurrentBoard>,
}

/// The board that is open.
#[derive(Default)]
struct CurrentBoard {
    board: Option<Board>,
    /// How often it was replaced.
    generation: u64,
}

impl KeptBoard {
    /// The board, not open yet.
    pub fn new(resolved: ResolvedBoard) -> KeptBoard {
        KeptBoard { resolved, current: Mutex::default() }
    }

    fn current(&self) -> MutexGuard<'_, CurrentBoard> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the current board. If the one that was open is gone, `on_gone` is called with the reason before any caller
    /// gets another one.
    ///
    /// A server may take long to answer, so nothing is asked of it under the lock: every call has its own limit.
    pub fn open(&self, mode: Mode, on_gone: impl FnOnce(&Error)) -> Result<OpenBoard> {
        self.close_if_gone(on_gone)?;
        self.open_as_it_is(mode)
    }

    /// The same for one call. It saves the check if the call makes it: see [`KeptBoard::close_after`].
    pub fn open_for_call(&self, mode: Mode, on_gone: impl FnOnce(&Error)) -> Result<OpenBoard> {
        let makes_check = self.current().board.as_ref().is_some_and(Board::always_checks_still_there);
        if !makes_check {
            self.close_if_gone(on_gone)?;
        }
        self.open_as_it_is(mode)
    }

    /// Considers the error of a call: whether its board is gone, so that the call runs again on the current one.
    pub fn close_after(&self, error: &Error, on_gone: impl FnOnce(&Error)) -> bool {
        let may_be_gone = matches!(
            error.code(),
            Code::BoardNotFound | Code::BeingCopied | Code::ForeignDatabase | Code::NewerSchema
        );
        may_be_gone && self.close_if_gone(on_gone).unwrap_or(false)
    }

    /// Closes the board if it is gone. Returns whether it was.
    fn close_if_gone(&self, on_gone: impl FnOnce(&Error)) -> Result<bool> {
        let (board, generation) = {
            let current = self.current();
            (current.board.clone(), current.generation)
        };
        match board.map_or(Ok(()), |board| board.check_still_there()) {
            Ok(()) => Ok(false),
            // A server that cannot be used now has not lost the board.
            Err(error) if matches!(error.code(), Code::ServerUnavailable | Code::AccessDenied) => Err(error),
            Err(gone) => {
                self.close(generation, &gone, on_gone);
                Ok(true)
            }
        }
    }

    fn open_as_it_is(&self, mode: Mode) -> Result<OpenBoard> {
        if let Some(board) = self.current().board.clone() {
            return Ok(OpenBoard { board, state: None, upgraded: None });
        }
        let opened = self.resolved.open(Opening::staying(mode))?;
        let mut current = self.current();
        if let Some(board) = &current.board {
            // Another call was faster.
            return Ok(OpenBoard { board: board.clone(), state: None, upgraded: None });
        }
        if opened.state != Some(BoardState::Missing) {
            current.board = Some(opened.board.clone());
        }
        Ok(opened)
    }

    /// Closes a board that is gone, unless another call has done that.
    fn close(&self, generation: u64, gone: &Error, on_gone: impl FnOnce(&Error)) {
        let mut current = self.current();
        if current.generation == generation {
            (current.board, current.generation) = (None, generation + 1);
            on_gone(gone);
        }
    }

    /// Its location and configuration.
    pub fn resolved(&self) -> &ResolvedBoard {
        &self.resolved
    }

    /// The settings of its rules.
    pub fn settings(&self) -> &Settings {
        &self.resolved.settings
    }
}

impl Context {
    /// Locates the board of this call. The first time, prints warnings about it.
    pub fn resolve(&self) -> Result<&ResolvedBoard> {
        if let Some(resolved) = self.resolved.get() {
            return Ok(resolved);
        }
        let location = location::find(&self.request())?;
        self.note_password_in_arguments(&location);
        let resolved = self.resolve_at(&location, warn)?;
        Ok(self.resolved.get_or_init(|| resolved))
    }

    /// Where the search index of the board of this call is. A board that does not exist has none.
    pub fn search_index(&self) -> Result<IndexLocation> {
        Ok(self.resolve()?.search_index())
    }

    /// Removes from the search index what was purged, if there is an index. Returns whether nothing of it is left there.
    pub fn update_search_index(&self, board: &Board) -> Result<bool> {
        match self.search_index()? {
            IndexLocation::File(path) if path.exists() => {
                let updated = board.update_index(&IndexLocation::File(path), CatchUp::default());
                Ok(updated.is_ok_and(|indexed| indexed.behind.is_none()))
            }
            IndexLocation::File(_) | IndexLocation::Memory => Ok(true),
        }
    }

    /// The board at another location, as this call would use it.
    pub fn resolve_at(&self, location: &Location, warn: impl FnMut(&str)) -> Result<ResolvedBoard> {
        ResolvedBoard::at(location, self.environment(), self.globals.allow_secret_looking, warn)
    }
}

#[cfg(test)]
mod tests {
    use blackboard::Revision;
    use blackboard::entry::{Value, Write};
    use blackboard::store::{SidecarDirectory, Sidecars};

    use super::*;
    use crate::config::Database;
    use crate::web::ServerRegistration;

    #[test]
    fn the_default_configuration_has_the_default_settings() {
        let (configured, default) = (Config::default().settings(false), Settings::default());
        assert_eq!(format!("{configured:?}"), format!("{default:?}"));
    }

    #[test]
    fn a_missing_board_is_empty_until_it_is_created() {
        let scratch = testkit::tempdir().unwrap();
        let resolved = ResolvedBoard::unconfigured(&scratch.path().join("local.db"));
        for mode in [Mode::Existing, Mode::ReadOnly] {
            let missing = resolved.open(Opening::new(mode)).unwrap();
            assert_eq!(missing.state, Some(BoardState::Missing));
            assert!(missing.existing().is_none());
        }
        assert!(!resolved.engine.exists());
        assert_eq!(resolved.engine.identity(), None);
        assert!(resolved.open(Opening::new(Mode::Create)).unwrap().existing().is_some());
        assert!(resolved.engine.exists());
        for mode in [Mode::Create, Mode::Existing, Mode::ReadOnly] {
            assert_eq!(resolved.open(Opening::new(mode)).unwrap().state, None);
        }
    }

    /// A board without a file, which may exist or not.
    struct Remote {
        sidecars: SidecarDirectory,
        exists: bool,
    }

    impl Engine for Remote {
        fn name(&self) -> String {
            "remote".to_owned()
        }

        fn exists(&self) -> bool {
            self.exists
        }

        fn identity(&self) -> Option<String> {
            None
        }

        fn sidecars(&self) -> &dyn Sidecars {
            &self.sidecars
        }

        fn open(&self, _: &Database, _: Opening) -> Result<Option<OpenStore>> {
            let clock = Arc::new(SystemClock);
            let store = || OpenStore {
                store: Arc::new(Memory::new(clock.clone())),
                clock: clock.clone(),
                state: None,
            };
            Ok(self.exists.then(store))
        }
    }

    #[test]
    fn an_open_board_without_a_file_has_a_place_for_its_server() {
        let scratch = testkit::tempdir().unwrap();
        let directory = scratch.path().join("remote").join("board");
        for exists in [false, true] {
            let sidecars = SidecarDirectory::new(&directory);
            let engine = Arc::new(Remote { sidecars, exists });
            let resolved = ResolvedBoard { engine, ..ResolvedBoard::unconfigured(Path::new("unused")) };
            resolved.open(Opening::new(Mode::ReadOnly)).unwrap();
            assert_eq!(directory.exists(), exists, "nothing is created for a board that does not exist");
            let registered = ServerRegistration::take(resolved.engine.sidecars()).unwrap();
            assert_eq!(registered.is_found(), exists);
        }
    }

    #[test]
    fn a_kept_board_is_opened_again_when_it_is_replaced() {
        let scratch = testkit::tempdir().unwrap();
        let (file, aside) = (scratch.path().join("local.db"), scratch.path().join("aside.db"));
        let kept = KeptBoard::new(ResolvedBoard::unconfigured(&file));
        let mut lost = 0;
        let mut open = |mode| {
            let opened = kept.open(mode, |_| lost += 1).unwrap();
            (opened.existing(), lost)
        };
        assert!(matches!(open(Mode::Existing), (None, 0)), "it is not created, and not kept as an empty one");
        let (Some(first), 0) = open(Mode::Create) else { panic!("it was not created") };
        first.scope("default").write(&Write::new("a", Value::of(&1).unwrap())).unwrap();
        let (Some(same), 0) = open(Mode::Existing) else { panic!("it is not kept") };
        assert_eq!(same.revision().unwrap(), first.revision().unwrap());
        std::fs::rename(&file, &aside).unwrap();
        assert!(matches!(open(Mode::Existing), (None, 1)), "it is gone, which is reported once");
        let (Some(other), 1) = open(Mode::Create) else { panic!("it was not created again") };
        assert_eq!(other.revision().unwrap(), Revision::ZERO);
    }
}
