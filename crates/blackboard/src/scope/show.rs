//! `scope show`: one scope with its policies.

use super::{Guard, ScopeDetails, ScopePolicies, ScopeStatus, Scopes, not_found};
use crate::entry::check_known_scope;
use crate::error::Result;
use crate::store::{Key, Prefetch, Range};

impl Scopes<'_> {
    /// The policies of a scope, and how many entries it has. A scope without both is refused. One that has ended is shown as
    /// long as the event log has events of it.
    ///
    /// ```
    /// # use blackboard::{Board, Code, entry::{Value, Write}, scope::Policies};
    /// # let board = Board::memory();
    /// board.scope("team-1").write(&Write::new("a", Value::of(&1)?))?;
    /// let shown = board.scopes().show("team-1")?;
    /// assert_eq!((shown.entries, shown.policies), (1, Policies::default()));
    /// assert_eq!(board.scopes().show("team-2").unwrap_err().code(), Code::ScopeNotFound);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn show(&self, name: &str) -> Result<ScopeDetails> {
        check_known_scope(name)?;
        let (key, entries) = (Key::ScopePolicies(name.to_owned()), Range::entries(name, ""));
        let prefetch = [Prefetch::Row(key.clone()), Prefetch::Count(entries.clone())];
        self.board.read(&prefetch, |tx| {
            Guard::of_board(self.board, tx).check_scope(name)?;
            let row = tx.row::<ScopePolicies>(&key)?;
            let row = row.filter(|row| row.policies.status != ScopeStatus::Deleted);
            // The row of a scope with a limit has the number: to count many entries takes long.
            let known = row.as_ref().and_then(|row| row.entries);
            match (row, known.map_or_else(|| tx.count(&entries), Ok)?) {
                (None, 0) => Err(not_found(name)),
                (row, entries) => Ok(ScopeDetails::of(name.to_owned(), entries, row.as_ref())),
            }
        })
    }
}
