//! A server that has lost the board, or has another one under its name.

use blackboard::Code;
use serde_json::json;
use testkit::process::RunToEnd as _;

use super::Shared;
use crate::mcp::client::{Client, Generation};
use crate::scratch::{Output, Scratch};

impl Shared {
    /// The server loses its data.
    fn flush(&self) {
        assert_eq!(self.server.command(&["FLUSHALL"]), "+OK\r\n");
    }

    fn has_no_keys(&self) -> bool {
        self.server.command(&["DBSIZE"]) == ":0\r\n"
    }

    /// A call on another machine.
    fn run_elsewhere(&self, machine: &Scratch, call: &[&str]) -> Output {
        Output::of(machine.command(call).env("BLACKBOARD_DB", self.url()).run_to_end())
    }
}

#[test]
fn lost_board_is_reported_by_every_command_until_it_is_created_by_init() {
    let Some(shared) = Shared::new() else { return };
    for value in ["1", "2", "3"] {
        shared.json(&["write", "a", value]);
    }
    shared.flush();
    let calls: [&[&str]; 8] = [
        &["write", "a", "new"],
        &["write", "a", "new", "--if-revision", "3"],
        &["read", "a"],
        &["status"],
        &["agent", "register", "--name", "Ivy"],
        &["work", "list"],
        &["observe", "--follow"],
        &["sweep"],
    ];
    for call in calls {
        let refused = shared.run(&[call, &["--json"]].concat());
        refused.refused(Code::BoardNotFound);
        assert_eq!(refused.code, 3, "{call:?}");
        let hint = refused.json()["hint"].as_str().unwrap().to_owned();
        assert!(hint.contains("blackboard --db 'redis+unix:") && hint.ends_with(" init"), "{hint}");
    }
    assert!(shared.has_no_keys(), "no call created a board");
    assert_eq!(shared.json(&["init"])["created"], true);
    shared.json(&["write", "a", "new"]);
    assert_eq!(shared.json(&["read", "a"])["revision"], 1);
}

#[test]
fn board_that_replaced_another_is_refused_until_init_confirms_it() {
    let Some(shared) = Shared::new() else { return };
    shared.json(&["write", "a", "1"]);
    shared.flush();
    // A machine that has never used the board creates it.
    let other = Scratch::new();
    shared.run_elsewhere(&other, &["write", "a", "2"]).success();
    for call in [["read", "a", "--json"].as_slice(), &["write", "a", "3", "--json"]] {
        let refused = shared.run(call);
        refused.refused(Code::BoardNotFound);
        assert!(refused.json()["error"].as_str().unwrap().contains("another board"), "{refused:?}");
    }
    assert_eq!(shared.json(&["init"])["created"], false);
    assert_eq!(shared.json(&["read", "a"])["value"], 2);
}

#[test]
fn board_that_comes_back_is_used_again() {
    let Some(shared) = Shared::new() else { return };
    shared.json(&["write", "a", "1"]);
    let [rows, index, log] = ["rows", "index", "log"].map(|key| format!("bb:{{team}}:{key}"));
    let rename = |from: &str, to: &str| assert_eq!(shared.server.command(&["RENAME", from, to]), "+OK\r\n");
    let keys = [&rows, &index, &log].map(|key| (key.clone(), format!("{key}:aside")));
    for (key, aside) in &keys {
        rename(key, aside);
    }
    shared.run(&["read", "a", "--json"]).refused(Code::BoardNotFound);
    for (key, aside) in &keys {
        rename(aside, key);
    }
    assert_eq!(shared.json(&["read", "a"])["value"], 1);
}

#[test]
fn lost_board_is_never_created_again_by_mcp() {
    let Some(shared) = Shared::new() else { return };
    let mut client = Client::speaking(Generation::Of2025, shared.command(&["mcp"]));
    client.call("entry_write", json!({"key": "fact", "value": 1}));
    shared.flush();
    for _ in 0..3 {
        client.refused("entry_write", json!({"key": "fact", "value": 2}), Code::BoardNotFound);
        client.refused("entry_read", json!({"key": "fact"}), Code::BoardNotFound);
    }
    assert!(shared.has_no_keys());
    shared.json(&["init"]);
    // The first call reports that the session is lost.
    client.refused("entry_write", json!({"key": "fact", "value": 2}), Code::BoardNotFound);
    client.call("entry_write", json!({"key": "fact", "value": 2}));
    assert_eq!(shared.json(&["read", "fact"])["value"], 2);
    client.end();
}

#[test]
fn lost_board_is_never_created_again_by_a_hook() {
    let Some(shared) = Shared::new() else { return };
    let start = |session: &str| {
        let input = json!({"session_id": session, "hook_event_name": "SessionStart", "source": "startup"});
        let mut command = shared.command(&["hook", "claude"]);
        command.env("BLACKBOARD_HOOK_DEADLINE", "20000");
        Output::fed(&mut command, input.to_string()).success();
    };
    start("ivy");
    shared.flush();
    start("oak");
    assert!(shared.has_no_keys());
    let log = shared.scratch.contents().into_iter().filter(|(path, ..)| path.ends_with("hook.log"));
    let log: String = log.map(|(_, _, text)| String::from_utf8(text).unwrap()).collect();
    assert!(log.contains("is gone"), "{log}");
}

#[test]
fn copy_to_a_place_that_has_lost_its_board_makes_the_copy_the_known_one() {
    let Some(shared) = Shared::new() else { return };
    shared.json(&["write", "a", "1"]);
    shared.flush();
    let file = Scratch::new();
    file.json(["write", "b", "2"]);
    let target = shared.url();
    shared.json(&["copy", file.location().as_str(), &target]);
    assert_eq!(shared.json(&["read", "b"])["value"], 2);
    shared.flush();
    shared.run(&["read", "b", "--json"]).refused(Code::BoardNotFound);
}
