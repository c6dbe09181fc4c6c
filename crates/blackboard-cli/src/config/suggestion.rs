//! Suggests the known name that an unknown one probably means.

use strsim::osa_distance;

/// The known name with the smallest edit distance, unless even that is a different word.
pub(super) fn nearest<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let unknown = unknown.to_lowercase();
    let (changes, name) =
        known.map(|name| (changes_to(&unknown, name), name)).min_by_key(|(changes, _)| *changes)?;
    (changes <= unknown.chars().count() / 3).then_some(name)
}

/// The distance to the name, or to its last part if the word was written without its section.
fn changes_to(word: &str, name: &str) -> usize {
    let name = name.to_lowercase();
    let whole = osa_distance(word, &name);
    match name.rsplit_once('.') {
        Some((_, last)) if !word.contains('.') => whole.min(osa_distance(word, last)),
        _ => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 4] = ["heartbeat.intervalSeconds", "webServer.port", "staleThreshold", "fileGuard"];

    #[test]
    fn a_name_is_suggested_when_little_is_wrong() {
        let cases = [
            ("staleTreshold", Some("staleThreshold")),
            ("STALETHRESHOLD", Some("staleThreshold")),
            ("heartbeat.intervallSeconds", Some("heartbeat.intervalSeconds")),
            ("intervalSeconds", Some("heartbeat.intervalSeconds")),
            ("webserver.ports", Some("webServer.port")),
            ("telemetry", None),
            ("", None),
        ];
        for (unknown, suggested) in cases {
            assert_eq!(nearest(unknown, KNOWN.into_iter()), suggested, "{unknown:?}");
        }
    }
}
