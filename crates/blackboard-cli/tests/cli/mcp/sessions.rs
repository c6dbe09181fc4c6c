//! The session of each call, and what is left after the server has ended.

use std::path::PathBuf;
use std::process::{Child, Command};

use blackboard::id::session_id_from_hint;
use serde_json::{Value, json};
use testkit::process::wait_for;

use super::client::{Client, GENERATIONS, Generation};
use crate::scratch::{Output, Scratch};

testkit::on_each_engine![
    server_ends_the_session_that_it_registered_when_its_input_ends,
    server_finds_a_session_that_it_did_not_register_and_keeps_it,
    call_can_name_its_session,
    session_argument_is_accepted_only_from_the_same_process,
    server_uses_the_next_session_of_the_process_after_one_has_ended,
    stale_session_gets_once_what_it_lost,
    server_sends_heartbeats_while_the_client_runs_and_keeps_an_idle_session_idle,
    server_ends_when_its_client_was_killed_and_its_input_stays_open,
    sweep_releases_what_a_killed_client_and_its_killed_server_held,
    restarted_server_finds_the_session_of_the_killed_one,
    the_only_session_of_a_shared_host_is_the_caller,
    sessions_of_a_shared_host_are_not_denied_files_that_they_reserved,
    nested_agent_is_distinguished_from_its_parent,
];

/// A process in the role of the client, which the test can end.
struct StandIn(Child);

impl StandIn {
    fn new() -> StandIn {
        StandIn(Command::new("sleep").arg("600").spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    fn kill(&mut self) {
        let _ = self.0.kill();
        wait_for(&mut self.0);
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.kill();
    }
}

fn register(scratch: &Scratch, hint: &str, pid: &str) -> String {
    let agent = scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", hint, "--pid", pid]);
    agent["session_id"].as_str().unwrap().to_owned()
}

fn claim(client: &mut Client) -> Value {
    client.call("work_claim", json!({"id": "x", "title": "X"}))["claimed_by"].clone()
}

fn status(scratch: &Scratch, session: &str) -> Value {
    scratch.json(["agent", "show", session])["status"].clone()
}

fn server_ends_the_session_that_it_registered_when_its_input_ends() {
    for generation in GENERATIONS {
        let scratch = Scratch::new();
        let mut command = scratch.command(["mcp"]);
        command.env("BLACKBOARD_AGENT_NAME", "Oak");
        let mut client = Client::speaking(generation, command);
        let session = claim(&mut client);
        let session = session.as_str().unwrap();
        let shown = scratch.json(["agent", "show", session]);
        assert_eq!((&shown["agent_name"], &shown["pid"]), (&json!("Oak"), &json!(std::process::id())));
        client.end();
        assert_eq!(status(&scratch, session), "completed");
        assert_eq!(scratch.json(["work", "status", "x"])["status"], "available");
    }
}

fn server_finds_a_session_that_it_did_not_register_and_keeps_it() {
    let (by_id, by_hint, by_process) = (["BLACKBOARD_SESSION_ID"], ["CLAUDE_CODE_SESSION_ID"], [""]);
    for ([variable], hint, value) in
        [(by_id, "ivy", "ivy"), (by_hint, "claude:1234", "1234"), (by_process, "ivy", "")]
    {
        let scratch = Scratch::new();
        let own = std::process::id().to_string();
        // No ancestor of the server, unlike whatever agent may run the tests.
        let elsewhere = StandIn::new();
        let ivy = register(&scratch, hint, &if variable.is_empty() { own } else { elsewhere.pid() });
        let mut command = scratch.command(["mcp"]);
        if !variable.is_empty() {
            command.env(variable, value);
        }
        let mut client = Client::speaking(Generation::Of2025, command);
        assert_eq!(client.call("who", json!({}))["you"], json!(ivy), "{variable}");
        assert_eq!(claim(&mut client), json!(ivy), "{variable}");
        client.end();
        assert_eq!(status(&scratch, &ivy), "active", "{variable}");
        assert_eq!(scratch.json(["work", "status", "x"])["status"], "claimed", "{variable}");
        assert_eq!(scratch.json(["agent", "list", "--all"])["count"], 1, "{variable}");
    }
}

fn call_can_name_its_session() {
    let scratch = Scratch::new();
    let elsewhere = StandIn::new();
    let hints = ["codex:s1", "codex:t2", "codex:s1/sub"];
    let sessions = hints.map(|hint| register(&scratch, hint, &elsewhere.pid()));
    let mut client = Client::new(&scratch);
    let metadata = [
        json!({"session_id": "s1", "thread_id": "t1"}),
        json!({"session_id": "s2", "thread_id": "t2"}),
        // What Codex sends when a subagent calls.
        json!({"session_id": "s1", "thread_id": "sub", "parent_thread_id": "s1", "subagent_kind": "thread_spawn",
            "thread_source": "subagent"}),
    ];
    for (metadata, session) in metadata.into_iter().zip(&sessions) {
        let params = json!({"name": "who", "arguments": {}, "_meta": {"x-codex-turn-metadata": metadata}});
        let answer = client.ask("tools/call", params);
        assert_eq!(answer["result"]["structuredContent"]["you"], json!(session));
    }
    assert_eq!(client.call("who", json!({}))["you"], Value::Null);
}

/// One process of OpenCode hosts many sessions and has one server for all. Our plugin adds the session to the arguments.
fn session_argument_is_accepted_only_from_the_same_process() {
    let scratch = Scratch::new();
    let elsewhere = StandIn::new();
    let own = std::process::id().to_string();
    for (id, pid) in [("first", &own), ("second", &own), ("foreign", &elsewhere.pid())] {
        let started = json!({"event": "session.created", "session_id": id, "cwd": scratch.path()});
        let mut hook = scratch.command(["hook", "opencode"]);
        Output::fed(hook.env("BLACKBOARD_PID", pid), started.to_string()).success();
    }
    let mut client = Client::new(&scratch);
    let sessions = ["first", "second", "foreign"].map(|id| session_id_from_hint(&format!("opencode:{id}")));
    for (session, expected) in sessions.iter().zip([json!(sessions[0]), json!(sessions[1]), json!(null)]) {
        assert_eq!(client.call("who", json!({"blackboard_session": session}))["you"], expected);
    }
    let claimed =
        client.call("work_claim", json!({"id": "x", "title": "X", "blackboard_session": sessions[0]}));
    assert_eq!(claimed["claimed_by"], json!(sessions[0]));
    for odd in [json!(null), json!(7), json!("unknown"), json!("")] {
        assert_eq!(client.call("who", json!({"blackboard_session": odd}))["you"], Value::Null, "{odd}");
    }
    client.end();
    assert_eq!(status(&scratch, &sessions[0]), "active");
}

fn server_uses_the_next_session_of_the_process_after_one_has_ended() {
    let scratch = Scratch::new();
    let own = std::process::id().to_string();
    let first = register(&scratch, "claude:1", &own);
    let mut command = scratch.command(["mcp"]);
    command.env("CLAUDE_CODE_SESSION_ID", "1");
    let mut client = Client::speaking(Generation::Of2025, command);
    assert_eq!(client.call("who", json!({}))["you"], json!(first));
    scratch.json(["agent", "deregister", "--session", &first]);
    let second = register(&scratch, "claude:2", &own);
    assert_eq!(claim(&mut client), json!(second));
    client.end();
    assert_eq!(status(&scratch, &second), "active");
}

fn stale_session_gets_once_what_it_lost() {
    let scratch = Scratch::new();
    let ivy = crate::scratch::with_dying_process(|pid| register(&scratch, "ivy", pid));
    let mut command = scratch.command(["mcp"]);
    command.env("BLACKBOARD_SESSION_ID", &ivy);
    let mut client = Client::speaking(Generation::Of2025, command);
    claim(&mut client);
    scratch.json(["sweep", "--threshold", "0"]);
    assert_eq!(status(&scratch, &ivy), "stale");
    let refusal =
        client.refused("work_claim", json!({"id": "y", "title": "Y"}), blackboard::Code::SessionStale);
    assert_eq!(refusal["lost"], json!(["x"]), "{refusal}");
    assert_eq!(claim(&mut client), json!(ivy));
}

fn server_sends_heartbeats_while_the_client_runs_and_keeps_an_idle_session_idle() {
    let scratch = Scratch::new();
    let own = std::process::id().to_string();
    let ivy = register(&scratch, "ivy", &own);
    let idle = scratch.json(["agent", "heartbeat", "--session", &ivy, "--status", "idle"]);
    let mut command = scratch.command(["mcp"]);
    command.env("BLACKBOARD_HEARTBEAT_INTERVAL", "1");
    let _client = Client::speaking(Generation::Of2025, command);
    let shown = testkit::wait_until("a heartbeat", || {
        let shown = scratch.json(["agent", "show", &ivy]);
        (shown["last_beat_at"].as_str() > idle["last_seen_at"].as_str()).then_some(shown)
    });
    assert_eq!(shown["status"], "idle");
}

fn server_ends_when_its_client_was_killed_and_its_input_stays_open() {
    let scratch = Scratch::new();
    let mut stand_in = StandIn::new();
    let mut command = scratch.command(["mcp"]);
    command.env("BLACKBOARD_HEARTBEAT_INTERVAL", "1").env("BLACKBOARD_PID", stand_in.pid());
    let mut client = Client::speaking(Generation::Of2025, command);
    let session = claim(&mut client);
    stand_in.kill();
    client.ended();
    assert_eq!(status(&scratch, session.as_str().unwrap()), "completed");
    assert_eq!(scratch.json(["work", "status", "x"])["status"], "available");
}

fn sweep_releases_what_a_killed_client_and_its_killed_server_held() {
    let scratch = Scratch::new();
    let mut stand_in = StandIn::new();
    let mut command = scratch.command(["mcp"]);
    command.env("BLACKBOARD_PID", stand_in.pid());
    let mut client = Client::speaking(Generation::Of2025, command);
    let session = claim(&mut client);
    client.kill();
    stand_in.kill();
    let swept = scratch.json(["sweep", "--threshold", "0"]);
    assert_eq!(swept["staleAgents"][0]["sessionId"], session, "{swept}");
    assert_eq!(scratch.json(["work", "status", "x"])["status"], "available");
}

fn restarted_server_finds_the_session_of_the_killed_one() {
    let scratch = Scratch::new();
    let mut first = Client::new(&scratch);
    let session = claim(&mut first);
    first.kill();
    let mut second = Client::new(&scratch);
    assert_eq!(claim(&mut second), session);
    second.end();
    assert_eq!(status(&scratch, session.as_str().unwrap()), "active");
}

/// What the plugin of a host that runs many sessions in one process passes on, and what is answered.
fn opencode(scratch: &Scratch, session: &str, event: &str, more: &Value) -> String {
    let mut input = json!({"event": event, "session_id": session, "cwd": scratch.path()});
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Output::fed(&mut scratch.command(["hook", "opencode"]), input.to_string()).success().stdout
}

/// Begins a session of such a host.
fn hosted(scratch: &Scratch, session: &str) -> Value {
    opencode(scratch, session, "session.created", &json!({}));
    json!(blackboard::id::session_id_from_hint(&format!("opencode:{session}")))
}

/// The answer before a session of such a host edits a file.
fn before_edit(scratch: &Scratch, session: &str, file: &str) -> String {
    let edit = json!({"tool_name": "edit", "tool_input": {"files": [scratch.path().join(file)]}});
    opencode(scratch, session, "tool.execute.before", &edit)
}

fn the_only_session_of_a_shared_host_is_the_caller() {
    let scratch = Scratch::new();
    let only = hosted(&scratch, "s1");
    opencode(&scratch, "s2", "session.created", &json!({"parent_id": "s1"}));
    let mut client = Client::new(&scratch);
    assert_eq!(claim(&mut client), only);
    client.end();
    assert_eq!(status(&scratch, only.as_str().unwrap()), "active");
    assert_eq!(scratch.json(["work", "status", "x"])["status"], "claimed");
}

fn sessions_of_a_shared_host_are_not_denied_files_that_they_reserved() {
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.path().join(".pai/blackboard")).unwrap();
    std::fs::write(scratch.path().join(".pai/blackboard/config.json"), r#"{"fileGuard": "deny"}"#).unwrap();
    let mut client = Client::new(&scratch);
    let sessions = [hosted(&scratch, "s1"), hosted(&scratch, "s2")];
    let reserve = |client: &mut Client, file: &str| {
        client.call("hold", json!({"action": "reserve", "paths": [file]}));
        client.call("who", json!({}))["you"].clone()
    };
    let own = reserve(&mut client, "a.rs");
    assert!(!sessions.contains(&own), "nothing tells which of them it is: {own}");
    for session in ["s1", "s2"] {
        assert_eq!(before_edit(&scratch, session, "a.rs"), "", "{session}");
    }
    // The two of them are strangers to each other, and others to both.
    for (holder, file) in [(sessions[0].as_str().unwrap(), "b.rs"), ("ivy", "c.rs")] {
        register(&scratch, "ivy", "1");
        scratch.json(["file", "reserve", file, "--session", holder]);
        assert!(before_edit(&scratch, "s2", file).contains("deny"), "{holder}");
    }
    client.end();
    assert_eq!(status(&scratch, own.as_str().unwrap()), "completed");
}

/// Agents are recognized by the names of their programs, so a renamed shell acts as an agent.
fn nested_agent_is_distinguished_from_its_parent() {
    let scratch = Scratch::new();
    let shell =
        ["/bin/dash", "/bin/bash", "/bin/sh"].into_iter().map(PathBuf::from).find(|path| path.exists());
    let shell = std::fs::canonicalize(shell.unwrap()).unwrap();
    let agent = scratch.path().join("claude");
    testkit::copy_program(&shell, &agent);
    let mut command = scratch.shell(
        "./claude -c 'export BLACKBOARD_SESSION_ID=$(blackboard agent register --name Outer --pid $$ --json \
         | sed \"s/.*\\\"session_id\\\":\\\"\\([^\\\"]*\\).*/\\1/\"); ./claude -c \"blackboard mcp; :\"; :'; :",
    );
    command.env_remove("BLACKBOARD_PID");
    let mut client = Client::speaking(Generation::Of2025, command);
    let session = claim(&mut client);
    let outer = scratch.json(["agent", "list"])["items"][0].clone();
    assert_eq!(outer["agent_name"], "Outer");
    assert_ne!(outer["session_id"], session, "the inner one has a session of its own");
    let inner = scratch.json(["agent", "show", session.as_str().unwrap()]);
    assert_ne!(inner["pid"], outer["pid"]);
    client.end();
    assert_eq!(status(&scratch, outer["session_id"].as_str().unwrap()), "active");
    assert_eq!(status(&scratch, session.as_str().unwrap()), "completed");
}
