use serde_json::json;

use crate::scratch::Scratch;
use crate::shapes::{ENTRY, is_list};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_an_array_of_keys_or_the_entries,
    list_has_no_limit_by_default,
    list_reports_what_its_limit_leaves_out,
];

fn human_output_matches_transcript() {
    transcript::check("list");
}

fn json_has_an_array_of_keys_or_the_entries() {
    let scratch = Scratch::new();
    for (key, tags) in [("task:b", "x"), ("task:a", "x,y"), ("other", "y")] {
        scratch.json(["write", key, "1", "--tag", tags, "--agent", key]);
    }
    for (filter, expected) in [
        (&[][..], json!(["other", "task:a", "task:b"])),
        (&["--prefix", "task:"], json!(["task:a", "task:b"])),
        (&["--pattern", "t*:?"], json!(["task:a", "task:b"])),
        (&["--tag", "x", "--tag", "y"], json!(["task:a"])),
        (&["--tag", "x, y"], json!(["task:a"])),
        (&["--author", "other"], json!(["other"])),
        (&["--since", "2999-01-01T00:00:00Z"], json!([])),
        (&["--limit", "1"], json!(["other"])),
        (&["--scope", "elsewhere"], json!([])),
    ] {
        assert_eq!(scratch.json(["list"].iter().chain(filter)), expected, "{filter:?}");
        let long = scratch.json(["list", "--long"].iter().chain(filter));
        is_list(&long, ENTRY);
        let keys: Vec<_> = long["items"].as_array().unwrap().iter().map(|entry| &entry["key"]).collect();
        assert_eq!(json!(keys), expected, "{filter:?}");
    }
}

fn list_has_no_limit_by_default() {
    let scratch = Scratch::new();
    let writes: Vec<_> = (0..1234)
        .map(|number| json!({"write": {"key": format!("key:{number:04}"), "value": number}}))
        .collect();
    std::fs::write(scratch.path().join("many.json"), json!({"then": writes}).to_string()).unwrap();
    scratch.json(["txn", "--file", "many.json"]);
    assert_eq!(scratch.json(["list"]).as_array().unwrap().len(), 1234);
    assert_eq!(scratch.run(["list"]).stdout.lines().count(), 1234);
    assert_eq!(scratch.json(["list", "--long"])["count"], 1234);
    assert_eq!(scratch.json(["snapshot"]).as_object().unwrap().len(), 1234);
    assert_eq!(scratch.json(["query"])["count"], 100);
}

fn list_reports_what_its_limit_leaves_out() {
    let scratch = Scratch::new();
    for key in ["a", "b", "c"] {
        scratch.json(["write", key, "1"]);
    }
    let note = "\nShowing 2 of 3. More: --limit N\n";
    for call in [&["list", "--limit", "2"][..], &["list", "--long", "--limit", "2"]] {
        let shown = scratch.run(call).success().stdout;
        assert!(shown.ends_with(note), "{shown}");
    }
    assert_eq!(scratch.json(["list", "--long", "--limit", "2"])["next"], "b");
    assert_eq!(scratch.json(["list", "--long", "--limit", "3"])["next"], json!(null));
    assert_eq!(scratch.run(["list", "--limit", "3"]).stdout, "a\nb\nc\n");
}

/// What damages a row.
mod of_a_file {
    use super::*;

    #[test]
    fn list_on_a_terminal_reads_only_the_values_that_it_shows() {
        let scratch = Scratch::new();
        let writes: Vec<_> =
            (100..160).map(|key| json!({"write": {"key": format!("k{key}"), "value": 1}})).collect();
        std::fs::write(scratch.path().join("many.json"), json!({"then": writes}).to_string()).unwrap();
        scratch.json(["txn", "--file", "many.json"]);
        // A value that cannot be read, after the last one that is shown.
        let database = rusqlite::Connection::open(scratch.database()).unwrap();
        database.execute_batch("UPDATE entry_versions SET version = -1 WHERE key = 'k159'").unwrap();
        let shown = scratch.on_terminal(80, ["list", "--long"]);
        assert!(shown.contains("Showing 50 of 60. More: --limit N"), "{shown}");
        assert!(!shown.contains("k159"), "{shown}");
    }
}
