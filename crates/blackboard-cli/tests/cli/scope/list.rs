use serde_json::json;

use crate::scratch::Scratch;
use crate::shapes::{SCOPE, is_list};
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_a_list_of_scopes,];

fn human_output_matches_transcript() {
    transcript::check("scope list");
}

fn json_has_a_list_of_scopes() {
    let scratch = Scratch::new();
    scratch.json(["scope", "create", "cache", "--max-entries", "9"]);
    scratch.json(["write", "a", "1"]);
    let scopes = scratch.json(["scope", "list"]);
    is_list(&scopes, SCOPE);
    assert_eq!(scopes["items"][0]["scope"], "cache");
    assert_eq!(
        (&scopes["items"][1]["scope"], &scopes["items"][1]["entries"]),
        (&json!("default"), &json!(1))
    );
    assert_eq!(scratch.json(["scope", "list", "--limit", "1"])["items"].as_array().map(Vec::len), Some(1));
}
