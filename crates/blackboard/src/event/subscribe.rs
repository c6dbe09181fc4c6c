//! `subscribe`: the events of the log, one at a time, from a [`Follower`].

use std::collections::VecDeque;
use std::time::Duration;

use super::{Batch, Event};
use crate::board::Board;
use crate::error::{Error, Result};
use crate::follow::{Follow, Follower, StopHandle};
use crate::revision::Revision;

/// How many events are in memory at once, apart from the rest of the last commit.
const BATCH: usize = 1000;

/// The event log as it continues: an iterator that waits for the next event.
///
/// An event is acknowledged when the next batch is asked for. For errors see [`Follower`].
///
/// ```
/// use blackboard::Board;
/// use blackboard::entry::{Value, Write};
/// use blackboard::event::Filter;
/// use blackboard::follow::Follow;
///
/// let board = Board::memory();
/// let mut subscription =
///     board.subscribe(&Follow { filters: vec![Filter::of_keys("task:*")], ..Follow::default() })?;
/// board.scope("team-1").write(&Write::new("note", Value::of("hello")?))?;
/// board.scope("team-1").write(&Write::new("task:1", Value::of("open")?))?;
/// let change = subscription.next().unwrap()?.entry.unwrap();
/// assert_eq!((change.key.as_str(), change.value), ("task:1", Some(Value::of("open")?)));
/// # Ok::<(), blackboard::Error>(())
/// ```
pub struct Subscription {
    pub(super) follower: Follower,
    stop: StopHandle,
    /// The rest of the current batch.
    ready: VecDeque<Event>,
    /// The end of the current batch.
    current: Option<Revision>,
}

impl Board {
    /// Follows the event log, one event at a time. See [`Subscription`].
    ///
    /// ```
    /// use blackboard::Board;
    /// use blackboard::entry::{Query, Value, Write};
    /// use blackboard::follow::{Follow, Start};
    ///
    /// // The snapshot, and then every change of it: no gap, and nothing twice.
    /// let board = Board::memory();
    /// let scope = board.scope("team-1");
    /// scope.write(&Write::new("a", Value::of(&1)?))?;
    /// let snapshot = scope.snapshot(&Query::default())?;
    /// scope.write(&Write::new("a", Value::of(&2)?))?;
    /// let mut tail =
    ///     board.subscribe(&Follow { start: Start::Revision(snapshot.revision), ..Follow::default() })?;
    /// let change = tail.next().unwrap()?.entry.unwrap();
    /// assert_eq!((change.old_value, change.value), (Some(Value::of(&1)?), Some(Value::of(&2)?)));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn subscribe(&self, follow: &Follow) -> Result<Subscription> {
        let follower = self.follow(follow)?;
        let stop = follower.stop_handle();
        Ok(Subscription { follower, stop, ready: VecDeque::new(), current: None })
    }
}

impl Subscription {
    /// A handle to stop it.
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// The next event; `None` if there was none within this time, or if the subscription was stopped.
    ///
    /// ```
    /// use std::time::Duration;
    /// use blackboard::{Board, follow::Follow};
    ///
    /// let mut subscription = Board::memory().subscribe(&Follow::default())?;
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
        if let Some(last) = self.current.take()
            && let Err(error) = self.follower.acknowledge(last)
        {
            return Some(Err(error));
        }
        match self.follower.next_batch(BATCH, timeout) {
            Ok(Some(Batch { events, last, .. })) => {
                self.ready = events.into();
                self.current = Some(last);
                self.ready.pop_front().map(Ok)
            }
            Ok(None) => None,
            Err(error) => Some(Err(error)),
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
