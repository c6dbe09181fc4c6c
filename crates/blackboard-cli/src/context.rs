//! The context of a command: the global options, the environment, and the board once it is open (`open/`).

use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::OsStr;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use blackboard::clock::Timestamp;
use blackboard::entry::DEFAULT_SCOPE;
use blackboard::store::CallLimit;
use blackboard::store::sqlite::command_to_ignore;
use blackboard::text::TextChanges;
use blackboard::{Board, Error, Result};

use crate::args::Globals;
use crate::commands::Command;
use crate::commands::arguments::ScopeOption;
use crate::envelope::{BoardState, Circumstances};
use crate::environment::Environment;
use crate::git;
use crate::hints::{self, GivenOptions};
use crate::identity;
use crate::location::{self, Location, Source, Target, without_password};
use crate::open::ResolvedBoard;
use crate::output::sweep::{marked_stale, skipped};
use crate::output::{Screen, Tone, escape};
use crate::session::Naming;
use crate::unreadable::UnreadableRows;

/// How long the work after the output may take on a server that does not answer.
const MAINTENANCE: Duration = Duration::from_secs(2);

/// What a command gets in addition to its own arguments.
pub struct Context {
    /// The options that every command has.
    pub globals: Globals,
    /// The command that runs.
    command: Option<&'static Command>,
    environment: Environment,
    /// The board of this call, once it was located (`open/`).
    pub resolved: OnceCell<ResolvedBoard>,
    /// The board that this call has opened, and whether it writes. It stays open until the process ends: closing a
    /// board costs as much as reading it.
    opened: RefCell<Option<(Board, bool)>>,
    circumstances: RefCell<Circumstances>,
    /// The session given on the command line.
    named_session: OnceCell<String>,
    /// The rows that lists of this call left out.
    unreadable: UnreadableRows,
    /// Whether it was noted that others can see a password.
    has_noted_password: Cell<bool>,
    /// The warning about a session of the environment that is ignored, until it is certain that the call does that.
    ignored_session: RefCell<Option<IgnoredSession>>,
}

/// A session of the environment that cannot be used.
struct IgnoredSession {
    /// Why.
    reason: String,
    warning: String,
}

impl Context {
    /// The context of one call.
    pub fn new(globals: Globals) -> Context {
        Context {
            globals,
            command: None,
            environment: Environment::capture(),
            resolved: OnceCell::new(),
            opened: RefCell::new(None),
            circumstances: RefCell::default(),
            named_session: OnceCell::new(),
            unreadable: UnreadableRows::default(),
            has_noted_password: Cell::new(false),
            ignored_session: RefCell::default(),
        }
    }

    /// The same for a call of this command.
    pub fn of_command(self, command: &'static Command) -> Context {
        Context { command: Some(command), ..self }
    }

    /// How this call can name its session.
    pub fn naming(&self) -> Naming {
        self.command.map_or(Naming::Environment, Naming::Option)
    }

    /// Whether the command line names a session.
    pub fn names_session(&self) -> bool {
        self.named_session.get().is_some()
    }

    /// Whether the caller wants JSON output.
    pub fn json(&self) -> bool {
        self.globals.json
    }

    /// The board given on the command line.
    pub fn db(&self) -> Option<&OsStr> {
        self.globals.db.as_deref()
    }

    /// Stores the session given on the command line, for hints.
    pub fn keep_named_session(&self, session: &str) {
        // The first one is that of the call.
        let _ = self.named_session.set(session.to_owned());
    }

    /// The options of this call that hints repeat.
    pub fn given_options(&self) -> GivenOptions<'_> {
        GivenOptions { db: self.db(), session: self.named_session.get().map(String::as_str) }
    }

    /// The environment of this process.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The given scope, or that of the environment, or the default.
    pub fn scope(&self, given: &ScopeOption) -> Result<String> {
        match (&given.scope, &self.environment.scope) {
            (Some(scope), _) => Ok(scope.clone()),
            (None, Some(scope)) => {
                let text = scope.to_str().ok_or_else(|| Error::invalid("BLACKBOARD_SCOPE is not text"));
                text.map(str::to_owned)
            }
            (None, None) => Ok(DEFAULT_SCOPE.to_owned()),
        }
    }

    /// The maximum size of an entry's value, in bytes.
    pub fn max_value_bytes(&self) -> Result<usize> {
        Ok(self.resolve()?.config.limits.max_value_bytes)
    }

    /// The default name of a session that starts here.
    pub fn own_name(&self) -> Result<Option<String>> {
        Ok(identity::name(&self.environment, &self.resolve()?.config))
    }

    /// The project of a session that starts here.
    pub fn own_project(&self, board: &Board) -> Result<Option<String>> {
        identity::project(board, &self.request())
    }

    /// The input of the search for the board.
    pub fn request(&self) -> location::Request {
        self.request_in(None)
    }

    /// The input of the search for a caller in this directory; in the current one if none is given.
    pub fn request_in(&self, directory: Option<&Path>) -> location::Request {
        let current_dir = match directory {
            Some(directory) => directory.to_owned(),
            None => std::env::current_dir().unwrap_or_default(),
        };
        location::Request { db: self.globals.db.clone(), environment: self.environment.clone(), current_dir }
    }

    /// The file tree of the call.
    pub fn tree(&self) -> Result<location::Tree> {
        location::tree(&self.request())
    }

    /// Keeps the board open until the end of this call, and reports its special state and its automatic sweeps.
    pub fn keep_open(&self, board: Board, state: Option<BoardState>, writes: bool) -> Board {
        if let Some(state) = state {
            self.circumstances.borrow_mut().board = Some(state);
            let name = || self.resolved.get().map(|resolved| resolved.engine.name()).unwrap_or_default();
            match state {
                // In the wrong directory, the caller should notice that now, not when no other agent answers.
                BoardState::Created => self.report_new_board(&name()),
                BoardState::ReadOnly => {
                    let name = name();
                    self.note(&format!("{name} cannot be written: the board is opened read-only"));
                }
                // The output reports it, or `exit.rs` does after the output.
                BoardState::Missing => {}
            }
        }
        let board = self.unreadable.observe(self.reporting_sweeps(board));
        self.opened.replace(Some((board.clone(), writes)));
        board
    }

    /// Reports that this call has created the board, and whether git would publish it.
    fn report_new_board(&self, name: &str) {
        self.note(&format!("created a new board at {name}"));
        let engine = self.resolved.get().map(|resolved| &resolved.engine);
        let file = engine.and_then(|engine| engine.file()).filter(|file| git::would_add(file));
        if let Some(file) = file {
            let command = command_to_ignore(file);
            self.note(&format!("git does not ignore it, and would publish it. To ignore it: {command}"));
        }
    }

    /// The board with an observer that prints a line for each automatic sweep that marked an agent stale: at the start of
    /// the command, while it waits, and after a refusal. JSON output has no such line.
    fn reporting_sweeps(&self, board: Board) -> Board {
        if self.globals.json {
            return board;
        }
        let has_reported_skipped = AtomicBool::new(false);
        let db = self.globals.db.clone();
        board.with_sweep_observer(move |swept| {
            if !swept.stale_agents.is_empty() {
                note(&marked_stale(&swept.stale_agents));
            }
            // A command that waits sweeps repeatedly, and skips the same agents each time.
            if !swept.skipped_agents.is_empty() && !has_reported_skipped.swap(true, Ordering::Relaxed) {
                let given = GivenOptions { db: db.as_deref(), session: None };
                note(&skipped(swept.skipped_agents.len(), &given));
            }
        })
    }

    /// Reports that the session of the environment is ignored, for this reason.
    pub fn report_ignored_session(&self, reason: &Error) {
        let mut circumstances = self.circumstances.borrow_mut();
        // A board that does not exist has no sessions, and that is reported separately.
        if circumstances.board != Some(BoardState::Missing) {
            let given = self.given_options();
            let hint = reason.hint().map(|hint| hints::as_command(hint, &given)).unwrap_or_default();
            let warning = format!("{reason}; continuing without a session ({hint})");
            self.ignored_session.replace(Some(IgnoredSession { reason: reason.to_string(), warning }));
            circumstances.ignored_session = self.environment.named_session();
        }
    }

    /// Warns that the session of the environment is ignored. A call that fails because of that session has not ignored it.
    pub fn warn_of_ignored_session(&self, failure: Option<&Error>) {
        let Some(ignored) = self.ignored_session.take() else { return };
        if failure.is_some_and(|error| error.to_string() == ignored.reason) {
            self.circumstances.borrow_mut().ignored_session = None;
        } else {
            warn(&ignored.warning);
        }
    }

    /// The names and sessions of the active agents on the board of this call. Without them, names are shown alone.
    pub fn active_agents(&self) -> Vec<(String, String)> {
        let opened = self.opened.borrow();
        let names = opened.as_ref().map(|(board, _)| board.agents().active_names());
        names.and_then(Result::ok).unwrap_or_default()
    }

    /// Sweeps now if the command ended before its first read. Otherwise the sweep is part of that read.
    pub fn sweep_if_deferred(&self) {
        if let Some((board, _)) = &*self.opened.borrow() {
            board.sweep_if_deferred();
        }
    }

    /// Work after the output: pruning, except by readers, a checkpoint of the WAL, to which the cursors of readers
    /// are written too, and the commands of `notify`.
    pub fn finish(&self) {
        let _limit = CallLimit::after(MAINTENANCE);
        // A command that read nothing has not started a sweep.
        self.sweep_if_deferred();
        if let Some((board, writes)) = &*self.opened.borrow() {
            if *writes {
                board.try_prune();
            }
            board.maintain();
        }
        if let Some(notifier) = self.resolved.get().and_then(|resolved| resolved.notifier.as_ref()) {
            notifier.start();
        }
    }

    /// The location of the board, if a command searched for it and it does not exist.
    pub fn missing_board(&self) -> Option<String> {
        self.circumstances.borrow().board.filter(|state| *state == BoardState::Missing)?;
        self.resolved.get().map(|resolved| resolved.engine.name())
    }

    /// Reports that this is the home board although the call was made in a repository.
    pub fn report_home_board(&self) {
        let is_home = self.resolved.get().is_some_and(|resolved| resolved.replaces_repository_board);
        // A board that does not exist is reported by itself.
        let exists = self.circumstances.borrow().board != Some(BoardState::Missing);
        if is_home && exists {
            self.circumstances.borrow_mut().home_board = true;
            self.note(
                "no board exists for this repository; showing your home board. Create one: blackboard init",
            );
        }
    }

    /// What is special about this call.
    pub fn circumstances(&self) -> Circumstances {
        Circumstances { unreadable: self.unreadable.list(), ..self.circumstances.borrow().clone() }
    }

    /// The rows that lists of this call left out so far.
    pub fn unreadable(&self) -> &UnreadableRows {
        &self.unreadable
    }

    /// Prints a note in human output.
    pub fn note(&self, text: &str) {
        if !self.globals.json {
            note(text);
        }
    }

    /// Reports, once, that a URL on the command line has a password. No program can hide its own arguments.
    pub fn note_password_in_arguments(&self, location: &Location) {
        if let (Source::Option, Target::Redis(url)) = (&location.source, &location.target)
            && *without_password(url) != **url
            && !self.has_noted_password.replace(true)
        {
            self.note(
                "other users of this machine can see a password on the command line; use \
                 BLACKBOARD_REDIS_PASSWORD or a password file",
            );
        }
    }

    /// Prints a confirmation on stderr if a person reads it there, for a command whose standard output is for a shell.
    pub fn confirm(&self, text: &str) {
        if !self.globals.json && io::stderr().is_terminal() {
            let mut stderr = io::stderr().lock();
            // There is no other place to report that this failed.
            let _ = Screen::of_stderr(&mut stderr, Timestamp::EPOCH).line(format_args!("{}", escape(text)));
        }
    }

    /// Reports text that is not stored as it was given; JSON answers have it in their fields.
    pub fn note_text(&self, changes: &TextChanges) {
        if let Some(sentence) = changes.sentence() {
            self.note(&sentence);
        }
    }
}

/// Prints a note on stderr.
pub fn note(text: &str) {
    print(Tone::Plain, "note:", text);
}

/// Prints a warning on stderr.
pub fn warn(warning: &str) {
    print(Tone::Caution, "warning:", warning);
}

fn print(tone: Tone, kind: &str, text: &str) {
    let mut stderr = io::stderr().lock();
    let mut screen = Screen::of_stderr(&mut stderr, Timestamp::EPOCH);
    let styles = screen.styles();
    // There is no other place to report this error.
    let _ = screen.line(format_args!("{} {}", styles.paint(tone, kind), escape(text)));
}
