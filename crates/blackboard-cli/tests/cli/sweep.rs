use crate::scratch::{Scratch, with_dying_process};
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_shape_of_the_proposal,
    agents_whose_process_has_ended_are_named_before_the_threshold,
];

fn human_output_matches_transcript() {
    transcript::check("sweep");
}

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

fn agents_whose_process_has_ended_are_named_before_the_threshold() {
    let scratch = Scratch::new();
    let registered = with_dying_process(|pid| {
        scratch.json(["agent", "register", "--name", "Oak", "--session-hint", "oak", "--pid", pid])
    });
    scratch.json(["work", "claim", "item", "--title", "Item", "--session", "oak"]);
    let oak = &registered["session_id"].as_str().unwrap()[..8];
    for call in [&["sweep", "--dry-run"][..], &["sweep"]] {
        let shown = scratch.run(call).success().stdout;
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[0], "No stale agents detected.");
        let gone = format!("  Gone: 1 agent whose process has ended (Oak ({oak}), no heartbeat for ");
        assert!(lines[1].starts_with(&gone), "{shown}");
        assert_eq!(lines[2], "        To release what it holds now: blackboard sweep --threshold 0");
    }
    // That command would mark a delegate stale too, which shares the running process of its parent.
    scratch.json(["agent", "register", "--name", "Elm", "--session-hint", "elm"]);
    scratch.json(["agent", "register", "--parent", "elm", "--session-hint", "delegate"]);
    let shown = scratch.run(["sweep"]).success().stdout;
    assert!(shown.ends_with(&format!(" now: blackboard agent deregister --session {oak}\n")), "{shown}");
    scratch.run(["agent", "deregister", "--session", oak]).success();
    assert_eq!(scratch.run(["sweep"]).success().stdout, "No stale agents detected.\n");
}
