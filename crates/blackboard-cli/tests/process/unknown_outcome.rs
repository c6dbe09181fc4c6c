//! Retrying is safe: a caller that got no answer repeats the call, and it is applied once.

use std::io::{PipeReader, PipeWriter, Write, pipe};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use serde_json::Value;
use testkit::process::wait_for;

use crate::crowd::{end_of, kill, wait_until};
use crate::scale::{Chance, progress, size};
use crate::test_board::TestBoard;

testkit::on_each_engine![
    call_killed_between_commit_and_output_is_applied_once_after_a_retry,
    call_whose_reader_is_gone_is_applied_and_exits_with_0,
    call_whose_output_fails_reports_that_it_was_applied,
    call_killed_at_any_moment_is_applied_once_after_retries,
];

/// A call, the type of the event that it must leave once, and the part of its answer that a repeated call repeats.
struct Repeatable {
    call: &'static [&'static str],
    event: &'static str,
    same: &'static str,
}

/// The file of a transaction that moves one entry.
const MOVE: &str = "move.json";

/// Ordered so that each call can follow the previous one.
const CALLS: &[Repeatable] = &[
    Repeatable {
        call: &["agent", "register", "--name", "Oak", "--session-hint", "terminal-1"],
        event: "agent_registered",
        same: "session_id",
    },
    Repeatable {
        call: &["project", "register", "p", "--name", "P"],
        event: "project_registered",
        same: "revision",
    },
    Repeatable { call: &["work", "create", "a", "--title", "A"], event: "work_created", same: "revision" },
    Repeatable { call: &["work", "claim", "a"], event: "work_claimed", same: "fence" },
    Repeatable {
        call: &["agent", "heartbeat", "--progress", "half", "--op", "half-of-a"],
        event: "heartbeat_received",
        same: "revision",
    },
    Repeatable { call: &["lock", "acquire", "deploy"], event: "entry_written", same: "fence" },
    Repeatable { call: &["lock", "release", "deploy"], event: "entry_deleted", same: "name" },
    Repeatable { call: &["file", "reserve", "src/"], event: "entry_written", same: "elsewhere" },
    Repeatable { call: &["file", "release", "src/"], event: "entry_deleted", same: "released_by" },
    Repeatable {
        call: &["write", "fact", "1", "--ttl", "1h", "--op", "write-1"],
        event: "entry_written",
        same: "revision",
    },
    Repeatable {
        call: &["append", "list", "1", "--op", "append-1"],
        event: "entry_written",
        same: "revision",
    },
    Repeatable { call: &["increment", "count", "--op", "count-1"], event: "entry_written", same: "value" },
    Repeatable { call: &["txn", "--file", MOVE, "--op", "move-1"], event: "entry_deleted", same: "revision" },
    Repeatable { call: &["delete", "moved", "--op", "delete-1"], event: "entry_deleted", same: "revision" },
    Repeatable { call: &["purge", "moved", "--op", "purge-1"], event: "entry_purged", same: "revision" },
    Repeatable { call: &["clear", "li*", "--op", "clear-1"], event: "entry_deleted", same: "keys" },
    Repeatable { call: &["work", "release", "a"], event: "work_released", same: "revision" },
    Repeatable {
        call: &["work", "claim", "--id", "a", "--title", "A"],
        event: "work_claimed",
        same: "fence",
    },
    Repeatable { call: &["work", "complete", "a"], event: "work_completed", same: "revision" },
    Repeatable { call: &["agent", "deregister"], event: "agent_deregistered", same: "revision" },
];

fn call_killed_between_commit_and_output_is_applied_once_after_a_retry() {
    for Repeatable { call, event, same } in CALLS {
        let board = prepared(call);
        let before = board.count_of(event);
        let (_reader, stdout) = full_pipe();
        let mut command = command(&board, call);
        let mut child = command.stdout(stdout).stderr(Stdio::null()).spawn().unwrap();
        // It has committed, and cannot write its output.
        wait_until("the commit", || (board.count_of(event) > before).then_some(()));
        kill(child.id());
        assert_eq!(wait_for(&mut child).code(), None, "killed before it could end");

        let (first, again) = (answer(&board, call), answer(&board, call));
        assert_eq!(first[same], again[same], "{call:?}");
        assert_eq!(board.count_of(event), before + 1, "{call:?}");
        board.assert_sound();
    }
}

fn call_whose_reader_is_gone_is_applied_and_exits_with_0() {
    for Repeatable { call, event, same } in CALLS {
        let board = prepared(call);
        let before = board.count_of(event);
        let (reader, stdout) = pipe().unwrap();
        drop(reader);
        let ended = end_of(command(&board, call).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap());
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{call:?}");
        assert_eq!(board.count_of(event), before + 1, "{call:?}");

        let (first, again) = (answer(&board, call), answer(&board, call));
        assert_eq!(first[same], again[same], "{call:?}");
        assert_eq!(board.count_of(event), before + 1, "{call:?}");
    }
}

fn call_whose_output_fails_reports_that_it_was_applied() {
    let board = TestBoard::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let call = ["work", "create", "a", "--title", "A"];
    let ended = end_of(command(&board, &call).stdout(full).stderr(Stdio::piped()).spawn().unwrap());
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert!(ended.stderr.contains("every change was made; only the output was lost"), "{ended:?}");
    assert_eq!(board.count_of("work_created"), 1);
}

fn call_killed_at_any_moment_is_applied_once_after_retries() {
    let rounds = size(20, 1_000);
    let board = TestBoard::new();
    let session = board.session("Ivy");
    let transaction =
        r#"{"then": [{"write": {"key": "a", "value": 1}}, {"write": {"key": "b", "value": 1}}]}"#;
    std::fs::write(board.path().join(MOVE), transaction).unwrap();
    let (mut chance, mut kills) = (Chance::new(7), 0);
    for round in 1..=rounds {
        let (item, operation) = (format!("round-{round}"), format!("op-{round}"));
        for call in [
            &["work", "create", &item, "--title", "A"][..],
            &["work", "claim", &item],
            &["agent", "heartbeat", "--progress", "half", "--work-item", &item, "--op", &operation],
            &["work", "complete", &item],
            &["write", "fact", &operation, "--op", &format!("write-{operation}")],
            &["append", "list", &operation, "--op", &format!("append-{operation}")],
            &["increment", "count", "--op", &format!("count-{operation}")],
            &["txn", "--file", MOVE, "--op", &format!("move-{operation}")],
        ] {
            // Each attempt lives longer than the one before: on a busy machine no call answers within some milliseconds.
            let mut attempt = 1;
            while !lives_to_answer(&board, call, &session, chance.below(8_000) * attempt) {
                kills += 1;
                attempt += 1;
            }
        }
        progress("unknown-outcome, rounds", round, rounds);
    }
    for event in ["work_created", "work_claimed", "heartbeat_received", "work_completed"] {
        assert_eq!(board.count_of(event), rounds, "{event}");
    }
    assert_eq!(board.count_of("entry_written"), rounds * 5);
    for key in ["fact", "list", "count", "a", "b"] {
        assert_eq!(board.json(&["read", key])["version"], rounds, "{key}");
    }
    assert_eq!(board.json(&["read", "count"])["value"], rounds);
    let list: Vec<_> = (1..=rounds).map(|round| format!("op-{round}")).collect();
    assert_eq!(board.json(&["read", "list"])["value"], serde_json::json!(list));
    board.assert_sound();
    println!("unknown-outcome: {} calls, {kills} kills, each happened once", rounds * 8);
}

/// Whether a call that is killed after some microseconds has answered before.
fn lives_to_answer(board: &TestBoard, call: &[&str], session: &str, microseconds: usize) -> bool {
    let child = board.start(call.iter().chain(&["--session", session]));
    thread::sleep(Duration::from_micros(microseconds as u64));
    kill(child.id());
    let ended = end_of(child);
    assert_eq!(ended.stderr, "", "{call:?}");
    match ended.status.code() {
        Some(code) => assert_eq!(code, 0, "{call:?}: {ended:?}"),
        None => return false,
    }
    true
}

/// A board on which all calls before this one have been made.
fn prepared(call: &[&str]) -> TestBoard {
    let board = TestBoard::new();
    let transaction = r#"{"then": [{"write": {"key": "moved", "value": 1}}, {"delete": {"key": "fact"}}]}"#;
    std::fs::write(board.path().join(MOVE), transaction).unwrap();
    board.session("Ivy");
    for earlier in CALLS.iter().take_while(|earlier| earlier.call != call) {
        answer(&board, earlier.call);
    }
    board
}

fn answer(board: &TestBoard, call: &[&str]) -> Value {
    let ended = end_of(command(board, call).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{call:?} {ended:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

/// The call of the only session named Ivy.
fn command(board: &TestBoard, call: &[&str]) -> std::process::Command {
    let mut command = board.command(call.iter().chain(&["--json"]));
    let agents = board.json(&["agent", "list", "--all"]);
    let ivy = agents["items"].as_array().unwrap().iter().find(|agent| agent["agent_name"] == "Ivy");
    if let Some(session) = ivy.and_then(|agent| agent["session_id"].as_str()) {
        command.env("BLACKBOARD_SESSION_ID", session);
    }
    command
}

/// A full pipe that is not read.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = pipe().unwrap();
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    while writer.write(&[b'.'; 4096]).is_ok() {}
    fcntl_setfl(&writer, flags).unwrap();
    (reader, writer)
}
