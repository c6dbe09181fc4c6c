use serde_json::json;

use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, append_keeps_existing_values_unchanged,];

fn human_output_matches_transcript() {
    transcript::check("append");
}

fn append_keeps_existing_values_unchanged() {
    let scratch = Scratch::new();
    scratch.json(["write", "list", "[1.0, 2]", "--tag", "x", "--ttl", "1h"]);
    let before = scratch.json(["read", "list"]);
    let written = scratch.json(["append", "list", "-3", "--op", "a"]);
    is_object(&written, &["scope", "key", "version", "revision", "created", "expires_at"]);
    scratch.json(["append", "list", "-3", "--op", "a"]);
    assert_eq!(scratch.run(["read", "list", "--value"]).stdout, "[1.0, 2,-3]\n");
    let after = scratch.json(["read", "list"]);
    assert_eq!((&after["tags"], &after["expires_at"]), (&json!(["x"]), &before["expires_at"]));
}
