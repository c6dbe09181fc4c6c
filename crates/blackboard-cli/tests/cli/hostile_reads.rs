//! No content of a board forges output, breaks JSON or causes a crash, in any command that reads.

use serde_json::{Value, json};

use crate::hostile_board::{Extent, Generator, PAYLOAD, assert_harmless, hook};
use crate::mcp::client::Client;
use crate::refusals::READING;
use crate::scratch::{Output, Scratch};

testkit::on_each_engine![
    every_reading_command_shows_a_hostile_board_as_text,
    a_board_with_an_unreadable_column_is_reported_harmlessly,
    huge_text_in_every_column_is_shown,
    hooks_quote_a_hostile_board_as_text,
    mcp_answers_carry_a_hostile_board_as_text,
];

/// Commands that show a board without naming a row by its id.
const LISTS: &[&[&str]] = &[
    &["agent", "list", "--all"],
    &["project", "list"],
    &["protocol", "list"],
    &["scope", "list"],
    &["page", "list"],
    &["search", "MARKER"],
    &["memory", "list"],
    &["memory", "map"],
    &["memory", "pending"],
    &["memory", "recall"],
    &["memory", "recall", "MARKER"],
    &["work", "list", "--all"],
    &["observe", "--since", "1d"],
    &["observe", "--after", "0"],
    &["status"],
    &["list"],
    &["snapshot"],
    &["query"],
    &["lock", "list"],
    &["file", "list"],
    &["export"],
    &["work", "export", "--to", "jsonl"],
    &["work", "export", "--to", "markdown"],
    &["render", "board.md"],
    // The working directory is a hub without projects: those of the board are shown.
    &["pull"],
    &["registry"],
    &["sweep", "--threshold", "0", "--dry-run"],
];

/// What shows one thing by its id, and what is refused in words about it.
const DETAILS: &[(&[&str], i32)] = &[
    (&["agent", "show", "ivy"], 0),
    (&["agent", "show", "gone"], 0),
    (&["project", "status", "pai"], 0),
    (&["protocol", "show", "Task"], 0),
    (&["protocol", "key", "Task", "id=1"], 0),
    (&["protocol", "pattern", "Task"], 0),
    (&["protocol", "parse", "Task", "task:1"], 0),
    (&["protocol", "check", "task:1"], 0),
    (&["scope", "show", "cache"], 0),
    (&["page", "list", "default"], 3),
    (&["page", "show", "bb:default:MARKER"], 3),
    (&["work", "status", "held"], 0),
    (&["work", "status", "open"], 0),
    (&["work", "status", "done"], 0),
    (&["quota", "check", "--tokens", "1", "--session", "ivy"], 3),
    (&["quota", "record", "--input-tokens", "1", "--session", "ivy"], 3),
    (&["quota", "release", "--session", "ivy"], 3),
    (&["work", "wait", "done"], 0),
    (&["work", "wait", "held", "--timeout", "10ms"], 6),
    (&["observe", "--session", "ivy", "--peek"], 0),
    (&["read", "fact"], 0),
    (&["read", "leased"], 0),
    (&["list", "--long"], 0),
    (&["history", "fact"], 0),
    (&["history", "gone"], 0),
    (&["wait", "fact", "--timeout", "30s"], 0),
    (&["clear", "fact", "--dry-run"], 0),
    (&["clear", "*", "--dry-run"], 4),
    // The reservations of the template are of another directory.
    (&["file", "check", "src/a.rs", "--session", "oak"], 0),
    (&["lock", "acquire", "deploy", "--session", "oak"], 4),
    (&["work", "claim", "held", "--session", "oak"], 4),
    (&["work", "claim", "open", "--session", "oak"], 4),
    (&["work", "complete", "done", "--session", "oak"], 4),
    (&["write", "fact", "1", "--if-absent"], 4),
    (&["write", "leased", "1", "--session", "oak"], 4),
];

#[track_caller]
fn check(scratch: &Scratch, call: &[&str], expected: i32) {
    let human = scratch.run(call);
    assert_eq!(human.code, expected, "{call:?}: {human:?}");
    if call == ["export"] {
        // JSON in both forms.
        assert_harmless_json(&human, call);
        return;
    }
    assert_shown(&human, call);
    let program = scratch.run(call.iter().chain(&["--json"]));
    assert_eq!(program.code, expected, "{call:?}: {program:?}");
    assert_harmless_json(&program, call);
}

/// JSON may be printed on a terminal, too.
#[track_caller]
fn assert_harmless_json(output: &Output, call: &[&str]) {
    output.json();
    assert_shown(output, call);
}

#[track_caller]
fn assert_shown(output: &Output, call: &[&str]) {
    assert_harmless(&output.stdout, &format!("{call:?}"));
    assert_harmless(&output.stderr, &format!("{call:?}"));
    assert!(!output.stderr.contains("panicked"), "{call:?}: {output:?}");
}

fn every_reading_command_shows_a_hostile_board_as_text() {
    let generator = Generator::shared();
    let known = LISTS.iter().chain(DETAILS.iter().map(|(call, _)| call));
    let known: Vec<String> = known.map(|call| call.join(" ")).collect();
    for command in READING.iter().filter(|command| **command != "serve") {
        assert!(known.iter().any(|call| call.starts_with(command)), "`{command}` is not read here");
    }
    for extent in [Extent::Everything, Extent::AllButIdentities] {
        let scratch = generator.board(extent, PAYLOAD);
        std::fs::create_dir(scratch.path().join("projects")).unwrap();
        for call in LISTS {
            check(&scratch, call, 0);
        }
        let file = std::fs::read_to_string(scratch.path().join("board.md")).unwrap();
        assert_harmless(&file, "the rendered file");
        if extent == Extent::AllButIdentities {
            for (call, code) in DETAILS {
                check(&scratch, call, *code);
            }
        }
    }
    // A type of event is stored text too: it is shown, and forges nothing.
    let scratch = generator.board(Extent::Everything, PAYLOAD);
    let observed = scratch.run(["observe", "--after", "0"]).success().stdout;
    assert!(observed.contains("\\u{1b}]0;pwn\\u{7}"), "{observed}");
    // Followers write their lines by themselves.
    let follow = ["observe", "--after", "0", "--follow", "--limit", "3", "--json"];
    let followed = scratch.run(follow).success();
    assert!(followed.stdout.lines().count() >= 3, "a commit is never split: {}", followed.stdout);
    assert_shown(&followed, &follow);
    assert!(followed.stdout.contains("\\u001b]0;pwn\\u0007"), "{}", followed.stdout);
}

fn a_board_with_an_unreadable_column_is_reported_harmlessly() {
    let generator = Generator::shared();
    let damaged = generator.damaged_boards(PAYLOAD);
    assert!(damaged.len() > 10, "times and statuses are checked: {}", damaged.len());
    for (column, scratch) in damaged {
        for call in [
            &["agent", "list", "--all"][..],
            &["work", "list", "--all"],
            &["observe", "--after", "0"],
            &["snapshot"],
        ] {
            let human = scratch.run(call);
            assert!(matches!(human.code, 0 | 1), "{column:?} {call:?}: {human:?}");
            assert_shown(&human, call);
            let program = scratch.run(call.iter().chain(&["--json"]));
            // Half a list can no longer become an error object.
            if program.code == 0 || program.stderr.is_empty() {
                program.json();
            }
            assert_shown(&program, call);
        }
    }
}

fn huge_text_in_every_column_is_shown() {
    testkit::limit_test();
    let generator = Generator::shared();
    let scratch = generator.board(Extent::AllButIdentities, &"W".repeat(20_000));
    std::fs::create_dir(scratch.path().join("projects")).unwrap();
    for call in LISTS {
        check(&scratch, call, 0);
    }
    for (call, code) in DETAILS {
        check(&scratch, call, *code);
    }
    let said = hook(&scratch, "SessionStart", "new", json!({"source": "startup"}));
    assert!(said.chars().count() < 4_000, "a brief is bounded: {}", said.chars().count());
}

/// Every text in a JSON value.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(fields) => fields.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

fn hooks_quote_a_hostile_board_as_text() {
    let generator = Generator::shared();
    for extent in [Extent::Everything, Extent::AllButIdentities] {
        let scratch = generator.board(extent, PAYLOAD);
        let edit = || json!({"tool_name": "Edit", "tool_input": {"file_path": "src/a.rs"}});
        let mut told = 0;
        for (event, session, more) in [
            ("SessionStart", "new", json!({"source": "startup"})),
            ("SessionStart", "oak", json!({"source": "resume"})),
            ("UserPromptSubmit", "oak", json!({"prompt": "go on"})),
            ("PreToolUse", "oak", edit()),
            ("PostToolUse", "oak", edit()),
            ("PostToolUse", "ivy", edit()),
            ("Stop", "oak", json!({})),
        ] {
            let said = hook(&scratch, event, session, more);
            if said.is_empty() {
                continue;
            }
            told += 1;
            let said: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
            for text in texts(&said) {
                assert_harmless(text, &format!("{event} of {session}, {extent:?}"));
                assert!(!text.contains("<script>") && !text.contains("```"), "{event}: {text}");
            }
        }
        assert!(told > 0, "a hook has something to tell on this board");
    }
}

fn mcp_answers_carry_a_hostile_board_as_text() {
    let generator = Generator::shared();
    for extent in [Extent::Everything, Extent::AllButIdentities] {
        let scratch = generator.board(extent, PAYLOAD);
        let mut client = Client::new(&scratch);
        let mut answers = Vec::new();
        for (tool, arguments) in [
            ("who", json!({})),
            ("work_find", json!({"status": ["available", "claimed", "blocked", "completed"]})),
            ("work_find", json!({"id": "held"})),
            ("work_find", json!({"id": "done"})),
            ("entry_read", json!({"key": "fact"})),
            ("entry_query", json!({})),
            ("observe", json!({})),
            ("hold", json!({"action": "check", "paths": ["src/a.rs"]})),
            ("hold", json!({"action": "lock", "name": "deploy"})),
            ("work_claim", json!({"id": "held"})),
        ] {
            let id = client.start(tool, arguments);
            answers.push((tool, client.answer(id)));
        }
        for uri in ["board", "agents", "work", "events"] {
            answers.push((uri, client.ask("resources/read", json!({"uri": format!("blackboard://{uri}")}))));
        }
        for (what, answer) in answers {
            let result = &answer["result"];
            let blocks = ["content", "contents"].iter().filter_map(|name| result[name].as_array()).flatten();
            let texts: Vec<_> = blocks.filter_map(|block| block["text"].as_str()).collect();
            assert!(!texts.is_empty(), "{what}: {answer}");
            for text in texts {
                assert_harmless(text, &format!("{what}, {extent:?}"));
                serde_json::from_str::<Value>(text).unwrap_or_else(|error| panic!("{what}: {error}: {text}"));
            }
        }
    }
}
