use crate::scratch::Scratch;
use crate::shapes::{WORK_ITEM, is_object};
use crate::transcript;

#[test]
fn people_see_what_the_transcript_shows() {
    transcript::check("work block");
}

#[test]
fn programs_get_what_it_waits_for() {
    let scratch = Scratch::new();
    scratch.json(["work", "create", "item", "--title", "Item"]);
    let blocked = scratch.json(["work", "block", "item", "--blocked-by", "gh:a/b#1,other"]);
    is_object(&blocked, WORK_ITEM);
    assert_eq!(blocked["open_blockers"], serde_json::json!(["gh:a/b#1", "other"]));
    assert_eq!(blocked["blocked_by"], "gh:a/b#1");
}
