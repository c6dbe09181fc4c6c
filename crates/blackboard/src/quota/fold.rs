//! Folding into coarser buckets, retention, and clocks that jump.
//!
//! | Buckets | Kept for | Know |
//! |---|---|---|
//! | minutes | the longest window of up to a day, and an hour more | session, agent, work item |
//! | hours | the longest window of up to 35 days, and a day more | session, agent, work item |
//! | days | 400 days, or the longest window and a day more | provider and model |
//!
//! Ids of messages are kept as long as hours. Older records are skipped: their ids may have been removed.
//!
//! A clock may be wrong for a while. Everything that cannot be undone waits until the clock has not jumped for
//! [`SETTLED`]: folding, removing ids, and moving usage from the future to now.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};

use super::config::Config;
use crate::clock::Timestamp;

const HOUR: i64 = 60;
const DAY: i64 = 24 * HOUR;

/// How many days of the coarsest buckets are kept.
const DAYS_KEPT: i64 = 400 * DAY;

/// The longest window that is counted in hours.
const LONGEST_IN_HOURS: i64 = 35 * DAY;

/// How often the ledger folds, in minutes.
const FOLD_EVERY: i64 = 10;

/// For how long a clock has to go on without a jump, in minutes.
pub(super) const SETTLED: i64 = 6 * HOUR;

/// A longer time without a record may be a jump of the clock.
const LONGEST_PAUSE: i64 = 2 * DAY;

/// How far a clock may go back, in minutes: processes read it at slightly different times.
const STEP_BACK: i64 = 2;

/// The minute of a moment.
pub(super) fn minute_of(moment: Timestamp) -> i64 {
    moment.millis().div_euclid(60_000)
}

/// What a ledger knows about its clock.
pub(super) struct ClockState {
    /// Records before this minute are not counted.
    pub(super) horizon: i64,
    /// Whether the clock has not jumped for a while.
    pub(super) is_settled: bool,
}

/// How long buckets are kept, in minutes.
pub(super) struct Retention {
    minutes: i64,
    hours: i64,
    days: i64,
}

impl Retention {
    pub(super) fn of(config: &Config) -> Retention {
        let up_to = |most: i64| {
            let lengths = config.windows().map(|window| window.length.as_secs().div_ceil(60).cast_signed());
            lengths.filter(|length| *length <= most).max().unwrap_or(0)
        };
        Retention {
            minutes: up_to(DAY).max(HOUR) + HOUR,
            hours: up_to(i64::MAX).clamp(DAY, LONGEST_IN_HOURS) + DAY,
            days: DAYS_KEPT.max(up_to(i64::MAX) + DAY),
        }
    }

    /// How long minutes are kept.
    pub(super) fn minutes(&self) -> Duration {
        Duration::from_mins(self.minutes.unsigned_abs())
    }

    /// How long hours are kept.
    pub(super) fn hours(&self) -> Duration {
        Duration::from_mins(self.hours.unsigned_abs())
    }
}

/// Folds and removes what is due. The caller has begun a write transaction.
pub(super) fn maintain(
    connection: &Connection,
    config: &Config,
    now: Timestamp,
) -> rusqlite::Result<ClockState> {
    let (now, retention) = (minute_of(now), Retention::of(config));
    let last = mark(connection, "last")?;
    let has_jumped = last.is_some_and(|last| now < last - STEP_BACK || now > last + LONGEST_PAUSE);
    let since = match mark(connection, "since")? {
        Some(since) if !has_jumped => since,
        None if !has_jumped => i64::MIN,
        _ => {
            set_mark(connection, "since", now)?;
            now
        }
    };
    if last != Some(now) {
        set_mark(connection, "last", now)?;
    }
    let is_settled = since == i64::MIN || now - since >= SETTLED;
    let known = mark(connection, "horizon")?;
    let mut horizon = known.unwrap_or(now - retention.hours);
    if known.is_none() {
        set_mark(connection, "horizon", horizon)?;
    }
    if horizon > now {
        // The clock was ahead for long. What was recorded before it was corrected may be known under ids that are gone. No id of a
        // later message was removed.
        horizon = since.min(now);
        if is_settled {
            set_mark(connection, "horizon", horizon)?;
        }
    }
    if !is_settled {
        return Ok(ClockState { horizon, is_settled });
    }
    let folded = mark(connection, "folded")?.unwrap_or(i64::MIN);
    if now >= folded.saturating_add(FOLD_EVERY) || now < folded {
        let due = now - retention.hours;
        if due > horizon {
            horizon = due;
            set_mark(connection, "horizon", horizon)?;
        }
        fold(connection, &retention, now, horizon)?;
        set_mark(connection, "folded", now)?;
    }
    Ok(ClockState { horizon, is_settled })
}

fn fold(connection: &Connection, retention: &Retention, now: i64, horizon: i64) -> rusqlite::Result<()> {
    /// Adds the buckets of one width before a minute to those of another width.
    const FOLD: &str = "INSERT INTO buckets
        SELECT ?1, start / ?1 * ?1, source, sum(requests), sum(input), sum(cache_write), sum(cache_read), sum(output),
        sum(reasoning) FROM buckets WHERE width = ?2 AND start < ?3 GROUP BY start / ?1, source
        ON CONFLICT (width, start, source) DO UPDATE SET requests = requests + excluded.requests,
        input = input + excluded.input, cache_write = cache_write + excluded.cache_write,
        cache_read = cache_read + excluded.cache_read, output = output + excluded.output,
        reasoning = reasoning + excluded.reasoning";
    /// The same, without session, agent and work item.
    const FOLD_SOURCES: &str = "INSERT INTO buckets
        SELECT ?1, start / ?1 * ?1, plain.id, sum(requests), sum(input), sum(cache_write), sum(cache_read), sum(output),
        sum(reasoning) FROM buckets JOIN sources own ON own.id = source
        JOIN sources plain ON plain.provider = own.provider AND plain.model = own.model AND plain.board = ''
        AND plain.session = '' AND plain.agent = '' AND plain.item = ''
        WHERE width = ?2 AND start < ?3 GROUP BY start / ?1, plain.id
        ON CONFLICT (width, start, source) DO UPDATE SET requests = requests + excluded.requests,
        input = input + excluded.input, cache_write = cache_write + excluded.cache_write,
        cache_read = cache_read + excluded.cache_read, output = output + excluded.output,
        reasoning = reasoning + excluded.reasoning";
    const PLAIN_SOURCES: &str = "INSERT OR IGNORE INTO sources (provider, model, board, session, agent, item)
        SELECT DISTINCT provider, model, '', '', '', '' FROM buckets JOIN sources ON id = source
        WHERE width = ?1 AND start < ?2";
    const REMOVE: &str = "DELETE FROM buckets WHERE width = ?1 AND start < ?2";
    const MOVE: &str = "INSERT INTO buckets
        SELECT 1, ?1, source, sum(requests), sum(input), sum(cache_write), sum(cache_read), sum(output), sum(reasoning)
        FROM buckets WHERE width IN (1, 60, 1440) AND start > ?2 GROUP BY source
        ON CONFLICT (width, start, source) DO UPDATE SET requests = requests + excluded.requests,
        input = input + excluded.input, cache_write = cache_write + excluded.cache_write,
        cache_read = cache_read + excluded.cache_read, output = output + excluded.output,
        reasoning = reasoning + excluded.reasoning";
    // A clock that was ahead has left usage in the future, which would stay in every window until then.
    let ahead = now + HOUR;
    if connection.prepare_cached(MOVE)?.execute((now, ahead))? > 0 {
        connection
            .prepare_cached("DELETE FROM buckets WHERE width IN (1, 60, 1440) AND start > ?1")?
            .execute([ahead])?;
        connection.prepare_cached("UPDATE seen SET minute = ?1 WHERE minute > ?2")?.execute((now, ahead))?;
    }
    let minutes = (now - retention.minutes).div_euclid(HOUR) * HOUR;
    if connection.prepare_cached(FOLD)?.execute((HOUR, 1, minutes))? > 0 {
        connection.prepare_cached(REMOVE)?.execute((1, minutes))?;
    }
    let hours = (now - retention.hours).div_euclid(DAY) * DAY;
    connection.prepare_cached(PLAIN_SOURCES)?.execute((HOUR, hours))?;
    if connection.prepare_cached(FOLD_SOURCES)?.execute((DAY, HOUR, hours))? > 0 {
        connection.prepare_cached(REMOVE)?.execute((HOUR, hours))?;
        connection.execute("DELETE FROM sources WHERE id NOT IN (SELECT source FROM buckets)", [])?;
    }
    let days = now - retention.days;
    connection.prepare_cached(REMOVE)?.execute((DAY, days))?;
    // Once a day: no index helps here, and an index would double the space of ids.
    if mark(connection, "removed")?.is_none_or(|removed| now - removed >= DAY || now < removed) {
        connection.execute("DELETE FROM seen WHERE minute < ?1", [horizon])?;
        connection.execute("DELETE FROM items WHERE minute < ?1", [days])?;
        connection.execute("DELETE FROM uncounted WHERE minute < ?1", [horizon])?;
        set_mark(connection, "removed", now)?;
    }
    Ok(())
}

/// The minute before which records are not counted, if nothing changes until then.
pub(super) fn horizon(connection: &Connection, now: Timestamp) -> rusqlite::Result<i64> {
    let (now, horizon) = (minute_of(now), mark(connection, "horizon")?.unwrap_or(i64::MIN));
    Ok(if horizon > now { mark(connection, "since")?.unwrap_or(now).min(now) } else { horizon })
}

pub(super) fn mark(connection: &Connection, name: &str) -> rusqlite::Result<Option<i64>> {
    let mut statement = connection.prepare_cached("SELECT value FROM marks WHERE name = ?1")?;
    statement.query_row([name], |row| row.get(0)).optional()
}

pub(super) fn set_mark(connection: &Connection, name: &str, value: i64) -> rusqlite::Result<()> {
    const SET: &str = "INSERT OR REPLACE INTO marks (name, value) VALUES (?1, ?2)";
    connection.prepare_cached(SET)?.execute((name, value)).map(drop)
}
