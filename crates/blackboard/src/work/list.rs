//! `work list`: lists work items.

use serde::Serialize;

use super::{Priority, Status, Work, WorkItem, with_blockers};
use crate::error::Result;
use crate::store::{Key, Prefetch, Range};

/// Which items to list.
#[derive(Clone, Debug)]
pub struct WorkFilter {
    /// Items with one of these statuses.
    pub statuses: Vec<Status>,
    /// Items of this project.
    pub project: Option<String>,
    /// Items with this priority.
    pub priority: Option<Priority>,
    /// Items that this session holds, or completed.
    pub claimed_by: Option<String>,
    /// The most items.
    pub limit: Option<usize>,
}

/// An item with all of its blockers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListedItem {
    /// The item.
    #[serde(flatten)]
    pub item: WorkItem,
    /// The items that block it, in the order in which they were named.
    pub open_blockers: Vec<String>,
    /// Those of them that do not exist yet.
    pub missing_blockers: Vec<String>,
}

/// The first items that match, and how many match.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CountedItems {
    /// As many as the filter allows.
    pub items: Vec<ListedItem>,
    /// How many items match.
    pub total: usize,
}

impl Default for WorkFilter {
    /// All open items.
    fn default() -> WorkFilter {
        WorkFilter {
            statuses: Status::OPEN.to_vec(),
            project: None,
            priority: None,
            claimed_by: None,
            limit: None,
        }
    }
}

impl WorkFilter {
    fn fits(&self, item: &WorkItem) -> bool {
        self.statuses.contains(&item.status)
            && self.project.as_ref().is_none_or(|project| item.project_id.as_ref() == Some(project))
            && self.priority.is_none_or(|priority| item.priority == priority)
            && self.claimed_by.as_ref().is_none_or(|session| item.claimed_by.as_ref() == Some(session))
    }
}

impl Work<'_> {
    /// The items, P1 first, then oldest first, so that none starves. A project that is not registered is refused.
    ///
    /// ```
    /// # use blackboard::{Board, work::{Create, WorkFilter}};
    /// # let board = Board::memory();
    /// board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// assert_eq!(board.work().list(&WorkFilter::default())?.len(), 1);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn list(&self, filter: &WorkFilter) -> Result<Vec<ListedItem>> {
        Ok(self.list_counted(filter)?.items)
    }

    /// The same items, and how many there are without the limit.
    ///
    /// ```
    /// # use blackboard::{Board, work::{Create, WorkFilter}};
    /// # let board = Board::memory();
    /// board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// board.work().create(&Create::new("ship", "Ship it"))?;
    /// let page = board.work().list_counted(&WorkFilter { limit: Some(1), ..WorkFilter::default() })?;
    /// assert_eq!((page.items.len(), page.total), (1, 2));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn list_counted(&self, filter: &WorkFilter) -> Result<CountedItems> {
        let ranges: Vec<Range> = match &filter.claimed_by {
            Some(session) => vec![Range::claimed_by(session)],
            None => filter.statuses.iter().map(|&status| Range::work_queue(status)).collect(),
        };
        let mut prefetch: Vec<_> = ranges.iter().cloned().map(Prefetch::Range).collect();
        prefetch.extend(filter.project.iter().map(|project| Prefetch::Row(Key::Project(project.clone()))));
        self.board.read_list(&prefetch, |tx| {
            if let Some(project) = &filter.project {
                crate::project::known(tx, project)?;
            }
            let mut items = Vec::new();
            for range in &ranges {
                items.extend(tx.rows::<WorkItem>(range)?);
            }
            items.retain(|item| filter.fits(item));
            items.sort_by(|a, b| {
                (a.priority, a.created_at, &a.item_id).cmp(&(b.priority, b.created_at, &b.item_id))
            });
            let total = items.len();
            items.truncate(filter.limit.unwrap_or(usize::MAX));
            Ok(CountedItems { items: with_blockers(tx, items)?, total })
        })
    }
}
