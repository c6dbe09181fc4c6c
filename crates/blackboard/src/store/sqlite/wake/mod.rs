//! Wakes processes and threads that wait for the next event of the board.
//!
//! A wake-up is only an optimization, which never fails and may be lost: the event log is the truth. A waiting thread
//! checks the board before every sleep, and at least every quarter of a second.
//!
//! On Linux a sidecar file beside the database (`local.db-wake`) contains one word: the low half of the board's
//! revision. A writer changes it after its commit, and wakes all that sleep on it. A waiting thread reads the word,
//! then checks the board, then sleeps unless the word has changed since. So a commit after the check is never missed.
//! The first waiting thread creates the file. Until then, a commit pays for one `stat` that finds nothing.
//!
//! Without a wake word, a waiting thread polls the board, in pauses that grow while nothing happens. There is no word on
//! another system, in a read-only directory, or if the file cannot be trusted.
//!
//! | File | What it is about |
//! |---|---|
//! | `sidecar.rs` | finding, creating and checking the file |
//! | `word.rs` | the word in it, and sleeping on it |
//! | `unsupported.rs` | systems without it |

#[cfg(target_os = "linux")]
mod sidecar;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
#[cfg(not(target_os = "linux"))]
mod unsupported;
#[cfg(target_os = "linux")]
mod word;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use self::sidecar::Sidecar;
#[cfg(not(target_os = "linux"))]
use self::unsupported::Sidecar;
use super::SqliteSidecars;
use crate::error::Result;
use crate::revision::Revision;
use crate::store::{self, Sidecars};

/// The longest sleep. A writer may be killed between its commit and the wake-up, or may wake the sleepers of a file
/// that has been replaced since.
const LONGEST_SLEEP: Duration = Duration::from_millis(250);

/// The first sleep where there are no wake-ups.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// How a sleep on the word has ended.
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "without a wake word no thread sleeps on it")
)]
enum WakeReason {
    /// A wake-up, or the timeout.
    Over,
    /// There was no sleep: the word differs from the one that was read before.
    Changed,
    /// There was no sleep: the system does not support it here.
    Impossible,
}

/// The wake-ups for the database at one path.
pub(super) struct Wake {
    sidecar: Sidecar,
    /// Waiting threads of this process check the board one after the other: otherwise each would open a connection
    /// after a wake-up.
    look: Mutex<()>,
    /// The next sleep where there are no wake-ups. It is kept between calls: a caller that waits in slices would
    /// otherwise always begin with the shortest.
    pauses: Mutex<Backoff>,
    /// The longest sleep; a test makes it so long that a missing wake-up is noticed.
    longest_sleep: Duration,
}

impl Wake {
    pub(super) fn new(sidecars: &SqliteSidecars) -> Wake {
        Wake {
            sidecar: Sidecar::new(sidecars.path(store::Sidecar::WakeWord)),
            look: Mutex::new(()),
            pauses: Mutex::new(Backoff::new()),
            longest_sleep: LONGEST_SLEEP,
        }
    }

    /// Wakes waiting threads after a commit with this revision.
    pub(super) fn tell(&self, revision: Revision) {
        if let Some(word) = self.sidecar.existing() {
            word.change(low_half(revision));
        }
    }

    /// Waits until the board's revision, which `read` returns, is greater than `after`, or until the timeout.
    pub(super) fn wait(
        &self,
        after: Revision,
        timeout: Duration,
        read: impl Fn() -> Result<Revision>,
    ) -> Result<Revision> {
        let revision = self.sleep(after, timeout, read)?;
        if revision > after {
            *self.pauses() = Backoff::new();
        }
        Ok(revision)
    }

    fn sleep(
        &self,
        after: Revision,
        timeout: Duration,
        read: impl Fn() -> Result<Revision>,
    ) -> Result<Revision> {
        // Without a deadline if the timeout is longer than the machine can count.
        let until = Instant::now().checked_add(timeout);
        let mut revision = self.look(&read)?;
        let mut outdated = None;
        loop {
            let left =
                until.map_or(self.longest_sleep, |until| until.saturating_duration_since(Instant::now()));
            if revision > after || left.is_zero() {
                return Ok(revision);
            }
            // The word is read before the check. A commit after the check changes the word after it was read.
            let word = self.sidecar.existing_or_new();
            let seen = word.as_ref().and_then(|word| word.read());
            revision = self.look(&read)?;
            if revision > after {
                return Ok(revision);
            }
            let left = left.min(self.longest_sleep);
            let slept = match (word, seen) {
                (Some(word), Some(seen)) => word.sleep(seen, left),
                _ => WakeReason::Impossible,
            };
            match slept {
                WakeReason::Over => outdated = None,
                // A file system that shows two versions of a file could keep the loop running: a changed word never
                // returns to an old value.
                WakeReason::Changed if outdated != seen => outdated = seen,
                WakeReason::Changed | WakeReason::Impossible => {
                    let pause = self.pauses().next(left);
                    thread::sleep(pause);
                }
            }
        }
    }

    fn pauses(&self) -> MutexGuard<'_, Backoff> {
        self.pauses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self, read: &impl Fn() -> Result<Revision>) -> Result<Revision> {
        let _turn = self.look.lock().unwrap_or_else(PoisonError::into_inner);
        read()
    }
}

/// The part of a revision that fits into the word. Two successive commits never have the same.
fn low_half(revision: Revision) -> u32 {
    let [a, b, c, d, ..] = revision.get().to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// The pauses between two checks where there are no wake-ups: short at first, for an event that is about to happen.
struct Backoff {
    next: Duration,
}

impl Backoff {
    fn new() -> Backoff {
        Backoff { next: FIRST_PAUSE }
    }

    fn next(&mut self, left: Duration) -> Duration {
        let pause = self.next.min(left);
        self.next = (self.next * 2).min(LONGEST_SLEEP);
        pause
    }
}
