//! Who calls, by what the caller says: an author, a session, or neither. A caller that says neither is the operator, who may do
//! everything.

use std::sync::OnceLock;

use crate::agent::{Agent, AgentStatus, not_found as agent_not_found};
use crate::board::Board;
use crate::entry::Actor;
use crate::error::{Code, Error, Refusal, Result};

/// Who uses a scope.
#[derive(Debug)]
pub(super) enum Identity {
    /// A person or a script that says neither an agent nor a session: it may do everything.
    Operator,
    /// An agent: its author's name, its agent's name and its session id, as far as it has them.
    Named { names: Vec<String>, session: Option<String> },
    /// A session that has ended.
    Ended(Box<Agent>),
    /// A session that does not exist.
    Unknown(String),
}

impl Identity {
    pub(super) fn of(actor: &Actor, agent: Option<Agent>) -> Identity {
        match (&actor.author, &actor.session, agent) {
            (None, None, _) => Identity::Operator,
            (_, Some(session), None) => Identity::Unknown(session.clone()),
            (_, Some(_), Some(agent)) if agent.status == AgentStatus::Completed => {
                Identity::Ended(Box::new(agent))
            }
            (author, session, agent) => {
                let names = author.iter().cloned().chain(agent.map(|agent| agent.agent_name));
                Identity::Named { names: names.chain(session.clone()).collect(), session: session.clone() }
            }
        }
    }

    /// The refusal of a session that cannot be used.
    pub(super) fn unusable(&self) -> Option<Error> {
        match self {
            Identity::Operator | Identity::Named { .. } => None,
            Identity::Ended(agent) => Some(agent.has_ended()),
            Identity::Unknown(session) => Some(agent_not_found(session)),
        }
    }

    /// How a refusal names it.
    pub(super) fn label(&self) -> &str {
        match self {
            Identity::Named { names, .. } => names.first().map_or("", String::as_str),
            Identity::Operator | Identity::Ended(_) | Identity::Unknown(_) => "",
        }
    }
}

/// Whether an actor names neither an author nor a session.
pub(super) fn says_nothing(actor: &Actor) -> bool {
    actor.author.is_none() && actor.session.is_none()
}

/// The caller of a board: known, or searched for when the policies of a scope depend on it.
pub(crate) struct CallerSource {
    pub(super) known: OnceLock<Actor>,
    find: Option<Box<FindCaller>>,
}

impl Board {
    /// Who calls, as far as that is stated: the actor, or the caller that the board was given.
    pub(crate) fn stated_caller<'a>(&'a self, actor: &'a Actor) -> &'a Actor {
        let stated = self.caller().filter(|_| says_nothing(actor)).and_then(CallerSource::stated);
        stated.unwrap_or(actor)
    }
}

/// Finds out who calls.
type FindCaller = dyn Fn(&Board) -> Result<Actor> + Send + Sync;

/// The message of the error that makes the board search for its caller. No caller sees it.
const UNIDENTIFIED: &str = "the caller is not known";

impl CallerSource {
    pub(crate) fn known(actor: Actor) -> CallerSource {
        CallerSource { known: OnceLock::from(actor), find: None }
    }

    pub(crate) fn searched_for(
        find: impl Fn(&Board) -> Result<Actor> + Send + Sync + 'static,
    ) -> CallerSource {
        CallerSource { known: OnceLock::new(), find: Some(Box::new(find)) }
    }

    /// The caller that the board was given. One that is searched for may be known or not, so nothing stored depends on it.
    fn stated(&self) -> Option<&Actor> {
        self.known.get().filter(|_| self.find.is_none())
    }

    /// The caller, if it is known. The board searches for it after the error, outside of the transaction.
    pub(super) fn actor(&self) -> Result<Actor> {
        self.known.get().cloned().ok_or_else(|| Refusal::new(Code::NoSession, UNIDENTIFIED).into())
    }

    /// Searches for the caller, if that is the reason of an error. Then the call is repeated.
    pub(crate) fn resolve(&self, board: &Board, error: Error) -> Result<()> {
        let is_reason = error.code() == Code::NoSession && error.to_string() == UNIDENTIFIED;
        match &self.find {
            Some(find) if is_reason && self.known.get().is_none() => {
                let found = find(board)?;
                // Another thread may have found it, too.
                let _ = self.known.set(found);
                Ok(())
            }
            _ => Err(error),
        }
    }
}
