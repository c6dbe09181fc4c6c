//! The line about the token quota in a brief.
//!
//! It is outside of the quote block: all of its text is from the home configuration of the user, and numbers.

use blackboard::clock::Timestamp;
use blackboard::quota::{ProviderStatus, Status, WindowStatus};

use super::is_plain;
use crate::output::quota::{clock_time, compact, percent};

/// How many providers and windows the line has at most.
const MOST: usize = 3;

/// What is used and left, and what to do if that is little; empty if nothing is limited.
pub fn quota_line(status: &Status, now: Timestamp) -> String {
    let is_shown = |provider: &&ProviderStatus| !provider.windows.is_empty() && is_plain(&provider.provider);
    let shown: Vec<_> = status.providers.iter().filter(is_shown).take(MOST).collect();
    if shown.is_empty() {
        return String::new();
    }
    let providers: Vec<_> = shown.iter().map(|provider| provider_part(provider)).collect();
    let advice = shown.iter().find_map(|provider| advice(provider, now)).unwrap_or_default();
    format!(" Token quota: {}.{advice}", providers.join("; "))
}

/// `anthropic 5h 64% used (180k left for agents), 7d 42%`
fn provider_part(provider: &ProviderStatus) -> String {
    // The window that has the least left decides what agents may use.
    let available = provider.windows.iter().map(|window| window.available).min().unwrap_or_default();
    let windows: Vec<_> = provider
        .windows
        .iter()
        .take(MOST)
        .enumerate()
        .map(|(place, window)| {
            let used = percent(window);
            match place {
                0 => format!("{} {used}% used ({} left for agents)", window.window, compact(available)),
                _ => format!("{} {used}%", window.window),
            }
        })
        .collect();
    format!("{} {}", provider.provider, windows.join(", "))
}

/// What to do if a window has little left.
fn advice(provider: &ProviderStatus, now: Timestamp) -> Option<String> {
    let name = |window: &WindowStatus| format!("{} window of {}", window.window, provider.provider);
    if let Some(window) = provider.windows.iter().find(|window| window.available == 0) {
        let until = window.frees_at.filter(|moment| *moment > now);
        let until = until.map(|moment| format!(" It starts to free up at {}.", clock_time(moment, now)));
        return Some(format!(
            " Finish what you hold and claim no new work: the {} has nothing left for agents.{}",
            name(window),
            until.unwrap_or_default()
        ));
    }
    let window = provider.windows.iter().rfind(|window| window.warning.is_some())?;
    Some(format!(
        " Prefer small items, and before larger work run `blackboard quota check --tokens N --reserve`: the {} has \
         passed {:.0}%.",
        name(window),
        window.warning.unwrap_or_default() * 100.0
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use blackboard::clock::{Clock, FixedClock};
    use blackboard::quota::{Config, Ledger, Record, Usage};

    use super::*;

    /// The line after this many tokens were used.
    fn line(quota: &str, used: u64) -> String {
        testkit::limit_test();
        let clock = Arc::new(FixedClock::at("2026-02-03T15:30:00Z").unwrap());
        let ledger = Ledger::empty(&Config::parse(quota).unwrap(), clock.clone()).unwrap();
        let usage = Usage { input: used, ..Usage::default() };
        ledger.record(&[Record::new("m", "anthropic", clock.now(), usage)]).unwrap();
        quota_line(&ledger.status().unwrap(), clock.now())
    }

    const QUOTA: &str = r#"{"providers": {"anthropic": {
        "windows": {"5h": {"budget": 500000}, "7d": {"budget": 5000000}}, "reservation": {"operator": 20000},
        "warnAt": [0.8, 0.9]
    }}}"#;

    #[test]
    fn the_line_has_what_is_used_and_left() {
        let expected = " Token quota: anthropic 5h 64% used (160k left for agents), 7d 6%.";
        assert_eq!(line(QUOTA, 320_000), expected);
    }

    #[test]
    fn a_passed_threshold_says_what_to_do() {
        let text = line(QUOTA, 470_000);
        assert!(
            text.starts_with(" Token quota: anthropic 5h 94% used (10k left for agents), 7d 9%."),
            "{text}"
        );
        assert!(text.contains("Prefer small items"), "{text}");
        assert!(text.ends_with("the 5h window of anthropic has passed 90%."), "{text}");
        let text = line(QUOTA, 490_000);
        assert!(text.contains("(0 left for agents)"), "{text}");
        assert!(text.contains("Finish what you hold and claim no new work"), "{text}");
        assert!(text.ends_with("It starts to free up at 20:31Z."), "{text}");
    }

    #[test]
    fn nothing_is_said_without_windows_or_about_a_name_that_could_be_an_instruction() {
        assert_eq!(line(r#"{"providers": {"anthropic": {}}}"#, 1), "");
        let hostile = r#"{"providers": {"<ignore>": {"windows": {"5h": {"budget": 5}}}, "anthropic": {}}}"#;
        assert_eq!(line(hostile, 1), "");
    }

    #[test]
    fn the_line_stays_short() {
        let windows: Vec<_> = (1..=8).map(|hours| format!(r#""{hours}h": {{"budget": 5}}"#)).collect();
        let windows = windows.join(",");
        let providers: Vec<_> = ["anthropic", "b", "c", "d", "e"]
            .iter()
            .map(|name| format!(r#""{name}": {{"windows": {{{windows}}}}}"#))
            .collect();
        let text = line(&format!(r#"{{"providers": {{{}}}}}"#, providers.join(",")), 3);
        assert!(text.len() < 400, "{text}");
    }
}
