//! [`Follower`]: reads the event log to its end, waits for new events, and stores the cursor of its reader.
//!
//! Every call that waits for another process waits here. A [`Follower`] delivers events: `subscribe`,
//! `observe --follow`, the MCP server and the dashboard use it. A call that waits for a state instead, for example a
//! key or a lock, checks that state with `Board::check_until` (`wait.rs`). The follower uses the same loop. Nothing of
//! the board is held between two batches or during a sleep, so a slow reader delays no other process and loses nothing.
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
mod wait;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub use self::wait::{Check, Pace, Wake};
pub(crate) use self::wait::{Sweeping, Wait};
use crate::agent::existing as existing_agent;
use crate::board::Board;
use crate::clock::Timestamp;
use crate::entry::compacted;
use crate::error::{Code, Refusal, Result};
use crate::event::{Batch, Filter, Filters, Scan, Scanned};
use crate::hint::Hint;
use crate::revision::Revision;
use crate::scope::Guard;
use crate::store::{Changes, Cursor, Key, OnBusy, Prefetch, Tx};
use crate::text::{check_id, check_known_id};

/// The longest sleep of a follower: it notices after this time that it is stopped.
pub(crate) const SLICE: Duration = Duration::from_millis(200);

/// The most events of one batch, apart from the rest of its last commit.
const MAX_BATCH: usize = 1000;

/// How many versions of entries a follower asks for before it knows of their events.
const READ_AHEAD: i64 = 4;

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
    /// What a wait has read already.
    ahead: Option<Looked>,
}

/// What a follower reads at once.
struct Looked {
    scanned: Scanned,
    current: Revision,
    floor: Revision,
    /// How many events it passes.
    passed: u64,
}

impl Looked {
    /// Up to the end, which is that of the state that is read: the revision need not be known first.
    const END: Revision = Revision::new(i64::MAX);

    fn read(tx: &dyn Tx, scan: &Scan<'_>, counts: bool) -> Result<Looked> {
        let (current, floor) = (tx.revision()?, tx.floor()?);
        let scanned = scan.read(tx)?;
        let end = scanned.end(scan.after, current);
        let passed = if !counts {
            0
        } else if scanned.complete {
            tx.count_events(scan.after, Looked::END)?
        } else {
            tx.prefetch(&[Prefetch::CountEvents(scan.after, end)])?;
            tx.count_events(scan.after, end)?
        };
        Ok(Looked { scanned, current, floor, passed })
    }
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
            ahead: None,
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
        let follower = RefCell::new(&mut *self);
        let waiting = |seen, longest| follower.borrow_mut().wait(seen, longest, limit);
        let found = board.check_until_waking(&wait, waiting, |wake| {
            follower.borrow_mut().check(wake, limit, was_at_end)
        })?;
        if found.is_none() && !self.has_caught_up() {
            self.keep_up()?;
        }
        Ok(found)
    }

    /// One check: the next batch, or from where on to wait.
    fn check(&mut self, wake: Wake, limit: usize, was_at_end: bool) -> Result<Check<Batch>> {
        if wake == Wake::Unchanged || (wake == Wake::First && was_at_end) {
            // A cursor that could not be stored at once is stored while nothing happens.
            self.keep_up()?;
            return Ok(Check::After(self.position));
        }
        let before = self.position;
        if let Some(batch) = self.read(limit)? {
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
    }

    /// Sleeps until there is an event after `seen`, which an engine may bring along.
    fn wait(&mut self, seen: Revision, longest: Duration, limit: usize) -> Result<Revision> {
        let (scan, counts) = (self.scan(limit), self.cursor.is_some());
        let mut prefetch = vec![Prefetch::Events(scan.page())];
        if scan.values {
            // Its next events, if they are those of one small commit and no id is skipped.
            let next = (1..=READ_AHEAD).map(|number| Revision::new(seen.get().saturating_add(number)));
            prefetch.extend(next.map(Prefetch::Version));
        }
        let mut ahead = None;
        let revision = self.board.store().wait_for_events(seen, longest, &prefetch, &mut |tx| {
            // What cannot be read now is read, and reported, by the next check.
            ahead = Looked::read(tx, &scan, counts).ok();
            Ok(())
        })?;
        self.ahead = ahead.filter(|_| seen == self.position);
        Ok(revision)
    }

    fn scan(&self, limit: usize) -> Scan<'_> {
        let (after, until) = (self.position, Looked::END);
        let values = !self.without_values;
        Scan { after, until, filters: &self.filters, limit, values, board: &self.board }
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
        let looked = match self.ahead.take() {
            Some(looked) => looked,
            None => self.look(limit)?,
        };
        let Looked { scanned, current, floor, passed } = looked;
        if self.position > current {
            return Err(is_ahead(self.position, current));
        }
        if self.position < floor {
            let refusal = compacted(self.position, floor);
            self.position = floor;
            return Err(refusal);
        }
        if scanned.hides {
            // A session that has ended while it follows would wait forever for what it may no longer read.
            self.board.read(&[], |tx| Guard::of_board(&self.board, tx).check_caller())?;
        }
        self.position = scanned.end(self.position, current);
        if let Some(cursor) = &mut self.cursor {
            cursor.passed += passed;
        }
        self.progress = if scanned.complete { Progress::CaughtUp } else { Progress::Behind };
        let last = self.position;
        let events = scanned.events();
        Ok((!events.is_empty()).then_some(Batch { events, last, compacted: false }))
    }

    fn look(&self, limit: usize) -> Result<Looked> {
        let (scan, counts) = (self.scan(limit), self.cursor.is_some());
        let mut prefetch = vec![Prefetch::Revision, Prefetch::Events(scan.page())];
        if counts {
            prefetch.push(Prefetch::CountEvents(scan.after, Looked::END));
        }
        self.board.read_list(&prefetch, |tx| Looked::read(tx, &scan, counts))
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
