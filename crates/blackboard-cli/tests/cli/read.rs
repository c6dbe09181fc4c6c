use serde_json::{Value, json};
use testkit::process::RunToEnd as _;

use crate::scratch::{Output, Scratch};
use crate::shapes::{ENTRY, has_fields};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_entry_itself,
    missing_key_prints_exactly_null_and_no_error,
    scope_comes_from_the_option_or_the_environment,
    read_shows_an_entry_as_of_a_revision,
];

fn human_output_matches_transcript() {
    transcript::check("read");
}

fn json_has_the_entry_itself() {
    let scratch = Scratch::new();
    let call = ["write", "task:a", r#"{"b": 1, "a": 2}"#, "--ttl", "3600", "--agent", "orchestrator"];
    scratch.json(call.into_iter().chain(["--tag", "x,y", "--metadata", r#"{"m": 1}"#]));
    let output = scratch.run(["read", "task:a", "--json"]).success();
    let entry = output.json();
    has_fields(&entry, ENTRY);
    assert_eq!(entry.get("ok"), None);
    assert_eq!((&entry["source_agent"], &entry["ttl"]), (&json!("orchestrator"), &json!(3600)));
    assert_eq!((&entry["timestamp"], &entry["tags"]), (&entry["updated_at"], &json!(["x", "y"])));
    assert_eq!(entry["metadata"], json!({"m": 1}));
    // In this order, and the value unchanged.
    assert!(output.stdout.starts_with(r#"{"key":"task:a","value":{"b": 1, "a": 2},"source_agent":"#));
    assert_eq!(scratch.json(["read", "task:a", "--value"]), json!({"a": 2, "b": 1}));
}

fn missing_key_prints_exactly_null_and_no_error() {
    let scratch = Scratch::new();
    scratch.json(["write", "over", "1", "--ttl", "1h"]);
    scratch.let_time_pass();
    for key in ["never:there", "over"] {
        for options in [&[][..], &["--json"], &["--value"], &["--value", "--json"]] {
            let Output { code, stdout, stderr } = scratch.run(["read", key].iter().chain(options));
            assert_eq!((code, stdout.as_str(), stderr.as_str()), (3, "null\n", ""), "{key} {options:?}");
        }
    }
    // A null that is there is something else.
    scratch.json(["write", "there", "null"]);
    assert_eq!(scratch.run(["read", "there", "--value"]).success().stdout, "null\n");
    assert_eq!(scratch.json(["read", "there"])["value"], Value::Null);
    assert_ne!(scratch.run(["read", "there"]).success().stdout, "null\n");
}

fn scope_comes_from_the_option_or_the_environment() {
    let scratch = Scratch::new();
    for scope in ["default", "team-1", "team-2"] {
        scratch.json(["write", "key", &format!("\"{scope}\""), "--scope", scope]);
    }
    let read = |arguments: &[&str], variable: Option<&str>| {
        let mut command = scratch.command(["read", "key", "--value"].iter().chain(arguments));
        command.envs(variable.map(|scope| ("BLACKBOARD_SCOPE", scope)));
        Output::of(command.run_to_end()).success().stdout
    };
    assert_eq!(read(&[], None), "\"default\"\n");
    assert_eq!(read(&[], Some("team-1")), "\"team-1\"\n");
    assert_eq!(read(&["--scope", "team-2"], Some("team-1")), "\"team-2\"\n");
    assert_eq!(read(&[], Some("")), "\"default\"\n", "an empty variable counts as unset");
}

fn read_shows_an_entry_as_of_a_revision() {
    let scratch = Scratch::new();
    let revision = |value: &Value| value["revision"].to_string();
    let first = revision(&scratch.json(["write", "key", "1"]));
    let second = revision(&scratch.json(["write", "key", "2"]));
    let deleted = revision(&scratch.json(["delete", "key"]));
    let as_of = |at: &str| scratch.run(["read", "key", "--value", "--as-of", at]);
    assert_eq!(as_of(&first).success().stdout, "1\n");
    assert_eq!(as_of(&second).success().stdout, "2\n");
    assert_eq!((as_of(&deleted).code, as_of(&deleted).stdout.as_str()), (3, "null\n"));
    assert_eq!(as_of("0").code, 3);
}
