use crate::scratch::Scratch;
use crate::shapes::{WORK_ITEM, is_object};
use crate::transcript;

#[test]
fn people_see_what_the_transcript_shows() {
    transcript::check("work create");
}

#[test]
fn programs_get_the_item() {
    let scratch = Scratch::new();
    let call = ["work", "create", "item", "--title", "Item", "--blocked-by", "later", "--metadata", "{}"];
    let item = scratch.json(call);
    is_object(&item, WORK_ITEM);
    assert_eq!((item["created"].as_bool(), item["status"].as_str()), (Some(true), Some("blocked")));
    assert_eq!(item["missing_blockers"], serde_json::json!(["later"]));
    assert_eq!((item["source"].as_str(), item["priority"].as_str()), (Some("local"), Some("P2")));
    assert_eq!(scratch.json(call)["created"], false);
}
