//! Time: the board stores a [`Timestamp`], which comes from a [`Clock`].
//!
//! Nothing else in the library asks the operating system for the time, so a test can set it.

use std::fmt;
use std::str::FromStr;
use std::sync::Mutex;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, Result};

/// A moment in UTC with milliseconds, written as `2026-02-03T15:30:00.000Z`.
///
/// ```
/// use blackboard::clock::Timestamp;
///
/// let moment: Timestamp = "2026-02-03T15:30:00Z".parse()?;
/// assert_eq!(moment.to_string(), "2026-02-03T15:30:00.000Z");
/// # Ok::<(), blackboard::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// 9999-12-30T00:00:00Z: the last day that every reader of ISO 8601 understands in every zone.
const LAST_MILLIS: i64 = 253_402_128_000_000;

impl Timestamp {
    /// The first moment that can be stored, and the start of every open interval.
    pub const EPOCH: Timestamp = Timestamp(0);

    /// The last moment that can be stored.
    pub const LAST: Timestamp = Timestamp(LAST_MILLIS);

    /// From milliseconds since 1970. A time before 1970 or in the last days of 9999 becomes the nearest end.
    pub fn from_millis(millis: i64) -> Timestamp {
        Timestamp(millis.clamp(0, LAST_MILLIS))
    }

    /// Milliseconds since 1970.
    pub fn millis(self) -> i64 {
        self.0
    }

    /// This moment moved forward.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Timestamp {
        Timestamp::from_millis(self.0.saturating_add(millis_of(duration)))
    }

    /// This moment moved back, not past 1970.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Timestamp {
        Timestamp::from_millis(self.0.saturating_sub(millis_of(duration)))
    }

    /// How long ago `earlier` was at this moment; zero if it is in the future.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(u64::try_from(self.0 - earlier.0).unwrap_or(0))
    }

    /// 00:00 UTC of this day.
    #[must_use]
    pub fn midnight(self) -> Timestamp {
        Timestamp(self.0 - self.0 % 86_400_000)
    }
}

fn millis_of(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(std::str::from_utf8(&self.to_bytes()).unwrap_or_default())
    }
}

impl Timestamp {
    /// Formats by hand: a list of agents or events is mostly timestamps, and the general formatter takes ten times as
    /// long.
    fn to_bytes(self) -> [u8; 24] {
        let (days, millis) = (self.0 / 86_400_000, self.0 % 86_400_000);
        let (year, month, day) = civil(days);
        let seconds = millis / 1000;
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let mut put = |place: usize, digits: usize, value: i64| {
            let mut rest = value.unsigned_abs();
            for digit in text[place..place + digits].iter_mut().rev() {
                *digit = b"0123456789"[(rest % 10) as usize];
                rest /= 10;
            }
        };
        put(0, 4, year);
        put(5, 2, month);
        put(8, 2, day);
        put(11, 2, seconds / 3600);
        put(14, 2, seconds / 60 % 60);
        put(17, 2, seconds % 60);
        put(20, 3, millis % 1000);
        text
    }
}

/// The date of a number of days since 1970, in the Gregorian calendar: years of 365.2425 days that start in March, so
/// that the leap day is the last of its year.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

impl FromStr for Timestamp {
    type Err = Error;

    fn from_str(text: &str) -> Result<Timestamp> {
        if let Some(moment) = Timestamp::from_own_text(text.as_bytes()) {
            return Ok(moment);
        }
        text.parse::<jiff::Timestamp>()
            .map(|moment| Timestamp::from_millis(moment.as_millisecond()))
            .map_err(|_| Error::invalid(format!("\"{text}\" is not an ISO 8601 time with a zone")))
    }
}

impl Timestamp {
    /// Parses what `Display` writes. A million events are read like this. Every other form is left to a general
    /// parser.
    fn from_own_text(text: &[u8]) -> Option<Timestamp> {
        let text: &[u8; 24] = text.try_into().ok()?;
        let number = |place: std::ops::Range<usize>| {
            text[place].iter().try_fold(0, |number, digit| match digit {
                b'0'..=b'9' => Some(number * 10 + i64::from(digit - b'0')),
                _ => None,
            })
        };
        let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
        let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
        let separated = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')]
            .iter()
            .all(|&(place, separator)| text[place] == separator);
        let days = days_before(year, month, day);
        // A date that does not exist is formatted as another one.
        let exists =
            year >= 1970 && civil(days) == (year, month, day) && hour < 24 && minute < 60 && second < 60;
        let millis = ((days * 24 + hour) * 60 + minute) * 60_000 + second * 1000 + number(20..23)?;
        (separated && exists).then(|| Timestamp::from_millis(millis))
    }
}

/// The number of days from 1970 to a date: the inverse of [`civil`].
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year / 400, year % 400);
    let march_month = (month + 9) % 12;
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(std::str::from_utf8(&self.to_bytes()).unwrap_or_default())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The source of a board's time.
pub trait Clock: Send + Sync {
    /// The wall clock.
    fn now(&self) -> Timestamp;

    /// Milliseconds of a clock that cannot be set and that stops while the machine sleeps. Only differences mean
    /// anything.
    fn monotonic_millis(&self) -> i64;
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(jiff::Timestamp::now().as_millisecond())
    }

    #[cfg(unix)]
    fn monotonic_millis(&self) -> i64 {
        let moment = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        moment.tv_sec * 1000 + moment.tv_nsec / 1_000_000
    }

    // Without a shared monotonic clock, the wall clock replaces it. A jump is then not noticed, and the threshold
    // alone decides, as everywhere else.
    #[cfg(not(unix))]
    fn monotonic_millis(&self) -> i64 {
        self.now().millis()
    }
}

/// A clock that a test sets.
///
/// ```
/// use blackboard::clock::{Clock, FixedClock};
/// use std::time::Duration;
///
/// let clock = FixedClock::at("2026-02-03T15:30:00Z")?;
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(clock.now().to_string(), "2026-02-03T15:31:00.000Z");
/// # Ok::<(), blackboard::Error>(())
/// ```
#[derive(Debug)]
pub struct FixedClock(Mutex<(Timestamp, i64)>);

impl FixedClock {
    /// A clock that stays at `moment` until it is moved.
    pub fn at(moment: &str) -> Result<FixedClock> {
        Ok(FixedClock(Mutex::new((moment.parse()?, 0))))
    }

    /// Moves the wall clock and the monotonic clock together.
    pub fn advance(&self, duration: Duration) {
        let mut state = self.state();
        state.0 = state.0.plus(duration);
        state.1 += millis_of(duration);
    }

    /// Sets the wall clock. The monotonic clock does not move.
    pub fn set(&self, moment: Timestamp) {
        self.state().0 = moment;
    }

    fn state(&self) -> std::sync::MutexGuard<'_, (Timestamp, i64)> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.state().0
    }

    fn monotonic_millis(&self) -> i64 {
        self.state().1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamp_round_trips_through_text() {
        for text in ["1970-01-01T00:00:00.000Z", "2026-02-03T15:30:00.123Z", "9999-12-29T23:59:59.999Z"] {
            assert_eq!(text.parse::<Timestamp>().unwrap().to_string(), text);
        }
        assert_eq!(
            "2026-02-03T16:30:00+01:00".parse::<Timestamp>().unwrap(),
            "2026-02-03T15:30:00Z".parse().unwrap()
        );
    }

    #[test]
    fn dates_match_the_calendar() {
        for days in (0..LAST_MILLIS / 86_400_000).step_by(7) {
            let text = Timestamp(days * 86_400_000).to_string();
            assert_eq!(text.parse::<Timestamp>().unwrap(), Timestamp(days * 86_400_000), "{text}");
        }
        assert!(Timestamp(951_782_400_000).to_string().starts_with("2000-02-29T"));
    }

    #[test]
    fn a_time_without_a_zone_is_refused() {
        assert!("2026-02-03T15:30:00".parse::<Timestamp>().is_err());
        for text in
            ["yesterday", "2026-02-30T00:00:00.000Z", "2026-13-01T00:00:00.000Z", "2026-02-03T25:00:00.000Z"]
        {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
    }

    #[test]
    fn timestamps_clamp_to_the_supported_range() {
        assert_eq!(Timestamp::from_millis(i64::MAX).to_string(), "9999-12-30T00:00:00.000Z");
        assert_eq!(Timestamp::from_millis(-1), Timestamp::EPOCH);
        assert_eq!(Timestamp::EPOCH.plus(Duration::MAX), Timestamp::from_millis(i64::MAX));
    }
}
