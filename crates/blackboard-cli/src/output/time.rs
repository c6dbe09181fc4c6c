//! Times as people say them.

use std::time::Duration;

use blackboard::clock::Timestamp;

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

/// A length of time in a sentence, as in `47 minutes`.
pub fn length(duration: Duration) -> String {
    let (count, unit) = unit(duration);
    format!("{count} {}{}", unit.long(), if count == 1 { "" } else { "s" })
}

/// The time of the day in UTC, as in `15:05:00`.
pub fn of_day(moment: Timestamp) -> String {
    let seconds = (moment.millis() - moment.midnight().millis()) / 1000;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// The day in UTC, as in `2026-02-03`.
pub fn date(moment: Timestamp) -> String {
    moment.to_string().chars().take_while(|character| *character != 'T').collect()
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
    fn the_time_of_day_is_in_utc() {
        assert_eq!(of_day("2026-02-03T15:05:09.999Z".parse().unwrap()), "15:05:09");
        assert_eq!(of_day(Timestamp::EPOCH), "00:00:00");
        assert_eq!(date("2026-02-03T15:05:09.999Z".parse().unwrap()), "2026-02-03");
    }
}
