//! Waiting until a state is reached.

use std::thread;
use std::time::{Duration, Instant};

/// The variable with the time limit of a wait, in seconds.
const VARIABLE: &str = "BLACKBOARD_TEST_PATIENCE";

/// The time limit of a wait: 30 s, which only something that hangs exceeds. `cargo xtask test
/// --under-load` makes it longer.
pub fn patience() -> Duration {
    let given = std::env::var(VARIABLE).ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(given.unwrap_or(30))
}

/// Calls `look` until it returns something. Fails after [`patience`], and prints what was missing.
#[track_caller]
pub fn wait_until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + patience();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < end, "not seen within {} s: {what}", patience().as_secs());
        thread::sleep(Duration::from_millis(2));
    }
}
