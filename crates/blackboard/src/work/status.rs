//! `work status`: the details of one item.

use serde::Serialize;

use super::dependencies::{Blocker, blockers_of, missing_among, missing_of, open_among};
use super::{Dependency, Hold, Status, Work, WorkItem, existing};
use crate::error::Result;
use crate::event::{Event, EventType, TargetType};
use crate::metadata::Metadata;
use crate::revision::Revision;
use crate::store::{Key, Page, Prefetch, Range, Tx};

/// How many events are read together.
const PAGE: usize = 1000;

/// The most events of a history: the last ones.
const MAX_HISTORY: usize = 1000;

/// An item with its dependencies and its history.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkHistory {
    /// The item.
    #[serde(flatten)]
    pub item: WorkItem,
    /// Its failures, and why it is on hold.
    #[serde(flatten)]
    pub hold: Hold,
    /// All items that it depends on, also completed ones, separated by commas; `None` if there are none.
    pub depends_on: Option<String>,
    /// The items that block it.
    pub open_blockers: Vec<String>,
    /// Those of them that do not exist yet.
    pub missing_blockers: Vec<String>,
    /// The items that it blocks.
    pub dependents: Vec<String>,
    /// Its events, oldest first.
    pub history: Vec<Event>,
}

impl Work<'_> {
    /// An item alone.
    ///
    /// ```
    /// # use blackboard::{Board, work::Create};
    /// # let board = Board::memory();
    /// board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// assert_eq!(board.work().show("fix-tests")?.title, "Fix the tests");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn show(&self, id: &str) -> Result<WorkItem> {
        self.board.read(&[Prefetch::Row(Key::WorkItem(id.to_owned()))], |tx| existing(tx, id))
    }

    /// An item with its dependencies and its history.
    ///
    /// ```
    /// # use blackboard::{Board, work::Create};
    /// # let board = Board::memory();
    /// board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// assert_eq!(board.work().status("fix-tests")?.history.len(), 1);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn status(&self, id: &str) -> Result<WorkHistory> {
        let prefetch = [
            Prefetch::Row(Key::WorkItem(id.to_owned())),
            Prefetch::Range(Range::blockers_of(id)),
            Prefetch::Range(Range::dependents_of(id)),
            Prefetch::Revision,
        ];
        self.board.read_list(&prefetch, |tx| {
            let item = existing(tx, id)?;
            let blockers = blockers_of(tx, id)?;
            let dependents = tx.rows::<Dependency>(&Range::dependents_of(id))?;
            let depends_on: Vec<_> = blockers.iter().map(Blocker::id).collect();
            Ok(WorkHistory {
                hold: item.hold(),
                depends_on: (!depends_on.is_empty()).then(|| depends_on.join(",")),
                open_blockers: open_among(&blockers),
                missing_blockers: missing_of(tx, missing_among(&blockers))?,
                dependents: dependents.into_iter().map(|dependency| dependency.item_id).collect(),
                history: history(tx, &item)?,
                item,
            })
        })
    }
}

/// The events of an item. The event log has no index for this, so it is read from the item's creation on.
fn history(tx: &dyn Tx, item: &WorkItem) -> Result<Vec<Event>> {
    let mut history = Vec::new();
    tx.prefetch(&[Prefetch::RevisionBefore(item.created_at)])?;
    let mut after: Revision = tx.revision_before(item.created_at)?;
    let until = match item.status {
        Status::Completed => item.revision,
        // Progress does not change the item, so it may be newer than the last change.
        Status::Available | Status::Claimed | Status::Blocked => tx.revision()?,
    };
    loop {
        let page = Page { until, ..Page::after(after, PAGE) };
        tx.prefetch(&[Prefetch::Events(page)])?;
        let page = tx.events(&page)?;
        let Some(last) = page.last() else { break };
        after = last.id;
        history.extend(page.into_iter().filter(|event| tells_of(event, &item.item_id)));
        if history.len() > 2 * MAX_HISTORY {
            history.drain(..MAX_HISTORY);
        }
    }
    let surplus = history.len().saturating_sub(MAX_HISTORY);
    history.drain(..surplus);
    Ok(history)
}

fn tells_of(event: &Event, item: &str) -> bool {
    if event.target_type == Some(TargetType::WorkItem) {
        return event.target_id.as_deref() == Some(item);
    }
    // A progress note may name the item, and the end of a session lists the items that it lost.
    let is_in_note = || {
        let metadata = event.metadata.as_ref().map(Metadata::to_map).unwrap_or_default();
        metadata.get("work_item_id").and_then(|id| id.as_str()) == Some(item)
    };
    (event.event_type == EventType::HeartbeatReceived && is_in_note())
        || event.released_items().iter().any(|released| released == item)
}
