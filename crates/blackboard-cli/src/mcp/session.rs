//! The session of a caller.
//!
//! The session is searched for in this order: what the call says about it (in its metadata, or in an argument that our
//! plugins add); `BLACKBOARD_SESSION_ID`; the id that the platform passes to its child processes, because hooks
//! register a session with the session hint `<platform>:<id>`; the session of the process that started this one. Only
//! if there is none, the server registers one. It ends only a session that it registered: clients start and stop their
//! servers at any time, and their session must keep what it holds.
//!
//! A host that runs several sessions in one process has one server for all of them, and does not say which session
//! calls. If there is only one, it is that one. If there are more, the server registers its own session for that
//! process. Sessions that share a process are not refused because of each other's file reservations.
//!
//! The environment leaks from an agent into the agents that it starts. So a session named there is ignored if there is
//! a nearer agent between its process and this one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use blackboard::agent::{Agent, AgentStatus, Heartbeat, Register};
use blackboard::text::visible;
use blackboard::{Board, Code, Error, Refusal, Result};
use rmcp::RoleServer;
use rmcp::model::JsonObject;
use rmcp::service::RequestContext;
use serde_json::Value;

use crate::context::Context;
use crate::identity;
use crate::location::Request;
use crate::platforms::PLATFORMS;
use crate::session::{Client, usable};

/// The argument in which our plugins pass the session that calls. If one server serves all sessions of a process,
/// nothing else distinguishes them.
const SESSION_ARGUMENT: &str = "blackboard_session";

/// The name prefix of a client that does not report its name.
const UNNAMED: &str = "mcp-client";

/// What a call says about its caller.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Caller {
    /// The session from the arguments.
    session: Option<String>,
    /// The session hints under which its session may be registered.
    hints: Vec<String>,
    /// The name that the client reports.
    name: Option<String>,
}

impl Caller {
    /// The caller of this call.
    pub fn of(context: &RequestContext<RoleServer>) -> Caller {
        let metadata = PLATFORMS.iter().filter_map(|platform| platform.exceptions.call_metadata.as_ref());
        let hints = metadata.filter_map(|metadata| {
            let value = context.meta.get(metadata.key)?;
            Some((metadata.session_hints)(value))
        });
        let hints = hints.flatten().collect();
        Caller { session: None, hints, name: context.client_info().map(|client| client.name) }
    }

    /// Removes the session from the arguments. Tools do not expect it.
    pub fn named_in(self, arguments: Option<&mut JsonObject>) -> Caller {
        let session = arguments.and_then(|arguments| arguments.remove(SESSION_ARGUMENT));
        Caller { session: session.and_then(|session| session.as_str().map(str::to_owned)), ..self }
    }
}

/// The sessions of one client.
pub struct Sessions {
    /// The client.
    pub client: Client,
    /// The name that the user configured for sessions here.
    name: Option<String>,
    /// Locates the working directory and the project.
    request: Request,
    known: Mutex<KnownSessions>,
}

#[derive(Default)]
struct KnownSessions {
    /// The session that was registered here.
    own: Option<String>,
    /// The session that was found for each caller.
    found: BTreeMap<Caller, String>,
}

impl Sessions {
    /// The sessions of the client that started this process.
    pub fn new(context: &Context) -> Result<Sessions> {
        Ok(Sessions {
            client: Client::new(context)?,
            name: context.own_name()?,
            request: context.request(),
            known: Mutex::default(),
        })
    }

    /// The session that is certainly the client's: the one registered here, or the only one that was found.
    pub fn only(&self) -> Option<String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found: BTreeSet<_> = known.own.iter().chain(known.found.values()).collect();
        let mut found = found.into_iter();
        found.next().filter(|_| found.next().is_none()).cloned()
    }

    /// The session of the caller, if it has one.
    pub fn find(&self, board: &Board, caller: &Caller) -> Result<Option<Agent>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        self.find_knowing(&mut known, board, caller)
    }

    /// The session of the caller, registered if there is none. A stale session gets one refusal, because what it held
    /// was released.
    pub fn acting(&self, board: &Board, caller: &Caller) -> Result<String> {
        // Held to the end, so that only one of several concurrent first calls registers a session.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match self.find_knowing(&mut known, board, caller)? {
            Some(agent) if agent.status == AgentStatus::Stale => Err(revive_or_refuse(board, &agent)?),
            Some(agent) => Ok(agent.session_id),
            None => {
                let registered = board.agents().register(&Register {
                    configured_name: self.name.as_deref().map(visible).filter(|name| !name.trim().is_empty()),
                    name_base: Some(identity::name_base(caller.name.as_deref().unwrap_or(UNNAMED))),
                    project: identity::project(board, &self.request)?,
                    pid: self.client.pid,
                    ..Register::default()
                })?;
                Ok(known.own.insert(registered.agent.session_id).clone())
            }
        }
    }

    fn find_knowing(
        &self,
        known: &mut KnownSessions,
        board: &Board,
        caller: &Caller,
    ) -> Result<Option<Agent>> {
        if let Some(session) = known.found.get(caller)
            && let Some(agent) = usable(board, session)?
        {
            return Ok(Some(agent));
        }
        let found =
            self.client.find(board, caller.session.as_deref(), &caller.hints, known.own.as_deref())?;
        let Some((agent, is_certain)) = found else { return Ok(None) };
        if is_certain {
            known.found.insert(caller.clone(), agent.session_id.clone());
        }
        Ok(Some(agent))
    }

    /// Sends a heartbeat for every session that was found here, unless it was active a moment ago. An idle session
    /// stays idle. A running client proves nothing about one of several sessions that share its process.
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
                board
                    .agents()
                    .heartbeat(&Heartbeat { status: Some(agent.status), ..Heartbeat::of(&session) })?;
            }
        }
        Ok(())
    }

    /// Drops all sessions, because their board is gone. Returns whether there were any.
    pub fn forget(&self) -> bool {
        let known = std::mem::take(&mut *self.known.lock().unwrap_or_else(PoisonError::into_inner));
        known.own.is_some() || !known.found.is_empty()
    }

    /// Ends the session that was registered here, if there is one, and returns it.
    pub fn leave(&self, board: &Board) -> Result<Option<String>> {
        let own = self.known.lock().unwrap_or_else(PoisonError::into_inner).own.take();
        if let Some(own) = &own {
            board.agents().deregister(own)?;
        }
        Ok(own)
    }
}

/// Reactivates a stale session and refuses the call that found it stale: the caller may rely on holdings that were released.
fn revive_or_refuse(board: &Board, agent: &Agent) -> Result<Error> {
    let back = board.agents().heartbeat(&Heartbeat::of(&agent.session_id))?;
    let message =
        format!("session {} was stale and is active again; what it held was released", agent.label());
    let leases: Vec<Value> =
        back.lost_leases.iter().filter_map(|lease| serde_json::to_value(lease).ok()).collect();
    Ok(Refusal::new(Code::SessionStale, message)
        .hint("claim or acquire again what you still need, then repeat this call")
        .detail("lost", back.lost)
        .detail("lost_leases", leases)
        .into())
}
