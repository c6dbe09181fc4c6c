//! The time limit of a test, under plain `cargo test`.
//!
//! The harness has no limit: a test that hangs would hang the run, without a name. Here a thread watches the tests that
//! have called [`limit_test`]. If a test exceeds its limit, its name is printed, the processes of the run are killed,
//! and the run fails.
//!
//! The limit belongs to the thread of the test, which has the test's name, and ends with that thread. Processes that
//! the thread has left running are killed then.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The variable that changes the limit, in seconds.
const VARIABLE: &str = "BLACKBOARD_TEST_TIMEOUT";

/// Far more than any test takes, also on a machine that is busy with other things.
const DEFAULT: Duration = Duration::from_mins(5);

/// The exit code of a run with a failed test.
const FAILED: i32 = 101;

/// Starts the time limit of the test in this thread, if it has not started. In threads that a test starts it does
/// nothing: they share the limit of their test.
pub fn limit_test() {
    #[cfg(unix)]
    crate::signals::stop_ignoring();
    let thread = thread::current();
    // The harness gives the thread of a test the test's name. Without such a thread there is no test.
    let Some(name) = thread.name().filter(|name| *name != "main") else { return };
    LIMIT.with_borrow_mut(|limit| {
        limit.get_or_insert_with(|| Limit::start(name));
    });
}

/// Runs `f` without the limit of this test, which then starts again. For a test that waits until other tests end.
pub fn without_limit<T>(f: impl FnOnce() -> T) -> T {
    let paused = LIMIT.with_borrow_mut(|limit| limit.as_mut().is_some_and(Limit::pause));
    let answer = f();
    if paused {
        LIMIT.with_borrow_mut(|limit| limit.as_mut().map(Limit::restart));
    }
    answer
}

/// Runs `f`, which waits for something. If it takes longer than `limit`, this program prints `what`, kills the
/// processes that it has started, and fails.
///
/// For programs that measure: it costs two locks and starts no thread. Tests wait with `process` and fail alone.
pub fn limited<T>(what: &str, limit: Duration, f: impl FnOnce() -> T) -> T {
    let _watch = Watch::start(format!("{what} did not end within {} s", limit.as_secs()), limit);
    f()
}

thread_local! {
    static LIMIT: RefCell<Option<Limit>> = const { RefCell::new(None) };
}

/// The limit of one test. It ends with the thread.
struct Limit {
    name: String,
    watch: Option<Watch>,
}

impl Limit {
    fn start(name: &str) -> Limit {
        let mut limit = Limit { name: name.to_owned(), watch: None };
        limit.restart();
        limit
    }

    fn restart(&mut self) {
        let (name, limit) = (&self.name, duration());
        let failure = format!(
            "test {name} did not end within {} s ({VARIABLE} changes the limit): the run ends here",
            limit.as_secs()
        );
        self.watch = Some(Watch::start(failure, limit));
    }

    fn pause(&mut self) -> bool {
        self.watch.take().is_some()
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        self.pause();
        #[cfg(target_os = "linux")]
        crate::processes::kill_children_of_this_thread();
    }
}

/// Something that has to end in time, until this value is dropped.
struct Watch {
    number: u64,
}

impl Watch {
    /// `failure` is printed when the limit is exceeded.
    fn start(failure: String, limit: Duration) -> Watch {
        static WATCHDOG: Once = Once::new();
        WATCHDOG.call_once(|| {
            thread::Builder::new().name("watchdog".to_owned()).spawn(watch).expect("a thread starts");
        });
        let mut watched = watched();
        watched.last_number += 1;
        let (number, end) = (watched.last_number, Instant::now() + limit);
        watched.ends.insert(number, (end, failure));
        if watched.wakes_at.is_none_or(|wakes_at| end < wakes_at) {
            CHANGED.notify_all();
        }
        Watch { number }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        watched().ends.remove(&self.number);
    }
}

/// Everything with a limit, by number, each with its limit and its failure message.
struct Watched {
    last_number: u64,
    ends: BTreeMap<u64, (Instant, String)>,
    /// When the watchdog checks again, unless it is woken.
    wakes_at: Option<Instant>,
}

static WATCHED: Mutex<Watched> =
    Mutex::new(Watched { last_number: 0, ends: BTreeMap::new(), wakes_at: None });
static CHANGED: Condvar = Condvar::new();

fn watched() -> MutexGuard<'static, Watched> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps until the next limit is exceeded, and ends the run then.
fn watch() {
    let mut watched = watched();
    loop {
        let now = Instant::now();
        if let Some((_, failure)) = watched.ends.values().find(|(end, _)| *end <= now) {
            end_run(failure);
        }
        watched.wakes_at = watched.ends.values().map(|(end, _)| *end).min();
        // With nothing to watch it sleeps until something starts.
        watched = match watched.wakes_at {
            None => CHANGED.wait(watched).unwrap_or_else(PoisonError::into_inner),
            Some(end) => CHANGED.wait_timeout(watched, end - now).unwrap_or_else(PoisonError::into_inner).0,
        };
    }
}

/// Reports the failure, kills the processes of the run, and ends the run.
fn end_run(failure: &str) -> ! {
    let mut text = Vec::new();
    let _ = writeln!(text, "\n{failure}");
    #[cfg(target_os = "linux")]
    for process in crate::processes::kill_all_below_this_one() {
        let _ = writeln!(text, "killed process {}: {}", process.pid, process.arguments.join(" "));
    }
    // Not by a macro, whose output the harness captures.
    let _ = std::io::stderr().write_all(&text);
    std::process::exit(FAILED)
}

fn duration() -> Duration {
    let given = std::env::var(VARIABLE).ok().and_then(|seconds| seconds.parse().ok());
    given.map_or(DEFAULT, Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_limit(test: &str) -> bool {
        let failure = format!("test {test} did not end");
        watched().ends.values().any(|(_, watched)| watched.starts_with(&failure))
    }

    fn is_watched() -> bool {
        has_limit(thread::current().name().unwrap())
    }

    #[test]
    fn limit_of_a_test_excludes_the_time_outside_of_it() {
        assert!(!is_watched());
        limit_test();
        assert!(is_watched());
        let answer = without_limit(|| {
            assert!(!is_watched());
            7
        });
        assert_eq!((answer, is_watched()), (7, true));
    }

    #[test]
    fn limit_ends_with_the_thread_of_its_test() {
        let name = "a thread with a name";
        let is_watched = || has_limit(name);
        thread::scope(|scope| {
            let test = || {
                limit_test();
                assert!(is_watched());
            };
            thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, test).unwrap().join().unwrap();
        });
        assert!(!is_watched());
    }

    #[test]
    fn a_thread_without_a_name_has_no_limit_of_its_own() {
        limit_test();
        let before = thread::current().name().map(str::to_owned);
        thread::scope(|scope| {
            scope.spawn(limit_test).join().unwrap();
        });
        assert!(before.is_some() && !has_limit(""));
    }
}
