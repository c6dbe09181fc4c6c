//! `agent deregister`: a session ends in good order.

use std::time::Duration;

use serde::Serialize;

use super::{Agent, AgentStatus, Agents, existing};
use crate::error::Result;
use crate::event::{EventType, NewEvent, TargetType};
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Range, Tx, Wanted};
use crate::work::WorkItem;

/// A session that has ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Deregistered {
    /// The session.
    #[serde(flatten)]
    pub agent: Agent,
    /// The work items that it gave back.
    pub released: Vec<String>,
    /// The delegates in the same process, which ended with it.
    pub delegates: Vec<String>,
    /// How long it lasted.
    pub duration_seconds: u64,
    /// Whether it had ended before: then nothing happened now.
    pub already_ended: bool,
}

impl Pending for Deregistered {
    fn resolve(&mut self, first: Revision) {
        self.agent.resolve(first);
    }
}

impl Agents<'_> {
    /// Ends a session: its work is released, and its delegates in the same process end with it, all at once.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register};
    /// # let board = Board::memory();
    /// let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// let ended = board.agents().deregister(&ivy)?;
    /// assert!(ended.released.is_empty());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn deregister(&self, session: &str) -> Result<Deregistered> {
        let wanted = [
            Wanted::Row(Key::Agent(session.to_owned())),
            Wanted::Range(Range::claimed_by(session)),
            Wanted::Range(Range::delegates_of(session)),
        ];
        self.board.commit("agent deregister", &wanted, |tx| {
            let agent = existing(tx, session)?;
            let now = tx.now();
            let duration_seconds = agent.ended_at.unwrap_or(now).since(agent.started_at).as_secs();
            let mut changes = Changes::new();
            if agent.status == AgentStatus::Completed {
                let (released, delegates) = (Vec::new(), Vec::new());
                return Ok((
                    changes,
                    Deregistered { agent, released, delegates, duration_seconds, already_ended: true },
                ));
            }
            let mut released = Vec::new();
            let mut ended = Vec::new();
            let agent = end(tx, agent, &mut changes, &mut released, &mut ended)?;
            let delegates = ended.split_off(1);
            Ok((changes, Deregistered { agent, released, delegates, duration_seconds, already_ended: false }))
        })
    }
}

/// Ends one session, and those that can't outlive it. `ended` names them, the session itself first; so nobody is
/// ended twice, even if another program made a session its own ancestor.
fn end(
    tx: &dyn Tx,
    mut agent: Agent,
    changes: &mut Changes,
    released: &mut Vec<String>,
    ended: &mut Vec<String>,
) -> Result<Agent> {
    let session = agent.session_id.clone();
    ended.push(session.clone());
    for item in tx.rows::<WorkItem>(&Range::claimed_by(&session))? {
        if item.is_held_by(&session) {
            released.push(item.item_id.clone());
            crate::work::give_back(item, &agent, changes);
        }
    }
    for delegate in tx.rows::<Agent>(&Range::delegates_of(&session))? {
        let ends_too = delegate.shares_process && delegate.status.is_live();
        if ends_too && !ended.contains(&delegate.session_id) {
            end(tx, delegate, changes, released, ended)?;
        }
    }
    let lasted = tx.now().since(agent.started_at);
    agent.status = AgentStatus::Completed;
    agent.ended_at = Some(tx.now());
    agent.last_seen_at = tx.now();
    agent.revision = changes.event(goodbye(&agent, lasted));
    changes.put(agent.clone());
    Ok(agent)
}

fn goodbye(agent: &Agent, lasted: Duration) -> NewEvent {
    let summary =
        format!("Agent \"{}\" deregistered after {}", agent.agent_name, crate::duration::human(lasted));
    NewEvent::new(EventType::AgentDeregistered, TargetType::Agent, &agent.session_id, summary)
        .by(Some(&agent.session_id))
}
