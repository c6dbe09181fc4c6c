//! `work complete`: completes an item and unblocks its dependents.

use std::time::Duration;

use serde::Serialize;

use super::dependencies::{Dependent, dependents_of, update_dependents};
use super::{Status, Work, WorkItem, existing, held_beside};
use crate::agent::{Agent, existing as existing_agent};
use crate::clock::Timestamp;
use crate::error::{Code, Error, Refusal, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::hint::Hint;
use crate::revision::{Pending, Revision};
use crate::scope::EndsWith;
use crate::store::{Changes, Key, Prefetch, Range};
use crate::text::{Cleaner, IN_A_SENTENCE, Kind, TextChanges, excerpt};

/// The item to complete.
#[derive(Clone, Debug)]
pub struct Complete {
    /// The item.
    pub id: String,
    /// The session that holds it.
    pub session: String,
    /// The fence token that the session expects.
    pub fence: Option<Revision>,
    /// The result.
    pub summary: Option<String>,
}

impl Complete {
    /// An item, whatever its fence token, without a summary.
    pub fn of(id: &str, session: &str) -> Complete {
        Complete { id: id.to_owned(), session: session.to_owned(), fence: None, summary: None }
    }
}

/// A completed item.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Completed {
    /// The item.
    #[serde(flatten)]
    pub item: WorkItem,
    /// Whether it is completed now.
    pub completed: bool,
    /// Whether the same session had completed it before.
    pub already_completed: bool,
    /// How long it was held.
    pub held_seconds: u64,
    /// The items that are no longer blocked.
    pub unblocked: Vec<String>,
    /// The changes to the summary.
    #[serde(flatten)]
    pub text: TextChanges,
}

impl Pending for Completed {
    fn resolve(&mut self, first: Revision) {
        self.item.resolve(first);
    }
}

impl Work<'_> {
    /// Completes an item that the session holds.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register, work::{Claim, Complete, Create, Status}};
    /// # let board = Board::memory();
    /// # let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// # board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// let fence = board.work().claim(&Claim::of("fix-tests", &ivy))?.item.fence;
    /// let done = board.work().complete(&Complete { fence, ..Complete::of("fix-tests", &ivy) })?;
    /// assert_eq!(done.item.status, Status::Completed);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn complete(&self, complete: &Complete) -> Result<Completed> {
        let mut cleaner = Cleaner::new(&self.board.settings().text);
        let summary = cleaner.maybe("summary", Kind::Summary, complete.summary.as_ref())?;
        let summary = summary.filter(|summary| !summary.is_empty());
        let complete = Complete { summary, ..complete.clone() };
        let text = cleaner.changes();
        let prefetch = [
            Prefetch::Row(Key::Agent(complete.session.clone())),
            Prefetch::Row(Key::WorkItem(complete.id.clone())),
            Prefetch::Range(Range::dependents_of(&complete.id)),
            Prefetch::Range(Range::held_by(&complete.session)),
            EndsWith::Item(&complete.id).prefetch(),
        ];
        let mut ends_scopes = false;
        let completed = self.board.commit_as(&[&complete.session], "work complete", &prefetch, |tx| {
            ends_scopes = false;
            let agent = existing_agent(tx, &complete.session)?;
            let item = existing(tx, &complete.id)?;
            let dependents = dependents_of(tx, &complete.id, false)?;
            let held = held_beside(tx, &agent, &item)?;
            let (mut changes, mut completed) = decide(&complete, &agent, item, &held, dependents, tx.now())?;
            if !completed.already_completed {
                completed.text.clone_from(&text);
                ends_scopes = EndsWith::Item(&complete.id).end(tx, &mut changes)?;
            }
            self.board.agents().record_activity(&agent, tx.now(), &mut changes);
            Ok((changes, completed))
        })?;
        self.board.end_scopes_of(ends_scopes.then_some(EndsWith::Item(&complete.id)));
        Ok(completed)
    }
}

fn decide(
    complete: &Complete,
    agent: &Agent,
    mut item: WorkItem,
    held: &[WorkItem],
    dependents: Vec<Dependent>,
    now: Timestamp,
) -> Result<(Changes, Completed)> {
    let until = item.completed_at.unwrap_or(now);
    let held_seconds = item.claimed_at.map_or(Duration::ZERO, |since| until.since(since)).as_secs();
    let mut changes = Changes::new();
    let is_repeated = item.status == Status::Completed
        && item.claimed_by.as_deref() == Some(&agent.session_id)
        && complete.fence.is_none_or(|fence| item.fence == Some(fence));
    if is_repeated {
        let (unblocked, text) = (Vec::new(), TextChanges::default());
        return Ok((
            changes,
            Completed { item, completed: true, already_completed: true, held_seconds, unblocked, text },
        ));
    }
    item.must_be_held_by(agent, complete.fence)?;
    if item.status == Status::Blocked {
        return Err(is_blocked(&item));
    }
    item.status = Status::Completed;
    item.completed_at = Some(now);
    item.summary.clone_from(&complete.summary);
    item.revision = changes.event(completion(&item, agent, complete.summary.as_deref()));
    changes.put(item.clone());
    if let Some(agent) = agent.without_current_work(&item, held) {
        changes.put(agent);
    }
    let unblocked = update_dependents(dependents, Some(&agent.session_id), &mut changes);
    let text = TextChanges::default();
    Ok((
        changes,
        Completed { item, completed: true, already_completed: false, held_seconds, unblocked, text },
    ))
}

fn completion(item: &WorkItem, agent: &Agent, outcome: Option<&str>) -> NewEvent {
    let summary = format!("Agent \"{}\" completed \"{}\"", agent.agent_name, item.title);
    let event = |summary| {
        NewEvent::new(EventType::WorkCompleted, TargetType::WorkItem, &item.item_id, summary)
            .by(Some(&agent.session_id))
    };
    match outcome {
        Some(outcome) => {
            event(format!("{summary}: {}", excerpt(outcome, IN_A_SENTENCE))).with("summary", outcome)
        }
        None => event(summary),
    }
}

fn is_blocked(item: &WorkItem) -> Error {
    let id = &item.item_id;
    if let Some(reason) = item.hold().on_hold.filter(|_| item.blocked_by.is_none()) {
        return Refusal::new(Code::WorkBlocked, format!("cannot complete {id}: it is on hold: {reason}"))
            .hint(Hint::EndHold(id.clone()))
            .detail("on_hold", reason)
            .into();
    }
    let blocker = item.blocked_by.as_deref().unwrap_or("others");
    Refusal::new(Code::WorkBlocked, format!("cannot complete {id}: it is blocked by {blocker}"))
        .hint(Hint::CompleteOrUnblock { item: id.clone(), blocker: blocker.to_owned() })
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::AgentStatus;
    use crate::store::conformance::{an_agent, an_item};

    #[test]
    fn item_is_completed_only_by_its_holder() {
        use AgentStatus::{Active, Stale};
        use Status::{Available, Blocked, Claimed, Completed};
        let (done, repeated) = (Ok((false, 1)), Ok((true, 0)));
        for (agent, item, holder, fence, expected) in [
            (Active, Claimed, Some("me"), None, done),
            (Active, Claimed, Some("me"), Some(7), done),
            (Active, Claimed, Some("me"), Some(6), Err(Code::StaleFence)),
            (Active, Claimed, Some("other"), None, Err(Code::NotHolder)),
            (Active, Available, None, None, Err(Code::NotHolder)),
            (Active, Blocked, Some("me"), None, Err(Code::WorkBlocked)),
            (Active, Completed, Some("me"), None, repeated),
            (Active, Completed, Some("me"), Some(6), Err(Code::AlreadyCompleted)),
            (Active, Completed, Some("other"), None, Err(Code::AlreadyCompleted)),
            (Stale, Completed, Some("me"), Some(7), repeated),
            (Stale, Claimed, Some("other"), None, Err(Code::SessionStale)),
            (Stale, Available, None, None, Err(Code::SessionStale)),
        ] {
            let complete = Complete { fence: fence.map(Revision::new), ..Complete::of("x", "me") };
            let me = Agent { status: agent, ..an_agent("me") };
            let held = WorkItem {
                status: item,
                claimed_by: holder.map(str::to_owned),
                fence: holder.map(|_| Revision::new(7)),
                ..an_item("x")
            };
            let outcome = decide(&complete, &me, held, &[], Vec::new(), Timestamp::EPOCH)
                .map(|(changes, completed)| (completed.already_completed, changes.events.len()))
                .map_err(|error| error.code());
            assert_eq!(outcome, expected, "{agent} agent, {item} item of {holder:?}, fence {fence:?}");
        }
    }
}
