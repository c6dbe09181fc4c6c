//! [`Change`]: what changes a ledger, and applying it.
//!
//! A rule decides about a change from what it reads, and a file applies it. A ledger of one machine does both in one
//! transaction. A shared ledger has a journal between the two (`journal.rs`): every machine applies the same changes in
//! the same order, at the times that the journal has for them.

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::config::Config;
use super::fold;
use super::journal::{Following, JournalEntry, Position};
use super::ledger::Ledger;
use super::limits::{self, ReportedLimit};
use super::record::{self, Recorded, Recorder};
use super::reservations::{self, Reservation};
use super::usage::Record;
use crate::clock::Timestamp;
use crate::error::{Code, Refusal, Result};

/// How often a change is decided again because other machines were faster.
const MOST_TRIES: usize = 200;

/// The number and the id of the last change of the journal that a file has.
const NUMBER_MARK: &str = "journal";
const ID_MARK: &str = "journal id";

/// Removes everything from a file, except for what was announced: the thresholds are still passed.
const CLEAR: &str =
    "DELETE FROM seen; DELETE FROM sources; DELETE FROM buckets; DELETE FROM items; DELETE FROM limits;
    DELETE FROM reservations; DELETE FROM reservation_usage; DELETE FROM marks; DELETE FROM uncounted;
    DELETE FROM newest";

/// What changes a ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Change {
    /// Messages.
    Usage { records: Vec<Record> },
    /// Limits that a platform has reported.
    Limits { limits: Vec<ReportedLimit> },
    /// A reservation, and those that it replaces.
    Reserve { reservation: Reservation, replaces: Option<Release> },
    /// The end of reservations.
    Release { which: Release },
}

/// Which reservations end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Release {
    /// The one with this id.
    Id(String),
    /// Those of a session.
    Session { board: String, session: String },
    /// Those for a work item.
    Item { board: String, item: String },
    /// Those of a session for a work item.
    Claim { board: String, session: String, item: String },
    /// The same with one provider.
    ClaimOf { provider: String, board: String, session: String, item: String },
}

/// What a change did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Applied {
    /// What became of records.
    pub(super) recorded: Recorded,
    /// How many rows of other kinds were stored or removed.
    pub(super) rows: u64,
}

impl Ledger {
    /// Makes the change that `decide` returns, if any. `decide` runs again if another machine has changed the ledger
    /// meanwhile. It gets the time, which is that of the change.
    pub(super) fn change<T>(
        &self,
        decide: impl Fn(&Connection, Timestamp) -> rusqlite::Result<(Option<Change>, T)>,
    ) -> Result<(T, Applied)> {
        let Some(journal) = &self.journal else {
            return self.write(|connection| {
                // Inside of the transaction: the clock goes on while this process waits for others.
                let now = self.now();
                let (change, answer) = decide(connection, now)?;
                let applied =
                    change.map(|change| apply(connection, &self.config, change, now)).transpose()?;
                Ok((answer, applied.unwrap_or_default()))
            });
        };
        for _ in 0..MOST_TRIES {
            let last = self.catch_up()?;
            let at = self.now();
            let (change, answer) = self.read(|connection| decide(connection, at))?;
            let Some(change) = change else { return Ok((answer, Applied::default())) };
            let expected = self.read(|connection| expect(connection, &change, at))?;
            let entry = JournalEntry { id: random_id(), at, change };
            if journal.append(last.number, &entry)? {
                self.catch_up()?;
                return Ok((answer, expected));
            }
        }
        Err(Refusal::new(Code::Conflict, "other machines change the ledger all the time").into())
    }

    /// Applies what other machines have changed. Does nothing for a ledger of one machine.
    pub fn refresh(&self) -> Result<()> {
        self.catch_up().map(drop)
    }

    /// Applies the changes of the journal. Returns the last one.
    fn catch_up(&self) -> Result<Position> {
        let Some(journal) = &self.journal else { return Ok(Position::default()) };
        loop {
            let last = self.read(position)?;
            match journal.read(&last)? {
                Following::Changes(entries) if entries.is_empty() => return Ok(last),
                following => self.write(|connection| follow(connection, &self.config, &last, following))?,
            }
        }
    }
}

/// The last change of the journal that a file has.
fn position(connection: &Connection) -> rusqlite::Result<Position> {
    let number = fold::mark(connection, NUMBER_MARK)?.map_or(0, i64::cast_unsigned);
    Ok(Position { number, id: fold::mark(connection, ID_MARK)?.unwrap_or(0) })
}

fn set_position(connection: &Connection, last: Position) -> rusqlite::Result<()> {
    fold::set_mark(connection, NUMBER_MARK, last.number.cast_signed())?;
    fold::set_mark(connection, ID_MARK, last.id)
}

/// Applies what follows the change `last`, unless another process of this machine has done so meanwhile.
fn follow(
    connection: &Connection,
    config: &Config,
    last: &Position,
    following: Following,
) -> rusqlite::Result<()> {
    if position(connection)? != *last {
        return Ok(());
    }
    match following {
        Following::Changes(entries) => {
            for (number, JournalEntry { id, at, change }) in entries {
                apply(connection, config, change, at)?;
                set_position(connection, Position { number, id })?;
            }
            Ok(())
        }
        Following::Expired(last) => set_position(connection, last),
        Following::OtherChanges => connection.execute_batch(CLEAR),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "any 64 bits of it are random enough")]
fn random_id() -> i64 {
    (uuid::Uuid::new_v4().as_u128() as u64).cast_signed()
}

/// Applies a change. The caller has begun a write transaction.
fn apply(
    connection: &Connection,
    config: &Config,
    change: Change,
    at: Timestamp,
) -> rusqlite::Result<Applied> {
    let mut applied = Applied::default();
    match change {
        Change::Usage { records } => {
            let mut recorder = Recorder::begin(connection, config, at)?;
            records.iter().try_for_each(|record| recorder.insert(record))?;
            applied.recorded = recorder.recorded;
        }
        Change::Limits { limits } => applied.rows = limits::store(connection, &limits, at)?,
        Change::Reserve { reservation, replaces } => {
            reservations::remove_expired(connection, at)?;
            replaces.iter().try_for_each(|which| reservations::remove(connection, which).map(drop))?;
            applied.rows = reservations::store(connection, &reservation)?;
        }
        Change::Release { which } => applied.rows = reservations::remove(connection, &which)?,
    }
    Ok(applied)
}

/// What a change will do, if nothing else changes before it.
fn expect(connection: &Connection, change: &Change, at: Timestamp) -> rusqlite::Result<Applied> {
    let mut applied = Applied::default();
    match change {
        Change::Usage { records } => applied.recorded = record::expect(connection, records, at)?,
        Change::Limits { limits } => applied.rows = limits.len() as u64,
        Change::Reserve { .. } => applied.rows = 1,
        Change::Release { which } => applied.rows = reservations::count(connection, which)?,
    }
    Ok(applied)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::SystemClock;

    /// Tables with what was announced, which stays.
    const KEPT: [&str; 1] = ["notices"];

    #[test]
    fn clearing_a_file_leaves_no_table_out() {
        const TABLES: &str = "SELECT name FROM sqlite_schema WHERE type = 'table'";
        let config = Config::parse(r#"{"providers": {"a": {}}}"#).unwrap();
        let ledger = Ledger::empty(&config, Arc::new(SystemClock)).unwrap();
        let tables: Vec<String> = ledger
            .read(|connection| connection.prepare(TABLES)?.query_map([], |row| row.get(0))?.collect())
            .unwrap();
        for table in &tables {
            let is_cleared = CLEAR.split(';').any(|one| one.trim() == format!("DELETE FROM {table}"));
            assert_eq!(is_cleared, !KEPT.contains(&table.as_str()), "{table}");
        }
        assert!(tables.len() > KEPT.len());
        ledger.write(|connection| connection.execute_batch(CLEAR)).unwrap();
    }
}
