//! The time of the server, which is the board's time.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::clock::{Clock, SystemClock, Timestamp};

/// How far an estimate may be ahead of the server before it is corrected: this machine's clock may run faster.
const TOLERANCE: i64 = 50;

/// The server's clock, estimated between its answers: the last known time, and what passed on this machine since then.
///
/// An answer takes time to arrive, so each estimate is a little late. The latest of them is the best one.
#[derive(Debug)]
pub struct ServerClock {
    /// The server's time minus the monotonic time of this machine.
    offset: AtomicI64,
}

impl ServerClock {
    /// Before the first answer it is the time of this machine.
    pub(super) fn new() -> ServerClock {
        let offset = SystemClock.now().millis() - SystemClock.monotonic_millis();
        ServerClock { offset: AtomicI64::new(offset) }
    }

    /// The server just answered with its first time: the estimate was a guess.
    pub(super) fn set(&self, time: Timestamp) {
        self.offset.store(time.millis() - SystemClock.monotonic_millis(), Ordering::Relaxed);
    }

    /// The server just answered with its time.
    pub(super) fn note(&self, time: Timestamp) {
        let offset = time.millis() - SystemClock.monotonic_millis();
        let known = self.offset.load(Ordering::Relaxed);
        if offset > known || offset < known - TOLERANCE {
            self.offset.store(offset, Ordering::Relaxed);
        }
    }
}

impl Clock for ServerClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(SystemClock.monotonic_millis() + self.offset.load(Ordering::Relaxed))
    }

    fn monotonic_millis(&self) -> i64 {
        SystemClock.monotonic_millis()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_answer_does_not_set_the_clock_back_and_a_wrong_clock_is_corrected() {
        testkit::limit_test();
        let clock = ServerClock::new();
        let at = |millis| Timestamp::from_millis(millis);
        clock.set(at(1_000_000));
        clock.note(at(1_000_000 - TOLERANCE / 2));
        assert!(clock.now() >= at(1_000_000));
        clock.note(at(5_000_000));
        assert!(clock.now() >= at(5_000_000));
        clock.note(at(2_000_000));
        assert!(clock.now() < at(3_000_000));
    }
}
