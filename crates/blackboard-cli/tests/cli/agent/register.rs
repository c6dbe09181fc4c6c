use blackboard::Code;

use crate::scratch::Scratch;
use crate::shapes::{AGENT, is_object};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_agent,
    an_option_is_not_taken_for_a_missing_name,
];

fn human_output_matches_transcript() {
    transcript::check("agent register");
}

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

fn an_option_is_not_taken_for_a_missing_name() {
    let scratch = Scratch::new();
    let refused = scratch.run(["agent", "register", "--name", "--project", "--json"]).refused(Code::Usage);
    assert_eq!(refused["error"], "--name needs a value");
    assert_eq!(refused["hint"], "for a name that begins with -, write --name=--project");
    let shell = scratch.run(["agent", "register", "--name", "--shell"]);
    assert!(shell.stderr.contains("error: --name needs a value"), "{shell:?}");
    assert!(shell.stdout.contains("false"), "{shell:?}");
    assert_eq!(scratch.json(["agent", "register", "--name=--shell"])["agent_name"], "--shell");
}
