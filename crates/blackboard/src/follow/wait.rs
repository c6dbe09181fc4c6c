//! The loop of every call that waits for a state of the board.

use std::time::{Duration, Instant};

use super::StopHandle;
use crate::board::Board;
use crate::error::Result;
use crate::revision::Revision;

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
        check: impl FnMut(Wake) -> Result<Check<T>>,
    ) -> Result<Option<T>> {
        self.check_until_waking(wait, |seen, longest| self.wait(seen, longest), check)
    }

    /// As [`Board::check_until`], with a sleep of its own, which is a [`Board::wait`].
    pub(super) fn check_until_waking<T>(
        &self,
        wait: &Wait<'_>,
        mut sleep: impl FnMut(Revision, Duration) -> Result<Revision>,
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
            wake = match sleep(seen, longest)? {
                revision if revision == seen => Wake::Unchanged,
                revision => Wake::Changed(revision),
            };
        }
    }
}
