//! `work reset`: back to the beginning, whoever holds it and however far it is.

use serde::Serialize;

use super::{Status, Work, WorkItem, existing, open_blockers};
use crate::error::Result;
use crate::event::{EventType, NewEvent, TargetType};
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Range, Wanted};

/// An item that is back at its beginning.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reset {
    /// The item.
    #[serde(flatten)]
    pub item: WorkItem,
    /// What it was before.
    pub previous_status: Status,
    /// The name of who held it.
    pub previously_held_by: Option<String>,
}

impl Pending for Reset {
    fn resolve(&mut self, first: Revision) {
        self.item.resolve(first);
    }
}

impl Work<'_> {
    /// Takes an item from whoever holds or did it, and makes it available, or blocked if it waits for others.
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
        let wanted = [Wanted::Row(Key::WorkItem(id.to_owned())), Wanted::Range(Range::blockers_of(id))];
        self.board.commit("work reset", &wanted, |tx| {
            let mut item = existing(tx, id)?;
            let open = open_blockers(tx, id)?;
            let before = item.clone();
            item.set_free();
            item.completed_at = None;
            item.blocked_by = open.first().cloned();
            item.status = if open.is_empty() { Status::Available } else { Status::Blocked };
            let mut changes = Changes::new();
            self.board.agents().saw_session(tx, session, &mut changes)?;
            if item != before {
                let summary = format!("\"{}\" was reset (was {})", item.title, before.status);
                item.revision = changes.event(
                    NewEvent::new(EventType::WorkReset, TargetType::WorkItem, id, summary).by(session),
                );
                changes.put(item.clone());
            }
            let reset =
                Reset { item, previous_status: before.status, previously_held_by: before.claimed_by_name };
            Ok((changes, reset))
        })
    }
}
