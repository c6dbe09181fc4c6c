//! Usage over time.

use std::time::Duration;

use serde::Serialize;

use super::fold::Retention;
use super::ledger::Ledger;
use super::timeline::Timeline;
use super::usage::Usage;
use crate::clock::Timestamp;
use crate::error::Result;

/// How many points a history has at most.
const MOST_POINTS: i64 = 400;

/// The time between two points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Five minutes.
    FiveMinutes,
    /// An hour.
    Hour,
    /// A day in UTC.
    Day,
}

/// The longest histories in steps of five minutes and of hours.
const IN_MINUTES: Duration = Duration::from_hours(3);
const IN_HOURS: Duration = Duration::from_hours(72);

impl Step {
    fn minutes(self) -> i64 {
        match self {
            Step::FiveMinutes => 5,
            Step::Hour => 60,
            Step::Day => 24 * 60,
        }
    }
}

/// Usage in one step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HistoryPoint {
    /// Its beginning.
    pub start: Timestamp,
    /// Requests.
    pub requests: u64,
    /// What counts against budgets.
    pub tokens: u64,
    /// The tokens of each kind.
    pub usage: Usage,
}

impl Ledger {
    /// The step of a history of this length: a short one, as far as the ledger keeps buckets that are as short.
    pub fn history_step(&self, length: Duration) -> Step {
        let retention = Retention::of(&self.config);
        match length {
            _ if length <= IN_MINUTES.min(retention.minutes()) => Step::FiveMinutes,
            _ if length <= IN_HOURS.min(retention.hours()) => Step::Hour,
            _ => Step::Day,
        }
    }

    /// Usage of a provider since a moment, in steps without gaps. A bucket that is longer than a step is in the step in which it
    /// begins.
    pub fn history(&self, provider: &str, since: Timestamp, step: Step) -> Result<Vec<HistoryPoint>> {
        self.provider(provider)?;
        let (now, minutes) = (self.now(), step.minutes());
        let last = now.millis().div_euclid(60_000 * minutes);
        let first = since.millis().div_euclid(60_000 * minutes).clamp(last - MOST_POINTS + 1, last);
        let length = Duration::from_mins(((last - first + 1) * minutes).unsigned_abs());
        let timeline = self.read(|connection| Timeline::load(connection, provider, now, length))?;
        let mut points: Vec<_> = (first..=last)
            .map(|number| HistoryPoint {
                start: Timestamp::from_millis(number * minutes * 60_000),
                requests: 0,
                tokens: 0,
                usage: Usage::default(),
            })
            .collect();
        for slice in timeline.slices() {
            // A bucket that is longer than a step may begin before the first one, and the clock of a message may be ahead.
            let number = (slice.start.div_euclid(minutes) - first).clamp(0, last - first);
            if let Some(point) = usize::try_from(number).ok().and_then(|number| points.get_mut(number)) {
                point.requests += slice.requests;
                point.usage.add(&slice.usage);
            }
        }
        for point in &mut points {
            point.tokens = point.usage.counted(&self.config);
        }
        Ok(points)
    }
}
