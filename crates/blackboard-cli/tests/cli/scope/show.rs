use serde_json::{Value, json};

use crate::scratch::Scratch;
use crate::shapes::{SCOPE, is_object};
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_the_scope,];

fn human_output_matches_transcript() {
    transcript::check("scope show");
}

fn json_has_the_scope() {
    let scratch = Scratch::new();
    scratch.json(["write", "a", "1"]);
    let shown = scratch.json(["scope", "show", "default"]);
    is_object(&shown, SCOPE);
    assert_eq!((&shown["entries"], &shown["visibility"]), (&json!(1), &json!("global")));
    assert_eq!(shown["created_at"], Value::Null);
}
