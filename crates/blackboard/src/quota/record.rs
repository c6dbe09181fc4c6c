//! Recording usage, once per message id.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension as _, params};
use serde::Serialize;

use super::change::{Applied, Change};
use super::config::Config;
use super::fold;
use super::ledger::Ledger;
use super::reservations;
use super::usage::{Record, Usage};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::fingerprint::Fingerprint;

/// How many records one transaction has, so that other writers wait briefly.
const RECORDS_IN_TRANSACTION: usize = 1_000;

/// How many records one change of a journal has: it is one value of a board.
const RECORDS_IN_ENTRY: usize = 150;

/// How far ahead of the clock a record may be: clocks of machines differ.
const AHEAD: i64 = 5;

/// For how many minutes the numbers of a message may still grow: a platform may write a line before the message has ended.
const UNFINISHED: i64 = 60;

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
    /// Records usage. A record whose id is known changes nothing, so a call can be repeated; within an hour, the largest numbers
    /// of a message count. If one record is invalid, none is recorded.
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

/// The minute and the source of a bucket.
type Bucket = (i64, i64);

/// Counts records in one transaction, which the caller has begun.
pub(super) struct Recorder<'a> {
    connection: &'a Connection,
    config: &'a Config,
    clock: fold::ClockState,
    now: i64,
    /// What became of the records so far.
    pub(super) recorded: Recorded,
}

impl<'a> Recorder<'a> {
    pub(super) fn begin(
        connection: &'a Connection,
        config: &'a Config,
        now: Timestamp,
    ) -> rusqlite::Result<Recorder<'a>> {
        const FINISHED: &str = "DELETE FROM newest WHERE minute < ?1";
        let clock = fold::maintain(connection, config, now)?;
        let now = fold::minute_of(now);
        if clock.is_settled {
            connection.prepare_cached(FINISHED)?.execute([now - UNFINISHED])?;
        }
        Ok(Recorder { connection, config, clock, now, recorded: Recorded::default() })
    }

    /// Counts a record, unless its id is known.
    pub(super) fn insert(&mut self, record: &Record) -> rusqlite::Result<()> {
        const SEEN: &str = "INSERT OR IGNORE INTO seen (id, minute) VALUES (?1, ?2)";
        let mut minute = fold::minute_of(record.at);
        if self.clock.is_settled && minute > self.now + AHEAD {
            minute = self.now;
        }
        let number = number_of(&record.id);
        if minute < self.clock.horizon {
            self.recorded.skipped += 1;
            return Ok(());
        }
        if self.connection.prepare_cached(SEEN)?.execute((number, minute))? == 0 {
            self.recorded.duplicates += 1;
            return self.complete(number, record);
        }
        let source = source_of(self.connection, record)?;
        self.count(record, (minute, source), 1)?;
        if minute >= self.now - UNFINISHED {
            self.remember(number, (minute, source), &record.usage)?;
        }
        self.recorded.recorded += 1;
        Ok(())
    }

    /// Remembers the numbers of a message that may not have ended.
    fn remember(&self, number: i64, bucket: Bucket, usage: &Usage) -> rusqlite::Result<()> {
        const REMEMBER: &str =
            "INSERT OR REPLACE INTO newest (id, minute, source, input, cache_write, cache_read, output, reasoning)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let [input, cache_write, cache_read, output, reasoning] = columns(usage);
        let row = params![number, bucket.0, bucket.1, input, cache_write, cache_read, output, reasoning];
        self.connection.prepare_cached(REMEMBER)?.execute(row).map(drop)
    }

    /// Counts by how much the numbers of a known message have grown.
    fn complete(&self, number: i64, record: &Record) -> rusqlite::Result<()> {
        const KNOWN: &str =
            "SELECT minute, source, board, session, item, input, cache_write, cache_read, output, reasoning
            FROM newest JOIN sources ON sources.id = source WHERE newest.id = ?1";
        let known = self.connection.prepare_cached(KNOWN)?.query_row([number], |row| {
            let text = |column| -> rusqlite::Result<Option<String>> {
                Ok(Some(row.get(column)?).filter(|text: &String| !text.is_empty()))
            };
            let (board, session, item) = (text(2)?, text(3)?, text(4)?);
            Ok(((row.get(0)?, row.get(1)?), (board, session, item), Usage::of_row(row, 5)?))
        });
        let Some((bucket, (board, session, item), before)) = known.optional()? else { return Ok(()) };
        let largest = before.largest(&record.usage);
        if largest == before {
            return Ok(());
        }
        // It is still the message of the session that was the first to have it.
        let growth = Record { board, session, item, usage: largest.without(&before), ..record.clone() };
        self.count(&growth, bucket, 0)?;
        self.remember(number, bucket, &largest)
    }

    /// Adds the numbers of a record to its bucket and its work item, and takes them from what its session has reserved.
    fn count(&self, record: &Record, (minute, source): Bucket, requests: i64) -> rusqlite::Result<()> {
        const COUNT: &str = "INSERT INTO buckets (width, start, source, requests, input, cache_write, cache_read, output, reasoning)
            VALUES (1, ?1, ?2, ?8, ?3, ?4, ?5, ?6, ?7)
            ON CONFLICT (width, start, source) DO UPDATE SET requests = requests + ?8, input = input + ?3,
            cache_write = cache_write + ?4, cache_read = cache_read + ?5, output = output + ?6, reasoning = reasoning + ?7";
        const ITEM: &str = "INSERT INTO items (board, item, minute, requests, input, cache_write, cache_read, output, reasoning)
            VALUES (?1, ?2, ?3, ?9, ?4, ?5, ?6, ?7, ?8)
            ON CONFLICT (board, item) DO UPDATE SET minute = max(minute, ?3), requests = requests + ?9, input = input + ?4,
            cache_write = cache_write + ?5, cache_read = cache_read + ?6, output = output + ?7, reasoning = reasoning + ?8";
        let [input, cache_write, cache_read, output, reasoning] = columns(&record.usage);
        let counts = params![minute, source, input, cache_write, cache_read, output, reasoning, requests];
        self.connection.prepare_cached(COUNT)?.execute(counts)?;
        if let Some(item) = &record.item {
            let board = record.board.as_deref().unwrap_or_default();
            let counts =
                params![board, item, minute, input, cache_write, cache_read, output, reasoning, requests];
            self.connection.prepare_cached(ITEM)?.execute(counts)?;
        }
        reservations::use_tokens(self.connection, record, record.usage.counted(self.config))
    }
}

fn columns(usage: &Usage) -> [i64; 5] {
    usage.numbers().map(|number| i64::try_from(number).unwrap_or(i64::MAX))
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
