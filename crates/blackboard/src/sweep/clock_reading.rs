//! The stored difference between the board's clock and the monotonic clock of a machine, against which missing heartbeats
//! are judged. Each machine has its own, because monotonic clocks of two machines have nothing in common.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::board::Board;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::store::{BookkeepingRow, Changes, Key, Prefetch, Range, Tx};

/// How far the clocks may drift apart before the clock must have been set, or the machine slept.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(30);

/// How often a machine records that it still uses the board.
const SEEN_INTERVAL: Duration = Duration::from_hours(24);

/// How long the reading of a machine is kept that does not use the board.
const KEPT: Duration = Duration::from_hours(30 * 24);

/// The start of the names of all readings. The rest is the id of the machine.
const PREFIX: &str = "clock:";

/// Whether a bookkeeping row of this name is the clock reading of a machine. Older boards have one for all machines.
pub(crate) fn is_clock_reading(name: &str) -> bool {
    name.starts_with(PREFIX) || name == "clock"
}

/// The wall clock and the monotonic clock at the last reading.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClockReading {
    pub(super) boot: String,
    offset_millis: i64,
    pub(super) grace_until: Option<Timestamp>,
    /// When the machine recorded it, at least once a day if it starts sessions.
    #[serde(default)]
    seen_at: Option<Timestamp>,
}

impl ClockReading {
    /// The key of the row of this machine.
    fn key(board: &Board) -> Key {
        Key::BookkeepingRow(ClockReading::name(board))
    }

    /// What [`ClockReading::note`] reads.
    pub(crate) fn prefetch(board: &Board) -> [Prefetch<'static>; 2] {
        [Prefetch::Row(ClockReading::key(board)), Prefetch::Any(Range::live_agents())]
    }

    /// Whether a key is that of this machine.
    pub(crate) fn is_own(board: &Board, key: &Key) -> bool {
        *key == ClockReading::key(board)
    }

    fn name(board: &Board) -> Cow<'static, str> {
        format!("{PREFIX}{}", board.processes().host()).into()
    }

    /// The readings of all machines.
    pub(crate) fn all() -> Range {
        Range::bookkeeping_rows(PREFIX)
    }

    /// Whether a row is the reading of another machine that has not used the board for long. Without it, that machine
    /// waits for one threshold before it marks agents by time.
    pub(crate) fn is_abandoned(board: &Board, row: &BookkeepingRow, now: Timestamp) -> bool {
        let reading = serde_json::from_str::<ClockReading>(&row.value);
        row.name != ClockReading::name(board)
            && reading.is_ok_and(|known| known.seen_at.is_none_or(|seen| now.since(seen) >= KEPT))
    }

    /// Records the clocks, if no call has done so in this boot, or if they have moved against each other. Then every
    /// session gets one threshold of grace. So it does if this machine has no reading: the board's clock may just have
    /// been set. A board without a live session has none that needs it. A reading that did not change is recorded again
    /// after a day.
    pub(crate) fn note(board: &Board, tx: &dyn Tx, changes: &mut Changes) -> Result<()> {
        let mut seen = ClockReading { seen_at: Some(tx.now()), ..ClockReading::reading(board) };
        let needs_grace = match ClockReading::stored(board, tx)? {
            StoredReading::Readable(known) if known.agrees_with(&seen) => {
                let is_recent = |seen: Timestamp| tx.now().since(seen) < SEEN_INTERVAL;
                if known.seen_at.is_some_and(is_recent) {
                    return Ok(());
                }
                seen = ClockReading { seen_at: seen.seen_at, ..known };
                false
            }
            StoredReading::Readable(known) => known.boot == seen.boot,
            StoredReading::Unreadable => false,
            StoredReading::Missing => tx.any(&Range::live_agents())?,
        };
        if needs_grace {
            seen.grace_until = Some(tx.now().plus(board.settings().stale_threshold));
        }
        let value = serde_json::to_string(&seen).unwrap_or_default();
        changes.put(BookkeepingRow { name: ClockReading::name(board), value });
        Ok(())
    }

    pub(super) fn stored(board: &Board, tx: &dyn Tx) -> Result<StoredReading> {
        Ok(match tx.row::<BookkeepingRow>(&ClockReading::key(board)) {
            Ok(Some(row)) => {
                serde_json::from_str(&row.value).map_or(StoredReading::Unreadable, StoredReading::Readable)
            }
            Ok(None) => StoredReading::Missing,
            Err(error) if error.is_unreadable_row() => StoredReading::Unreadable,
            Err(error) => return Err(error),
        })
    }

    pub(super) fn reading(board: &Board) -> ClockReading {
        ClockReading {
            boot: board.processes().boot(),
            offset_millis: board.clock().now().millis() - board.clock().monotonic_millis(),
            grace_until: None,
            seen_at: None,
        }
    }

    pub(super) fn agrees_with(&self, other: &ClockReading) -> bool {
        let apart = Duration::from_millis(self.offset_millis.abs_diff(other.offset_millis));
        self.boot == other.boot && apart <= CLOCK_TOLERANCE
    }
}

/// The stored reading of this machine.
#[derive(Debug)]
pub(super) enum StoredReading {
    Readable(ClockReading),
    /// The next reading replaces it.
    Unreadable,
    /// The machine has not used the board yet.
    Missing,
}

/// The latest moment that a heartbeat may have. One after that was recorded before the clock was set back, and proves
/// nothing: a session that is alive has replaced it, or does so with its next call.
pub(super) fn latest_heartbeat(now: Timestamp) -> Timestamp {
    now.plus(CLOCK_TOLERANCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_agree_within_half_a_minute_of_one_boot() {
        let mark = |boot: &str, offset_millis| ClockReading {
            boot: boot.to_owned(),
            offset_millis,
            grace_until: None,
            seen_at: None,
        };
        for (boot, offset, expected) in
            [("a", 0, true), ("a", 30_000, true), ("a", -30_000, true), ("a", 30_001, false), ("b", 0, false)]
        {
            assert_eq!(mark("a", 0).agrees_with(&mark(boot, offset)), expected, "boot {boot}, {offset} ms");
        }
    }
}
