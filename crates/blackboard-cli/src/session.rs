//! Finds the session of a call. The rules are here; `mcp/session.rs` also remembers what it found for each caller and
//! registers a session if there is none, and `hooks/handle.rs` registers the session of a hook.
//!
//! - A command ([`Search`]): the given session, or that of the environment, or the only session of the calling agent's
//!   process, or, if no ancestor is an agent, the session that a sandbox names.
//! - A call of an MCP client ([`Client`]): the session that the call names, or that of the environment, or that of the
//!   client's process.
//! - A hook: the session with the session hint that [`Platform`](crate::platforms::Platform) derives from the
//!   platform's id.

use std::ffi::OsStr;

use blackboard::agent::{Agent, AgentStatus, ShortIds};
use blackboard::entry::Actor;
use blackboard::process::{
    Found, Liveness, ProcessIdentity, ProcessInfo, Processes, SystemProcesses, ancestors_of_script,
    find_agent, find_client, is_unused,
};
use blackboard::text::escape_for_terminal;
use blackboard::{Board, Code, Error, Hint, Refusal, Result};

use crate::commands::Command;
use crate::context::{Context, warn};
use crate::environment::Environment;
use crate::platforms::{self, AGENT_NAMES};

/// How a command finds its session.
#[derive(Debug)]
pub struct Search<'a> {
    /// The session given on the command line.
    pub named: Option<&'a str>,
    /// Whether it may have ended.
    pub ended: Ended,
    /// What happens if the session that is found cannot be used.
    pub unusable: Unusable,
}

/// Whether a session may have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It must not.
    Refused,
    /// It may if it was given on the command line, but not if it comes from the environment.
    AllowedIfNamed,
    /// It may.
    Allowed,
}

/// What happens if a session cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// The command is refused.
    Refused,
    /// For these reasons, the command continues without a session and prints a warning, unless the session was given on
    /// the command line.
    Noted(&'static [Code]),
    /// The command continues without a session, unless it was given on the command line. It prints a warning if the one of
    /// the environment has ended or is not on this board.
    Ignored,
}

/// How a call names the session for which it acts or reads.
#[derive(Clone, Copy, Debug)]
pub enum Naming {
    /// With the option that this command has.
    Option(&'static Command),
    /// Only in the environment.
    Environment,
}

impl Naming {
    /// What to do if a process has several sessions.
    fn hint(self) -> &'static str {
        match self {
            Naming::Option(command) if command.has_option("session") => "pass one with --session ID",
            Naming::Option(command) if command.has_option("as") => "pass one with --as NAME",
            Naming::Option(_) | Naming::Environment => "set BLACKBOARD_SESSION_ID to one of them",
        }
    }
}

/// The reasons why a session of the environment cannot be used: it is not on this board, or has ended.
pub const SESSION_UNUSABLE: &[Code] = &[Code::AgentNotFound, Code::SessionEnded];

impl<'a> Search<'a> {
    /// A search for the given session, or for that of the caller.
    pub const fn new(named: Option<&'a str>, ended: Ended, unusable: Unusable) -> Search<'a> {
        Search { named, ended, unusable }
    }

    /// The session, if there is one.
    fn find(&self, board: &Board, environment: &Environment, naming: Naming) -> Result<Option<String>> {
        match (self.named, self.ended) {
            (Some(named), Ended::Refused) => {
                return board.agents().resolve_to_act(named).map(|agent| Some(agent.session_id));
            }
            (Some(named), Ended::AllowedIfNamed | Ended::Allowed) => {
                return Ok(Some(board.agents().resolve(named)?.0));
            }
            (None, _) => {}
        }
        if let Some(session) = &environment.session {
            if self.ended == Ended::Allowed {
                return of_environment(session, |session| Ok(Some(board.agents().resolve(session)?.0)));
            }
            let agent = of_environment(session, |session| board.agents().resolve_to_act(session))?;
            // A declared process stays the one to watch.
            if self.ended == Ended::Refused && environment.pid.is_none() {
                watch_living_process(board, session, &agent);
            }
            return Ok(Some(agent.session_id));
        }
        let ancestors = Processes::ancestors(&SystemProcesses::default(), AGENT_NAMES);
        let caller = find_agent(&ancestors, AGENT_NAMES, &platforms::declared_pids(environment));
        let mut processes = Vec::from_iter(caller.pid());
        // A script that has not registered acts for the script or the terminal that started it.
        if let Found::Script(script) = caller {
            processes.extend(ancestors_of_script(&ancestors, script).iter().map(|process| process.pid));
        }
        let sessions = match processes[..] {
            [] => Vec::new(),
            _ => board.agents().of_first_process(&processes)?,
        };
        // A delegate shares its parent's process. Unless the caller says otherwise, it is the parent.
        let own: Vec<_> = sessions.iter().filter(|agent| !agent.shares_process).collect();
        match own[..] {
            [] if matches!(caller, Found::Agent(_)) => Ok(None),
            [] => of_sandbox(board, environment),
            [agent] => Ok(Some(agent.session_id.clone())),
            _ => Err(several_sessions(&own, naming)),
        }
    }
}

/// Who calls, for scopes that restrict their callers: the session of the environment, or that of the calling agent's process. A
/// session that cannot be used is refused, and is never the operator; a caller without a session is.
pub fn caller(board: &Board, environment: &Environment, naming: Naming) -> Result<Actor> {
    let search = Search::new(None, Ended::AllowedIfNamed, Unusable::Refused);
    let session = search.find(board, environment, naming)?;
    Ok(session.map(|session| Actor::session(&session)).unwrap_or_default())
}

impl Context {
    /// The session of this call. The search decides what happens if that of the environment cannot be used.
    pub fn find_session(&self, board: &Board, search: &Search<'_>) -> Result<Option<String>> {
        match (search.find(board, self.environment(), self.naming()), search.unusable) {
            (Err(error), Unusable::Ignored) if search.named.is_none() => {
                if SESSION_UNUSABLE.contains(&error.code()) {
                    self.report_ignored_session(&error);
                }
                Ok(None)
            }
            (Err(error), Unusable::Noted(reasons))
                if search.named.is_none() && reasons.contains(&error.code()) =>
            {
                self.report_ignored_session(&error);
                Ok(None)
            }
            (found, _) => found,
        }
    }

    /// Reports a session of the environment that cannot be used. For a command that needs no session.
    pub fn check_session_of_environment(&self, board: &Board) {
        let Some(session) = &self.environment().session else { return };
        if let Err(error) = of_environment(session, |session| board.agents().resolve_to_act(session))
            && SESSION_UNUSABLE.contains(&error.code())
        {
            self.report_ignored_session(&error);
        }
    }

    /// The session of the environment, which becomes the parent of a new one. A session that has ended or is not on
    /// this board is ignored, with a warning.
    pub fn parent_session(&self, board: &Board) -> Result<Option<String>> {
        let Some(session) = &self.environment().session else { return Ok(None) };
        match of_environment(session, |session| board.agents().resolve_to_act(session)) {
            Err(error) if SESSION_UNUSABLE.contains(&error.code()) => {
                warn(&format!("{error}; continuing without a parent"));
                Ok(None)
            }
            found => found.map(|agent| Some(agent.session_id)),
        }
    }

    /// The long-lived process of the caller: the declared one, or the nearest agent among the ancestors.
    pub fn agent_pid(&self, given: Option<u32>) -> Result<Option<u32>> {
        self.agent_pid_among(given, || Processes::ancestors(&SystemProcesses::default(), AGENT_NAMES))
    }

    /// The same for a command whose output a shell evaluates. A helper script that prints it for that shell ends with the
    /// command.
    pub fn agent_pid_of_evaluated_command(&self, given: Option<u32>) -> Result<Option<u32>> {
        self.agent_pid_among(given, || SystemProcesses::default().ancestors_of_evaluated_command(AGENT_NAMES))
    }

    fn agent_pid_among(
        &self,
        given: Option<u32>,
        ancestors: impl FnOnce() -> Vec<ProcessInfo>,
    ) -> Result<Option<u32>> {
        if given.is_some() {
            return Ok(given);
        }
        if let Some(pid) = &self.environment().pid {
            let number = pid.to_str().and_then(|pid| pid.parse().ok()).filter(|pid| *pid > 0);
            return number.map(Some).ok_or_else(|| not_a_pid(pid));
        }
        Ok(find_agent(&ancestors(), AGENT_NAMES, &platforms::declared_pids(self.environment())).pid())
    }
}

fn not_a_pid(given: &OsStr) -> Error {
    let given = blackboard::text::escape_for_terminal(&given.to_string_lossy()).into_owned();
    Refusal::new(Code::InvalidValue, format!("BLACKBOARD_PID is \"{given}\", which is not a process id"))
        .hint("set it to the number of a running process, or unset it")
        .into()
}

/// The client of an MCP server: the process that started this one, for one session or for several.
pub struct Client {
    /// Its process.
    pub pid: Option<u32>,
    process: Option<ProcessIdentity>,
    ancestors: Vec<ProcessInfo>,
    /// The sessions of the environment, best first.
    named: Vec<String>,
}

impl Client {
    /// The client that started this process.
    pub fn new(context: &Context) -> Result<Client> {
        let environment = context.environment();
        let processes = SystemProcesses::default();
        let ancestors = processes.ancestors(AGENT_NAMES);
        let pid = match &environment.pid {
            Some(_) => context.agent_pid(None)?,
            None if ancestors.is_empty() => parent_pid(),
            None => find_client(&ancestors),
        };
        let process = pid.and_then(|pid| processes.mark(pid));
        let named = environment
            .named_session()
            .into_iter()
            .chain(platforms::session_hints(environment, |_| true))
            .collect();
        Ok(Client { pid, process, ancestors, named })
    }

    /// The session of a call, and whether a later call of the same caller finds the same one. `own` is the session that
    /// the server registered for the client, if it did.
    pub fn find(
        &self,
        board: &Board,
        argument: Option<&str>,
        hints: &[String],
        own: Option<&str>,
    ) -> Result<Option<(Agent, bool)>> {
        if let Some(agent) = self.find_named(board, argument, hints)? {
            return Ok(Some((agent, true)));
        }
        if let Some(own) = own
            && let Some(agent) = usable(board, own)?
        {
            // A hook may still register the session of the client.
            return Ok(Some((agent, false)));
        }
        self.find_by_process(board)
    }

    /// The session that a call names, in its arguments or by a session hint. Otherwise that of the environment.
    fn find_named(&self, board: &Board, argument: Option<&str>, hints: &[String]) -> Result<Option<Agent>> {
        // A model can write any text into the arguments, so only sessions of its own process count.
        let is_here = |agent: &Agent| agent.pid.is_some() && agent.pid == self.pid;
        let in_arguments = argument.map(|text| resolve_usable(board, text)).transpose()?.flatten();
        if let Some(agent) = in_arguments.filter(is_here) {
            return Ok(Some(agent));
        }
        for text in hints.iter().chain(&self.named) {
            if let Some(agent) =
                resolve_usable(board, text)?.filter(|agent| !self.belongs_to_outer_agent(agent))
            {
                return Ok(Some(agent));
            }
        }
        Ok(None)
    }

    /// The session of the client's process, and whether a later call finds the same one.
    fn find_by_process(&self, board: &Board) -> Result<Option<(Agent, bool)>> {
        let Some(pid) = self.pid else { return Ok(None) };
        let (sharing, owning): (Vec<_>, Vec<_>) =
            board.agents().of_process(pid)?.into_iter().partition(|agent| agent.shares_process);
        if let Some(newest) = owning.into_iter().max_by_key(|agent| agent.started_at) {
            return Ok(Some((newest, true)));
        }
        // When another session starts there, it is unknown which of them calls.
        let mut hosted = sharing.into_iter().filter(|agent| agent.parent_id.is_none());
        Ok(hosted.next().filter(|_| hosted.next().is_none()).map(|agent| (agent, false)))
    }

    /// Whether a session belongs to an agent that started the one that started this process.
    fn belongs_to_outer_agent(&self, agent: &Agent) -> bool {
        let place = |pid| self.ancestors.iter().position(|process| Some(process.pid) == pid);
        let Found::Agent(nearest) = find_agent(&self.ancestors, AGENT_NAMES, &[]) else { return false };
        place(agent.pid).is_some_and(|its| place(Some(nearest)).is_some_and(|nearest| its > nearest))
    }

    /// Whether its process is alive, as far as the system shows it.
    pub fn is_alive(&self) -> bool {
        self.pid.is_none_or(|pid| {
            SystemProcesses::default().liveness(pid, self.process.as_ref()) != Liveness::Dead
        })
    }
}

/// The process that started this one, on systems that show nothing else.
fn parent_pid() -> Option<u32> {
    #[cfg(unix)]
    return Some(std::os::unix::process::parent_id()).filter(|pid| *pid > 1);
    #[cfg(not(unix))]
    return None;
}

/// The session with this id or name, unless it has ended. A name from another board or an earlier time matches no
/// session.
fn resolve_usable(board: &Board, text: &str) -> Result<Option<Agent>> {
    match board.agents().resolve(text) {
        Ok((session, _)) => usable(board, &session),
        Err(Error::Refusal(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The session, unless it has ended or was pruned.
pub fn usable(board: &Board, session: &str) -> Result<Option<Agent>> {
    Ok(board.agents().get(session)?.filter(|agent| agent.status != AgentStatus::Completed))
}

/// The refusal of a command that needs a session.
pub fn no_session() -> Error {
    Refusal::new(Code::NoSession, "no session given, and none found for this process")
        .hint(Hint::PassSession)
        .into()
}

/// The session of the environment, if it can be used.
fn of_environment<T>(session: &OsStr, find: impl FnOnce(&str) -> Result<T>) -> Result<T> {
    let text = session.to_string_lossy();
    find(&text).map_err(|error| unusable_in_environment(error, &text))
}

/// Watches the process that a session of the environment belongs to, if the session's own process is gone: it was
/// registered by a process that ended, for example by a helper script. Usually this is one system call.
fn watch_living_process(board: &Board, variable: &OsStr, agent: &Agent) {
    let is_candidate = agent.status.is_live() && !agent.shares_process;
    if !is_candidate || !agent.pid.is_some_and(is_unused) {
        return;
    }
    let variable = format!("BLACKBOARD_SESSION_ID={}", variable.to_string_lossy());
    let owner = SystemProcesses::default().owner_of_variable(AGENT_NAMES, &variable);
    if let Some(pid) = owner {
        // Without it, the command does what it would do anyway.
        let _ = board.agents().watch_instead(&agent.session_id, pid);
    }
}

/// Why the session of the environment cannot be used: it has ended, or belongs to another board.
fn unusable_in_environment(error: Error, session: &str) -> Error {
    let (code, why) = match error.code() {
        Code::AgentNotFound => (Code::AgentNotFound, "is not on this board"),
        Code::SessionEnded => (Code::SessionEnded, "has ended"),
        // Text that no board accepts as an id is the id of no session.
        Code::InvalidValue => (Code::AgentNotFound, "is not a session id"),
        _ => return error,
    };
    let message = format!("BLACKBOARD_SESSION_ID is set to {}, which {why}", escape_for_terminal(session));
    Refusal::new(code, message).hint(register_or_unset()).into()
}

/// What to do about a session of the environment that cannot be used.
fn register_or_unset() -> Hint {
    Hint::Command {
        before: "register again with eval \"$(".into(),
        words: "agent register --name NAME --shell".into(),
        after: ")\", or unset BLACKBOARD_SESSION_ID".into(),
        acts: false,
    }
}

/// The session of the environment, if its platform runs commands in a sandbox that hides its process. Variables of
/// other platforms leak into every terminal that an agent opens.
fn of_sandbox(board: &Board, environment: &Environment) -> Result<Option<String>> {
    for hint in platforms::session_hints(environment, |platform| platform.process.is_hidden) {
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

fn several_sessions(sessions: &[&Agent], naming: Naming) -> Error {
    /// How many sessions the message names. The details contain all of them.
    const NAMED: usize = 3;
    let ids = ShortIds::of(sessions.iter().map(|agent| agent.session_id.as_str()));
    let label = |agent: &&Agent| ids.label(&agent.agent_name, &agent.session_id);
    let mut named: Vec<_> = sessions.iter().take(NAMED).map(label).collect();
    if sessions.len() > NAMED {
        named.push(format!("and {} more", sessions.len() - NAMED));
    }
    let message = format!("this process has {} active sessions: {}", sessions.len(), named.join(", "));
    let ids: Vec<_> = sessions.iter().map(|agent| agent.session_id.clone()).collect();
    Refusal::new(Code::NoSession, message).hint(naming.hint()).detail("sessions", ids).into()
}
