//! Which files a patch in the form of `apply_patch` names.
//!
//! Platforms are lenient: they trim the lines of headers, accept a patch inside a here-document, with Windows line ends, or
//! behind an environment id. A file that one of them would change has to be named here, so this reader is at least as
//! lenient as all of them. Inside a hunk of an update they are not: a line that begins with a space is context there,
//! also if the rest of it looks like a header.

/// Without this line no platform applies a patch.
const BEGIN: &str = "*** Begin Patch";

/// What a file is named after, and whether hunks may follow.
const HEADERS: [(&str, bool); 4] = [
    ("*** Add File:", false),
    ("*** Update File:", true),
    ("*** Delete File:", false),
    ("*** Move to:", true),
];

/// Calls `name` with every file that a patch names, in every way in which a platform may read the name.
pub fn files(text: &str, mut name: impl FnMut(&str)) {
    if !text.contains(BEGIN) {
        return;
    }
    let (mut hunks_may_follow, mut in_hunk) = (false, false);
    for line in text.split(ends_line) {
        if in_hunk && line.starts_with(' ') {
            continue;
        }
        let Some((rest, is_updated)) = named_in(line) else {
            match trim(line) {
                BEGIN => (hunks_may_follow, in_hunk) = (false, false),
                "" => {}
                _ => in_hunk = hunks_may_follow,
            }
            continue;
        };
        (hunks_may_follow, in_hunk) = (is_updated, false);
        // Codex keeps further spaces in front as a part of the name.
        let exact = rest.strip_prefix(' ').unwrap_or(rest);
        let trimmed = trim(rest);
        if trimmed.is_empty() {
            continue;
        }
        name(trimmed);
        if exact != trimmed {
            name(exact);
        }
    }
}

/// What follows the header in a line that is one, and whether hunks may follow.
fn named_in(line: &str) -> Option<(&str, bool)> {
    let line = trim(line);
    HEADERS.iter().find_map(|&(header, hunks_may_follow)| {
        let (start, rest) = line.split_at_checked(header.len())?;
        start.eq_ignore_ascii_case(header).then_some((rest, hunks_may_follow))
    })
}

/// What any of the languages that platforms are written in takes for the end of a line.
fn ends_line(letter: char) -> bool {
    matches!(
        letter,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// What any of them takes for a space: JavaScript also trims the byte order mark.
fn trim(text: &str) -> &str {
    text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\u{feff}')
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    fn names(text: &str) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        files(text, |name| names.extend([name.to_owned()]));
        names
    }

    fn texts(value: &Value) -> BTreeSet<String> {
        value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    }

    /// Each line of the corpus is a patch with the files that Codex (`codex-rs/apply-patch`: the parser of whole patches, and
    /// the streaming one that replaced it) or OpenCode changes when it applies it.
    #[test]
    fn every_file_that_a_platform_would_change_is_named() {
        testkit::limit_test();
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/patches.jsonl");
        let corpus = std::fs::read_to_string(corpus).unwrap();
        let mut patches = 0;
        for line in corpus.lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let (what, named) = (&case["case"], names(case["patch"].as_str().unwrap()));
            let changed = texts(&case["changes"]);
            assert!(named.is_superset(&changed), "{what}: {named:?} misses some of {changed:?}");
            // What is named besides is stated, so that it does not grow unseen.
            let besides = texts(case.get("besides").unwrap_or(&Value::Array(Vec::new())));
            assert_eq!(named.difference(&changed).cloned().collect::<BTreeSet<_>>(), besides, "{what}");
            patches += 1;
        }
        assert!(patches >= 20, "{patches}");
    }
}
