use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Stdio};

use blackboard::Code;
use serde_json::Value;
use testkit::process::{Signal, end_of, signal, wait_for};
use testkit::proxy::{Fault, Proxy};
use testkit::redis::RedisServer;
use testkit::wait_until;

use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

#[test]
fn human_output_matches_transcript() {
    transcript::check("copy");
}

/// A call on one board.
fn on(scratch: &Scratch, board: &str, call: &[&str]) -> Value {
    scratch.json(call.iter().chain(&["--db", board]))
}

/// Writes something of everything that commands can write.
fn fill(scratch: &Scratch, board: &str) {
    for call in [
        &["project", "register", "pai", "--name", "PAI"][..],
        &["agent", "register", "--name", "Ivy", "--session-hint", "ivy"],
        &["agent", "register", "--name", "Oak", "--session-hint", "oak", "--parent", "ivy"],
        &["agent", "heartbeat", "--session", "ivy", "--progress", "Half done"],
        &["work", "create", "design", "--title", "Design", "--project", "pai"],
        &["work", "create", "build", "--title", "Build", "--blocked-by", "design"],
        &["work", "claim", "design", "--session", "ivy"],
        &["write", "key", "1", "--tag", "a", "--op", "first-write"],
        &["write", "key", "2", "--ttl", "1h"],
        &["write", "leased", "1", "--lease", "--session", "oak"],
        &["write", "gone", "1"],
        &["delete", "gone"],
        &["lock", "acquire", "deploy", "--session", "ivy"],
        &["file", "reserve", "src/", "--session", "oak"],
        &["observe", "--session", "ivy"],
    ] {
        on(scratch, board, call);
    }
}

/// The exported board without what is about the call.
fn exported(scratch: &Scratch, board: &str) -> Value {
    let mut state = on(scratch, board, &["export"]);
    state.as_object_mut().unwrap().remove("exported_at");
    state.as_object_mut().unwrap().remove("timestamp");
    state
}

#[test]
fn board_is_equal_after_it_was_copied_to_a_server_and_back() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let (scratch, url) = (Scratch::new(), server.url("team"));
    fill(&scratch, "team.db");
    let expected = exported(&scratch, "team.db");
    let there = scratch.json(["copy", "team.db", &url]);
    is_object(&there, &["from", "to", "revision", "floor", "sealed", "copied", "left_out"]);
    assert_eq!((&there["revision"], &there["sealed"]), (&expected["revision"], &Value::Bool(false)));
    let back = scratch.json(["copy", &url, "back.db"]);
    assert_eq!(back["copied"], there["copied"]);
    for table in ["cursors", "operations", "heartbeats", "entry_tombstones", "events", "entry_versions"] {
        assert!(back["copied"][table].as_u64().unwrap() > 0, "no {table}: {back}");
    }
    for board in [&url, "back.db"] {
        assert_eq!(exported(&scratch, board), expected, "{board}");
    }
}

#[test]
fn tokens_idempotency_keys_and_cursors_are_valid_on_the_copy() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let (scratch, url) = (Scratch::new(), server.url("team"));
    fill(&scratch, "team.db");
    let refused =
        |call: &[&str], code| scratch.run(call.iter().chain(&["--json", "--db", &url])).refused(code);
    let held_again = |noun: &str, take: &str, name: &str| {
        let take = || on(&scratch, "team.db", &[noun, take, name, "--session", "ivy"])["fence"].to_string();
        on(&scratch, "team.db", &[noun, "release", name, "--session", "ivy"]);
        let old = take();
        on(&scratch, "team.db", &[noun, "release", name, "--session", "ivy"]);
        take();
        old
    };
    let (old, lock) = (held_again("work", "claim", "design"), held_again("lock", "acquire", "deploy"));
    on(&scratch, "team.db", &["observe", "--session", "ivy"]);
    let written = on(&scratch, "team.db", &["write", "counter", "7", "--op", "once"]);
    scratch.json(["copy", "team.db", &url, "--seal"]);
    refused(&["work", "complete", "design", "--session", "ivy", "--fence", &old], Code::StaleFence);
    refused(&["lock", "release", "deploy", "--session", "ivy", "--fence", &lock], Code::StaleFence);
    refused(&["write", "key", "3", "--fence", &format!("lock:deploy={lock}")], Code::StaleFence);
    let again = on(&scratch, &url, &["write", "counter", "7", "--op", "once"]);
    assert_eq!(again["revision"], written["revision"], "the call is remembered");
    let seen = on(&scratch, &url, &["observe", "--session", "ivy"]);
    assert_eq!(seen["items"].as_array().unwrap().len(), 1, "only the write is new: {seen}");
}

#[test]
fn sealed_board_names_its_copy_and_is_sealed_until_that_is_undone() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let scratch = Scratch::new();
    for (from, to) in [("a.db".to_owned(), server.url("a")), (server.url("b"), "b.db".to_owned())] {
        on(&scratch, &from, &["write", "key", "1"]);
        assert_eq!(scratch.json(["copy", &from, &to, "--seal"])["sealed"], true);
        let refused = scratch.run(["write", "key", "2", "--json", "--db", &from]).refused(Code::BoardSealed);
        assert!(refused["moved_to"].as_str().unwrap().ends_with(&to), "{refused}");
        assert!(refused["hint"].as_str().unwrap().contains(" copy --unseal "), "{refused}");
        let status = on(&scratch, &from, &["status"]);
        assert_eq!(status["moved_to"], refused["moved_to"], "{status}");
        let status = scratch.run(["status", "--db", &from]).success().stdout;
        assert!(status.contains("Sealed:   it was copied to "), "{status}");
        assert_eq!(on(&scratch, &from, &["read", "key"])["value"], 1);
        on(&scratch, &to, &["write", "key", "2"]);
        assert_eq!(scratch.json(["copy", "--unseal", &from])["unsealed"], true);
        on(&scratch, &from, &["write", "key", "2"]);
        assert_eq!(on(&scratch, &from, &["status"]).get("moved_to"), None);
    }
}

#[test]
fn interrupted_copy_unseals_its_source_and_says_how_to_continue() {
    let (Some(source), Some(other)) = (RedisServer::start(&[]), RedisServer::start(&[])) else { return };
    let scratch = Scratch::new();
    on(&scratch, "a.db", &["write", "key", "1"]);
    on(&scratch, &source.url("b"), &["write", "key", "1"]);
    for (from, board) in [("a.db".to_owned(), "a"), (source.url("b"), "b")] {
        let proxy = Proxy::before(&other);
        // The client waits for the reply before it sends the same part again.
        proxy.fail_next(Fault::SwallowReply);
        let to = proxy.url(board);
        let mut command = scratch.command(["copy", &from, &to, "--seal"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("a part on its way", || proxy.has_failed().then_some(()));
        signal(child.id(), Signal::INT);
        let ended = end_of(child);
        let stderr = &ended.stderr;
        assert_eq!(ended.status.signal(), Some(Signal::INT.as_raw()), "{stderr}");
        assert!(
            stderr.contains("the source accepts changes") && stderr.contains("--seal --replace"),
            "{stderr}"
        );
        on(&scratch, &from, &["write", "key", "2"]);
        let refused = scratch.run(["read", "key", "--json", "--db", &to]).refused(Code::BeingCopied);
        assert!(refused["hint"].as_str().unwrap().contains(" --replace"), "{refused}");
        scratch.json(["copy", &from, &to, "--seal", "--replace"]);
    }
}

#[test]
fn target_with_a_board_is_refused_and_unchanged() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let (scratch, url) = (Scratch::new(), server.url("team"));
    for board in ["a.db", "b.db", url.as_str()] {
        on(&scratch, board, &["write", "key", &format!("\"{}\"", board.len())]);
    }
    for target in ["a.db", "b.db", url.as_str()] {
        let before = exported(&scratch, target);
        for more in [&[][..], &["--replace"], &["--seal"]] {
            scratch.run(["copy", "a.db", target, "--json"].iter().chain(more)).refused(Code::InUse);
        }
        assert_eq!(exported(&scratch, target), before);
    }
    on(&scratch, "a.db", &["write", "key", "1"]);
}

#[test]
fn refused_location_is_called_by_its_name() {
    let scratch = Scratch::new();
    for (from, to, name) in [("ftp://a", "b.db", "FROM"), ("", "b.db", "FROM")] {
        let refused = scratch.run(["copy", from, to, "--json"]).refused(Code::InvalidValue);
        assert!(refused["error"].as_str().unwrap().starts_with(name), "{refused}");
    }
    on(&scratch, "a.db", &["write", "key", "1"]);
    let refused = scratch.run(["copy", "a.db", "ftp://b", "--json"]).refused(Code::InvalidValue);
    assert!(refused["error"].as_str().unwrap().starts_with("TO"), "{refused}");
}

/// Starts a copy of a board on a server that delays it, so that it cannot end.
fn start_delayed_copy(scratch: &Scratch, source: &RedisServer, to: &str) -> Child {
    // The copy of the keys on the server is a write.
    source.command(&["CLIENT", "PAUSE", "600000", "WRITE"]);
    let mut command = scratch.command(["copy", &source.url("team"), to]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn killed_copy_leaves_a_target_that_is_refused_until_it_is_replaced() {
    let (Some(source), Some(other)) = (RedisServer::start(&[]), RedisServer::start(&[])) else { return };
    let (scratch, from) = (Scratch::new(), source.url("team"));
    on(&scratch, &from, &["write", "key", "1"]);
    let expected = exported(&scratch, &from);
    let is_marked = |path: &Path| std::fs::metadata(path).is_ok();
    for to in ["copy.db".to_owned(), other.url("copy")] {
        let mut child = start_delayed_copy(&scratch, &source, &to);
        wait_until("the target of a copy", || {
            let exists = is_marked(&scratch.path().join(&to))
                || other.command(&["EXISTS", "bb:{copy}:rows"]).starts_with(":1");
            exists.then_some(())
        });
        let is_refused = || {
            for call in [&["read", "key"][..], &["write", "key", "2"], &["status"], &["export"]] {
                scratch.run(call.iter().chain(&["--json", "--db", &to])).refused(Code::BeingCopied);
            }
        };
        is_refused();
        child.kill().unwrap();
        wait_for(&mut child);
        is_refused();
        source.command(&["CLIENT", "UNPAUSE"]);
        scratch.run(["copy", &from, &to, "--json"]).refused(Code::BeingCopied);
        scratch.json(["copy", &from, &to, "--replace"]);
        assert_eq!(exported(&scratch, &to), expected);
    }
    assert_eq!(source.command(&["DBSIZE"]), ":3\r\n", "only the board is on the server");
}
