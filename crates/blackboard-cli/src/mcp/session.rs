//! For whom a call is made.
//!
//! A client's own session is found, in this order: by what the call itself says about it (in its metadata, or in an argument
//! that our plugins add), by `BLACKBOARD_SESSION_ID`, by the id that the platform gives its children, under which hooks
//! register a session with the hint `<platform>:<id>`, and as the session of the process that started this one. Only if
//! there is none is one registered here, and only such a one ends here: clients start and end their servers as they like, and
//! what their session holds must stay.
//!
//! A host that runs many sessions in one process has one server for all of them, and does not say which of them calls. As long
//! as there is only one, it is that one. With more of them one is registered here that has the process for itself, and so is
//! kin to all that share it: none of them is kept from a file by what it reserved itself.
//!
//! The environment leaks from an agent into those that it starts. So a session that is named there does not count if a
//! nearer agent stands between its process and this one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use blackboard::agent::{Agent, AgentStatus, Beat, Register};
use blackboard::process::{
    Found, Liveness, ProcessInfo, ProcessMark, Processes, SystemProcesses, find_agent, find_client,
};
use blackboard::text::visible;
use blackboard::{Board, Code, Error, Refusal, Result};
use rmcp::RoleServer;
use rmcp::model::JsonObject;
use rmcp::service::RequestContext;
use serde_json::Value;

use crate::context::Context;
use crate::identity;
use crate::location::Request;
use crate::platforms::{self, AGENT_NAMES, PLATFORMS};

/// The argument in which a plugin of ours names the session that calls: where one server serves all sessions of a process,
/// nothing else distinguishes them.
const SESSION_ARGUMENT: &str = "blackboard_session";

/// What a client is called that does not say so.
const UNNAMED: &str = "MCP client";

/// What a call says about whoever makes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Caller {
    /// The session that is named among the arguments.
    session: Option<String>,
    /// The hints under which its session may be registered.
    hints: Vec<String>,
    /// What the client calls itself.
    name: Option<String>,
}

impl Caller {
    /// Whoever makes this call.
    pub fn of(context: &RequestContext<RoleServer>) -> Caller {
        let metadata = PLATFORMS.iter().filter_map(|platform| platform.exceptions.call_metadata.as_ref());
        let hints = metadata.filter_map(|metadata| {
            let value = context.meta.get(metadata.key)?;
            Some((metadata.session_hints)(value))
        });
        let hints = hints.flatten().collect();
        Caller { session: None, hints, name: context.client_info().map(|client| client.name) }
    }

    /// Takes out of the arguments in which session the call is made, which no tool knows.
    pub fn named_in(self, arguments: Option<&mut JsonObject>) -> Caller {
        let session = arguments.and_then(|arguments| arguments.remove(SESSION_ARGUMENT));
        Caller { session: session.and_then(|session| session.as_str().map(str::to_owned)), ..self }
    }
}

/// The sessions of one client.
pub struct Sessions {
    /// What the environment says, best first.
    named: Vec<String>,
    /// The process that started this one.
    client: Option<u32>,
    mark: Option<ProcessMark>,
    ancestors: Vec<ProcessInfo>,
    /// What a session is called that is registered here.
    name: Option<String>,
    /// Where it works is found by this.
    request: Request,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The session that was registered here.
    own: Option<String>,
    /// Which session was found for whom.
    found: BTreeMap<Caller, String>,
}

impl Sessions {
    /// The sessions of whoever started this process.
    pub fn new(context: &Context) -> Result<Sessions> {
        let environment = context.environment();
        let text = |value: &std::ffi::OsString| value.to_str().map(str::to_owned);
        let processes = SystemProcesses::default();
        let ancestors = processes.ancestors(AGENT_NAMES);
        let client = match &environment.pid {
            Some(_) => context.agent_pid(None)?,
            None if ancestors.is_empty() => parent(),
            None => find_client(&ancestors),
        };
        Ok(Sessions {
            named: {
                let hints = platforms::session_hints(environment, |_| true);
                environment.session.iter().filter_map(text).chain(hints).collect()
            },
            mark: client.and_then(|pid| processes.mark(pid)),
            client,
            ancestors,
            name: context.own_name()?,
            request: context.request(),
            known: Mutex::default(),
        })
    }

    /// The session that the client certainly is: the one that was registered here, or the only one that was found.
    pub fn only(&self) -> Option<String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found: BTreeSet<_> = known.own.iter().chain(known.found.values()).collect();
        let mut found = found.into_iter();
        found.next().filter(|_| found.next().is_none()).cloned()
    }

    /// The session of whoever calls, if it has one.
    pub fn find(&self, board: &Board, caller: &Caller) -> Result<Option<Agent>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        self.find_knowing(&mut known, board, caller)
    }

    /// The session of whoever calls; it is registered if there is none. One that was taken for dead is told so, once:
    /// what it held is lost.
    pub fn acting(&self, board: &Board, caller: &Caller) -> Result<String> {
        // Held to the end: of several first calls one registers.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match self.find_knowing(&mut known, board, caller)? {
            Some(agent) if agent.status == AgentStatus::Stale => Err(back_again(board, &agent)?),
            Some(agent) => Ok(agent.session_id),
            None => {
                let registered = board.agents().register(&Register {
                    name: Some(self.own_name(caller)),
                    project: identity::project(board, &self.request)?,
                    pid: self.client,
                    ..Register::default()
                })?;
                Ok(known.own.insert(registered.agent.session_id).clone())
            }
        }
    }

    /// What a session is called that registers here. No name is refused: what could not be seen of it is left out.
    fn own_name(&self, caller: &Caller) -> String {
        let given = self.name.as_ref().or(caller.name.as_ref()).map(|name| visible(name));
        given.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| UNNAMED.to_owned())
    }

    fn find_knowing(&self, known: &mut Known, board: &Board, caller: &Caller) -> Result<Option<Agent>> {
        if let Some(session) = known.found.get(caller)
            && let Some(agent) = usable(board, session)?
        {
            return Ok(Some(agent));
        }
        // A model could write into the arguments whatever it likes: only sessions of its own process count there.
        let is_here = |agent: &Agent| agent.pid.is_some() && agent.pid == self.client;
        let mut named = caller.session.as_deref().map(|text| resolved(board, text)).transpose()?.flatten();
        named = named.filter(is_here);
        for text in caller.hints.iter().chain(&self.named) {
            if named.is_some() {
                break;
            }
            named = resolved(board, text)?.filter(|agent| !self.is_of_another(agent));
        }
        if let Some(agent) = named {
            known.found.insert(caller.clone(), agent.session_id.clone());
            return Ok(Some(agent));
        }
        if let Some(own) = &known.own
            && let Some(agent) = usable(board, own)?
        {
            return Ok(Some(agent));
        }
        let Some(client) = self.client else { return Ok(None) };
        let (sharing, owning): (Vec<_>, Vec<_>) =
            board.agents().of_process(client)?.into_iter().partition(|agent| agent.shares_process);
        if let Some(newest) = owning.into_iter().max_by_key(|agent| agent.started_at) {
            known.found.insert(caller.clone(), newest.session_id.clone());
            return Ok(Some(newest));
        }
        // Not remembered: when another one begins there, nothing tells any more which of them calls.
        let mut hosted = sharing.into_iter().filter(|agent| agent.parent_id.is_none());
        Ok(hosted.next().filter(|_| hosted.next().is_none()))
    }

    /// Whether a session belongs to an agent that started the one that started this process.
    fn is_of_another(&self, agent: &Agent) -> bool {
        let place = |pid| self.ancestors.iter().position(|process| Some(process.pid) == pid);
        let Found::Agent(nearest) = find_agent(&self.ancestors, AGENT_NAMES, &[]) else { return false };
        place(agent.pid).is_some_and(|its| place(Some(nearest)).is_some_and(|nearest| its > nearest))
    }

    /// Whether the client lives, as far as can be told.
    pub fn client_lives(&self) -> bool {
        self.client
            .is_none_or(|pid| SystemProcesses::default().liveness(pid, self.mark.as_ref()) != Liveness::Dead)
    }

    /// Says for every session that was found here that it lives, unless it said so itself a moment ago. An idle one stays
    /// idle. A live client proves nothing about one of several sessions that share its process.
    pub fn beat(&self, board: &Board) -> Result<()> {
        self.find(board, &Caller::default())?;
        let sessions: BTreeSet<String> = {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.own.iter().chain(known.found.values()).cloned().collect()
        };
        let moment = board.settings().heartbeat_interval / 2;
        for session in sessions {
            let Some(agent) = usable(board, &session)? else { continue };
            let has_client = agent.status.is_live() && !agent.shares_process;
            if has_client && board.clock().now().since(agent.last_beat_at) >= moment {
                board.agents().heartbeat(&Beat { status: Some(agent.status), ..Beat::of(&session) })?;
            }
        }
        Ok(())
    }

    /// Forgets every session, because their board is gone. Says whether there were any.
    pub fn forget(&self) -> bool {
        let known = std::mem::take(&mut *self.known.lock().unwrap_or_else(PoisonError::into_inner));
        known.own.is_some() || !known.found.is_empty()
    }

    /// Ends the session that was registered here, if there is one.
    pub fn leave(&self, board: &Board) -> Result<()> {
        let own = self.known.lock().unwrap_or_else(PoisonError::into_inner).own.take();
        if let Some(own) = own {
            board.agents().deregister(&own)?;
        }
        Ok(())
    }
}

/// The process that started this one, where the system shows nothing else.
fn parent() -> Option<u32> {
    #[cfg(unix)]
    return Some(std::os::unix::process::parent_id()).filter(|pid| *pid > 1);
    #[cfg(not(unix))]
    return None;
}

/// The session of this name, unless it has ended. Another board, another time, or no id at all is nobody.
fn resolved(board: &Board, text: &str) -> Result<Option<Agent>> {
    match board.agents().resolve(text) {
        Ok((session, _)) => usable(board, &session),
        Err(Error::Refusal(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The session, unless it has ended or is forgotten.
fn usable(board: &Board, session: &str) -> Result<Option<Agent>> {
    Ok(board.agents().get(session)?.filter(|agent| agent.status != AgentStatus::Completed))
}

/// Brings a session back that was taken for dead, and refuses the call that found it so: whoever made it may count on what
/// is lost.
fn back_again(board: &Board, agent: &Agent) -> Result<Error> {
    let back = board.agents().heartbeat(&Beat::of(&agent.session_id))?;
    let message = format!(
        "session {} ({}) was taken for dead and lost what it held; it is back now",
        agent.session_id, agent.agent_name
    );
    let leases: Vec<Value> =
        back.lost_leases.iter().filter_map(|lease| serde_json::to_value(lease).ok()).collect();
    Ok(Refusal::new(Code::SessionStale, message)
        .hint("claim or lock again what you still need, then repeat this call")
        .detail("lost", back.lost)
        .detail("lost_leases", leases)
        .into())
}
