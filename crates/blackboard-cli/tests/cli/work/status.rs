use crate::scratch::Scratch;
use crate::shapes::{EVENT, WORK_ITEM, is_object};
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_an_item_with_its_history,];

fn human_output_matches_transcript() {
    transcript::check("work status");
}

fn json_has_an_item_with_its_history() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["work", "claim", "item", "--title", "Item", "--session", "ivy"]);
    let status = scratch.json(["work", "status", "--id", "item"]);
    is_object(&status, WORK_ITEM);
    for field in EVENT {
        assert!(status["history"][1].get(field).is_some(), "{field} is missing: {status}");
    }
    assert_eq!(status["history"][1]["event_type"], "work_claimed");
}
