//! A board of an older version, opened by many processes at once.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::crowd::at_once;
use crate::test_board::TestBoard;

/// A board that the first version of this program wrote, with an old row that stays anyway.
fn old_board() -> TestBoard {
    let board = TestBoard::new();
    board.configure(r#"{"sweep": {"pruneEventsAfterDays": 3650, "pruneCompletedAgentsAfterDays": 3650}}"#);
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../blackboard/tests/fixtures/schema-1.db");
    let directory = board.database().parent().unwrap();
    fs::create_dir(directory).unwrap();
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(board.database(), fs::read(fixture).unwrap()).unwrap();
    fs::set_permissions(board.database(), fs::Permissions::from_mode(0o600)).unwrap();
    board
}

#[test]
fn twenty_processes_that_meet_an_old_board_migrate_it_once_and_all_succeed() {
    for _ in 0..3 {
        let board = old_board();
        let events = board.log().len();
        let answers = at_once(20, |index| match index % 4 {
            3 => board.run(["work", "list", "--all", "--json"]),
            _ => board.run(["write", &format!("key:{index}"), "1", "--json"]),
        });
        for answer in answers {
            assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{answer:?}");
        }
        assert_eq!(board.number("SELECT count(*) FROM schema_version WHERE version = 2"), 1);
        assert_eq!(board.json(&["list"]).as_array().unwrap().len(), 15);
        assert_eq!(board.count_of("entry_written"), 15);
        assert!(board.log().len() >= events + 15, "what was there stays");
        board.json(&["work", "status", "finished"]);
        board.assert_sound();
    }
}

#[test]
fn readers_of_entries_find_none_on_an_old_board() {
    for call in [&["list"][..], &["snapshot"], &["query", "*"], &["history", "key"], &["read", "key"]] {
        let board = old_board();
        let answer = board.run(call.iter().chain(&["--json"]));
        assert!([0, 3].contains(&answer.code) && answer.stderr.is_empty(), "{call:?}: {answer:?}");
        board.json(&["write", "key", "1"]);
        board.assert_sound();
    }
}
