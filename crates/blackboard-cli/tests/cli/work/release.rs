use crate::scratch::Scratch;
use crate::shapes::{WORK_ITEM, is_object};
use crate::transcript;

#[test]
fn people_see_what_the_transcript_shows() {
    transcript::check("work release");
}

#[test]
fn programs_get_whether_it_was_released() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["work", "claim", "item", "--title", "Item", "--session", "ivy"]);
    let released = scratch.json(["work", "release", "item", "--session", "ivy"]);
    is_object(&released, WORK_ITEM);
    assert_eq!(
        (released["released"].as_bool(), released["status"].as_str()),
        (Some(true), Some("available"))
    );
    assert_eq!(scratch.json(["work", "release", "item", "--session", "ivy"])["released"], false);
}
