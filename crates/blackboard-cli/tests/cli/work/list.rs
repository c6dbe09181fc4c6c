use crate::scratch::Scratch;
use crate::shapes::{WORK_ITEM, is_list};
use crate::transcript;

#[test]
fn people_see_what_the_transcript_shows() {
    transcript::check("work list");
}

#[test]
fn programs_get_a_list_of_items() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["work", "claim", "item", "--title", "Item", "--session", "ivy"]);
    scratch.json(["work", "create", "urgent", "--title", "Urgent", "--priority", "P1"]);
    let items = scratch.json(["work", "list", "--status", "available,claimed"]);
    is_list(&items, WORK_ITEM);
    assert_eq!((items["items"][0]["item_id"].as_str(), items["count"].as_u64()), (Some("urgent"), Some(2)));
}
