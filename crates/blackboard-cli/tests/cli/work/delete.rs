use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_what_was_deleted,];

fn human_output_matches_transcript() {
    transcript::check("work delete");
}

fn json_has_what_was_deleted() {
    let scratch = Scratch::new();
    scratch.json(["work", "create", "item", "--title", "Item"]);
    scratch.json(["work", "create", "later", "--title", "Later", "--blocked-by", "item"]);
    let deleted = scratch.json(["work", "delete", "item", "--force"]);
    is_object(&deleted, &["item_id", "title", "previous_status"]);
    assert_eq!(deleted["unblocked"], serde_json::json!(["later"]));
}
