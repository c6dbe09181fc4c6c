//! [`Follower`]: reads the event log to its end, waits for new events, and stores the cursor of its reader.
//!
//! Every call that waits for another process waits here. A [`Follower`] delivers events: `subscribe`,
//! `observe --follow`, the MCP server and the dashboard use it. A call that waits for a state instead, for example a
//! key or a lock, checks that state with `Board::check_until`. The follower uses the same loop. Nothing of the board
//! is held between two batches or during a sleep, so a slow reader delays no other process and loses nothing.
//!
//! A program that must not block a thread sleeps by itself: a [`Pace`] says when to check, and the same check as in the
//! loop is a call of its own ([`LockWait::check`](crate::lock::LockWait::check), [`Scope::check_key`](crate::entry::Scope::check_key)).
//!
//! - A named cursor is stored after its batch was delivered, that is when the reader acknowledges it. The next batch is
//!   delivered only after that was stored: a reader that is killed sees its last batch again, and never misses one.
//! - If events were pruned before they were read, the follower reports `compacted` once and continues with the oldest that is
//!   kept. A position ahead of the board is an error.
//! - Calls that wait sweep automatically, because the process of the session that they wait for may be gone. All
//!   waits of a process on one board share a schedule: any number of them costs one probe per second. `serve` follows
//!   without a sweep, since it never writes.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::agent::existing as existing_agent;
use crate::board::Board;
use crate::clock::Timestamp;
use crate::entry::compacted;
use crate::error::{Code, Refusal, Result};
use crate::event::{Batch, Filter, Filters, Scan};
use crate::hint::Hint;
use crate::revision::Revision;
use crate::store::{Changes, Cursor, Key, OnBusy, Prefetch, Tx};
use crate::text::{check_id, check_known_id};

/// The longest sleep of a follower: it notices after this time that it is stopped.
pub(crate) const SLICE: Duration = Duration::from_millis(200);

/// The most events of one batch, apart from the rest of its last commit.
const MAX_BATCH: usize = 1000;

/// How many unwanted events a named cursor may be behind.
const FAR_BEHIND: u64 = 500;

/// How long a named cursor may be behind.
const LONG_BEHIND: Duration = Duration::from_secs(5);

/// What to follow, and from where.
#[derive(Clone, Debug, Default)]
pub struct Follow {
    /// Which events: those that match one of the filters, each once. All if there is no filter.
    pub filters: Vec<Filter>,
    /// Where to start.
    pub start: Start,
    /// The session that follows, which its own sweep never marks stale. [`Start::Session`] names it already.
    pub caller: Option<String>,
    /// Omits the entry changes of events ([`Event::entry`](crate::event::Event::entry)), which saves reading it.
    pub without_values: bool,
    /// Never sweeps. For a follower that must not write.
    pub without_sweep: bool,
}

/// Where a follower starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// With the next event.
    #[default]
    Now,
    /// After this revision, for example that of a [snapshot](crate::entry::Snapshot).
    Revision(Revision),
    /// At the cursor of this name. A cursor that was not moved for as long as events are kept, and that has missed pruned
    /// events, is removed and starts again.
    Cursor {
        /// The name.
        name: String,
        /// After which revision a new cursor starts; with the next event if it is not given.
        new_after: Option<Revision>,
    },
    /// At the cursor of a reader of a session, as [`Since::Cursor`](crate::event::Since::Cursor).
    Session {
        /// The session.
        session: String,
        /// Which of its readers.
        reader: String,
        /// Whether the cursor moves with the follower.
        moves: bool,
    },
}

impl Start {
    /// At the cursor of this name; a new one starts with the next event.
    pub fn cursor(name: &str) -> Start {
        Start::Cursor { name: name.to_owned(), new_after: None }
    }
}

/// A position in the event log that moves to its end and waits there for new events.
///
/// If events were pruned that it had not read, it returns one error of the code `compacted`, and continues with the oldest event
/// that is kept. After any other error the next call tries again, and nothing is lost: `busy` means that a named
/// cursor could not be stored because other processes were writing all the time.
///
/// ```
/// use std::time::Duration;
/// use blackboard::{Board, follow::{Follow, Start}, work::Create};
///
/// let board = Board::memory();
/// let mut follower = board.follow(&Follow { start: Start::cursor("mirror"), ..Follow::default() })?;
/// board.work().create(&Create::new("design-schema", "Design SQL schema"))?;
/// let batch = follower.next_batch(100, Duration::from_secs(60))?.unwrap();
/// assert_eq!(batch.events.len(), 1);
/// // After the events were delivered.
/// follower.acknowledge(batch.last)?;
/// # Ok::<(), blackboard::Error>(())
/// ```
pub struct Follower {
    board: Board,
    filters: Filters,
    /// How far the event log was read.
    position: Revision,
    /// The end of the last batch that was delivered.
    delivered: Revision,
    cursor: Option<StoredCursor>,
    caller: Option<String>,
    without_values: bool,
    without_sweep: bool,
    stop: StopHandle,
    progress: Progress,
}

/// The result of the last read of a follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// There may be more to read.
    Behind,
    /// It came to the end of the event log.
    CaughtUp,
    /// It failed, so the next one pauses first.
    Failed,
}

/// A cursor that the board stores.
struct StoredCursor {
    owner: String,
    reader: String,
    /// The reader has acknowledged everything up to here.
    acknowledged: Revision,
    /// The board has stored everything up to here.
    stored: Revision,
    stored_at: Instant,
    /// How many events were passed since it was stored.
    passed: u64,
}

impl StoredCursor {
    fn new(owner: &str, reader: &str, stored: Revision) -> StoredCursor {
        let (owner, reader) = (owner.to_owned(), reader.to_owned());
        StoredCursor { owner, reader, acknowledged: stored, stored, stored_at: Instant::now(), passed: 0 }
    }
}

/// Stops a follower, from any thread.
#[derive(Clone, Debug, Default)]
pub struct StopHandle(Arc<AtomicBool>);

impl StopHandle {
    /// The follower ends in less than a quarter of a second; later if it waits for other writers to store a cursor.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Board {
    /// Follows the event log. See [`Follower`], and [`Board::subscribe`] for one event at a time.
    ///
    /// ```
    /// use std::time::Duration;
    /// use blackboard::{Board, follow::Follow};
    ///
    /// let mut follower = Board::memory().follow(&Follow::default())?;
    /// assert!(follower.next_batch(100, Duration::from_millis(1))?.is_none());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn follow(&self, follow: &Follow) -> Result<Follower> {
        let filters = Filters::new(&follow.filters)?;
        let (position, cursor) = match &follow.start {
            Start::Now => (self.revision()?, None),
            Start::Revision(revision) => (check_reached(*revision, self.revision()?)?, None),
            Start::Cursor { name, new_after } => {
                let position = self.cursor_or_new(name, *new_after)?;
                (position, Some(StoredCursor::new(Cursor::OWNERLESS, name, position)))
            }
            Start::Session { session, reader, moves } => {
                let prefetch = [
                    Prefetch::Row(Key::Cursor(session.clone(), reader.clone())),
                    Prefetch::Row(Key::Agent(session.clone())),
                    Prefetch::Revision,
                ];
                let ((position, _), current) =
                    self.read(&prefetch, |tx| Ok((cursor_of(tx, session, reader)?, tx.revision()?)))?;
                let position = check_not_ahead(position, current)?;
                (position, moves.then(|| StoredCursor::new(session, reader, position)))
            }
        };
        let caller = match &follow.start {
            Start::Session { session, .. } => Some(session.clone()),
            Start::Now | Start::Revision(_) | Start::Cursor { .. } => follow.caller.clone(),
        };
        Ok(Follower {
            board: self.clone(),
            filters,
            position,
            delivered: position,
            cursor,
            caller,
            without_values: follow.without_values,
            without_sweep: follow.without_sweep,
            stop: StopHandle::default(),
            progress: Progress::Behind,
        })
    }

    /// The position of a named cursor. A new one is stored at once, so that it misses nothing before it is first moved.
    fn cursor_or_new(&self, name: &str, new_after: Option<Revision>) -> Result<Revision> {
        check_known_id("cursor", name)?;
        let key = Key::Cursor(Cursor::OWNERLESS.to_owned(), name.to_owned());
        let prefetch = [Prefetch::Row(key.clone()), Prefetch::Revision];
        let (known, current) = self.read(&prefetch, |tx| Ok((tx.row::<Cursor>(&key)?, tx.revision()?)))?;
        if let Some(known) = known {
            return check_not_ahead(known.revision, current);
        }
        check_id("cursor", name)?;
        self.settings().text.check_unaltered([name])?;
        let start = check_reached(new_after.unwrap_or(current), current)?;
        self.store_cursor(OnBusy::Wait, Cursor::OWNERLESS, name, start)
    }

    /// Stores how far a reader has read, and returns the stored position. A cursor never goes back.
    pub(crate) fn store_cursor(
        &self,
        on_busy: OnBusy,
        owner: &str,
        reader: &str,
        revision: Revision,
    ) -> Result<Revision> {
        let key = Key::Cursor(owner.to_owned(), reader.to_owned());
        self.commit_with_on_busy(on_busy, "advance cursor", &[Prefetch::Row(key.clone())], |tx| {
            let mut changes = Changes::new();
            let known = tx.row::<Cursor>(&key)?.map(|cursor| cursor.revision);
            if known.is_none_or(|known| known < revision) {
                changes.put(Cursor {
                    owner: owner.to_owned(),
                    reader: reader.to_owned(),
                    revision,
                    updated_at: tx.now(),
                });
            }
            Ok((changes, known.map_or(revision, |known| known.max(revision))))
        })
    }
}

impl Follower {
    /// A handle to stop it.
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// The board that it follows.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// How far it has read.
    pub fn position(&self) -> Revision {
        self.position
    }

    /// From now on follows for this session; see [`Follow::caller`].
    pub fn set_caller(&mut self, caller: Option<String>) {
        self.caller = caller;
    }

    /// Whether the last read came to the end of the event log. If not, no batch within a time only means that none was found
    /// so far: a filter may have to pass over many events.
    ///
    /// ```
    /// use std::time::Duration;
    /// use blackboard::{Board, event::Filter, follow::Follow};
    ///
    /// let tasks = Follow { filters: vec![Filter::of_keys("task:*")], ..Follow::default() };
    /// let mut follower = Board::memory().follow(&tasks)?;
    /// // Everything that exists now, however long that takes.
    /// while !follower.has_caught_up() {
    ///     if let Some(batch) = follower.next_batch(100, Duration::ZERO)? {
    ///         println!("{} events", batch.events.len());
    ///         follower.acknowledge(batch.last)?;
    ///     }
    /// }
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn has_caught_up(&self) -> bool {
        self.progress == Progress::CaughtUp
    }

    /// The next events, about `limit` of them and at most about 1,000: complete commits, and never an empty batch. `None` if
    /// there was none within this time, or if the follower was stopped.
    ///
    /// After the events were delivered, [`acknowledge`](Follower::acknowledge) the batch, so that a named cursor moves.
    pub fn next_batch(&mut self, limit: usize, timeout: Duration) -> Result<Option<Batch>> {
        let mut timeout = timeout;
        if self.progress == Progress::Failed {
            self.progress = Progress::Behind;
            // A reader that ignores errors would otherwise retry without a pause.
            let pause = timeout.min(SLICE);
            thread::sleep(pause);
            timeout -= pause;
        }
        // Also if there is always something to read, so that it never sleeps.
        if !timeout.is_zero() && !self.without_sweep {
            self.board.sweep_if_due(self.caller.as_deref());
        }
        let next = self.read_until(limit.clamp(1, MAX_BATCH), timeout);
        if let Err(error) = &next {
            let is_pruned = error.code() == Code::Compacted;
            self.progress = if is_pruned { Progress::Behind } else { Progress::Failed };
        }
        next
    }

    fn read_until(&mut self, limit: usize, timeout: Duration) -> Result<Option<Batch>> {
        // The sleep notices what was committed since then.
        let was_at_end = self.has_caught_up() && !timeout.is_zero();
        let (board, stop, caller) = (self.board.clone(), self.stop.clone(), self.caller.clone());
        let sweep = if self.without_sweep { Sweeping::Never } else { Sweeping::For(caller.as_deref()) };
        let wait = Wait { timeout, tick: SLICE, sweep, stop: Some(&stop) };
        let found = board.check_until(&wait, |wake| {
            if wake == Wake::Unchanged || (wake == Wake::First && was_at_end) {
                // A cursor that could not be stored at once is stored while nothing happens.
                self.keep_up()?;
                return Ok(Check::After(self.position));
            }
            let before = self.position;
            let batch = self.read(limit)?;
            if let Some(batch) = batch {
                // Under many writers one attempt may not have been enough. Now the cursor has to be stored, so that at most
                // one batch is seen twice. If it cannot be stored, this batch is read again.
                self.store(OnBusy::Wait).inspect_err(|_| self.position = before)?;
                self.delivered = batch.last;
                return Ok(Check::Done(batch));
            }
            if self.has_caught_up() {
                self.keep_up()?;
            }
            Ok(Check::After(self.position))
        })?;
        if found.is_none() && !self.has_caught_up() {
            self.keep_up()?;
        }
        Ok(found)
    }

    /// Acknowledges everything up to here, `last` being the [end of a batch](Batch::last). A named cursor is stored without
    /// waiting; if another process is writing, it is stored before the next batch is delivered.
    pub fn acknowledge(&mut self, last: Revision) -> Result<()> {
        if let Some(cursor) = &mut self.cursor {
            cursor.acknowledged = cursor.acknowledged.max(last.min(self.position));
        }
        self.store(OnBusy::Fail).inspect_err(|_| self.progress = Progress::Failed)
    }

    /// Reads on: the next batch, if an event is wanted.
    fn read(&mut self, limit: usize) -> Result<Option<Batch>> {
        let Follower { board, filters, position, without_values, cursor, .. } = self;
        // Up to the end, which is that of the state that is read: the revision need not be known first.
        let until = Revision::new(i64::MAX);
        let scan = Scan { after: *position, until, filters, limit, values: !*without_values };
        let mut prefetch = vec![Prefetch::Revision, Prefetch::Events(scan.page())];
        if cursor.is_some() {
            prefetch.push(Prefetch::CountEvents(*position, until));
        }
        let (scanned, current, floor, passed) = board.read_list(&prefetch, |tx| {
            let (current, floor) = (tx.revision()?, tx.floor()?);
            let scanned = scan.read(tx)?;
            let end = scanned.end(*position, current);
            let passed = if cursor.is_none() {
                0
            } else if scanned.complete {
                tx.count_events(*position, until)?
            } else {
                tx.prefetch(&[Prefetch::CountEvents(*position, end)])?;
                tx.count_events(*position, end)?
            };
            Ok((scanned, current, floor, passed))
        })?;
        if *position > current {
            return Err(is_ahead(*position, current));
        }
        if *position < floor {
            let refusal = compacted(*position, floor);
            *position = floor;
            return Err(refusal);
        }
        *position = scanned.end(*position, current);
        if let Some(cursor) = cursor {
            cursor.passed += passed;
        }
        self.progress = if scanned.complete { Progress::CaughtUp } else { Progress::Behind };
        let last = self.position;
        let events = scanned.events();
        Ok((!events.is_empty()).then_some(Batch { events, last, compacted: false }))
    }

    /// Now and then, moves a named cursor over unwanted events: retention would overtake it otherwise.
    fn keep_up(&mut self) -> Result<()> {
        let Some(cursor) = &mut self.cursor else { return Ok(()) };
        if cursor.acknowledged < self.delivered {
            return Ok(());
        }
        cursor.acknowledged = self.position;
        let long = cursor.stored_at.elapsed() >= LONG_BEHIND;
        if cursor.passed >= FAR_BEHIND || long { self.store(OnBusy::Fail) } else { Ok(()) }
    }

    fn store(&mut self, on_busy: OnBusy) -> Result<()> {
        let Some(cursor) = self.cursor.as_mut().filter(|cursor| cursor.stored < cursor.acknowledged) else {
            return Ok(());
        };
        match self.board.store_cursor(on_busy, &cursor.owner, &cursor.reader, cursor.acknowledged) {
            Ok(_) => {
                cursor.stored = cursor.acknowledged;
                cursor.stored_at = Instant::now();
                cursor.passed = 0;
                Ok(())
            }
            // It is tried again later, and before the next batch it waits for other writers.
            Err(error) if error.code() == Code::Busy && on_busy == OnBusy::Fail => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// How a call waits.
pub(crate) struct Wait<'a> {
    /// The timeout.
    pub(crate) timeout: Duration,
    /// The longest time between two checks.
    pub(crate) tick: Duration,
    /// Whether it sweeps meanwhile.
    pub(crate) sweep: Sweeping<'a>,
    /// A handle that ends it early.
    pub(crate) stop: Option<&'a StopHandle>,
}

/// Whether a call that waits sweeps.
#[derive(Clone, Copy)]
pub(crate) enum Sweeping<'a> {
    /// It does, for this session, which the sweep never marks stale.
    For(Option<&'a str>),
    /// It must not write.
    Never,
}

/// Why a call that waits makes a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// It is the first one.
    First,
    /// The board has another revision than the last check has seen.
    Changed(Revision),
    /// Only time has passed.
    Unchanged,
}

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check<T> {
    /// The answer of the call.
    Done(T),
    /// There is none yet: the next check is made when the board has another revision than this one.
    After(Revision),
}

/// When a call that waits makes its checks: at once, after each sleep, and once more when its time is over.
///
/// ```
/// use std::time::Duration;
/// use blackboard::follow::Pace;
///
/// let mut pace = Pace::new(Duration::ZERO, Duration::from_secs(1));
/// pace.begin_check();
/// assert_eq!(pace.next_sleep(), None, "the time was over before the check");
///
/// let mut pace = Pace::new(Duration::MAX, Duration::from_secs(1));
/// pace.begin_check();
/// assert_eq!(pace.next_sleep(), Some(Duration::from_secs(1)));
/// ```
#[derive(Clone, Debug)]
pub struct Pace {
    /// Without an end if the time is longer than the machine can count.
    until: Option<Instant>,
    tick: Duration,
    is_last: bool,
}

impl Pace {
    /// For a call that waits this long, and checks at least once in each `tick`.
    pub fn new(timeout: Duration, tick: Duration) -> Pace {
        Pace { until: Instant::now().checked_add(timeout), tick, is_last: false }
    }

    /// Call this before each check. A check that begins after the end of the time is the last one.
    pub fn begin_check(&mut self) {
        self.is_last = self.left().is_zero();
    }

    /// After a check without an answer: how long to sleep before the next one, unless the board changes. `None` after the
    /// last check.
    pub fn next_sleep(&self) -> Option<Duration> {
        (!self.is_last).then(|| self.left().min(self.tick))
    }

    fn left(&self) -> Duration {
        self.until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()))
    }
}

impl Board {
    /// The loop of every call that waits: makes a check at once, after every commit, and after every tick, until one has the
    /// answer. `None` if the time is over, after a last check, or if the call was stopped.
    ///
    /// A check returns a revision that it read before or together with the state that it checked. A later commit then ends the
    /// sleep or keeps it from beginning.
    pub(crate) fn check_until<T>(
        &self,
        wait: &Wait<'_>,
        mut check: impl FnMut(Wake) -> Result<Check<T>>,
    ) -> Result<Option<T>> {
        let mut pace = Pace::new(wait.timeout, wait.tick);
        let mut wake = Wake::First;
        loop {
            if wait.stop.is_some_and(StopHandle::is_stopped) {
                return Ok(None);
            }
            pace.begin_check();
            let seen = match check(wake)? {
                Check::Done(answer) => return Ok(Some(answer)),
                Check::After(seen) => seen,
            };
            let Some(mut longest) = pace.next_sleep() else { return Ok(None) };
            if let Sweeping::For(caller) = wait.sweep {
                self.sweep_if_due(caller);
                longest = longest.min(self.schedule().due_in());
            }
            wake = match self.wait(seen, longest)? {
                revision if revision == seen => Wake::Unchanged,
                revision => Wake::Changed(revision),
            };
        }
    }
}

/// How far a reader of a session has read, and when that was. Its first read starts at its registration.
pub(crate) fn cursor_of(tx: &dyn Tx, session: &str, reader: &str) -> Result<(Revision, Timestamp)> {
    if let Some(cursor) = tx.row::<Cursor>(&Key::Cursor(session.to_owned(), reader.to_owned()))? {
        return Ok((cursor.revision, cursor.updated_at));
    }
    let agent = existing_agent(tx, session)?;
    Ok((agent.joined, agent.started_at))
}

fn check_not_ahead(cursor: Revision, board: Revision) -> Result<Revision> {
    if cursor > board { Err(is_ahead(cursor, board)) } else { Ok(cursor) }
}

fn check_reached(revision: Revision, board: Revision) -> Result<Revision> {
    if revision > board { Err(not_reached(revision, board)) } else { Ok(revision) }
}

/// The refusal of a revision that the caller passed and the board has not reached.
pub(crate) fn not_reached(revision: Revision, board: Revision) -> crate::Error {
    let message = format!("revision {revision} is ahead of the board, which is at revision {board}");
    Refusal::new(Code::CursorAhead, message).hint(Hint::StartOver).detail("revision", board.get()).into()
}

/// The refusal of a stored position that the board has not reached.
pub(crate) fn is_ahead(cursor: Revision, board: Revision) -> crate::Error {
    Refusal::new(
        Code::CursorAhead,
        format!("cursor is at revision {cursor}, but the board is at {board}: the board was replaced"),
    )
    .hint(Hint::StartOver)
    .detail("revision", board.get())
    .into()
}
