use serde_json::json;

use crate::scratch::Scratch;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_the_keys];

fn human_output_matches_transcript() {
    transcript::check("memory promote");
}

fn json_has_the_keys() {
    let scratch = Scratch::new();
    scratch.json(["memory", "remember", "Never edit schema.sql", "--key", "schema"]);
    let promoted = scratch.json(["memory", "promote", "schema", "--to", "collective"]);
    assert_eq!((&promoted["moved"], &promoted["keys"]), (&json!(1), &json!(["schema"])));
    assert_eq!(scratch.run(["read", "schema", "--scope", "memory:short-term"]).code, 3);
}
