use crate::scratch::Scratch;
use crate::shapes::{WORK_ITEM, is_object};
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_tells_whether_the_item_was_released,];

fn human_output_matches_transcript() {
    transcript::check("work release");
}

fn json_tells_whether_the_item_was_released() {
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
