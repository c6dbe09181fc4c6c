//! Configuration and environment: errors in them are reported on stderr and stop no command. The configuration of a project
//! is beside the file of its board.

use std::fs;
use std::time::Duration;

use testkit::process::RunToEnd as _;

use crate::scratch::{Output, Scratch, with_dying_process};

testkit::on_each_engine![
    bad_value_is_reported_with_its_file_key_and_range_on_stderr_only,
    a_threshold_from_the_environment_takes_effect,
    a_variable_outside_its_range_is_named_and_ignored,
    agent_without_a_name_gets_the_configured_one,
];

fn configured(scratch: &Scratch, content: &str) {
    let home = scratch.path().join(".pai/blackboard");
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("config.json"), content).unwrap();
}

fn bad_value_is_reported_with_its_file_key_and_range_on_stderr_only() {
    for (content, expected) in [
        (
            r#"{"heartbeat": {"staleThresholdSeconds": 0}}"#,
            ["heartbeat.staleThresholdSeconds", "1 to 604800"],
        ),
        (r#"{"database": {"durability": "perhaps"}}"#, ["database.durability", "normal or full"]),
        (r#"{"webServer": {"host": "0.0.0.0"}}"#, ["webServer.host", "loopback"]),
        (r#"{"staleTreshold": 5}"#, ["staleTreshold", "staleThreshold"]),
        ("{", ["config.json", "not valid JSON"]),
    ] {
        let scratch = Scratch::new();
        configured(&scratch, content);
        let output = scratch.run(["status", "--json"]).success();
        output.json();
        assert!(output.stderr.starts_with("warning: "), "{output:?}");
        for words in expected.iter().chain(&["config.json"]) {
            assert!(output.stderr.contains(words), "{words} is missing: {output:?}");
        }
        assert_eq!(output.stderr.lines().count(), 1, "said once: {output:?}");
    }
}

#[test]
fn the_project_can_set_thresholds_but_no_path() {
    let scratch = Scratch::new();
    scratch.run(["init"]).success();
    let file = scratch.path().join(".blackboard/config.json");
    fs::write(&file, r#"{"database": {"operatorPath": "/etc/board.db"}}"#).unwrap();
    let output = scratch.run(["status", "--json"]).success();
    assert_eq!(output.json()["database"], scratch.path().join(".blackboard/local.db").to_str().unwrap());
    assert!(output.stderr.contains("database.operatorPath"), "{output:?}");
}

fn a_threshold_from_the_environment_takes_effect() {
    let scratch = Scratch::new();
    let session = with_dying_process(|pid| {
        scratch.json(["agent", "register", "--name", "Oak", "--pid", pid])["session_id"].clone()
    });
    // As if its last heartbeat was ten seconds ago.
    scratch.change_agents(|agent, now| agent.last_seen_at = now.minus(Duration::from_secs(10)));
    let patient = Output::of(scratch.command(["agent", "list", "--json"]).run_to_end()).success();
    assert_eq!(patient.json()["count"], 1);
    let mut command = scratch.command(["agent", "list", "--all", "--json"]);
    let impatient = Output::of(command.env("BLACKBOARD_STALE_THRESHOLD", "5").run_to_end()).success();
    assert_eq!(impatient.json()["items"][0]["status"], "stale", "{session}");
    assert_eq!(impatient.stderr, "", "JSON output has no note of the sweep");
}

fn a_variable_outside_its_range_is_named_and_ignored() {
    for (name, range) in [
        ("BLACKBOARD_STALE_THRESHOLD", "1 to 604800"),
        ("BLACKBOARD_HEARTBEAT_INTERVAL", "1 to 86400"),
        ("BLACKBOARD_PRUNE_AFTER", "3600 to"),
    ] {
        for value in ["0", "-1", "soon", "99999999999999999999"] {
            let output = Scratch::new().command(["status", "--json"]).env(name, value).run_to_end();
            let output = Output::of(output).success();
            output.json();
            assert!(output.stderr.contains(name) && output.stderr.contains(range), "{output:?}");
        }
    }
}

fn agent_without_a_name_gets_the_configured_one() {
    let scratch = Scratch::new();
    configured(&scratch, r#"{"agent": {"name": "Ivy"}}"#);
    assert_eq!(scratch.json(["agent", "register"])["agent_name"], "Ivy");
    assert_eq!(scratch.json(["agent", "register", "--name", "Oak"])["agent_name"], "Oak");
}
