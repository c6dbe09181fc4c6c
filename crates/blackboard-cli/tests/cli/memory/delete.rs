use serde_json::json;

use crate::scratch::Scratch;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_the_keys];

fn human_output_matches_transcript() {
    transcript::check("memory delete");
}

fn json_has_the_keys() {
    let scratch = Scratch::new();
    scratch.json(["memory", "remember", "wrong", "--key", "a"]);
    let deleted = scratch.json(["memory", "delete", "a"]);
    assert_eq!((&deleted["deleted"], &deleted["keys"]), (&json!(1), &json!(["a"])));
}
