//! A reading command on a board that does not exist answers "empty" and creates nothing.

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
            assert_eq!(output.stderr, "", "{command}");
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
        scratch.run(call).success();
        assert!(scratch.contents() == before, "{call:?} created something");
    }
}
