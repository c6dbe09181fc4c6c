use crate::scratch::Scratch;
use crate::shapes::{WORK_ITEM, is_object};
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_the_blockers,];

fn human_output_matches_transcript() {
    transcript::check("work block");
}

fn json_has_the_blockers() {
    let scratch = Scratch::new();
    scratch.json(["work", "create", "item", "--title", "Item"]);
    let blocked = scratch.json(["work", "block", "item", "--blocked-by", "gh:a/b#1,other"]);
    is_object(&blocked, WORK_ITEM);
    assert_eq!(blocked["open_blockers"], serde_json::json!(["gh:a/b#1", "other"]));
    assert_eq!(blocked["blocked_by"], "gh:a/b#1");
}
