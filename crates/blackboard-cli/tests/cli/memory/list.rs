use serde_json::json;

use crate::scratch::Scratch;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_a_list_of_levels];

fn human_output_matches_transcript() {
    transcript::check("memory list");
}

fn json_has_a_list_of_levels() {
    let scratch = Scratch::new();
    assert_eq!(scratch.json(["memory", "list"])["count"], 0);
    scratch.json(["memory", "define"]);
    let listed = scratch.json(["memory", "list"]);
    assert_eq!((&listed["count"], &listed["items"][0]["level"]), (&json!(6), &json!("collective")));
}
