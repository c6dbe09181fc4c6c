//! Completed work, the last one first, page by page.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::{Work, WorkItem, WorkPage};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::store::{Prefetch, Range, Tx};

/// How many items are read together if a project is given.
const CHUNK: usize = 500;

/// Conditions for completed items.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LastCompleted {
    /// Items of this project.
    pub project: Option<String>,
    /// The most items.
    pub limit: Option<usize>,
    /// Continues after a page: its `next`.
    pub after: Option<String>,
}

/// Where a page ended.
#[derive(Clone, Debug, PartialEq)]
struct PageToken {
    completed_at: Timestamp,
    item_id: String,
}

impl PageToken {
    fn of(item: &WorkItem) -> Option<PageToken> {
        Some(PageToken { completed_at: item.completed_at?, item_id: item.item_id.clone() })
    }

    fn parse(text: &str) -> Result<PageToken> {
        let mark = text.split_once(' ').and_then(|(completed_at, item_id)| {
            Some(PageToken { completed_at: completed_at.parse().ok()?, item_id: item_id.to_owned() })
        });
        mark.ok_or_else(|| Error::invalid("invalid page token; use `next` of the previous page"))
    }

    fn to_text(&self) -> String {
        format!("{} {}", self.completed_at, self.item_id)
    }
}

impl Work<'_> {
    /// The completed items, the last one first. An item that is completed between two pages is on neither.
    ///
    /// ```
    /// # use blackboard::{Board, work::{Create, LastCompleted}};
    /// # let board = Board::memory();
    /// board.work().create(&Create::new("a", "A task"))?;
    /// assert_eq!(board.work().last_completed(&LastCompleted::default())?.items, []);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn last_completed(&self, query: &LastCompleted) -> Result<WorkPage> {
        let after = query.after.as_deref().map(PageToken::parse).transpose()?;
        let limit = query.limit.unwrap_or(usize::MAX);
        let first =
            Prefetch::Candidates(last_completed(after.as_ref()), query.at_once(limit.saturating_add(1)));
        self.board.read_list(&[Prefetch::Revision, first], |tx| {
            let mut items = found(tx, query, after.clone(), limit.saturating_add(1))?;
            let more = items.len() > limit;
            items.truncate(limit);
            let next = items.last().filter(|_| more).and_then(PageToken::of).map(|mark| mark.to_text());
            Ok(WorkPage {
                items,
                open_blockers: BTreeMap::new(),
                missing_blockers: BTreeMap::new(),
                next,
                revision: tx.revision()?,
            })
        })
    }
}

impl LastCompleted {
    /// How many items are read together to find `limit` of them.
    fn at_once(&self, limit: usize) -> usize {
        if self.project.is_some() { CHUNK } else { limit }
    }
}

/// The items that were completed before the end of a page.
fn last_completed(mark: Option<&PageToken>) -> Range {
    let mut range = Range::last_completed();
    if let Some(PageToken { completed_at, item_id }) = mark {
        range.until = Bound::Excluded(vec![(*completed_at).into(), item_id.as_str().into()]);
    }
    range
}

/// The first `limit` items after a position.
fn found(
    tx: &dyn Tx,
    query: &LastCompleted,
    mut mark: Option<PageToken>,
    limit: usize,
) -> Result<Vec<WorkItem>> {
    let at_once = query.at_once(limit);
    let mut found = Vec::new();
    loop {
        let range = last_completed(mark.as_ref());
        tx.prefetch(&[Prefetch::Candidates(range.clone(), at_once)])?;
        let items = tx.candidate_rows::<WorkItem>(&range, at_once)?;
        let is_end = items.len() < at_once;
        mark = items.last().and_then(PageToken::of);
        let fits = |item: &WorkItem| query.project.is_none() || item.project_id == query.project;
        found.extend(items.into_iter().filter(fits));
        if is_end || found.len() >= limit {
            found.truncate(limit);
            return Ok(found);
        }
    }
}
