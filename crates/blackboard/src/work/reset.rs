//! `work reset`: makes an item available again, whatever its holder and status.

use serde::Serialize;

use super::dependencies::{
    Dependent, blockers_of, dependents_of, missing_among, open_among, update_dependents,
};
use super::{Holder, Status, Work, WorkItem, existing};
use crate::agent::prefetch_agent;
use crate::error::Result;
use crate::event::{EventType, NewEvent, TargetType};
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Prefetch, Range};

/// A reset item.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reset {
    /// The item.
    #[serde(flatten)]
    pub item: WorkItem,
    /// Its status before.
    pub previous_status: Status,
    /// The name of its previous holder.
    pub previously_held_by: Option<String>,
    /// The session of its previous holder.
    pub previously_held_by_session: Option<String>,
    /// The items that block it.
    pub open_blockers: Vec<String>,
    /// Those of them that do not exist yet.
    pub missing_blockers: Vec<String>,
}

impl Pending for Reset {
    fn resolve(&mut self, first: Revision) {
        self.item.resolve(first);
    }
}

impl Work<'_> {
    /// Removes the holder of an item and makes it available, or blocked if it has open blockers. Its failures are
    /// forgotten. It blocks its dependents again.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register, work::{Claim, Create, Status}};
    /// # let board = Board::memory();
    /// # let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// # board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// board.work().claim(&Claim::of("fix-tests", &ivy))?;
    /// assert_eq!(board.work().reset("fix-tests", None)?.item.status, Status::Available);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn reset(&self, id: &str, session: Option<&str>) -> Result<Reset> {
        let mut prefetch = vec![
            Prefetch::Row(Key::WorkItem(id.to_owned())),
            Prefetch::Range(Range::blockers_of(id)),
            Prefetch::Range(Range::dependents_of(id)),
        ];
        prefetch.extend(prefetch_agent(session));
        self.board.commit("work reset", &prefetch, |tx| {
            let item = existing(tx, id)?;
            let blockers = blockers_of(tx, id)?;
            let (open_blockers, missing_blockers) = (open_among(&blockers), missing_among(&blockers));
            let dependents = dependents_of(tx, id, true)?;
            let holder = Holder::of(tx, &item)?;
            let (mut changes, reset) =
                decide(item, holder.as_ref(), open_blockers, missing_blockers, dependents, session);
            self.board.agents().record_activity_of(tx, session, &mut changes)?;
            Ok((changes, reset))
        })
    }
}

fn decide(
    before: WorkItem,
    holder: Option<&Holder>,
    open_blockers: Vec<String>,
    missing_blockers: Vec<String>,
    dependents: Vec<Dependent>,
    session: Option<&str>,
) -> (Changes, Reset) {
    let mut changes = Changes::new();
    let mut item = before.clone();
    item.set_free();
    item.stay_open_when_released();
    item.completed_at = None;
    item.summary = None;
    item.clear_hold();
    item.blocked_by = open_blockers.first().cloned();
    item.status = if open_blockers.is_empty() { Status::Available } else { Status::Blocked };
    if item != before {
        let summary = format!("\"{}\" was reset (was {})", item.title, before.status);
        item.revision = changes.event(
            NewEvent::new(EventType::WorkReset, TargetType::WorkItem, &item.item_id, summary).by(session),
        );
        changes.put(item.clone());
        if let Some(agent) = holder.and_then(|holder| holder.without(&item)) {
            changes.put(agent);
        }
    }
    update_dependents(dependents, session, &mut changes);
    let reset = Reset {
        item,
        previous_status: before.status,
        previously_held_by: before.claimed_by_name,
        previously_held_by_session: before.claimed_by,
        open_blockers,
        missing_blockers,
    };
    (changes, reset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::an_item;

    #[test]
    fn reset_item_blocks_its_dependents_again() {
        use EventType::{WorkBlocked, WorkReset};
        use Status::{Available, Blocked, Claimed, Completed};
        for (item, open, dependent, after, expected) in [
            (Available, &[][..], None, Available, &[][..]),
            (Claimed, &[], None, Available, &[WorkReset]),
            (Completed, &[], None, Available, &[WorkReset]),
            (Completed, &["a"], None, Blocked, &[WorkReset]),
            (Completed, &[], Some(Available), Available, &[WorkReset, WorkBlocked]),
            (Completed, &[], Some(Claimed), Available, &[WorkReset, WorkBlocked]),
        ] {
            let before = WorkItem {
                status: item,
                claimed_by: (item != Available).then(|| "me".to_owned()),
                ..an_item("x")
            };
            let open: Vec<_> = open.iter().map(|&id| id.to_owned()).collect();
            let dependents = dependent.map(|status| Dependent {
                item: WorkItem { status, ..an_item("y") },
                open_blockers: vec!["x".to_owned()],
            });
            let (changes, reset) =
                decide(before, None, open.clone(), Vec::new(), dependents.into_iter().collect(), None);
            assert_eq!((reset.previous_status, reset.item.status), (item, after));
            let events: Vec<_> = changes.events.into_iter().map(|event| event.event_type).collect();
            assert_eq!(events, expected, "{item} item that waits for {open:?}, before {dependent:?} one");
        }
    }
}
