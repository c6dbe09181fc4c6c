//! The journal of a shared ledger: the changes of all machines, in one order.
//!
//! A board holds it, usually one on a server. In the scope [`SCOPE`], `head` is the number of the last change, and
//! `change:N` is the change with the number N. A change is added only after all changes before it were read, so what one
//! machine decides is decided about the state that every machine has at that number. Each machine applies the changes to
//! its own file, in order, and remembers the last number there in the same transaction.
//!
//! Changes are kept for [`KEPT`]. A file that is older, or new, continues with the oldest one that is left, or after the last one if
//! none is left.
//!
//! A server may lose its last changes, and other changes then get their numbers. A file that has one of the lost changes
//! is recognized by its id, and is made again.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::change::Change;
use crate::board::Board;
use crate::clock::Timestamp;
use crate::entry::{Order, Query, Value, Write};
use crate::error::Result;

/// The scope of the journal.
const SCOPE: &str = "quota";

/// The key of the number of the last change.
const HEAD: &str = "head";

/// How many changes are read together.
const BATCH: u64 = 32;

/// How long changes are kept: as long as the ids of messages in a file, and a day more.
const KEPT: Duration = Duration::from_hours(24 * 37);

/// A change, and when it was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct JournalEntry {
    /// A random number, which no other change has.
    pub(super) id: i64,
    /// The time of the board.
    pub(super) at: Timestamp,
    /// What changed.
    pub(super) change: Change,
}

/// The last change of the journal that a file has. Number zero is before the first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) number: u64,
    pub(super) id: i64,
}

/// What follows a change that a file has.
#[derive(Debug)]
pub(super) enum Following {
    /// The next changes, each with its number. Empty if there are none.
    Changes(Vec<(u64, JournalEntry)>),
    /// All changes up to this one have expired.
    Expired(Position),
    /// The journal does not have this change, but other ones with its number or before it.
    OtherChanges,
}

/// The journal of a shared ledger.
pub(super) struct Journal {
    board: Board,
}

impl Journal {
    pub(super) fn on(board: Board) -> Journal {
        Journal { board }
    }

    /// The time of its board.
    pub(super) fn now(&self) -> Timestamp {
        self.board.clock().now()
    }

    /// What follows a change that a file has.
    pub(super) fn read(&self, last: &Position) -> Result<Following> {
        let scope = self.board.scope(SCOPE);
        let numbers = last.number..=last.number.saturating_add(BATCH);
        let keys: Vec<String> = numbers.clone().map(key_of).collect();
        let mut wanted: Vec<&str> = keys.iter().map(String::as_str).collect();
        wanted.push(HEAD);
        let found = scope.read_batch(&wanted)?;
        let head = found.get(HEAD).map_or(Ok(0), Value::to::<u64>)?;
        let mut numbered = numbers.zip(&keys);
        let own = numbered.next().and_then(|(_, key)| found.get(key));
        // It may have expired, which changes nothing.
        let own = own.map(Value::to::<JournalEntry>).transpose()?;
        if head < last.number || own.is_some_and(|own| own.id != last.id) {
            return Ok(Following::OtherChanges);
        }
        let mut entries = Vec::new();
        for (number, key) in numbered {
            let Some(value) = found.get(key) else { break };
            entries.push((number, value.to()?));
        }
        if entries.is_empty() && head > last.number {
            entries = self.oldest()?;
            if entries.is_empty() {
                // No change has the id of an expired one.
                return Ok(Following::Expired(Position { number: head, id: 0 }));
            }
        }
        Ok(Following::Changes(entries))
    }

    /// The oldest change that is left, whatever came before it.
    fn oldest(&self) -> Result<Vec<(u64, JournalEntry)>> {
        let query =
            Query { prefix: Some(CHANGE.to_owned()), order: Order::Key, limit: Some(1), ..Query::default() };
        let page = self.board.scope(SCOPE).query(&query)?;
        let oldest = page.entries.into_iter().next();
        let numbered = oldest.and_then(|entry| {
            let number = entry.key.strip_prefix(CHANGE)?.parse().ok()?;
            Some(entry.value.to().map(|change| (number, change)))
        });
        numbered.transpose().map(Vec::from_iter)
    }

    /// Adds a change after the one with this number. Returns `false`, and adds nothing, if another one is there already.
    pub(super) fn append(&self, after: u64, entry: &JournalEntry) -> Result<bool> {
        let number = after.saturating_add(1);
        let (change, head) = (Value::of(entry)?, Value::of(&number)?);
        self.board.transaction(|tx| {
            let mut scope = tx.scope(SCOPE);
            let last = scope.read(HEAD)?.map_or(Ok(0), |head| head.to::<u64>())?;
            if last != after {
                return Ok(false);
            }
            scope.write(&Write { ttl: Some(KEPT), ..Write::new(&key_of(number), change.clone()) })?;
            scope.write(&Write::new(HEAD, head.clone()))?;
            Ok(true)
        })
    }
}

/// The beginning of the keys of changes.
const CHANGE: &str = "change:";

/// The key of a change. Keys of changes have the order of their numbers.
fn key_of(number: u64) -> String {
    format!("{CHANGE}{number:016}")
}
