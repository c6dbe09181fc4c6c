//! Calls that wait keep sweeping: the session they wait for may be one that never comes back.
//!
//! This is the one place for that. All waits of a process on one board share a schedule, so that any number of them costs
//! one probe per second.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::board::Board;
use crate::error::Result;
use crate::revision::Revision;

/// How often calls that wait sweep.
const INTERVAL: Duration = Duration::from_secs(1);

/// When a board was last swept automatically by this process.
#[derive(Debug, Default)]
pub(crate) struct SweepSchedule(Mutex<Option<Instant>>);

impl SweepSchedule {
    /// The next sweep of a call that waits is one interval from now.
    pub(super) fn restart(&self) {
        *self.last() = Some(Instant::now());
    }

    /// How long it is until the next sweep is due.
    fn due_in(&self) -> Duration {
        self.last().map_or(Duration::ZERO, |last| INTERVAL.saturating_sub(last.elapsed()))
    }

    /// Whether a sweep is due. If so, the caller makes it; of many callers one is asked to.
    fn take_turn(&self) -> bool {
        let mut last = self.last();
        let is_due = last.is_none_or(|last| last.elapsed() >= INTERVAL);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }

    fn last(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Board {
    /// As [`Board::wait`], and sweeps automatically about once a second meanwhile. `caller` is the session that waits,
    /// which its own sweep never marks stale. Every call that waits for another session uses it, unless it must not write.
    ///
    /// ```
    /// use std::time::Duration;
    /// use blackboard::{Board, work::Create};
    ///
    /// let board = Board::memory();
    /// let seen = board.revision()?;
    /// let others = board.clone();
    /// let other = std::thread::spawn(move || others.work().create(&Create::new("design-schema", "Design SQL schema")));
    /// assert!(board.wait_and_sweep(seen, Duration::from_secs(60), None)? > seen);
    /// # other.join().unwrap()?;
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn wait_and_sweep(
        &self,
        after: Revision,
        timeout: Duration,
        caller: Option<&str>,
    ) -> Result<Revision> {
        // No end if the time is longer than the machine can count.
        let until = Instant::now().checked_add(timeout);
        let left = || until.map_or(INTERVAL, |until| until.saturating_duration_since(Instant::now()));
        loop {
            if !left().is_zero() {
                self.sweep_if_due(caller);
            }
            let revision = self.wait(after, left().min(self.schedule().due_in()))?;
            if revision > after || left().is_zero() {
                return Ok(revision);
            }
        }
    }

    /// Sweeps automatically if the last sweep was long enough ago.
    pub(crate) fn sweep_if_due(&self, caller: Option<&str>) {
        if self.schedule().take_turn() {
            self.sweep_in_passing(caller);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_asks_one_caller_per_interval() {
        let schedule = SweepSchedule::default();
        assert_eq!(schedule.due_in(), Duration::ZERO);
        assert!(schedule.take_turn());
        *schedule.last() = Some(Instant::now() + INTERVAL);
        assert!(!schedule.take_turn());
        *schedule.last() = Instant::now().checked_sub(INTERVAL);
        assert!(schedule.take_turn());
    }
}
