//! The contract between the board and its storage engine.
//!
//! An engine stores rows, indexes them as [`Row`] declares, and keeps one event log. It never decides anything: a
//! verb reads through a [`Tx`], and **returns** its changes. The contract:
//!
//! - [`Store::commit`] runs the verb's function, possibly more than once, and applies the [`Changes`] that it
//!   returned last atomically, together with their events. Everything that the last run read through [`Tx::get`],
//!   [`Tx::range`] and [`Tx::heads`] is true at the moment of the commit: each row is unchanged, each absent row
//!   still absent, and no row entered or left a range. The same holds for a refusal: it is never based on a state
//!   that did not exist.
//! - An event of an entry has its version, which is stored once, under the event's id. An entry that is put has the
//!   version of an event of the same commit; its value is not stored again.
//! - An event never changes, with one exception: [`Changes::erase`] removes its content permanently.
//! - The result of [`Tx::candidates`] may be outdated. A verb that uses it reads each row again by its key.
//! - A verb puts and removes only rows whose keys it has read in the same run, by [`Tx::get`] or in a [`Tx::range`].
//!   [`Tx::heads`], [`Tx::candidates`] and [`Tx::peek`] are not enough. An engine refuses a commit that breaks this
//!   as a fault of this program. An unreadable row that was requested by [`Tx::get`] counts as read: a put replaces
//!   it completely, and it can be removed. A range that fails because of an unreadable row counts as read as well: no row
//!   has entered or left it at the moment of the commit, so [`Tx::keys`] of it is true after such a failure. Rows of a table that is [appended](record::Table::appended) are put and
//!   removed without being read: a heartbeat needs no further read, and retention removes one that cannot be read.
//! - A commit that puts an entry without its version, or changes the same row twice (two puts, two removals, or one
//!   of each), is a fault as well: [`check_changes`] finds both, for every engine.
//! - Event ids are assigned inside the commit and only grow. Between two commits there may be a gap of any size,
//!   because an engine may have to skip ids. Inside one commit there is none: event *k* has the id of the first event
//!   plus *k*, as [`Revision::of_event`] assumes. No code above the engines counts events by subtracting ids, or
//!   searches by them: the engine counts ([`Tx::count_events`], [`Tx::revision_back`]).
//! - Timestamps of events never go back, unless the last one is more than a day ahead of the clock.
//! - A run of [`Store::read`] sees one state of the board from beginning to end, and waits for no writer.
//! - [`Store::wait`] returns after an event that follows the known one, from any process. It is only a way to sleep:
//!   the event log is the truth. A caller that reads it after each return misses nothing, even if every wake-up were
//!   lost. A lost wake-up costs at most 300 ms, a sleep of a quarter of a second and a check; on a server, whose
//!   connection may be silent, about 2 s. A waiting thread
//!   blocks no other one and holds no state of the board. Any number of threads may wait on one store.
//! - An acknowledged commit is on the board that others find at the same path at that moment. This holds if the board
//!   was opened to stay open, or if a process waits on it. A board that was deleted or replaced acknowledges nothing
//!   more.
//! - Nothing here assumes a local file, or a lock that is held between two calls.
//!
//! `conformance` tests every engine against this.

mod bookkeeping;
mod call_limit;
mod changes;
mod column;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod directory;
mod memory;
mod range;
pub mod record;
#[cfg(feature = "redis")]
pub mod redis;
mod rows;
mod sidecars;
pub mod sqlite;
mod stored;
mod transfer;
mod view;

use std::collections::HashSet;
use std::time::Duration;

pub use self::bookkeeping::{BookkeepingRow, Cursor, RememberedCall};
pub use self::call_limit::CallLimit;
pub use self::changes::{Changes, Erasure};
pub use self::directory::create_private_directory;
pub use self::memory::Memory;
pub use self::range::Range;
pub use self::record::Index;
pub use self::rows::{Key, Row, TABLES};
pub use self::sidecars::{Sidecar, SidecarDirectory, Sidecars};
pub use self::transfer::{Extent, LoadingBoard, Part, Recipient};
pub(crate) use self::view::TxView;
use crate::Result;
use crate::clock::Timestamp;
use crate::entry::{EntryHead, EntryVersion};
use crate::error::{Code, Fault};
use crate::event::{Event, EventType};
use crate::revision::Revision;
use crate::status::SpaceUsage;

/// A storage engine of a board.
pub trait Store: Send + Sync {
    /// Runs `f` on one state of the board. An engine that cannot keep that state may run `f` again from its beginning, on a
    /// newer state, when `f` announces more ([`Tx::prefetch`]) or reads more than it announced. Everything that was
    /// announced so far is then fetched together, so `f` runs at most once more for each announcement with something
    /// new. Only the last run counts: `f` keeps nothing of an earlier one.
    fn read(&self, prefetch: &[Prefetch<'_>], f: &mut dyn FnMut(&dyn Tx) -> Result<()>) -> Result<()>;

    /// Runs `f`, and commits the changes that it returned. See the module's documentation for the contract.
    fn commit(&self, commit: &Commit<'_>, f: &mut dyn FnMut(&dyn Tx) -> Result<Changes>)
    -> Result<Committed>;

    /// Waits until the board's revision is greater than `after`, or until the timeout, by the time of the machine
    /// rather than the board's clock. Returns the revision that the board has then.
    fn wait(&self, after: Revision, timeout: Duration) -> Result<Revision>;

    /// Waits as [`Store::wait`]. An engine that gets the new events together with the end of the wait may also run `f`, as
    /// [`Store::read`] does, on a state that has the returned revision: then the caller need not read them. `prefetch` begins
    /// with the events after `after`.
    fn wait_for_events(
        &self,
        after: Revision,
        timeout: Duration,
        prefetch: &[Prefetch<'_>],
        f: &mut dyn FnMut(&dyn Tx) -> Result<()>,
    ) -> Result<Revision> {
        let _ = (prefetch, f);
        self.wait(after, timeout)
    }

    /// Whether a commit runs while no other can. A call then checks whether a sweep is due before its commit; otherwise the
    /// check is part of the commit, which saves a round trip.
    fn has_writer_lock(&self) -> bool {
        false
    }

    /// Refuses if the board at this path is not the one that was opened: it was deleted or replaced.
    fn check_still_there(&self) -> Result<()> {
        Ok(())
    }

    /// Whether every read and every commit does that, so that a caller need not check first.
    fn always_checks_still_there(&self) -> bool {
        false
    }

    /// The space that the board uses, in bytes; zero where that means nothing.
    fn size(&self) -> Result<u64>;

    /// The parts of the board by size, the largest first. May read the complete board; empty where that means
    /// nothing.
    fn space_usage(&self) -> Result<Vec<SpaceUsage>> {
        Ok(Vec::new())
    }

    /// Erases the remains of removed, replaced and erased rows from the storage itself: free space, logs, older
    /// states. Returns the reasons why some may be left, none if nothing is left. It waits a limited time for a reader
    /// that still uses an older state.
    fn scrub(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Whether sessions of several machines may use the board. Then a PID is checked only in the boot of the machine
    /// that its identity names; for every other one the time decides.
    fn is_shared_by_machines(&self) -> bool {
        false
    }

    /// Does maintenance that can wait until the answer is printed, for example a checkpoint of a log. Never waits,
    /// never fails.
    fn maintain(&self) {}

    /// Gives every part of one state of the board to a recipient, in batches of a limited size. What only this engine needs is
    /// no part of it.
    fn dump(&self, _to: &mut dyn Recipient) -> Result<()> {
        Err(transfer::unsupported(self))
    }

    /// Makes the board refuse every commit, from any process, with `board_sealed`. It can still be read. `moved_to` is the
    /// location that the refusal names. Returns whether the board was not sealed yet.
    fn seal(&self, _moved_to: &str) -> Result<bool> {
        Err(transfer::unsupported(self))
    }

    /// The location that the board was sealed with, which may be empty; `None` if it is not sealed.
    fn sealed(&self) -> Result<Option<String>> {
        Ok(None)
    }

    /// Lets a sealed board accept commits again. Returns whether it was sealed.
    fn unseal(&self) -> Result<bool> {
        Err(transfer::unsupported(self))
    }
}

/// The name of a commit, its reads, and how long it may wait.
#[derive(Clone, Copy, Debug)]
pub struct Commit<'a> {
    /// The verb, for messages and tests.
    pub name: &'static str,
    /// Its reads, so that a remote engine can fetch them in one round trip. Reads that depend on them are announced
    /// in the run, by [`Tx::prefetch`], and cost another round trip.
    pub prefetch: &'a [Prefetch<'a>],
    /// What to do when another writer is active.
    pub on_busy: OnBusy,
    /// The sessions that the call itself proves to be alive, even if their holdings conflict with it: the session
    /// that the verb acts for, and the parent of one that it registers.
    pub callers: &'a [&'a str],
}

/// The verbs that end something that an earlier call began. `purge` is none: a remote engine may have to write the event log
/// again for it.
const ENDING: [&str; 11] = [
    "agent deregister",
    "clear",
    "delete",
    "expire",
    "file release",
    "lock release",
    "prune",
    "prune heartbeats",
    "sweep",
    "work delete",
    "work release",
];

impl Commit<'_> {
    /// Whether it only ends something: it removes, releases or prunes. An engine may apply it where it has no space for more.
    /// It adds little, an event and the trace of a deleted key, and cannot be repeated endlessly, because what it ends was
    /// added by a commit that needs space.
    pub fn only_ends(&self) -> bool {
        ENDING.contains(&self.name)
    }
}

/// How long a commit waits for other writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnBusy {
    /// Up to the engine's limit, then fails with `busy`. An engine without a writer lock runs the function again after
    /// each conflict, and fails with `conflict` after its limit of runs.
    Wait,
    /// Not at all. An engine with a writer lock fails with `busy` at once if another commit has the lock. An engine
    /// without one runs the function once, and fails with `busy` if something that the run read has changed.
    Fail,
}

/// A read that a verb announces. A remote engine fetches all of them at once; a local one ignores them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prefetch<'a> {
    /// A row, by [`Tx::get`] or [`Tx::peek`].
    Row(Key),
    /// An entry by its scope and key, and the tombstone of a removed entry.
    Entry(&'a str, &'a str),
    /// The rows of a range.
    Range(Range),
    /// The first rows of a range, perhaps outdated.
    Candidates(Range, usize),
    /// The first entries of a range, without their values.
    Heads(Range, usize),
    /// The keys of the first rows of a range.
    Keys(Range, usize),
    /// Whether a range has a row.
    Any(Range),
    /// Whether a range has a row of at least this age at the time of the run, [`Tx::now`]: [`Range::aged`] is the
    /// part that the run passes to [`Tx::any`]. A caller that announces it need not know that time.
    AnyAged(Range, Duration),
    /// How many rows a range has.
    Count(Range),
    /// A page of the event log.
    Events(Page<'a>),
    /// The version of an entry of an event.
    Version(Revision),
    /// The versions of [`Tx::version_heads`], after the first revision and up to the second.
    VersionHeads(Revision, Revision),
    /// The number of [`Tx::count_events`], after the first revision and up to the second. A caller that does not know them
    /// yet counts from [`Revision::ZERO`] or up to [`Revision::MAX`].
    CountEvents(Revision, Revision),
    /// The answer of [`Tx::revision_back`].
    RevisionBack(Revision, u64),
    /// The answer of [`Tx::revision_before`].
    RevisionBefore(Timestamp),
    /// The same for the moment of this age at the time of the run, [`Tx::now`]. A caller that announces it need not
    /// know that time.
    RevisionAged(Duration),
    /// The last revision, and the last pruned one.
    Revision,
}

/// The result of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The id of its first event, or the id that it would have had.
    pub first: Revision,
    /// How long other writers had to wait for it.
    pub held: Duration,
}

/// A read-only view of the board.
///
/// A commit validates what [`Tx::get`], [`Tx::range`] and [`Tx::heads`] return. Everything else is true only at the
/// moment of the read: peeked rows, candidates, counts, and the event log, which grows with every commit.
///
/// The reads of a run are announced: in the call ([`Commit::prefetch`], [`Store::read`]), or here by
/// [`Tx::prefetch`], if they depend on earlier reads of the run. Every read has its [`Prefetch`].
pub trait Tx {
    /// Announces the next reads of this run. In a read, a remote engine may end the run here with an error, which `f` has
    /// to return, and run `f` again with these reads fetched too. In a commit it continues the run, and validates
    /// everything at the end.
    fn prefetch(&self, _next: &[Prefetch<'_>]) -> Result<()> {
        Ok(())
    }

    /// The time of the board's clock, the same for the complete run.
    fn now(&self) -> Timestamp;

    /// The last revision. Not validated: it grows with every commit.
    fn revision(&self) -> Result<Revision>;

    /// The row with this key.
    fn get(&self, key: &Key) -> Result<Option<Row>>;

    /// The row with this key, for information only: a name in a refusal, for example. Not validated, so a commit that
    /// changes the row causes no retry. A rule must not depend on it, and it does not allow a write.
    fn peek(&self, key: &Key) -> Result<Option<Row>>;

    /// All rows of a range, in its order.
    fn range(&self, range: &Range) -> Result<Vec<Row>>;

    /// The first `limit` rows of a range, which may be outdated by the time of the commit.
    fn candidates(&self, range: &Range, limit: usize) -> Result<Vec<Row>>;

    /// The first `limit` entries of a range without their values, validated as a range is.
    fn heads(&self, range: &Range, limit: usize) -> Result<Vec<EntryHead>>;

    /// Whether a range has a row. Not validated: the cheapest read.
    fn any(&self, range: &Range) -> Result<bool>;

    /// The keys of the first `limit` rows of a range, in its order, which may be outdated by the time of the commit.
    /// An unreadable row does not hide the others: its key is here, and reading it fails.
    fn keys(&self, range: &Range, limit: usize) -> Result<Vec<Result<Key>>>;

    /// How many rows a range has. Not validated.
    fn count(&self, range: &Range) -> Result<u64>;

    /// A page of the event log, in order. It ends with the last event of a commit, so it may be a little longer than
    /// the limit. It is empty only if nothing follows.
    fn events(&self, page: &Page<'_>) -> Result<Vec<Event>>;

    /// The version of an entry of an event. A stored version never changes; retention or an [`Erasure`] may remove
    /// it.
    fn version(&self, revision: Revision) -> Result<Option<EntryVersion>>;

    /// The versions of events after `after`, up to and including `until`, without their values, in order. Not
    /// validated.
    fn version_heads(&self, after: Revision, until: Revision) -> Result<Vec<VersionHead>>;

    /// How many of the kept events have an id after `after`, up to and including `until`. Not validated.
    fn count_events(&self, after: Revision, until: Revision) -> Result<u64>;

    /// The revision after which the last `count` events up to and including `until` begin: the id of the event before
    /// them, or the last pruned revision if no event before them is kept. Not validated.
    fn revision_back(&self, until: Revision, count: u64) -> Result<Revision>;

    /// The last revision whose event is older than `moment`; the last pruned one if there is none. Times rise with
    /// ids, unless a clock that was more than a day ahead was corrected. Then the result is the end of some older
    /// part, the one that [`count_older`] finds.
    fn revision_before(&self, moment: Timestamp) -> Result<Revision>;

    /// The last revision that was pruned: the event log starts after it.
    fn floor(&self) -> Result<Revision>;
}

/// A version of an entry without its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionHead {
    /// The event that has it.
    pub revision: Revision,
    /// The version before it.
    pub previous: Option<Revision>,
    /// The scope and the key, if the version is a removal.
    pub removed: Option<(String, String)>,
}

/// A part of the event log to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page<'a> {
    /// Events after this revision.
    pub after: Revision,
    /// Events up to and including this revision.
    pub until: Revision,
    /// Only these types; all if empty.
    pub types: &'a [EventType],
    /// Stops when this many were found.
    pub limit: usize,
}

impl Page<'_> {
    /// The next `limit` events of every type.
    pub fn after(after: Revision, limit: usize) -> Page<'static> {
        Page { after, until: Revision::MAX, types: &[], limit }
    }
}

/// For engines: fails with a fault if changes contradict each other. An entry that is put has the version of an event
/// of the same commit, and a commit puts or removes each row once. Revisions may still be pending.
pub fn check_changes(changes: &Changes, first: Revision) -> Result<()> {
    check_versions(changes, first)?;
    if changes.put.len() + changes.remove.len() < 2 {
        return Ok(());
    }
    let put: Vec<Key> = changes.put.iter().map(Row::key).collect();
    let mut keys = HashSet::with_capacity(put.len() + changes.remove.len());
    match put.iter().chain(&changes.remove).find(|key| !keys.insert(*key)) {
        Some(key) => {
            let message = format!("{key:?} is changed twice in one commit");
            Err(Fault::new(Code::Internal, message).into())
        }
        None => Ok(()),
    }
}

fn check_versions(changes: &Changes, first: Revision) -> Result<()> {
    for row in &changes.put {
        let Row::Entry(entry) = row else { continue };
        let resolved = || usize::try_from(entry.revision.get() - first.get()).ok();
        let place = entry.revision.event().or_else(resolved);
        let event = place.and_then(|place| changes.events.get(place));
        let version = event.and_then(|event| event.version.as_deref());
        if version.is_none_or(|version| version.removed || version.entry != *entry) {
            let message = format!("{:?} is put without its version", row.key());
            return Err(Fault::new(Code::Internal, message).into());
        }
    }
    Ok(())
}

/// How far the last event may be ahead of the clock before its time is ignored.
const TRUSTED_LEAD: Duration = Duration::from_hours(24);

/// For engines: the time of a new event, not earlier than the last one, unless the last one must be wrong.
pub fn event_time(now: Timestamp, last: Option<Timestamp>) -> Timestamp {
    match last {
        Some(last) if last > now && last <= now.plus(TRUSTED_LEAD) => last,
        _ => now,
    }
}

/// For engines: how many of the `kept` events are older than a moment. `is_older` is called with the position of an
/// event, from zero. [`Tx::revision_before`] is the id of the last of them. Every engine uses this binary search over
/// positions, so that they agree even if times do not rise with ids, and whatever ids they assigned.
pub fn count_older(kept: u64, mut is_older: impl FnMut(u64) -> Result<bool>) -> Result<u64> {
    let (mut low, mut high) = (0, kept);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_older(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// The first id of a board that skips ids: so large that no test confuses it with a number of events.
const FIRST_AFTER_SKIP: i64 = 1 << 40;

/// The first id of the next commit of an engine that skips ids for a test: pseudo-random, and the same in every run.
fn skip_revisions(last: Revision) -> Revision {
    let random = last.get().unsigned_abs().wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
    let skipped = i64::try_from(random).unwrap_or(0);
    Revision::new(last.get().max(FIRST_AFTER_SKIP) + 1 + skipped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_older_works_for_any_number_of_events() {
        testkit::limit_test();
        for older in 0..=5 {
            assert_eq!(count_older(5, |position| Ok(position < older)).unwrap(), older);
        }
        assert_eq!(count_older(0, |_| panic!("there is no event")).unwrap(), 0);
    }

    #[test]
    fn event_times_never_go_back_unless_the_last_one_is_a_day_ahead() {
        let at = |seconds: u64| Timestamp::EPOCH.plus(Duration::from_secs(seconds));
        for (now, last, expected) in [
            (1000, None, 1000),
            (1000, Some(900), 1000),
            (1000, Some(1100), 1100),
            (1000, Some(1000 + 86_400), 1000 + 86_400),
            (1000, Some(1001 + 86_400), 1000),
        ] {
            assert_eq!(event_time(at(now), last.map(at)), at(expected), "now {now}, last {last:?}");
        }
    }
}
