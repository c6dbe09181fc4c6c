//! Opens boards, for commands, hooks, the MCP server, the dashboard and the demo. No other module does that.
//!
//! A [`ResolvedBoard`] is a located board: its [`Engine`] and its configuration. [`ResolvedBoard::open`] opens it. A
//! command declares what it needs with an [`Access`], and [`Context::open`] does the rest: it locates the board
//! (`location/`, `config/`), opens it, finds the session (`session.rs`), and sweeps without waiting for a lock. A
//! server that outlives boards has a [`KeptBoard`].
//!
//! | Edge | Opens | Session | Sweeps |
//! |---|---|---|---|
//! | command | [`Context::open`] with an [`Access`] | `session::Search` | with its first read or commit |
//! | hook (`hooks/handle.rs`) | [`Opening::hook`] | the id that its platform names | after its answer, if it wrote |
//! | MCP call (`mcp/state.rs`) | [`KeptBoard`] | `session::Client` | as a command |
//! | dashboard (`web/feed.rs`) | [`Mode::ReadOnly`] | none | never |

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use blackboard::clock::{Clock, SystemClock};
use blackboard::store::sqlite::{self, Sqlite, SqliteOptions, SqliteSidecars, Waiting};
use blackboard::store::{Memory, Sidecars, Store};
use blackboard::{Board, Code, Error, Refusal, Result, Settings};

use crate::config::{self, Config, Database, Durability};
use crate::context::{Context, warn};
use crate::envelope::BoardState;
use crate::environment::Environment;
use crate::hints;
use crate::location::{self, Location, Source, Target, no_home};
use crate::redis::RedisServer;
use crate::session::{Ended, SESSION_UNUSABLE, Search, Unusable, no_session};

/// A located board, which may not exist. It can be sent to another thread and opened there.
#[derive(Clone)]
pub struct ResolvedBoard {
    /// Its engine.
    pub engine: Arc<dyn Engine>,
    /// Its configuration.
    pub config: Config,
    /// The settings of its rules, from that configuration.
    pub settings: Settings,
    /// Whether it is the default board of this user, because no other was found.
    pub is_home: bool,
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
        Opening { mode, stays_open: false, write_limit: None }
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
}

/// An opened board.
pub struct OpenBoard {
    /// The board; an empty one if it does not exist and must not be created.
    pub board: Board,
    /// Its special state.
    pub state: Option<BoardState>,
}

impl OpenBoard {
    /// The board, if it exists.
    pub fn existing(self) -> Option<Board> {
        (self.state != Some(BoardState::Missing)).then_some(self.board)
    }
}

impl ResolvedBoard {
    /// The board at a location. `warn` gets warnings about the location and the configuration.
    pub fn at(
        location: &Location,
        environment: &Environment,
        allow_secret_looking: bool,
        warn: impl FnMut(&str),
    ) -> Result<ResolvedBoard> {
        let (config, warnings) =
            config::load(location.home_config.as_deref(), location.project_config.as_deref(), environment)?;
        location.warnings.iter().chain(&warnings).map(String::as_str).for_each(warn);
        let (engine, settings) = (engine_for(location, environment)?, config.settings(allow_secret_looking));
        let is_home = location.source == Source::Home;
        Ok(ResolvedBoard { engine, config, settings, is_home })
    }

    /// A board in this file, without any configuration of the user.
    pub fn unconfigured(file: &Path) -> ResolvedBoard {
        let config = Config::default();
        let settings = config.settings(false);
        let sidecars = SqliteSidecars::new(file);
        let engine = Arc::new(SqliteFile { sidecars, owns_directory: false, create_directories: true });
        ResolvedBoard { engine, config, settings, is_home: false }
    }

    /// Opens the board.
    pub fn open(&self, opening: Opening) -> Result<OpenBoard> {
        Ok(match self.engine.open(&self.config.database, opening)? {
            Some(OpenStore { store, clock, state }) => {
                // A board works without sidecars. A program that needs one reports that it cannot be created.
                let _ = self.engine.create_sidecar_directory();
                OpenBoard { board: self.board(store, clock), state }
            }
            None => OpenBoard { board: self.empty(), state: Some(BoardState::Missing) },
        })
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
    board: Mutex<Option<Board>>,
}

impl KeptBoard {
    /// The board, not open yet.
    pub fn new(resolved: ResolvedBoard) -> KeptBoard {
        KeptBoard { resolved, board: Mutex::default() }
    }

    /// Opens the current board. If the one that was open is gone, `on_gone` is called with the reason before any caller
    /// gets another one.
    pub fn open(&self, mode: Mode, on_gone: impl FnOnce(&Error)) -> Result<OpenBoard> {
        let mut kept = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gone) = kept.as_ref().and_then(|board| board.check_still_there().err()) {
            *kept = None;
            on_gone(&gone);
        }
        if let Some(board) = &*kept {
            return Ok(OpenBoard { board: board.clone(), state: None });
        }
        let opened = self.resolved.open(Opening::staying(mode))?;
        if opened.state != Some(BoardState::Missing) {
            *kept = Some(opened.board.clone());
        }
        Ok(opened)
    }

    /// The settings of its rules.
    pub fn settings(&self) -> &Settings {
        &self.resolved.settings
    }
}

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

    /// Creates the directory of the sidecars of an existing board, if it is missing. Boards in a file have it.
    fn create_sidecar_directory(&self) -> io::Result<()> {
        self.sidecars().create_directory()
    }

    /// The database file, if its maintenance is due and takes too long for a process with a deadline.
    fn database_to_maintain(&self) -> Option<&Path> {
        None
    }

    /// Opens the store of the board. `None` if it does not exist and must not be created.
    fn open(&self, database: &Database, opening: Opening) -> Result<Option<OpenStore>>;
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
fn engine_for(location: &Location, environment: &Environment) -> Result<Arc<dyn Engine>> {
    match &location.target {
        Target::File(file) => Ok(Arc::new(SqliteFile {
            sidecars: SqliteSidecars::new(file),
            owns_directory: location.project_config.is_some() || location.source == Source::Home,
            // A path on the command line may be mistyped. Every other location was configured once.
            create_directories: location.source != Source::Option,
        })),
        Target::Redis(url) => {
            let home = location.home.as_deref().ok_or_else(no_home)?;
            Ok(Arc::new(RedisServer::new(url, home, environment)?))
        }
    }
}

struct SqliteFile {
    /// The sidecars also know the file.
    sidecars: SqliteSidecars,
    /// Whether its directory is that of a project's board, or of the home board.
    owns_directory: bool,
    create_directories: bool,
}

impl SqliteFile {
    fn file(&self) -> &Path {
        self.sidecars.database()
    }

    fn options(&self, database: &Database, opening: Opening) -> SqliteOptions {
        let defaults = SqliteOptions::default();
        SqliteOptions {
            durability: match database.durability {
                Durability::Normal => sqlite::Durability::Normal,
                Durability::Full => sqlite::Durability::Full,
            },
            busy_timeout: opening.write_limit.unwrap_or(defaults.busy_timeout),
            waiting: opening.write_limit.map_or(defaults.waiting, |_| Waiting::QueueWithDeadline),
            stays_open: opening.stays_open,
            create_directories: self.create_directories,
            owns_directory: self.owns_directory,
            allow_network_filesystem: database.allow_network_filesystem,
        }
    }
}

impl Engine for SqliteFile {
    fn name(&self) -> String {
        self.file().display().to_string()
    }

    fn exists(&self) -> bool {
        self.file().exists()
    }

    /// The file's location on its disk, and when it was created.
    fn identity(&self) -> Option<String> {
        let metadata = std::fs::symlink_metadata(self.file()).ok()?;
        let mut hasher = DefaultHasher::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            (metadata.dev(), metadata.ino()).hash(&mut hasher);
        }
        metadata.created().ok().hash(&mut hasher);
        Some(format!("{:016x}", hasher.finish()))
    }

    fn sidecars(&self) -> &dyn Sidecars {
        &self.sidecars
    }

    fn create_sidecar_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn database_to_maintain(&self) -> Option<&Path> {
        Some(self.file()).filter(|file| sqlite::has_long_wal(file))
    }

    fn open(&self, database: &Database, opening: Opening) -> Result<Option<OpenStore>> {
        let (clock, options) = (Arc::new(SystemClock), self.options(database, opening));
        let store = match opening.mode {
            Mode::Create => Some(Sqlite::open(self.file(), clock, &options)?),
            Mode::Existing => Sqlite::open_existing(self.file(), clock, &options)?,
            Mode::ReadOnly => Sqlite::open_to_read(self.file(), clock, &options)?,
        };
        Ok(store.map(|store| {
            let state = match (store.is_new(), store.is_read_only()) {
                (true, _) => Some(BoardState::Created),
                (false, true) => Some(BoardState::ReadOnly),
                (false, false) => None,
            };
            OpenStore { state, store: Arc::new(store), clock: Arc::new(SystemClock) }
        }))
    }
}

/// How a command accesses the board. `O` is what it gets: the board, and the session if it uses one.
///
/// | Access | A missing board | The session | Sweeps |
/// |---|---|---|---|
/// | [`read`](Access::read) | is empty | is not searched for | yes |
/// | [`read_as`](Access::read_as) | is empty | if there is one; refuses one that cannot be used | yes |
/// | [`read_with`](Access::read_with) | is empty | if there is one that can be used | yes |
/// | [`wait`](Access::wait) | is empty | if there is one that can be used, without a note | yes |
/// | [`read_own`](Access::read_own) | is empty | is required | yes |
/// | [`follow_as`](Access::follow_as) | is refused | as `read_as` | yes |
/// | [`follow`](Access::follow) | is refused | if there is one that can be used, without a note | yes |
/// | [`write`](Access::write) | is created | if there is one that can be used | yes |
/// | [`change`](Access::change) | is empty | if there is one that can be used | yes |
/// | [`act`](Access::act) | is empty | is required, and has not ended | yes |
/// | [`end`](Access::end) | is empty | is required | yes |
/// | [`unswept`](Access::unswept) | is created | is not searched for | no |
/// | [`change_unswept`](Access::change_unswept) | is empty | is not searched for | no |
/// | [`read_unswept`](Access::read_unswept) | is empty | is not searched for | no |
pub struct Access<'a, O> {
    purpose: Purpose,
    session: Option<Search<'a>>,
    sweeps: bool,
    opened: PhantomData<O>,
}

/// What a command does with the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// It reads. A board that does not exist is empty.
    Read,
    /// It waits for writes of others. A missing board is refused: its path may be mistyped, and then the command would
    /// wait forever.
    Follow,
    /// It writes. A board that does not exist is created.
    Write,
    /// It changes existing data, and can do nothing on a missing board. None is created only to refuse the call.
    Change,
}

/// What a command gets: the board, and the session if it uses one.
pub trait Opened: Sized {
    /// Combines them. Refuses if a session is required and none was found.
    fn new(board: Board, session: Option<String>) -> Result<Self>;

    /// Splits it.
    fn parts(&self) -> (&Board, Option<&str>);
}

impl Opened for Board {
    fn new(board: Board, _: Option<String>) -> Result<Board> {
        Ok(board)
    }

    fn parts(&self) -> (&Board, Option<&str>) {
        (self, None)
    }
}

/// A board, and the session that uses it if there is one.
type WithSession = (Board, Option<String>);

impl Opened for WithSession {
    fn new(board: Board, session: Option<String>) -> Result<WithSession> {
        Ok((board, session))
    }

    fn parts(&self) -> (&Board, Option<&str>) {
        (&self.0, self.1.as_deref())
    }
}

/// A board, and the session that uses it.
type AsSession = (Board, String);

impl Opened for AsSession {
    fn new(board: Board, session: Option<String>) -> Result<AsSession> {
        Ok((board, session.ok_or_else(no_session)?))
    }

    fn parts(&self) -> (&Board, Option<&str>) {
        (&self.0, Some(&self.1))
    }
}

impl<'a, O> Access<'a, O> {
    fn new(purpose: Purpose, session: Option<Search<'a>>) -> Access<'a, O> {
        Access { purpose, session, sweeps: true, opened: PhantomData }
    }
}

impl Access<'static, Board> {
    /// For a command that only reads.
    pub fn read() -> Access<'static, Board> {
        Access::new(Purpose::Read, None)
    }

    /// For a command that starts a session: it sweeps later.
    pub fn unswept() -> Access<'static, Board> {
        Access { sweeps: false, ..Access::new(Purpose::Write, None) }
    }

    /// For a command that maintains the board, and sweeps by itself.
    pub fn change_unswept() -> Access<'static, Board> {
        Access { sweeps: false, ..Access::new(Purpose::Change, None) }
    }

    /// For a command that shows what a sweep would do.
    pub fn read_unswept() -> Access<'static, Board> {
        Access { sweeps: false, ..Access::new(Purpose::Read, None) }
    }
}

impl<'a> Access<'a, WithSession> {
    /// For a command that reads for a session, if there is one. Refuses a session of the environment that has ended or is not
    /// on this board.
    pub fn read_as(named: Option<&'a str>) -> Access<'a, WithSession> {
        Access::new(Purpose::Read, Some(Search::new(named, Ended::AllowedIfNamed, Unusable::Refused)))
    }

    /// As [`Access::read_as`], for a command that does the same without a session: one of the environment that cannot be used
    /// is ignored, with a note.
    pub fn read_with(named: Option<&'a str>) -> Access<'a, WithSession> {
        let unusable = Unusable::Noted(SESSION_UNUSABLE);
        Access::new(Purpose::Read, Some(Search::new(named, Ended::AllowedIfNamed, unusable)))
    }

    /// As [`Access::read_as`], for a command that follows the event log.
    pub fn follow_as(named: Option<&'a str>) -> Access<'a, WithSession> {
        Access::new(Purpose::Follow, Some(Search::new(named, Ended::AllowedIfNamed, Unusable::Refused)))
    }

    /// For a command that waits for a change of what exists. The session only keeps its sweeps from marking it stale.
    pub fn wait() -> Access<'a, WithSession> {
        Access::new(Purpose::Read, Some(Search::new(None, Ended::AllowedIfNamed, Unusable::Ignored)))
    }

    /// For a command that waits for writes of others. The session only keeps its sweeps from marking it stale, so a
    /// session that cannot be found is not an error.
    pub fn follow(named: Option<&'a str>) -> Access<'a, WithSession> {
        Access::new(Purpose::Follow, Some(Search::new(named, Ended::AllowedIfNamed, Unusable::Ignored)))
    }

    /// For a command that writes, with or without a session. A session of the environment that cannot be used is
    /// ignored, with a note.
    pub fn write(named: Option<&'a str>) -> Access<'a, WithSession> {
        let unusable = Unusable::Noted(&[Code::AgentNotFound, Code::SessionEnded, Code::NoSession]);
        Access::new(Purpose::Write, Some(Search::new(named, Ended::Refused, unusable)))
    }

    /// As [`Access::write`], for a command that changes or removes existing data.
    pub fn change(named: Option<&'a str>) -> Access<'a, WithSession> {
        Access { purpose: Purpose::Change, ..Access::write(named) }
    }
}

impl<'a> Access<'a, AsSession> {
    /// For a command that shows something about its own session.
    pub fn read_own(named: Option<&'a str>) -> Access<'a, AsSession> {
        Access::new(Purpose::Read, Some(Search::new(named, Ended::AllowedIfNamed, Unusable::Refused)))
    }

    /// For a command that needs a session to act. Refuses one that has ended.
    pub fn act(named: Option<&'a str>) -> Access<'a, AsSession> {
        Access::new(Purpose::Change, Some(Search::new(named, Ended::Refused, Unusable::Refused)))
    }

    /// For the command that ends a session: ending it twice is not an error.
    pub fn end(named: Option<&'a str>) -> Access<'a, AsSession> {
        Access::new(Purpose::Change, Some(Search::new(named, Ended::Allowed, Unusable::Refused)))
    }
}

impl Context {
    /// Locates the board of this call. The first time, prints warnings about it.
    pub fn resolve(&self) -> Result<&ResolvedBoard> {
        if let Some(resolved) = self.resolved.get() {
            return Ok(resolved);
        }
        let resolved = self.resolve_at(&location::find(&self.request())?, warn)?;
        Ok(self.resolved.get_or_init(|| resolved))
    }

    /// The board at another location, as this call would use it.
    pub fn resolve_at(&self, location: &Location, warn: impl FnMut(&str)) -> Result<ResolvedBoard> {
        ResolvedBoard::at(location, self.environment(), self.globals.allow_secret_looking, warn)
    }

    /// Opens the board of this call.
    pub fn open<O: Opened>(&self, access: Access<'_, O>) -> Result<O> {
        let Access { purpose, session, sweeps, .. } = access;
        let resolved = self.resolve()?;
        let writes = matches!(purpose, Purpose::Write | Purpose::Change);
        let mode = match purpose {
            Purpose::Write => Mode::Create,
            // It exists, and is opened like every other board that is written.
            Purpose::Change if resolved.engine.exists() => Mode::Create,
            Purpose::Read | Purpose::Follow | Purpose::Change => Mode::Existing,
        };
        let OpenBoard { board, state } = resolved.open(Opening::new(mode))?;
        let board = self.keep_open(board, state, writes);
        if purpose == Purpose::Follow && state == Some(BoardState::Missing) {
            return Err(no_board(&resolved.engine.name()));
        }
        let session = if let Some(search) = session {
            search.named.into_iter().for_each(|named| self.keep_named_session(named));
            self.find_session(&board, &search)?
        } else {
            // A command that starts a session reports it itself.
            if purpose != Purpose::Write {
                self.check_session_of_environment(&board);
            }
            None
        };
        let opened = O::new(board, session)?;
        if sweeps {
            let (board, session) = opened.parts();
            board.sweep_with_next_call(session);
        }
        Ok(opened)
    }
}

fn no_board(name: &str) -> Error {
    Refusal::new(Code::BoardNotFound, format!("no board at {name}"))
        .hint(hints::command("check --db, or create one: ", "init"))
        .into()
}

#[cfg(test)]
mod tests {
    use blackboard::Revision;
    use blackboard::entry::{Value, Write};
    use blackboard::store::SidecarDirectory;

    use super::*;
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
