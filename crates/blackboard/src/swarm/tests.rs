use proptest::prelude::*;

use super::document::Part;
use super::*;
use crate::board::Board;
use crate::entry::{Actor, Write};
use crate::error::Code;
use crate::scope::{CreateScope, Policies};
use crate::text::escape_json_for_terminal;

const A: &str = include_str!("../../tests/fixtures/swarm/dialect-a.md");
const B: &str = include_str!("../../tests/fixtures/swarm/dialect-b.md");
const C: &str = include_str!("../../tests/fixtures/swarm/dialect-c.md");

fn entry(key: &str, json: &str) -> FileEntry {
    FileEntry {
        author: Some("ivy".to_owned()),
        timestamp: Some("2026-02-03T15:30:00.123Z".parse().unwrap()),
        version: Some(1),
        ..FileEntry::new(key, Value::parse(json, usize::MAX).unwrap())
    }
}

fn view(entries: Vec<FileEntry>) -> SwarmView {
    SwarmView { entries, ..SwarmView::default() }
}

fn rendered(view: &SwarmView, dialect: Dialect, existing: &str) -> String {
    render(view, dialect, existing).unwrap().text
}

/// What a file keeps of an entry.
fn kept(entry: &FileEntry, dialect: Dialect) -> FileEntry {
    FileEntry {
        scope: None,
        tags: None,
        metadata: None,
        is_leased: false,
        version: entry.version.filter(|_| dialect == Dialect::C),
        value: Value::parse(&escape_json_for_terminal(entry.value.as_str()), usize::MAX).unwrap(),
        line: 0,
        ..entry.clone()
    }
}

#[test]
fn file_of_dialect_a_is_read() {
    let parsed = parse(A);
    assert_eq!((parsed.dialect, parsed.is_swarm_blackboard), (Dialect::A, true));
    let keys: Vec<&str> = parsed.entries.iter().map(|entry| &*entry.key).collect();
    assert_eq!(
        keys,
        [
            "task:q4_analysis",
            "cache:revenue_summary",
            "signal:data_analyst:ready",
            "result:q4_analysis",
            "lock:sap_connection"
        ]
    );
    let task = &parsed.entries[0];
    assert_eq!(task.author.as_deref(), Some("orchestrator"));
    assert_eq!(task.timestamp.unwrap().to_string(), "2026-02-04T10:00:00.123Z");
    assert_eq!((task.ttl, parsed.entries[2].ttl), (None, Some(Duration::from_mins(1))));
    let result = &parsed.entries[3];
    assert_eq!(result.others.as_ref().unwrap().as_str(), r#"{"committed_from":"chg_1a2b3c4d"}"#);
    assert!(result.value.as_str().contains(r"\n### not a key\n```json"));
    assert_eq!(parsed.problems, []);
    let notes: Vec<_> = parsed.notes.iter().map(|note| (&*note.section, &*note.text, note.lines)).collect();
    assert_eq!(
        notes,
        [
            ("Coordination Signals", "Oak is away until Monday.", 1),
            ("Execution History", "- 2026-02-04: first run by hand", 2)
        ]
    );
}

#[test]
fn files_of_dialects_b_and_c_are_read() {
    let parsed = parse(B);
    assert_eq!((parsed.dialect, parsed.entries.len()), (Dialect::B, 3));
    assert_eq!(parsed.entries[2].author.as_deref(), Some("strategy-agent"));
    assert_eq!((parsed.problems, parsed.notes), (vec![], vec![]));
    let parsed = parse(C);
    assert_eq!((parsed.dialect, parsed.entries.len()), (Dialect::C, 2));
    assert_eq!((parsed.entries[0].version, &*parsed.entries[1].key), (Some(3), "trace:a1b2c3d4"));
    assert_eq!((parsed.problems, parsed.notes), (vec![], vec![]));
}

#[test]
fn what_is_no_entry_is_a_problem_with_its_line() {
    testkit::limit_test();
    let file = |body: &str| format!("# Swarm Blackboard\n\n## Knowledge Cache\n### k\n{body}\n\n## Notes\n");
    let deep = format!("{{\"value\":{}{},\"key\":\"k\"}}", "[".repeat(200), "]".repeat(200));
    for (body, problem) in [
        ("", "it has no JSON below it"),
        ("hello", "the text below it is not JSON"),
        ("{\"value\": 1, \"key\": \"k\"", "the text below it is not JSON"),
        ("```json\n{\n```", "it is not JSON"),
        ("```json", "it is not JSON"),
        (&deep, "nested 200 levels deep"),
        ("{\"value\":1,\"key\":7}", "its key is not a text"),
        ("{\"value\":1,\"key\":\"k\",\"ttl\":\"soon\"}", "its TTL is not a number"),
        ("{\"value\":1,\"key\":\"k\",\"ttl\":-1}", "its TTL is negative"),
        ("{\"value\":\"\\ud800\",\"key\":\"k\"}", "lone surrogate"),
    ] {
        let parsed = parse(&file(body));
        assert_eq!(parsed.entries, [], "{body}");
        assert_eq!(parsed.problems[0].line, 4, "{body}");
        assert!(parsed.problems[0].problem.contains(problem), "{:?}", parsed.problems);
    }
    for (body, value, problem) in [
        ("{\"status\":\"done\"}", "{\"status\":\"done\"}", "it has no author and no time"),
        ("[1]", "[1]", "it has no author and no time"),
        ("{\"value\":1,\"key\":\"other\"}", "1", "its JSON has another key"),
        ("{\"value\":1,\"key\":\"k\",\"timestamp\":\"noon\"}", "1", "its time is not"),
        ("{\"value\":1,\"key\":\"k\",\"ttl\":5}", "1", "a TTL and no time"),
        ("{\"value\":1,\"key\":\"k\",\"source_agent\":7}", "1", "its author is not a text; it is left out"),
        ("{\"value\":1,\"key\":\"k\",\"scope\":[]}", "1", "its scope is not a text; it is left out"),
        (
            "{\"value\":1,\"key\":\"k\",\"version\":\"1\"}",
            "1",
            "its version is not a whole number; it is left out",
        ),
        (
            "{\"value\":1,\"key\":\"k\",\"timestamp\":\"9999-12-30T20:00:00Z\"}",
            "1",
            "its time is not between 1970 and 9999-12-30; it becomes 9999-12-30T00:00:00.000Z",
        ),
        (
            "{\"value\":1,\"key\":\"k\",\"timestamp\":\"1969-12-31T23:59:59\"}",
            "1",
            "its time is not between 1970 and 9999-12-30; it becomes 1970-01-01T00:00:00.000Z",
        ),
        (
            "{\"value\":1,\"key\":\"k\",\"timestamp\":\"2026-02-03T15:30:00Z\",\"ttl\":1e300}",
            "1",
            "its TTL is too long; it expires at 9999-12-30T00:00:00.000Z",
        ),
    ] {
        let parsed = parse(&file(body));
        let entry = &parsed.entries[0];
        assert_eq!((&*entry.key, entry.value.as_str()), ("k", value), "{body}");
        assert!(parsed.problems[0].problem.contains(problem), "{:?}", parsed.problems);
    }
}

#[test]
fn text_below_an_entry_is_a_note_and_not_a_part_of_it() {
    let file = "# Swarm Blackboard\n## Knowledge Cache\nRead me.\n### a\n{\"value\":1,\"key\":\"a\"}\nWhy 1?\n\n\
                ### b\n```json\n{\"value\":2,\"key\":\"b\"}\n```\nSee Oak.\n";
    let parsed = parse(file);
    assert_eq!((parsed.entries.len(), parsed.problems), (2, vec![]));
    let notes: Vec<_> = parsed.notes.iter().map(|note| (note.line, &*note.text)).collect();
    assert_eq!(notes, [(3, "Read me."), (6, "Why 1?"), (12, "See Oak.")]);
}

/// Keys and values that look like parts of the file.
fn hostile() -> Vec<FileEntry> {
    let mut entries = Vec::new();
    for key in [
        "### a",
        "## Knowledge Cache",
        "<!-- blackboard:end entries -->",
        "<!-- blackboard:begin entries -->",
        "```json",
        "a | b",
        "{\"key\":1}",
        "task:`x` | <script>",
        "signal:<!--",
        "trace:-->",
        "käse 🧀",
        "ends in space ",
        "&lt;x",
        "<x",
    ] {
        for json in [
            r#""```\n### x\n## Knowledge Cache\n<!-- blackboard:end entries -->\n""#,
            "{\"status\": \"a\\nb | c\",\n \"description\": \"<!-- ``` | \",\n\n\"action\":\"\\u202e\"}",
            "\"\u{202e}\u{9b}31m\"",
            "1.0",
            "123456789012345678901234567890",
            "null",
        ] {
            entries.push(entry(&format!("{key}{}", entries.len()), json));
            entries.push(entry(&format!("{}{key}", "x".repeat(entries.len() % 3)), json));
        }
    }
    entries.sort_by(|a, b| a.key.cmp(&b.key));
    entries.dedup_by(|a, b| a.key == b.key);
    entries
}

#[test]
fn hostile_entries_survive_every_dialect() {
    testkit::limit_test();
    let view = view(hostile());
    for dialect in Dialect::ALL {
        let text = rendered(&view, dialect, "");
        let parsed = parse(&text);
        assert_eq!((&*parsed.problems, &*parsed.notes), (&[][..], &[][..]), "{text}");
        let read: Vec<_> = parsed.entries.into_iter().map(|entry| FileEntry { line: 0, ..entry }).collect();
        let expected: Vec<_> = view.entries.iter().map(|entry| kept(entry, dialect)).collect();
        assert_eq!(read, expected);
        assert_eq!(rendered(&view, dialect, &text), text);
    }
}

#[test]
fn table_and_lists_show_tasks_work_signals_and_traces() {
    testkit::limit_test();
    let board = Board::memory();
    let scope = board.scope("default").acting_as(Actor::author("orchestrator"));
    for (key, json) in [
        (
            "task:q4",
            r#"{"status":"in_progress","assigned_to":"ana|lyst","started_at":"2026-02-04T10:00:00Z"}"#,
        ),
        ("signal:analyst", r#"{"status":"busy","current_task":"task:q4"}"#),
        ("trace:1", r#"{"action":"delegate_task","status":"completed"}"#),
    ] {
        scope.write(&Write::new(key, Value::parse(json, 1024).unwrap())).unwrap();
    }
    let ivy = board.agents().register(&crate::agent::Register::named("Ivy")).unwrap().agent.session_id;
    board.work().create(&crate::work::Create::new("ship", "Ship it")).unwrap();
    board.work().claim(&crate::work::Claim::of("ship", &ivy)).unwrap();
    let text = rendered(&board.swarm_view("default").unwrap(), Dialect::A, "");
    let lines: Vec<&str> = text.lines().collect();
    let has = |part: &str| lines.iter().any(|line| line.contains(part));
    assert!(has("| q4 | ana\\|lyst | in_progress | 2026-02-04T10:00:00Z |  |"), "{text}");
    assert!(has("| ship | Ivy | claimed | "), "{text}");
    assert!(has("- analyst: busy, task:q4 ("), "{text}");
    assert!(has(" orchestrator trace 1: delegate_task, completed"), "{text}");
    assert!(has(" work_claimed: Agent \"Ivy\" claimed \"Ship it\""), "{text}");
}

#[test]
fn a_file_of_another_program_gets_markers_and_keeps_its_notes() {
    testkit::limit_test();
    for (text, dialect) in [(A, Dialect::A), (B, Dialect::B), (C, Dialect::C)] {
        let parsed = parse(text);
        // Without the entry that the board does not have.
        let mut entries = parsed.entries.clone();
        let missing = entries.pop().unwrap();
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        let view = view(entries);
        let first = render(&view, dialect, text).unwrap();
        assert_eq!(first.left.len(), 1);
        assert_eq!((&first.left[0].key, first.left[0].line), (&missing.key, missing.line));
        let read = parse(&first.text);
        assert_eq!((read.dialect, read.entries.len()), (dialect, parsed.entries.len()), "{}", first.text);
        assert_eq!(read.problems, []);
        let texts = |parsed: &Parsed| parsed.notes.iter().map(|note| note.text.clone()).collect::<Vec<_>>();
        assert_eq!(texts(&read), texts(&parsed));
        assert_eq!(rendered(&view, dialect, &first.text), first.text);
        // The table has its head once.
        assert_eq!(first.text.matches("| TaskID |").count(), 1, "{}", first.text);
    }
}

#[test]
fn sections_that_are_missing_are_added() {
    let view = view(vec![entry("a", "1")]);
    for existing in [
        "# Swarm Blackboard",
        "# Swarm Blackboard\nLast Updated: before",
        "# Swarm Blackboard\n\n## Execution History\nBy hand.",
        "\u{feff}# Swarm Blackboard\r\nLast Updated: x\r\nContent Hash: y\r\n\r\n## Other\r\ntext\r\n",
    ] {
        for dialect in Dialect::ALL {
            let text = rendered(&view, dialect, existing);
            assert_eq!(parse(&text).entries.len(), 1, "{text}");
            assert_eq!(rendered(&view, dialect, &text), text, "{text}");
            assert_eq!(text.matches("Last Updated:").count(), 1, "{text}");
            assert_eq!(text.matches("Content Hash:").count(), usize::from(dialect == Dialect::C), "{text}");
            assert_eq!(text.contains("By hand."), existing.contains("By hand."));
        }
    }
}

#[test]
fn incomplete_markers_and_other_files_are_refused() {
    let empty = SwarmView::default();
    let good = rendered(&empty, Dialect::A, "");
    let end = "<!-- blackboard:end tasks -->\n";
    let begin = "<!-- blackboard:begin tasks -->\n";
    for (text, problem) in [
        (good.replace(end, ""), "the marker of the tasks has no end"),
        (good.replace(begin, ""), "the marker of the tasks has no beginning"),
        (format!("{good}{begin}{end}"), "two pairs of markers"),
        (format!("{good}{begin}"), "two pairs of markers"),
        ("# Shopping\n".to_owned(), "is not a swarm blackboard"),
        ("hello\n# Swarm Blackboard\n".to_owned(), "is not a swarm blackboard"),
    ] {
        let error = render(&empty, Dialect::A, &text).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
        assert!(error.hint().is_some());
    }
}

#[test]
fn notes_survive_many_renders() {
    testkit::limit_test();
    let mut text = rendered(&SwarmView::default(), Dialect::A, "");
    let notes = ["top", "| a | table |", "below the entries", "- a list\n  - of two", "### own heading"];
    for (heading, note) in Part::ALL.iter().map(|part| part.end()).zip(&notes[1..]) {
        text = text.replace(heading, &format!("{heading}\n{note}"));
    }
    text = text.replace("\n## Active Tasks", "\ntop\n\n## Active Tasks");
    for round in 0..100 {
        let entries = (0..round % 7).map(|number| entry(&format!("task:{number}"), &round.to_string()));
        text = rendered(&view(entries.collect()), Dialect::ALL[round % 3], &text);
        for note in notes {
            assert!(text.contains(note), "{note}: {text}");
        }
    }
    let outside = |text: &str| {
        let mut rest = text.to_owned();
        for part in Part::ALL {
            let (begin, end) = (rest.find(part.begin()).unwrap(), rest.find(part.end()).unwrap());
            rest.replace_range(begin..end, "");
        }
        rest
    };
    let again = rendered(&SwarmView::default(), Dialect::A, &text);
    assert_eq!(outside(&again), outside(&text));
}

#[test]
fn each_part_is_in_its_own_section_if_a_file_has_only_some_of_them() {
    testkit::limit_test();
    let board = view(vec![entry("task:1", "42")]);
    for last in Part::ALL {
        for end in ["", "\n", "\nmy text\n", "\r\nmy text\r\n"] {
            let text =
                rendered(&board, Dialect::A, &format!("# Swarm Blackboard\nnote\n{}{end}", last.heading()));
            for part in Part::ALL {
                let begin = text.find(part.begin()).unwrap();
                let heading = text[..begin].lines().rfind(|line| line.starts_with("## ")).unwrap();
                assert_eq!(heading.trim_end(), part.heading(), "{text}");
            }
            let keys: Vec<_> = parse(&text).entries.into_iter().map(|entry| entry.key).collect();
            assert_eq!(keys, ["task:1"], "{text}");
            assert_eq!(rendered(&board, Dialect::A, &text), text);
        }
    }
}

/// A file with this text in a section of a person, and an entry.
fn file_with(text: &str) -> String {
    format!(
        "# Swarm Blackboard\n\n## Notes\n{text}\n## Knowledge Cache\n### real\n{{\"value\":1,\"key\":\"real\"}}\n"
    )
}

#[test]
fn headings_in_a_code_block_are_text() {
    testkit::limit_test();
    let example = "## Knowledge Cache\n### fake\n{\"value\":1,\"key\":\"fake\"}\n";
    for (text, keys) in [
        (format!("```\n{example}```\n"), &["real"][..]),
        (format!("  ~~~~ md\n{example}~~~\n```\n~~~~~  \n"), &["real"]),
        (format!("````\n```\n{example}```\n````\n"), &["real"]),
        // These are no code blocks.
        (format!("``\n{example}``\n"), &["fake", "real"]),
        (format!("```one``` line\n{example}"), &["fake", "real"]),
        (format!("    ```\n{example}    ```\n"), &["fake", "real"]),
        (format!("```\n{example}"), &["fake", "real"]),
        (format!("```\n{example}```rust\n"), &["fake", "real"]),
    ] {
        let file = file_with(&text);
        let parsed = parse(&file);
        let found: Vec<_> = parsed.entries.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(found, keys, "{file}");
        let first = rendered(&view(vec![entry("real", "1")]), Dialect::C, &file);
        assert!(first.contains(&text), "{first}");
        let heading = first.rfind("## Knowledge Cache").unwrap();
        assert_eq!(first.find(Part::Entries.begin()).unwrap() > heading, keys.len() == 1, "{first}");
        assert_eq!(rendered(&view(vec![entry("real", "1")]), Dialect::C, &first), first);
    }
}

#[test]
fn code_block_that_is_not_closed_hides_no_marker() {
    testkit::limit_test();
    let board = view(vec![entry("a", "1"), entry("b", "2")]);
    for dialect in Dialect::ALL {
        let first = rendered(&board, dialect, "# Swarm Blackboard\n\n## Notes\n```\nnot closed\n");
        let second = rendered(&board, dialect, &format!("{first}```\ntext\n```\n"));
        assert_eq!(second.matches(Part::Entries.begin()).count(), 1, "{second}");
        assert_eq!(parse(&second).entries.len(), 2, "{second}");
    }
}

#[test]
fn many_code_blocks_that_are_not_closed_are_read_in_time() {
    testkit::limit_test();
    let file = file_with(&"```rust\n".repeat(100_000));
    assert_eq!(parse(&file).entries.len(), 1);
    let marked = file_with(&format!(
        "{}{}\n{}\n```\n",
        "```rust\n".repeat(100_000),
        Part::Tasks.begin(),
        Part::Tasks.end()
    ));
    assert_eq!(parse(&marked).entries.len(), 1);
}

#[test]
fn a_file_keeps_its_line_breaks() {
    testkit::limit_test();
    let board = view(vec![entry("task:1", "{\"status\":\"open\"}"), entry("signal:oak", "1")]);
    for dialect in Dialect::ALL {
        for existing in [file_with("mine\n").replace('\n', "\r\n"), "# Swarm Blackboard\r\n".to_owned()] {
            let first = rendered(&board, dialect, &existing);
            assert_eq!(first.matches('\n').count(), first.matches("\r\n").count(), "{first:?}");
            assert_eq!(rendered(&board, dialect, &first), first);
            let other = rendered(&view(vec![entry("task:1", "2")]), dialect, &first);
            assert_eq!(other.matches('\n').count(), other.matches("\r\n").count(), "{other:?}");
            assert!(parse(&other).entries.iter().any(|entry| entry.key == "task:1"));
        }
        assert!(!rendered(&board, dialect, &file_with("a\r\n")).contains("-->\r\n"));
    }
}

#[test]
fn entries_that_stay_have_a_reason() {
    testkit::limit_test();
    let entry_of = |key: &str, rest: &str| format!("### {key}\n{{\"key\":\"{key}\",\"value\":1{rest}}}\n");
    let cases = [
        (entry_of("same", ""), None),
        (entry_of("missing", ""), Some(LeftReason::Missing)),
        (entry_of("other", ""), Some(LeftReason::Different)),
        (entry_of("a*", ""), Some(LeftReason::RefusedKey)),
        (entry_of("lock:sap", ""), Some(LeftReason::Lock)),
        (entry_of("other", ",\"timestamp\":\"2026-02-03T15:30:00Z\",\"ttl\":60"), Some(LeftReason::Expired)),
        ("### broken\n{\n".to_owned(), Some(LeftReason::Unreadable)),
        ("### empty\n".to_owned(), Some(LeftReason::Unreadable)),
    ];
    let board = SwarmView {
        scope: "team".to_owned(),
        time: "2026-02-03T15:31:00Z".parse().unwrap(),
        ..view(vec![entry("other", "2"), entry("same", "1")])
    };
    let text: String = cases.iter().map(|(text, _)| text.as_str()).collect();
    let left =
        render(&board, Dialect::A, &format!("# Swarm Blackboard\n## Knowledge Cache\n{text}")).unwrap().left;
    let reasons: Vec<_> = left.iter().map(|left| left.reason).collect();
    assert_eq!(reasons, cases.iter().filter_map(|(_, reason)| *reason).collect::<Vec<_>>());
}

#[test]
fn an_unknown_scope_removes_no_entries_of_a_file() {
    testkit::limit_test();
    let board = Board::memory();
    let render_scope = |scope: &str, existing: &str| {
        render(&board.swarm_view(scope).unwrap(), Dialect::A, existing).map(|rendered| rendered.text)
    };
    for scope in ["team", "gone"] {
        board.scope(scope).write(&Write::new("a", Value::null())).unwrap();
    }
    board.scopes().create(&CreateScope::new("empty", Policies::default())).unwrap();
    let file = render_scope("team", "").unwrap();
    board.scope("gone").delete("a").unwrap();
    // A scope that exists, or had entries, is shown as it is.
    for scope in ["team", "gone", "empty"] {
        assert!(render_scope(scope, &file).is_ok(), "{scope}");
    }
    let empty = render_scope("empty", &file).unwrap();
    for (scope, existing, is_allowed) in [
        ("teem", &file, false),
        ("tea", &file, false),
        ("teem", &empty, true),
        ("teem", &String::new(), true),
    ] {
        let outcome = render_scope(scope, existing).map(drop).map_err(|error| error.code());
        assert_eq!(outcome, if is_allowed { Ok(()) } else { Err(Code::ScopeNotFound) }, "{scope}");
    }
}

/// Texts with the parts of the file in any order.
fn any_file() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("# Swarm Blackboard\n".to_owned()),
        Just("Last Updated: x\n".to_owned()),
        Just("```rust\n".to_owned()),
        Just("~~~~\n".to_owned()),
        Just("Content Hash: x\n".to_owned()),
        prop::sample::select(Part::ALL.to_vec()).prop_map(|part| format!("{}\n", part.heading())),
        prop::sample::select(Part::ALL.to_vec()).prop_map(|part| format!("{}\n", part.begin())),
        prop::sample::select(Part::ALL.to_vec()).prop_map(|part| format!("{}\n", part.end())),
        Just("### key\n".to_owned()),
        Just("```json\n".to_owned()),
        Just("```\n".to_owned()),
        Just("{\"key\":\"key\",\"value\":[1,\n".to_owned()),
        Just("2],\"timestamp\":\"2026-02-03T15:30:00Z\",\"ttl\":1}\n".to_owned()),
        Just("| TaskID | Agent | Status | Started | Description |\n".to_owned()),
        Just("\n".to_owned()),
        Just("\r\n".to_owned()),
        any::<String>(),
        "[#`{}\"\\[\\]<>|:a \n-]{0,20}",
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn any_entries() -> impl Strategy<Value = Vec<FileEntry>> {
    let json = prop_oneof![
        any::<String>().prop_map(|text| serde_json::Value::from(text).to_string()),
        any::<i64>().prop_map(|number| number.to_string()),
        (any::<String>(), any::<String>())
            .prop_map(|(name, text)| serde_json::json!({ name: [text, null], "status": "x|y" }).to_string()),
        Just("{ \"a\" :\n\t1.0 }".to_owned()),
    ];
    let key = prop_oneof!["[^\\p{C}\\p{Z}:*?\\[\\]]{1,12}", "(task|signal|trace|cache):[a-z<>|`#{}!-]{1,12}"];
    let one = (
        key,
        json,
        "[a-zA-Z |<-]{1,8}",
        0..4_000_000_000_000_i64,
        prop::option::of(1..10_000_000_u64),
        1..99_u64,
    );
    prop::collection::btree_map("[a-z]{1,8}", one, 0..12).prop_map(|entries| {
        let mut entries: Vec<_> = entries
            .into_values()
            .map(|(key, json, author, time, ttl, version)| FileEntry {
                author: Some(author),
                timestamp: Some(Timestamp::from_millis(time)),
                ttl: ttl.map(Duration::from_millis),
                version: Some(version),
                ..entry(&key, &json)
            })
            .collect();
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        entries.dedup_by(|a, b| a.key == b.key);
        entries
    })
}

proptest! {
    #[test]
    fn any_text_can_be_parsed(text in any_file()) {
        testkit::limit_test();
        let parsed = parse(&text);
        prop_assert!(parsed.entries.len() <= text.matches("### ").count());
    }

    #[test]
    fn entries_survive_every_dialect(entries in any_entries()) {
        testkit::limit_test();
        let view = view(entries);
        for dialect in Dialect::ALL {
            let text = rendered(&view, dialect, "");
            let parsed = parse(&text);
            prop_assert_eq!(&parsed.problems, &[]);
            prop_assert_eq!(&parsed.notes, &[]);
            let read: Vec<_> = parsed.entries.into_iter().map(|entry| FileEntry { line: 0, ..entry }).collect();
            let expected: Vec<_> = view.entries.iter().map(|entry| kept(entry, dialect)).collect();
            prop_assert_eq!(read, expected);
        }
    }

    #[test]
    fn a_second_render_changes_nothing(entries in any_entries(), text in any_file()) {
        testkit::limit_test();
        let (view, text) = (view(entries), format!("# Swarm Blackboard\n{text}"));
        if let Ok(first) = render(&view, Dialect::C, &text) {
            let second = render(&view, Dialect::C, &first.text);
            prop_assert_eq!(second.map(|second| second.text).unwrap(), first.text);
        }
    }
}
