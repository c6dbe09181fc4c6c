//! [`Timeline`]: the buckets of a provider, what of them is in a window, and when it leaves.

use std::collections::HashMap;
use std::time::Duration;

use rusqlite::Connection;

use super::config::Config;
use super::fold::{SETTLED, minute_of};
use super::usage::Usage;
use crate::clock::Timestamp;

/// The widths of buckets in minutes.
pub(super) const WIDTHS: [i64; 3] = [1, 60, 24 * 60];

/// A bucket of all models and sessions of a provider.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    /// Its first minute.
    pub(super) start: i64,
    /// The minute after its last one.
    pub(super) end: i64,
    pub(super) requests: u64,
    pub(super) usage: Usage,
}

/// The buckets of a provider, in the order of their ends.
#[derive(Default)]
pub(super) struct Timeline {
    slices: Vec<Slice>,
    /// The sum of each bucket and all that end later; one more than there are buckets.
    sums: Vec<Usage>,
    /// The sum of the minutes and hours of each source of the provider. Days do not know sessions.
    by_source: HashMap<i64, Usage>,
}

impl Timeline {
    fn new(mut slices: Vec<Slice>, by_source: HashMap<i64, Usage>) -> Timeline {
        slices.sort_by_key(|slice| slice.end);
        let mut sums = vec![Usage::default()];
        for slice in slices.iter().rev() {
            let mut sum = slice.usage;
            sum.add(sums.last().unwrap_or(&Usage::default()));
            sums.push(sum);
        }
        sums.reverse();
        Timeline { slices, sums, by_source }
    }

    /// The buckets that are in a window of this length. Usage in the future is moved to the present once the clock is settled.
    pub(super) fn load(
        connection: &Connection,
        provider: &str,
        now: Timestamp,
        length: Duration,
    ) -> rusqlite::Result<Timeline> {
        const SOURCES: &str = "SELECT id FROM sources WHERE provider = ?1";
        // Rows are summed here, once for times and sources: SQLite would sort them for each sum.
        const LOAD: &str = "SELECT start, source, requests, input, cache_write, cache_read, output, reasoning
            FROM buckets WHERE width = ?1 AND start > ?2 ORDER BY start";
        let mut sources = connection.prepare_cached(SOURCES)?;
        let sources = sources.query_map([provider], |row| Ok((row.get(0)?, Usage::default())))?;
        let mut by_source = sources.collect::<rusqlite::Result<HashMap<i64, Usage>>>()?;
        let from = window_start(now, length).div_euclid(60_000);
        let latest = minute_of(now) + SETTLED;
        let mut statement = connection.prepare_cached(LOAD)?;
        let mut slices: Vec<Slice> = Vec::new();
        for width in WIDTHS {
            let mut rows = statement.query((width, from - width))?;
            while let Some(row) = rows.next()? {
                let (start, source, requests): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
                let Some(sum) = by_source.get_mut(&source) else { continue };
                let start = start.min(latest);
                let (end, usage) = (start.saturating_add(width), Usage::of_row(row, 3)?);
                if width < WIDTHS[2] {
                    sum.add(&usage);
                }
                match slices.last_mut() {
                    Some(last) if (last.start, last.end) == (start, end) => {
                        last.requests = last.requests.saturating_add(requests.unsigned_abs());
                        last.usage.add(&usage);
                    }
                    _ => slices.push(Slice { start, end, requests: requests.unsigned_abs(), usage }),
                }
            }
        }
        Ok(Timeline::new(slices, by_source))
    }

    /// What each source has used, as far as sessions are known.
    pub(super) fn by_source(&self) -> &HashMap<i64, Usage> {
        &self.by_source
    }

    /// The buckets.
    pub(super) fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// What is in the window at this time.
    pub(super) fn usage(&self, at: Timestamp, length: Duration) -> Usage {
        let start = window_start(at, length);
        let first = self.slices.partition_point(|slice| slice.end.saturating_mul(60_000) <= start);
        self.sums[first]
    }

    /// The same as tokens that count against a budget.
    pub(super) fn used(&self, config: &Config, at: Timestamp, length: Duration) -> u64 {
        self.usage(at, length).counted(config)
    }

    /// What was used since this time. The bucket that contains it counts: what was used after this time may be in it.
    pub(super) fn usage_since(&self, at: Timestamp) -> Usage {
        let mut sum = Usage::default();
        let later = |slice: &&Slice| slice.end.saturating_mul(60_000) > at.millis();
        self.slices.iter().filter(later).for_each(|slice| sum.add(&slice.usage));
        sum
    }

    /// Requests and usage of the last minutes. Buckets of hours and days do not count.
    pub(super) fn recent(&self, now: Timestamp, minutes: i64) -> (u64, Usage) {
        let start = now.millis().saturating_sub(minutes * 60_000);
        let recent = |slice: &&Slice| slice.end - slice.start == 1 && slice.end * 60_000 > start;
        let mut sum = (0, Usage::default());
        for slice in self.slices.iter().filter(recent) {
            sum.0 += slice.requests;
            sum.1.add(&slice.usage);
        }
        sum
    }

    /// When each bucket leaves a window of this length, in order.
    pub(super) fn leaving(&self, now: Timestamp, length: Duration) -> impl Iterator<Item = Timestamp> {
        let times = self.slices.iter().map(move |slice| leaves_at(slice, length));
        times.filter(move |moment| *moment > now)
    }
}

fn leaves_at(slice: &Slice, length: Duration) -> Timestamp {
    Timestamp::from_millis(slice.end.saturating_mul(60_000)).plus(length)
}

/// The start of a window that ends at a time, in milliseconds. It may be before the first timestamp.
fn window_start(at: Timestamp, length: Duration) -> i64 {
    at.millis().saturating_sub(i64::try_from(length.as_millis()).unwrap_or(i64::MAX))
}
