//! Times in human output: ages in tables, and local times elsewhere.

use std::time::Duration;

use blackboard::clock::Timestamp;

use crate::zone;

/// How long ago, as in `2 min ago`.
pub fn ago(duration: Duration) -> String {
    match unit(duration) {
        (0, Unit::Second) => "just now".to_owned(),
        (count, unit) => format!("{count} {} ago", unit.medium()),
    }
}

/// An age in a table, as in `47m`.
pub fn age(duration: Duration) -> String {
    let (count, unit) = unit(duration);
    format!("{count}{}", unit.short())
}

/// The time until something ends, as in `30m`. It is rounded to the nearest unit: a TTL of 30 minutes is 30 minutes when it
/// begins.
pub fn left(duration: Duration) -> String {
    let half = match unit(duration).1 {
        Unit::Second => Duration::ZERO,
        Unit::Minute => Duration::from_secs(30),
        Unit::Hour => Duration::from_mins(30),
        Unit::Day => Duration::from_hours(12),
    };
    age(duration.saturating_add(half))
}

/// A length of time in a sentence, as in `47 minutes`.
pub fn length(duration: Duration) -> String {
    let (count, unit) = unit(duration);
    format!("{count} {}{}", unit.long(), if count == 1 { "" } else { "s" })
}

/// A moment in a detail, as in `2026-02-03T16:30:00+01:00 (47m ago)`.
pub fn detailed(moment: Timestamp, now: Timestamp) -> String {
    format!("{} ({} ago)", local(moment), age(now.since(moment)))
}

/// The local time, as in `2026-02-03T16:30:00+01:00`.
pub fn local(moment: Timestamp) -> String {
    match zone::offset(moment) {
        Some(offset) => at_offset(moment, offset),
        None => utc(moment),
    }
}

/// The time in UTC, as in `2026-02-03T15:30:00Z`, for commands that are too frequent to read the time zone.
pub fn utc(moment: Timestamp) -> String {
    let mut text = moment.to_string();
    text.truncate("2026-02-03T15:30:00".len());
    text + "Z"
}

/// The local time of the day, as in `16:05:00`.
pub fn of_day(moment: Timestamp) -> String {
    local(moment)["2026-02-03T".len()..][.."16:05:00".len()].to_owned()
}

/// The local day, as in `2026-02-03`.
pub fn date(moment: Timestamp) -> String {
    let mut text = local(moment);
    text.truncate("2026-02-03".len());
    text
}

/// The time at an offset from UTC in seconds.
fn at_offset(moment: Timestamp, offset: i32) -> String {
    let shifted = Timestamp::from_millis(moment.millis() + i64::from(offset) * 1000);
    let mut text = utc(shifted);
    text.pop();
    let minutes = offset.unsigned_abs() / 60;
    let sign = if offset < 0 { '-' } else { '+' };
    format!("{text}{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

#[derive(Clone, Copy)]
enum Unit {
    Second,
    Minute,
    Hour,
    Day,
}

impl Unit {
    fn short(self) -> &'static str {
        match self {
            Unit::Second => "s",
            Unit::Minute => "m",
            Unit::Hour => "h",
            Unit::Day => "d",
        }
    }

    fn medium(self) -> &'static str {
        match self {
            Unit::Second => "sec",
            Unit::Minute => "min",
            Unit::Hour => "h",
            Unit::Day => "d",
        }
    }

    fn long(self) -> &'static str {
        match self {
            Unit::Second => "second",
            Unit::Minute => "minute",
            Unit::Hour => "hour",
            Unit::Day => "day",
        }
    }
}

/// The largest unit of which there are at least one (minutes) or two: 90 minutes say more than 1 hour.
fn unit(duration: Duration) -> (u64, Unit) {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => (seconds, Unit::Second),
        60..7_200 => (seconds / 60, Unit::Minute),
        7_200..172_800 => (seconds / 3_600, Unit::Hour),
        _ => (seconds / 86_400, Unit::Day),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_fitting_unit_is_used() {
        for (seconds, expected) in [
            (0, ["just now", "0s", "0 seconds"]),
            (1, ["1 sec ago", "1s", "1 second"]),
            (59, ["59 sec ago", "59s", "59 seconds"]),
            (60, ["1 min ago", "1m", "1 minute"]),
            (47 * 60 + 59, ["47 min ago", "47m", "47 minutes"]),
            (119 * 60, ["119 min ago", "119m", "119 minutes"]),
            (2 * 3_600, ["2 h ago", "2h", "2 hours"]),
            (48 * 3_600, ["2 d ago", "2d", "2 days"]),
        ] {
            let duration = Duration::from_secs(seconds);
            assert_eq!([ago(duration), age(duration), length(duration)], expected);
        }
    }

    #[test]
    fn the_time_left_is_rounded() {
        for (millis, expected) in [
            (400, "0s"),
            (59_900, "59s"),
            (89_900, "1m"),
            (90_000, "2m"),
            (1_799_900, "30m"),
            (7_199_000, "2h"),
            (10_799_000, "3h"),
            (259_000_000, "3d"),
        ] {
            assert_eq!(left(Duration::from_millis(millis)), expected);
        }
    }

    #[test]
    fn a_local_time_has_its_offset() {
        let moment = "2026-02-03T23:30:09.999Z".parse().unwrap();
        assert_eq!(utc(moment), "2026-02-03T23:30:09Z");
        assert_eq!(at_offset(moment, 0), "2026-02-03T23:30:09+00:00");
        assert_eq!(at_offset(moment, 3_600), "2026-02-04T00:30:09+01:00");
        assert_eq!(at_offset(moment, -12_600), "2026-02-03T20:00:09-03:30");
    }
}
