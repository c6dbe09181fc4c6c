//! Finds the files that a patch in the `apply_patch` format names.
//!
//! Platforms are lenient: they trim the lines of headers, and accept a patch inside a here-document, with Windows line
//! endings, or after an environment id. Every file that one of them would change has to be found here, so this parser
//! is at least as lenient as all of them. Inside a hunk of an update they are strict: a line that starts with a space
//! is context, even if the rest looks like a header.

/// Without this line, no platform applies a patch.
const BEGIN: &str = "*** Begin Patch";

/// The headers that precede a file name, and whether hunks may follow.
const HEADERS: [(&str, bool); 4] = [
    ("*** Add File:", false),
    ("*** Update File:", true),
    ("*** Delete File:", false),
    ("*** Move to:", true),
];

/// Calls `name` with every file that a patch names, in every way in which a platform may parse the name.
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
        // Codex keeps further leading spaces as part of the name.
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

/// The rest of a header line, and whether hunks may follow; `None` for other lines.
fn named_in(line: &str) -> Option<(&str, bool)> {
    let line = trim(line);
    HEADERS.iter().find_map(|&(header, hunks_may_follow)| {
        let (start, rest) = line.split_at_checked(header.len())?;
        start.eq_ignore_ascii_case(header).then_some((rest, hunks_may_follow))
    })
}

/// Everything that one of the platforms' languages treats as a line break.
fn ends_line(letter: char) -> bool {
    matches!(
        letter,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// Everything that one of them treats as a space: JavaScript also trims the byte order mark.
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

    /// Each line of the corpus is a patch with the files that Codex (`codex-rs/apply-patch`: the parser of complete
    /// patches, and the streaming parser that replaced it) or OpenCode changes when it applies the patch.
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
            // Additional files are listed, so that a change of them is noticed.
            let besides = texts(case.get("besides").unwrap_or(&Value::Array(Vec::new())));
            assert_eq!(named.difference(&changed).cloned().collect::<BTreeSet<_>>(), besides, "{what}");
            patches += 1;
        }
        assert!(patches >= 20, "{patches}");
    }
}
