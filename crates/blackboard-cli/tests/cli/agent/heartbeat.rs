use crate::scratch::{Scratch, with_dying_process};
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_what_was_recorded,
    a_retry_prints_what_the_first_call_printed,
    json_has_what_a_stale_session_lost,
];

fn human_output_matches_transcript() {
    transcript::check("agent heartbeat");
}

fn json_has_what_was_recorded() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    let beat = ["agent", "heartbeat", "--session", "ivy", "--progress", "Half", "--op", "one"];
    let first = scratch.json(beat);
    is_object(
        &first,
        &[
            "session_id",
            "agent_name",
            "status",
            "last_seen_at",
            "progress",
            "recovered",
            "lost",
            "lost_leases",
        ],
    );
    assert_eq!(scratch.json(beat)["revision"], first["revision"], "one operation counts once");
    let told = scratch.json(["observe", "--since", "1h", "--filter", "heartbeat_received"]);
    assert_eq!(told["count"], 1);
}

fn a_retry_prints_what_the_first_call_printed() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    let beat = ["agent", "heartbeat", "--session", "ivy", "--progress", "<b>Half</b>", "--op", "one"];
    let first = scratch.run(beat).success();
    assert!(first.stderr.contains("progress was changed: \"Half\""), "{first:?}");
    let retried = scratch.run(beat).success();
    assert_eq!((retried.stdout, retried.stderr), (first.stdout, first.stderr));
    let json = scratch.json(beat);
    assert_eq!((&json["filtered"], json.get("stored")), (&serde_json::json!(["progress"]), None));
}

fn json_has_what_a_stale_session_lost() {
    let scratch = Scratch::new();
    with_dying_process(|pid| {
        scratch.json(["agent", "register", "--name", "Oak", "--session-hint", "oak", "--pid", pid])
    });
    scratch.json(["work", "claim", "item", "--title", "Item", "--session", "oak"]);
    scratch.json(["write", "signal:oak", "1", "--lease", "--session", "oak"]);
    let swept = scratch.json(["sweep", "--threshold", "0"]);
    let lease = serde_json::json!([{"scope": "default", "key": "signal:oak"}]);
    assert_eq!(swept["staleAgents"][0]["releasedLeases"], lease);
    let beat = scratch.json(["agent", "heartbeat", "--session", "oak"]);
    assert_eq!((&beat["lost"], &beat["lost_leases"]), (&serde_json::json!(["item"]), &lease));
    assert_eq!(scratch.json(["list"]), serde_json::json!([]));
}
