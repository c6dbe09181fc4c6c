//! A board of ivy-blackboard, upgraded by many processes at once, killed during the upgrade, on a full disk and in a
//! directory that cannot be written: upgraded once and completely, or unchanged.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use testkit::reference::{self, VERSIONS};

use crate::crowd::{Ended, at_once, end_of, kill};
use crate::machine::SmallDisk;
use crate::scale::{Chance, progress, size};
use crate::test_board::TestBoard;

/// The tables, and their keys.
const TABLES: [(&str, &str); 5] = [
    ("agents", "session_id"),
    ("projects", "project_id"),
    ("work_items", "item_id"),
    ("heartbeats", "id"),
    ("events", "id"),
];

/// A location at which all rows are kept, however old.
fn location() -> TestBoard {
    let board = TestBoard::new();
    board.configure(
        r#"{"sweep": {"pruneEventsAfterDays": 3650, "pruneHeartbeatsAfterDays": 3650,
            "pruneCompletedAgentsAfterDays": 3650, "pruneStaleAgentsAfterDays": 3650}}"#,
    );
    let directory = board.database().parent().unwrap();
    fs::create_dir(directory).unwrap();
    fs::set_permissions(directory, Permissions::from_mode(0o700)).unwrap();
    board
}

/// Creates the database, or a copy of one that was created before.
fn put(board: &TestBoard, sql: &str) {
    Connection::open(board.database()).unwrap().execute_batch(sql).unwrap();
    make_private(board);
}

fn make_private(board: &TestBoard) {
    for file in fs::read_dir(board.database().parent().unwrap()).unwrap() {
        fs::set_permissions(file.unwrap().path(), Permissions::from_mode(0o600)).unwrap();
    }
}

/// The rows of a sound database: their tables and keys.
fn rows(file: &Path) -> BTreeSet<(&'static str, String)> {
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let integrity: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(integrity, "ok", "{}", file.display());
    let mut rows = BTreeSet::new();
    for (table, key) in TABLES {
        let mut statement = connection.prepare(&format!("SELECT CAST({key} AS TEXT) FROM {table}")).unwrap();
        let keys = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        rows.extend(keys.map(|key| (table, key.unwrap())));
    }
    rows
}

/// Checks that the board has all rows that it had before the upgrade, and that its only copy has nothing else.
#[track_caller]
fn assert_complete(board: &TestBoard, before: &BTreeSet<(&'static str, String)>) {
    let after = rows(board.database());
    let missing: Vec<_> = before.difference(&after).collect();
    assert!(missing.is_empty(), "{missing:?} are missing");
    let copies = copies(board);
    assert_eq!(copies.len(), 1, "{copies:?}");
    assert_eq!(rows(&copies[0]), *before, "the copy");
}

/// Whether the database is a board of this program.
fn is_upgraded(file: &Path) -> bool {
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let id: i64 = connection.query_row("PRAGMA application_id", [], |row| row.get(0)).unwrap();
    id != 0
}

/// The copies beside the database, and what an interrupted upgrade left.
fn copies(board: &TestBoard) -> Vec<PathBuf> {
    let files = fs::read_dir(board.database().parent().unwrap()).unwrap().map(|file| file.unwrap().path());
    let mut copies: Vec<_> =
        files.filter(|file| file.to_str().unwrap().contains("before-blackboard")).collect();
    copies.sort();
    copies
}

/// Runs the program, which upgrades the board that it meets.
fn run(board: &TestBoard, arguments: &[&str]) -> Ended {
    let mut command = board.command(arguments);
    command.env("BLACKBOARD_UPGRADE", "1").stdout(Stdio::piped()).stderr(Stdio::piped());
    end_of(command.spawn().unwrap())
}

#[test]
fn twenty_processes_upgrade_a_board_once_and_all_succeed() {
    for version in VERSIONS {
        let board = location();
        put(&board, &reference::database(version));
        let before = rows(board.database());
        let answers = at_once(20, |index| match index % 4 {
            0 => run(&board, &["work", "list", "--all", "--json"]),
            1 => run(&board, &["status", "--json"]),
            2 => run(&board, &["upgrade", "--yes", "--json"]),
            _ => run(&board, &["write", &format!("key:{index}"), "1", "--json"]),
        });
        for answer in &answers {
            assert_eq!((answer.status.code(), answer.stderr.as_str()), (Some(0), ""), "{answer:?}");
        }
        assert_complete(&board, &before);
        assert_eq!(board.number("SELECT count(*) FROM marks WHERE name = 'ivy_blackboard'"), 1);
        assert_eq!(board.json(&["list"]).as_array().unwrap().len(), 5);
    }
}

#[test]
fn killed_upgrade_leaves_the_board_upgraded_or_unchanged() {
    let rounds = size(30, 300);
    let template = location();
    put(&template, &reference::large_database(9, 2_000));
    let (bytes, before) = (fs::read(template.database()).unwrap(), rows(template.database()));
    let mut lifetime = Duration::from_millis(200);
    let (mut killed, mut unchanged) = (0, 0);
    for round in 0..rounds {
        let board = location();
        fs::write(board.database(), &bytes).unwrap();
        make_private(&board);
        let mut chance = Chance::new(round);
        // Some boards are killed more than once.
        for _ in 0..=chance.below(3) {
            let started = Instant::now();
            let mut child = board.start(["upgrade", "--yes", "--json"]);
            if chance.below(2) == 0 {
                thread::sleep(lifetime * u32::try_from(chance.below(120)).unwrap() / 100);
            } else {
                // Between the copy and the end.
                while copies(&board).is_empty() && child.try_wait().unwrap().is_none() {
                    thread::yield_now();
                }
                thread::sleep(lifetime * u32::try_from(chance.below(60)).unwrap() / 100);
            }
            if child.try_wait().unwrap().is_none() {
                kill(child.id());
            }
            let ended = end_of(child);
            if ended.status.signal().is_some() {
                killed += 1;
            } else {
                assert_eq!(ended.status.code(), Some(0), "{ended:?}");
                // A call that finds the board upgraded is much shorter.
                if ended.stdout.contains("\"upgraded\":true") {
                    lifetime = started.elapsed();
                }
            }
            if is_upgraded(board.database()) {
                // Also while it is in the WAL only.
                assert_eq!(board.run(["work", "list", "--json"]).code, 0);
            } else {
                unchanged += 1;
                assert_eq!(rows(board.database()), before);
                let refusal = board.refusal(4, &["work", "list"]);
                assert_eq!(refusal["code"], "upgrade_needed", "{refusal}");
            }
        }
        board.json(&["upgrade", "--yes"]);
        assert_complete(&board, &before);
        progress("upgrades killed, rounds", round + 1, rounds);
    }
    println!("upgrade: {rounds} boards, {killed} processes killed, {unchanged} times before the commit");
    assert!(killed > 0 && unchanged > 0, "{killed} killed, {unchanged} before the commit");
}

#[test]
fn upgrade_on_a_full_disk_is_complete_or_leaves_the_board_unchanged() {
    let board = location();
    let directory = board.database().parent().unwrap();
    let Some(_disk) = SmallDisk::mount(directory, 4_096) else { return };
    put(&board, &reference::large_database(9, 500));
    let before = rows(board.database());
    let ballast = directory.join("ballast");
    for (refused, leave) in (0..3_000).step_by(48).enumerate() {
        let mut file = OpenOptions::new().create(true).append(true).open(&ballast).unwrap();
        while file.write_all(&[0; 4_096]).is_ok() {}
        let length = file.metadata().unwrap().len();
        file.set_len(length.saturating_sub(leave * 1_024)).unwrap();
        let answer = board.run(["upgrade", "--yes", "--json"]);
        if answer.code == 0 {
            fs::remove_file(&ballast).unwrap();
            assert_complete(&board, &before);
            assert!(refused > 0, "there was always space");
            return;
        }
        assert_eq!(answer.json()["code"], "disk_full", "{answer:?}");
        assert!(!is_upgraded(board.database()));
        assert!(copies(&board).is_empty(), "{:?}", copies(&board));
        fs::remove_file(&ballast).unwrap();
        assert_eq!(rows(board.database()), before);
    }
    panic!("there was never enough space");
}

#[test]
fn upgrade_in_a_read_only_directory_is_refused() {
    let board = location();
    put(&board, &reference::database(9));
    let bytes = fs::read(board.database()).unwrap();
    let Some(read_only) = crate::read_only::ReadOnly::make(board.database().parent().unwrap()) else {
        return;
    };
    assert_eq!(board.refusal(5, &["upgrade", "--yes"])["code"], "read_only");
    assert_eq!(board.refusal(4, &["work", "list"])["code"], "upgrade_needed");
    drop(read_only);
    assert_eq!(fs::read(board.database()).unwrap(), bytes);
    assert!(copies(&board).is_empty());
    assert_eq!(board.json(&["upgrade", "--yes"])["upgraded"], true);
}
