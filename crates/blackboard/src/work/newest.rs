//! Work in the order of display: P1 first, then the newest first, page by page.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::{ListedItem, Priority, Status, Work, WorkItem, with_blockers};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::revision::Revision;
use crate::store::{Prefetch, Range, Tx};

/// How many items are read together if a project is given.
const CHUNK: usize = 500;

/// Conditions for items. Every condition has to hold.
#[derive(Clone, Debug, PartialEq)]
pub struct NewestWork {
    /// Items with one of these statuses.
    pub statuses: Vec<Status>,
    /// Items of this project.
    pub project: Option<String>,
    /// The most items.
    pub limit: Option<usize>,
    /// Continues after a page: its `next`.
    pub after: Option<String>,
}

impl Default for NewestWork {
    /// All open items.
    fn default() -> NewestWork {
        NewestWork { statuses: Status::OPEN.to_vec(), project: None, limit: None, after: None }
    }
}

/// A page of work items.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkPage {
    /// The items.
    pub items: Vec<WorkItem>,
    /// The open blockers of blocked items, in the order in which they were added.
    pub open_blockers: BTreeMap<String, Vec<String>>,
    /// Those of these blockers that do not exist yet, by the item that they block.
    pub missing_blockers: BTreeMap<String, Vec<String>>,
    /// Where the next page continues, if there is more. An item that keeps its priority and status is neither missed
    /// nor seen twice.
    pub next: Option<String>,
    /// The board's revision when the page was read.
    pub revision: Revision,
}

/// Where a page ended.
#[derive(Clone, Debug, PartialEq)]
struct PageToken {
    priority: Priority,
    created_at: Timestamp,
    item_id: String,
}

impl PageToken {
    fn of(item: &WorkItem) -> String {
        format!("{} {} {}", item.priority, item.created_at, item.item_id)
    }

    fn parse(text: &str) -> Result<PageToken> {
        let mut parts = text.splitn(3, ' ');
        let mark = (|| {
            let (priority, created_at, item_id) = (parts.next()?, parts.next()?, parts.next()?);
            Some(PageToken {
                priority: priority.parse().ok()?,
                created_at: created_at.parse().ok()?,
                item_id: item_id.to_owned(),
            })
        })();
        mark.ok_or_else(|| Error::invalid("invalid page token; use `next` of the previous page"))
    }
}

impl Work<'_> {
    /// The items, P1 first, then the newest first.
    ///
    /// ```
    /// # use blackboard::{Board, work::{Create, NewestWork}};
    /// # let board = Board::memory();
    /// for id in ["a", "b", "c"] {
    ///     board.work().create(&Create::new(id, "A task"))?;
    /// }
    /// let query = NewestWork { limit: Some(2), ..NewestWork::default() };
    /// let page = board.work().newest(&query)?;
    /// let rest = board.work().newest(&NewestWork { after: page.next, ..query })?;
    /// assert_eq!((page.items.len(), rest.items.len(), rest.next), (2, 1, None));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn newest(&self, query: &NewestWork) -> Result<WorkPage> {
        let after = query.after.as_deref().map(PageToken::parse).transpose()?;
        let limit = query.limit.unwrap_or(usize::MAX);
        let priorities = Priority::ALL.iter().copied();
        let priorities =
            priorities.filter(|priority| after.as_ref().is_none_or(|after| *priority >= after.priority));
        // A page may need every priority, and one read of them all costs less than one read for each.
        let first = priorities
            .clone()
            .flat_map(|priority| prefetch(query, priority, after.as_ref(), limit.saturating_add(1)));
        let first: Vec<_> = first.chain([Prefetch::Revision]).collect();
        self.board.read_list(&first, |tx| {
            let mut items: Vec<WorkItem> = Vec::new();
            let mut more = false;
            for priority in priorities.clone() {
                let room = limit.saturating_sub(items.len());
                if room == 0 && more {
                    break;
                }
                let mut found = of_priority(tx, query, priority, after.as_ref(), room.saturating_add(1))?;
                more |= found.len() > room;
                found.truncate(room);
                items.extend(found);
            }
            let next = items.last().filter(|_| more).map(PageToken::of);
            let mut page = WorkPage {
                items: Vec::with_capacity(items.len()),
                open_blockers: BTreeMap::new(),
                missing_blockers: BTreeMap::new(),
                next,
                revision: tx.revision()?,
            };
            for ListedItem { item, open_blockers, missing_blockers } in with_blockers(tx, items)? {
                if item.blocked_by.is_some() {
                    page.open_blockers.insert(item.item_id.clone(), open_blockers);
                }
                if !missing_blockers.is_empty() {
                    page.missing_blockers.insert(item.item_id.clone(), missing_blockers);
                }
                page.items.push(item);
            }
            Ok(page)
        })
    }
}

/// What [`of_priority`] reads first.
fn prefetch(
    query: &NewestWork,
    priority: Priority,
    after: Option<&PageToken>,
    limit: usize,
) -> Vec<Prefetch<'static>> {
    let after = after.filter(|after| after.priority == priority);
    let at_once = at_once(query.project.is_some(), limit);
    let ranges = query.statuses.iter().map(|&status| older_than(status, priority, after));
    ranges.map(|range| Prefetch::Candidates(range, at_once)).collect()
}

/// How many items are read together to find `limit` of them.
fn at_once(filtered: bool, limit: usize) -> usize {
    if filtered { CHUNK } else { limit }
}

/// The items after the end of a page.
fn older_than(status: Status, priority: Priority, mark: Option<&PageToken>) -> Range {
    let mut range = Range::newest_work(status, priority);
    if let Some(PageToken { created_at, item_id, .. }) = mark {
        range.until = Bound::Excluded(vec![(*created_at).into(), item_id.as_str().into()]);
    }
    range
}

/// The first `limit` items of a priority, merged from each status. What [`prefetch`] names for at least as many is
/// announced by then.
fn of_priority(
    tx: &dyn Tx,
    query: &NewestWork,
    priority: Priority,
    after: Option<&PageToken>,
    limit: usize,
) -> Result<Vec<WorkItem>> {
    let after = after.filter(|after| after.priority == priority);
    let mut items = Vec::new();
    for &status in &query.statuses {
        let mut count = 0;
        walk(tx, status, priority, after, query.project.is_some(), limit, |item| {
            if query.project.is_none() || item.project_id == query.project {
                items.push(item);
                count += 1;
            }
            count < limit
        })?;
    }
    items.sort_by(|a, b| (b.created_at, &b.item_id).cmp(&(a.created_at, &a.item_id)));
    items.truncate(limit);
    Ok(items)
}

/// Offers items, the newest first, until enough were taken.
fn walk(
    tx: &dyn Tx,
    status: Status,
    priority: Priority,
    after: Option<&PageToken>,
    filtered: bool,
    limit: usize,
    mut take: impl FnMut(WorkItem) -> bool,
) -> Result<()> {
    let at_once = at_once(filtered, limit);
    let mut mark = after.cloned();
    loop {
        let range = older_than(status, priority, mark.as_ref());
        if mark.as_ref() != after {
            tx.prefetch(&[Prefetch::Candidates(range.clone(), at_once)])?;
        }
        let items = tx.candidate_rows::<WorkItem>(&range, at_once)?;
        let is_end = items.len() < at_once;
        mark = items.last().map(|item| PageToken {
            priority,
            created_at: item.created_at,
            item_id: item.item_id.clone(),
        });
        for item in items {
            if !take(item) {
                return Ok(());
            }
        }
        if is_end {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Board;
    use crate::project::RegisterProject;
    use crate::work::Create;

    fn ids(items: &[WorkItem]) -> Vec<String> {
        items.iter().map(|item| item.item_id.clone()).collect()
    }

    #[test]
    fn pages_of_every_size_give_the_same_list() {
        testkit::limit_test();
        let board = Board::memory();
        board.projects().register(&RegisterProject::new("pai", "PAI")).unwrap();
        for number in 0..23 {
            let priority = Some(Priority::ALL[number % 3]);
            let project = (number % 2 == 0).then(|| "pai".to_owned());
            let id = format!("item {number:02}");
            board.work().create(&Create { project, priority, ..Create::new(&id, "A task") }).unwrap();
        }
        for project in [None, Some("pai".to_owned())] {
            let query = NewestWork { project, ..NewestWork::default() };
            let all = board.work().newest(&query).unwrap();
            assert_eq!((all.items.len(), all.next), (if query.project.is_some() { 12 } else { 23 }, None));
            let is_in_order = |pair: &[WorkItem]| {
                (pair[0].priority, pair[1].created_at) <= (pair[1].priority, pair[0].created_at)
            };
            assert!(all.items.windows(2).all(is_in_order));
            for limit in 1..25 {
                let (mut paged, mut after) = (Vec::new(), None);
                loop {
                    let page = NewestWork { limit: Some(limit), after, ..query.clone() };
                    let page = board.work().newest(&page).unwrap();
                    assert!(page.items.len() <= limit);
                    paged.extend(ids(&page.items));
                    after = page.next;
                    if after.is_none() {
                        break;
                    }
                }
                assert_eq!(paged, ids(&all.items), "pages of {limit}");
            }
        }
    }

    #[test]
    fn page_token_round_trips_through_text() {
        testkit::limit_test();
        let board = Board::memory();
        let item = board.work().create(&Create::new("gh:owner/repo#7", "A task")).unwrap().item;
        assert_eq!(PageToken::parse(&PageToken::of(&item)).unwrap().item_id, "gh:owner/repo#7");
        for wrong in ["", "P9 x y", "P1", "P1 2026-02-03T15:30:00Z"] {
            assert!(PageToken::parse(wrong).is_err(), "{wrong}");
        }
    }
}
