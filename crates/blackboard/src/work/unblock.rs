//! `work unblock`: removes blockers of an item.

use serde::Serialize;

use super::dependencies::{Blocker, blockers_of, follow_with_event, missing_among, open_among};
use super::{Status, Work, WorkItem, existing};
use crate::agent::prefetch_agent;
use crate::error::Result;
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Prefetch, Range};

/// The result of removing blockers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unblocked {
    /// The item.
    #[serde(flatten)]
    pub item: WorkItem,
    /// The items that still block it.
    pub open_blockers: Vec<String>,
    /// Those of them that do not exist yet.
    pub missing_blockers: Vec<String>,
    /// Whether this call made it unblocked.
    pub unblocked: bool,
    /// Its status now.
    pub restored_status: Status,
    /// The named items that were no blockers of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_blockers: Vec<String>,
}

impl Pending for Unblocked {
    fn resolve(&mut self, first: Revision) {
        self.item.resolve(first);
    }
}

impl Work<'_> {
    /// Removes blockers of an item: the named ones, or all.
    ///
    /// ```
    /// # use blackboard::{Board, work::{Create, Status}};
    /// # let board = Board::memory();
    /// board.work().create(&Create { blocked_by: vec!["later".to_owned()], ..Create::new("ship", "Ship it") })?;
    /// let unblocked = board.work().unblock("ship", &[], None)?;
    /// assert_eq!(unblocked.item.status, Status::Available);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn unblock(&self, id: &str, blocked_by: &[String], session: Option<&str>) -> Result<Unblocked> {
        let mut prefetch =
            vec![Prefetch::Row(Key::WorkItem(id.to_owned())), Prefetch::Range(Range::blockers_of(id))];
        prefetch.extend(prefetch_agent(session));
        self.board.commit("work unblock", &prefetch, |tx| {
            let item = existing(tx, id)?;
            let (mut changes, unblocked) = decide(item, blockers_of(tx, id)?, blocked_by, session);
            self.board.agents().record_activity_of(tx, session, &mut changes)?;
            Ok((changes, unblocked))
        })
    }
}

fn decide(
    mut item: WorkItem,
    blockers: Vec<Blocker>,
    blocked_by: &[String],
    session: Option<&str>,
) -> (Changes, Unblocked) {
    let is_blocker = |id: &String| blockers.iter().any(|blocker| blocker.id() == id);
    let not_blockers = blocked_by.iter().filter(|id| !is_blocker(id)).cloned().collect();
    let (gone, kept): (Vec<_>, Vec<_>) = blockers
        .into_iter()
        .partition(|blocker| blocked_by.is_empty() || blocked_by.iter().any(|id| id == blocker.id()));
    let (open_blockers, missing_blockers) = (open_among(&kept), missing_among(&kept));
    let was_blocked = item.status == Status::Blocked;
    let mut changes = Changes::new();
    let ends_hold = blocked_by.is_empty() && item.clear_hold();
    if !gone.is_empty() || ends_hold {
        for Blocker { dependency, .. } in gone {
            changes.remove(Key::Dependency(dependency.item_id, dependency.blocked_by));
        }
        follow_with_event(&mut item, &open_blockers, session, &mut changes);
    }
    let unblocked = was_blocked && item.status != Status::Blocked;
    let restored_status = item.status;
    (changes, Unblocked { item, open_blockers, missing_blockers, unblocked, restored_status, not_blockers })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::store::conformance::an_item;
    use crate::work::Dependency;

    #[test]
    fn item_is_available_when_no_open_blocker_is_left() {
        let blocker = |id: &str, status| Blocker {
            dependency: Dependency {
                item_id: "x".to_owned(),
                blocked_by: id.to_owned(),
                created_at: Timestamp::EPOCH,
            },
            status,
        };
        for (named, removed, open, unblocked) in [
            (&[][..], 3, &[][..], true),
            (&["a", "b"], 2, &[], true),
            (&["a"], 1, &["b"], false),
            (&["done"], 1, &["a", "b"], false),
            (&["unknown"], 0, &["a", "b"], false),
        ] {
            let item = WorkItem { status: Status::Blocked, blocked_by: Some("a".to_owned()), ..an_item("x") };
            let blockers = vec![
                blocker("a", None),
                blocker("done", Some(Status::Completed)),
                blocker("b", Some(Status::Claimed)),
            ];
            let named: Vec<_> = named.iter().map(|&id| id.to_owned()).collect();
            let (changes, answer) = decide(item, blockers, &named, None);
            assert_eq!(changes.remove.len(), removed, "without {named:?}");
            assert_eq!(changes.events.len(), usize::from(removed > 0), "without {named:?}");
            assert_eq!(answer.open_blockers, open, "without {named:?}");
            assert_eq!(answer.unblocked, unblocked, "without {named:?}");
            let unknown: Vec<_> = named.iter().filter(|id| *id == "unknown").cloned().collect();
            assert_eq!(answer.not_blockers, unknown, "without {named:?}");
        }
    }
}
