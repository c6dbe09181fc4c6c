//! A damaged board: never a panic, never a hang, a documented exit code, and a file is kept.
//!
//! Random values and impossible numbers are tested on each engine. Bytes, headers, links and sidecars are those of a file.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use blackboard::entry::{Value, Write};
use testkit::engine::Engine;
use testkit::process::RunToEnd as _;

use crate::crowd::end_of;
use crate::scale::{Chance, progress, size};
use crate::scratch::Output;
use crate::test_board::TestBoard;

testkit::on_each_engine![numbers_that_no_row_can_have_are_reported];

/// The commands that run on every mutated board. Each of them would write to an intact one.
const CALLS: &[&[&str]] = &[
    &["agent", "list", "--all"],
    &["observe", "--since", "1d"],
    &["status"],
    &["work", "create", "new", "--title", "New"],
    &["agent", "register", "--name", "Oak"],
    &["sweep", "--threshold", "0"],
    &["export"],
    &["write", "fact", "1"],
    &["list", "--long"],
    &["query", "--tag", "x", "--limit", "10"],
    &["history", "key:1"],
];

/// Codes that say what is wrong with a file.
const EXPECTED: &[&str] = &[
    "corrupt",
    "foreign_database",
    "newer_schema",
    "unsafe_permissions",
    "read_only",
    "io",
    "already_exists",
];

/// The files of a used board: one with an empty WAL, and one with a long WAL.
struct Original {
    database: Vec<u8>,
    log: Vec<u8>,
}

/// A board with rows of most tables, and a session that holds items.
fn a_used_board() -> TestBoard {
    let board = TestBoard::new();
    let session = board.session("Ivy");
    board.items(30);
    let library = board.library();
    let scope = library.scope("default");
    for number in 0..60 {
        // One of them takes more than a page.
        let length = if number == 59 { 6_000 } else { number };
        let (key, value) = (format!("key:{}", number % 20), Value::of(&"x".repeat(length)).unwrap());
        scope.write(&Write { tags: vec!["x".to_owned()], ..Write::new(&key, value) }).unwrap();
    }
    drop(library);
    for call in ["claim", "release", "claim", "complete"] {
        board.json(&["work", call, "item-1", "--session", &session]);
    }
    for index in 0..20 {
        let (key, value) = (format!("key:{index}"), format!("[\"{}\"]", "value ".repeat(40)));
        board.json(&["write", &key, &value, "--tag", "x", "--metadata", "{\"a\": 1}", "--ttl", "1h"]);
    }
    board
}

/// Another board with the same content.
fn a_copy_of(original: &TestBoard) -> TestBoard {
    let board = TestBoard::new();
    if original.is_served() {
        board.scratch().copy_served_board(original.scratch());
    } else {
        original.tamper("PRAGMA wal_checkpoint(TRUNCATE)");
        write_private(board.database(), &fs::read(original.database()).unwrap());
    }
    board
}

fn originals() -> [Original; 2] {
    let board = a_used_board();
    let session = board.json(&["agent", "list"])["items"][0]["session_id"].as_str().unwrap().to_owned();
    board.tamper("PRAGMA wal_checkpoint(TRUNCATE)");
    let read = || Original {
        database: fs::read(board.database()).unwrap(),
        log: fs::read(board.beside("-wal")).unwrap_or_default(),
    };
    let folded = read();
    for index in 2..20 {
        board.json(&["work", "claim", &format!("item-{index}"), "--session", &session]);
        board.json(&["write", &format!("key:{index}"), "1", "--tag", "x"]);
    }
    let logged = read();
    assert!(folded.log.is_empty() && logged.log.len() > 10_000);
    [folded, logged]
}

#[test]
fn mutated_bytes_never_crash_a_command() {
    let originals = originals();
    let mutations = size(64, 500);
    let mut chance = Chance::new(1);
    let mut useless = 0;
    for number in 1..=mutations {
        let Original { database, log } = &originals[number % 2];
        let (mut database, mut log) = (database.clone(), log.clone());
        let what = mutate(number, &mut database, &mut log, &mut chance);
        let board = TestBoard::new();
        write_private(board.database(), &database);
        if !log.is_empty() {
            write_private(&board.beside("-wal"), &log);
        }
        let mut refused = true;
        for call in CALLS {
            refused &= !is_answered(&board, call, &format!("mutation {number}, {what}"));
        }
        if refused {
            useless += 1;
            assert_eq!(fs::read(board.database()).unwrap(), database, "{what}: the file was changed");
        }
        progress("mutations, files", number, mutations);
    }
    println!("mutations: {mutations} files, {useless} of no use, no panic, no hang, each kept");
}

/// Makes one change, and returns its description.
fn mutate(number: usize, database: &mut Vec<u8>, log: &mut Vec<u8>, chance: &mut Chance) -> String {
    let file = if number.is_multiple_of(6) && !log.is_empty() { log } else { database };
    let length = file.len();
    match number % 8 {
        0 => {
            let cut = chance.below(length);
            file.truncate(cut);
            format!("cut at {cut}")
        }
        1 => {
            let page = 4_096 * chance.below(length / 4_096);
            file[page..page + 4_096].fill(0);
            format!("page at {page} zeroed")
        }
        2 => {
            let place = chance.below(200);
            file[place] = u8::try_from(chance.below(256)).unwrap();
            format!("byte {place} of the header changed")
        }
        3 => {
            let page = 4_096 * chance.below(length / 4_096);
            (page..page + 4_096).for_each(|place| file[place] = u8::try_from(chance.below(256)).unwrap());
            format!("page at {page} is noise")
        }
        4 => {
            let page = 4_096 * chance.below(length / 4_096);
            let place = page + chance.below(64);
            file[place] ^= 1 << chance.below(8);
            format!("bit flipped at {place}, at the head of a page")
        }
        5 => {
            file.extend(std::iter::repeat_n(0xff, 1 + chance.below(10_000)));
            "something appended".to_owned()
        }
        6 => {
            let (from, to) = (4_096 * chance.below(length / 4_096), 4_096 * chance.below(length / 4_096));
            file.copy_within(from..from + 4_096, to);
            format!("page at {to} is a copy of that at {from}")
        }
        _ => {
            for _ in 0..200 {
                let place = chance.below(length);
                file[place] ^= 1 << chance.below(8);
            }
            "200 bits flipped".to_owned()
        }
    }
}

#[test]
fn numbers_that_no_board_can_have_are_reported() {
    let [folded, _] = originals();
    // An event id below the first is never read, so it is not among these.
    let last_event = "WHERE id = (SELECT max(id) FROM events)";
    for number in [i64::MAX, i64::MAX - 1, -1, i64::MIN] {
        for sql in [
            format!("UPDATE events SET id = {} {last_event}", number.max(i64::MAX - 1)),
            format!("UPDATE events SET commit_id = {number}"),
            format!("UPDATE work_items SET revision = {number}"),
            format!("UPDATE work_items SET fence = {number} WHERE fence IS NOT NULL"),
            format!("UPDATE agents SET revision = {number}, joined_revision = {number}"),
            format!("UPDATE entries SET revision = {number} WHERE key = 'key:7'"),
            format!("UPDATE entry_versions SET version = {}", number.min(-1)),
        ] {
            let board = TestBoard::new();
            write_private(board.database(), &folded.database);
            board.tamper(&sql);
            for call in CALLS {
                is_answered(&board, call, &sql);
            }
            let exported = board.run(["export", "--json"]);
            let answer = exported.json();
            let events = answer["events"].as_array().map(Vec::as_slice).unwrap_or_default();
            let is_reported = answer["code"] == "corrupt"
                || answer.get("unreadable").is_some()
                || exported.stderr.starts_with("note: left out ")
                || events.iter().any(|event| event["event_type"] == "unreadable");
            assert!(is_reported, "{sql}: {}", exported.stderr);
        }
    }
}

/// Values of a server that another program has changed.
#[test]
fn mutated_values_of_a_server_never_crash_a_command() {
    Engine::Redis.run(|| {
        let original = a_used_board();
        let mutations = size(24, 500);
        let mut chance = Chance::new(1);
        for number in 1..=mutations {
            let board = TestBoard::new();
            board.scratch().copy_served_board(original.scratch());
            let what = board.scratch().mutate(&mut chance);
            for call in CALLS {
                is_answered(&board, call, &format!("mutation {number}, {what:?}"));
            }
            progress("mutations, values", number, mutations);
        }
    });
}

fn numbers_that_no_row_can_have_are_reported() {
    let original = a_used_board();
    let session = original.json(&["agent", "list"])["items"][0]["session_id"].as_str().unwrap().to_owned();
    for number in [i64::MIN, -1] {
        for (table, column, found) in [
            ("work_items", "revision", ("item_id", "item-1")),
            ("work_items", "fence", ("item_id", "item-1")),
            ("agents", "revision", ("session_id", session.as_str())),
            ("agents", "joined_revision", ("session_id", session.as_str())),
            ("entry_versions", "version", ("key", "key:7")),
        ] {
            let what = format!("{table}.{column} = {number}");
            let board = a_copy_of(&original);
            board.set_value(table, column, number, found);
            for call in CALLS {
                is_answered(&board, call, &what);
            }
            let exported = board.run(["export", "--json"]);
            let answer = exported.json();
            let is_reported = answer["code"] == "corrupt"
                || answer.get("unreadable").is_some()
                || exported.stderr.starts_with("note: left out ");
            assert!(is_reported, "{what}: {exported:?}");
        }
    }
}

#[test]
fn files_that_are_no_boards_are_refused_and_left_unchanged() {
    let folded = &originals()[0].database;
    let newer = [&folded[..60], &[0, 0, 0, 99], &folded[64..]].concat();
    for (what, bytes, code) in [
        ("an empty file", &b""[..], "foreign_database"),
        ("text", b"hello, this is no database\n".repeat(100).as_slice(), "foreign_database"),
        ("half a header", &folded[..50], "foreign_database"),
        ("a database of another program", &other_program(), "foreign_database"),
        ("a board of a newer version", &newer, "newer_schema"),
    ] {
        let board = TestBoard::new();
        write_private(board.database(), bytes);
        for call in CALLS {
            assert_eq!(board.refusal(1, call)["code"], code, "{what}, {call:?}");
        }
        assert_eq!(fs::read(board.database()).unwrap(), bytes, "{what}");
        let left: Vec<_> = fs::read_dir(board.database().parent().unwrap()).unwrap().collect();
        assert_eq!(left.len(), 1, "{what}: nothing appeared beside it: {left:?}");
    }
}

#[test]
fn board_that_is_not_a_regular_file_of_this_user_is_refused() {
    let bytes = &originals()[0].database;
    for what in ["FIFO", "directory", "symbolic link", "hard link", "link that leads nowhere"] {
        let board = TestBoard::new();
        fs::create_dir(board.database().parent().unwrap()).unwrap();
        put_in_its_place(what, board.database(), bytes);
        for call in CALLS {
            // By its directory, because a directory as a board means the database in it.
            let directory = board.database().parent().unwrap();
            let mut command = board.command(call.iter().chain(&["--json"]));
            let answer = Output::of(command.env("BLACKBOARD_DB", directory).run_to_end());
            assert_eq!((answer.code, answer.stderr.as_str()), (5, ""), "{what}, {call:?}");
            assert_eq!(answer.json()["code"], "unsafe_permissions", "{what}, {call:?}");
        }
        let real = board.database().with_file_name("real.db");
        assert!(!real.exists() || fs::read(&real).unwrap() == *bytes, "{what}");
    }
}

fn put_in_its_place(what: &str, path: &Path, bytes: &[u8]) {
    let real = path.with_file_name("real.db");
    match what {
        "FIFO" => make_fifo(path),
        "directory" => fs::create_dir(path).unwrap(),
        "symbolic link" => {
            write_private(&real, bytes);
            symlink(real, path).unwrap();
        }
        "hard link" => {
            write_private(&real, bytes);
            fs::hard_link(real, path).unwrap();
        }
        _ => symlink("nowhere", path).unwrap(),
    }
}

#[test]
fn sidecars_that_are_not_regular_files_stop_no_command() {
    let [folded, logged] = originals();
    for companion in ["-wal", "-shm", "-lock", "-wake"] {
        for (original, kind) in
            [(&folded, "directory"), (&folded, "fifo"), (&logged, "noise"), (&folded, "symlink")]
        {
            let board = TestBoard::new();
            write_private(board.database(), &original.database);
            put_beside(&board, companion, kind);
            for call in CALLS {
                is_answered(&board, call, &format!("{companion} is a {kind}"));
            }
            assert!(!board.path().join("elsewhere").exists(), "nothing is written through a link");
        }
    }
}

#[test]
fn wait_sees_a_write_with_any_file_in_place_of_the_sidecar() {
    for kind in ["directory", "fifo", "noise", "symlink"] {
        let board = TestBoard::new();
        board.session("Ivy");
        put_beside(&board, "-wake", kind);
        let waiting = board.start(["wait", "fact", "--value", "--timeout", "10m"]);
        let following = board.start(["wait", "other", "--value", "--timeout", "10m"]);
        board.json(&["write", "fact", "1"]);
        let ended = end_of(waiting);
        assert_eq!((ended.status.code(), ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "1\n", ""));
        board.json(&["write", "other", "2"]);
        let ended = end_of(following);
        assert_eq!((ended.status.code(), ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "2\n", ""));
        assert!(!board.path().join("elsewhere").exists(), "nothing is written through a link");
        board.assert_sound();
    }
}

/// Puts something else in the place of a file beside the database.
fn put_beside(board: &TestBoard, companion: &str, kind: &str) {
    let path = board.beside(companion);
    match kind {
        "directory" => fs::create_dir(&path).unwrap(),
        "fifo" => make_fifo(&path),
        "symlink" => symlink(board.path().join("elsewhere"), &path).unwrap(),
        _ => write_private(&path, &vec![0xa5; 40_000]),
    }
}

#[test]
fn board_whose_file_was_moved_away_starts_again_without_the_old_log() {
    let [_, logged] = originals();
    let board = TestBoard::new();
    write_private(&board.beside("-wal"), &logged.log);
    board.run(["agent", "register", "--name", "Oak"]).success();
    board.run(["work", "create", "new", "--title", "New"]).success();
    assert_eq!(board.number("SELECT count(*) FROM agents"), 1);
    assert_eq!(board.number("SELECT count(*) FROM work_items"), 1);
    board.assert_sound();
}

/// Whether the program succeeded; if not, it reports what is wrong with the file.
fn is_answered(board: &TestBoard, call: &[&str], what: &str) -> bool {
    let answer = board.run(call.iter().chain(&["--json"]));
    if !answer.stderr.is_empty() {
        // Half of a long answer was printed before the damage was found.
        let first = answer.stderr.lines().next().unwrap_or_default();
        if answer.code == 0 && first.starts_with("note: left out ") {
            return true;
        }
        let told = (first.starts_with("error: the database ") && first.ends_with(" is damaged"))
            || (first.starts_with("error: ") && first.contains(" cannot be read"));
        assert!(told && answer.code == 1, "{what}: {call:?} {answer:?}");
    } else if answer.code != 0 {
        let answer = answer.json();
        let code = answer["code"].as_str().unwrap();
        assert!(EXPECTED.contains(&code), "{what}: {call:?} {answer}");
    }
    answer.code == 0
}

fn write_private(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

fn make_fifo(path: &Path) {
    let made = Command::new("mkfifo").args(["-m", "600"]).arg(path).run_to_end().status;
    assert!(made.success());
}

fn other_program() -> Vec<u8> {
    let directory = testkit::tempdir().unwrap();
    let path = directory.path().join("other.db");
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("CREATE TABLE agents (name TEXT); INSERT INTO agents VALUES ('other')").unwrap();
    connection.close().unwrap();
    fs::read(path).unwrap()
}
