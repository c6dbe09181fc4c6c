//! The memory engine: the reference.
//!
//! It is optimistic on purpose. A commit runs without a lock, remembers what it saw, and is validated at the end;
//! on conflict it runs again. So the discipline that a remote engine needs is proven here, where it is simple.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use super::record::{Index, IndexKey, IndexValue};
use super::{
    Changes, Commit, Committed, Erasure, Key, Page, Prefetch, Range, Row, Store, Tx, VersionHead,
    check_versions, count_older, event_time,
};
use crate::clock::{Clock, Timestamp};
use crate::entry::{EntryHead, EntryVersion};
use crate::error::{Code, Fault, Refusal, Result};
use crate::event::Event;
use crate::revision::{Pending, Revision};
use crate::work::Status;

/// How often a commit is tried before it is called a conflict.
const MAX_RUNS: usize = 1000;

/// After how many lost runs other commits make way: a commit that reads much would otherwise lose to small ones for ever.
const STARVING_RUNS: usize = 8;

/// How long other commits make way at most, each.
const MOST_YIELD: Duration = Duration::from_millis(100);

/// Where the ids of a board that skips begin: so large that no test takes one for a number of events.
const FIRST_AFTER_SKIP: i64 = 1 << 40;

/// A board in memory.
pub struct Memory {
    state: RwLock<State>,
    /// The revision of the state, for those who wait for it to grow. It changes while the state is locked.
    revision: Mutex<Revision>,
    grown: Condvar,
    clock: Arc<dyn Clock>,
    runs_twice: AtomicBool,
    skips_revisions: AtomicBool,
    /// How often a commit has lost that is starving; zero if none is.
    starving: AtomicUsize,
}

#[derive(Default)]
struct State {
    rows: HashMap<Key, Stored>,
    indexes: HashMap<(&'static Index, Vec<IndexValue>), Partition>,
    events: Vec<Event>,
    versions: BTreeMap<Revision, EntryVersion>,
    floor: Revision,
    commits: u64,
}

struct Stored {
    row: Row,
    /// The commit that wrote it.
    stamp: u64,
}

#[derive(Default)]
struct Partition {
    entries: BTreeMap<Vec<IndexValue>, Key>,
    /// The commit that last let a row in or out.
    membership: u64,
    /// The commit that last moved a row to another place, and so perhaps into a part of it.
    moved: u64,
}

impl Memory {
    /// An empty board.
    pub fn new(clock: Arc<dyn Clock>) -> Memory {
        Memory {
            state: RwLock::default(),
            revision: Mutex::default(),
            grown: Condvar::new(),
            clock,
            runs_twice: AtomicBool::new(false),
            skips_revisions: AtomicBool::new(false),
            starving: AtomicUsize::new(0),
        }
    }

    /// Makes way for a commit that keeps losing, the longer the more often it has lost.
    fn yield_to_starving(&self, run: usize) {
        if run >= STARVING_RUNS {
            self.starving.store(run, Ordering::Relaxed);
            return;
        }
        let lost = self.starving.load(Ordering::Relaxed);
        if lost > 0 {
            std::thread::sleep(Duration::from_millis(lost as u64).min(MOST_YIELD));
        }
    }

    /// For tests: every commit loses its first run, as if somebody else had been faster.
    #[must_use]
    pub fn running_everything_twice(self) -> Memory {
        self.runs_twice.store(true, Ordering::Relaxed);
        self
    }

    /// For tests: the first event has a large id, and every commit skips ahead by a random number of ids, as an engine
    /// does that cannot know the last id it assigned.
    #[must_use]
    pub fn skipping_revisions(self) -> Memory {
        self.skips_revisions.store(true, Ordering::Relaxed);
        self
    }

    fn shared(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn exclusive(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes those who wait, if there is something new.
    fn tell(&self, revision: Revision) {
        let mut known = self.revision.lock().unwrap_or_else(PoisonError::into_inner);
        if *known < revision {
            *known = revision;
            self.grown.notify_all();
        }
    }
}

impl Store for Memory {
    fn read(&self, _wanted: &[Prefetch<'_>], f: &mut dyn FnMut(&dyn Tx) -> Result<()>) -> Result<()> {
        // The guard makes the whole read see one state.
        let state = self.shared();
        f(&Reader { state: &state, now: self.clock.now() })
    }

    fn commit(
        &self,
        commit: &Commit<'_>,
        f: &mut dyn FnMut(&dyn Tx) -> Result<Changes>,
    ) -> Result<Committed> {
        for run in 0..MAX_RUNS {
            self.yield_to_starving(run);
            let view = Recorder { memory: self, now: self.clock.now(), seen: RefCell::default() };
            let outcome = f(&view);
            let seen = view.seen.into_inner();
            let mut state = self.exclusive();
            let lost = run == 0 && self.runs_twice.load(Ordering::Relaxed);
            if lost || !seen.still_holds(&state) {
                continue;
            }
            if run >= STARVING_RUNS {
                self.starving.store(0, Ordering::Relaxed);
            }
            // A refusal is an answer too, and was just validated like any other.
            let changes = outcome?;
            let first = state.next_revision(self.skips_revisions.load(Ordering::Relaxed));
            let committed = state.apply(changes, &seen, first, self.clock.now())?;
            self.tell(state.revision());
            return Ok(committed);
        }
        self.starving.store(0, Ordering::Relaxed);
        Err(Refusal::new(Code::Conflict, format!("{} lost against others {MAX_RUNS} times", commit.name))
            .into())
    }

    fn wait(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        let known = self.revision.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, _) = self
            .grown
            .wait_timeout_while(known, timeout, |known| *known <= after)
            .unwrap_or_else(PoisonError::into_inner);
        Ok(*known)
    }

    fn size(&self) -> Result<u64> {
        Ok(0)
    }
}

impl State {
    fn revision(&self) -> Revision {
        self.events.last().map_or(self.floor, |event| event.id)
    }

    /// The id of the next event.
    fn next_revision(&self, skips: bool) -> Revision {
        let last = self.revision();
        if !skips {
            return last.next();
        }
        // A hash of the number of commits: random enough, and the same in every run of a test.
        let random = self.commits.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
        let skipped = i64::try_from(random).unwrap_or(0);
        Revision::new(last.get().max(FIRST_AFTER_SKIP) + 1 + skipped)
    }

    /// How many events have this id or a lower one.
    fn events_up_to(&self, revision: Revision) -> usize {
        self.events.partition_point(|event| event.id <= revision)
    }

    /// The id of the event before this position; the floor if there is none.
    fn revision_of_position(&self, position: usize) -> Revision {
        let before = position.checked_sub(1).and_then(|position| self.events.get(position));
        before.map_or(self.floor, |event| event.id)
    }

    /// The commit that last changed which rows the first `limit` of a range are.
    fn membership(&self, range: &Range, limit: usize) -> u64 {
        let Some(partition) = self.indexes.get(&(range.index, range.partition.clone())) else { return 0 };
        let is_whole = range.is_whole() && limit == usize::MAX;
        if is_whole { partition.membership } else { partition.membership.max(partition.moved) }
    }

    fn rows_of(&self, range: &Range, limit: usize) -> Vec<(&Key, &Stored)> {
        let Some(partition) = self.indexes.get(&(range.index, range.partition.clone())) else {
            return Vec::new();
        };
        // A bound is the beginning of a position, which sorts before everything that begins with it.
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
        if range.index.backwards {
            let keys = keys.rev().skip_while(|(sort, _)| is_late(sort));
            keys.take_while(|(sort, _)| !is_early(sort)).filter_map(found).take(limit).collect()
        } else {
            let keys = keys.skip_while(|(sort, _)| is_early(sort));
            keys.take_while(|(sort, _)| !is_late(sort)).filter_map(found).take(limit).collect()
        }
    }

    fn events(&self, page: &Page<'_>) -> Vec<Event> {
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

    fn apply(
        &mut self,
        mut changes: Changes,
        seen: &Seen,
        first: Revision,
        now: Timestamp,
    ) -> Result<Committed> {
        changes.resolve(first);
        check_versions(&changes, first)?;
        let put = changes.put.iter().filter(|row| !row.table().appended).map(Row::key);
        for key in put.chain(changes.remove.iter().cloned()) {
            if !seen.rows.contains_key(&key) {
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

/// The view of a read: one state.
struct Reader<'a> {
    state: &'a State,
    now: Timestamp,
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

    fn missing_blockers(&self, limit: usize) -> Result<Vec<String>> {
        let item = |id: &str| match self.state.rows.get(&Key::WorkItem(id.to_owned()))?.row {
            Row::WorkItem(ref item) => Some(item),
            _ => None,
        };
        let rows = self.state.rows_of(&Range::dependencies(), usize::MAX);
        let missing: BTreeSet<&str> = rows
            .into_iter()
            .filter_map(|(_, stored)| match &stored.row {
                Row::Dependency(dependency) => Some(dependency),
                _ => None,
            })
            .filter(|dependency| {
                item(&dependency.item_id).is_some_and(|item| item.status == Status::Blocked)
                    && item(&dependency.blocked_by).is_none()
            })
            .map(|dependency| dependency.blocked_by.as_str())
            .collect();
        Ok(missing.into_iter().take(limit).map(str::to_owned).collect())
    }
}

fn head(row: &Row) -> Option<EntryHead> {
    match row {
        Row::Entry(entry) => Some(EntryHead::of(entry)),
        _ => None,
    }
}

/// What a run has seen: each row with its stamp (none if it was absent), each head with that of its row, each range with
/// its limit and its membership.
#[derive(Default)]
struct Seen {
    rows: HashMap<Key, Option<u64>>,
    heads: HashMap<Key, u64>,
    ranges: Vec<(Range, usize, u64)>,
}

impl Seen {
    fn still_holds(&self, state: &State) -> bool {
        let stamp_of = |key| state.rows.get(key).map(|stored| stored.stamp);
        self.rows.iter().all(|(key, stamp)| stamp_of(key) == *stamp)
            && self.heads.iter().all(|(key, stamp)| stamp_of(key) == Some(*stamp))
            && self.ranges.iter().all(|(range, limit, seen)| state.membership(range, *limit) == *seen)
    }
}

/// The view of a commit: takes the lock for each read alone, and remembers what it saw.
struct Recorder<'a> {
    memory: &'a Memory,
    now: Timestamp,
    seen: RefCell<Seen>,
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
        // The first sight counts: if a later one differs, validation fails as it should.
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

    fn missing_blockers(&self, limit: usize) -> Result<Vec<String>> {
        self.reading(|reader| reader.missing_blockers(limit))
    }
}
