//! A purged secret is gone from every byte of every file of the board.

use std::process::Command;

use serde_json::json;

use crate::test_board::TestBoard;

/// What every secret of these tests begins with. It looks like nothing that the board refuses.
const SECRET: &str = "PURGE-ME-7f3a";

/// The files of the board that hold the secret. Another process looks: closing a file of the board here would drop the locks
/// that SQLite holds for this one.
fn files_with_secret(board: &TestBoard) -> String {
    let directory = board.database().parent().unwrap();
    let found = Command::new("grep").args(["-rlaF", "-e", SECRET]).arg(directory).output().unwrap();
    // It ends with 1 if there are none.
    assert!(matches!(found.status.code(), Some(0 | 1)), "{found:?}");
    String::from_utf8(found.stdout).unwrap()
}

/// A board with a secret in every place where one can be: values large and small, tags, metadata, previous versions, versions
/// that retention has removed, events of locks, remembered answers, free pages.
fn leaked() -> TestBoard {
    let board = TestBoard::new();
    let session = board.session("Ivy");
    for index in 0..300 {
        board
            .library()
            .scope("default")
            .append("noise", &blackboard::entry::Value::of(&index).unwrap())
            .unwrap();
    }
    let large = format!("\"{}\"", format!("{SECRET} ").repeat(2_000));
    for value in ["1", &large, &format!("\"{SECRET}\""), &large, "null"] {
        board.fed(&["write", "token", "-"], value).success();
    }
    let metadata = json!({ "note": SECRET }).to_string();
    board.json(&["write", "token", "2", "--tag", SECRET, "--metadata", &metadata, "--op", "leak"]);
    board.fed(&["write", "token", "-", "--op", "leak-2"], &format!("\"{SECRET}\"")).success();
    let read = json!({"then": [{"read": {"key": "token"}}, {"read": {"key": "noise"}}]}).to_string();
    board.fed(&["txn", "--op", "read-it"], &read).success();
    // What was deleted before leaves its bytes in pages that are free or are used again.
    board.fed(&["write", "other", "-"], &large).success();
    board.json(&["lock", "acquire", "deploy", "--note", SECRET, "--session", &session]);
    board.json(&["lock", "release", "deploy", "--session", &session]);
    board
}

#[test]
fn a_purged_secret_is_in_no_byte_of_any_file() {
    let board = leaked();
    assert!(!files_with_secret(&board).is_empty(), "the test would see it");
    // One of the keys is deleted, and only its history has the secret.
    board.json(&["delete", "other"]);
    let purged = board.json(&["purge", "token"]);
    assert_eq!((&purged["versions"], &purged["answers"]), (&json!(7), &json!(1)));
    board.json(&["purge", "other"]);
    let last = board.json(&["purge", "deploy", "--scope", "locks"]);
    assert_eq!(last["scrubbed"], true);
    assert_eq!(files_with_secret(&board), "");
    board.assert_sound();

    // What was remembered is still an answer, and happens no second time.
    let again = board.json(&[
        "write",
        "token",
        "2",
        "--tag",
        SECRET,
        "--metadata",
        &json!({"note": SECRET}).to_string(),
        "--op",
        "leak",
    ]);
    assert_eq!(again["version"], 6);
    let read = json!({"then": [{"read": {"key": "token"}}, {"read": {"key": "noise"}}]}).to_string();
    let read = board.fed(&["txn", "--op", "read-it", "--json"], &read).success().json();
    assert_eq!(read["results"][0]["read"]["value"], json!(null));
    assert_eq!(read["results"][1]["read"]["value"][299], 299);
    assert_eq!(files_with_secret(&board), "");
    assert_eq!(board.count_of("entry_purged"), 3);
}

#[test]
fn a_purge_says_that_a_reader_keeps_the_old_bytes_and_the_next_one_erases_them() {
    let board = leaked();
    board.json(&["purge", "other"]);
    board.json(&["purge", "deploy", "--scope", "locks"]);
    let reader = board.sql();
    reader.execute_batch("BEGIN; SELECT count(*) FROM entry_versions").unwrap();
    let first = board.json(&["purge", "token"]);
    assert_eq!((&first["versions"], &first["scrubbed"]), (&json!(7), &json!(false)));
    assert!(!files_with_secret(&board).is_empty(), "the reader needs the old pages");
    let told = board.run(["purge", "token"]).success().stdout;
    assert!(told.contains("Run the command again"), "{told}");
    assert_eq!(board.run(["read", "token"]).code, 3, "no command shows it any more");
    // Writers do not wait for the reader.
    board.json(&["write", "after", "1"]);
    drop(reader);
    let second = board.json(&["purge", "token"]);
    assert_eq!((&second["versions"], &second["scrubbed"]), (&json!(0), &json!(true)));
    assert_eq!(second["revision"], first["revision"], "one event reports it");
    assert_eq!(files_with_secret(&board), "");
    board.assert_sound();
}
