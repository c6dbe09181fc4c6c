use crate::scratch::Scratch;
use crate::shapes::{WORK_ITEM, is_object};
use crate::transcript;

#[test]
fn human_output_matches_transcript() {
    transcript::check("work unblock");
}

#[test]
fn json_has_the_remaining_blockers() {
    let scratch = Scratch::new();
    scratch.json(["work", "create", "item", "--title", "Item", "--blocked-by", "one,two"]);
    let less = scratch.json(["work", "unblock", "item", "--blocked-by", "one"]);
    is_object(&less, WORK_ITEM);
    assert_eq!(
        (&less["open_blockers"], less["unblocked"].as_bool()),
        (&serde_json::json!(["two"]), Some(false))
    );
    assert_eq!(scratch.json(["work", "unblock", "item"])["unblocked"], true);
}
