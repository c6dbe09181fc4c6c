//! How long a hook may take.
//!
//! A thread that ends the process is one more for the machine to start and to end, after every tool call of every agent.
//! So it is started only before what may have to wait for others: for the lock of the board, for whoever reads the answer.
//! Most hooks neither write nor say anything. They wait for their input, here, and when they look at a board that somebody
//! else is just recovering, no longer than for the lock.

use std::cell::Cell;
use std::io::{ErrorKind, Read, StdinLock};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::log::Log;
use crate::environment::Environment;

/// How long a hook may take, and the range in which `BLACKBOARD_HOOK_DEADLINE` may set it.
const USUAL: Duration = Duration::from_millis(300);
const RANGE: std::ops::RangeInclusive<u64> = 50..=60_000;

/// Which part of that may be spent on waiting for the lock.
const LOCK_SHARE: u32 = 3;

/// How much of standard input is read.
const LONGEST_INPUT: usize = 1024 * 1024;

/// How much of it is read at once: more than the standard library would buffer, so that nothing is left behind where
/// waiting for more would not see it.
const CHUNK: usize = 16 * 1024;

/// What the log says then.
const TIME_OVER: &str = "the time was over";

/// The end of this process.
pub struct Deadline {
    whole: Duration,
    end: Instant,
    is_watched: Cell<bool>,
    log: Arc<Log>,
}

impl Deadline {
    /// The time that is left from now on.
    pub fn new(environment: &Environment, log: &Arc<Log>) -> Deadline {
        let given = environment.hook_deadline.as_ref().and_then(|text| text.to_str()?.parse().ok());
        let whole = given.filter(|given| RANGE.contains(given)).map_or(USUAL, Duration::from_millis);
        let log = Arc::clone(log);
        Deadline { whole, end: Instant::now() + whole, is_watched: Cell::new(false), log }
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
        let (log, end) = (Arc::clone(&self.log), self.end);
        // Without a thread nothing keeps the time, and the platform's own limit has to do.
        let _ = std::thread::Builder::new().name("deadline".to_owned()).spawn(move || {
            std::thread::sleep(end.saturating_duration_since(Instant::now()));
            log.write(TIME_OVER);
            std::process::exit(0);
        });
    }

    /// What the platform says on standard input.
    pub fn input(&self) -> Result<String, &'static str> {
        let mut bytes = Vec::new();
        let mut stdin = std::io::stdin().lock();
        loop {
            self.wait_for_input(&stdin)?;
            let length = bytes.len();
            bytes.resize(length + CHUNK, 0);
            let read = stdin.read(&mut bytes[length..]);
            bytes.truncate(length + read.as_ref().copied().unwrap_or(0));
            match read {
                Ok(0) => return String::from_utf8(bytes).map_err(|_| "the input is not text"),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err("the input can't be read"),
            }
            if bytes.len() > LONGEST_INPUT {
                self.watch();
                // Whoever writes is not to find a closed pipe.
                let _ = std::io::copy(&mut stdin, &mut std::io::sink());
                return Err("the input is too long");
            }
        }
    }

    /// Waits until there is something to read, or the end of it.
    #[cfg(target_os = "linux")]
    fn wait_for_input(&self, stdin: &StdinLock<'_>) -> Result<(), &'static str> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        loop {
            let left = self.end.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).map_err(|_| TIME_OVER)?;
            match poll(&mut [PollFd::new(stdin, PollFlags::IN)], Some(&left)) {
                Ok(0) => return Err(TIME_OVER),
                Err(rustix::io::Errno::INTR) => {}
                // Whatever can't be waited for can be read.
                Ok(_) | Err(_) => return Ok(()),
            }
        }
    }

    /// Not everything can be waited for elsewhere.
    #[cfg(not(target_os = "linux"))]
    fn wait_for_input(&self, _stdin: &StdinLock<'_>) -> Result<(), &'static str> {
        self.watch();
        Ok(())
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
            let deadline = Deadline::new(&environment, &Arc::new(Log::new("claude")));
            assert_eq!(deadline.whole, Duration::from_millis(expected), "{given:?}");
        }
    }
}
