//! The views of a read and a commit, and what a commit has to find unchanged.

use std::cell::RefCell;
use std::collections::HashMap;

use super::Memory;
use super::state::State;
use crate::clock::Timestamp;
use crate::entry::{EntryHead, EntryVersion};
use crate::error::Result;
use crate::event::Event;
use crate::revision::Revision;
use crate::store::{Key, Page, Range, Row, Tx, VersionHead, count_older};

/// The view of a read: one state.
pub(super) struct Reader<'a> {
    pub(super) state: &'a State,
    pub(super) now: Timestamp,
}

impl Tx for Reader<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn revision(&self) -> Result<Revision> {
        Ok(self.state.revision())
    }

    fn get(&self, key: &Key) -> Result<Option<Row>> {
        Ok(self.state.rows.get(key).map(|stored| stored.row.clone()))
    }

    fn peek(&self, key: &Key) -> Result<Option<Row>> {
        self.get(key)
    }

    fn range(&self, range: &Range) -> Result<Vec<Row>> {
        self.candidates(range, usize::MAX)
    }

    fn candidates(&self, range: &Range, limit: usize) -> Result<Vec<Row>> {
        Ok(self.state.rows_of(range, limit).into_iter().map(|(_, stored)| stored.row.clone()).collect())
    }

    fn heads(&self, range: &Range, limit: usize) -> Result<Vec<EntryHead>> {
        Ok(self.state.rows_of(range, limit).into_iter().filter_map(|(_, stored)| head(&stored.row)).collect())
    }

    fn any(&self, range: &Range) -> Result<bool> {
        Ok(!self.state.rows_of(range, 1).is_empty())
    }

    fn keys(&self, range: &Range, limit: usize) -> Result<Vec<Result<Key>>> {
        Ok(self.state.rows_of(range, limit).into_iter().map(|(key, _)| Ok(key.clone())).collect())
    }

    fn count(&self, range: &Range) -> Result<u64> {
        Ok(self.state.rows_of(range, usize::MAX).len() as u64)
    }

    fn events(&self, page: &Page<'_>) -> Result<Vec<Event>> {
        Ok(self.state.events(page))
    }

    fn version(&self, revision: Revision) -> Result<Option<EntryVersion>> {
        Ok(self.state.versions.get(&revision).cloned())
    }

    fn version_heads(&self, after: Revision, until: Revision) -> Result<Vec<VersionHead>> {
        if after >= until {
            return Ok(Vec::new());
        }
        let versions = self.state.versions.range(after.next()..=until);
        let head = |(revision, version): (&Revision, &EntryVersion)| VersionHead {
            revision: *revision,
            previous: version.previous,
            removed: version.removed.then(|| (version.entry.scope.clone(), version.entry.key.clone())),
        };
        Ok(versions.map(head).collect())
    }

    fn count_events(&self, after: Revision, until: Revision) -> Result<u64> {
        Ok(self.state.events_up_to(until).saturating_sub(self.state.events_up_to(after)) as u64)
    }

    fn revision_back(&self, until: Revision, count: u64) -> Result<Revision> {
        let end = self.state.events_up_to(until);
        let start = end.saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
        Ok(self.state.revision_of_position(start))
    }

    fn revision_before(&self, moment: Timestamp) -> Result<Revision> {
        let position = |position| usize::try_from(position).unwrap_or(usize::MAX);
        let older = count_older(self.state.events.len() as u64, |at| {
            Ok(self.state.events.get(position(at)).is_some_and(|event| event.timestamp < moment))
        })?;
        Ok(self.state.revision_of_position(position(older)))
    }

    fn floor(&self) -> Result<Revision> {
        Ok(self.state.floor)
    }
}

fn head(row: &Row) -> Option<EntryHead> {
    if let Row::Entry(entry) = row { Some(EntryHead::of(entry)) } else { None }
}

/// What a run has read: each row with its stamp (none if it was absent), each head with that of its row, each range
/// with its limit and its membership.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) rows: HashMap<Key, Option<u64>>,
    heads: HashMap<Key, u64>,
    ranges: Vec<(Range, usize, u64)>,
}

impl Seen {
    pub(super) fn still_holds(&self, state: &State) -> bool {
        let stamp_of = |key| state.rows.get(key).map(|stored| stored.stamp);
        self.rows.iter().all(|(key, stamp)| stamp_of(key) == *stamp)
            && self.heads.iter().all(|(key, stamp)| stamp_of(key) == Some(*stamp))
            && self.ranges.iter().all(|(range, limit, seen)| state.membership(range, *limit) == *seen)
    }
}

/// The view of a commit: locks only for each read, and remembers what it read.
pub(super) struct Recorder<'a> {
    pub(super) memory: &'a Memory,
    pub(super) now: Timestamp,
    pub(super) seen: RefCell<Seen>,
}

impl Recorder<'_> {
    fn reading<T>(&self, f: impl FnOnce(&Reader<'_>) -> Result<T>) -> Result<T> {
        f(&Reader { state: &self.memory.shared(), now: self.now })
    }
}

impl Tx for Recorder<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn revision(&self) -> Result<Revision> {
        self.reading(|reader| reader.revision())
    }

    fn get(&self, key: &Key) -> Result<Option<Row>> {
        let state = self.memory.shared();
        let stored = state.rows.get(key);
        // The first read counts: if a later one differs, validation fails as it should.
        self.seen.borrow_mut().rows.entry(key.clone()).or_insert(stored.map(|stored| stored.stamp));
        Ok(stored.map(|stored| stored.row.clone()))
    }

    fn peek(&self, key: &Key) -> Result<Option<Row>> {
        self.reading(|reader| reader.peek(key))
    }

    fn range(&self, range: &Range) -> Result<Vec<Row>> {
        let state = self.memory.shared();
        let mut seen = self.seen.borrow_mut();
        seen.ranges.push((range.clone(), usize::MAX, state.membership(range, usize::MAX)));
        let rows = state.rows_of(range, usize::MAX);
        for (key, stored) in &rows {
            seen.rows.entry((*key).clone()).or_insert(Some(stored.stamp));
        }
        Ok(rows.into_iter().map(|(_, stored)| stored.row.clone()).collect())
    }

    fn candidates(&self, range: &Range, limit: usize) -> Result<Vec<Row>> {
        self.reading(|reader| reader.candidates(range, limit))
    }

    fn heads(&self, range: &Range, limit: usize) -> Result<Vec<EntryHead>> {
        let state = self.memory.shared();
        let mut seen = self.seen.borrow_mut();
        seen.ranges.push((range.clone(), limit, state.membership(range, limit)));
        let rows = state.rows_of(range, limit);
        for (key, stored) in &rows {
            seen.heads.entry((*key).clone()).or_insert(stored.stamp);
        }
        Ok(rows.into_iter().filter_map(|(_, stored)| head(&stored.row)).collect())
    }

    fn any(&self, range: &Range) -> Result<bool> {
        self.reading(|reader| reader.any(range))
    }

    fn keys(&self, range: &Range, limit: usize) -> Result<Vec<Result<Key>>> {
        self.reading(|reader| reader.keys(range, limit))
    }

    fn count(&self, range: &Range) -> Result<u64> {
        self.reading(|reader| reader.count(range))
    }

    fn events(&self, page: &Page<'_>) -> Result<Vec<Event>> {
        self.reading(|reader| reader.events(page))
    }

    fn version(&self, revision: Revision) -> Result<Option<EntryVersion>> {
        self.reading(|reader| reader.version(revision))
    }

    fn version_heads(&self, after: Revision, until: Revision) -> Result<Vec<VersionHead>> {
        self.reading(|reader| reader.version_heads(after, until))
    }

    fn count_events(&self, after: Revision, until: Revision) -> Result<u64> {
        self.reading(|reader| reader.count_events(after, until))
    }

    fn revision_back(&self, until: Revision, count: u64) -> Result<Revision> {
        self.reading(|reader| reader.revision_back(until, count))
    }

    fn revision_before(&self, moment: Timestamp) -> Result<Revision> {
        self.reading(|reader| reader.revision_before(moment))
    }

    fn floor(&self) -> Result<Revision> {
        self.reading(|reader| reader.floor())
    }
}
