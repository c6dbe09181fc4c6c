//! Which known name was meant by an unknown one.

/// The known name that is the fewest changes away, unless even that is a different word.
pub(super) fn nearest<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let unknown = unknown.to_lowercase();
    let (changes, name) =
        known.map(|name| (changes_to(&unknown, name), name)).min_by_key(|(changes, _)| *changes)?;
    (changes <= unknown.chars().count() / 3).then_some(name)
}

/// How far the word is from the name, or from its last part if the word was written without its section.
fn changes_to(word: &str, name: &str) -> usize {
    let name = name.to_lowercase();
    let whole = distance(word, &name);
    match name.rsplit_once('.') {
        Some((_, last)) if !word.contains('.') => whole.min(distance(word, last)),
        _ => whole,
    }
}

/// How many characters have to be added, removed or replaced to get from one word to the other.
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.chars().count()).collect();
    for (removed, left) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = removed + 1;
        for (column, right) in to.chars().enumerate() {
            let replaced = diagonal + usize::from(left != right);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[row.len() - 1]
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

    #[test]
    fn distance_counts_single_changes() {
        for (from, to, expected) in [("", "", 0), ("", "abc", 3), ("abc", "", 3), ("kitten", "sitting", 3)] {
            assert_eq!(distance(from, to), expected, "{from} to {to}");
        }
    }
}
