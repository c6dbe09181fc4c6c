use serde_json::{Value, json};

use crate::scratch::Scratch;
use crate::shapes::{ENTRY, has_fields};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    snapshot_prints_the_same_object_with_and_without_json,
];

fn human_output_matches_transcript() {
    transcript::check("snapshot");
}

fn snapshot_prints_the_same_object_with_and_without_json() {
    let scratch = Scratch::new();
    for (key, value) in [("task:a", "{\"n\":\n1.0}"), ("quote\"d", "\"\u{202e}x\u{9b}\""), ("task:b", "null")]
    {
        scratch.json(["write", key, value]);
    }
    let programs = scratch.json(["snapshot"]);
    let people: Value = serde_json::from_str(&scratch.run(["snapshot"]).success().stdout).unwrap();
    assert_eq!(people, programs);
    let entries = programs.as_object().unwrap();
    assert_eq!(entries.keys().collect::<Vec<_>>(), ["quote\"d", "task:a", "task:b"]);
    for (key, entry) in entries {
        has_fields(entry, ENTRY);
        assert_eq!(entry["key"], **key);
        assert_eq!(*entry, scratch.json(["read", key]));
    }
    let some = scratch.json(["snapshot", "--pattern", "*:b"]);
    assert_eq!(some, json!({"task:b": entries["task:b"]}));
}
