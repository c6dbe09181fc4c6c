use crate::scratch::Scratch;
use crate::shapes::{WORK_ITEM, is_object};
use crate::transcript;

#[test]
fn people_see_what_the_transcript_shows() {
    transcript::check("work complete");
}

#[test]
fn programs_get_what_is_no_longer_blocked() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    let claim = ["work", "claim", "item", "--title", "Item", "--session", "ivy"];
    let fence = scratch.json(claim)["fence"].to_string();
    scratch.json(["work", "create", "later", "--title", "Later", "--blocked-by", "item"]);
    let call = ["work", "complete", "item", "--session", "ivy", "--fence", &fence];
    let completed = scratch.json(call);
    is_object(&completed, WORK_ITEM);
    assert_eq!(completed["unblocked"], serde_json::json!(["later"]));
    assert!(completed["claimed_by"].is_string() && completed["claimed_at"].is_string());
    assert_eq!(scratch.json(call)["already_completed"], true);
}
