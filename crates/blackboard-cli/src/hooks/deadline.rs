//! The time limit of a hook, from its first instruction to its end.
//!
//! A thread that starts before anything else enforces the limit and ends the process. Checking the clock between two
//! steps does not help while one step takes long. Neither does a timer signal: a process that waits for a slow file
//! system (FUSE, NFS) runs no signal handler before the call returns, but the end of the process interrupts the wait.
//!
//! The process ends with `_exit(0)`, which waits for nothing that the main thread holds. An answer is one `write` of
//! one line at the end, so the platform reads all of it or nothing. A hook always exits with 0.

use std::ffi::OsStr;
use std::panic;
use std::process::{self, ExitCode};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::log::HookLog;
use super::maintenance;
use crate::engine::{Engine, HookEnd};
use crate::environment::Environment;

/// The time limit of a hook, and the range in which `BLACKBOARD_HOOK_DEADLINE` may set it.
const USUAL: Duration = Duration::from_millis(300);
const RANGE: std::ops::RangeInclusive<u64> = 50..=60_000;

/// The part of it that may be spent waiting for the lock.
const LOCK_SHARE: u32 = 3;

/// The part of it that is reserved for writing the log at the end.
const LOG_SHARE: u32 = 10;

/// The deadline of this process; `None` inside if it cannot be enforced.
static DEADLINE: OnceLock<Option<Deadline>> = OnceLock::new();

/// The time limit of this process.
pub struct Deadline {
    whole: Duration,
    /// The log in which the process reports that it ran out of time.
    pub log: Arc<HookLog>,
    /// The board of the call, once it is known.
    board: Arc<OnceLock<Arc<dyn Engine>>>,
}

/// Starts the deadline of this process, or returns the one that was started before. `None` if the thread cannot be
/// started.
pub fn start() -> Option<&'static Deadline> {
    DEADLINE.get_or_init(Deadline::started).as_ref()
}

/// Handles a hook call and exits with 0, also after a panic. Platforms treat another exit code as a reason to stop the
/// tool or the agent.
pub fn always_exit_zero(call: impl FnOnce() -> ExitCode) -> ExitCode {
    // If the deadline cannot be enforced, the call does nothing and reports that.
    let _ = start();
    // Release builds do not unwind (docs/decisions/0013), so a panic is handled where it starts.
    panic::set_hook(Box::new(|_| process::exit(0)));
    call();
    ExitCode::SUCCESS
}

impl Deadline {
    fn started() -> Option<Deadline> {
        let begin = Instant::now();
        let whole = limit(Environment::capture_hook_deadline().as_deref());
        let log = Arc::new(HookLog::default());
        let board = Arc::<OnceLock<Arc<dyn Engine>>>::default();
        let (for_thread, board_for_thread) = (Arc::clone(&log), Arc::clone(&board));
        let for_log = whole / LOG_SHARE;
        std::thread::Builder::new()
            .spawn(move || {
                std::thread::sleep(whole.saturating_sub(for_log).saturating_sub(begin.elapsed()));
                let line = format!("exceeded its time limit of {} ms", whole.as_millis());
                at_most(for_log, move || {
                    for_thread.write_from_anywhere(&line);
                    // A long WAL may be the reason: opening a board reads it. Then no hook would ever finish. Or a server that
                    // does not answer.
                    if let Some(board) = board_for_thread.get() {
                        board.note_hook_end(HookEnd::OutOfTime);
                        maintenance::start_if_overdue(&**board);
                    }
                });
                end_process();
            })
            .ok()?;
        Some(Deadline { whole, log, board })
    }

    /// Sets the board of the call.
    pub fn uses(&self, board: &Arc<dyn Engine>) {
        let _ = self.board.set(Arc::clone(board));
    }

    /// How long a write may wait for other writers.
    pub fn lock(&self) -> Duration {
        self.whole / LOCK_SHARE
    }
}

fn limit(given: Option<&OsStr>) -> Duration {
    let given = given.and_then(|text| text.to_str()?.parse().ok());
    given.filter(|given| RANGE.contains(given)).map_or(USUAL, Duration::from_millis)
}

/// Ends the process at once: runs no handler and waits for no lock.
#[cfg(unix)]
fn end_process() {
    signal_hook::low_level::exit(0);
}

#[cfg(not(unix))]
fn end_process() {
    std::process::exit(0);
}

/// Runs `action`, and waits at most this long for its end.
fn at_most(limit: Duration, action: impl FnOnce() + Send + 'static) {
    let (done, finished) = channel();
    let spawned = std::thread::Builder::new().spawn(move || {
        action();
        let _ = done.send(());
    });
    if spawned.is_ok() {
        let _ = finished.recv_timeout(limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deadline_can_be_set_within_bounds() {
        for (given, expected) in [
            (None, 300),
            (Some("1000"), 1000),
            (Some("50"), 50),
            (Some("49"), 300),
            (Some("60001"), 300),
            (Some("-1"), 300),
            (Some("soon"), 300),
        ] {
            let found = limit(given.map(OsStr::new));
            assert_eq!(found, Duration::from_millis(expected), "{given:?}");
        }
    }

    #[test]
    fn a_log_that_does_not_answer_does_not_delay_the_end() {
        testkit::limit_test();
        let (answer, never) = channel::<()>();
        at_most(Duration::from_millis(1), move || {
            // Until the test has ended.
            never.iter().for_each(drop);
        });
        drop(answer);
    }
}
