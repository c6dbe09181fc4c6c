use crate::scratch::Scratch;
use crate::shapes::{WORK_ITEM, is_object};
use crate::transcript;

#[test]
fn people_see_what_the_transcript_shows() {
    transcript::check("work reset");
}

#[test]
fn programs_get_what_it_was_before() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["work", "claim", "item", "--title", "Item", "--session", "ivy"]);
    let reset = scratch.json(["work", "reset", "item"]);
    is_object(&reset, WORK_ITEM);
    assert_eq!(
        (reset["previous_status"].as_str(), reset["status"].as_str()),
        (Some("claimed"), Some("available"))
    );
    assert_eq!(reset["previously_held_by"], "Ivy");
}
