use crate::scratch::Scratch;
use crate::shapes::{WORK_ITEM, is_object};
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_the_previous_status,];

fn human_output_matches_transcript() {
    transcript::check("work reset");
}

fn json_has_the_previous_status() {
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
