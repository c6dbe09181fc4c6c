use blackboard::Code;
use serde_json::json;

use crate::scratch::Scratch;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_the_summary, old_batches_are_refused];

fn human_output_matches_transcript() {
    transcript::check("memory compact");
}

fn two_records() -> Scratch {
    let scratch = Scratch::new();
    for key in ["a", "b"] {
        scratch.json(["memory", "remember", key, "--key", key]);
    }
    scratch
}

const COMPACT: [&str; 6] = ["memory", "compact", "--level", "short-term", "--summary", "a and b"];

fn json_has_the_summary() {
    let scratch = two_records();
    let compacted = scratch.json(COMPACT.iter().chain(&["--of", "a", "b"]));
    assert_eq!((&compacted["replaced"], &compacted["level"]), (&json!(2), &json!("short-term")));
    let history = scratch.json(["history", "a", "--scope", "memory:short-term"]);
    assert!(history.to_string().contains("\"value\":\"a\""), "{history}");
}

fn old_batches_are_refused() {
    let scratch = two_records();
    let old = COMPACT.iter().chain(&["--at", "1", "--json", "--of", "a", "b"]);
    let refused = scratch.run(old).refused(Code::Conflict);
    assert!(refused["hint"].as_str().unwrap().contains("read the batch again"), "{refused}");
}
