use super::*;
use crate::entry::check_key;

#[test]
fn export_snapshot_and_markdown_are_distinguished() {
    let entry = r#"{"key":"a","value":1,"source_agent":"ivy","timestamp":"2026-02-03T15:30:00Z","ttl":null}"#;
    for (text, format) in [
        (format!("{{\"revision\":1,\"entries\":[{entry}],\"events\":[]}}"), Format::Export),
        (format!("{{\"ok\":true,\"entries\":[{entry}],\"timestamp\":\"x\"}}"), Format::Export),
        (format!("\u{feff} {{\"a\":{entry}}}"), Format::Snapshot),
        (format!("# Swarm Blackboard\n## Knowledge Cache\n### a\n{entry}\n"), Format::Markdown),
    ] {
        let file = read(&text).unwrap();
        assert_eq!((file.format, file.content.entries.len()), (format, 1), "{text}");
        assert_eq!((&*file.content.problems, &*file.content.entries[0].key), (&[][..], "a"));
    }
    // A key of a snapshot may be called like a member of an export.
    let file = read(&format!("{{\"entries\":{}}}", entry.replace("\"a\"", "\"entries\""))).unwrap();
    assert_eq!((file.format, file.content.entries.len()), (Format::Snapshot, 1));
}

#[test]
fn json_of_other_programs_has_no_entries() {
    let file = read(r#"{"name": "x", "scripts": {"test": "true"}, "a": {"value": 1}, "b": [1]}"#).unwrap();
    assert_eq!((file.content.entries.len(), file.content.unread), (0, 4));
}

#[test]
fn other_files_are_refused() {
    for text in ["", "hello", "[1]", "{", "{\"entries\":[}", "# Notes\n\ntext\n"] {
        let error = read(text).unwrap_err();
        assert_eq!(error.code(), Code::InvalidValue, "{text}");
        assert!(error.to_string().starts_with("the file is not an export, snapshot or swarm blackboard: "));
        assert!(error.hint().is_some());
    }
}

#[test]
fn escaped_keys_are_accepted_and_distinct() {
    let keys = [
        "plain",
        "50%",
        "a*",
        "a%2A",
        "a?b",
        "[x]",
        ":a",
        "a:",
        " a",
        "a ",
        "a\nb",
        "a\u{202e}b",
        "default:x",
        "polymathera:x",
        "cafe\u{301}",
        "a\u{a0}b",
        "100%*",
        "\u{200b}",
        "a\u{fe0f}",
    ];
    let mut escaped: Vec<String> = keys.iter().map(|key| escaped_key("default", key)).collect();
    for (key, escaped) in keys.iter().zip(&escaped) {
        check_key("default", escaped).unwrap_or_else(|error| panic!("{key:?}: {escaped:?}: {error}"));
        assert_eq!(escaped_key("default", escaped), *escaped);
    }
    assert_eq!(escaped[..5], ["plain", "50%", "a%2A", "a%2A", "a%3Fb"]);
    escaped.sort();
    escaped.dedup();
    // Only the key that already looks escaped is the same as another one.
    assert_eq!(escaped.len(), keys.len() - 1);
    assert_eq!(escaped_key("default", ""), "");
}
