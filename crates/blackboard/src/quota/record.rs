//! Recording usage, once per message id.

use std::collections::HashSet;

use rusqlite::{Connection, params};
use serde::Serialize;

use super::change::{Applied, Change};
use super::fold;
use super::ledger::Ledger;
use super::usage::Record;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::fingerprint::Fingerprint;

/// How many records one transaction has, so that other writers wait briefly.
const RECORDS_IN_TRANSACTION: usize = 1_000;

/// How many records one change of a journal has: it is one value of a board.
const RECORDS_IN_ENTRY: usize = 150;

/// How far ahead of the clock a record may be: clocks of machines differ.
const AHEAD: i64 = 5;

/// What became of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Recorded {
    /// Counted now.
    pub recorded: u64,
    /// Counted before, under the same id.
    pub duplicates: u64,
    /// Older than the ids that the ledger keeps. They are not counted, because they may have been before.
    pub skipped: u64,
}

impl Ledger {
    /// Records usage. A record whose id is known changes nothing, so a call can be repeated. If one record is invalid,
    /// none is recorded.
    pub fn record(&self, records: &[Record]) -> Result<Recorded> {
        records.iter().try_for_each(Record::check)?;
        let mut total = Recorded::default();
        let most = if self.journal.is_some() { RECORDS_IN_ENTRY } else { RECORDS_IN_TRANSACTION };
        for part in records.chunks(most) {
            let usage = || Change::Usage { records: part.to_vec() };
            let ((), Applied { recorded, .. }) = self.change(|_, _| Ok((Some(usage()), ())))?;
            total.recorded += recorded.recorded;
            total.duplicates += recorded.duplicates;
            total.skipped += recorded.skipped;
        }
        Ok(total)
    }
}

/// The number that stands for a message id. Two ids of a window have the same one about once in 10^9 ledgers.
#[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
pub(super) fn number_of(id: &str) -> i64 {
    let number = Fingerprint::new().text("quota").text(id).number();
    ((number >> 64) as u64 ^ number as u64).cast_signed()
}

/// Counts a record, unless its id is known.
pub(super) fn insert(
    connection: &Connection,
    record: &Record,
    clock: &fold::ClockState,
    now: Timestamp,
    recorded: &mut Recorded,
) -> rusqlite::Result<()> {
    const SEEN: &str = "INSERT OR IGNORE INTO seen (id, minute) VALUES (?1, ?2)";
    const COUNT: &str = "INSERT INTO buckets (width, start, source, requests, input, cache_write, cache_read, output, reasoning)
        VALUES (1, ?1, ?2, 1, ?3, ?4, ?5, ?6, ?7)
        ON CONFLICT (width, start, source) DO UPDATE SET requests = requests + 1, input = input + ?3,
        cache_write = cache_write + ?4, cache_read = cache_read + ?5, output = output + ?6, reasoning = reasoning + ?7";
    const ITEM: &str = "INSERT INTO items (board, item, minute, requests, input, cache_write, cache_read, output, reasoning)
        VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, ?8)
        ON CONFLICT (board, item) DO UPDATE SET minute = max(minute, ?3), requests = requests + 1, input = input + ?4,
        cache_write = cache_write + ?5, cache_read = cache_read + ?6, output = output + ?7, reasoning = reasoning + ?8";
    let now = fold::minute_of(now);
    let mut minute = fold::minute_of(record.at);
    if clock.is_settled && minute > now + AHEAD {
        minute = now;
    }
    let number = number_of(&record.id);
    if minute < clock.horizon {
        recorded.skipped += 1;
        return Ok(());
    }
    if connection.prepare_cached(SEEN)?.execute((number, minute))? == 0 {
        recorded.duplicates += 1;
        return Ok(());
    }
    let source = source_of(connection, record)?;
    let [input, cache_write, cache_read, output, reasoning] =
        record.usage.numbers().map(|number| i64::try_from(number).unwrap_or(i64::MAX));
    let counts = params![minute, source, input, cache_write, cache_read, output, reasoning];
    connection.prepare_cached(COUNT)?.execute(counts)?;
    if let Some(item) = &record.item {
        let board = record.board.as_deref().unwrap_or_default();
        let counts = params![board, item, minute, input, cache_write, cache_read, output, reasoning];
        connection.prepare_cached(ITEM)?.execute(counts)?;
    }
    recorded.recorded += 1;
    Ok(())
}

/// What would become of records, if they were counted now.
pub(super) fn expect(
    connection: &Connection,
    records: &[Record],
    now: Timestamp,
) -> rusqlite::Result<Recorded> {
    const KNOWN: &str = "SELECT EXISTS (SELECT 1 FROM seen WHERE id = ?1)";
    let horizon = fold::horizon(connection, now)?;
    let (mut expected, mut ids) = (Recorded::default(), HashSet::new());
    for record in records {
        let number = number_of(&record.id);
        if fold::minute_of(record.at) < horizon {
            expected.skipped += 1;
        } else if !ids.insert(number)
            || connection.prepare_cached(KNOWN)?.query_row([number], |row| row.get(0))?
        {
            expected.duplicates += 1;
        } else {
            expected.recorded += 1;
        }
    }
    Ok(expected)
}

/// The row that buckets refer to.
fn source_of(connection: &Connection, record: &Record) -> rusqlite::Result<i64> {
    const FIND: &str =
        "SELECT id FROM sources WHERE provider = ?1 AND model = ?2 AND board = ?3 AND session = ?4
        AND agent = ?5 AND item = ?6";
    const ADD: &str =
        "INSERT INTO sources (provider, model, board, session, agent, item) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let parts = [
        record.provider.as_str(),
        record.model.as_str(),
        record.board.as_deref().unwrap_or_default(),
        record.session.as_deref().unwrap_or_default(),
        record.agent.as_deref().unwrap_or_default(),
        record.item.as_deref().unwrap_or_default(),
    ];
    match connection.prepare_cached(FIND)?.query_row(parts, |row| row.get(0)) {
        Err(rusqlite::Error::QueryReturnedNoRows) => {
            connection.prepare_cached(ADD)?.execute(parts)?;
            Ok(connection.last_insert_rowid())
        }
        found => found,
    }
}
