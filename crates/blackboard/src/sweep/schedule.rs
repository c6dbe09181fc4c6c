//! When calls that wait sweep. All waits of a process on one board share one schedule.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::board::Board;

/// How often calls that wait sweep.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

impl Board {
    /// Sweeps automatically if the last sweep was long enough ago.
    pub(crate) fn sweep_if_due(&self, caller: Option<&str>) {
        if self.schedule().take_turn() {
            self.sweep_by(&self.sweep_probes(caller.map(str::to_owned)).looking_ahead());
        }
    }
}

/// When this process last swept a board automatically.
#[derive(Debug, Default)]
pub(crate) struct SweepSchedule(Mutex<Option<Instant>>);

impl SweepSchedule {
    /// The next sweep of a call that waits is one interval from now.
    pub(crate) fn restart(&self) {
        *self.last() = Some(Instant::now());
    }

    /// How long it is until the next sweep is due.
    pub(crate) fn due_in(&self) -> Duration {
        self.last().map_or(Duration::ZERO, |last| SWEEP_INTERVAL.saturating_sub(last.elapsed()))
    }

    /// Whether a sweep is due. If so, the caller makes it; of many callers one is asked to.
    fn take_turn(&self) -> bool {
        let mut last = self.last();
        let is_due = last.is_none_or(|last| last.elapsed() >= SWEEP_INTERVAL);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }

    fn last(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedule_picks_one_caller_per_interval() {
        let schedule = SweepSchedule::default();
        assert_eq!(schedule.due_in(), Duration::ZERO);
        assert!(schedule.take_turn());
        *schedule.last() = Some(Instant::now() + SWEEP_INTERVAL);
        assert!(!schedule.take_turn());
        *schedule.last() = Instant::now().checked_sub(SWEEP_INTERVAL);
        assert!(schedule.take_turn());
    }
}
