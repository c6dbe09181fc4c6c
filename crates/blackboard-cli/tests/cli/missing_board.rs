//! A reading command on a board that does not exist says so, answers as an empty one would, and creates nothing.

use serde_json::{Value, json};

use crate::refusals::{CALLS, READING};
use crate::scratch::Scratch;

#[test]
fn whoever_reads_creates_nothing() {
    let scratch = Scratch::new();
    let before = scratch.contents();
    for (command, arguments) in CALLS.iter().filter(|(command, _)| READING.contains(command)) {
        for database in [&[][..], &["--db", "no/such/directory/x.db"], &["--db", "x.db"]] {
            let words = command.split(' ').chain(arguments.iter().copied()).chain(database.iter().copied());
            let output = scratch.run(words.chain(["--json"]));
            let answer = output.json();
            let has_envelope = !["read", "list", "snapshot"].contains(command);
            if has_envelope {
                assert_eq!(answer["board"], "missing", "{command}: {answer}");
            }
            match *command {
                // Nothing can be shown of what is not there.
                "agent show" | "work status" | "project status" | "observe" | "history" | "file check" => {
                    assert_eq!((output.code, answer["ok"].as_bool()), (3, Some(false)), "{command}");
                }
                // These have the shapes of the script that they replace.
                "read" => assert_eq!((output.code, answer), (3, Value::Null)),
                "list" => assert_eq!((output.code, answer), (0, json!([]))),
                "snapshot" => assert_eq!((output.code, answer), (0, json!({}))),
                _ => assert_eq!((output.code, answer["ok"].as_bool()), (0, Some(true)), "{command}"),
            }
            // What has no envelope can't say it anywhere else.
            let says_so =
                output.stderr.starts_with("note: no board at ") && output.stderr.lines().count() == 1;
            assert!(if has_envelope { output.stderr.is_empty() } else { says_so }, "{command}: {output:?}");
            assert!(scratch.contents() == before, "{command} created something");
        }
    }
    for (call, list) in [
        (&["observe"][..], true),
        (&["observe", "--since", "1h"], true),
        (&["sweep", "--dry-run"], false),
        (&["work", "list", "--all"], true),
        (&["agent", "list", "--all"], true),
        (&["project", "list"], true),
        (&["lock", "list"], true),
        (&["file", "list"], true),
        (&["file", "check", "src/lib.rs"], false),
        (&["export"], false),
        (&["query", "*", "--tag", "x"], true),
        (&["list", "--long"], true),
        (&["clear", "*", "--dry-run"], false),
    ] {
        let answer = scratch.json(call);
        if list {
            assert_eq!(
                (answer["count"].as_u64(), answer["items"].as_array().map(Vec::len)),
                (Some(0), Some(0))
            );
        }
        let shown = scratch.run(call).success();
        let file = scratch.database().display().to_string();
        if list {
            let sentence =
                format!("No board at {file} yet. Create one with `blackboard init`, or check --db.\n");
            assert_eq!((shown.stdout, &*shown.stderr), (sentence, ""), "{call:?}");
        } else {
            let note =
                format!("note: no board at {file} yet. Create one with `blackboard init`, or check --db\n");
            assert_eq!(shown.stderr, note, "{call:?}");
        }
        assert!(scratch.contents() == before, "{call:?} created something");
    }
}

#[test]
fn a_refusal_on_a_missing_board_names_the_board() {
    let scratch = Scratch::new();
    let refused = scratch.run(["work", "status", "x", "--db", "typo.db"]);
    assert_eq!(refused.code, 3);
    let note = format!("note: no board at {} yet. ", scratch.path().join("typo.db").display());
    assert!(refused.stderr.starts_with("error: ") && refused.stderr.contains(&note), "{refused:?}");
}

#[test]
fn a_board_that_exists_is_not_called_missing() {
    let scratch = Scratch::new();
    scratch.run(["init"]).success();
    for call in [&["work", "list"][..], &["agent", "list"], &["status"], &["observe"], &["list", "--long"]] {
        assert_eq!(scratch.json(call).get("board"), None, "{call:?}");
        assert_eq!(scratch.run(call).success().stderr, "", "{call:?}");
    }
}
