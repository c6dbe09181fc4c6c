//! A store that records what was announced. It refuses other reads, and counts the round trips that a remote engine
//! would need.
//!
//! A call costs one round trip for the reads that it announces, one for each later [`Tx::prefetch`] with something
//! new, and one for a commit with changes. A run of a commit that has fetched more than once and changes nothing costs
//! one more: its reads are of several states, and are validated before its answer counts.
//!
//! A read begins again after each later [`Tx::prefetch`] with something new, as on an engine that cannot keep a state.
//!
//! There are no exceptions. A verb that reads page by page announces each page when it knows where that begins, and
//! `round_trips.snap` shows the cost. Reads and commits of a test without a verb bypass this store:
//! [`Fixture::read`](super::Fixture::read) and [`Fixture::commit`](super::Fixture::commit) use the engine below.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::clock::Timestamp;
use crate::entry::{EntryHead, EntryVersion};
use crate::error::{Code, Fault, Result};
use crate::event::{Event, EventType};
use crate::revision::Revision;
use crate::store::{Changes, Commit, Committed, Key, Page, Prefetch, Range, Row, Store, Tx, VersionHead};

/// How many round trips calls took.
#[derive(Debug, Default)]
pub(crate) struct RoundTrips {
    reads: AtomicUsize,
    commits: AtomicUsize,
    /// The values that were announced: entries and versions.
    values: AtomicUsize,
    /// The most of them in one announcement.
    values_at_once: AtomicUsize,
}

impl RoundTrips {
    /// The reads and the commits since the last call of this function.
    pub(crate) fn take(&self) -> (usize, usize) {
        (self.reads.swap(0, Ordering::Relaxed), self.commits.swap(0, Ordering::Relaxed))
    }

    /// How many values calls announced since the last call of this function, and the most of them at once.
    pub(crate) fn take_values(&self) -> (usize, usize) {
        (self.values.swap(0, Ordering::Relaxed), self.values_at_once.swap(0, Ordering::Relaxed))
    }

    fn add_values(&self, count: usize) {
        self.values.fetch_add(count, Ordering::Relaxed);
        self.values_at_once.fetch_max(count, Ordering::Relaxed);
    }

    fn add_read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) struct Announced {
    store: Arc<dyn Store>,
    round_trips: Arc<RoundTrips>,
}

impl Announced {
    pub(crate) fn new(store: Arc<dyn Store>) -> Announced {
        Announced { store, round_trips: Arc::default() }
    }

    pub(crate) fn round_trips(&self) -> Arc<RoundTrips> {
        Arc::clone(&self.round_trips)
    }

    /// Fetches what a call announces.
    fn fetch(&self, prefetch: &[Prefetch<'_>]) -> RefCell<Known> {
        self.round_trips.add_read();
        let mut known = Known::default();
        for one in prefetch {
            known.add(one);
        }
        RefCell::new(known)
    }
}

impl Store for Announced {
    fn read(&self, prefetch: &[Prefetch<'_>], f: &mut dyn FnMut(&dyn Tx) -> Result<()>) -> Result<()> {
        let known = self.fetch(prefetch);
        loop {
            let has_fetched = Cell::new(false);
            let run = Run { known: &known, round_trips: &self.round_trips, has_fetched: &has_fetched };
            let outcome = self.store.read(prefetch, &mut |tx| f(&AnnouncedTx { tx, run, is_read: true }));
            if !has_fetched.get() {
                return outcome;
            }
        }
    }

    fn commit(
        &self,
        commit: &Commit<'_>,
        f: &mut dyn FnMut(&dyn Tx) -> Result<Changes>,
    ) -> Result<Committed> {
        self.store.commit(commit, &mut |tx| {
            let (known, has_fetched) = (self.fetch(commit.prefetch), Cell::new(false));
            let run = Run { known: &known, round_trips: &self.round_trips, has_fetched: &has_fetched };
            let outcome = f(&AnnouncedTx { tx, run, is_read: false });
            if outcome.as_ref().is_ok_and(|changes| !changes.is_empty()) {
                self.round_trips.commits.fetch_add(1, Ordering::Relaxed);
            } else if has_fetched.get() {
                self.round_trips.add_read();
            }
            outcome
        })
    }

    fn wait(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        self.store.wait(after, timeout)
    }

    fn has_writer_lock(&self) -> bool {
        self.store.has_writer_lock()
    }

    fn check_still_there(&self) -> Result<()> {
        self.store.check_still_there()
    }

    fn size(&self) -> Result<u64> {
        self.store.size()
    }

    fn scrub(&self) -> Result<Vec<String>> {
        self.store.scrub()
    }
}

/// The reads that a run may make without another round trip.
#[derive(Default)]
struct Known {
    rows: HashSet<Key>,
    ranges: Vec<Range>,
    candidates: Vec<(Range, usize)>,
    heads: Vec<(Range, usize)>,
    keys: Vec<(Range, usize)>,
    any: Vec<Range>,
    aged: Vec<(Range, Duration)>,
    counts: Vec<Range>,
    pages: Vec<(Revision, Revision, Vec<EventType>, usize)>,
    versions: HashSet<Revision>,
    version_heads: Vec<(Revision, Revision)>,
    event_counts: Vec<(Revision, Revision)>,
    revisions_back: Vec<(Revision, u64)>,
    revisions_before: Vec<Timestamp>,
    revisions_aged: Vec<Duration>,
    revision: bool,
}

fn page_of(page: &Page<'_>) -> (Revision, Revision, Vec<EventType>, usize) {
    (page.after, page.until, page.types.to_vec(), page.limit)
}

/// Adds something that is announced, and returns whether it is new.
fn insert<T: PartialEq>(known: &mut Vec<T>, new: T) -> bool {
    let is_new = !known.contains(&new);
    if is_new {
        known.push(new);
    }
    is_new
}

/// Whether at least this many rows of the range were announced.
fn covers(known: &[(Range, usize)], range: &Range, limit: usize) -> bool {
    known.iter().any(|(announced, most)| announced == range && *most >= limit)
}

impl Known {
    /// Adds an announcement, and returns whether it is new.
    fn add(&mut self, prefetch: &Prefetch<'_>) -> bool {
        match prefetch {
            Prefetch::Row(key) => self.rows.insert(key.clone()),
            Prefetch::Entry(scope, key) => {
                let (scope, key) = ((*scope).to_owned(), (*key).to_owned());
                let is_new_entry = self.rows.insert(Key::Entry(scope.clone(), key.clone()));
                self.rows.insert(Key::Tombstone(scope, key)) | is_new_entry
            }
            Prefetch::Range(range) => insert(&mut self.ranges, range.clone()),
            Prefetch::Candidates(range, limit) => insert(&mut self.candidates, (range.clone(), *limit)),
            Prefetch::Heads(range, limit) => insert(&mut self.heads, (range.clone(), *limit)),
            Prefetch::Keys(range, limit) => insert(&mut self.keys, (range.clone(), *limit)),
            Prefetch::Any(range) => insert(&mut self.any, range.clone()),
            Prefetch::AnyAged(range, age) => insert(&mut self.aged, (range.clone(), *age)),
            Prefetch::Count(range) => insert(&mut self.counts, range.clone()),
            Prefetch::Events(page) => insert(&mut self.pages, page_of(page)),
            Prefetch::Version(revision) => self.versions.insert(*revision),
            Prefetch::VersionHeads(after, until) => insert(&mut self.version_heads, (*after, *until)),
            Prefetch::CountEvents(after, until) => insert(&mut self.event_counts, (*after, *until)),
            Prefetch::RevisionBack(until, count) => insert(&mut self.revisions_back, (*until, *count)),
            Prefetch::RevisionBefore(moment) => insert(&mut self.revisions_before, *moment),
            Prefetch::RevisionAged(age) => insert(&mut self.revisions_aged, *age),
            Prefetch::Revision => !std::mem::replace(&mut self.revision, true),
        }
    }

    fn has_candidates(&self, range: &Range, limit: usize) -> bool {
        self.ranges.contains(range) || covers(&self.candidates, range, limit)
    }

    fn has_any(&self, range: &Range, now: Timestamp) -> bool {
        self.any.contains(range)
            || self.counts.contains(range)
            || self.has_candidates(range, 1)
            || self.aged.iter().any(|(whole, age)| whole.clone().aged(now, *age) == *range)
    }

    fn has_revision_before(&self, moment: Timestamp, now: Timestamp) -> bool {
        self.revisions_before.contains(&moment)
            || self.revisions_aged.iter().any(|age| now.minus(*age) == moment)
    }
}

/// One run of a function.
#[derive(Clone, Copy)]
struct Run<'a> {
    known: &'a RefCell<Known>,
    round_trips: &'a RoundTrips,
    /// Whether it announced more, so that a second fetch was needed.
    has_fetched: &'a Cell<bool>,
}

struct AnnouncedTx<'a> {
    tx: &'a dyn Tx,
    run: Run<'a>,
    is_read: bool,
}

impl AnnouncedTx<'_> {
    /// Refuses a read that was not announced.
    fn check(&self, is_known: impl FnOnce(&Known) -> bool, what: &dyn std::fmt::Debug) -> Result<()> {
        if is_known(&self.run.known.borrow()) {
            return Ok(());
        }
        Err(Fault::new(Code::Internal, format!("{what:?} was read without being announced")).into())
    }

    /// Rows that came with a range need no announcement of their own.
    fn note(&self, rows: Vec<Row>) -> Vec<Row> {
        self.run.known.borrow_mut().rows.extend(rows.iter().map(Row::key));
        rows
    }
}

impl Tx for AnnouncedTx<'_> {
    fn prefetch(&self, next: &[Prefetch<'_>]) -> Result<()> {
        let mut known = self.run.known.borrow_mut();
        let new: Vec<_> = next.iter().filter(|one| known.add(one)).collect();
        let is_value = |one: &&&Prefetch<'_>| matches!(one, Prefetch::Entry(..) | Prefetch::Version(_));
        self.run.round_trips.add_values(new.iter().filter(is_value).count());
        if !new.is_empty() {
            self.run.round_trips.add_read();
            self.run.has_fetched.set(true);
            if self.is_read {
                return Err(Fault::new(Code::Internal, "the read begins again").into());
            }
        }
        self.tx.prefetch(next)
    }

    fn now(&self) -> Timestamp {
        self.tx.now()
    }

    fn revision(&self) -> Result<Revision> {
        self.check(|known| known.revision, &"the revision")?;
        self.tx.revision()
    }

    fn get(&self, key: &Key) -> Result<Option<Row>> {
        self.check(|known| known.rows.contains(key), key)?;
        self.tx.get(key)
    }

    fn peek(&self, key: &Key) -> Result<Option<Row>> {
        self.check(|known| known.rows.contains(key), key)?;
        self.tx.peek(key)
    }

    fn range(&self, range: &Range) -> Result<Vec<Row>> {
        self.check(|known| known.ranges.contains(range), range)?;
        Ok(self.note(self.tx.range(range)?))
    }

    fn candidates(&self, range: &Range, limit: usize) -> Result<Vec<Row>> {
        self.check(|known| known.has_candidates(range, limit), range)?;
        Ok(self.note(self.tx.candidates(range, limit)?))
    }

    fn heads(&self, range: &Range, limit: usize) -> Result<Vec<EntryHead>> {
        self.check(|known| known.ranges.contains(range) || covers(&known.heads, range, limit), range)?;
        self.tx.heads(range, limit)
    }

    fn any(&self, range: &Range) -> Result<bool> {
        self.check(|known| known.has_any(range, self.tx.now()), range)?;
        self.tx.any(range)
    }

    fn keys(&self, range: &Range, limit: usize) -> Result<Vec<Result<Key>>> {
        self.check(|known| covers(&known.keys, range, limit), range)?;
        self.tx.keys(range, limit)
    }

    fn count(&self, range: &Range) -> Result<u64> {
        self.check(|known| known.ranges.contains(range) || known.counts.contains(range), range)?;
        self.tx.count(range)
    }

    fn events(&self, page: &Page<'_>) -> Result<Vec<Event>> {
        self.check(|known| known.pages.contains(&page_of(page)), page)?;
        self.tx.events(page)
    }

    fn version(&self, revision: Revision) -> Result<Option<EntryVersion>> {
        self.check(|known| known.versions.contains(&revision), &revision)?;
        self.tx.version(revision)
    }

    fn version_heads(&self, after: Revision, until: Revision) -> Result<Vec<VersionHead>> {
        let is_known = |known: &Known| known.version_heads.contains(&(after, until));
        self.check(is_known, &("the versions of events", after, until))?;
        self.tx.version_heads(after, until)
    }

    fn count_events(&self, after: Revision, until: Revision) -> Result<u64> {
        let is_known = |known: &Known| known.event_counts.contains(&(after, until));
        self.check(is_known, &("the number of events", after, until))?;
        self.tx.count_events(after, until)
    }

    fn revision_back(&self, until: Revision, count: u64) -> Result<Revision> {
        let is_known = |known: &Known| known.revisions_back.contains(&(until, count));
        self.check(is_known, &("the revision back", until, count))?;
        self.tx.revision_back(until, count)
    }

    fn revision_before(&self, moment: Timestamp) -> Result<Revision> {
        let now = self.tx.now();
        self.check(|known| known.has_revision_before(moment, now), &("the revision before", moment))?;
        self.tx.revision_before(moment)
    }

    fn floor(&self) -> Result<Revision> {
        self.check(|known| known.revision, &"the floor")?;
        self.tx.floor()
    }
}

#[test]
fn a_call_that_reads_what_it_has_not_announced_is_refused() {
    let (fixture, round_trips) = super::Fixture::announced();
    let key = Key::WorkItem("a".to_owned());
    let refused = |answer: Result<()>| {
        let message = answer.unwrap_err().to_string();
        assert!(message.contains("without being announced"), "{message}");
    };
    refused(fixture.board.read(&[], |tx| tx.get(&key).map(drop)));
    refused(fixture.board.read(&[Prefetch::Revision], |tx| tx.get(&key).map(drop)));
    refused(fixture.board.commit("test", &[], |tx| tx.get(&key).map(|_| (Changes::new(), ()))));
    // The reads of a sweep do not count as announced by the call.
    fixture.board.sweep_with_next_call(None);
    refused(fixture.board.read(&[], |tx| tx.revision().map(drop)));
    round_trips.take();
    fixture.board.read(&[Prefetch::Row(key.clone())], |tx| tx.get(&key)).unwrap();
    fixture.read(|tx| tx.get(&key)).unwrap();
    assert_eq!(round_trips.take(), (1, 0), "what a test reads without a verb is not counted");
}
