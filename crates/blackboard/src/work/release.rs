//! `work release`: releases a claimed item.

use std::time::Duration;

use serde::Serialize;

use super::closed::ClosedItems;
use super::{Status, Work, WorkItem, existing, held_beside};
use crate::agent::{Agent, AgentStatus, existing as existing_agent};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::event::{EventType, NewEvent, TargetType};
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, OnBusy, Prefetch, Range, Row};

/// The item to release.
#[derive(Clone, Debug)]
pub struct Release {
    /// The item.
    pub id: String,
    /// The session that holds it.
    pub session: String,
    /// The fence token that the session expects.
    pub fence: Option<Revision>,
}

impl Release {
    /// An item, whatever its fence token.
    pub fn of(id: &str, session: &str) -> Release {
        Release { id: id.to_owned(), session: session.to_owned(), fence: None }
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
    /// How long it was held.
    pub held_seconds: u64,
    /// The session that held it.
    pub released_by: String,
    /// Whether the release completed it, because it was closed at its source while the session held it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub completed: bool,
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
            let (mut changes, mut released) = decide(&agent, item, &held, release.fence, tx.now())?;
            closed.complete(Some(&release.session), tx.now(), &mut changes);
            released.take_from(&changes);
            if released.completed {
                ends_scopes = closed.end_scopes(tx, &mut changes)?;
            }
            self.board.agents().record_activity(&agent, tx.now(), &mut changes);
            Ok((changes, released))
        })?;
        if ends_scopes {
            // What fails here is left to the next sweep.
            let _ = self.board.end_scopes(OnBusy::Wait);
        }
        Ok(released)
    }
}

fn decide(
    agent: &Agent,
    mut item: WorkItem,
    held: &[WorkItem],
    fence: Option<Revision>,
    now: Timestamp,
) -> Result<(Changes, Released)> {
    let mut changes = Changes::new();
    let released_by = agent.agent_name.clone();
    let is_free = item.status != Status::Completed && item.claimed_by.is_none();
    if is_free && agent.status != AgentStatus::Stale {
        return Ok((
            changes,
            Released { item, released: false, held_seconds: 0, released_by, completed: false },
        ));
    }
    item.must_be_held_by(agent, fence)?;
    let lasted = item.claimed_at.map_or(Duration::ZERO, |since| now.since(since));
    give_back(&mut item, agent, &mut changes);
    if let Some(agent) = agent.without_current_work(&item, held) {
        changes.put(agent);
    }
    let held_seconds = lasted.as_secs();
    Ok((changes, Released { item, released: true, held_seconds, released_by, completed: false }))
}

/// Releases an item on behalf of its holder.
pub(crate) fn give_back(item: &mut WorkItem, agent: &Agent, changes: &mut Changes) {
    let summary = format!("Agent \"{}\" released \"{}\"", agent.agent_name, item.title);
    let mut event = NewEvent::new(EventType::WorkReleased, TargetType::WorkItem, &item.item_id, summary)
        .by(Some(&agent.session_id));
    if let Some(fence) = item.fence {
        event = event.with("fence", fence.get());
    }
    item.set_free();
    item.revision = changes.event(event);
    changes.put(item.clone());
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
            let outcome = decide(&me, held, &[], fence.map(Revision::new), Timestamp::EPOCH)
                .map(|(_, released)| released.released)
                .map_err(|error| error.code());
            assert_eq!(outcome, expected, "{agent} agent, {item} item of {holder:?}, fence {fence:?}");
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
            let (changes, _) =
                decide(&me, items[0].clone(), &items[..others], None, Timestamp::EPOCH).unwrap();
            let put = changes.put.iter().find_map(|row| match row {
                crate::store::Row::Agent(agent) => Some(agent),
                _ => None,
            });
            assert_eq!(put.unwrap_or(&me).current_work.as_deref(), expected);
        }
    }
}
