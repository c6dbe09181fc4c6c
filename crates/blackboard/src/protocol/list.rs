//! `protocol list`: lists protocols.

use super::{CustomProtocol, Protocol, Protocols, built_in_protocols};
use crate::error::Result;
use crate::store::{Prefetch, Range};

impl Protocols<'_> {
    /// The built-in protocols, then those of the board by name.
    ///
    /// ```
    /// # use blackboard::{Board, protocol::DefineProtocol};
    /// # let board = Board::memory();
    /// board.protocols().define(&DefineProtocol::new("review", "review:{id}"))?;
    /// assert_eq!(board.protocols().list()?.last().unwrap().name, "review");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn list(&self) -> Result<Vec<Protocol>> {
        let range = Range::protocols();
        let stored: Vec<CustomProtocol> =
            self.board.read_list(&[Prefetch::Range(range.clone())], |tx| tx.rows(&range))?;
        Ok(built_in_protocols().iter().cloned().chain(stored.into_iter().map(Protocol::from)).collect())
    }
}
