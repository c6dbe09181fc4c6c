//! `work delete`: deletes an item.

use serde::Serialize;

use super::dependencies::{Dependent, dependents_of, update_dependents};
use super::{Dependency, Holder, Status, Work, WorkItem, existing};
use crate::agent::{HeartbeatRow, prefetch_agent};
use crate::error::{AgeKind, Code, Refusal, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::hint::Hint;
use crate::revision::{Pending, Revision};
use crate::scope::EndsWith;
use crate::store::{Changes, Key, Prefetch, Range};

/// A deleted item.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Deleted {
    /// Its id.
    pub item_id: String,
    /// Its title.
    pub title: String,
    /// Whether it was deleted.
    pub deleted: bool,
    /// Its status before.
    pub previous_status: Status,
    /// The session that held or completed it.
    pub was_claimed_by: Option<String>,
    /// The items that are no longer blocked.
    pub unblocked: Vec<String>,
}

impl Pending for Deleted {
    fn resolve(&mut self, _first: Revision) {}
}

impl Work<'_> {
    /// Deletes an item. Without force, an item that is held or blocks others is refused.
    ///
    /// ```
    /// # use blackboard::{Board, work::Create};
    /// # let board = Board::memory();
    /// board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// assert_eq!(board.work().delete("fix-tests", false, None)?.title, "Fix the tests");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn delete(&self, id: &str, force: bool, session: Option<&str>) -> Result<Deleted> {
        let mut prefetch = vec![
            Prefetch::Row(Key::WorkItem(id.to_owned())),
            Prefetch::Range(Range::blockers_of(id)),
            Prefetch::Range(Range::dependents_of(id)),
            Prefetch::Range(Range::heartbeats_about(id)),
            EndsWith::Item(id).prefetch(),
        ];
        prefetch.extend(prefetch_agent(session));
        let mut ends_scopes = false;
        let deleted = self.board.commit_as(session.as_slice(), "work delete", &prefetch, |tx| {
            let item = existing(tx, id)?;
            let surroundings = RelatedItems {
                holder: Holder::of(tx, &item)?,
                blockers: tx.rows(&Range::blockers_of(id))?,
                waiting: tx.rows(&Range::dependents_of(id))?,
                dependents: dependents_of(tx, id, false)?,
                heartbeats: tx.rows(&Range::heartbeats_about(id))?,
            };
            let (mut changes, deleted) = decide(item, surroundings, force, session)?;
            ends_scopes = EndsWith::Item(id).end(tx, &mut changes)?;
            self.board.agents().record_activity_of(tx, session, &mut changes)?;
            Ok((changes, deleted))
        })?;
        self.board.end_scopes_of(ends_scopes.then_some(EndsWith::Item(id)));
        Ok(deleted)
    }
}

/// The blockers and dependents of an item, and the heartbeats that name it.
#[derive(Default)]
struct RelatedItems {
    holder: Option<Holder>,
    blockers: Vec<Dependency>,
    waiting: Vec<Dependency>,
    dependents: Vec<Dependent>,
    heartbeats: Vec<HeartbeatRow>,
}

fn decide(
    item: WorkItem,
    surroundings: RelatedItems,
    force: bool,
    session: Option<&str>,
) -> Result<(Changes, Deleted)> {
    let RelatedItems { holder, blockers, waiting, dependents, heartbeats } = surroundings;
    if !force {
        refuse_if_needed(&item, &waiting)?;
    }
    let mut changes = Changes::new();
    let unblocked = update_dependents(dependents, session, &mut changes);
    for dependency in blockers.into_iter().chain(waiting) {
        changes.remove(Key::Dependency(dependency.item_id, dependency.blocked_by));
    }
    let summary = format!("Work item \"{}\" deleted (was {})", item.title, item.status);
    let deleted = NewEvent::new(EventType::WorkDeleted, TargetType::WorkItem, &item.item_id, summary);
    let item = WorkItem { revision: changes.event(deleted.by(session)), ..item };
    if let Some(agent) = holder.and_then(|holder| holder.without(&item)) {
        changes.put(agent);
    }
    let WorkItem { item_id, title, status: previous_status, claimed_by: was_claimed_by, .. } = item;
    for heartbeat in heartbeats {
        changes.put(HeartbeatRow { work_item_id: None, ..heartbeat });
    }
    changes.remove(Key::WorkItem(item_id.clone()));
    Ok((changes, Deleted { item_id, title, deleted: true, previous_status, was_claimed_by, unblocked }))
}

fn refuse_if_needed(item: &WorkItem, dependents: &[Dependency]) -> Result<()> {
    let id = &item.item_id;
    if item.status != Status::Completed && item.claimed_by.is_some() {
        return Err(Refusal::new(
            Code::InUse,
            format!("cannot delete work item {id}: it is claimed by {}", item.holder()),
        )
        .age(AgeKind::Held, item.claimed_at, "")
        .hint(Hint::DeleteItemAnyway(id.clone()))
        .held_by(item.claimed_by.clone(), item.claimed_by_name.clone(), item.claimed_at)
        .into());
    }
    if item.status != Status::Completed && !dependents.is_empty() {
        let waiting: Vec<_> = dependents.iter().map(|dependency| dependency.item_id.clone()).collect();
        return Err(Refusal::new(
            Code::InUse,
            format!("cannot delete work item {id}: it blocks {}", waiting.join(", ")),
        )
        .hint(Hint::DeleteItemAnyway(id.clone()))
        .detail("dependents", waiting)
        .into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::store::conformance::an_item;

    #[test]
    fn held_or_blocking_item_needs_force() {
        use Status::{Available, Blocked, Claimed, Completed};
        for (status, holder, is_waited_for, expected) in [
            (Available, None, false, Ok(2)),
            (Claimed, Some("me"), false, Err(Code::InUse)),
            (Blocked, Some("me"), false, Err(Code::InUse)),
            (Completed, Some("me"), false, Ok(2)),
            (Available, None, true, Err(Code::InUse)),
            (Completed, Some("me"), true, Ok(3)),
        ] {
            let delete = |force| {
                let item = WorkItem { status, claimed_by: holder.map(str::to_owned), ..an_item("x") };
                let dependency = |item: &str, blocker: &str| Dependency {
                    item_id: item.to_owned(),
                    blocked_by: blocker.to_owned(),
                    created_at: Timestamp::EPOCH,
                };
                let surroundings = RelatedItems {
                    holder: None,
                    blockers: vec![dependency("x", "a")],
                    waiting: is_waited_for.then(|| dependency("y", "x")).into_iter().collect(),
                    dependents: Vec::new(),
                    heartbeats: Vec::new(),
                };
                let decided = decide(item, surroundings, force, None);
                decided.map(|(changes, _)| changes.remove.len()).map_err(|error| error.code())
            };
            let context = format!("{status} item of {holder:?}, waited for: {is_waited_for}");
            assert_eq!(delete(false), expected, "{context}");
            assert!(delete(true).is_ok(), "{context}");
        }
    }
}
