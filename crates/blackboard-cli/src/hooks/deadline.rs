//! How long a hook may take.
//!
//! A thread that ends the process is one more for the machine to start and to end, after every tool call of every agent.
//! So it is started only before what may have to wait for others: for the lock of the board, for whoever reads the answer.
//! Most hooks neither write nor say anything. They wait for their input, here, and when they look at a board that somebody
//! else is just recovering, no longer than for the lock.

use std::cell::Cell;
use std::ffi::OsString;
use std::io::{ErrorKind, Read, StdinLock};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::log::LogFile;
use super::place;
use crate::environment::Environment;
use crate::location::Request;

/// How long a hook may take, and the range in which `BLACKBOARD_HOOK_DEADLINE` may set it.
const USUAL: Duration = Duration::from_millis(300);
const RANGE: std::ops::RangeInclusive<u64> = 50..=60_000;

/// Which part of that may be spent on waiting for the lock.
const LOCK_SHARE: u32 = 3;

/// Which part of it is left for the log when it is over.
const LOG_SHARE: u32 = 10;

/// How much of standard input is read: more than any agent writes in one call of a tool.
const LONGEST_INPUT: usize = 16 * 1024 * 1024;

/// How much of it is read at once: more than the standard library would buffer, so that nothing is left behind where
/// waiting for more would not see it.
const CHUNK: usize = 16 * 1024;

/// The end of this process.
pub struct Deadline {
    whole: Duration,
    /// When nothing more is begun but the log.
    end: Instant,
    is_watched: Cell<bool>,
    /// The board that the call names, to find the log by.
    db: Option<OsString>,
    log: Arc<LogFile>,
}

impl Deadline {
    /// The time that is left from now on.
    pub fn new(environment: &Environment, db: Option<OsString>, log: &Arc<LogFile>) -> Deadline {
        let given = environment.hook_deadline.as_ref().and_then(|text| text.to_str()?.parse().ok());
        let whole = given.filter(|given| RANGE.contains(given)).map_or(USUAL, Duration::from_millis);
        let end = Instant::now() + whole.saturating_sub(whole / LOG_SHARE);
        Deadline { whole, end, is_watched: Cell::new(false), db, log: Arc::clone(log) }
    }

    /// How long a write may wait for others.
    pub fn lock(&self) -> Duration {
        self.whole / LOCK_SHARE
    }

    /// From here on the process ends in good order when its time is over, whatever it waits for then. What was committed
    /// is committed; a transaction that was not is rolled back by whoever comes next.
    pub fn watch(&self) {
        if self.is_watched.replace(true) {
            return;
        }
        let (log, end, db) = (Arc::clone(&self.log), self.end, self.db.clone());
        let (said, for_the_log) = (self.time_over(), self.whole / LOG_SHARE);
        // Without a thread nothing keeps the time, and the platform's own limit has to do.
        let _ = std::thread::Builder::new().name("deadline".to_owned()).spawn(move || {
            std::thread::sleep(end.saturating_duration_since(Instant::now()));
            at_most(for_the_log, move || {
                if !log.is_located() {
                    let current_dir = std::env::current_dir().unwrap_or_default();
                    let request = Request { db, environment: Environment::capture(), current_dir };
                    log.locate(&place::log_directories(&request));
                }
                log.write(&said);
            });
            std::process::exit(0);
        });
    }

    /// What the log says then.
    fn time_over(&self) -> String {
        format!("its {} ms were over", self.whole.as_millis())
    }

    /// What the platform says on standard input.
    pub fn input(&self) -> Result<String, String> {
        let mut bytes = Vec::new();
        let mut stdin = std::io::stdin().lock();
        loop {
            self.wait_for_input(&stdin)?;
            let length = bytes.len();
            bytes.resize(length + CHUNK, 0);
            let read = stdin.read(&mut bytes[length..]);
            bytes.truncate(length + read.as_ref().copied().unwrap_or(0));
            match read {
                Ok(0) => return String::from_utf8(bytes).map_err(|_| "the input is not text".to_owned()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err("the input can't be read".to_owned()),
            }
            if bytes.len() > LONGEST_INPUT {
                self.watch();
                // Whoever writes is not to find a closed pipe.
                let _ = std::io::copy(&mut stdin, &mut std::io::sink());
                return Err("the input is too long".to_owned());
            }
        }
    }

    /// Waits until there is something to read, or the end of it.
    #[cfg(target_os = "linux")]
    fn wait_for_input(&self, stdin: &StdinLock<'_>) -> Result<(), String> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        loop {
            let left = self.end.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).map_err(|_| self.time_over())?;
            match poll(&mut [PollFd::new(stdin, PollFlags::IN)], Some(&left)) {
                Ok(0) => return Err(self.time_over()),
                Err(rustix::io::Errno::INTR) => {}
                // Whatever can't be waited for can be read.
                Ok(_) | Err(_) => return Ok(()),
            }
        }
    }

    /// Not everything can be waited for elsewhere.
    #[cfg(not(target_os = "linux"))]
    fn wait_for_input(&self, _stdin: &StdinLock<'_>) -> Result<(), String> {
        self.watch();
        Ok(())
    }
}

/// Does something, and does not wait for its end longer than this.
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
            let environment =
                Environment { hook_deadline: given.map(std::ffi::OsString::from), ..Environment::default() };
            let deadline = Deadline::new(&environment, None, &Arc::new(LogFile::new("claude")));
            assert_eq!(deadline.whole, Duration::from_millis(expected), "{given:?}");
        }
    }

    #[test]
    fn nobody_waits_for_a_log_that_does_not_answer() {
        let (answer, never) = channel::<()>();
        at_most(Duration::from_millis(1), move || {
            let _ = never.recv();
        });
        drop(answer);
    }
}
