use crate::scratch::Scratch;
use crate::shapes::{PROJECT, is_object};
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_what_was_removed,];

fn human_output_matches_transcript() {
    transcript::check("project remove");
}

fn json_has_what_was_removed() {
    let scratch = Scratch::new();
    scratch.json(["project", "register", "pai", "--name", "PAI"]);
    scratch.json(["work", "create", "item", "--title", "Item", "--project", "pai"]);
    let removed = scratch.json(["project", "remove", "pai", "--force"]);
    is_object(&removed, PROJECT);
    assert_eq!(removed["detached_items"], serde_json::json!(["item"]));
}
