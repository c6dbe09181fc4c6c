//! [`CallLimit`]: the end of a call that waits.

use std::cell::Cell;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

thread_local! {
    /// When the call of this thread ends.
    static ENDS: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// How long a request may take that begins at the end of a call: a call that waits makes a last check then.
#[cfg(feature = "redis")]
const LAST_CHECK: Duration = Duration::from_millis(500);

/// While it exists, no request of this thread to a server takes longer than until its end. Without it, a server that does
/// not answer would keep a call waiting for the patience of its store. Of several limits the earliest counts.
///
/// ```
/// use std::time::Duration;
/// use blackboard::{Board, store::CallLimit};
///
/// let board = Board::memory();
/// let limit = CallLimit::after(Duration::from_secs(3));
/// board.revision()?;
/// drop(limit);
/// # Ok::<(), blackboard::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "the limit ends when it is dropped"]
pub struct CallLimit {
    before: Option<Instant>,
    /// It belongs to its thread.
    thread: PhantomData<*const ()>,
}

impl CallLimit {
    /// A call that takes this long, from now on.
    pub fn after(time: Duration) -> CallLimit {
        CallLimit::until(Instant::now().checked_add(time))
    }

    /// A call that ends then. Without an end there is no limit.
    pub fn until(end: Option<Instant>) -> CallLimit {
        let before = ENDS.get();
        ENDS.set([before, end].into_iter().flatten().min());
        CallLimit { before, thread: PhantomData }
    }
}

impl Drop for CallLimit {
    fn drop(&mut self) {
        ENDS.set(self.before);
    }
}

/// How long a request may take, of the time that it could take without a limit.
#[cfg(feature = "redis")]
pub(super) fn limited(time: Duration) -> Duration {
    match ENDS.get() {
        Some(end) => time.min(end.saturating_duration_since(Instant::now()).max(LAST_CHECK)),
        None => time,
    }
}

#[cfg(all(test, feature = "redis"))]
mod tests {
    use super::*;

    #[test]
    fn earliest_limit_counts_while_it_exists() {
        testkit::limit_test();
        let (long, short) = (Duration::from_hours(2), Duration::from_mins(1));
        assert_eq!(limited(long), long);
        let outer = CallLimit::after(Duration::from_hours(1));
        assert!(limited(long) < long && limited(long) > short);
        let inner = CallLimit::after(short);
        assert!(limited(long) <= short);
        let longer = CallLimit::after(long);
        assert!(limited(long) <= short, "a longer limit changes nothing");
        drop(longer);
        drop(inner);
        assert!(limited(long) > short);
        drop(outer);
        assert_eq!(limited(long), long);
        let over = CallLimit::after(Duration::ZERO);
        assert_eq!(limited(long), LAST_CHECK);
        assert_eq!(limited(Duration::from_millis(1)), Duration::from_millis(1));
        drop(over);
    }
}
