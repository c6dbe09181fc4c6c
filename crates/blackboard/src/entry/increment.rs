//! `increment`: adds to a counter that many callers write.

use super::{Scope, Value, Written};
use crate::error::Result;

impl Scope<'_> {
    /// Adds to the integer under a key, and starts at zero if the key does not exist. Tags, metadata and the time to
    /// live stay. The caller need not read the counter first, so concurrent increments do not conflict.
    ///
    /// ```
    /// # use blackboard::Board;
    /// # let board = Board::memory();
    /// let scope = board.scope("team-1");
    /// scope.increment("tests:run", 40)?;
    /// scope.increment("tests:run", 2)?;
    /// assert_eq!(scope.read("tests:run")?.unwrap().as_str(), "42");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn increment(&self, key: &str, by: i64) -> Result<Written> {
        self.rewrite("increment", key, &Value::of(&by)?, |before| match before {
            Some(number) => number.incremented_in(key, by),
            None => Value::of(&by),
        })
    }
}
