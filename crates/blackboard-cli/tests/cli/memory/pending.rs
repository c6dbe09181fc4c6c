use serde_json::json;

use crate::scratch::Scratch;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_the_records];

fn human_output_matches_transcript() {
    transcript::check("memory pending");
}

fn json_has_the_records() {
    let scratch = Scratch::new();
    scratch.json(["memory", "define", "notes", "--max-entries", "1"]);
    for key in ["a", "b"] {
        scratch.json(["memory", "remember", key, "--key", key, "--level", "notes"]);
    }
    let pending = scratch.json(["memory", "pending"]);
    let batch = &pending["batches"][0];
    assert_eq!(
        (&batch["level"], &batch["into"], &batch["reason"]),
        (&json!("notes"), &json!("notes"), &json!("entries"))
    );
    assert_eq!((&batch["records"][0]["key"], &batch["records"][1]["text"]), (&json!("a"), &json!("b")));
}
