use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use blackboard::Code;
use serde_json::json;

use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_describes_the_file,
    notes_survive_a_hundred_renders,
    a_file_that_cannot_be_replaced_stays,
    the_file_of_a_scope_names_no_key_of_another_one,
    entries_that_only_the_file_has_stay_and_are_reported,
    note_names_each_entry_that_stays_and_what_helps,
    mistyped_scope_empties_no_file,
    temporary_file_of_a_killed_render_is_removed,
];

fn human_output_matches_transcript() {
    transcript::check("render");
}

fn json_describes_the_file() {
    let scratch = Scratch::new();
    scratch.json(["write", "task:1", "1"]);
    scratch.json(["write", "other", "1", "--scope", "team"]);
    let first = scratch.json(["render", "board.md"]);
    is_object(&first, &["file", "dialect", "revision", "entries", "changed", "left"]);
    assert_eq!(
        (&first["dialect"], &first["entries"], &first["changed"]),
        (&json!("A"), &json!(1), &json!(true))
    );
    let file = scratch.path().join("board.md");
    // What is on the board is as private as the board.
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(scratch.json(["render", "board.md"])["changed"], false);
    let team = scratch.json(["render", "board.md", "--scope", "team", "--dialect", "c"]);
    assert_eq!((&team["dialect"], &team["changed"]), (&json!("C"), &json!(true)));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o644);
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("Content Hash: ") && text.contains("### other\n```json\n{\"key\":\"other\""),
        "{text}"
    );
    assert!(!text.contains("### task:1"), "{text}");
    let files = fs::read_dir(scratch.path()).unwrap().map(|file| file.unwrap().file_name());
    assert_eq!(files.filter(|name| name.to_string_lossy().contains("board.md")).count(), 1);
}

fn notes_survive_a_hundred_renders() {
    let scratch = Scratch::new();
    scratch.json(["write", "task:1", "0"]);
    scratch.json(["render", "board.md"]);
    let file = scratch.path().join("board.md");
    let note = "\r\n  A note with\ttabs, `code`, <!-- a comment --> and\n\n| a | table |\n";
    let mut text = fs::read_to_string(&file).unwrap();
    for heading in
        ["## Active Tasks\n", "## Knowledge Cache\n", "## Coordination Signals\n", "## Execution History\n"]
    {
        text = text.replace(heading, &format!("{heading}{note}"));
    }
    text.push_str("the end without a line break");
    fs::write(&file, &text).unwrap();
    let board = scratch.board();
    for round in 1..=100 {
        let value = blackboard::entry::Value::of(&round).unwrap();
        board.scope("default").write(&blackboard::entry::Write::new("task:1", value)).unwrap();
        // Each call of the program takes a while; the library renders the same text.
        if round % 10 == 0 {
            let rendered = scratch.json(["render", "board.md"]);
            assert_eq!(rendered["changed"], true);
        } else {
            let view = board.swarm_view("default").unwrap();
            let existing = fs::read_to_string(&file).unwrap();
            let dialect = blackboard::swarm::Dialect::ALL[round % 3];
            fs::write(&file, blackboard::swarm::render(&view, dialect, &existing).unwrap().text).unwrap();
        }
    }
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text.matches(note).count(), 4, "{text}");
    assert!(text.ends_with("the end without a line break") && text.contains("\"value\":100,"), "{text}");
}

fn a_file_that_cannot_be_replaced_stays() {
    let scratch = Scratch::new();
    scratch.json(["write", "a", "1"]);
    let path = |name: &str| scratch.path().join(name);
    fs::write(path("list.md"), "# Shopping\n").unwrap();
    fs::write(path("half.md"), "# Swarm Blackboard\n<!-- blackboard:begin tasks -->\n").unwrap();
    fs::write(path("bytes.md"), b"# Swarm Blackboard\n\xff\n").unwrap();
    fs::create_dir(path("directory.md")).unwrap();
    symlink(path("target.md"), path("link.md")).unwrap();
    for (file, code) in [
        ("list.md", Code::InvalidValue),
        ("half.md", Code::InvalidValue),
        ("bytes.md", Code::InvalidValue),
        ("-", Code::InvalidValue),
        ("directory.md", Code::UnsafePermissions),
        ("link.md", Code::UnsafePermissions),
        ("no/such/directory.md", Code::Io),
    ] {
        let before = scratch.contents().len();
        let refused = scratch.run(["render", file, "--json"]).refused(code);
        assert!(refused["error"].is_string(), "{refused}");
        assert_eq!(scratch.contents().len(), before, "{file}");
    }
    assert_eq!(fs::read_to_string(path("list.md")).unwrap(), "# Shopping\n");
    assert!(!path("target.md").exists());
}

fn entries_that_only_the_file_has_stay_and_are_reported() {
    let scratch = Scratch::new();
    let old = "# Swarm Blackboard\nLast Updated: x\n\n## Knowledge Cache\n### old:a\n{\"key\":\"old:a\",\"value\":1,\
               \"source_agent\":\"oak\",\"timestamp\":\"2026-02-04T10:00:00Z\",\"ttl\":null}\n\nMy note.\n";
    let file = scratch.path().join("board.md");
    fs::write(&file, old).unwrap();
    scratch.json(["write", "new", "1"]);
    let rendered = scratch.json(["render", "board.md"]);
    assert_eq!(rendered["left"], json!([{"key": "old:a", "line": 5, "reason": "missing"}]));
    // After an import, the file has it twice until a person deletes it beside the markers.
    scratch.json(["import", "board.md"]);
    let again = scratch.json(["render", "board.md"]);
    assert_eq!(again["left"], json!([{"key": "old:a", "line": 5, "reason": "repeated"}]));
    let said = scratch.run(["render", "board.md"]).success().stderr;
    let expected = "note: 1 entry of the file is in it twice: old:a (line 5: also between the markers); delete what the \
                    file has twice, beside the markers\n";
    assert_eq!(said, expected);
    fs::write(&file, old).unwrap();
    scratch.json(["import", "board.md"]);
    assert_eq!(scratch.json(["render", "board.md"])["left"], json!([]));
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!((text.matches("### old:a\n").count(), text.matches("My note.").count()), (1, 1), "{text}");
}

fn note_names_each_entry_that_stays_and_what_helps() {
    let scratch = Scratch::new();
    scratch.json(["write", "other", "2", "--scope", "team"]);
    let entry = |key: &str| format!("### {key}\n{{\"key\":\"{key}\",\"value\":1}}\n");
    let file = |keys: &[&str]| {
        let entries: String = keys.iter().map(|key| entry(key)).collect();
        fs::write(scratch.path().join("b.md"), format!("# Swarm Blackboard\n## Knowledge Cache\n{entries}"))
            .unwrap();
        scratch.run(["render", "b.md", "--scope", "team"]).success().stderr
    };
    let note = file(&["new", "other"]);
    let expected = "2 entries of the file are not on the board like this: new (line 3: not on the board), \
                    other (line 5: the board has another value); to add what the board does not have: ";
    assert!(note.contains(expected), "{note}");
    assert!(note.contains(" import --scope team b.md; to take the values of the file: "), "{note}");
    assert!(note.contains(" import --keep theirs --scope team b.md\n"), "{note}");
    let note = file(&["lock:sap"]);
    assert!(
        note.contains("lock:sap (line 3: a lock, not an entry); what cannot be imported stays"),
        "{note}"
    );
    assert!(!note.contains("import -"), "{note}");
    let note = file(&["a", "b", "c", "d", "e", "f", "g"]);
    assert!(note.contains("e (line 11: not on the board), and 2 more;"), "{note}");
}

fn mistyped_scope_empties_no_file() {
    let scratch = Scratch::new();
    scratch.json(["write", "a", "1", "--scope", "team"]);
    scratch.json(["render", "b.md", "--scope", "team"]);
    let file = scratch.path().join("b.md");
    let before = fs::read(&file).unwrap();
    let refused = scratch.run(["render", "b.md", "--scope", "teem", "--json"]).refused(Code::ScopeNotFound);
    let expected = "scope teem has neither policies nor entries, and the file shows 1 entry of another scope";
    assert_eq!(refused["error"], expected);
    assert_eq!(fs::read(&file).unwrap(), before);
    // A scope whose entries were deleted is empty, and its file too.
    scratch.json(["delete", "a", "--scope", "team"]);
    assert_eq!(scratch.json(["render", "b.md", "--scope", "team"])["entries"], 0);
    assert!(!fs::read_to_string(&file).unwrap().contains("### a\n"));
}

fn temporary_file_of_a_killed_render_is_removed() {
    let scratch = Scratch::new();
    scratch.json(["write", "a", "1"]);
    let left = scratch.path().join(".b.md-4194304-1770132600000");
    fs::write(&left, "half").unwrap();
    scratch.json(["render", "b.md"]);
    assert!(!left.exists());
}

fn the_file_of_a_scope_names_no_key_of_another_one() {
    let scratch = Scratch::new();
    scratch.json(["write", "seen", "1"]);
    scratch.json(["scope", "create", "private", "--deny", "oak:*"]);
    scratch.json(["write", "hidden", "1", "--scope", "private"]);
    scratch.json(["work", "create", "item", "--title", "Item"]);
    for (scope, shown, not_shown) in [("default", "seen", "hidden"), ("private", "hidden", "seen")] {
        let file = format!("{scope}.md");
        scratch.json(["render", &file, "--scope", scope]);
        let text = fs::read_to_string(scratch.path().join(file)).unwrap();
        assert!(text.contains(shown) && text.contains("work_created"), "{text}");
        assert!(!text.contains(not_shown), "{text}");
        assert_eq!(text.contains("private"), scope == "private", "{text}");
    }
}
