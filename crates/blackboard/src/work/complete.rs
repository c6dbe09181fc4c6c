//! `work complete`: it is done, and what waited for it may begin.

use std::time::Duration;

use serde::Serialize;

use super::{Status, Work, WorkItem, block, existing};
use crate::agent::existing as existing_agent;
use crate::error::{Code, Refusal, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Range, Wanted};

/// Which item is done.
#[derive(Clone, Debug)]
pub struct Complete {
    /// The item.
    pub id: String,
    /// The session that holds it.
    pub session: String,
    /// The fence at which it thinks to hold it.
    pub fence: Option<Revision>,
    /// What came of it.
    pub summary: Option<String>,
}

impl Complete {
    /// An item, whatever its fence, without a summary.
    pub fn of(id: &str, session: &str) -> Complete {
        Complete { id: id.to_owned(), session: session.to_owned(), fence: None, summary: None }
    }
}

/// An item that is done.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Completed {
    /// The item.
    #[serde(flatten)]
    pub item: WorkItem,
    /// Whether the same session had completed it before.
    pub already_completed: bool,
    /// How long it was held.
    pub held_seconds: u64,
    /// The items that waited for it last, and wait for nothing now.
    pub unblocked: Vec<String>,
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
        let rules = &self.board.settings().text;
        let outcome = complete.summary.as_deref().map(|text| rules.field(text)).transpose()?;
        let wanted = [
            Wanted::Row(Key::Agent(complete.session.clone())),
            Wanted::Row(Key::WorkItem(complete.id.clone())),
            Wanted::Range(Range::dependents_of(&complete.id)),
        ];
        self.board.commit("work complete", &wanted, |tx| {
            let agent = existing_agent(tx, &complete.session)?;
            let item = existing(tx, &complete.id)?;
            let mut changes = Changes::new();
            let held = |item: &WorkItem| {
                let until = item.completed_at.unwrap_or(tx.now());
                item.claimed_at.map_or(Duration::ZERO, |since| until.since(since)).as_secs()
            };
            let is_repeated = item.status == Status::Completed
                && item.claimed_by.as_deref() == Some(&complete.session)
                && complete.fence.is_none_or(|fence| item.fence == Some(fence));
            if is_repeated {
                let held_seconds = held(&item);
                let unblocked = Vec::new();
                return Ok((changes, Completed { item, already_completed: true, held_seconds, unblocked }));
            }
            item.must_be_held_by(&complete.session, complete.fence)?;
            if item.status == Status::Blocked {
                return Err(Refusal::new(
                    Code::WorkBlocked,
                    format!(
                        "work item {} waits for {}",
                        item.item_id,
                        item.blocked_by.as_deref().unwrap_or("others")
                    ),
                )
                .hint(format!("complete that first, or: blackboard work unblock {}", item.item_id))
                .into());
            }
            let held_seconds = held(&item);
            let item = finish(
                item,
                &agent.agent_name,
                &complete.session,
                outcome.as_deref(),
                tx.now(),
                &mut changes,
            );
            let unblocked = block::free_dependents(tx, &item.item_id, Some(&complete.session), &mut changes)?;
            let before = agent.clone();
            self.board.agents().saw(agent, &before, tx.now(), &mut changes);
            Ok((changes, Completed { item, already_completed: false, held_seconds, unblocked }))
        })
    }
}

fn finish(
    mut item: WorkItem,
    name: &str,
    session: &str,
    outcome: Option<&str>,
    now: crate::clock::Timestamp,
    changes: &mut Changes,
) -> WorkItem {
    let summary = format!("Agent \"{name}\" completed \"{}\"", item.title);
    let mut event = NewEvent::new(EventType::WorkCompleted, TargetType::WorkItem, &item.item_id, summary)
        .by(Some(session));
    if let Some(outcome) = outcome {
        event = event.with("summary", outcome);
    }
    item.status = Status::Completed;
    item.completed_at = Some(now);
    item.revision = changes.event(event);
    changes.put(item.clone());
    item
}
