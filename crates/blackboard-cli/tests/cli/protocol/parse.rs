use blackboard::Code;

use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_the_values,];

fn human_output_matches_transcript() {
    transcript::check("protocol parse");
}

fn json_has_the_values() {
    let scratch = Scratch::new();
    let built = scratch.json(["protocol", "key", "AgentRun.event", "ns=\n", "id=", "name=100 %"]);
    let key = built["key"].as_str().unwrap();
    assert_eq!(key, "event:run:%0A:%:100 %25");
    let parsed = scratch.json(["protocol", "parse", "AgentRun", key]);
    is_object(&parsed, &["protocol", "message", "template", "key", "values"]);
    assert_eq!(parsed["values"], serde_json::json!({"ns": "\n", "id": "", "name": "100 %"}));
    let other = ["protocol", "parse", "GameState.state", "state:working_set:cluster", "--json"];
    scratch.run(other).refused(Code::ProtocolMismatch);
}
