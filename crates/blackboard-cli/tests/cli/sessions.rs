//! The session of a call, and the errors if it cannot be determined.

use std::process::Command;

use blackboard::Code;
use testkit::process::RunToEnd as _;

use crate::scratch::{Output, Scratch};

testkit::on_each_engine![
    session_of_another_board_is_refused_with_the_origin_of_its_id,
    optional_session_of_the_environment_is_ignored_when_unknown,
    text_in_the_environment_that_is_no_session_id_is_treated_as_an_unknown_session,
    an_ended_session_of_the_environment_is_treated_the_same_by_every_command,
    a_process_with_one_session_needs_no_names,
    codex_variables_find_the_session_when_no_agent_process_is_visible,
    process_with_several_sessions_gets_their_list,
    process_with_several_sessions_is_told_how_a_command_names_one,
    session_without_a_process_gets_a_hint_about_heartbeats,
    failed_registration_fails_its_eval_too,
    ended_process_is_refused_in_every_option,
    command_that_creates_a_board_reports_its_path,
    stale_and_ended_agents_answer_by_name_as_by_id,
    unknown_name_is_refused_with_a_hint,
];

const USING_A_SESSION: &[&[&str]] = &[
    &["observe"],
    &["agent", "show"],
    &["work", "list", "--mine"],
    &["agent", "heartbeat"],
    &["agent", "deregister"],
    &["work", "claim", "item"],
    &["work", "complete", "item"],
    &["work", "release", "item"],
    &["work", "reassign", "item", "--to", "oak"],
];

const FOR_OPERATORS_TOO: &[&[&str]] = &[
    &["project", "register", "pai", "--name", "PAI"],
    &["project", "remove", "pai"],
    &["protocol", "define", "review", "review:{id}"],
    &["protocol", "remove", "review"],
    &["write", "request:run:ns:7", "1"],
    &["write", "result:run:ns:7", "1"],
    &["call", "ns", "1", "--id", "7"],
    &["scope", "create", "cache"],
    &["scope", "set", "cache", "--ttl", "1h"],
    &["scope", "delete", "cache"],
    &["page", "map", "cache"],
    &["page", "unmap", "cache"],
    &["memory", "define"],
    &["memory", "remember", "Text", "--key", "note", "--level", "short-term"],
    &["memory", "feedback", "note", "useful"],
    &["memory", "drain", "working"],
    &["memory", "promote", "note", "--to", "semantic"],
    &["memory", "compact", "--level", "semantic", "--summary", "Short", "--of", "note"],
    &["work", "create", "new", "--title", "New"],
    &["work", "block", "new", "--blocked-by", "item"],
    &["work", "unblock", "new"],
    &["work", "complete", "item", "--force"],
    &["work", "reset", "item"],
    &["work", "update-metadata", "item", "--set", "a=1"],
    &["work", "append-event", "item", "--event-type", "built", "--summary", "Build 7"],
    &["work", "reset", "new"],
    &["work", "edit", "new", "--title", "Other"],
    &["work", "delete", "new"],
];

/// A board with an item on it.
fn board() -> Scratch {
    let scratch = Scratch::new();
    scratch.json(["work", "create", "item", "--title", "Item"]);
    scratch
}

fn output(command: &mut Command) -> Output {
    Output::of(command.run_to_end())
}

/// The caller as an agent would be one: the process that runs the test.
fn as_agent(command: &mut Command) -> &mut Command {
    command.env("CLAUDE_PID", std::process::id().to_string())
}

fn session_of_another_board_is_refused_with_the_origin_of_its_id() {
    let scratch = board();
    for call in USING_A_SESSION {
        let mut command = scratch.command(call.iter().chain(&["--json"]));
        let answer = output(command.env("BLACKBOARD_SESSION_ID", "forgotten")).refused(Code::AgentNotFound);
        let expected = "BLACKBOARD_SESSION_ID is set to forgotten, which is not on this board";
        assert_eq!(answer["error"], expected, "{call:?}");
        assert!(answer["hint"].as_str().unwrap().contains("BLACKBOARD_SESSION_ID"), "{call:?}: {answer}");
    }
}

fn optional_session_of_the_environment_is_ignored_when_unknown() {
    let scratch = board();
    for call in FOR_OPERATORS_TOO {
        let mut command = scratch.command(call.iter());
        let said = output(command.env("BLACKBOARD_SESSION_ID", "forgotten")).success().stderr;
        let expected = "warning: BLACKBOARD_SESSION_ID is set to forgotten, which is not on this board; \
                        continuing without a session (register again with ";
        assert!(said.starts_with(expected), "{call:?}: {said}");
        // A session that an option names has to exist.
        let named = scratch.run(call.iter().chain(&["--session", "forgotten", "--json"]));
        named.refused(Code::AgentNotFound);
    }
}

/// What a command does with a session of the environment that has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Treatment {
    /// It acts for the session: it refuses, with a hint.
    Refused,
    /// It does not need the session: it continues with a warning.
    Ignored,
    /// It uses no session and no existing board, or, like `deregister`, is about the session's end.
    NotUsed,
}

/// Commands whose JSON is that of the stored data alone.
const WITHOUT_ENVELOPE: &[&str] = &["read", "list", "snapshot", "query", "history", "wait", "call", "export"];

/// Every command, and a call that would use the session of the environment.
const WITH_AN_ENDED_SESSION: &[(&str, &[&str], Treatment)] = {
    use Treatment::{Ignored, NotUsed, Refused};
    &[
        ("agent register", &["--name", "Elm"], NotUsed),
        ("agent heartbeat", &[], Refused),
        ("agent list", &[], Ignored),
        ("agent show", &[], Refused),
        ("agent deregister", &[], NotUsed),
        ("work create", &["new", "--title", "New"], Ignored),
        ("work claim", &["item"], Refused),
        ("work claim", &["--next"], Refused),
        ("work release", &["item"], Refused),
        ("work reassign", &["item", "--to", "oak"], Refused),
        ("work complete", &["item"], Refused),
        ("work block", &["new", "--blocked-by", "item"], Ignored),
        ("work unblock", &["new"], Ignored),
        ("work list", &["--mine"], Refused),
        ("work list", &[], Ignored),
        ("work wait", &["item", "--status", "available,claimed,blocked,completed"], Ignored),
        ("work status", &["item"], Ignored),
        ("observe", &[], Refused),
        ("observe", &["--since", "1h"], Ignored),
        ("observe", &["--follow", "--timeout", "1s"], Refused),
        ("run", &["--", "true"], Ignored),
        ("status", &[], Ignored),
        ("status", &["--export"], Ignored),
        ("serve", &["--status"], NotUsed),
        ("write", &["key", "1"], Ignored),
        ("write", &["leased", "1", "--lease"], Refused),
        ("read", &["key"], Ignored),
        ("list", &[], Ignored),
        ("snapshot", &[], Ignored),
        ("query", &[], Ignored),
        ("search", &["key"], Ignored),
        ("history", &["key"], Ignored),
        ("wait", &["key", "--timeout", "1m"], Ignored),
        ("page map", &["default"], Ignored),
        ("page list", &["default"], Ignored),
        ("page show", &["bb:default:other"], Ignored),
        ("page unmap", &["default"], Ignored),
        ("append", &["items", "1"], Ignored),
        ("increment", &["number"], Ignored),
        ("txn", &["--file", "valid.json"], Ignored),
        ("delete", &["key"], Ignored),
        ("clear", &["items"], Ignored),
        ("purge", &["number"], Ignored),
        ("lock acquire", &["deploy"], Refused),
        ("lock release", &["deploy"], Refused),
        ("lock list", &[], Ignored),
        ("lock run", &["deploy", "--", "true"], Refused),
        ("file reserve", &["src/"], Refused),
        ("file release", &["src/"], Refused),
        ("file list", &[], Ignored),
        ("file check", &["src/"], Ignored),
        ("init", &["--db", "other.db"], NotUsed),
        ("scope create", &["cache"], Ignored),
        ("scope set", &["cache", "--ttl", "1h"], Ignored),
        ("scope show", &["cache"], Ignored),
        ("scope list", &[], Ignored),
        ("scope delete", &["cache"], Ignored),
        ("memory define", &[], Ignored),
        ("memory remember", &["Text", "--key", "note"], Ignored),
        ("memory recall", &["text"], Ignored),
        ("memory feedback", &["note", "useful"], Ignored),
        ("memory list", &[], Ignored),
        ("memory map", &[], Ignored),
        ("memory pending", &[], Ignored),
        ("memory drain", &[], Ignored),
        ("memory promote", &["note", "--to", "semantic"], Ignored),
        ("memory compact", &["--level", "semantic", "--summary", "Short", "--of", "note"], Ignored),
        ("memory delete", &["note"], Ignored),
        ("project register", &["pai", "--name", "PAI"], Ignored),
        ("project list", &[], Ignored),
        ("project status", &["pai"], Ignored),
        ("project remove", &["pai"], Ignored),
        ("protocol define", &["review", "review:{id}"], Ignored),
        ("write", &["request:run:ns:7", "1"], Ignored),
        ("write", &["result:run:ns:7", "1"], Ignored),
        ("call", &["ns", "1", "--id", "7"], Ignored),
        ("protocol list", &[], Ignored),
        ("protocol show", &["review"], Ignored),
        ("protocol key", &["review", "id=1"], Ignored),
        ("protocol pattern", &["review"], Ignored),
        ("protocol parse", &["review", "review:1"], Ignored),
        ("protocol check", &["review:1"], Ignored),
        ("protocol remove", &["review"], Ignored),
        ("work reset", &["new"], Ignored),
        ("work edit", &["new", "--title", "Other"], Ignored),
        ("work complete", &["item", "--force"], Ignored),
        ("work reset", &["item"], Ignored),
        ("work update-metadata", &["item", "--set", "a=1"], Ignored),
        ("work append-event", &["item", "--event-type", "built", "--summary", "Build 7"], Ignored),
        ("work delete", &["new"], Ignored),
        ("work import", &["--from", "jsonl", "items.jsonl"], Ignored),
        ("work export", &["--to", "jsonl"], Ignored),
        ("sweep", &[], Ignored),
        ("export", &[], Ignored),
        ("import", &["entries.json"], Ignored),
        ("render", &["board.md"], Ignored),
        ("pull", &["--hub", "."], Ignored),
        ("registry", &["--hub", "."], Ignored),
        ("version", &[], NotUsed),
        ("completions", &["bash"], NotUsed),
    ]
};

/// Commands that have their own tests for this, or nothing to do with sessions of the environment: the guard needs a
/// repository, hooks use the session of their platform, the MCP server registers a session when it needs one, a copy
/// is made without one, the token quota is off until it is configured, and the files of a spoke are on no board.
const ELSEWHERE: &[&str] = &[
    "copy",
    "guard install",
    "guard check",
    "guard remove",
    "hook",
    "mcp",
    "quota check",
    "quota fold",
    "quota history",
    "quota init",
    "quota record",
    "quota release",
    "quota set",
    "quota status",
    "demo",
    "setup",
    "setup status",
    "setup remove",
    "spoke init",
    "spoke show",
    "spoke validate",
    "upgrade",
];

fn text_in_the_environment_that_is_no_session_id_is_treated_as_an_unknown_session() {
    let scratch = board();
    for (text, shown) in [("\u{1b}[31mx", "\\u{1b}[31mx"), ("a\u{200b}b", "a\\u{200b}b")] {
        let call = |arguments: &[&str]| output(scratch.command(arguments).env("BLACKBOARD_SESSION_ID", text));
        let why = format!("BLACKBOARD_SESSION_ID is set to {shown}, which is not a session id");
        for ignored in [&["status"][..], &["work", "list"], &["write", "key", "1"]] {
            let ended = call(ignored).success();
            assert!(ended.stderr.starts_with(&format!("warning: {why}; ")), "{ignored:?}: {ended:?}");
        }
        let refusal = call(&["work", "claim", "item", "--json"]).refused(Code::AgentNotFound);
        assert_eq!(refusal["error"], why);
        assert!(refusal["hint"].as_str().unwrap().contains("unset BLACKBOARD_SESSION_ID"), "{refusal}");
    }
}

fn an_ended_session_of_the_environment_is_treated_the_same_by_every_command() {
    let covered = |command: &str| {
        ELSEWHERE.contains(&command) || WITH_AN_ENDED_SESSION.iter().any(|(known, ..)| *known == command)
    };
    for command in crate::scratch::commands() {
        assert!(covered(&command), "{command} is not in the table");
    }
    let scratch = board();
    crate::refusals::write_transactions(&scratch);
    let ivy = scratch.json(["agent", "register", "--name", "Ivy"])["session_id"].clone();
    let ivy = ivy.as_str().unwrap();
    scratch.json(["agent", "deregister", ivy]);
    let ended = format!("BLACKBOARD_SESSION_ID is set to {ivy}, which has ended");
    for (command, arguments, treatment) in WITH_AN_ENDED_SESSION {
        for json in [false, true] {
            let words = command.split(' ').chain(arguments.iter().copied()).map(str::to_owned).collect();
            let call = crate::scratch::with_options::<String>(words, json.then(|| "--json".to_owned()));
            let ended_call = output(scratch.command(&call).env("BLACKBOARD_SESSION_ID", ivy));
            let context = format!("{call:?}: {ended_call:?}");
            match (treatment, json) {
                (Treatment::Refused, true) => {
                    let answer = ended_call.refused(Code::SessionEnded);
                    assert_eq!(answer["error"], ended, "{context}");
                    assert!(answer["hint"].as_str().unwrap().contains("agent register"), "{context}");
                }
                (Treatment::Refused, false) => {
                    assert_eq!(ended_call.code, 4, "{context}");
                    assert!(ended_call.stderr.starts_with(&format!("error: {ended}\nhint: ")), "{context}");
                }
                (Treatment::Ignored, _) => {
                    let warning = format!("warning: {ended}; continuing without a ");
                    assert!(ended_call.stderr.contains(&warning), "{context}");
                    if json && !ended_call.stdout.is_empty() && !WITHOUT_ENVELOPE.contains(command) {
                        assert_eq!(ended_call.json()["ignored_session"], ivy, "{context}");
                    }
                }
                (Treatment::NotUsed, _) => assert!(!ended_call.stderr.contains("BLACKBOARD"), "{context}"),
            }
        }
    }
    let events = scratch.json(["observe", "--since", "1h"]);
    let ending = events["items"]
        .as_array()
        .unwrap()
        .iter()
        .position(|event| event["event_type"] == "agent_deregistered");
    let after = &events["items"].as_array().unwrap()[ending.unwrap() + 1..];
    assert!(
        after.iter().all(|event| event["actor_id"] != ivy),
        "nothing happens for a session that has ended"
    );
}

fn a_process_with_one_session_needs_no_names() {
    let scratch = board();
    let ivy = scratch.json(["agent", "register", "--name", "Ivy"]);
    let shown = output(as_agent(&mut scratch.command(["agent", "show", "--json"]))).success().json();
    assert_eq!(shown["session_id"], ivy["session_id"]);
}

/// In the sandbox of Codex no process outside of it can be seen.
fn codex_variables_find_the_session_when_no_agent_process_is_visible() {
    let scratch = board();
    let codex = std::os::unix::process::parent_id().to_string();
    let sessions = ["codex:s", "codex:s/t"].map(|hint| {
        let call = ["agent", "register", "--name", "Ivy", "--session-hint", hint, "--pid", &codex];
        scratch.json(call)["session_id"].clone()
    });
    let show = |session, thread| {
        let mut command = scratch.command(["agent", "show", "--json"]);
        command.env("CODEX_SESSION_ID", session).env("CODEX_THREAD_ID", thread);
        command
    };
    for (thread, session) in [("s", &sessions[0]), ("t", &sessions[1]), ("unknown", &sessions[0])] {
        assert_eq!(output(&mut show("s", thread)).success().json()["session_id"], *session, "{thread}");
    }
    output(&mut show("unknown", "unknown")).refused(Code::NoSession);
    scratch.json(["agent", "register", "--name", "Oak", "--session-hint", "claude:c", "--pid", &codex]);
    output(show("unknown", "unknown").env("CLAUDE_CODE_SESSION_ID", "c")).refused(Code::NoSession);
    // The environment leaks into an agent that is started in there.
    output(as_agent(&mut show("s", "s"))).refused(Code::NoSession);
}

fn process_with_several_sessions_is_told_how_a_command_names_one() {
    const SESSION: &str = "pass one with --session ID";
    const READER: &str = "pass one with --as NAME";
    const ENVIRONMENT: &str = "set BLACKBOARD_SESSION_ID to one of them";
    let scratch = board();
    scratch.json(["scope", "create", "private", "--visibility", "shared", "--member", "Ivy"]);
    scratch.json(["write", "key", "1", "--scope", "private"]);
    for name in ["Ivy", "Oak"] {
        scratch.json(["agent", "register", "--name", name]);
    }
    scratch.json(["write", "leased", "1", "--scope", "private", "--lease", "--session", "Ivy"]);
    for (call, hint) in [
        (&["read", "key", "--scope", "private"][..], READER),
        (&["list", "--scope", "private"], READER),
        (&["query", "--scope", "private"], READER),
        (&["search", "key", "--scope", "private"], READER),
        (&["history", "key", "--scope", "private"], READER),
        (&["snapshot", "--scope", "private"], READER),
        (&["wait", "key", "--scope", "private", "--timeout", "1m"], READER),
        (&["export"], READER),
        (&["render", "board.md", "--scope", "private"], READER),
        (&["observe", "--since", "1h"], SESSION),
        (&["write", "key", "2", "--scope", "private"], SESSION),
        (&["agent", "show", "Ivy"], ENVIRONMENT),
        (&["scope", "show", "private"], ENVIRONMENT),
        (&["scope", "list"], ENVIRONMENT),
    ] {
        let run = |more: &[&str]| {
            let mut command = scratch.command(call.iter().chain(more).chain(&["--json"]));
            command.current_dir(scratch.path());
            command
        };
        let answer = output(as_agent(&mut run(&[]))).refused(Code::NoSession);
        assert_eq!(answer["hint"], hint, "{call:?}: {answer}");
        // The hint helps.
        let mut helped = match hint {
            SESSION => run(&["--session", "Ivy"]),
            READER => run(&["--as", "Ivy"]),
            _ => run(&[]),
        };
        if hint == ENVIRONMENT {
            helped.env("BLACKBOARD_SESSION_ID", "Ivy");
        }
        output(as_agent(&mut helped)).success();
    }
}

fn process_with_several_sessions_gets_their_list() {
    let scratch = board();
    let register = |name| scratch.json(["agent", "register", "--name", name])["session_id"].clone();
    let (ivy, oak) = (register("Ivy"), register("Oak"));
    for call in USING_A_SESSION {
        let mut command = scratch.command(call.iter().chain(&["--json"]));
        let answer = output(as_agent(&mut command)).refused(Code::NoSession);
        let message = answer["error"].as_str().unwrap();
        assert!(message.starts_with("this process has 2 active sessions: "), "{call:?}: {answer}");
        for (session, name) in [(&ivy, "Ivy"), (&oak, "Oak")] {
            assert!(message.contains(&format!("{name} ({})", &session.as_str().unwrap()[..8])), "{answer}");
            assert!(answer["sessions"].as_array().unwrap().contains(session), "{answer}");
        }
        assert_eq!(answer["hint"], "pass one with --session ID");
    }
    let create = ["work", "create", "new", "--title", "New"];
    let said = output(as_agent(&mut scratch.command(create))).success().stderr;
    assert!(said.starts_with("warning: this process has 2 active sessions: "), "{said}");
    // Commands that move no cursor do without a session.
    for call in [
        &["observe", "--peek"][..],
        &["observe", "--agent", "Ivy"],
        &["observe", "--filter", "work_created"],
        &["file", "check", "a.rs"],
    ] {
        let said = output(as_agent(&mut scratch.command(call))).success().stderr;
        assert!(said.starts_with("warning: this process has 2 active sessions: "), "{call:?}: {said}");
    }
    let more = ["Elm", "Fir", "Yew"].map(register);
    let answer =
        output(as_agent(&mut scratch.command(["agent", "heartbeat", "--json"]))).refused(Code::NoSession);
    let message = answer["error"].as_str().unwrap();
    assert!(message.starts_with("this process has 5 active sessions: "), "{message}");
    assert!(message.ends_with(", and 2 more"), "{message}");
    assert!(more.iter().all(|session| answer["sessions"].as_array().unwrap().contains(session)), "{answer}");
}

fn session_without_a_process_gets_a_hint_about_heartbeats() {
    for shell in [&[][..], &["--shell"]] {
        let scratch = board();
        let register = ["agent", "register", "--name", "Ivy", "--session-hint", "ivy"];
        let said = output(scratch.command(register.iter().chain(shell)).env_remove("BLACKBOARD_PID"));
        // The process that runs this test may be an agent.
        let has_process = !scratch.json(["agent", "show", "ivy"])["pid"].is_null();
        let note = "note: no process found to watch, so only heartbeats keep this session active: send one at least \
                    every 5 minutes, or name the process to watch: --pid PID (in a shell script: --pid $$)\n";
        assert_eq!(said.success().stderr, if has_process { "" } else { note });
        let again = register.iter().chain(shell).chain(&["--pid", "1"]);
        assert_eq!(scratch.run(again).success().stderr, "");
        let mut json = scratch.command(register.iter().chain(&["--json"]));
        assert_eq!(output(json.env_remove("BLACKBOARD_PID")).success().stderr, "");
    }
}

fn failed_registration_fails_its_eval_too() {
    let scratch = board();
    for arguments in ["--name Ivy --parent unknown", "--name Ivy --pid 0", "--name Ivy --no-such-option"] {
        let line = format!("set -e; eval \"$(blackboard agent register {arguments} --shell)\"; echo went on");
        let ended = output(&mut scratch.shell(&line));
        assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{arguments}");
        assert!(ended.stderr.starts_with("error: "), "{arguments}: {ended:?}");
        let words = ["agent", "register"].into_iter().chain(arguments.split(' ')).chain(["--shell"]);
        let direct = scratch.run(words);
        assert!(matches!(direct.code, 2 | 3) && direct.stdout == "false\n", "{arguments}: {direct:?}");
    }
}

fn ended_process_is_refused_in_every_option() {
    let scratch = board();
    let dead = crate::scratch::MISSING_PROCESS.to_string();
    let register = ["agent", "register", "--name", "Ivy", "--json"];
    let named = scratch.run(register.iter().chain(&["--pid", &dead]));
    assert_eq!(named.refused(Code::InvalidValue)["error"], format!("process {dead} not found"));
    output(scratch.command(register).env("BLACKBOARD_PID", &dead)).refused(Code::InvalidValue);
    assert_eq!(scratch.json(["agent", "list", "--all"])["count"], 0);
}

fn command_that_creates_a_board_reports_its_path() {
    let scratch = Scratch::new();
    let create = |more: &[&str]| {
        scratch.run(["work", "create", "item", "--title", "Item"].iter().chain(more)).success().stderr
    };
    assert_eq!(create(&[]), format!("note: created a new board at {}\n", scratch.location()));
    assert_eq!(create(&[]), "", "the second call creates nothing");
    assert_eq!(create(&["--db", "quiet.db", "--json"]), "", "the answer itself reports it");
    let item = ["work", "create", "item", "--title", "Item", "--db", "other.db"];
    assert_eq!(scratch.json(item)["board"], "created");
    assert_eq!(scratch.json(item).get("board"), None);
    let init = Scratch::new().run(["init"]).success();
    // If a variable names the board, a note reports that.
    assert!(init.stderr.is_empty() || scratch.is_served(), "{init:?}");
    assert!(init.stdout.starts_with("Created board: "), "{init:?}");
}

fn stale_and_ended_agents_answer_by_name_as_by_id() {
    let scratch = board();
    scratch.json(["work", "create", "x", "--title", "X"]);
    let victim = crate::scratch::with_dying_process(|pid| {
        let victim = scratch.json(["agent", "register", "--name", "victim", "--pid", pid]);
        scratch.json(["work", "claim", "x", "-s", "victim"]);
        victim["session_id"].as_str().unwrap().to_owned()
    });
    let calls = [
        &["work", "complete", "x", "-s"][..],
        &["work", "claim", "x", "-s"],
        &["agent", "show"],
        &["agent", "heartbeat", "-s"],
        &["agent", "deregister"],
    ];
    // The first line of each answer: the others have ages, and the session as it was named.
    let answers = |named: &str| -> Vec<(i32, String)> {
        let calls = calls.iter().take(3).map(|call| scratch.run(call.iter().chain(&[named])));
        let first = |said: Output| (said.stderr + &said.stdout).lines().next().unwrap().to_owned();
        calls.map(|said| (said.code, first(said))).collect()
    };
    scratch.json(["sweep", "--threshold", "0"]);
    let by_name = answers("victim");
    assert_eq!(by_name, answers(&victim));
    assert!(by_name[0].0 == 4 && by_name[0].1.contains("is stale; what it held was released"), "{by_name:?}");
    for call in &calls[3..] {
        scratch.run(call.iter().chain(&["victim"])).success();
    }
    let by_name = answers("victim");
    assert_eq!(by_name, answers(&victim));
    assert!(by_name[0].0 == 4 && by_name[0].1.contains("has ended"), "{by_name:?}");
}

const NAME_A_SESSION: &str =
    "use an agent name or at least 6 characters of an id: blackboard agent list --all";

fn unknown_name_is_refused_with_a_hint() {
    let scratch = board();
    let session = scratch.json(["agent", "register", "--name", "Ivy"])["session_id"].clone();
    let beginning = &session.as_str().unwrap()[..5];
    for (call, hint) in [
        (&["agent", "show", beginning][..], NAME_A_SESSION),
        (&["agent", "show", "missing"], NAME_A_SESSION),
        (&["project", "remove", "nope"], "list projects: blackboard project list"),
        (&["project", "status", "nope"], "list projects: blackboard project list"),
    ] {
        let output = scratch.run(call.iter().chain(&["--json"]));
        assert_eq!((output.code, output.json()["hint"].as_str()), (3, Some(hint)), "{call:?}");
    }
}
