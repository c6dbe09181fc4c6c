//! What every command is given: the global options, the board, and the session that acts.
//!
//! Opening the board is where configuration, environment and location meet. A command says whether it reads or
//! writes: reading a board that does not exist answers from an empty one and creates nothing.

use std::cell::{OnceCell, RefCell};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use blackboard::agent::Agent;
use blackboard::clock::{Clock, SystemClock, Timestamp};
use blackboard::entry::{By, DEFAULT_SCOPE};
use blackboard::process::{Found, Processes, SystemProcesses, find_agent, find_terminal_shell};
use blackboard::store::Memory;
use blackboard::store::sqlite::{Durability, Sqlite, SqliteOptions};
use blackboard::sweep::StaleAgent;
use blackboard::text::{TextChanges, TextRules};
use blackboard::{Board, Code, Error, Refusal, Result, Settings};

use crate::args::Globals;
use crate::commands::arguments::{Acting, InScope};
use crate::config::{self, CONFIG_FILE, Config};
use crate::envelope::{BoardState, Circumstances};
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
    circumstances: RefCell<Circumstances>,
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
    /// Whether it is in the directory that a project keeps for its board.
    pub in_project: bool,
}

impl Context {
    /// The context of one call.
    pub fn new(globals: Globals) -> Context {
        Context {
            globals,
            environment: Environment::capture(),
            place: OnceCell::new(),
            opened: RefCell::new(None),
            circumstances: RefCell::default(),
        }
    }

    /// The board, for a command that only reads. Frees what the dead hold first, if that needs no waiting.
    pub fn reading(&self) -> Result<Board> {
        let board = self.open_existing()?;
        board.sweep_with_next_call(None);
        Ok(board)
    }

    /// As [`Context::reading`], with the check of [`Context::operating`].
    pub fn reading_checked(&self) -> Result<Board> {
        let board = self.open_existing_with(&self.opener()?.checking_git())?;
        board.sweep_with_next_call(None);
        Ok(board)
    }

    /// The board and the session that reads it, if there is one. Refuses a session of the environment that has ended or
    /// is not on this board.
    pub fn reading_as(&self, session: Option<&str>) -> Result<(Board, Option<String>)> {
        let board = self.open_existing()?;
        let session = self.find_session(&board, session, Ended::Allowed)?;
        board.sweep_with_next_call(session.as_deref());
        Ok((board, session))
    }

    /// As [`Context::reading_as`], for a command that does the same without a session: one of the environment that cannot
    /// be used is ignored, with a note.
    pub fn reading_with(&self, session: Option<&str>) -> Result<(Board, Option<String>)> {
        let board = self.open_existing()?;
        let found = self.find_session(&board, session, Ended::Allowed);
        let session = self.or_without(found, session, &[Code::AgentNotFound, Code::SessionEnded])?;
        board.sweep_with_next_call(session.as_deref());
        Ok((board, session))
    }

    /// The board, for a command that waits for what others write, and the session that waits, if one is found. The session
    /// only keeps the command's sweeps from marking it stale, so one that cannot be found is no error.
    pub fn following_for(&self, session: Option<&str>) -> Result<(Board, Option<String>)> {
        let board = self.open_to_follow()?;
        let session = self.find_session(&board, session, Ended::Allowed).unwrap_or_default();
        board.sweep_with_next_call(session.as_deref());
        Ok((board, session))
    }

    /// The board and the session that follows, if there is one. A board that does not exist is created: there would be
    /// nothing to wait for otherwise.
    pub fn following_as(&self, session: Option<&str>) -> Result<(Board, Option<String>)> {
        let board = self.open_to_follow()?;
        let session = self.find_session(&board, session, Ended::Allowed)?;
        board.sweep_with_next_call(session.as_deref());
        Ok((board, session))
    }

    /// The board, for a command that shows something of the session that reads it.
    pub fn reading_own(&self, session: Option<&str>) -> Result<(Board, String)> {
        let (board, session) = self.reading_as(session)?;
        Ok((board, session.ok_or_else(no_session)?))
    }

    /// The board, for a command that writes, and the session that it acts for, if one is found: you may do the same
    /// without a session. One of the environment that cannot be used is ignored, with a note.
    pub fn writing(&self, session: Option<&str>) -> Result<(Board, Option<String>)> {
        let board = self.open()?;
        let found = self.find_session(&board, session, Ended::Refused);
        let unusable = [Code::AgentNotFound, Code::SessionEnded, Code::NoSession];
        let session = self.or_without(found, session, &unusable)?;
        board.sweep_with_next_call(session.as_deref());
        Ok((board, session))
    }

    /// The board, for a command that changes entries, and on whose behalf.
    pub fn writing_by(&self, acting: Acting) -> Result<(Board, By)> {
        let (board, session) = self.writing(acting.session.session.as_deref())?;
        Ok((board, by(acting, session)?))
    }

    /// As [`Context::writing_by`], for a change that needs a session to act.
    pub fn acting_by(&self, acting: Acting) -> Result<(Board, By)> {
        let (board, session) = self.acting(acting.session.session.as_deref())?;
        Ok((board, by(acting, Some(session))?))
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

    /// The board, for a command that needs a session to act. Refuses one that has ended.
    pub fn acting(&self, session: Option<&str>) -> Result<(Board, String)> {
        let board = self.open()?;
        let session = self.find_session(&board, session, Ended::Refused)?.ok_or_else(no_session)?;
        board.sweep_with_next_call(Some(&session));
        Ok((board, session))
    }

    /// As [`Context::acting`], for the command that ends a session: ending it twice is no error.
    pub fn ending(&self, session: Option<&str>) -> Result<(Board, String)> {
        let board = self.open()?;
        let session = match (session, &self.environment.session) {
            (None, Some(own)) => {
                let own = text_of(own)?;
                Some(board.agents().resolve(own).map_err(|error| of_environment(error, own))?.0)
            }
            _ => self.find_session(&board, session, Ended::Allowed)?,
        };
        let session = session.ok_or_else(no_session)?;
        board.sweep_with_next_call(Some(&session));
        Ok((board, session))
    }

    /// The board, for a command that begins a session, or looks after the board itself: no sweep. It checks that git does
    /// not track the database, which commands that run all the time have no time for.
    pub fn operating(&self) -> Result<Board> {
        self.open_with(&self.opener()?.checking_git())
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
        )?;
        warnings.splice(..0, location.warnings.iter().cloned());
        for warning in &warnings {
            warn(warning);
        }
        let file = match &location.target {
            Target::File(file) => file.clone(),
            Target::Redis(_) => return Err(no_redis()),
        };
        let in_project = location.project_config.is_some();
        Ok(self.place.get_or_init(|| Place { file, config, in_project }))
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
        let Place { file, config, in_project } = self.place()?;
        let options = options(config, *in_project);
        Ok(Opener { file: file.clone(), options, settings: self.settings(config) })
    }

    /// How the board of a project is opened before the search finds it.
    pub fn opener_in_project(&self, file: &Path) -> Result<Opener> {
        let (home, project) = (location::home_config(&self.request()), file.with_file_name(CONFIG_FILE));
        // What is odd about the files is told by `place`.
        let (config, _) = config::load(home.as_deref(), Some(&project), &self.environment)?;
        let (options, settings) = (options(&config, true), self.settings(&config));
        Ok(Opener { file: file.to_owned(), options, settings }.checking_git())
    }

    fn open(&self) -> Result<Board> {
        self.open_with(&self.opener()?)
    }

    fn open_with(&self, opener: &Opener) -> Result<Board> {
        let place = self.place()?;
        let is_new = !place.file.exists();
        let board = self.reporting(opener.open()?);
        if is_new {
            // In the wrong directory, the caller should see it now and not when no other agent answers.
            self.circumstances.borrow_mut().board = Some(BoardState::Created);
            self.note(&format!("created a new board at {}", place.file.display()));
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
        self.open_existing_with(&self.opener()?)
    }

    fn open_existing_with(&self, opener: &Opener) -> Result<Board> {
        let board = if let Some(store) = opener.existing()? {
            if store.is_immutable() {
                self.circumstances.borrow_mut().board = Some(BoardState::ReadOnly);
                let file = opener.file.display();
                self.note(&format!("{file} cannot be written: the board is opened read-only, without locks"));
            }
            opener.board(store)
        } else {
            self.circumstances.borrow_mut().board = Some(BoardState::Missing);
            opener.empty()
        };
        let board = self.reporting(board);
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
    /// no agent is seen among the processes, the one that it says to be in. The one of the environment must not have ended.
    fn find_session(&self, board: &Board, given: Option<&str>, ended: Ended) -> Result<Option<String>> {
        match (given, ended) {
            (Some(given), Ended::Allowed) => return Ok(Some(board.agents().resolve(given)?.0)),
            (Some(given), Ended::Refused) => return board.agents().resolve_to_act(given).map(Some),
            (None, _) => {}
        }
        if let Some(session) = &self.environment.session {
            return session_of_environment(board, text_of(session)?).map(Some);
        }
        let ancestors = Processes::ancestors(&SystemProcesses::default());
        let caller = find_agent(&ancestors, &self.agent_pids());
        let mut sessions = match caller.pid() {
            Some(pid) => board.agents().of_process(pid)?,
            None => Vec::new(),
        };
        // A script that has not registered acts for the session of the terminal that it was started in.
        if sessions.is_empty()
            && matches!(caller, Found::Script(_))
            && let Some(shell) = find_terminal_shell(&ancestors)
        {
            sessions = board.agents().of_process(shell)?;
        }
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

    /// No session, and a note, if the one that was found without being named cannot be used for one of these reasons.
    fn or_without(
        &self,
        found: Result<Option<String>>,
        given: Option<&str>,
        reasons: &[Code],
    ) -> Result<Option<String>> {
        match found {
            Err(error) if given.is_none() && reasons.contains(&error.code()) => {
                let mut circumstances = self.circumstances.borrow_mut();
                // A board that does not exist has no sessions, and is reported by itself.
                if circumstances.board != Some(BoardState::Missing) {
                    let hint = error.hint().unwrap_or_default();
                    warn(&format!("{error}; continuing without a session ({hint})"));
                    circumstances.ignored_session = self.named_by_environment();
                }
                Ok(None)
            }
            found => found,
        }
    }

    fn named_by_environment(&self) -> Option<String> {
        self.environment.session.as_deref().and_then(OsStr::to_str).map(str::to_owned)
    }

    /// The session that the environment names, of which a new one would be a delegate. One that has ended or is not on this
    /// board is ignored, with a note.
    pub fn session_around(&self, board: &Board) -> Result<Option<String>> {
        let Some(session) = &self.environment.session else { return Ok(None) };
        match session_of_environment(board, text_of(session)?) {
            Err(error) if matches!(error.code(), Code::AgentNotFound | Code::SessionEnded) => {
                warn(&format!("{error}; continuing without a parent"));
                Ok(None)
            }
            found => found.map(Some),
        }
    }

    /// Where the board would be, if a command looked for it and there is none.
    pub fn missing_board(&self) -> Option<PathBuf> {
        self.circumstances.borrow().board.filter(|state| *state == BoardState::Missing)?;
        self.place.get().map(|place| place.file.clone())
    }

    /// What is special about this call.
    pub fn circumstances(&self) -> Circumstances {
        self.circumstances.borrow().clone()
    }

    fn calling_process(&self) -> Found {
        find_agent(&Processes::ancestors(&SystemProcesses::default()), &self.agent_pids())
    }

    /// The PIDs that agents put into the environment.
    fn agent_pids(&self) -> Vec<u32> {
        self.environment.agent_pids.iter().filter_map(|pid| pid.to_str()?.parse().ok()).collect()
    }

    /// The board with an observer that prints a line for each automatic sweep that marked an agent stale: at the start of
    /// the command, while it waits, and after a refusal. JSON output has no such line.
    fn reporting(&self, board: Board) -> Board {
        if self.globals.json {
            return board;
        }
        let has_reported_skipped = AtomicBool::new(false);
        board.with_sweep_observer(move |swept| {
            if !swept.stale_agents.is_empty() {
                note(&marked_stale(&swept.stale_agents));
            }
            // A command that waits sweeps again and again, and skips the same ones each time.
            if !swept.skipped_agents.is_empty() && !has_reported_skipped.swap(true, Ordering::Relaxed) {
                note(&skipped(swept.skipped_agents.len()));
            }
        })
    }

    /// Prints a note in human output.
    pub fn note(&self, text: &str) {
        if !self.globals.json {
            note(text);
        }
    }

    /// Reports text that is not stored as it was given; JSON answers have it in their fields.
    pub fn note_text(&self, changes: &TextChanges) {
        if let Some(sentence) = changes.sentence() {
            self.note(&sentence);
        }
    }
}

fn by(acting: Acting, session: Option<String>) -> Result<By> {
    let fences = acting.fences.iter().map(|fence| fence.parse()).collect::<Result<_>>()?;
    Ok(By { author: acting.agent, session, fences, operation: acting.operation })
}

fn marked_stale(stale_agents: &[StaleAgent]) -> String {
    let names: Vec<_> = stale_agents.iter().map(|agent| format!("\"{}\"", agent.agent_name)).collect();
    let items: usize = stale_agents.iter().map(|agent| agent.released_items.len()).sum();
    let leases: usize = stale_agents.iter().map(|agent| agent.released_leases.len()).sum();
    let leases = match leases {
        0 => String::new(),
        count => format!(" and {}", counted_leases(count)),
    };
    format!("marked {} stale, released {items} work item(s){leases}", names.join(", "))
}

fn skipped(count: usize) -> String {
    let agents = if count == 1 { "agent" } else { "agents" };
    format!("{count} stale {agents} could not be swept: their rows cannot be read; see: blackboard sweep")
}

/// Whether a session that a call names may have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Allowed,
    Refused,
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
        Ok(self.existing()?.map(|store| self.board(store)))
    }

    fn existing(&self) -> Result<Option<Sqlite>> {
        Sqlite::open_existing(&self.file, Arc::new(SystemClock), &self.options)
    }

    fn board(&self, store: Sqlite) -> Board {
        Board::on(Arc::new(store), Arc::new(SystemClock)).with_settings(self.settings.clone())
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
        self.checking_git()
    }

    /// The same, and refuses a database that git tracks.
    pub fn checking_git(mut self) -> Opener {
        self.options.check_git = true;
        self
    }

    /// What the board is set to.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}

/// How a board is opened for one command, by its configuration.
pub fn options(config: &Config, in_project: bool) -> SqliteOptions {
    SqliteOptions {
        durability: match config.database.durability {
            config::Durability::Normal => Durability::Normal,
            config::Durability::Full => Durability::Full,
        },
        stays_open: false,
        in_project,
        check_git: false,
        allow_network_filesystem: config.database.allow_network_filesystem,
        ..SqliteOptions::default()
    }
}

/// Says on stderr what a person should know beside the answer.
pub fn note(text: &str) {
    say(Tone::Plain, "note:", text);
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

/// The session that the environment names, if it can be used.
fn session_of_environment(board: &Board, session: &str) -> Result<String> {
    board.agents().resolve_to_act(session).map_err(|error| of_environment(error, session))
}

/// Why the session of the environment cannot be used: the shell has outlived it, or this is another board.
fn of_environment(error: Error, session: &str) -> Error {
    let why = match error.code() {
        Code::AgentNotFound => "is not on this board",
        Code::SessionEnded => "has ended",
        _ => return error,
    };
    let message = format!("BLACKBOARD_SESSION_ID is set to {session}, which {why}");
    Refusal::new(error.code(), message).hint(FIX).into()
}

/// What to do about a session of the environment that cannot be used.
const FIX: &str = "register again with eval \"$(blackboard agent register --name NAME --shell)\", or unset \
                   BLACKBOARD_SESSION_ID";

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
