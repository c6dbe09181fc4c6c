use crate::scratch::Scratch;
use crate::shapes::{AGENT, is_object};
use crate::transcript;

#[test]
fn human_output_matches_transcript() {
    transcript::check("agent register");
}

#[test]
fn json_has_the_agent() {
    let scratch = Scratch::new();
    let agent = scratch.json([
        "agent",
        "register",
        "--name",
        "Ivy",
        "--session-hint",
        "a",
        "--metadata",
        "{\"a\": 1}",
    ]);
    is_object(&agent, AGENT);
    assert_eq!((agent["metadata"]["a"].as_i64(), agent["resumed"].as_bool()), (Some(1), Some(false)));
    assert_eq!(agent["pid"], std::process::id());
    let again = scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "a"]);
    assert_eq!((&again["session_id"], again["resumed"].as_bool()), (&agent["session_id"], Some(true)));
}
