//! The edges on a board on a server: hooks, MCP, the dashboard, `run` and the commit guard.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use blackboard::Code;
use blackboard::id::session_id_from_hint;
use serde_json::{Value, json};
use testkit::process::RunToEnd as _;
use testkit::redis::RedisServer;
use testkit::server::Server;
use testkit::wait_until;

use super::Shared;
use crate::machine::can;
use crate::mcp::client::{Client, Generation, succeeded};
use crate::scratch::{Output, Scratch};

fn hook(shared: &Shared, session: &str, event: &str, more: &Value) -> String {
    let mut input = json!({"session_id": session, "hook_event_name": event, "cwd": shared.scratch.path()});
    for (name, value) in more.as_object().into_iter().flatten() {
        input[name] = value.clone();
    }
    Output::fed(&mut shared.command(&["hook", "claude"]), input.to_string()).success().stdout
}

#[test]
fn hook_registers_its_session_shows_updates_and_denies_an_edit_of_a_reserved_file() {
    let Some(shared) = Shared::new() else { return };
    let home = shared.scratch.path().join(".pai/blackboard");
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("config.json"), r#"{"fileGuard": "deny"}"#).unwrap();
    for session in ["ivy", "oak"] {
        hook(&shared, session, "SessionStart", &json!({"source": "startup"}));
    }
    assert_eq!(shared.json(&["agent", "list"])["count"], 2);
    let oak = session_id_from_hint("claude:oak");
    shared.json(&["file", "reserve", "held.rs", "--session", &oak]);
    shared.json(&["work", "create", "x", "--title", "Something new"]);
    let updates = hook(&shared, "ivy", "UserPromptSubmit", &json!({"prompt": "go"}));
    assert!(updates.contains("Something new"), "{updates}");
    let edit = json!({"tool_name": "Write", "tool_input": {"file_path": "held.rs"}});
    let denied: Value = serde_json::from_str(&hook(&shared, "ivy", "PreToolUse", &edit)).unwrap();
    assert_eq!(denied["hookSpecificOutput"]["permissionDecision"], "deny", "{denied}");
    assert_eq!(hook(&shared, "oak", "PreToolUse", &edit), "", "its own reservation does not stop it");
    hook(&shared, "ivy", "SessionEnd", &json!({"reason": "exit"}));
    assert_eq!(shared.json(&["agent", "list"])["count"], 1);
}

#[test]
fn mcp_server_works_and_waits_on_a_board_of_a_server() {
    let Some(shared) = Shared::new() else { return };
    let mut client = Client::speaking(Generation::Of2025, shared.command(&["mcp"]));
    shared.json(&["work", "create", "x", "--title", "Item"]);
    client.call("work_claim", json!({"id": "x"}));
    assert_eq!(shared.json(&["work", "status", "x"])["status"], "claimed");
    let waiting = client.start("wait", json!({"key": "result", "seconds": 600}));
    client.wait_until_followed(true);
    let written = shared.json(&["write", "result", "7"]);
    let waited = succeeded(&client.answer(waiting));
    assert_eq!(waited["entry"]["revision"], written["revision"]);
    // The session of the client ends with it.
    client.end();
    assert_eq!(shared.json(&["work", "status", "x"])["status"], "available");
}

#[test]
fn mcp_call_needs_no_round_trip_to_check_that_its_board_is_still_there() {
    let Some(shared) = Shared::new() else { return };
    let mut client = Client::speaking(Generation::Of2025, shared.command(&["mcp"]));
    let requests = || -> u64 {
        let stats = shared.server.command(&["INFO", "stats"]);
        let number = stats.lines().find_map(|line| line.strip_prefix("total_reads_processed:"));
        number.unwrap().trim().parse().unwrap()
    };
    client.call("entry_write", json!({"key": "k", "value": 0}));
    // A pause of the machine costs checks of the server's role, and a keep-alive is a request, too.
    wait_until("writes with two round trips each, and reads with one and the session", || {
        let mut count = |tool: &str, arguments: &Value| {
            let before = requests();
            for _ in 0..10 {
                client.call(tool, arguments.clone());
            }
            // To count is a request, too, and its connection is closed.
            requests() - before - 2
        };
        let written = count("entry_write", &json!({"key": "k", "value": 1}));
        let read = count("entry_read", &json!({"key": "k"}));
        println!("requests of 10 writes and 10 reads: {written}, {read}");
        (written <= 20 && read <= 20).then_some(())
    });
    client.end();
}

#[test]
fn mcp_session_survives_a_server_that_does_not_answer_for_a_while() {
    let settings = [("appendonly", "yes"), ("appendfsync", "always")];
    let Some(server) = RedisServer::start(&settings) else { return };
    let mut shared = Shared { server, scratch: Scratch::new() };
    let mut client = Client::speaking(Generation::Of2025, shared.command(&["mcp"]));
    shared.json(&["work", "create", "x", "--title", "Item"]);
    let claimed = client.call("work_claim", json!({"id": "x"}));
    shared.server.kill();
    client.refused("work_find", json!({}), Code::ServerUnavailable);
    shared.server.start_again();
    let complete = json!({"action": "complete", "id": "x", "fence": claimed["fence"]});
    client.call("work_update", complete);
    assert_eq!(shared.json(&["work", "status", "x"])["status"], "completed");
}

#[test]
fn run_claims_its_item_and_releases_it_at_the_end() {
    let Some(shared) = Shared::new() else { return };
    shared.json(&["work", "create", "x", "--title", "Item"]);
    let inside = "blackboard work status x --json; blackboard write seen '\"yes\"'";
    let ran = shared.run(&["run", "--work-item", "x", "--name", "Ivy", "--", "sh", "-c", inside]).success();
    let line = ran.stdout.lines().find(|line| line.contains("\"item_id\"")).unwrap();
    let status: Value = serde_json::from_str(line).unwrap();
    assert_eq!(
        (&status["status"], &status["claimed_by_name"]),
        (&json!("claimed"), &json!("Ivy")),
        "{status}"
    );
    assert_eq!(shared.json(&["read", "seen"])["value"], "yes");
    assert_eq!(shared.json(&["work", "status", "x"])["status"], "available");
    assert_eq!(shared.json(&["agent", "list"])["count"], 0);
    let ran = shared.run(&["run", "--work-item", "x", "--", "sh", "-c", "exit 7"]);
    assert_eq!(ran.code, 7);
    assert_eq!(shared.json(&["work", "status", "x"])["status"], "available");
}

#[test]
fn commit_of_a_file_that_another_session_reserved_is_refused() {
    if !can("a commit", "git", &["--version"]) {
        return;
    }
    let Some(shared) = Shared::new() else { return };
    let git = |line: &str, session: &str| {
        let mut shell = shared.scratch.shell(&format!("git -c user.name=a -c user.email=a@b {line}"));
        shell.env("BLACKBOARD_DB", shared.url()).env("BLACKBOARD_SESSION_ID", session);
        Output::of(shell.run_to_end())
    };
    git("init -q -b main", "").success();
    for name in ["ivy", "oak"] {
        shared.json(&["agent", "register", "--name", name, "--session-hint", name]);
    }
    let [ivy, oak] = ["ivy", "oak"].map(session_id_from_hint);
    shared.json(&["file", "reserve", "held.rs", "--session", &ivy]);
    shared.json(&["guard", "install"]);
    fs::write(shared.scratch.path().join("held.rs"), "").unwrap();
    git("add held.rs", &oak).success();
    shared.run(&["guard", "check", "--session", &oak, "--json"]).refused(Code::Held);
    let refused = git("commit -q -m change", &oak);
    assert!(refused.code != 0 && refused.stderr.contains("ivy"), "{refused:?}");
    git("commit -q -m change", &ivy).success();
}

/// Sends a request for a path with the token of a server. Returns the connection, after the head of the answer.
fn ask(server: &Server, path: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(testkit::patience())).unwrap();
    let (port, token) = (server.port(), server.token());
    let head =
        format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert!(line.contains(" 200 "), "{path}: {line}");
    while !line.trim().is_empty() {
        line.clear();
        reader.read_line(&mut line).unwrap();
    }
    reader
}

fn body(server: &Server, path: &str) -> Value {
    let mut reader = ask(server, path);
    // The answer is one JSON object, and the connection stays open.
    let (mut text, mut byte) = (Vec::new(), [0]);
    loop {
        reader.read_exact(&mut byte).unwrap();
        text.push(byte[0]);
        if let Ok(value) = serde_json::from_slice(&text) {
            return value;
        }
    }
}

/// How many connections of a Redis server block on something.
pub fn blocked(shared: &Shared) -> usize {
    let list = shared.server.command(&["CLIENT", "LIST"]);
    let flags =
        |line: &str| line.split(' ').find_map(|field| field.strip_prefix("flags=").map(str::to_owned));
    let is_blocked = |line: &&str| flags(line).is_some_and(|flags| flags.contains('b'));
    list.lines().filter(is_blocked).filter(|line| line.contains(" cmd=xread ")).count()
}

#[test]
fn dashboard_follows_a_server_with_one_connection_for_all_browsers() {
    let Some(shared) = Shared::new() else { return };
    shared.json(&["work", "create", "x", "--title", "Item"]);
    let server = Server::start(shared.command(&["serve", "--json", "--port", "0"]));
    let work = body(&server, "/api/work").to_string();
    assert!(work.contains("Item"), "{work}");
    let mut streams: Vec<_> = (0..10).map(|_| ask(&server, "/api/events/stream")).collect();
    wait_until("one blocked connection", || (blocked(&shared) == 1).then_some(()));
    shared.json(&["write", "key", "7"]);
    for stream in &mut streams {
        let mut line = String::new();
        while !line.starts_with("data: ") {
            line.clear();
            assert_ne!(stream.read_line(&mut line).unwrap(), 0, "the stream has ended");
        }
        assert!(line.contains("entry_written"), "{line}");
    }
    wait_until("one blocked connection again", || (blocked(&shared) == 1).then_some(()));
    drop(streams);
}

#[test]
fn call_that_loses_its_server_has_the_id_of_its_request() {
    let Some(mut shared) = Shared::new() else { return };
    shared.json(&["write", "first", "0"]);
    let mut call = shared.command(&["call", "n", "1", "--timeout", "1m", "--json"]);
    let caller = call.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let request = wait_until("the request", || {
        let keys = shared.json(&["list"]);
        let mut keys = keys.as_array()?.iter().filter_map(Value::as_str);
        keys.find(|key| key.starts_with("request:")).map(str::to_owned)
    });
    shared.server.kill();
    let refused = Output::of(caller.run_to_end());
    let refused = refused.refused(Code::ServerUnavailable);
    let id = request.strip_prefix("request:run:n:").unwrap();
    assert_eq!((&refused["id"], &refused["scope"]), (&json!(id), &json!("default")), "{refused}");
    assert_eq!(refused["result_key"], format!("result:run:n:{id}"));
}
