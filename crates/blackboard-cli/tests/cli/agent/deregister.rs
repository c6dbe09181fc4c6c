use crate::scratch::Scratch;
use crate::shapes::{AGENT, is_object};
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_what_ended_and_what_was_released,];

fn human_output_matches_transcript() {
    transcript::check("agent deregister");
}

fn json_has_what_ended_and_what_was_released() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["work", "claim", "item", "--title", "Item", "--session", "ivy"]);
    scratch.json(["write", "signal:ivy", "1", "--lease", "--session", "ivy"]);
    let ended = scratch.json(["agent", "deregister", "ivy"]);
    is_object(&ended, AGENT);
    assert_eq!((ended["status"].as_str(), ended["released"][0].as_str()), (Some("completed"), Some("item")));
    assert_eq!(ended["leases"], serde_json::json!([{"scope": "default", "key": "signal:ivy"}]));
    assert_eq!(scratch.json(["list"]), serde_json::json!([]));
    assert_eq!(scratch.json(["agent", "deregister", "ivy"])["already_ended"], true);
}
