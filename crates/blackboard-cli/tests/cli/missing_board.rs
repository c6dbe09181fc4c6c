//! A command that reads a missing board reports that, answers as for an empty one, and creates nothing.

use serde_json::{Value, json};

use crate::refusals::{CALLS, READING};
use crate::scratch::Scratch;

testkit::on_each_engine![
    commands_that_read_create_nothing,
    a_refusal_on_a_missing_board_names_the_board,
    commands_that_wait_refuse_a_missing_board_and_create_nothing,
    existing_board_is_not_reported_as_missing,
    commands_that_change_existing_rows_create_no_board,
    a_new_board_is_reported_and_a_mistyped_directory_is_not_created,
];

fn commands_that_read_create_nothing() {
    let scratch = Scratch::new();
    // A hub for `pull` and `registry`.
    std::fs::create_dir(scratch.path().join("projects")).unwrap();
    let before = scratch.contents();
    // A quota that is not configured is refused before a board is searched for.
    let reads = |command: &str| READING.contains(&command) && !command.starts_with("quota ");
    for (command, arguments) in CALLS.iter().filter(|(command, _)| reads(command)) {
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
                "agent show" | "work status" | "work wait" | "project status" | "scope show" | "observe"
                | "history" | "file check" | "wait" | "render" | "protocol show" | "protocol key"
                | "protocol pattern" | "protocol parse" | "page list" | "page show" => {
                    assert_eq!((output.code, answer["ok"].as_bool()), (3, Some(false)), "{command}");
                }
                // These have the shapes of the script that they replace.
                "read" => assert_eq!((output.code, answer), (3, Value::Null)),
                "list" => assert_eq!((output.code, answer), (0, json!([]))),
                "snapshot" => assert_eq!((output.code, answer), (0, json!({}))),
                _ => assert_eq!((output.code, answer["ok"].as_bool()), (0, Some(true)), "{command}"),
            }
            // Output without an envelope has no other place for it.
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
        (&["protocol", "list"], false),
        (&["protocol", "key", "Task", "id=1"], false),
        (&["scope", "list"], true),
        (&["page", "list"], true),
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
        let file = scratch.location();
        let named_by = if scratch.is_served() { "BLACKBOARD_DB" } else { "--db" };
        if list {
            let sentence =
                format!("No board at {file} yet. Create one with `blackboard init`, or check {named_by}.\n");
            assert_eq!((shown.stdout, &*shown.stderr), (sentence, ""), "{call:?}");
        } else {
            let note = format!(
                "note: no board at {file} yet. Create one with `blackboard init`, or check {named_by}\n"
            );
            assert_eq!(shown.stderr, note, "{call:?}");
        }
        assert!(scratch.contents() == before, "{call:?} created something");
    }
}

fn a_refusal_on_a_missing_board_names_the_board() {
    let scratch = Scratch::new();
    let refused = scratch.run(["work", "status", "x", "--db", "typo.db"]);
    assert_eq!(refused.code, 3);
    let note = format!("note: no board at {} yet. ", scratch.path().join("typo.db").display());
    assert!(refused.stderr.starts_with("error: ") && refused.stderr.contains(&note), "{refused:?}");
}

fn commands_that_wait_refuse_a_missing_board_and_create_nothing() {
    let scratch = Scratch::new();
    let before = scratch.contents();
    // No time limit: on a board that does not exist, they would wait forever.
    for call in [
        &["wait", "result"][..],
        &["call", "compliance", "1"],
        &["render", "board.md"],
        &["render", "board.md", "--follow"],
        &["observe", "--follow"],
        &["observe", "--follow", "--after", "0"],
        &["observe", "--follow", "--last", "5"],
        &["observe", "--follow", "--since", "1h"],
        &["observe", "--follow", "--cursor", "mirror"],
        &["watch"],
    ] {
        for (database, file) in [
            (&[][..], scratch.location().into()),
            (&["--db", "typo.db"], scratch.path().join("typo.db")),
            (&["--db", "no/such/directory/x.db"], scratch.path().join("no/such/directory/x.db")),
        ] {
            let refused = scratch.run(call.iter().chain(database));
            let program = ["blackboard"].iter().chain(database).copied().collect::<Vec<_>>().join(" ");
            let expected = format!(
                "error: no board at {}\nhint: check --db, or create one: {program} init\n",
                file.display()
            );
            assert_eq!(
                (refused.code, refused.stdout, refused.stderr),
                (3, String::new(), expected),
                "{call:?}"
            );
            let answer = scratch.run(call.iter().chain(database).chain(&["--json"])).json();
            assert_eq!((&answer["code"], &answer["board"]), (&json!("board_not_found"), &json!("missing")));
            assert!(scratch.contents() == before, "{call:?} created something");
        }
    }
}

fn existing_board_is_not_reported_as_missing() {
    let scratch = Scratch::new();
    scratch.run(["init"]).success();
    for call in [&["work", "list"][..], &["agent", "list"], &["status"], &["observe"], &["list", "--long"]] {
        assert_eq!(scratch.json(call).get("board"), None, "{call:?}");
        assert_eq!(scratch.run(call).success().stderr, "", "{call:?}");
    }
}

fn commands_that_change_existing_rows_create_no_board() {
    let scratch = Scratch::new();
    let before = scratch.contents();
    for (call, code) in [
        (&["agent", "heartbeat", "--session", "00000000"][..], 3),
        (&["agent", "deregister", "00000000"], 3),
        (&["work", "claim", "x", "--session", "00000000"], 3),
        (&["work", "complete", "x", "--session", "00000000"], 3),
        (&["work", "delete", "x"], 3),
        (&["work", "reset", "x"], 3),
        (&["work", "block", "x", "--blocked-by", "y"], 3),
        (&["work", "unblock", "x"], 3),
        (&["project", "remove", "x"], 3),
        (&["scope", "set", "x", "--no-ttl"], 3),
        (&["scope", "delete", "x"], 3),
        (&["page", "unmap", "x"], 0),
        (&["lock", "release", "x", "--session", "00000000"], 3),
        (&["delete", "x"], 3),
        (&["purge", "x"], 3),
        (&["clear", "*"], 0),
        (&["sweep"], 0),
    ] {
        for database in [&[][..], &["--db", "typo.db"]] {
            let output = scratch.run(call.iter().chain(database).chain(&["--json"]));
            assert_eq!(
                (output.code, &output.json()["board"]),
                (code, &json!("missing")),
                "{call:?}: {output:?}"
            );
            assert!(scratch.contents() == before, "{call:?} created something");
        }
    }
}

fn a_new_board_is_reported_and_a_mistyped_directory_is_not_created() {
    let scratch = Scratch::new();
    let before = scratch.contents();
    for call in [
        &["write", "a", "1"][..],
        &["agent", "register", "--name", "Ivy"],
        &["work", "create", "a", "--title", "A"],
    ] {
        let refused = scratch.run(call.iter().chain(&["--db", "no/such/x.db"]));
        let directory = scratch.path().join("no/such").display().to_string();
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains(&format!("the directory {directory} does not exist")), "{refused:?}");
        assert!(
            refused
                .stderr
                .contains(&format!("hint: check the path, or create the directory: mkdir -p {directory}")),
            "{refused:?}"
        );
        assert!(scratch.contents() == before, "{call:?} created something");
    }
    let created = scratch.run(["write", "a", "1", "--db", "new.db"]).success();
    let file = scratch.path().join("new.db").display().to_string();
    assert_eq!(created.stderr, format!("note: created a new board at {file}\n"));
    assert_eq!(scratch.run(["write", "a", "1", "--db", "new.db"]).success().stderr, "");
    assert_eq!(scratch.json(["write", "a", "1", "--db", "newer.db"])["board"], "created");
}
