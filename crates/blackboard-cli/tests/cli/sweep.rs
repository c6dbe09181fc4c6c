use crate::scratch::{Scratch, with_dying_process};
use crate::shapes::is_object;
use crate::transcript;

#[test]
fn human_output_matches_transcript() {
    transcript::check("sweep");
}

#[test]
fn json_has_the_shape_of_the_proposal() {
    let scratch = Scratch::new();
    with_dying_process(|pid| {
        scratch.json(["agent", "register", "--name", "Oak", "--session-hint", "oak", "--pid", pid])
    });
    scratch.json(["work", "claim", "item", "--title", "Item", "--session", "oak"]);
    for (call, expected) in [
        (&["sweep", "--threshold", "0", "--dry-run"][..], 1),
        (&["sweep", "--threshold", "0"], 1),
        (&["sweep", "--threshold", "0"], 0),
    ] {
        let swept = scratch.json(call);
        is_object(&swept, &["staleAgents", "pidsVerified", "heartbeatsPruned"]);
        assert_eq!(swept["staleAgents"].as_array().map(Vec::len), Some(expected), "{call:?}");
        let is_dry = call.contains(&"--dry-run");
        assert_eq!(swept.get("dryRun").and_then(serde_json::Value::as_bool), is_dry.then_some(true));
        if expected == 1 {
            assert_eq!(swept["staleAgents"][0]["agentName"], "Oak");
            assert_eq!(swept["staleAgents"][0]["releasedItems"], serde_json::json!(["item"]));
        }
    }
}
