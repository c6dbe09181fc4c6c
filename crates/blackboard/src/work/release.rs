//! `work release`: releases a claimed item.

use std::time::Duration;

use serde::Serialize;

use super::closed::ClosedItems;
use super::dependencies::blocked_event;
use super::{Status, Work, WorkItem, clean_reason, existing, held_beside};
use crate::agent::{Agent, AgentStatus, existing as existing_agent};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::event::{EventType, NewEvent, TargetType};
use crate::revision::{Pending, Revision};
use crate::scope::EndsWith;
use crate::store::{Changes, Key, Prefetch, Range, Row};
use crate::text::{Cleaner, IN_A_SENTENCE, TextChanges, excerpt};

/// The item to release.
#[derive(Clone, Debug)]
pub struct Release {
    /// The item.
    pub id: String,
    /// The session that holds it.
    pub session: String,
    /// The fence token that the session expects.
    pub fence: Option<Revision>,
    /// Whether the work failed. After the third failure the item is on hold.
    pub failed: bool,
    /// Why it is released.
    pub reason: Option<String>,
}

impl Release {
    /// An item, whatever its fence token.
    pub fn of(id: &str, session: &str) -> Release {
        let (id, session) = (id.to_owned(), session.to_owned());
        Release { id, session, fence: None, failed: false, reason: None }
    }
}

/// The result of a release.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Released {
    /// The item.
    #[serde(flatten)]
    pub item: WorkItem,
    /// Whether this call released it. `false` if no session held it.
    pub released: bool,
    /// Its status before.
    pub previous_status: Status,
    /// How often it has failed, if this release is a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_count: Option<u32>,
    /// Why it is on hold now, if this failure was one too many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_hold: Option<String>,
    /// How long it was held.
    pub held_seconds: u64,
    /// The session that held it.
    pub released_by: String,
    /// Whether the release completed it, because it was closed at its source while the session held it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub completed: bool,
    /// The changes to the reason.
    #[serde(flatten)]
    pub text: TextChanges,
}

impl Released {
    /// Takes over the item as the changes put it.
    fn take_from(&mut self, changes: &Changes) {
        let put = changes.put.iter().find_map(|row| match row {
            Row::WorkItem(put) if put.item_id == self.item.item_id => Some(put),
            _ => None,
        });
        if let Some(put) = put {
            self.item = put.clone();
            self.completed = put.status == Status::Completed;
        }
    }
}

impl Pending for Released {
    fn resolve(&mut self, first: Revision) {
        self.item.resolve(first);
    }
}

impl Work<'_> {
    /// Releases an item. An item without a holder does not change. One that was closed at its source meanwhile is completed.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register, work::{Claim, Create, Release}};
    /// # let board = Board::memory();
    /// # let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// # board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// board.work().claim(&Claim::of("fix-tests", &ivy))?;
    /// assert!(board.work().release(&Release::of("fix-tests", &ivy))?.released);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn release(&self, release: &Release) -> Result<Released> {
        let mut cleaner = Cleaner::new(&self.board.settings().text);
        let reason = clean_reason(&mut cleaner, release.reason.as_ref())?;
        let release = Release { reason, ..release.clone() };
        let text = cleaner.changes();
        let prefetch = [
            Prefetch::Row(Key::Agent(release.session.clone())),
            Prefetch::Row(Key::WorkItem(release.id.clone())),
            Prefetch::Range(Range::held_by(&release.session)),
        ];
        let mut ends_scopes = false;
        let released = self.board.commit_as(&[&release.session], "work release", &prefetch, |tx| {
            ends_scopes = false;
            let agent = existing_agent(tx, &release.session)?;
            let item = existing(tx, &release.id)?;
            let held = held_beside(tx, &agent, &item)?;
            let is_held = item.is_held_by(&release.session);
            let closed = ClosedItems::among(tx, is_held.then_some(&item))?;
            let (mut changes, mut released) = decide(&release, &agent, item, &held, tx.now())?;
            closed.complete(Some(&release.session), tx.now(), &mut changes);
            released.take_from(&changes);
            if released.released {
                released.text.clone_from(&text);
            }
            if released.completed {
                ends_scopes = closed.end_scopes(tx, &mut changes)?;
            }
            self.board.agents().record_activity(&agent, tx.now(), &mut changes);
            Ok((changes, released))
        })?;
        self.board.end_scopes_of(ends_scopes.then_some(EndsWith::Item(&release.id)));
        Ok(released)
    }
}

fn decide(
    release: &Release,
    agent: &Agent,
    mut item: WorkItem,
    held: &[WorkItem],
    now: Timestamp,
) -> Result<(Changes, Released)> {
    let mut changes = Changes::new();
    let mut released = Released {
        item: item.clone(),
        released: false,
        previous_status: item.status,
        failure_count: None,
        on_hold: None,
        held_seconds: 0,
        released_by: agent.agent_name.clone(),
        completed: false,
        text: TextChanges::default(),
    };
    let is_free = item.status != Status::Completed && item.claimed_by.is_none();
    if is_free && agent.status != AgentStatus::Stale {
        return Ok((changes, released));
    }
    item.must_be_held_by(agent, release.fence)?;
    released.held_seconds = item.claimed_at.map_or(Duration::ZERO, |since| now.since(since)).as_secs();
    released.released = true;
    let mut event = release_event(&item, agent, release.reason.as_deref());
    item.set_free();
    if release.failed {
        let after = item.hold().after_failure(release.reason.clone(), now);
        item.set_hold(&after);
        event = event.with("failed", true).with("failure_count", after.failure_count);
        (released.failure_count, released.on_hold) = (Some(after.failure_count), after.on_hold);
    }
    item.revision = changes.event(event);
    if let Some(reason) = &released.on_hold {
        item.status = Status::Blocked;
        let summary = format!("\"{}\" is on hold: {}", item.title, excerpt(reason, IN_A_SENTENCE));
        let event = blocked_event(&item, &[], summary, Some(&agent.session_id));
        item.revision = changes.event(event.with("on_hold", reason.as_str()));
    }
    changes.put(item.clone());
    if let Some(agent) = agent.without_current_work(&item, held) {
        changes.put(agent);
    }
    released.item = item;
    Ok((changes, released))
}

/// Releases an item on behalf of its holder.
pub(crate) fn give_back(item: &mut WorkItem, agent: &Agent, changes: &mut Changes) {
    let event = release_event(item, agent, None);
    item.set_free();
    item.revision = changes.event(event);
    changes.put(item.clone());
}

fn release_event(item: &WorkItem, agent: &Agent, reason: Option<&str>) -> NewEvent {
    let why = reason.map(|reason| format!(": {}", excerpt(reason, IN_A_SENTENCE))).unwrap_or_default();
    let summary = format!("Agent \"{}\" released \"{}\"{why}", agent.agent_name, item.title);
    let mut event = NewEvent::new(EventType::WorkReleased, TargetType::WorkItem, &item.item_id, summary)
        .by(Some(&agent.session_id));
    if let Some(fence) = item.fence {
        event = event.with("fence", fence.get());
    }
    if let Some(reason) = reason {
        event = event.with("reason", reason);
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;
    use crate::store::conformance::{an_agent, an_item};

    #[test]
    fn item_is_released_only_by_its_holder() {
        use AgentStatus::{Active, Stale};
        use Status::{Available, Blocked, Claimed, Completed};
        for (agent, item, holder, fence, expected) in [
            (Active, Claimed, Some("me"), None, Ok(true)),
            (Active, Blocked, Some("me"), Some(7), Ok(true)),
            (Active, Claimed, Some("me"), Some(6), Err(Code::StaleFence)),
            (Active, Available, None, Some(6), Ok(false)),
            (Active, Claimed, Some("other"), None, Err(Code::NotHolder)),
            (Active, Completed, Some("me"), None, Err(Code::AlreadyCompleted)),
            (Stale, Available, None, None, Err(Code::SessionStale)),
            (Stale, Claimed, Some("other"), None, Err(Code::SessionStale)),
        ] {
            let me = Agent { status: agent, ..an_agent("me") };
            let held = WorkItem {
                status: item,
                claimed_by: holder.map(str::to_owned),
                fence: holder.map(|_| Revision::new(7)),
                ..an_item("x")
            };
            let release = Release { fence: fence.map(Revision::new), ..Release::of("x", "me") };
            let outcome = decide(&release, &me, held, &[], Timestamp::EPOCH)
                .map(|(_, released)| released.released)
                .map_err(|error| error.code());
            assert_eq!(outcome, expected, "{agent} agent, {item} item of {holder:?}, fence {fence:?}");
        }
    }

    #[test]
    fn third_failed_release_puts_the_item_on_hold() {
        let held = |item: &WorkItem| WorkItem {
            status: Status::Claimed,
            claimed_by: Some("me".to_owned()),
            ..item.clone()
        };
        let release = Release { failed: true, reason: Some("red".to_owned()), ..Release::of("x", "me") };
        let mut item = an_item("x");
        for (count, status, events) in
            [(1, Status::Available, 1), (2, Status::Available, 1), (3, Status::Blocked, 2)]
        {
            let (changes, released) =
                decide(&release, &an_agent("me"), held(&item), &[], Timestamp::EPOCH).unwrap();
            assert_eq!((released.failure_count, released.item.status), (Some(count), status));
            assert_eq!(changes.events.len(), events);
            assert_eq!(released.on_hold.is_some(), status == Status::Blocked);
            item = released.item;
        }
    }

    #[test]
    fn released_item_is_no_longer_current_work() {
        let held = |id: &str, session: &str, fence| WorkItem {
            claimed_by: Some(session.to_owned()),
            title: format!("Title of {id}"),
            fence: Some(Revision::new(fence)),
            ..an_item(id)
        };
        let items = [held("x", "me", 9), held("a", "me", 3), held("b", "me", 5), held("c", "other", 7)];
        for (current_work, own_work, others, expected) in [
            ("Title of x", None, 1, None),
            ("Lunch", None, 1, Some("Lunch")),
            ("Lunch", Some("Lunch"), 4, Some("Lunch")),
            ("Title of x", Some("Lunch"), 1, Some("Lunch")),
            ("Title of x", Some("Title of x"), 1, None),
            ("Title of x", None, 2, Some("Title of a")),
            ("Title of x", Some("Lunch"), 4, Some("Title of b")),
        ] {
            let own_work = own_work.map(str::to_owned);
            let me = Agent { current_work: Some(current_work.to_owned()), own_work, ..an_agent("me") };
            let release = Release::of("x", "me");
            let (changes, _) =
                decide(&release, &me, items[0].clone(), &items[..others], Timestamp::EPOCH).unwrap();
            let put = changes.put.iter().find_map(|row| match row {
                crate::store::Row::Agent(agent) => Some(agent),
                _ => None,
            });
            assert_eq!(put.unwrap_or(&me).current_work.as_deref(), expected);
        }
    }
}
