//! `wait`: waits until a key exists.

use std::time::Duration;

use super::history::in_the_future;
use super::{Entry, Scope, visible};
use crate::error::{Code, Error, Refusal, Result};
use crate::follow::{Check, Sweeping, Wait};
use crate::hint::Hint;
use crate::revision::Revision;
use crate::scope::AccessOperation;
use crate::store::{CallLimit, Key, Prefetch};

/// The longest time between two checks.
const TICK: Duration = Duration::from_secs(1);

/// The conditions and the timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitFor {
    /// The timeout; none by default.
    pub timeout: Option<Duration>,
    /// Only an entry with a greater revision than this one.
    pub after: Option<Revision>,
}

impl Scope<'_> {
    /// Waits until an entry with this key exists, and returns it. Returns at once if it exists already. After the
    /// timeout it fails with the code `timed_out`. Sweeps automatically while it waits, like every call that waits.
    ///
    /// ```
    /// use std::time::Duration;
    /// use blackboard::Board;
    /// use blackboard::entry::{Value, WaitFor, Write};
    ///
    /// let board = Board::memory();
    /// let others = board.clone();
    /// let other = std::thread::spawn(move || {
    ///     others.scope("team-1").write(&Write::new("result:q4", Value::of("up 15%")?))
    /// });
    /// let one_minute = WaitFor { timeout: Some(Duration::from_secs(60)), ..WaitFor::default() };
    /// let result = board.scope("team-1").wait("result:q4", &one_minute)?;
    /// assert_eq!(result.value, Value::of("up 15%")?);
    /// # other.join().unwrap()?;
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn wait(&self, key: &str, wait: &WaitFor) -> Result<Entry> {
        let waiting = Wait {
            timeout: wait.timeout.unwrap_or(Duration::MAX),
            tick: TICK,
            sweep: Sweeping::For(self.actor.session.as_deref()),
            stop: None,
        };
        let _limit = CallLimit::after(waiting.timeout);
        let found = self.board.check_until(&waiting, |_| self.check_key(key, wait.after))?;
        found.ok_or_else(|| timed_out(key, wait))
    }

    /// One check of [`Scope::wait`], for a caller that waits by itself: the entry, if it exists and was written after
    /// the revision `after`.
    ///
    /// ```
    /// # use blackboard::Board;
    /// # use blackboard::entry::{Value, Write};
    /// # use blackboard::follow::Check;
    /// let board = Board::memory();
    /// let scope = board.scope("team-1");
    /// assert!(matches!(scope.check_key("result:q4", None)?, Check::After(_)));
    /// scope.write(&Write::new("result:q4", Value::of("up 15%")?))?;
    /// assert!(matches!(scope.check_key("result:q4", None)?, Check::Done(entry) if entry.version == 1));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn check_key(&self, key: &str, after: Option<Revision>) -> Result<Check<Entry>> {
        self.check_known(key)?;
        let row = Key::Entry(self.name.clone(), key.to_owned());
        let prefetch = vec![Prefetch::Row(row.clone()), Prefetch::Revision];
        let (entry, seen) = self.read_guarded(prefetch, |tx, guard| {
            guard.check(AccessOperation::Read, &self.name, key)?;
            Ok((visible(tx, &row)?, tx.revision()?))
        })?;
        if entry.is_none() {
            // No write can have such a key.
            self.check_new(key)?;
        }
        // A cursor beyond the end of the log comes from another board.
        if let Some(after) = after.filter(|after| *after > seen) {
            return Err(in_the_future(after, seen));
        }
        let entry = entry.filter(|entry| after.is_none_or(|after| entry.revision > after));
        Ok(entry.map_or(Check::After(seen), Check::Done))
    }
}

fn timed_out(key: &str, wait: &WaitFor) -> Error {
    let waited = crate::duration::waited(wait.timeout.unwrap_or_default());
    let message = match wait.after {
        Some(after) => format!("timed out after {waited}: key {key} was not written after revision {after}"),
        None => format!("timed out after {waited}: key {key} was not written"),
    };
    Refusal::new(Code::TimedOut, message).hint(Hint::WaitLongerForKey).into()
}
