use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

#[test]
fn people_see_what_the_transcript_shows() {
    transcript::check("agent heartbeat");
}

#[test]
fn programs_get_what_was_recorded() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    let beat = ["agent", "heartbeat", "--session", "ivy", "--progress", "Half", "--op", "one"];
    let first = scratch.json(beat);
    is_object(
        &first,
        &["session_id", "agent_name", "status", "last_seen_at", "progress", "recovered", "lost"],
    );
    assert_eq!(scratch.json(beat)["revision"], first["revision"], "one operation counts once");
    let told = scratch.json(["observe", "--since", "1h", "--filter", "heartbeat_received"]);
    assert_eq!(told["count"], 1);
}
