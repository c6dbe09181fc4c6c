//! `work delete`: the item is gone.

use serde::Serialize;

use super::{Dependency, Status, Work, WorkItem, block, existing};
use crate::error::{Code, Refusal, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Range, Wanted};

/// An item that is gone.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Deleted {
    /// Its id.
    pub item_id: String,
    /// What was to be done.
    pub title: String,
    /// How far it was.
    pub previous_status: Status,
    /// The items that waited for it last.
    pub unblocked: Vec<String>,
}

impl Pending for Deleted {
    fn resolve(&mut self, _first: Revision) {}
}

impl Work<'_> {
    /// Deletes an item. Unless forced, not one that a session holds or that others wait for.
    ///
    /// ```
    /// # use blackboard::{Board, work::Create};
    /// # let board = Board::memory();
    /// board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// assert_eq!(board.work().delete("fix-tests", false, None)?.title, "Fix the tests");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn delete(&self, id: &str, force: bool, session: Option<&str>) -> Result<Deleted> {
        let wanted = [
            Wanted::Row(Key::WorkItem(id.to_owned())),
            Wanted::Range(Range::blockers_of(id)),
            Wanted::Range(Range::dependents_of(id)),
        ];
        self.board.commit("work delete", &wanted, |tx| {
            let item = existing(tx, id)?;
            let dependents = tx.rows::<Dependency>(&Range::dependents_of(id))?;
            if !force {
                refuse_if_needed(&item, &dependents)?;
            }
            let mut changes = Changes::new();
            self.board.agents().saw_session(tx, session, &mut changes)?;
            let unblocked = block::free_dependents(tx, id, session, &mut changes)?;
            for dependency in tx.rows::<Dependency>(&Range::blockers_of(id))?.into_iter().chain(dependents) {
                changes.remove(Key::Dependency(dependency.item_id, dependency.blocked_by));
            }
            changes.detach_heartbeats_from.push(id.to_owned());
            changes.remove(Key::WorkItem(id.to_owned()));
            let summary = format!("\"{}\" was deleted (was {})", item.title, item.status);
            changes
                .event(NewEvent::new(EventType::WorkDeleted, TargetType::WorkItem, id, summary).by(session));
            let deleted =
                Deleted { item_id: item.item_id, title: item.title, previous_status: item.status, unblocked };
            Ok((changes, deleted))
        })
    }
}

fn refuse_if_needed(item: &WorkItem, dependents: &[Dependency]) -> Result<()> {
    let id = &item.item_id;
    if item.status != Status::Completed && item.claimed_by.is_some() {
        return Err(Refusal::new(Code::InUse, format!("work item {id} is held by {}", item.holder()))
            .hint(format!("to delete it all the same: blackboard work delete {id} --force"))
            .held_by(item.claimed_by.clone(), item.claimed_by_name.clone(), item.claimed_at)
            .into());
    }
    if item.status != Status::Completed && !dependents.is_empty() {
        let waiting: Vec<_> = dependents.iter().map(|dependency| dependency.item_id.clone()).collect();
        return Err(Refusal::new(
            Code::InUse,
            format!("work item {id} is what {} waits for", waiting.join(", ")),
        )
        .hint(format!("to delete it all the same: blackboard work delete {id} --force"))
        .detail("dependents", waiting)
        .into());
    }
    Ok(())
}
