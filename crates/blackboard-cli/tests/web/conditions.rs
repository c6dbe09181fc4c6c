//! A board that is missing, deleted, replaced or unreadable: reported, and shown again when it is back. A file that is moved,
//! replaced, locked or readable for others is one of SQLite.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use blackboard::Board;
use blackboard::work::Create;
use rusqlite::Connection as Sql;

use crate::client::{Events, get, own, raw};
use crate::scratch::Scratch;
use crate::served::Served;

testkit::on_each_engine![
    a_board_that_does_not_exist_is_empty_and_is_not_created,
    deleted_board_is_missing_and_another_one_starts_again,
];

/// Asks until the board is in this state.
#[track_caller]
fn until(served: &Served, state: &str) {
    testkit::wait_until(&format!("the board is {state}"), || {
        let reply = get(served.port, "/api/board");
        let is_so = reply.json()["state"] == state;
        assert!(!is_so || reply.status == 200);
        is_so.then_some(())
    });
}

fn a_board_that_does_not_exist_is_empty_and_is_not_created() {
    let served = Served::new();
    assert_eq!(served.json("/api/board")["state"], "missing");
    assert_eq!(served.json("/api/work"), serde_json::json!([]));
    assert_eq!(served.json("/api/status")["revision"], 0);
    let mut events = Events::follow(served.port, Some(0), None).unwrap();
    assert_eq!(served.says(&["work", "list"])["board"], "missing");
    assert!(served.scratch.is_served() || !served.database().parent().unwrap().exists());
    served.scratch.run(["work", "create", "a", "--title", "A"]).success();
    assert_eq!(events.next().unwrap().id, 1, "a client that waited for it sees its first event");
    until(&served, "open");
    assert_eq!(served.json("/api/work")[0]["item_id"], "a");
}

fn deleted_board_is_missing_and_another_one_starts_again() {
    let served = Served::furnished();
    let mut events = Events::follow(served.port, None, None).unwrap();
    let board = get(served.port, "/api/work").header("blackboard-board").unwrap().to_owned();
    served.scratch.delete_board();
    until(&served, "missing");
    assert_eq!(served.json("/api/work"), serde_json::json!([]));
    assert!(events.next().is_none(), "revisions of one board mean nothing on another");
    if served.scratch.is_served() {
        // No other call creates a board again that the server has lost.
        served.scratch.run(["init"]).success();
    }
    served.scratch.run(["work", "create", "other", "--title", "Other"]).success();
    until(&served, "open");
    let work = get(served.port, "/api/work");
    assert_eq!(work.json()[0]["item_id"], "other");
    assert_ne!(work.header("blackboard-board"), Some(board.as_str()));
}

#[test]
fn replaced_board_is_shown_and_its_followers_start_again() {
    let served = Served::furnished();
    let mut events = Events::follow(served.port, None, None).unwrap();
    let board = get(served.port, "/api/work").header("blackboard-board").unwrap().to_owned();
    let followed = |board: &str| {
        let path = format!("/api/events/stream?after=1&board={board}");
        let request = format!("HEAD {path} HTTP/1.1\r\n{}\r\n", own(served.port));
        raw(served.port, &request).unwrap().status
    };
    assert_eq!(followed(&board), 200);
    let other = Scratch::new();
    other.run(["work", "create", "other", "--title", "Other"]).success();
    Sql::open(other.database())
        .unwrap()
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    for ending in ["-wal", "-shm"] {
        let mut path = served.database().into_os_string();
        path.push(ending);
        let _ = fs::remove_file(path);
    }
    fs::rename(other.database(), served.database()).unwrap();
    assert!(events.next().is_none(), "revisions of one board mean nothing on another");
    until(&served, "open");
    assert_eq!(served.json("/api/work")[0]["item_id"], "other");
    assert_eq!(followed(&board), 410, "also where the other board has come further");
    assert_eq!(followed(get(served.port, "/api/work").header("blackboard-board").unwrap()), 200);
    let ahead = Events::follow(served.port, Some(10), None).err().unwrap();
    assert_eq!(ahead.status, 410);
}

#[test]
fn deleted_board_is_missing_until_it_is_back() {
    let served = Served::furnished();
    let directory = served.database().parent().unwrap().to_owned();
    let away = served.scratch.path().join("away");
    fs::rename(&directory, &away).unwrap();
    until(&served, "missing");
    assert_eq!(served.json("/api/work"), serde_json::json!([]));
    fs::rename(&away, &directory).unwrap();
    until(&served, "open");
    assert_eq!(served.json("/api/work").as_array().unwrap().len(), 5);
}

#[test]
fn board_that_others_can_read_is_not_shown_until_fixed() {
    let scratch = Scratch::new();
    let served = Served::of(scratch, 0);
    fs::create_dir_all(served.database().parent().unwrap()).unwrap();
    let board = Board::open(&served.database()).unwrap();
    board.work().create(&Create::new("a", "A")).unwrap();
    drop(board);
    until(&served, "open");
    let served = Served::of(served.end(), 0);
    assert_eq!(served.json("/api/work")[0]["item_id"], "a");
    let copy = served.scratch.path().join("copy.db");
    Sql::open(served.database()).unwrap().execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o644)).unwrap();
    fs::rename(&copy, served.database()).unwrap();
    until(&served, "unreadable");
    // At first it is known only that the file is another one.
    let refused = testkit::wait_until("the reason of the refusal", || {
        let refused = get(served.port, "/api/work");
        assert_eq!(refused.status, 503);
        (refused.json()["code"] == "unsafe_permissions").then_some(refused)
    });
    assert!(refused.json()["hint"].as_str().unwrap().starts_with("chmod 600"));
    let about = served.json("/api/board");
    assert_eq!(about["database"], served.database().display().to_string());
    for name in ["error", "hint"] {
        assert_eq!(about[name], refused.json()[name], "the state of the board has the reason");
    }
    assert_eq!(get(served.port, "/").status, 200, "the page is there to say so");
}

#[test]
fn writer_that_holds_the_lock_blocks_no_reader() {
    let served = Served::furnished();
    let lock = Sql::open(served.database()).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    for path in ["status", "agents", "work", "events", "entries", "locks", "lanes"] {
        assert_eq!(get(served.port, &format!("/api/{path}")).status, 200);
    }
}
