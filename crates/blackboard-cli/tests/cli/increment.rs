use serde_json::json;

use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

#[test]
fn human_output_matches_transcript() {
    transcript::check("increment");
}

#[test]
fn json_has_the_number_that_this_call_produced() {
    let scratch = Scratch::new();
    let first = scratch.json(["increment", "counter", "--by", "5", "--op", "five"]);
    is_object(&first, &["scope", "key", "version", "revision", "value"]);
    assert_eq!(first["value"], 5);
    assert_eq!(scratch.json(["increment", "counter"])["value"], 6);
    // A retry returns the same number, although other calls counted meanwhile.
    assert_eq!(scratch.json(["increment", "counter", "--by", "5", "--op", "five"])["value"], 5);
    assert_eq!(scratch.json(["read", "counter"])["value"], json!(6));
}
