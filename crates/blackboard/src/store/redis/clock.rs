//! The time of the server, which is the board's time.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use crate::clock::{Clock, SystemClock, Timestamp};

/// The time in an answer of the server, in microseconds: an estimate from milliseconds would be ahead of it half of the
/// time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ServerTime(i64);

impl ServerTime {
    pub(super) const EPOCH: ServerTime = ServerTime(0);

    pub(super) const fn from_micros(micros: i64) -> ServerTime {
        ServerTime(micros)
    }

    pub(super) fn timestamp(self) -> Timestamp {
        Timestamp::from_millis(self.0.div_euclid(1000))
    }
}

/// The server's clock, estimated between its answers: the last known time, and what passed on this machine since then.
///
/// An answer takes time to arrive, so each estimate is a little late. The latest of them is the best one. None may be
/// ahead: what changes at a time has its event at that time or later, and a search for events since then finds it.
#[derive(Debug)]
pub struct ServerClock {
    started: Instant,
    /// The server's time when this clock started, in microseconds.
    offset: AtomicI64,
}

impl ServerClock {
    /// Before the first answer it is the time of this machine.
    pub(super) fn new() -> ServerClock {
        ServerClock { started: Instant::now(), offset: AtomicI64::new(SystemClock.now().millis() * 1000) }
    }

    /// The server just answered with its first time: the estimate was a guess.
    pub(super) fn set(&self, time: ServerTime) {
        self.offset.store(self.offset_at(time), Ordering::Relaxed);
    }

    /// The server just answered a request with its time. The request was made at this estimate: if that is later, the
    /// estimates are ahead. This machine's clock runs faster, or the server's was set back.
    pub(super) fn note(&self, time: ServerTime, estimate: Timestamp) {
        let offset = self.offset_at(time);
        if offset > self.offset.load(Ordering::Relaxed) || estimate > time.timestamp() {
            self.offset.store(offset, Ordering::Relaxed);
        }
    }

    /// The server's time when this clock started, if this is its time now. The microsecond that has begun counts here,
    /// and does not in an estimate: otherwise an estimate could be ahead by it.
    fn offset_at(&self, time: ServerTime) -> i64 {
        time.0 - self.elapsed() - 1
    }

    fn elapsed(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_micros()).unwrap_or(i64::MAX)
    }
}

impl Clock for ServerClock {
    fn now(&self) -> Timestamp {
        ServerTime(self.offset.load(Ordering::Relaxed).saturating_add(self.elapsed())).timestamp()
    }

    fn monotonic_millis(&self) -> i64 {
        SystemClock.monotonic_millis()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> ServerTime {
        ServerTime::from_micros(millis * 1000)
    }

    #[test]
    fn late_answer_does_not_set_the_clock_back_and_a_wrong_clock_is_corrected() {
        testkit::limit_test();
        let clock = ServerClock::new();
        let made_at = |millis| Timestamp::from_millis(millis);
        // The estimate is at most a microsecond behind, which is the millisecond before.
        clock.set(at(1_000_000));
        clock.note(at(999_975), made_at(999_975));
        assert!(clock.now() >= made_at(999_999), "late");
        clock.note(at(5_000_000), clock.now());
        assert!(clock.now() >= made_at(4_999_999), "behind");
        clock.note(at(2_000_000), clock.now());
        assert!(clock.now() < made_at(3_000_000), "ahead");
    }

    /// A server that answers at once, at any part of a millisecond.
    #[test]
    fn estimate_is_never_ahead_of_the_server() {
        testkit::limit_test();
        let (clock, born) = (ServerClock::new(), Instant::now());
        let server =
            || ServerTime::from_micros(7_000_000_999 + i64::try_from(born.elapsed().as_micros()).unwrap());
        clock.set(server());
        // Parts of microseconds are lost on both sides.
        for _ in 0..1_000_000 {
            let estimate = clock.now();
            let answer = server();
            assert!(estimate <= answer.timestamp(), "{estimate:?} {answer:?}");
            clock.note(answer, estimate);
        }
    }
}
