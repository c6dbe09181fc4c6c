use crate::scratch::Scratch;
use crate::shapes::{AGENT, WORK_ITEM, is_object};
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_all_details_of_an_agent,];

fn human_output_matches_transcript() {
    transcript::check("agent show");
}

fn json_has_all_details_of_an_agent() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["work", "claim", "item", "--title", "Item", "--session", "ivy"]);
    let agent = scratch.json(["agent", "show", "ivy"]);
    is_object(&agent, AGENT);
    is_object(&scratch.json(["work", "status", "item"]), WORK_ITEM);
    assert_eq!(
        (agent["process"].as_str(), agent["work_items"][0]["item_id"].as_str()),
        (Some("alive"), Some("item"))
    );
}
