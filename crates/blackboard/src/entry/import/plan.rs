//! [`PlannedTx`]: the board as a dry run would have changed it.
//!
//! A dry run does what the import does, and commits nothing. What it would have written stays here, so that its next part sees
//! the same entries, and evicts the same ones, as the import would.

use std::cell::RefCell;
use std::collections::HashMap;

use super::BATCH;
use crate::clock::Timestamp;
use crate::entry::{Entry, EntryHead, EntryVersion};
use crate::error::Result;
use crate::event::Event;
use crate::revision::{Pending as _, Revision};
use crate::store::record::IndexValue;
use crate::store::{Changes, Key, Page, Prefetch, Range, Row, Tx, VersionHead};

/// What a dry run would have changed.
#[derive(Default)]
pub(super) struct Plan {
    /// The rows; `None` for one that would be removed.
    rows: HashMap<Key, Option<Row>>,
    /// The revision of the last event that it would have added.
    last: Revision,
}

impl Plan {
    /// Adds the changes of a commit. The board is at this revision.
    pub(super) fn add(&mut self, mut changes: Changes, revision: Revision) {
        let first = self.last.max(revision).next();
        changes.resolve(first);
        let events = i64::try_from(changes.events.len()).unwrap_or(i64::MAX);
        self.last = Revision::new(first.get().saturating_add(events));
        self.rows.extend(changes.remove.into_iter().map(|key| (key, None)));
        self.rows.extend(changes.put.into_iter().map(|row| (row.key(), Some(row))));
    }

    /// Adds a row.
    pub(super) fn put(&mut self, row: impl Into<Row>) {
        let row = row.into();
        self.rows.insert(row.key(), Some(row));
    }
}

/// The board with the changes of a plan. Only what writes of entries read has them.
pub(super) struct PlannedTx<'a> {
    tx: &'a dyn Tx,
    plan: &'a Plan,
    /// The last range that was read, and its entries on the board: a search for entries to evict reads more and more of one.
    stored: RefCell<Option<(Range, usize, Vec<Placed>)>>,
}

/// An entry, and its position in a range.
type Placed = (Vec<IndexValue>, EntryHead);

impl<'a> PlannedTx<'a> {
    pub(super) fn new(tx: &'a dyn Tx, plan: &'a Plan) -> PlannedTx<'a> {
        PlannedTx { tx, plan, stored: RefCell::default() }
    }

    /// How many entries of the board are read, so that this many are left without those that the plan changes.
    fn limit(&self, limit: usize) -> usize {
        limit.max(BATCH).saturating_add(self.plan.rows.len())
    }

    /// The first entries of a range that the plan does not change.
    fn stored(&self, range: &Range, limit: usize) -> Result<Vec<Placed>> {
        if let Some((known, at_most, placed)) = &*self.stored.borrow()
            && (known, *at_most) == (range, limit)
        {
            return Ok(placed.clone());
        }
        let heads = if let Some(place) = place_of_head(range) {
            self.tx.heads(range, limit)?.into_iter().map(|head| (place(&head), head)).collect()
        } else {
            let rows = self.tx.candidates(range, limit)?;
            rows.iter().filter_map(|row| placed(row, range)).collect::<Vec<_>>()
        };
        let is_changed =
            |head: &EntryHead| self.plan.rows.contains_key(&Key::Entry(head.scope.clone(), head.key.clone()));
        let placed: Vec<_> = heads.into_iter().filter(|(_, head)| !is_changed(head)).collect();
        *self.stored.borrow_mut() = Some((range.clone(), limit, placed.clone()));
        Ok(placed)
    }
}

/// How the position of an entry in a range is made from what is known without its value.
fn place_of_head(range: &Range) -> Option<fn(&EntryHead) -> Vec<IndexValue>> {
    if range.index == Entry::NEWEST {
        Some(|head| vec![head.revision.into()])
    } else if range.index == Entry::IN_SCOPE {
        Some(|head| vec![head.key.as_str().into()])
    } else {
        None
    }
}

/// The position of an entry in a range, if it is there.
fn placed(row: &Row, range: &Range) -> Option<Placed> {
    let Row::Entry(entry) = row else { return None };
    let place = row.index_keys().into_iter().find(|key| {
        (key.index, &key.partition) == (range.index, &range.partition)
            && !range.begins_after(&key.sort)
            && !range.ends_before(&key.sort)
    });
    place.map(|place| (place.sort, EntryHead::of(entry)))
}

impl Tx for PlannedTx<'_> {
    fn prefetch(&self, next: &[Prefetch<'_>]) -> Result<()> {
        let next: Vec<_> = next
            .iter()
            .map(|prefetch| match prefetch {
                Prefetch::Heads(range, limit) if place_of_head(range).is_some() => {
                    Prefetch::Heads(range.clone(), self.limit(*limit))
                }
                Prefetch::Heads(range, limit) => Prefetch::Candidates(range.clone(), self.limit(*limit)),
                other => other.clone(),
            })
            .collect();
        self.tx.prefetch(&next)
    }

    fn get(&self, key: &Key) -> Result<Option<Row>> {
        match self.plan.rows.get(key) {
            Some(row) => Ok(row.clone()),
            None => self.tx.get(key),
        }
    }

    fn peek(&self, key: &Key) -> Result<Option<Row>> {
        match self.plan.rows.get(key) {
            Some(row) => Ok(row.clone()),
            None => self.tx.peek(key),
        }
    }

    fn heads(&self, range: &Range, limit: usize) -> Result<Vec<EntryHead>> {
        let mut heads = self.stored(range, self.limit(limit))?;
        heads.extend(self.plan.rows.values().flatten().filter_map(|row| placed(row, range)));
        heads.sort_by(|(one, _), (other, _)| one.cmp(other));
        if range.is_backwards() {
            heads.reverse();
        }
        heads.truncate(limit);
        Ok(heads.into_iter().map(|(_, head)| head).collect())
    }

    fn now(&self) -> Timestamp {
        self.tx.now()
    }

    fn revision(&self) -> Result<Revision> {
        self.tx.revision()
    }

    fn range(&self, range: &Range) -> Result<Vec<Row>> {
        self.tx.range(range)
    }

    fn candidates(&self, range: &Range, limit: usize) -> Result<Vec<Row>> {
        self.tx.candidates(range, limit)
    }

    fn any(&self, range: &Range) -> Result<bool> {
        self.tx.any(range)
    }

    fn keys(&self, range: &Range, limit: usize) -> Result<Vec<Result<Key>>> {
        self.tx.keys(range, limit)
    }

    fn count(&self, range: &Range) -> Result<u64> {
        self.tx.count(range)
    }

    fn events(&self, page: &Page<'_>) -> Result<Vec<Event>> {
        self.tx.events(page)
    }

    fn version(&self, revision: Revision) -> Result<Option<EntryVersion>> {
        self.tx.version(revision)
    }

    fn version_heads(&self, after: Revision, until: Revision) -> Result<Vec<VersionHead>> {
        self.tx.version_heads(after, until)
    }

    fn count_events(&self, after: Revision, until: Revision) -> Result<u64> {
        self.tx.count_events(after, until)
    }

    fn revision_back(&self, until: Revision, count: u64) -> Result<Revision> {
        self.tx.revision_back(until, count)
    }

    fn revision_before(&self, moment: Timestamp) -> Result<Revision> {
        self.tx.revision_before(moment)
    }

    fn floor(&self) -> Result<Revision> {
        self.tx.floor()
    }
}
