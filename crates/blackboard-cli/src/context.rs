//! What every command is given: the global options, the board, and the session that acts.
//!
//! Opening the board is where configuration, environment and location meet. A command says whether it reads or
//! writes: reading a board that does not exist answers from an empty one and creates nothing.

use std::cell::{OnceCell, RefCell};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blackboard::agent::Agent;
use blackboard::clock::{Clock, SystemClock, Timestamp};
use blackboard::entry::{By, DEFAULT_SCOPE};
use blackboard::process::{Found, find_agent};
use blackboard::store::Memory;
use blackboard::store::sqlite::{Durability, Sqlite, SqliteOptions};
use blackboard::sweep::Swept;
use blackboard::text::{TextChanges, TextRules};
use blackboard::{Board, Code, Error, Refusal, Result, Settings};

use crate::args::Globals;
use crate::commands::arguments::{Acting, InScope};
use crate::config::{self, Config};
use crate::environment::Environment;
use crate::identity;
use crate::location::{self, Target};
use crate::output::entry::counted_leases;
use crate::output::{Screen, Tone, escape};

/// What a command knows beside its own arguments.
pub struct Context {
    /// The options that every command takes.
    pub globals: Globals,
    environment: Environment,
    place: OnceCell<Place>,
    opened: RefCell<Option<Opened>>,
}

/// The board that a call has opened, and whether it was going to write. It is kept to the end of the process: closing a
/// board costs as much as reading it.
struct Opened {
    board: Board,
    to_write: bool,
}

/// How a board is opened. Unlike the context it may go to another thread, which opens it when it is needed.
#[derive(Clone)]
pub struct Opener {
    file: PathBuf,
    options: SqliteOptions,
    settings: Settings,
}

/// Where the board is, and what applies to it.
pub struct Place {
    /// The database file.
    pub file: PathBuf,
    /// What applies to it.
    pub config: Config,
}

impl Context {
    /// The context of one call.
    pub fn new(globals: Globals) -> Context {
        Context {
            globals,
            environment: Environment::capture(),
            place: OnceCell::new(),
            opened: RefCell::new(None),
        }
    }

    /// The board, for a command that only reads. Frees what the dead hold first, if that needs no waiting.
    pub fn reading(&self) -> Result<Board> {
        let board = self.open_existing()?;
        self.sweep(&board, None);
        Ok(board)
    }

    /// The board and the session that reads it, if there is one.
    pub fn reading_as(&self, session: Option<&str>) -> Result<(Board, Option<String>)> {
        let board = self.open_existing()?;
        let session = self.find_session(&board, session)?;
        self.sweep(&board, session.as_deref());
        Ok((board, session))
    }

    /// The board, for a command that waits for what others write. One that does not exist is created: there would be
    /// nothing to wait for otherwise.
    pub fn following(&self) -> Result<Board> {
        let board = self.open_to_follow()?;
        self.sweep(&board, None);
        Ok(board)
    }

    /// As [`Context::following`], and the session that follows, if there is one.
    pub fn following_as(&self, session: Option<&str>) -> Result<(Board, Option<String>)> {
        let board = self.open_to_follow()?;
        let session = self.find_session(&board, session)?;
        self.sweep(&board, session.as_deref());
        Ok((board, session))
    }

    /// The board, for a command that shows something of the session that reads it.
    pub fn reading_own(&self, session: Option<&str>) -> Result<(Board, String)> {
        let (board, session) = self.reading_as(session)?;
        Ok((board, session.ok_or_else(no_session)?))
    }

    /// The board, for a command that writes, and the session on whose behalf, if it can be told who that is: what it
    /// does, an operator without a session may do as well.
    pub fn writing(&self, session: Option<&str>) -> Result<(Board, Option<String>)> {
        let board = self.open()?;
        let session = match self.find_session(&board, session) {
            Err(error)
                if session.is_none() && matches!(error.code(), Code::AgentNotFound | Code::NoSession) =>
            {
                let hint = error.hint().unwrap_or_default();
                warn(&format!("{error}; this is done without a session ({hint})"));
                None
            }
            found => found?,
        };
        self.sweep(&board, session.as_deref());
        Ok((board, session))
    }

    /// The board, for a command that changes entries, and on whose behalf.
    pub fn writing_by(&self, acting: Acting) -> Result<(Board, By)> {
        let fences = acting.fences.iter().map(|fence| fence.parse()).collect::<Result<_>>()?;
        let (board, session) = self.writing(acting.session.session.as_deref())?;
        Ok((board, By { author: acting.agent, session, fences, operation: acting.operation }))
    }

    /// The scope that is named, or that of the environment, or the usual one.
    pub fn scope(&self, given: &InScope) -> Result<String> {
        match (&given.scope, &self.environment.scope) {
            (Some(scope), _) => Ok(scope.clone()),
            (None, Some(scope)) => {
                let text = scope.to_str().ok_or_else(|| Error::invalid("BLACKBOARD_SCOPE is not text"));
                text.map(str::to_owned)
            }
            (None, None) => Ok(DEFAULT_SCOPE.to_owned()),
        }
    }

    /// How many bytes the value of an entry may have.
    pub fn max_value_bytes(&self) -> Result<usize> {
        Ok(self.place()?.config.limits.max_value_bytes)
    }

    /// The board, for a command that needs a session to act.
    pub fn acting(&self, session: Option<&str>) -> Result<(Board, String)> {
        let board = self.open()?;
        let session = self.find_session(&board, session)?.ok_or_else(no_session)?;
        self.sweep(&board, Some(&session));
        Ok((board, session))
    }

    /// The board, for a command that looks after it itself: no sweep.
    pub fn operating(&self) -> Result<Board> {
        self.open()
    }

    /// As [`Context::operating`], without creating anything.
    pub fn inspecting(&self) -> Result<Board> {
        self.open_existing()
    }

    /// Where the board is. The first call says on stderr what is odd about that.
    pub fn place(&self) -> Result<&Place> {
        if let Some(place) = self.place.get() {
            return Ok(place);
        }
        let location = location::find(&self.request())?;
        let (config, mut warnings) = config::load(
            location.home_config.as_deref(),
            location.project_config.as_deref(),
            &self.environment,
        );
        warnings.splice(..0, location.warnings.iter().cloned());
        for warning in &warnings {
            warn(warning);
        }
        let file = match &location.target {
            Target::File(file) => file.clone(),
            Target::Redis(_) => return Err(no_redis()),
        };
        Ok(self.place.get_or_init(|| Place { file, config }))
    }

    /// What this process was started with.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// What a session is called here that was given no name.
    pub fn own_name(&self) -> Result<Option<String>> {
        Ok(identity::name(&self.environment, &self.place()?.config))
    }

    /// Where a session works that was started here.
    pub fn own_project(&self, board: &Board) -> Result<Option<String>> {
        identity::project(board, &self.request())
    }

    /// What the search for the board goes by.
    pub fn request(&self) -> location::Request {
        location::Request {
            db: self.globals.db.clone(),
            environment: self.environment.clone(),
            current_dir: std::env::current_dir().unwrap_or_default(),
        }
    }

    /// The tree of files that the call is made in.
    pub fn tree(&self) -> Result<location::Tree> {
        location::tree(&self.request())
    }

    /// The long-lived process behind whoever calls: as it says itself, or the nearest agent among the ancestors.
    pub fn agent_pid(&self, given: Option<u32>) -> Result<Option<u32>> {
        if given.is_some() {
            return Ok(given);
        }
        if let Some(pid) = &self.environment.pid {
            let pid = pid.to_str().and_then(|pid| pid.parse().ok()).filter(|pid| *pid > 0);
            return pid.map(Some).ok_or_else(|| Error::invalid("BLACKBOARD_PID is not a process id"));
        }
        Ok(self.calling_process().pid())
    }

    /// What can wait until the answer is out: removing what is too old, which no reader does, and folding the log
    /// back, which also grows by the cursors of readers.
    pub fn afterwards(&self) {
        if let Some(Opened { board, to_write }) = &*self.opened.borrow() {
            if *to_write {
                board.prune_in_passing();
            }
            board.settle();
        }
    }

    /// How the board of this call is opened.
    pub fn opener(&self) -> Result<Opener> {
        let Place { file, config } = self.place()?;
        Ok(Opener { file: file.clone(), options: options(config), settings: self.settings(config) })
    }

    fn open(&self) -> Result<Board> {
        let place = self.place()?;
        let is_new = !place.file.exists();
        let board = self.opener()?.open()?;
        if is_new {
            // Whoever is in the wrong directory should see it now, not when nobody answers.
            self.note(&format!("created board {}", place.file.display()));
        }
        self.opened.replace(Some(Opened { board: board.clone(), to_write: true }));
        Ok(board)
    }

    fn open_to_follow(&self) -> Result<Board> {
        if self.place()?.file.exists() {
            return self.open_existing();
        }
        let board = self.open()?;
        // It reads all the same: nobody is to be kept waiting for its end by what it might remove.
        self.opened.replace(Some(Opened { board: board.clone(), to_write: false }));
        Ok(board)
    }

    fn open_existing(&self) -> Result<Board> {
        let opener = self.opener()?;
        let board = opener.open_existing()?.unwrap_or_else(|| opener.empty());
        self.opened.replace(Some(Opened { board: board.clone(), to_write: false }));
        Ok(board)
    }

    /// What the rules of a board depend on, by its configuration.
    pub fn settings(&self, config: &Config) -> Settings {
        Settings {
            heartbeat_interval: config.heartbeat.interval,
            stale_threshold: config.heartbeat.stale_threshold,
            delegate_stale_threshold: config.heartbeat.delegate_stale_threshold,
            keep_heartbeats: config.retention.heartbeats,
            keep_events: config.retention.events,
            keep_completed_agents: config.retention.completed_agents,
            keep_stale_agents: config.retention.stale_agents,
            max_log_bytes: config.database.max_log_mb as u64 * 1024 * 1024,
            max_value_bytes: config.limits.max_value_bytes,
            text: TextRules {
                max_field_length: config.content_filter.max_field_length,
                strip_code_blocks: config.content_filter.strip_code_blocks,
                strip_html_tags: config.content_filter.strip_html_tags,
                allow_secret_looking: self.globals.allow_secret_looking,
                ..TextRules::default()
            },
            ..Settings::default()
        }
    }

    /// The session that is named, or that of the environment, or the only one of the calling agent's process, or, where
    /// no agent is seen among the processes, the one that it says to be in.
    fn find_session(&self, board: &Board, given: Option<&str>) -> Result<Option<String>> {
        if let Some(given) = given {
            return Ok(Some(board.agents().resolve(given)?.0));
        }
        if let Some(session) = &self.environment.session {
            let session = text_of(session)?;
            return match board.agents().resolve(session) {
                // The shell outlived its session, or this is another board.
                Err(error) if error.code() == Code::AgentNotFound => Err(not_on_this_board(session)),
                other => other.map(|(session, _)| Some(session)),
            };
        }
        let caller = self.calling_process();
        let sessions = match caller.pid() {
            Some(pid) => board.agents().of_process(pid)?,
            None => Vec::new(),
        };
        // A delegate shares its parent's process; whoever does not say otherwise is the parent.
        let own: Vec<_> = sessions.iter().filter(|agent| !agent.shares_process).collect();
        match own[..] {
            [] if matches!(caller, Found::Agent(_)) => Ok(None),
            [] => self.session_of_sandbox(board),
            [agent] => Ok(Some(agent.session_id.clone())),
            _ => Err(several_sessions(&own)),
        }
    }

    /// The session that Codex tells its children to be in: in its sandbox nothing else shows it. What other platforms say
    /// leaks into every terminal that is opened from there.
    fn session_of_sandbox(&self, board: &Board) -> Result<Option<String>> {
        let hints = self.environment.session_hints();
        for hint in hints.into_iter().filter(|hint| hint.starts_with("codex:")) {
            let session = match board.agents().resolve(&hint) {
                Ok((session, _)) => session,
                Err(error) if error.code() == Code::AgentNotFound => continue,
                Err(error) => return Err(error),
            };
            let agent = board.agents().get(&session)?;
            if agent.is_some_and(|agent| agent.status.is_live()) {
                return Ok(Some(session));
            }
        }
        Ok(None)
    }

    /// The session that the environment names, in which a new one would be a delegate. One that is not on this board is
    /// told of, and is none.
    pub fn session_around(&self, board: &Board) -> Result<Option<String>> {
        let Some(session) = &self.environment.session else { return Ok(None) };
        let session = text_of(session)?;
        match board.agents().resolve(session) {
            Err(error) if error.code() == Code::AgentNotFound => {
                let unknown = not_on_this_board(session);
                warn(&format!("{unknown}; the new session is nobody's delegate"));
                Ok(None)
            }
            found => Ok(Some(found?.0)),
        }
    }

    fn calling_process(&self) -> Found {
        let processes = blackboard::process::SystemProcesses::default();
        let hints: Vec<u32> =
            self.environment.agent_pids.iter().filter_map(|pid| pid.to_str()?.parse().ok()).collect();
        find_agent(&blackboard::process::Processes::ancestors(&processes), &hints)
    }

    /// Frees what the dead hold, and tells a person who that was.
    pub fn sweep(&self, board: &Board, caller: Option<&str>) {
        let Swept { stale_agents, .. } = board.sweep_in_passing(caller);
        if stale_agents.is_empty() {
            return;
        }
        let names: Vec<_> = stale_agents.iter().map(|agent| format!("\"{}\"", agent.agent_name)).collect();
        let items: usize = stale_agents.iter().map(|agent| agent.released_items.len()).sum();
        let leases: usize = stale_agents.iter().map(|agent| agent.released_leases.len()).sum();
        let leases = match leases {
            0 => String::new(),
            count => format!(" and {}", counted_leases(count)),
        };
        self.note(&format!("marked {} stale, released {items} work item(s){leases}", names.join(", ")));
    }

    /// Tells a person what happened beside what was asked for. Programs do not need to know.
    pub fn note(&self, note: &str) {
        if !self.globals.json {
            say(Tone::Plain, "note:", note);
        }
    }

    /// Reports text that is not stored as it was given; JSON answers have it in their fields.
    pub fn note_text(&self, changes: &TextChanges) {
        if let Some(sentence) = changes.sentence() {
            self.note(&sentence);
        }
    }
}

impl Opener {
    /// The board, which is created if it does not exist.
    pub fn open(&self) -> Result<Board> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let store = Sqlite::open(&self.file, clock.clone(), &self.options)?;
        Ok(Board::on(Arc::new(store), clock).with_settings(self.settings.clone()))
    }

    /// The board, if it exists.
    pub fn open_existing(&self) -> Result<Option<Board>> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let store = Sqlite::open_existing(&self.file, clock.clone(), &self.options)?;
        Ok(store.map(|store| Board::on(Arc::new(store), clock).with_settings(self.settings.clone())))
    }

    /// The board, if it exists, for whoever never writes to it.
    pub fn open_to_read(&self) -> Result<Option<Board>> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let store = Sqlite::open_to_read(&self.file, clock.clone(), &self.options)?;
        Ok(store.map(|store| Board::on(Arc::new(store), clock).with_settings(self.settings.clone())))
    }

    /// Where the board is.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// What a board shows that does not exist.
    pub fn empty(&self) -> Board {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        Board::on(Arc::new(Memory::new(clock.clone())), clock).with_settings(self.settings.clone())
    }

    /// The same for a process that keeps the board open, while others may delete or replace its file.
    pub fn staying_open(mut self) -> Opener {
        self.options.stays_open = true;
        self
    }

    /// What the board is set to.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}

/// How a board is opened for one command, by its configuration.
pub fn options(config: &Config) -> SqliteOptions {
    SqliteOptions {
        durability: match config.database.durability {
            config::Durability::Normal => Durability::Normal,
            config::Durability::Full => Durability::Full,
        },
        stays_open: false,
        ..SqliteOptions::default()
    }
}

/// Says something that is odd but in nobody's way.
pub fn warn(warning: &str) {
    say(Tone::Caution, "warning:", warning);
}

fn say(tone: Tone, kind: &str, text: &str) {
    let mut stderr = io::stderr().lock();
    let mut screen = Screen::of_stderr(&mut stderr, Timestamp::EPOCH);
    let styles = screen.styles();
    // Nobody is left to tell when this fails.
    let _ = screen.line(format_args!("{} {}", styles.paint(tone, kind), escape(text)));
}

/// Nobody knows who acts.
fn no_session() -> Error {
    Refusal::new(Code::NoSession, "no session was named, and none could be found")
        .hint(
            "name one with --session ID, or start with: \
             eval \"$(blackboard agent register --name NAME --shell)\"",
        )
        .into()
}

fn not_on_this_board(session: &str) -> Error {
    Refusal::new(Code::AgentNotFound, format!("there is no session {session} on this board"))
        .hint("BLACKBOARD_SESSION_ID names it: register again on this board, or unset it")
        .into()
}

fn several_sessions(sessions: &[&Agent]) -> Error {
    let named: Vec<_> =
        sessions.iter().map(|agent| format!("{} ({})", agent.session_id, agent.agent_name)).collect();
    let message = format!("this process has {} live sessions: {}", sessions.len(), named.join(", "));
    let ids: Vec<_> = sessions.iter().map(|agent| agent.session_id.clone()).collect();
    Refusal::new(Code::NoSession, message).hint("name one with --session ID").detail("sessions", ids).into()
}

fn text_of(value: &OsStr) -> Result<&str> {
    value.to_str().ok_or_else(|| Error::invalid("BLACKBOARD_SESSION_ID is not text"))
}

fn no_redis() -> Error {
    Refusal::new(Code::InvalidValue, "this version has no Redis engine yet")
        .hint("name a file with --db or BLACKBOARD_DB")
        .into()
}
