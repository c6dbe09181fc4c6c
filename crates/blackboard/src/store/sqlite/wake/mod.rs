//! Waking those who wait for something new on the board, in whatever process they are.
//!
//! A wake-up is a hint, which never fails and nobody may rely on: the log is the truth. Whoever waits looks at the board
//! before every sleep, and at least every quarter of a second.
//!
//! On Linux a sidecar file beside the database (`local.db-wake`) holds one word: the low half of the board's revision.
//! A writer changes it after its commit, and wakes all who sleep on it. Who waits reads the word, then looks at the board,
//! then sleeps unless the word has changed since: so what is committed after the look is never slept through. The first
//! who waits creates the file; as long as nobody does, a commit pays for one look that finds nothing.
//!
//! Where there is no word (another system, a directory that can't be written, a file that is not to be trusted), who
//! waits looks at the board again and again, in pauses that grow as long as nothing happens.
//!
//! | File | What it is about |
//! |---|---|
//! | `sidecar.rs` | finding, creating and distrusting the file |
//! | `word.rs` | the word in it, and sleeping on that |
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

/// How long one sleep lasts at most. A writer may die between its commit and the wake-up, or wake those who sleep on a file
/// that has been replaced since.
const LONGEST_SLEEP: Duration = Duration::from_millis(250);

/// How long the first sleep lasts where nobody wakes.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// How a sleep on the word has ended.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "without a word nobody sleeps on it"))]
enum WakeReason {
    /// Somebody woke the sleeper, or the time is over.
    Over,
    /// There was no sleep: the word is another one than was read before.
    Changed,
    /// There was no sleep: the system can't do it here.
    Impossible,
}

/// The wake-up of those who wait for the database at one path.
pub(super) struct Wake {
    sidecar: Sidecar,
    /// Those who wait in this process look at the board one after the other: a crowd that is woken at once would open
    /// a connection each.
    look: Mutex<()>,
    /// How long the next sleep lasts where nobody wakes. It is kept over calls: whoever waits in slices would otherwise
    /// begin with the shortest again and again.
    pauses: Mutex<Backoff>,
    /// How long one sleep lasts at most; a test makes it so long that it notices if nobody wakes.
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

    /// Tells those who wait that the board has a new revision. Comes after the commit.
    pub(super) fn tell(&self, revision: Revision) {
        if let Some(word) = self.sidecar.existing() {
            word.change(low_half(revision));
        }
    }

    /// Sleeps until the board's revision, which `read` looks up, is greater than `after`, or until the time is over.
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
        // Without an end if the time is longer than the machine can count.
        let until = Instant::now().checked_add(timeout);
        let mut revision = self.look(&read)?;
        let mut outdated = None;
        loop {
            let left =
                until.map_or(self.longest_sleep, |until| until.saturating_duration_since(Instant::now()));
            if revision > after || left.is_zero() {
                return Ok(revision);
            }
            // The word comes before the look. What is committed after the look changes the word after it was read.
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
                // A file system that shows a file in two ways at once would keep the loop turning: a word that has
                // changed does not come back.
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

/// What of a revision fits into the word. Two commits that follow each other never have the same.
fn low_half(revision: Revision) -> u32 {
    let [a, b, c, d, ..] = revision.get().to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// The pauses between two looks where nobody wakes: short at first, for the sake of those who wait for something that
/// is about to happen.
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
