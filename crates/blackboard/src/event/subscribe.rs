//! `subscribe`: following the log, without missing anything.
//!
//! A subscription reads the log in batches of whole commits, each into memory: while its caller is at work, or while it
//! waits for something new, nothing of the board is held. Each has a place of its own in the log, so that a slow one
//! delays nobody and loses nothing; it reads on from where it is.
//!
//! With a named cursor that place is stored on the board. It is stored once what was handed out is done with, that is
//! when more is asked for, and nothing more is handed out before that has succeeded: whoever is killed sees its last batch
//! again, no more than that, and never misses one.
//!
//! While it waits, a subscription sweeps automatically, as every call does that waits ([`Board::wait_and_sweep`]): events of
//! entries that expire and of agents whose process is gone arrive even if no other process does anything. It changes
//! nothing else on the board.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::observe::{is_ahead, place_of};
use super::scan::scan;
use super::{Batch, Event, Filter, Filters};
use crate::board::Board;
use crate::entry::compacted;
use crate::error::{Code, Error, Result};
use crate::revision::Revision;
use crate::store::{Cursor, Key, Patience};
use crate::text::{check_id, check_known_id};

/// How long one sleep is: a subscription that is to end notices it after this time.
pub(super) const SLICE: Duration = Duration::from_millis(200);

/// About how many events are in memory at once.
const BATCH: usize = 1000;

/// How many events that nobody wanted a named cursor may lie behind.
const FAR_BEHIND: u64 = 500;

/// How long it may.
const LONG_BEHIND: Duration = Duration::from_secs(5);

/// What to follow, and from where.
#[derive(Clone, Debug, Default)]
pub struct Subscribe {
    /// Which events: those that one of the filters wants, each once. All if there is none.
    pub filters: Vec<Filter>,
    /// Where to start.
    pub start: Start,
    /// The session that follows, which its own sweep never marks stale. [`Start::Session`] names it already.
    pub caller: Option<String>,
}

/// Where a subscription starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// With what happens from now on.
    #[default]
    Now,
    /// After this revision, such as that of a [snapshot](crate::entry::Snapshot).
    Revision(Revision),
    /// Where the cursor of this name stands. One that was not moved for as long as events are kept, and had not read
    /// events that are pruned, is forgotten and starts anew.
    Cursor {
        /// The name.
        name: String,
        /// After which revision a new cursor starts; with what happens from now on if it is not said.
        new_after: Option<Revision>,
    },
    /// Where a reader of a session stands, as [`Since::Cursor`](super::Since::Cursor) has it.
    Session {
        /// The session.
        session: String,
        /// Which of its readers.
        reader: String,
        /// Whether that place moves with the subscription.
        moves: bool,
    },
}

impl Start {
    /// Where the cursor of this name stands; a new one starts now.
    pub fn cursor(name: &str) -> Start {
        Start::Cursor { name: name.to_owned(), new_after: None }
    }
}

/// The log as it goes on: an iterator that waits for the next event.
///
/// If events were pruned that it had not read, it says so once by an error of the code `compacted`, and goes on with the
/// oldest that is kept. After any other error the next call tries again, and nothing is lost: `busy` says that a named
/// cursor could not be stored because others were writing all the time.
///
/// ```
/// use blackboard::Board;
/// use blackboard::entry::{Value, Write};
/// use blackboard::event::{Filter, Subscribe};
///
/// let board = Board::memory();
/// let mut subscription =
///     board.subscribe(&Subscribe { filters: vec![Filter::of_keys("task:*")], ..Subscribe::default() })?;
/// board.scope("team-1").write(&Write::new("note", Value::of("hello")?))?;
/// board.scope("team-1").write(&Write::new("task:1", Value::of("open")?))?;
/// let change = subscription.next().unwrap()?.entry.unwrap();
/// assert_eq!((change.key.as_str(), change.value), ("task:1", Some(Value::of("open")?)));
/// # Ok::<(), blackboard::Error>(())
/// ```
pub struct Subscription {
    board: Board,
    filters: Filters,
    /// How far the log was read.
    position: Revision,
    /// The end of the last batch that was handed out.
    handed: Revision,
    cursor: Option<Durable>,
    /// The session that waits, which its own sweep never marks stale.
    caller: Option<String>,
    stop: StopHandle,
    /// What of the last batch the iterator has not handed out yet.
    ready: VecDeque<Event>,
    /// Where the batch ends that the iterator is at.
    reading: Option<Revision>,
    /// Whether the last try failed.
    failed: bool,
    /// Whether the last look came to the end of the log.
    caught_up: bool,
    batch_size: usize,
}

/// A cursor that is stored.
struct Durable {
    owner: String,
    reader: String,
    /// Up to here everything is done with.
    reached: Revision,
    /// Up to here the board knows it.
    stored: Revision,
    stored_at: Instant,
    /// How many events were passed since it was stored.
    passed: u64,
}

impl Durable {
    fn new(owner: &str, reader: &str, stored: Revision) -> Durable {
        let (owner, reader) = (owner.to_owned(), reader.to_owned());
        Durable { owner, reader, reached: stored, stored, stored_at: Instant::now(), passed: 0 }
    }
}

/// Ends a subscription, from whatever thread.
#[derive(Clone, Debug, Default)]
pub struct StopHandle(Arc<AtomicBool>);

impl StopHandle {
    /// The subscription ends, in less than a quarter of a second; later if it waits for other writers to store a cursor.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it is to end.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Board {
    /// Follows the log. See [`Subscription`].
    ///
    /// ```
    /// use blackboard::Board;
    /// use blackboard::entry::{Query, Value, Write};
    /// use blackboard::event::{Start, Subscribe};
    ///
    /// // What is there, and then everything that changes it: no gap, and nothing twice.
    /// let board = Board::memory();
    /// let scope = board.scope("team-1");
    /// scope.write(&Write::new("a", Value::of(&1)?))?;
    /// let snapshot = scope.snapshot(&Query::default())?;
    /// scope.write(&Write::new("a", Value::of(&2)?))?;
    /// let mut tail =
    ///     board.subscribe(&Subscribe { start: Start::Revision(snapshot.revision), ..Subscribe::default() })?;
    /// let change = tail.next().unwrap()?.entry.unwrap();
    /// assert_eq!((change.old_value, change.value), (Some(Value::of(&1)?), Some(Value::of(&2)?)));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn subscribe(&self, subscribe: &Subscribe) -> Result<Subscription> {
        let filters = Filters::new(&subscribe.filters)?;
        let (position, cursor) = match &subscribe.start {
            Start::Now => (self.read(&[], |tx| tx.revision())?, None),
            Start::Revision(revision) => (self.not_ahead(*revision)?, None),
            Start::Cursor { name, new_after } => {
                let position = self.cursor_or_new(name, *new_after)?;
                (position, Some(Durable::new(Cursor::OWNERLESS, name, position)))
            }
            Start::Session { session, reader, moves } => {
                let (position, _) = self.read(&[], |tx| place_of(tx, session, reader))?;
                let position = self.not_ahead(position)?;
                (position, moves.then(|| Durable::new(session, reader, position)))
            }
        };
        let caller = match &subscribe.start {
            Start::Session { session, .. } => Some(session.clone()),
            Start::Now | Start::Revision(_) | Start::Cursor { .. } => subscribe.caller.clone(),
        };
        Ok(Subscription {
            board: self.clone(),
            filters,
            position,
            handed: position,
            cursor,
            caller,
            stop: StopHandle::default(),
            ready: VecDeque::new(),
            reading: None,
            failed: false,
            caught_up: false,
            batch_size: BATCH,
        })
    }

    fn not_ahead(&self, revision: Revision) -> Result<Revision> {
        let current = self.read(&[], |tx| tx.revision())?;
        if revision > current { Err(is_ahead(revision, current)) } else { Ok(revision) }
    }

    /// Where a named cursor stands. A new one is stored at once: what happens before it is first moved is not missed.
    fn cursor_or_new(&self, name: &str, new_after: Option<Revision>) -> Result<Revision> {
        check_known_id("cursor", name)?;
        let key = Key::Cursor(Cursor::OWNERLESS.to_owned(), name.to_owned());
        let (known, current) = self.read(&[], |tx| Ok((tx.row::<Cursor>(&key)?, tx.revision()?)))?;
        if let Some(known) = known {
            return self.not_ahead(known.revision);
        }
        check_id("cursor", name)?;
        self.settings().text.check_unaltered([name])?;
        let start = self.not_ahead(new_after.unwrap_or(current))?;
        self.events().advance_patiently(Patience::Wait, Cursor::OWNERLESS, name, start)
    }
}

impl Subscription {
    /// What ends it.
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// From now on reads about so many events at once, at most; 1,000 if it is not said.
    pub fn set_batch_size(&mut self, events: usize) {
        self.batch_size = events.clamp(1, BATCH);
    }

    /// Whether the last look came to the end of the log. If not, that there was no event within a time only means that
    /// none was found in it so far: a filter may have to go through much that it does not want.
    ///
    /// ```
    /// use std::time::Duration;
    /// use blackboard::{Board, event::{Filter, Subscribe}};
    ///
    /// let wanted = Subscribe { filters: vec![Filter::of_keys("task:*")], ..Subscribe::default() };
    /// let mut subscription = Board::memory().subscribe(&wanted)?;
    /// // All that is there now, however long that takes.
    /// while !subscription.has_caught_up() {
    ///     if let Some(batch) = subscription.next_batch(Duration::ZERO)? {
    ///         println!("{} events", batch.events.len());
    ///         subscription.acknowledge(batch.last)?;
    ///     }
    /// }
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn has_caught_up(&self) -> bool {
        self.caught_up
    }

    /// The next event; `None` if none came within this time, or if the subscription was stopped.
    ///
    /// ```
    /// use std::time::Duration;
    /// use blackboard::{Board, event::Subscribe};
    ///
    /// let mut subscription = Board::memory().subscribe(&Subscribe::default())?;
    /// assert!(subscription.next_within(Duration::from_millis(1)).is_none());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn next_within(&mut self, timeout: Duration) -> Option<Result<Event>> {
        if self.stop.is_stopped() {
            return None;
        }
        if let Some(event) = self.ready.pop_front() {
            return Some(Ok(event));
        }
        if let Some(last) = self.reading.take()
            && let Err(error) = self.acknowledge(last)
        {
            return Some(Err(error));
        }
        match self.next_batch(timeout) {
            Ok(Some(Batch { events, last, .. })) => {
                self.ready = events.into();
                self.reading = Some(last);
                self.ready.pop_front().map(Ok)
            }
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// The next events, as many as are there and have room in memory: whole commits, never none of them. `None` if
    /// none came within this time, or if the subscription was stopped.
    ///
    /// For whoever hands events on many at once. When that is done, [`acknowledge`](Subscription::acknowledge) the
    /// batch, so that a named cursor moves. Not to be mixed with the iterator.
    ///
    /// ```
    /// use std::time::Duration;
    /// use blackboard::{Board, Revision, event::{Start, Subscribe}, work::Create};
    ///
    /// let board = Board::memory();
    /// let start = Start::cursor("mirror");
    /// let mut subscription = board.subscribe(&Subscribe { start, ..Subscribe::default() })?;
    /// board.work().create(&Create::new("design-schema", "Design SQL schema"))?;
    /// let batch = subscription.next_batch(Duration::from_secs(60))?.unwrap();
    /// assert_eq!(batch.events.len(), 1);
    /// subscription.acknowledge(batch.last)?;
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn next_batch(&mut self, timeout: Duration) -> Result<Option<Batch>> {
        // Without an end if the time is longer than the machine can count.
        let until = Instant::now().checked_add(timeout);
        let left = || until.map_or(SLICE, |until| until.saturating_duration_since(Instant::now()).min(SLICE));
        if std::mem::take(&mut self.failed) {
            // Whoever does not mind errors would otherwise try again and again without a pause.
            thread::sleep(left());
        }
        // Also if there is always something to read, so that it never sleeps.
        if !timeout.is_zero() {
            self.board.sweep_if_due(self.caller.as_deref());
        }
        loop {
            if self.stop.is_stopped() {
                return Ok(None);
            }
            let before = self.position;
            let (batch, complete) =
                self.read().inspect_err(|error| self.failed = error.code() != Code::Compacted)?;
            if let Some(batch) = batch {
                // Under many writers a look may not have been enough. Now it has to be stored: what is seen twice is
                // one batch at most. If it can't be, this batch is read again.
                self.store(Patience::Wait).inspect_err(|_| self.position = before)?;
                self.handed = batch.last;
                self.caught_up = complete;
                return Ok(Some(batch));
            }
            self.caught_up = complete;
            if !complete {
                if left().is_zero() {
                    self.keep_up()?;
                    return Ok(None);
                }
                continue;
            }
            self.keep_up()?;
            if !self.sleep(left)? {
                return Ok(None);
            }
        }
    }

    /// Sleeps until there is more to read, and says whether there is: not if the time is over.
    fn sleep(&mut self, left: impl Fn() -> Duration) -> Result<bool> {
        loop {
            let left = left();
            if left.is_zero() || self.stop.is_stopped() {
                return Ok(false);
            }
            let revision = self.board.wait_and_sweep(self.position, left, self.caller.as_deref());
            let revision = revision.inspect_err(|_| self.failed = true)?;
            if revision > self.position {
                return Ok(true);
            }
        }
    }

    /// Says that everything up to here is done with, `last` being the [end of a batch](Batch::last). A named cursor is
    /// stored without waiting; if somebody else is writing, that is done before the next batch is handed out.
    pub fn acknowledge(&mut self, last: Revision) -> Result<()> {
        if let Some(cursor) = &mut self.cursor {
            cursor.reached = cursor.reached.max(last.min(self.position));
        }
        self.store(Patience::Never)
    }

    /// Reads on: the next batch, if something is wanted, and whether the end was reached.
    fn read(&mut self) -> Result<(Option<Batch>, bool)> {
        let Subscription { board, filters, position, batch_size, cursor, .. } = self;
        let (scanned, current, floor, passed) = board.read(&[], |tx| {
            let (current, floor) = (tx.revision()?, tx.floor()?);
            let scanned = scan(tx, *position, current, filters, *batch_size)?;
            let end = scanned.end(*position, current);
            let passed = if cursor.is_some() { tx.count_events(*position, end)? } else { 0 };
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
        let complete = scanned.complete;
        *position = scanned.end(*position, current);
        if let Some(cursor) = cursor {
            cursor.passed += passed;
        }
        let last = *position;
        let events = scanned.events();
        let batch = (!events.is_empty()).then_some(Batch { events, last, compacted: false });
        Ok((batch, complete))
    }

    /// Now and then, moves a named cursor over what nobody wanted: retention would overtake it otherwise.
    fn keep_up(&mut self) -> Result<()> {
        let Some(cursor) = &mut self.cursor else { return Ok(()) };
        if cursor.reached < self.handed {
            return Ok(());
        }
        cursor.reached = self.position;
        let long = cursor.stored_at.elapsed() >= LONG_BEHIND;
        if cursor.passed >= FAR_BEHIND || long { self.store(Patience::Never) } else { Ok(()) }
    }

    fn store(&mut self, patience: Patience) -> Result<()> {
        let Some(cursor) = self.cursor.as_mut().filter(|cursor| cursor.stored < cursor.reached) else {
            return Ok(());
        };
        let Durable { owner, reader, reached, .. } = &*cursor;
        match self.board.events().advance_patiently(patience, owner, reader, *reached) {
            Ok(_) => {
                cursor.stored = cursor.reached;
                cursor.stored_at = Instant::now();
                cursor.passed = 0;
                Ok(())
            }
            // It is tried again later, and before the next batch with patience.
            Err(error) if error.code() == Code::Busy && patience == Patience::Never => Ok(()),
            Err(error) => {
                self.failed = true;
                Err(error)
            }
        }
    }
}

/// The events, one after the other. It waits for the next one, and ends when it is stopped.
impl Iterator for Subscription {
    type Item = Result<Event, Error>;

    fn next(&mut self) -> Option<Result<Event, Error>> {
        loop {
            match self.next_within(Duration::MAX) {
                None if !self.stop.is_stopped() => {}
                answer => return answer,
            }
        }
    }
}
