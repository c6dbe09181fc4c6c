//! `protocol show`: a protocol with its messages.

use super::{CustomProtocol, Protocol, Protocols, not_found, table};
use crate::error::Result;
use crate::store::{Key, Prefetch};

impl Protocols<'_> {
    /// The protocol with this name.
    ///
    /// ```
    /// # let board = blackboard::Board::memory();
    /// assert_eq!(board.protocols().show("AgentRun")?.messages.len(), 3);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn show(&self, name: &str) -> Result<Protocol> {
        // The board is read even for a built-in one, so that each call reports a board that cannot be read.
        let key = Key::CustomProtocol(name.to_owned());
        let stored = self
            .board
            .read(&[Prefetch::Row(key.clone())], |tx| tx.row::<CustomProtocol>(&key))?
            .map(Protocol::from);
        table::find(name).cloned().or(stored).ok_or_else(|| not_found(name))
    }
}
