//! Access: every command and every tool that shows or changes entries obeys the policies of their scope.
//!
//! The rules on the paths of the library are in `store/conformance/access_paths.rs`. Here the tables are compared with the commands
//! and the tools of the program: a new one is added to [`COMMANDS`] or [`TOOLS`], or to the other commands and tools with the
//! reason why it shows no entry.

use std::process::{Command, Stdio};

use blackboard::Code;
use serde_json::{Value, json};
use testkit::process::RunToEnd as _;

use crate::mcp::client::{Client, Generation};
use crate::scratch::{Output, Scratch, commands};

testkit::on_each_engine![
    every_command_obeys_the_rules_of_a_scope,
    no_command_escapes_the_table,
    every_tool_obeys_the_rules_of_a_scope,
    every_resource_obeys_the_rules_of_a_scope,
    a_client_without_a_session_is_not_the_operator,
    a_reader_may_be_named,
    every_form_of_observe_reads_as_the_session_that_it_names,
    a_session_that_cannot_be_used_is_not_the_operator,
    a_refused_session_is_reported_once,
    a_follower_ends_with_its_session,
    a_hook_shows_no_entry_that_its_session_may_not_read,
    a_local_scope_ends_with_its_session,
    a_scope_ends_with_its_work_item,
];

/// What a command does with the entry `hidden` of the scope `private`, of which Ivy is a member and Oak is not.
const COMMANDS: &[(&str, &[&str])] = &[
    ("read", &["hidden", "--scope", "private"]),
    ("read", &["hidden", "--scope", "private", "--as-of", "REVISION"]),
    ("list", &["--scope", "private"]),
    ("list", &["--scope", "private", "--long"]),
    ("query", &["hid*", "--scope", "private"]),
    ("history", &["hidden", "--scope", "private"]),
    ("search", &["hidden", "secret"]),
    ("search", &["hiden", "--scope", "private"]),
    ("wait", &["hidden", "--scope", "private", "--timeout", "1ms"]),
    ("snapshot", &["--scope", "private"]),
    ("observe", &["--since", "1h"]),
    ("observe", &["--last", "50"]),
    ("observe", &["--filter", "write", "--peek"]),
    ("observe", &["--follow", "--after", "0", "--timeout", "1ms"]),
    ("observe", &["--follow", "--since", "1h", "--timeout", "1ms", "--key", "hid*", "--all-scopes"]),
    ("export", &[]),
    ("export", &["--scope", "private"]),
    ("render", &["board.md", "--scope", "private"]),
    ("scope show", &["private"]),
    ("scope list", &[]),
    ("page map", &["private"]),
    ("page unmap", &["private"]),
    ("page list", &["private"]),
    ("page list", &[]),
    ("scope create", &["private", "--visibility", "shared", "--member", "Ivy"]),
    ("scope set", &["private", "--ttl", "1h"]),
    ("scope delete", &["private"]),
    ("scope delete", &["private", "--entries"]),
    ("memory recall", &["secret-value"]),
    ("memory recall", &["--level", "private"]),
    ("memory list", &[]),
    ("memory map", &[]),
    ("memory define", &["private"]),
    ("memory remember", &["Text", "--level", "private"]),
    ("memory feedback", &["hidden", "useful", "--level", "private"]),
    ("memory promote", &["hidden", "--level", "private", "--to", "private"]),
    ("memory compact", &["--level", "private", "--summary", "Text", "--of", "hidden"]),
    ("memory delete", &["hidden", "--level", "private"]),
    ("write", &["hidden", "1", "--scope", "private"]),
    ("append", &["list", "1", "--scope", "private"]),
    ("increment", &["number", "--scope", "private"]),
    ("delete", &["hidden", "--scope", "private"]),
    ("clear", &["*", "--scope", "private"]),
    ("clear", &["*", "--scope", "private", "--dry-run"]),
    ("purge", &["hidden", "--scope", "private"]),
    ("purge", &["hidden", "--scope", "private", "--dry-run"]),
    ("import", &["entries.json", "--scope", "private", "--keep", "theirs"]),
    ("call", &["ns", "1", "--id", "7", "--scope", "private", "--timeout", "20s"]),
    ("txn", &["--file", "read.json"]),
    ("txn", &["--file", "write.json"]),
    ("agent show", &["Ivy"]),
];

/// The commands that show no entry of a scope and change none, each with the reason.
const OTHER_COMMANDS: &[(&str, &str)] = &[
    ("upgrade", "has no entries: a board of ivy-blackboard has none"),
    ("status", "numbers, agents and work"),
    ("agent list", "agents"),
    ("agent register", "agents"),
    ("agent heartbeat", "names what the caller itself leased"),
    ("agent deregister", "names what the caller itself leased"),
    ("work append-event", "work items"),
    ("work block", "work items"),
    ("work claim", "work items"),
    ("work complete", "work items"),
    ("work create", "work items"),
    ("work delete", "work items"),
    ("work edit", "work items"),
    ("work export", "work items"),
    ("work import", "work items"),
    ("work list", "work items"),
    ("work reassign", "work items"),
    ("work release", "work items"),
    ("work reset", "work items"),
    ("work status", "work items"),
    ("work unblock", "work items"),
    ("work update-metadata", "work items"),
    ("work wait", "work items"),
    ("memory drain", "see `moves_by_rule_ask_no_caller_and_moves_by_call_do` of the library"),
    ("memory pending", "see `a_level_that_the_caller_may_not_use_is_left_out` of the library"),
    ("file check", "reservations are in a scope that has no policies"),
    ("file list", "reservations are in a scope that has no policies"),
    ("file release", "reservations are in a scope that has no policies"),
    ("file reserve", "reservations are in a scope that has no policies"),
    ("lock acquire", "locks are in a scope that has no policies"),
    ("lock list", "locks are in a scope that has no policies"),
    ("lock release", "locks are in a scope that has no policies"),
    ("lock run", "locks are in a scope that has no policies"),
    ("project list", "projects"),
    ("project register", "projects"),
    ("project remove", "projects"),
    ("project status", "projects"),
    ("page show", "the page that the caller names; see `Pages::show` in the table of the library"),
    ("protocol check", "protocols, and keys that the caller names"),
    ("protocol define", "protocols, and keys that the caller names"),
    ("protocol key", "protocols, and keys that the caller names"),
    ("protocol list", "protocols, and keys that the caller names"),
    ("protocol parse", "protocols, and keys that the caller names"),
    ("protocol pattern", "protocols, and keys that the caller names"),
    ("protocol remove", "protocols, and keys that the caller names"),
    ("protocol show", "protocols, and keys that the caller names"),
    ("guard check", "reservations are in a scope that has no policies"),
    ("guard install", "reservations are in a scope that has no policies"),
    ("guard remove", "reservations are in a scope that has no policies"),
    ("pull", "files of projects"),
    ("registry", "files of projects"),
    ("serve", "the dashboard of the operator, who has its token"),
    ("demo", "a board of its own"),
    ("quota check", "a ledger of its own"),
    ("quota fold", "a ledger of its own"),
    ("quota history", "a ledger of its own"),
    ("quota init", "a ledger of its own"),
    ("quota record", "a ledger of its own"),
    ("quota release", "a ledger of its own"),
    ("quota set", "a ledger of its own"),
    ("quota status", "a ledger of its own"),
    ("spoke init", "files of a project"),
    ("spoke show", "files of a project"),
    ("spoke validate", "files of a project"),
    ("upgrade", "the complete file, and no entry of it"),
    ("setup", "files of agent platforms"),
    ("setup remove", "files of agent platforms"),
    ("setup status", "files of agent platforms"),
    ("init", "an empty board"),
    ("run", "a session, and a program that is another caller"),
    ("mcp", "see the tools"),
    ("hook", "see the test about hooks"),
    ("completions", "no board"),
    ("version", "no board"),
    ("sweep", "names the keys that a session leased which is gone, never values"),
    ("copy", "the complete board, to another location, and prints nothing of it"),
];

/// The tools, with calls about the same entry.
const TOOLS: &[(&str, &str)] = &[
    ("entry_read", r#"{"key": "hidden", "scope": "private"}"#),
    ("entry_query", r#"{"scope": "private"}"#),
    ("entry_query", r#"{"scope": "private", "prefix": "hid"}"#),
    ("wait", r#"{"key": "hidden", "scope": "private", "seconds": 0}"#),
    ("recall", r#"{"words": "secret-value"}"#),
    ("recall", r#"{"level": "private"}"#),
    ("observe", r#"{"since": "1h"}"#),
    ("observe", "{}"),
    ("entry_write", r#"{"key": "hidden", "value": 1, "scope": "private"}"#),
    ("entry_write", r#"{"key": "hidden", "delete": true, "scope": "private"}"#),
];

/// The tools that show no entry of a scope and change none.
const OTHER_TOOLS: &[&str] = &["who", "work_find", "work_claim", "work_update", "hold"];

/// The resources, and whether they show events about entries.
const RESOURCES: [(&str, bool); 4] = [
    ("blackboard://board", false),
    ("blackboard://agents", false),
    ("blackboard://work", false),
    ("blackboard://events", true),
];

/// A board with the scope `private` for Ivy, and one entry in it.
fn stage() -> Scratch {
    let scratch = Scratch::new();
    for name in ["Ivy", "Oak"] {
        scratch.json(["agent", "register", "--name", name, "--session-hint", name]);
    }
    // Oak has read everything before.
    scratch.json(["observe", "--session", "Oak"]);
    scratch.json([
        "scope",
        "create",
        "private",
        "--visibility",
        "shared",
        "--member",
        "Ivy",
        "--session",
        "Ivy",
    ]);
    scratch.json([
        "scope",
        "create",
        "memory:private",
        "--visibility",
        "shared",
        "--member",
        "Ivy",
        "--session",
        "Ivy",
    ]);
    scratch.json(["memory", "define", "private"]);
    scratch.json(["write", "hidden", "secret-value", "--scope", "memory:private"]);
    let request = [("request:run:ns:7", "1"), ("result:run:ns:7", "secret-value")];
    for (key, value) in
        [("hidden", "secret-value"), ("list", "[]"), ("number", "0")].into_iter().chain(request)
    {
        scratch.json(["write", key, value, "--scope", "private"]);
    }
    scratch.json(["write", "leased", "1", "--scope", "private", "--lease", "--session", "Ivy"]);
    scratch.json(["page", "map", "private"]);
    let write = |name: &str, text: &str| std::fs::write(scratch.path().join(name), text).unwrap();
    write("entries.json", r#"{"hidden": {"key": "hidden", "value": "imported", "source_agent": "Ivy"}}"#);
    write("read.json", r#"{"then": [{"read": {"scope": "private", "key": "hidden"}}]}"#);
    write("write.json", r#"{"then": [{"write": {"scope": "private", "key": "hidden", "value": 1}}]}"#);
    scratch
}

fn calls(scratch: &Scratch, command: &str, arguments: &[&str], session: &str) -> Command {
    let revision = scratch.json(["read", "hidden", "--scope", "private"])["revision"].to_string();
    let arguments =
        arguments.iter().map(|argument| if *argument == "REVISION" { &*revision } else { *argument });
    let mut call = scratch.command(command.split(' ').chain(arguments).chain(["--json"]));
    call.current_dir(scratch.path()).env("BLACKBOARD_SESSION_ID", session);
    call
}

/// What a caller sees of the private scope.
fn shows_something(text: &str) -> bool {
    ["hidden", "secret-value", "leased", "private"].iter().any(|word| text.contains(word))
}

fn every_command_obeys_the_rules_of_a_scope() {
    for (command, arguments) in COMMANDS {
        let scratch = stage();
        let run = |session| Output::of(calls(&scratch, command, arguments, session).run_to_end());
        let rendered = || std::fs::read_to_string(scratch.path().join("board.md")).unwrap_or_default();
        let denied = run("Oak");
        let text = format!("{}{}{}", denied.stdout, denied.stderr, rendered());
        let is_refused = text.contains("\"not_allowed\"");
        assert!(is_refused || !shows_something(&text), "{command} {arguments:?} by Oak: {denied:?}");
        assert!(!text.contains("secret-value"), "{command} {arguments:?} by Oak: {denied:?}");
        let unchanged = scratch.json(["read", "hidden", "--scope", "private"]);
        assert_eq!(
            (&unchanged["value"], &unchanged["version"]),
            (&json!("secret-value"), &json!(1)),
            "{command}"
        );
        let keys = scratch.json(["list", "--scope", "private"]);
        let expected = ["hidden", "leased", "list", "number", "request:run:ns:7", "result:run:ns:7"];
        assert_eq!(keys, json!(expected), "{command} {arguments:?}");
        let allowed = run("Ivy").success();
        let text = format!("{}{}", allowed.stdout, rendered());
        assert!(shows_something(&text) || *command == "txn", "{command} {arguments:?} by Ivy: {allowed:?}");
    }
}

fn no_command_escapes_the_table() {
    let is_known = |command: &str| {
        let in_table = COMMANDS.iter().any(|(known, _)| *known == command);
        in_table || OTHER_COMMANDS.iter().any(|(known, _)| *known == command)
    };
    let escaped: Vec<_> = commands().into_iter().filter(|command| !is_known(command)).collect();
    assert!(escaped.is_empty(), "add a call, or a reason why it shows no entry: {escaped:?}");
    let other = OTHER_COMMANDS.iter().map(|(command, _)| *command);
    let unknown: Vec<_> = other.filter(|command| !commands().iter().any(|known| known == command)).collect();
    assert!(unknown.is_empty(), "the program has no {unknown:?}");
    let mut client = Client::new(&Scratch::new());
    let listed = client.ask("tools/list", json!({}));
    let tools =
        listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap());
    let is_known = |tool: &&str| TOOLS.iter().any(|(known, _)| known == tool) || OTHER_TOOLS.contains(tool);
    let escaped: Vec<_> = tools.filter(|tool| !is_known(tool)).collect();
    assert!(escaped.is_empty(), "add a call, or a reason why it shows no entry: {escaped:?}");
    let listed = client.ask("resources/list", json!({}));
    let resources = listed["result"]["resources"].as_array().unwrap();
    let uris: Vec<_> = resources.iter().map(|resource| resource["uri"].as_str().unwrap()).collect();
    assert_eq!(uris, RESOURCES.map(|(uri, _)| uri), "every resource is read by Oak and by Ivy");
}

fn every_tool_obeys_the_rules_of_a_scope() {
    for (tool, arguments) in TOOLS {
        let scratch = stage();
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        let answer = |session: &str| {
            let mut command = scratch.command(["mcp"]);
            command.env("BLACKBOARD_SESSION_ID", session);
            let mut client = Client::speaking(Generation::Of2025, command);
            let id = client.start(tool, arguments.clone());
            client.answer(id).to_string()
        };
        let denied = answer("Oak");
        assert!(denied.contains("not_allowed") || !shows_something(&denied), "{tool} by Oak: {denied}");
        assert!(!denied.contains("secret-value"), "{denied}");
        assert_eq!(scratch.json(["read", "hidden", "--scope", "private"])["version"], 1, "{tool}");
        let allowed = answer("Ivy");
        assert!(shows_something(&allowed), "{tool} by Ivy: {allowed}");
    }
}

fn every_resource_obeys_the_rules_of_a_scope() {
    let scratch = stage();
    for (session, is_allowed) in [("Oak", false), ("Ivy", true)] {
        let mut command = scratch.command(["mcp"]);
        command.env("BLACKBOARD_SESSION_ID", session);
        let mut client = Client::speaking(Generation::Of2025, command);
        for (uri, has_events) in RESOURCES {
            let read = client.ask("resources/read", json!({"uri": uri}));
            assert!(read["error"].is_null(), "{uri} by {session}: {read}");
            assert_eq!(
                shows_something(&read.to_string()),
                is_allowed && has_events,
                "{uri}, {session}: {read}"
            );
        }
    }
}

fn a_client_without_a_session_is_not_the_operator() {
    let scratch = Scratch::new();
    scratch.json(["scope", "create", "private", "--visibility", "shared", "--member", "Ivy"]);
    scratch.json(["write", "hidden", "secret-value", "--scope", "private"]);
    let mut client = Client::new(&scratch);
    let hint = "call `observe` without arguments first, which registers you";
    for (tool, arguments) in
        [("entry_read", json!({"key": "hidden", "scope": "private"})), ("observe", json!({"since": "1h"}))]
    {
        assert_eq!(client.refused(tool, arguments, Code::NoSession)["hint"], hint, "{tool}");
    }
    let events = json!({"uri": "blackboard://events"});
    let refused = client.ask("resources/read", events.clone());
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    assert_eq!(refused["error"]["data"], json!({"code": "no_session", "hint": hint}), "{refused}");
    client.call("observe", json!({}));
    client.refused("entry_read", json!({"key": "hidden", "scope": "private"}), Code::NotAllowed);
    client.call("observe", json!({"since": "1h"}));
    let read = client.ask("resources/read", events);
    assert!(read["error"].is_null() && !shows_something(&read.to_string()), "{read}");
}

fn a_reader_may_be_named() {
    let scratch = stage();
    let read = |reader: &str| scratch.run(["read", "hidden", "--scope", "private", "--as", reader, "--json"]);
    assert_eq!(read("Ivy").success().json()["value"], "secret-value");
    read("Oak").refused(Code::NotAllowed);
    // An author that is no session.
    read("stranger").refused(Code::NotAllowed);
    // What looks like the id of a session is no author.
    for unknown in ["00000000-0000-4000-8000-000000000000", "abcdef12"] {
        read(unknown).refused(Code::AgentNotFound);
        let open = ["read", "note", "--scope", "open", "--as", unknown, "--json"];
        scratch.run(open).refused(Code::AgentNotFound);
    }
    let first = scratch.json(["agent", "show", "Ivy"]);
    // An agent with several sessions, or with none that lasts, is an author: it may also write under this name.
    let second = scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "second"]);
    assert_eq!(read("Ivy").success().json()["value"], "secret-value");
    for session in [&first, &second] {
        let session = session["session_id"].as_str().unwrap();
        scratch.json(["agent", "deregister", session]);
        read(session).refused(Code::SessionEnded);
        read(&session[..8]).refused(Code::SessionEnded);
    }
    assert_eq!(read("Ivy").success().json()["value"], "secret-value");
    read("Oak").refused(Code::NotAllowed);
    // Without a reader, a person reads everything.
    assert_eq!(scratch.json(["read", "hidden", "--scope", "private"])["value"], "secret-value");
}

fn every_form_of_observe_reads_as_the_session_that_it_names() {
    let scratch = stage();
    for form in [
        &["--last", "9"][..],
        &["--since", "1h"],
        &["--after", "0"],
        &["--last", "9", "--others"],
        &["--peek"],
        &["--follow", "--since", "1h", "--timeout", "0s"],
        &["--follow", "--peek", "--timeout", "0s"],
        &[],
    ] {
        let observe = |caller: &str, named: &str| {
            let arguments = [&["--session", named][..], form].concat();
            Output::of(calls(&scratch, "observe", &arguments, caller).run_to_end())
        };
        let allowed = observe("Oak", "Ivy").success();
        assert!(allowed.stdout.contains("secret-value"), "{form:?}: {allowed:?}");
        let denied = observe("Ivy", "Oak").success();
        assert!(!shows_something(&denied.stdout), "{form:?}: {denied:?}");
        observe("Ivy", "unknown").refused(Code::AgentNotFound);
    }
}

fn a_session_that_cannot_be_used_is_not_the_operator() {
    let scratch = stage();
    scratch.json(["agent", "deregister", "Ivy"]);
    for (session, code) in [("Ivy", Code::SessionEnded), ("unknown", Code::AgentNotFound)] {
        for call in [
            &["read", "hidden", "--scope", "private"][..],
            &["list", "--scope", "private"],
            &["write", "hidden", "1", "--scope", "private"],
            &["delete", "hidden", "--scope", "private"],
        ] {
            let (command, arguments) = (call[0], &call[1..]);
            Output::of(calls(&scratch, command, arguments, session).run_to_end()).refused(code);
        }
        // A scope without rules does not ask who calls.
        let mut plain = scratch.command(["write", "note", "1", "--json"]);
        Output::of(plain.env("BLACKBOARD_SESSION_ID", session).run_to_end()).success();
    }
}

fn a_refused_session_is_reported_once() {
    let scratch = stage();
    let call = |arguments: &[&str]| {
        let mut command = scratch.command(arguments);
        Output::of(command.env("BLACKBOARD_SESSION_ID", "unknown").run_to_end())
    };
    for refused in [
        &["read", "hidden", "--scope", "private"][..],
        &["write", "hidden", "1", "--scope", "private"],
        &["wait", "hidden", "--scope", "private", "--timeout", "1m"],
        &["call", "ns", "1", "--scope", "private", "--timeout", "1m"],
    ] {
        let output = call(refused);
        let expected = "error: BLACKBOARD_SESSION_ID is set to unknown, which is not on this board\nhint: ";
        assert!(output.stderr.starts_with(expected), "{refused:?}: {output:?}");
        assert!(!output.stderr.contains("warning:"), "{refused:?}: {output:?}");
        let answer = call(&[refused, &["--json"]].concat()).refused(Code::AgentNotFound);
        assert_eq!(answer["ignored_session"], Value::Null, "{refused:?}");
    }
    // Another error than that of the session comes after the warning.
    let output = call(&["delete", "nothing"]);
    let lines: Vec<_> = output.stderr.lines().collect();
    assert!(lines[0].starts_with("warning: ") && lines[1].starts_with("error: "), "{output:?}");
}

fn a_follower_ends_with_its_session() {
    let scratch = stage();
    let follow = ["--follow", "--after", "0", "--scope", "private", "--timeout", "1m"];
    let mut follow = calls(&scratch, "observe", &follow, "Ivy");
    let follower = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    scratch.wait_until_followed();
    scratch.json(["agent", "deregister", "Ivy"]);
    // Without an error, it would wait forever for what it may no longer read.
    scratch.json(["write", "hidden", "2", "--scope", "private"]);
    let output = Output::of(follower.run_to_end());
    assert_eq!(output.code, i32::from(Code::SessionEnded.exit_code()), "{output:?}");
    assert!(output.stdout.contains("secret-value") && output.stderr.contains("has ended"), "{output:?}");
}

fn a_hook_shows_no_entry_that_its_session_may_not_read() {
    let scratch = stage();
    for scope in ["private", "default"] {
        scratch.json(["write", &format!("task:Oak:{scope}"), "1", "--scope", scope]);
    }
    let board = scratch.board();
    let oak = board.agents().resolve("Oak").unwrap().0;
    let updates = board.agents().check_in(&blackboard::agent::CheckIn::of(&oak)).unwrap().updates;
    let keys: Vec<_> = updates.events.iter().filter_map(|event| event.target_id.clone()).collect();
    assert_eq!(keys, ["task:Oak:default"]);
}

fn a_local_scope_ends_with_its_session() {
    let scratch = stage();
    let refused = scratch.run(["scope", "create", "mine", "--visibility", "local", "--json"]);
    refused.refused(Code::NoSession);
    scratch.json(["scope", "create", "mine", "--visibility", "local", "--session", "Oak"]);
    scratch.json(["write", "a", "1", "--scope", "mine", "--session", "Oak"]);
    scratch.run(["read", "a", "--scope", "mine", "--as", "Ivy", "--json"]).refused(Code::NotAllowed);
    assert_eq!(scratch.json(["read", "a", "--scope", "mine", "--as", "Oak"])["value"], 1);
    scratch.json(["agent", "deregister", "Oak"]);
    assert_eq!(scratch.json(["scope", "show", "mine"])["status"], "ended");
    // Its history stays private.
    scratch.run(["history", "a", "--scope", "mine", "--as", "Ivy", "--json"]).refused(Code::NotAllowed);
    let observed = scratch.run(["observe", "--peek", "--since", "1h", "--as", "Ivy"]).success().stdout;
    assert!(!observed.contains("mine"), "{observed}");
}

fn a_scope_ends_with_its_work_item() {
    let scratch = stage();
    scratch.json(["work", "claim", "build", "--title", "Build", "--session", "Ivy"]);
    scratch.json(["scope", "create", "build-notes", "--work-item", "build"]);
    scratch.json(["write", "a", "1", "--scope", "build-notes"]);
    assert_eq!(scratch.json(["scope", "show", "build-notes"])["work_item"], "build");
    scratch.json(["work", "complete", "build", "--session", "Ivy"]);
    let shown = scratch.json(["scope", "show", "build-notes"]);
    assert_eq!((&shown["status"], &shown["entries"]), (&json!("ended"), &json!(0)));
    let write = scratch.run(["write", "a", "1", "--scope", "build-notes", "--json"]);
    let refused = write.refused(Code::ScopeEnded);
    assert!(refused["hint"].as_str().unwrap().contains("scope create build-notes"), "{refused}");
}
