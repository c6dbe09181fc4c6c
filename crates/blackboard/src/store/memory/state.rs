//! The state of a board in memory: rows, indexes, events, versions.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::time::Duration;

use super::view::Seen;
use crate::clock::Timestamp;
use crate::entry::EntryVersion;
use crate::error::{Code, Fault, Result};
use crate::event::Event;
use crate::revision::{Pending, Revision};
use crate::store::record::{Index, IndexKey, IndexValue};
use crate::store::{
    Changes, Committed, Erasure, Key, Page, Range, Row, check_changes, event_time, skip_revisions,
};

#[derive(Default)]
pub(super) struct State {
    pub(super) rows: HashMap<Key, Stored>,
    indexes: HashMap<(&'static Index, Vec<IndexValue>), Partition>,
    pub(super) events: Vec<Event>,
    pub(super) versions: BTreeMap<Revision, EntryVersion>,
    pub(super) floor: Revision,
    commits: u64,
}

pub(super) struct Stored {
    pub(super) row: Row,
    /// The commit that wrote it.
    pub(super) stamp: u64,
}

#[derive(Default)]
struct Partition {
    entries: BTreeMap<Vec<IndexValue>, Key>,
    /// The commit that last added or removed a row.
    membership: u64,
    /// The commit that last moved a row to another position, and so perhaps into a part of it.
    moved: u64,
}

impl State {
    pub(super) fn revision(&self) -> Revision {
        self.events.last().map_or(self.floor, |event| event.id)
    }

    /// The id of the next event.
    pub(super) fn next_revision(&self, skips: bool) -> Revision {
        if skips { skip_revisions(self.revision()) } else { self.revision().next() }
    }

    /// How many events have this id or a lower one.
    pub(super) fn events_up_to(&self, revision: Revision) -> usize {
        self.events.partition_point(|event| event.id <= revision)
    }

    /// The id of the event before this position; the last pruned revision if there is none.
    pub(super) fn revision_of_position(&self, position: usize) -> Revision {
        let before = position.checked_sub(1).and_then(|position| self.events.get(position));
        before.map_or(self.floor, |event| event.id)
    }

    /// The commit that last changed the first `limit` rows of a range.
    pub(super) fn membership(&self, range: &Range, limit: usize) -> u64 {
        let Some(partition) = self.indexes.get(&(range.index, range.partition.clone())) else { return 0 };
        let is_whole = range.is_whole() && limit == usize::MAX;
        if is_whole { partition.membership } else { partition.membership.max(partition.moved) }
    }

    pub(super) fn rows_of(&self, range: &Range, limit: usize) -> Vec<(&Key, &Stored)> {
        let Some(partition) = self.indexes.get(&(range.index, range.partition.clone())) else {
            return Vec::new();
        };
        // A bound is a prefix of a position, which sorts before everything that begins with it.
        let from = match &range.from {
            Bound::Included(from) | Bound::Excluded(from) => Bound::Included(from),
            Bound::Unbounded => Bound::Unbounded,
        };
        let until = match &range.until {
            Bound::Excluded(until) => Bound::Excluded(until),
            Bound::Included(_) | Bound::Unbounded => Bound::Unbounded,
        };
        if let (Bound::Included(from), Bound::Excluded(until)) = (from, until)
            && from > until
        {
            return Vec::new();
        }
        let keys = partition.entries.range::<Vec<IndexValue>, _>((from, until));
        let is_early = |sort: &[IndexValue]| range.begins_after(sort);
        let is_late = |sort: &[IndexValue]| range.ends_before(sort);
        let found = |(_, key)| Some((key, self.rows.get(key)?));
        if range.is_backwards() {
            let keys = keys.rev().skip_while(|(sort, _)| is_late(sort));
            keys.take_while(|(sort, _)| !is_early(sort)).filter_map(found).take(limit).collect()
        } else {
            let keys = keys.skip_while(|(sort, _)| is_early(sort));
            keys.take_while(|(sort, _)| !is_late(sort)).filter_map(found).take(limit).collect()
        }
    }

    pub(super) fn events(&self, page: &Page<'_>) -> Vec<Event> {
        let start = self.events_up_to(page.after);
        let mut found: Vec<Event> = Vec::new();
        for event in &self.events[start..] {
            let full = found.len() >= page.limit;
            let same_commit = found.last().is_some_and(|last| last.commit_id == event.commit_id);
            if event.id > page.until || (full && !same_commit) {
                break;
            }
            if page.types.is_empty() || page.types.contains(&event.event_type) {
                found.push(event.clone());
            }
        }
        found
    }

    pub(super) fn apply(
        &mut self,
        mut changes: Changes,
        seen: &Seen,
        first: Revision,
        now: Timestamp,
    ) -> Result<Committed> {
        changes.resolve(first);
        check_changes(&changes, first)?;
        for key in changes.put.iter().map(Row::key).chain(changes.remove.iter().cloned()) {
            if !key.table().appended && !seen.rows.contains_key(&key) {
                return Err(
                    Fault::new(Code::Internal, format!("{key:?} is written without being read")).into()
                );
            }
        }
        self.commits += 1;
        let timestamp = event_time(now, self.events.last().map(|event| event.timestamp));
        for key in changes.remove {
            self.remove(&key);
        }
        for row in changes.put {
            self.put(row);
        }
        for erasure in changes.erase {
            self.erase(erasure);
        }
        for (offset, mut event) in (0..).zip(changes.events) {
            let id = Revision::new(first.get() + offset);
            if let Some(version) = event.version.take() {
                self.versions.insert(id, *version);
            }
            self.events.push(event.at(id, first, timestamp));
        }
        for revision in changes.remove_versions {
            self.versions.remove(&revision);
        }
        // Another commit may have removed the same part, or more.
        if let Some(until) = changes.trim_events.filter(|until| *until > self.floor) {
            self.events.retain(|event| event.id > until);
            self.floor = until;
        }
        Ok(Committed { first, held: Duration::ZERO })
    }

    fn erase(&mut self, erasure: Erasure) {
        self.versions.remove(&erasure.event);
        let place = self.events.partition_point(|event| event.id < erasure.event);
        if let Some(event) = self.events.get_mut(place).filter(|event| event.id == erasure.event) {
            event.summary = erasure.summary;
            event.metadata = erasure.metadata;
        }
    }

    fn put(&mut self, row: Row) {
        let key = row.key();
        let before = self.rows.get(&key).map(|stored| stored.row.index_keys()).unwrap_or_default();
        let after = row.index_keys();
        for place in &before {
            let stays =
                after.iter().any(|other| other.index == place.index && other.partition == place.partition);
            self.leave(place, stays);
        }
        for place in after {
            let stood =
                before.iter().find(|other| other.index == place.index && other.partition == place.partition);
            let commits = self.commits;
            let partition = self.indexes.entry((place.index, place.partition)).or_default();
            match stood {
                None => partition.membership = commits,
                Some(stood) if stood.sort != place.sort => partition.moved = commits,
                Some(_) => {}
            }
            partition.entries.insert(place.sort, key.clone());
        }
        self.rows.insert(key, Stored { row, stamp: self.commits });
    }

    fn remove(&mut self, key: &Key) {
        if let Some(stored) = self.rows.remove(key) {
            for place in stored.row.index_keys() {
                self.leave(&place, false);
            }
        }
    }

    fn leave(&mut self, place: &IndexKey, stays: bool) {
        let commits = self.commits;
        if let Some(partition) = self.indexes.get_mut(&(place.index, place.partition.clone())) {
            partition.entries.remove(&place.sort);
            if !stays {
                partition.membership = commits;
            }
        }
    }
}
