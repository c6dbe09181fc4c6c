use crate::scratch::Scratch;
use crate::shapes::{WORK_ITEM, is_object};
use crate::transcript;

#[test]
fn people_see_what_the_transcript_shows() {
    transcript::check("work unblock");
}

#[test]
fn programs_get_what_it_still_waits_for() {
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
