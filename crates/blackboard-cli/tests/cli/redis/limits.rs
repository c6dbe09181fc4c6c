//! A server that does not answer keeps a call no longer than its limit.

use std::process::Stdio;
use std::time::{Duration, Instant};

use blackboard::Code;
use rustix::process::Signal;
use serde_json::json;
use testkit::process::wait_for;

use super::Shared;
use crate::mcp::client::{Client, Generation};

/// The limit of each call, and what a busy machine may add to it. The patience of a store is 15 s.
const LIMIT: &str = "2s";
const LONGEST: Duration = Duration::from_secs(9);

#[track_caller]
fn assert_shorter<T>(longest: Duration, what: &str, call: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let answer = call();
    let took = begun.elapsed();
    assert!(took < longest, "{what} took {took:?}");
    answer
}

#[test]
fn calls_that_wait_end_at_their_timeout_on_a_server_that_does_not_answer() {
    let Some(shared) = Shared::new() else { return };
    shared.json(&["agent", "register", "--name", "Ivy"]);
    shared.json(&["work", "create", "x", "--title", "Item"]);
    shared.server.signal(Signal::STOP);
    let calls: [&[&str]; 6] = [
        &["wait", "key", "--timeout", LIMIT, "--json"],
        &["call", "compliance", "1", "--timeout", LIMIT, "--json"],
        &["work", "wait", "x", "--timeout", LIMIT, "--json"],
        &["lock", "acquire", "deploy", "--wait", LIMIT, "--session", "Ivy", "--json"],
        &["lock", "run", "deploy", "--wait", LIMIT, "--json", "--", "true"],
        &["observe", "--follow", "--after", "0", "--timeout", LIMIT, "--json"],
    ];
    for call in calls {
        let refused = assert_shorter(LONGEST, call[0], || shared.run(call));
        refused.refused(Code::ServerUnavailable);
    }
    shared.server.signal(Signal::CONT);
}

#[test]
fn call_that_waits_ends_at_its_timeout_when_the_server_stops_to_answer() {
    let Some(shared) = Shared::new() else { return };
    shared.json(&["write", "other", "1"]);
    let mut waiting = shared.command(&["wait", "key", "--timeout", "4s", "--json"]);
    assert_shorter(Duration::from_secs(11), "wait", || {
        let mut child = waiting.stdout(Stdio::null()).spawn().unwrap();
        testkit::wait_until("a blocked connection", || (super::edges::blocked(&shared) == 1).then_some(()));
        shared.server.signal(Signal::STOP);
        assert!(!wait_for(&mut child).success());
    });
    shared.server.signal(Signal::CONT);
}

#[test]
fn wait_of_mcp_ends_at_its_timeout_on_a_server_that_does_not_answer() {
    let Some(shared) = Shared::new() else { return };
    let mut client = Client::speaking(Generation::Of2025, shared.command(&["mcp"]));
    client.call("entry_write", json!({"key": "other", "value": 1}));
    shared.server.signal(Signal::STOP);
    for arguments in [json!({"key": "key", "seconds": 2}), json!({"lock": "deploy", "seconds": 2})] {
        assert_shorter(LONGEST, "wait", || client.refused("wait", arguments, Code::ServerUnavailable));
    }
    shared.server.signal(Signal::CONT);
    client.end();
}

#[test]
fn run_whose_command_ended_while_the_server_does_not_answer_ends_within_its_patience_once() {
    let Some(shared) = Shared::new() else { return };
    shared.json(&["write", "other", "1"]);
    let longest = Duration::from_secs(27);
    let stop = format!("kill -STOP {}", shared.server.pid());
    for call in [["run", "--name", "Ivy"].as_slice(), &["lock", "run", "deploy"]] {
        let ran =
            assert_shorter(longest, call[0], || shared.run(&[call, &["--", "sh", "-c", &stop]].concat()));
        assert_eq!(ran.code, 0, "the exit code is that of the command: {ran:?}");
        assert!(ran.stderr.contains("does not answer"), "{ran:?}");
        shared.server.signal(Signal::CONT);
    }
}
