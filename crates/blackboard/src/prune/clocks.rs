//! Clock readings of machines that do not use the board any more: containers have a new id each time.
//!
//! Readings have no order by time. Each batch looks at the next few of them by name, and the first one follows the last.

use super::readable;
use crate::board::Board;
use crate::error::Result;
use crate::store::{BookkeepingRow, Key, Prefetch, Range, Tx};
use crate::sweep::ClockReading;
use crate::unreadable::if_readable;

/// How many readings one batch looks at: fewer than a transaction removes.
const LOOKED_AT: usize = 500;

/// The readings that one batch removes.
pub(super) struct ClockBatch {
    pub(super) due: Vec<Key>,
    /// After which name the next batch looks; empty if this one has reached the end.
    pub(super) position: String,
}

/// What [`Board::clocks_to_prune`] reads first.
pub(super) fn prefetch(after: &str) -> Prefetch<'static> {
    Prefetch::Keys(range(after), LOOKED_AT)
}

fn range(after: &str) -> Range {
    if after.is_empty() { ClockReading::all() } else { ClockReading::all().after(after) }
}

impl Board {
    /// The readings after a name that are due.
    pub(super) fn clocks_to_prune(&self, tx: &dyn Tx, after: &str) -> Result<ClockBatch> {
        let found = tx.keys(&range(after), LOOKED_AT)?;
        let is_full = found.len() == LOOKED_AT;
        let mut keys = readable(found)?;
        let position = match keys.last() {
            Some(Key::BookkeepingRow(name)) if is_full => name.to_string(),
            _ => String::new(),
        };
        keys.retain(|key| !ClockReading::is_own(self, key));
        if !keys.is_empty() {
            tx.prefetch(&keys.iter().cloned().map(Prefetch::Row).collect::<Vec<_>>())?;
        }
        let mut due = Vec::new();
        for key in keys {
            let row = if_readable(tx.row::<BookkeepingRow>(&key))?;
            if row.is_some_and(|row| ClockReading::is_abandoned(self, &row, tx.now())) {
                due.push(key);
            }
        }
        Ok(ClockBatch { due, position })
    }
}
