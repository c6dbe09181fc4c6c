use std::process::Stdio;

use blackboard::Code;
use testkit::process::RunToEnd as _;

use crate::scratch::{Output, Scratch};
use crate::shapes::{ENTRY, has_fields};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_entry_as_read_prints_it,
    wait_gets_a_later_write,
    only_a_write_after_the_given_revision_counts,
    expired_entry_does_not_end_a_wait,
];

fn human_output_matches_transcript() {
    transcript::check("wait");
}

fn json_has_the_entry_as_read_prints_it() {
    let scratch = Scratch::new();
    scratch.json(["write", "result:q4", r#"{"b": 1.0, "a": 2}"#, "--tag", "finance"]);
    let waited = scratch.run(["wait", "result:q4", "--json"]).success();
    has_fields(&waited.json(), ENTRY);
    assert_eq!(waited.stdout, scratch.run(["read", "result:q4", "--json"]).success().stdout);
    assert_eq!(scratch.run(["wait", "result:q4", "--value"]).success().stdout, "{\"b\": 1.0, \"a\": 2}\n");
}

fn wait_gets_a_later_write() {
    let scratch = Scratch::new();
    scratch.json(["write", "first", "0"]);
    let mut wait = scratch.command(["wait", "signal:ready", "--scope", "team", "--value"]);
    let waiting = wait.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    scratch.wait_until_followed();
    // Other keys and other scopes are of no interest.
    scratch.json(["write", "signal:ready", "0"]);
    scratch.json(["write", "other", "0", "--scope", "team"]);
    scratch.json(["write", "signal:ready", "1", "--scope", "team"]);
    let output = Output::of(waiting.run_to_end()).success();
    assert_eq!(output.stdout, "1\n");
}

fn only_a_write_after_the_given_revision_counts() {
    let scratch = Scratch::new();
    let first = scratch.json(["write", "config", "1"])["revision"].to_string();
    let again = ["wait", "config", "--after", &first, "--timeout", "10ms", "--json"];
    scratch.run(again).refused(Code::TimedOut);
    scratch.json(["write", "config", "2"]);
    assert_eq!(scratch.run(again).success().json()["value"], 2);
}

fn expired_entry_does_not_end_a_wait() {
    let scratch = Scratch::new();
    scratch.json(["write", "short", "1", "--ttl", "1h"]);
    scratch.let_time_pass();
    scratch.run(["wait", "short", "--timeout", "10ms", "--json"]).refused(Code::TimedOut);
}
