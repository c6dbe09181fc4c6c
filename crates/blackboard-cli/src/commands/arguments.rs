//! Arguments that several commands share, each defined once.

use std::io::{self, BufRead, IsTerminal, Write};
use std::num::IntErrorKind;
use std::str::FromStr;
use std::time::{Duration, Instant};

use blackboard::entry::{Actor, FenceToken};
use blackboard::store::CallLimit;
use blackboard::text::escape_for_terminal;
use blackboard::{Board, Code, Error, Fault, Metadata, Result, Revision, duration};
use clap::builder::NonEmptyStringValueParser;

use crate::context::Context;

/// The session that acts.
#[derive(clap::Args, Debug, Default)]
pub struct Session {
    /// Session to act as: id, prefix of 6 or more, or agent name [default: $BLACKBOARD_SESSION_ID, or the
    /// session of the calling agent]
    #[arg(short = 's', long, value_name = "ID")]
    pub session: Option<String>,
}

impl Session {
    /// The session that the command line names.
    pub fn named(&self) -> Option<&str> {
        self.session.as_deref()
    }
}

/// The session that a command is about, by position or by `--session`.
#[derive(clap::Args, Debug)]
pub struct NamedSession {
    /// Session: id, prefix of 6 or more, or agent name [default: your own]
    #[arg(value_name = "SESSION", conflicts_with = "session")]
    agent: Option<String>,

    /// Same as the SESSION argument
    #[arg(short = 's', long, value_name = "ID", alias = "id")]
    session: Option<String>,
}

impl NamedSession {
    /// The session that the command line names.
    pub fn named(&self) -> Option<&str> {
        self.agent.as_deref().or(self.session.as_deref())
    }
}

/// The scope of entries.
#[derive(clap::Args, Debug)]
pub struct ScopeOption {
    /// Scope of the keys [default: $BLACKBOARD_SCOPE or "default"]
    #[arg(short = 'S', long, value_name = "NAME")]
    pub scope: Option<String>,
}

/// For whom entries and events are read.
#[derive(clap::Args, Debug)]
pub struct ReadAs {
    /// Read as this agent: session id, prefix of 6 or more, agent name or author [default: $BLACKBOARD_SESSION_ID, or the
    /// session of the calling agent]
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,
}

impl ReadAs {
    /// The board for this reader.
    pub fn apply(&self, board: Board) -> Result<Board> {
        match &self.name {
            Some(name) => Ok(board.with_caller(board.agents().reader(name)?)),
            None => Ok(board),
        }
    }

    /// Whether the command line names a reader.
    pub fn is_given(&self) -> bool {
        self.name.is_some()
    }
}

/// On whose behalf entries are changed, and under which condition.
#[derive(clap::Args, Debug)]
pub struct WriteOptions {
    /// Author [default: the session's agent, or "cli"]
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,

    #[command(flatten)]
    pub session: Session,

    /// Apply only while this fence token is valid: lock:NAME=N or work:ID=N; repeatable
    #[arg(long = "fence", value_name = "TOKEN")]
    pub fences: Vec<String>,

    /// Idempotency key: a retry with the same key returns the same result and changes nothing
    #[arg(long = "op", value_name = "ID")]
    pub operation: Option<String>,
}

impl WriteOptions {
    /// On whose behalf this session, if there is one, changes entries.
    pub fn by(self, session: Option<String>) -> Result<Actor> {
        let fences = self.fences.iter().map(|fence| fence.parse()).collect::<Result<_>>()?;
        Ok(Actor { author: self.agent, session, fences, operation: self.operation })
    }
}

/// A work item, by position or by `--id`.
#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
pub struct Item {
    /// Id of the work item
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    item: Option<String>,

    /// Same as the ID argument
    #[arg(long = "id", value_name = "ID", alias = "task", value_parser = NonEmptyStringValueParser::new())]
    item_option: Option<String>,
}

impl Item {
    /// The id, however it was given.
    pub fn id(self) -> String {
        // clap has made sure that one of them is there.
        self.item.or(self.item_option).unwrap_or_default()
    }
}

/// A project, by position or by `--id`.
#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
pub struct Project {
    /// Id of the project
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    project: Option<String>,

    /// Same as the ID argument
    #[arg(long = "id", value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    project_option: Option<String>,
}

impl Project {
    /// The id, however it was given.
    pub fn id(self) -> String {
        // clap has made sure that one of them is there.
        self.project.or(self.project_option).unwrap_or_default()
    }
}

/// Asks the user a question that has yes or no as its answer; `None` if there is no user to ask.
pub fn confirm(context: &Context, question: &str) -> Result<Option<bool>> {
    let (stdin, mut stderr) = (io::stdin(), io::stderr());
    if context.json() || !stdin.is_terminal() || !stderr.is_terminal() {
        return Ok(None);
    }
    let question = format!("{} [y/N] ", escape_for_terminal(question));
    let mut answer = String::new();
    stderr
        .write_all(question.as_bytes())
        .and_then(|()| stdin.lock().read_line(&mut answer))
        .map_err(|error| Fault::new(Code::Io, "the question could not be asked").because(error))?;
    Ok(Some(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")))
}

/// Parses a number of things to show; showing none of them would look like there are none.
pub fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(count) if count > 0 => Ok(count),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => Err("the number is too large".to_owned()),
        _ => Err("expected a whole number of at least 1".to_owned()),
    }
}

/// Parses a PID.
pub fn pid(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(pid) if pid > 0 => Ok(pid),
        _ => Err("a PID is a whole number of at least 1".to_owned()),
    }
}

/// Parses a port.
pub fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "allowed: a whole number from 0 to 65535".to_owned())
}

/// The fence of one thing: a number, or with the name of that thing, as `BLACKBOARD_FENCE` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FenceArgument {
    /// The number alone.
    Number(Revision),
    /// `lock:NAME=N` or `work:ID=N`.
    Named(FenceToken),
}

impl FenceArgument {
    /// The fence of this work item.
    pub fn of_work(self, item: &str) -> Result<Revision> {
        match self {
            FenceArgument::Number(fence) => Ok(fence),
            FenceArgument::Named(FenceToken::Work { id, fence }) if id == item => Ok(fence),
            FenceArgument::Named(_) => {
                Err(Error::invalid("the fence token belongs to another work item or lock"))
            }
        }
    }

    /// The fence of this lock.
    pub fn of_lock(self, lock: &str) -> Result<Revision> {
        match self {
            FenceArgument::Number(fence) => Ok(fence),
            FenceArgument::Named(FenceToken::Lock { name, fence }) if name == lock => Ok(fence),
            FenceArgument::Named(_) => {
                Err(Error::invalid("the fence token belongs to another work item or lock"))
            }
        }
    }
}

/// Parses a fence.
pub fn fence(text: &str) -> Result<FenceArgument, String> {
    let text = text.trim();
    if let Ok(number) = text.parse() {
        return Ok(FenceArgument::Number(Revision::new(number)));
    }
    text.parse().map(FenceArgument::Named).map_err(|_| {
        "use the number printed by `work claim` or `lock acquire`, or $BLACKBOARD_FENCE".to_owned()
    })
}

/// The length of time of an option. Not a parser of clap's: the error is the same for every option that takes a time.
pub fn length(text: Option<&str>) -> Result<Option<Duration>> {
    text.map(duration::parse).transpose()
}

/// The limit of a call with this timeout, also for a server that does not answer.
pub fn limit(timeout: Option<Duration>) -> CallLimit {
    CallLimit::until(timeout.and_then(|timeout| Instant::now().checked_add(timeout)))
}

/// Parses a revision.
pub fn revision(text: &str) -> Result<Revision, String> {
    match text.trim().parse() {
        Ok(id) if id >= 0 => Ok(Revision::new(id)),
        _ => Err("expected a whole number of at least 0, as printed by `read` and `write`".to_owned()),
    }
}

/// Parses one value of a list: people write a space after the comma.
pub fn trimmed<T: FromStr>(text: &str) -> Result<T, T::Err> {
    text.trim().parse()
}

/// The JSON object of an option. Not a parser of clap's, which would repeat all of it if something is wrong.
pub fn metadata(text: Option<&str>) -> Result<Option<Metadata>> {
    text.map(Metadata::parse).transpose()
}

/// The statuses of what a list shows: every one with `--all`, else those that are named, else the usual ones.
pub fn chosen<S: Copy>(all: bool, named: Vec<S>, every: &[S], usual: &[S]) -> Vec<S> {
    match (all, named.is_empty()) {
        (true, _) => every.to_vec(),
        (false, true) => usual.to_vec(),
        (false, false) => named,
    }
}
