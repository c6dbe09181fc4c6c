use blackboard::Code;
use serde_json::json;

use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_the_event, types_of_the_board_are_refused,];

fn human_output_matches_transcript() {
    transcript::check("work append-event");
}

fn json_has_the_event() {
    let scratch = Scratch::new();
    scratch.json(["work", "create", "item", "--title", "Item"]);
    let call = ["work", "append-event", "item", "--event-type", "built", "--summary", "Build 7"];
    let appended = scratch.json(call.into_iter().chain(["--metadata", r#"{"build": 7}"#]));
    is_object(&appended, &["item_id", "event_id", "event_type", "summary", "at"]);
    assert_eq!((&appended["item_id"], &appended["event_type"]), (&json!("item"), &json!("built")));
    let history = scratch.json(["work", "status", "item"])["history"].clone();
    let last = &history[1];
    assert_eq!((&last["id"], &last["metadata"]), (&appended["event_id"], &json!({"build": 7})));
    let observed = scratch.json(["observe", "--since", "1h"]);
    assert!(observed["items"].as_array().unwrap().contains(last), "{observed}");
}

fn types_of_the_board_are_refused() {
    let scratch = Scratch::new();
    scratch.json(["work", "create", "item", "--title", "Item"]);
    for event_type in ["work_claimed", "Built", "", "a b"] {
        let call = ["work", "append-event", "item", "--event-type", event_type, "--summary", "x", "--json"];
        scratch.run(call).refused(Code::InvalidValue);
    }
}
