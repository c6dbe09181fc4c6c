//! `agent deregister`: ends a session normally.

use std::time::Duration;

use serde::Serialize;

use super::{Agent, AgentStatus, Agents, existing};
use crate::clock::Timestamp;
use crate::entry::{Lease, Leases, release_leases};
use crate::error::Result;
use crate::event::{EventType, NewEvent, TargetType};
use crate::revision::{Pending, Revision};
use crate::scope::EndsWith;
use crate::store::{Changes, Key, Prefetch, Range, Tx};
use crate::work::{ClosedItems, WorkItem};

/// A session that has ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Deregistered {
    /// The session.
    #[serde(flatten)]
    pub agent: Agent,
    /// The work items that it released.
    pub released: Vec<String>,
    /// How many these are.
    pub released_count: usize,
    /// Its other holdings, which were released: locks, file reservations, leased entries.
    pub leases: Vec<Lease>,
    /// The delegates in the same process, which ended with it.
    pub delegates: Vec<String>,
    /// How long it lasted.
    pub duration_seconds: u64,
    /// Whether it had ended before. Then the call changed nothing.
    pub already_ended: bool,
}

impl Pending for Deregistered {
    fn resolve(&mut self, first: Revision) {
        self.agent.resolve(first);
    }
}

impl Agents<'_> {
    /// Ends a session. Its holdings are released and its delegates in the same process end, in the same commit.
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
        let prefetch = [
            Prefetch::Row(Key::Agent(session.to_owned())),
            Prefetch::Range(Range::claimed_by(session)),
            Prefetch::Range(Range::leased_by(session)),
            Prefetch::Range(Range::delegates_of(session)),
            EndsWith::Session(session).prefetch(),
            EndsWith::Memory(session).prefetch(),
        ];
        let (mut with_memory, mut with_scopes) = (Vec::new(), Vec::new());
        let ended = self.board.commit("agent deregister", &prefetch, |tx| {
            let (first, delegates) = ending_with(tx, session)?;
            let held = delegates.iter().chain([&first]).flat_map(|ending| &ending.held);
            let closed = ClosedItems::among(tx, held)?;
            let (mut changes, ended) = decide((first, delegates), tx.now());
            closed.complete(Some(session), tx.now(), &mut changes);
            with_scopes.clear();
            with_memory.clear();
            if !ended.already_ended {
                // A sweep deletes the scopes of items.
                closed.end_scopes(tx, &mut changes)?;
                for session in ended.delegates.iter().map(String::as_str).chain([session]) {
                    // Records leave before local scopes are deleted.
                    if EndsWith::Memory(session).end(tx, &mut changes)? {
                        with_memory.push(session.to_owned());
                    }
                    if EndsWith::Session(session).end(tx, &mut changes)? {
                        with_scopes.push(session.to_owned());
                    }
                }
            }
            Ok((changes, ended))
        })?;
        self.board.end_scopes_of(with_memory.iter().map(|session| EndsWith::Memory(session)));
        self.board.end_scopes_of(with_scopes.iter().map(|session| EndsWith::Session(session)));
        Ok(ended)
    }
}

/// A session that is about to end, and what it holds.
struct EndingSession {
    agent: Agent,
    held: Vec<WorkItem>,
    leased: Leases,
}

/// The holdings that sessions released.
#[derive(Default)]
struct ReleasedHoldings {
    items: Vec<String>,
    leases: Vec<Lease>,
}

/// The session, followed by the delegates that end with it. No session ends twice, even if another program made a
/// session its own ancestor.
fn ending_with(tx: &dyn Tx, session: &str) -> Result<(EndingSession, Vec<EndingSession>)> {
    let first = EndingSession::read(tx, existing(tx, session)?)?;
    let mut delegates: Vec<EndingSession> = Vec::new();
    let mut waiting = live_delegates(tx, session)?;
    while let Some(delegate) = waiting.pop() {
        let id = &delegate.session_id;
        if id != session && !delegates.iter().any(|known| known.agent.session_id == *id) {
            tx.prefetch(&[
                Prefetch::Range(Range::claimed_by(id)),
                Prefetch::Range(Range::leased_by(id)),
                Prefetch::Range(Range::delegates_of(id)),
                EndsWith::Session(id).prefetch(),
                EndsWith::Memory(id).prefetch(),
            ])?;
            waiting.extend(live_delegates(tx, id)?);
            delegates.push(EndingSession::read(tx, delegate)?);
        }
    }
    Ok((first, delegates))
}

/// The delegates of a session that run in its process, the last one first.
fn live_delegates(tx: &dyn Tx, session: &str) -> Result<Vec<Agent>> {
    let mut delegates = tx.rows::<Agent>(&Range::delegates_of(session))?;
    delegates.retain(|delegate| delegate.shares_process && delegate.status.is_live());
    delegates.reverse();
    Ok(delegates)
}

impl EndingSession {
    fn read(tx: &dyn Tx, agent: Agent) -> Result<EndingSession> {
        let mut held = tx.rows::<WorkItem>(&Range::claimed_by(&agent.session_id))?;
        held.retain(|item| item.is_held_by(&agent.session_id));
        let leased = Leases::of(tx, &agent.session_id)?;
        Ok(EndingSession { agent, held, leased })
    }
}

fn decide(
    (first, delegates): (EndingSession, Vec<EndingSession>),
    now: Timestamp,
) -> (Changes, Deregistered) {
    let agent = &first.agent;
    let duration_seconds = agent.ended_at.unwrap_or(now).since(agent.started_at).as_secs();
    let mut changes = Changes::new();
    let mut given_back = ReleasedHoldings::default();
    if agent.status == AgentStatus::Completed {
        let ended = Deregistered {
            agent: first.agent,
            released: Vec::new(),
            released_count: 0,
            leases: Vec::new(),
            delegates: Vec::new(),
            duration_seconds,
            already_ended: true,
        };
        return (changes, ended);
    }
    // The event of the session itself comes after those of its delegates.
    let mut ended = Vec::new();
    for delegate in delegates.into_iter().rev() {
        ended.push(end(delegate, now, &mut changes, &mut given_back).session_id);
    }
    ended.reverse();
    let agent = end(first, now, &mut changes, &mut given_back);
    let ReleasedHoldings { items: released, leases } = given_back;
    let ended = Deregistered {
        agent,
        released_count: released.len(),
        released,
        leases,
        delegates: ended,
        duration_seconds,
        already_ended: false,
    };
    (changes, ended)
}

/// Ends one session and releases its holdings.
fn end(
    ending: EndingSession,
    now: Timestamp,
    changes: &mut Changes,
    given_back: &mut ReleasedHoldings,
) -> Agent {
    let EndingSession { mut agent, held, leased } = ending;
    let mut titles = Vec::new();
    for mut item in held {
        crate::work::give_back(&mut item, &agent, changes);
        titles.push(item.title);
        given_back.items.push(item.item_id);
    }
    agent.stop_working_on(&titles);
    given_back.leases.extend(release_leases(&agent, AgentStatus::Completed, leased, now, changes));
    let lasted = now.since(agent.started_at);
    agent.status = AgentStatus::Completed;
    agent.ended_at = Some(now);
    agent.last_seen_at = now;
    agent.revision = changes.event(goodbye(&agent, lasted));
    changes.put(agent.clone());
    agent
}

fn goodbye(agent: &Agent, lasted: Duration) -> NewEvent {
    let summary =
        format!("Agent \"{}\" deregistered after {}", agent.agent_name, crate::duration::human(lasted));
    NewEvent::new(EventType::AgentDeregistered, TargetType::Agent, &agent.session_id, summary)
        .by(Some(&agent.session_id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::{an_agent, an_item};

    #[test]
    fn session_ends_once_and_releases_its_holdings() {
        use AgentStatus::{Active, Completed, Idle, Stale};
        for (status, held, delegates, event_count) in
            [(Active, 0, 0, 1), (Idle, 2, 0, 3), (Active, 1, 2, 4), (Stale, 0, 0, 1), (Completed, 0, 0, 0)]
        {
            let ending = |session: &str| EndingSession {
                agent: an_agent(session),
                held: Vec::new(),
                leased: Leases::default(),
            };
            let first = EndingSession {
                agent: Agent { status, current_work: Some(an_item("x").title), ..an_agent("me") },
                held: (0..held).map(|number| an_item(&number.to_string())).collect(),
                leased: Leases::default(),
            };
            let others = (0..delegates).map(|number| ending(&number.to_string())).collect();
            let (changes, ended) = decide((first, others), Timestamp::EPOCH);
            assert_eq!(changes.events.len(), event_count, "{status} agent with {held} items");
            assert_eq!((ended.released.len(), ended.delegates.len()), (held, delegates));
            assert_eq!(ended.already_ended, status == Completed);
            assert_eq!(ended.agent.current_work.is_none(), held > 0, "{status} agent with {held} items");
        }
    }
}
