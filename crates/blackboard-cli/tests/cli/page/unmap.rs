use serde_json::json;

use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_the_outcome,];

fn human_output_matches_transcript() {
    transcript::check("page unmap");
}

fn json_has_the_outcome() {
    let scratch = Scratch::new();
    scratch.json(["write", "a", "1"]);
    scratch.json(["page", "map", "default"]);
    let unmapped = scratch.json(["page", "unmap", "default"]);
    is_object(&unmapped, &["outcome", "scope", "pages", "revision"]);
    assert_eq!((&unmapped["outcome"], &unmapped["pages"]), (&json!("unmapped"), &json!(1)));
    let again = scratch.json(["page", "unmap", "default"]);
    assert_eq!((&again["outcome"], &again["revision"]), (&json!("not_mapped"), &json!(null)));
}
