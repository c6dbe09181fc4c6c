//! A purged secret is gone from every byte of every file of the board. A reader that keeps old bytes is one of a file: a
//! server has none.

use std::process::Command;

use serde_json::json;
use testkit::process::RunToEnd as _;

use crate::test_board::TestBoard;

testkit::on_each_engine![a_purged_secret_is_in_no_byte_of_any_file];

/// The prefix of every secret of these tests. The secret filter does not refuse it.
const SECRET: &str = "PURGE-ME-7f3a";

/// The files of the board that contain the secret. Another process searches them: closing a file of the board in this process
/// would drop the locks that SQLite holds in it.
fn files_with_secret(board: &TestBoard) -> String {
    let directory = board.scratch().files();
    let found = Command::new("grep").args(["-rlaF", "-e", SECRET]).arg(directory).run_to_end();
    // grep exits with 1 if there are none.
    assert!(matches!(found.status.code(), Some(0 | 1)), "{found:?}");
    String::from_utf8(found.stdout).unwrap()
}

/// A board with a secret everywhere one can be: values large and small, tags, metadata, previous versions, versions
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
    // Twice in one commit, read in it, appended to, leased by a session that ends, and expired.
    let secret = |text: &str| json!(format!("{SECRET} {text}"));
    let twice = json!({"then": [
        {"write": {"key": "token-2", "value": secret("first"), "tags": [SECRET]}},
        {"read": {"key": "token-2"}},
        {"write": {"key": "token-2", "value": secret("second")}},
        {"read": {"key": "token-2"}},
    ]});
    board.fed(&["txn", "--op", "twice"], &twice.to_string()).success();
    board.json(&["write", "token-3", &json!([secret("one")]).to_string()]);
    board.json(&["append", "token-3", &secret("two").to_string(), "--op", "append"]);
    board.json(&["write", "token-4", &secret("leased").to_string(), "--lease", "--session", &session]);
    board.json(&["agent", "deregister", &session]);
    board.json(&["write", "token-5", &secret("brief").to_string(), "--ttl", "1h"]);
    board.let_time_pass();
    assert_eq!(board.json(&["sweep"])["entriesExpired"], 1);
    board
}

/// Purges the keys of [`leaked`] that every test purges in the same way.
fn purge_numbered_keys(board: &TestBoard) {
    for (key, versions, answers) in
        [("token-2", 2, 1), ("token-3", 2, 0), ("token-4", 2, 0), ("token-5", 2, 0)]
    {
        let purged = board.json(&["purge", key]);
        assert_eq!((&purged["versions"], &purged["answers"]), (&json!(versions), &json!(answers)), "{key}");
    }
}

/// The columns of the database that hold the secret, with the rows that have it.
fn columns_with_secret(board: &TestBoard) -> Vec<String> {
    let connection = board.tables();
    let names = |sql: &str| -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let mut found = Vec::new();
    for table in names("SELECT name FROM sqlite_master WHERE type = 'table'") {
        for column in names(&format!("SELECT name FROM pragma_table_info('{table}')")) {
            let sql = format!(
                "SELECT count(*) FROM \"{table}\" WHERE instr(CAST(\"{column}\" AS TEXT), '{SECRET}')"
            );
            if connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap() > 0 {
                found.push(format!("{table}.{column}"));
            }
        }
    }
    found
}

fn a_purged_secret_is_in_no_byte_of_any_file() {
    let board = leaked();
    assert!(!files_with_secret(&board).is_empty(), "the test would see it");
    let columns = columns_with_secret(&board);
    assert!(columns.contains(&"operations.answer".to_owned()), "{columns:?}");
    // One of the keys is deleted, and only its history has the secret.
    board.json(&["delete", "other"]);
    let purged = board.json(&["purge", "token"]);
    assert_eq!((&purged["versions"], &purged["answers"]), (&json!(7), &json!(1)));
    board.json(&["purge", "other"]);
    purge_numbered_keys(&board);
    let last = board.json(&["purge", "deploy", "--scope", "locks"]);
    assert_eq!(last["scrubbed"], true);
    assert!(columns_with_secret(&board).is_empty(), "{:?}", columns_with_secret(&board));
    assert_eq!(files_with_secret(&board), "");
    board.assert_sound();

    // A remembered operation still has its answer, and is not applied again.
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
    assert_eq!(board.count_of("entry_purged"), 7);
}

mod of_a_file {
    use super::*;

    #[test]
    fn purge_reports_that_a_reader_keeps_the_old_bytes_and_the_next_one_erases_them() {
        let board = leaked();
        board.json(&["purge", "other"]);
        board.json(&["purge", "deploy", "--scope", "locks"]);
        purge_numbered_keys(&board);
        let reader = board.sql();
        reader.execute_batch("BEGIN; SELECT count(*) FROM entry_versions").unwrap();
        let first = board.run(["purge", "token", "--json"]);
        assert_eq!(first.code, 6, "a script must not take that for success");
        let first = first.json();
        assert_eq!((&first["versions"], &first["scrubbed"]), (&json!(7), &json!(false)));
        assert!(!files_with_secret(&board).is_empty(), "the reader needs the old pages");
        let told = board.run(["purge", "token"]);
        assert!(told.code == 6 && told.stdout.contains("Run the command again"), "{told:?}");
        assert_eq!(board.run(["read", "token"]).code, 3, "no command shows it");
        // Writers do not wait for the reader.
        board.json(&["write", "after", "1"]);
        drop(reader);
        let second = board.json(&["purge", "token"]);
        assert_eq!((&second["versions"], &second["scrubbed"]), (&json!(0), &json!(true)));
        assert_eq!(second["revision"], first["revision"], "one event reports it");
        assert_eq!(files_with_secret(&board), "");
        board.assert_sound();
    }
}
