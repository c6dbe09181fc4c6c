//! The rows that the lists of one call left out, because they cannot be read.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use blackboard::{Board, UnreadableRow};
use serde::{Serialize, Serializer};

/// How many rows human output names.
const NAMED: usize = 5;

/// Collects the rows that the lists of one call left out.
#[derive(Clone, Default)]
pub struct UnreadableRows(Arc<Mutex<BTreeSet<UnreadableRow>>>);

impl UnreadableRows {
    /// The same board, whose lists leave out rows that cannot be read and add them here.
    pub fn observe(&self, board: Board) -> Board {
        let rows = self.clone();
        board.with_unreadable_observer(move |row| {
            rows.lock().insert(row.clone());
        })
    }

    /// What was left out so far.
    pub fn list(&self) -> Vec<UnreadableRow> {
        self.lock().iter().cloned().collect()
    }

    /// Whether nothing was left out so far.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<UnreadableRow>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Serialize for UnreadableRows {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.list().serialize(serializer)
    }
}

/// A sentence for each of the first rows, and one for all others.
pub fn sentences(rows: &[UnreadableRow]) -> Vec<String> {
    let (named, others) = rows.split_at(rows.len().min(NAMED));
    let mut sentences: Vec<String> = named
        .iter()
        .map(|UnreadableRow { table, id, reason }| match id {
            Some(id) => format!("left out row {id} of {table}, which cannot be read: {reason}"),
            None => format!("left out a row of {table}, which cannot be read: {reason}"),
        })
        .collect();
    match others.len() {
        0 => {}
        1 => sentences.push("left out 1 more row that cannot be read".to_owned()),
        count => sentences.push(format!("left out {count} more rows that cannot be read")),
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rows_are_named_and_the_others_are_counted() {
        let row = |number: usize| UnreadableRow {
            table: "work_items",
            id: (number > 0).then(|| format!("w{number}")),
            reason: "column claimed_at: not a time".to_owned(),
        };
        let rows: Vec<_> = (0..7).map(row).collect();
        assert!(sentences(&[]).is_empty());
        assert_eq!(
            sentences(&rows[..2]),
            [
                "left out a row of work_items, which cannot be read: column claimed_at: not a time",
                "left out row w1 of work_items, which cannot be read: column claimed_at: not a time",
            ]
        );
        assert_eq!(sentences(&rows[..6]).last().unwrap(), "left out 1 more row that cannot be read");
        assert_eq!(sentences(&rows).last().unwrap(), "left out 2 more rows that cannot be read");
    }
}
