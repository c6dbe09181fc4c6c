//! Durations in human form: `1h30m`, "47 minutes", "2 min ago".

use std::time::Duration;

use crate::clock::Timestamp;
use crate::error::{Code, Error, Refusal, Result};
use crate::text::escape_for_terminal;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Ten years. A longer duration is probably an error.
const LONGEST: Duration = Duration::from_secs(3_652 * DAY);

const EXAMPLES: &str =
    "write 500ms, 90s, 15m, 1h30m, 1.5h, 2d or 1w; a bare number, such as 90 or 0.5, is seconds";

/// Parses a duration: numbers with the units `ms`, `s`, `m`, `h`, `d` and `w`, or one bare number of seconds. A
/// number may have decimals; parts of a millisecond are cut off.
///
/// ```
/// use blackboard::duration::parse;
/// use std::time::Duration;
///
/// assert_eq!(parse("1h30m")?, Duration::from_secs(5400));
/// assert_eq!(parse("90")?, parse("90s")?);
/// assert_eq!(parse("0.5")?, Duration::from_millis(500));
/// assert!(parse("-5m").is_err());
/// # Ok::<(), blackboard::Error>(())
/// ```
pub fn parse(text: &str) -> Result<Duration> {
    match read(text) {
        Ok(duration) => Ok(duration),
        Err(Unreadable::TooLong) => Err(refuse(text, "is longer than ten years", EXAMPLES)),
        Err(Unreadable::Negative) => Err(refuse(text, "is negative", EXAMPLES)),
        Err(Unreadable::NotADuration) => Err(refuse(text, "is not a duration", EXAMPLES)),
    }
}

/// Parses the start of a period that ends now: a duration back from `now`, or a moment in ISO 8601.
///
/// ```
/// use blackboard::duration::parse_since;
///
/// let now = "2026-02-03T15:30:00Z".parse()?;
/// assert_eq!(parse_since("15m", now)?, "2026-02-03T15:15:00Z".parse()?);
/// assert_eq!(parse_since("2026-02-01T00:00:00Z", now)?, "2026-02-01T00:00:00Z".parse()?);
/// # Ok::<(), blackboard::Error>(())
/// ```
pub fn parse_since(text: &str, now: Timestamp) -> Result<Timestamp> {
    match read(text) {
        Ok(duration) => Ok(now.minus(duration)),
        Err(Unreadable::TooLong) => Err(refuse(text, "is longer than ten years", EXAMPLES)),
        Err(Unreadable::Negative) => Err(refuse(text, "is negative", EXAMPLES)),
        Err(Unreadable::NotADuration) => text.trim().parse().map_err(|_| {
            refuse(
                text,
                "is neither a duration nor an ISO 8601 time with a zone",
                "use a duration (90s, 15m, 1h, 2d) or a time (2026-02-03T15:30:00Z)",
            )
        }),
    }
}

/// For a sentence: `47 minutes`, `2 hours 5 minutes`, `3 days`.
pub fn human(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => "less than a second".to_owned(),
        1..MINUTE => counted(seconds, "second"),
        MINUTE..HOUR => counted(seconds / MINUTE, "minute"),
        HOUR..DAY => with_remainder(counted(seconds / HOUR, "hour"), seconds % HOUR / MINUTE, "minute"),
        _ => with_remainder(counted(seconds / DAY, "day"), seconds % DAY / HOUR, "hour"),
    }
}

/// For a table: `12s`, `47m`, `2h`, `3d`.
pub fn short(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..MINUTE => format!("{seconds}s"),
        MINUTE..HOUR => format!("{}m", seconds / MINUTE),
        HOUR..DAY => format!("{}h", seconds / HOUR),
        _ => format!("{}d", seconds / DAY),
    }
}

/// How long a call has waited: as [`short`], but with milliseconds below one second, as a caller writes them: `500ms`.
pub(crate) fn waited(duration: Duration) -> String {
    match (duration.as_secs(), duration.as_millis()) {
        (0, milliseconds) if milliseconds > 0 => format!("{milliseconds}ms"),
        _ => short(duration),
    }
}

/// For a past moment: `just now`, `2 min ago`, `3 h ago`, `5 d ago`.
pub fn ago(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..MINUTE => "just now".to_owned(),
        MINUTE..HOUR => format!("{} min ago", seconds / MINUTE),
        HOUR..DAY => format!("{} h ago", seconds / HOUR),
        _ => format!("{} d ago", seconds / DAY),
    }
}

enum Unreadable {
    Negative,
    NotADuration,
    TooLong,
}

fn read(text: &str) -> Result<Duration, Unreadable> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(Unreadable::NotADuration);
    }
    if let Some(positive) = rest.strip_prefix(['-', '\u{2212}']) {
        let is_one = positive.starts_with(|first: char| first.is_ascii_digit()) && read(positive).is_ok();
        return Err(if is_one { Unreadable::Negative } else { Unreadable::NotADuration });
    }
    if rest.bytes().all(is_of_number) {
        return add(Duration::ZERO, rest, 1000);
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let (number, after) =
            split_at_end_of(rest, |character| u8::try_from(character).is_ok_and(is_of_number));
        let (unit, after) = split_at_end_of(after, |character| character.is_ascii_alphabetic());
        total = add(total, number, millis_in(unit)?)?;
        rest = after;
    }
    Ok(total)
}

fn is_of_number(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == b'.'
}

fn millis_in(unit: &str) -> Result<u64, Unreadable> {
    Ok(match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => MINUTE * 1000,
        "h" => HOUR * 1000,
        "d" => DAY * 1000,
        "w" => 7 * DAY * 1000,
        _ => return Err(Unreadable::NotADuration),
    })
}

fn add(total: Duration, number: &str, millis_each: u64) -> Result<Duration, Unreadable> {
    if number.is_empty() {
        return Err(Unreadable::NotADuration);
    }
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(decimals) {
        return Err(Unreadable::NotADuration);
    }
    // The number contains only digits: if it cannot be parsed, it is too large.
    let count: u64 = whole.parse().map_err(|_| Unreadable::TooLong)?;
    // Nine decimals of a week are less than a millisecond.
    let decimals = &decimals[..decimals.len().min(9)];
    let parts = decimals.parse::<u128>().map_err(|_| Unreadable::NotADuration)? * u128::from(millis_each);
    let part_millis = parts / 10_u128.pow(u32::try_from(decimals.len()).unwrap_or(0));
    count
        .checked_mul(millis_each)
        .and_then(|millis| millis.checked_add(u64::try_from(part_millis).ok()?))
        .and_then(|millis| total.checked_add(Duration::from_millis(millis)))
        .filter(|total| *total <= LONGEST)
        .ok_or(Unreadable::TooLong)
}

fn split_at_end_of(text: &str, belongs: fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|character| !belongs(character)).unwrap_or(text.len()))
}

fn refuse(text: &str, problem: &str, hint: &str) -> Error {
    let shown: String = text.chars().take(60).collect();
    Refusal::new(Code::InvalidValue, format!("\"{}\" {problem}", escape_for_terminal(&shown)))
        .hint(hint.to_owned())
        .into()
}

fn counted(count: u64, unit: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

fn with_remainder(text: String, count: u64, unit: &str) -> String {
    if count == 0 { text } else { format!("{text} {}", counted(count, unit)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_parsed() {
        testkit::limit_test();
        for (text, millis) in [
            ("90s", 90_000),
            ("15m", 900_000),
            ("1h", 3_600_000),
            ("2d", 172_800_000),
            ("1w", 604_800_000),
            ("500ms", 500),
            ("1h30m", 5_400_000),
            ("1m500ms", 60_500),
            ("1w2d3h4m5s6ms", 788_645_006),
            ("90", 90_000),
            ("0", 0),
            (" 5m ", 300_000),
            ("3652d", 315_532_800_000),
            ("0.5", 500),
            ("1.25s", 1_250),
            ("1.5h", 5_400_000),
            ("0.5d0.5h", 45_000_000),
            ("0.0019", 1),
            ("0.0004", 0),
            ("0.123456789123456789", 123),
        ] {
            assert_eq!(parse(text).unwrap(), Duration::from_millis(millis), "{text}");
        }
    }

    #[test]
    fn invalid_durations_are_refused_with_examples() {
        testkit::limit_test();
        for text in [
            "",
            " ",
            "-5m",
            "+5m",
            "m",
            "5x",
            "5 m",
            "1h30",
            ".5",
            "5.",
            "1.5.5",
            ".",
            "1.s",
            "-",
            "--5s",
            "5M",
            "5mm",
            "٣s",
            "soon",
            "3653d",
            "522w",
            "99999999999999999999",
            "99999999999999999999s",
            "18446744073709551615w",
            "1h18446744073709551615ms",
            "5m\u{1b}[2J",
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.code(), Code::InvalidValue, "{text}");
            assert!(error.hint().unwrap().advice().unwrap().contains("1h30m"));
            assert!(!error.to_string().contains('\u{1b}'));
        }
        assert!(parse("11000w").unwrap_err().to_string().contains("longer than ten years"));
        for text in ["-5s", "-0.5", "-1h30m"] {
            assert_eq!(parse(text).unwrap_err().to_string(), format!("\"{text}\" is negative"));
        }
        assert!(parse("-soon").unwrap_err().to_string().contains("is not a duration"));
    }

    #[test]
    fn since_accepts_a_duration_or_a_moment() {
        testkit::limit_test();
        let now: Timestamp = "2026-02-03T15:30:00Z".parse().unwrap();
        for (text, expected) in [
            ("0", "2026-02-03T15:30:00.000Z"),
            ("90s", "2026-02-03T15:28:30.000Z"),
            ("2d", "2026-02-01T15:30:00.000Z"),
            ("2026-02-03T16:00:00+01:00", "2026-02-03T15:00:00.000Z"),
        ] {
            assert_eq!(parse_since(text, now).unwrap().to_string(), expected);
        }
        for text in ["yesterday", "2026-02-03T15:30:00", "", "9999d"] {
            assert_eq!(parse_since(text, now).unwrap_err().code(), Code::InvalidValue);
        }
    }

    #[test]
    fn durations_are_formatted() {
        for (seconds, sentence, cell, past) in [
            (0, "less than a second", "0s", "just now"),
            (1, "1 second", "1s", "just now"),
            (23, "23 seconds", "23s", "just now"),
            (60, "1 minute", "1m", "1 min ago"),
            (119, "1 minute", "1m", "1 min ago"),
            (47 * 60 + 12, "47 minutes", "47m", "47 min ago"),
            (3600, "1 hour", "1h", "1 h ago"),
            (3660, "1 hour 1 minute", "1h", "1 h ago"),
            (7500, "2 hours 5 minutes", "2h", "2 h ago"),
            (86_399, "23 hours 59 minutes", "23h", "23 h ago"),
            (86_400, "1 day", "1d", "1 d ago"),
            (3 * 86_400, "3 days", "3d", "3 d ago"),
            (5 * 86_400 + 3600, "5 days 1 hour", "5d", "5 d ago"),
        ] {
            let duration = Duration::from_secs(seconds);
            assert_eq!(
                (human(duration), short(duration), ago(duration)),
                (sentence.into(), cell.into(), past.into())
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in any::<String>()) {
            testkit::limit_test();
            if let Ok(duration) = parse(&text) {
                prop_assert!(duration <= LONGEST);
            }
        }

        #[test]
        fn short_form_can_be_parsed_again(seconds in 0_u64..LONGEST.as_secs()) {
            testkit::limit_test();
            let duration = Duration::from_secs(seconds);
            let back = parse(&short(duration)).unwrap();
            prop_assert!(back <= duration);
            prop_assert_eq!(short(back), short(duration));
        }
    }
}
