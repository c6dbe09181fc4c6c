//! The stored difference between the wall clock and the monotonic clock, against which missing heartbeats are judged.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::board::Board;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::store::{BookkeepingRow, Changes, Key, Tx};
use crate::unreadable::if_readable;

/// How far the clocks may drift apart before the clock must have been set, or the machine slept.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(30);

/// The wall clock and the monotonic clock at the last reading.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClockReading {
    pub(super) boot: String,
    offset_millis: i64,
    pub(super) grace_until: Option<Timestamp>,
}

impl ClockReading {
    /// The key of its row.
    pub(crate) const KEY: Key = Key::BookkeepingRow(Cow::Borrowed("clock"));

    /// Records the clocks, if no call has done so in this boot, or if they have moved against each other. Then every
    /// session gets one threshold of grace.
    pub(crate) fn note(board: &Board, tx: &dyn Tx, changes: &mut Changes) -> Result<()> {
        let mut seen = ClockReading::reading(board);
        match ClockReading::stored(tx)? {
            Some(known) if known.agrees_with(&seen) => return Ok(()),
            Some(known) if known.boot == seen.boot => {
                seen.grace_until = Some(tx.now().plus(board.settings().stale_threshold));
            }
            _ => {}
        }
        let value = serde_json::to_string(&seen).unwrap_or_default();
        changes.put(BookkeepingRow { name: Cow::Borrowed("clock"), value });
        Ok(())
    }

    pub(super) fn stored(tx: &dyn Tx) -> Result<Option<ClockReading>> {
        // If it cannot be read, the next reading replaces it.
        let mark = if_readable(tx.row::<BookkeepingRow>(&ClockReading::KEY))?;
        Ok(mark.and_then(|mark| serde_json::from_str(&mark.value).ok()))
    }

    pub(super) fn reading(board: &Board) -> ClockReading {
        ClockReading {
            boot: board.processes().boot(),
            offset_millis: board.clock().now().millis() - board.clock().monotonic_millis(),
            grace_until: None,
        }
    }

    pub(super) fn agrees_with(&self, other: &ClockReading) -> bool {
        let apart = Duration::from_millis(self.offset_millis.abs_diff(other.offset_millis));
        self.boot == other.boot && apart <= CLOCK_TOLERANCE
    }
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
        };
        for (boot, offset, expected) in
            [("a", 0, true), ("a", 30_000, true), ("a", -30_000, true), ("a", 30_001, false), ("b", 0, false)]
        {
            assert_eq!(mark("a", 0).agrees_with(&mark(boot, offset)), expected, "boot {boot}, {offset} ms");
        }
    }
}
