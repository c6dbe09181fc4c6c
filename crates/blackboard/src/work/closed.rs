//! Items that were closed at their source while a session held them: their release completes them.
//!
//! An import never touches a claim. It notes that the item is closed ([`Outside`](super::details::Outside)), and every verb
//! that releases items calls [`ClosedItems::complete`] at the end of its changes.

use std::collections::BTreeSet;

use super::dependencies::{Dependent, dependents_of_all, follow_blockers};
use super::{Status, WorkItem};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::event::{EventType, NewEvent, TargetType};
use crate::scope::EndsWith;
use crate::store::{Changes, Row, Tx};

/// Those of some held items that complete when they are released, and what they block.
#[derive(Default)]
pub(crate) struct ClosedItems {
    ids: BTreeSet<String>,
    dependents: Vec<Dependent>,
}

impl ClosedItems {
    /// The closed ones among these items. Reads more only if there are any.
    pub(crate) fn among<'i>(
        tx: &dyn Tx,
        held: impl IntoIterator<Item = &'i WorkItem>,
    ) -> Result<ClosedItems> {
        let closed = held.into_iter().filter(|item| item.outside().completes_on_release);
        let ids: BTreeSet<String> = closed.map(|item| item.item_id.clone()).collect();
        if ids.is_empty() {
            return Ok(ClosedItems::default());
        }
        tx.prefetch(&ids.iter().map(|id| EndsWith::Item(id).prefetch()).collect::<Vec<_>>())?;
        let dependents = dependents_of_all(tx, &ids, false)?;
        Ok(ClosedItems { ids, dependents })
    }

    /// Whether there are any.
    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Ends the scopes that end with these items. Returns whether there are any.
    pub(crate) fn end_scopes(&self, tx: &dyn Tx, changes: &mut Changes) -> Result<bool> {
        let mut ends_scopes = false;
        for id in &self.ids {
            ends_scopes |= EndsWith::Item(id).end(tx, changes)?;
        }
        Ok(ends_scopes)
    }

    /// Completes those of these items that the changes release, and updates what they block.
    pub(crate) fn complete(&self, session: Option<&str>, now: Timestamp, changes: &mut Changes) {
        if self.is_empty() {
            return;
        }
        let mut rows = std::mem::take(&mut changes.put);
        for row in &mut rows {
            if let Row::WorkItem(item) = row
                && self.ids.contains(&item.item_id)
                && item.claimed_by.is_none()
            {
                item.revision = changes.event(complete_closed(item, session, now));
            }
        }
        for Dependent { item, open_blockers } in &self.dependents {
            // The same changes may release it too.
            let place =
                rows.iter().position(|row| matches!(row, Row::WorkItem(put) if put.item_id == item.item_id));
            let mut item = match place.map(|place| rows.remove(place)) {
                Some(Row::WorkItem(put)) => put,
                _ => item.clone(),
            };
            if item.status == Status::Completed {
                rows.push(Row::WorkItem(item));
                continue;
            }
            let is_put = place.is_some();
            follow_blockers(&mut item, open_blockers, session, changes);
            // It may have put the row, which is put once.
            if changes.put.pop().is_some() || is_put {
                rows.push(Row::WorkItem(item));
            }
        }
        changes.put = rows;
    }
}

/// Completes an item without a holder because it was closed at its source. Returns the event of that.
pub(super) fn complete_closed(item: &mut WorkItem, session: Option<&str>, now: Timestamp) -> NewEvent {
    let mut seen = item.outside();
    seen.completes_on_release = false;
    seen.is_closed = true;
    // Metadata that cannot be written stays: then a later release finds a completed item.
    let _ = item.set_outside(&seen);
    item.status = Status::Completed;
    item.completed_at = Some(now);
    item.blocked_by = None;
    let summary = format!("\"{}\" was completed: it is closed at its source", item.title);
    NewEvent::new(EventType::WorkCompleted, TargetType::WorkItem, &item.item_id, summary)
        .by(session)
        .with("closed_outside", true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::an_item;
    use crate::work::details::Outside;

    fn closed(id: &str) -> WorkItem {
        let mut item = an_item(id);
        let seen = Outside { is_closed: true, completes_on_release: true, ..Outside::default() };
        item.set_outside(&seen).unwrap();
        item
    }

    #[test]
    fn released_items_complete_and_unblock_the_others_that_are_released_with_them() {
        use EventType::{WorkCompleted, WorkUnblocked};
        use Status::{Available, Completed};
        let blocked =
            |id: &str| WorkItem { status: Status::Blocked, blocked_by: Some("a".to_owned()), ..an_item(id) };
        let mut changes = Changes::new();
        // Two closed items, one that both block, and one that was not closed. All of them are released.
        for item in [closed("a"), closed("b"), blocked("both"), an_item("open")] {
            changes.put(item);
        }
        let dependent = |id: &str| Dependent { item: blocked(id), open_blockers: Vec::new() };
        let items = ClosedItems {
            ids: ["a", "b"].map(str::to_owned).into(),
            dependents: vec![dependent("both"), dependent("elsewhere")],
        };
        items.complete(None, Timestamp::EPOCH, &mut changes);
        let mut after: Vec<_> = changes
            .put
            .iter()
            .map(|row| match row {
                Row::WorkItem(item) => {
                    (item.item_id.as_str(), item.status, item.outside().completes_on_release)
                }
                other => panic!("{other:?}"),
            })
            .collect();
        after.sort_by_key(|(id, ..)| *id);
        assert_eq!(
            after,
            [
                ("a", Completed, false),
                ("b", Completed, false),
                ("both", Available, false),
                ("elsewhere", Available, false),
                ("open", Available, false),
            ]
        );
        let types: Vec<_> = changes.events.iter().map(|event| event.event_type.clone()).collect();
        assert_eq!(types, [WorkCompleted, WorkCompleted, WorkUnblocked, WorkUnblocked]);
    }
}
