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

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use testkit::reference::{self, VERSIONS};

use crate::crowd::{Ended, at_once, end_of, kill};
use crate::machine::{SmallDisk, can_trace};
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

/// A database before its upgrade.
struct Before {
    version: u32,
    rows: BTreeSet<(&'static str, String)>,
    schema: Vec<String>,
}

impl Before {
    fn of(file: &Path, version: u32) -> Before {
        Before { version, rows: rows(file), schema: schema(file) }
    }

    /// Checks that a database has these rows and this schema.
    #[track_caller]
    fn assert_is(&self, file: &Path) {
        assert_eq!(rows(file), self.rows, "{} of version {}", file.display(), self.version);
        assert_eq!(schema(file), self.schema, "{} of version {}", file.display(), self.version);
    }

    /// Checks that the board has all rows that it had before the upgrade, and that its only copy is the old database.
    #[track_caller]
    fn assert_complete(&self, board: &TestBoard) {
        let after = rows(board.database());
        let missing: Vec<_> = self.rows.difference(&after).collect();
        assert!(missing.is_empty(), "{missing:?} are missing, version {}", self.version);
        let copies = copies(board);
        assert_eq!(copies.len(), 1, "{copies:?}");
        self.assert_is(&copies[0]);
    }
}

/// The statements of a schema, and its versions.
fn schema(file: &Path) -> Vec<String> {
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let all = "SELECT coalesce(sql, name) FROM sqlite_schema UNION ALL SELECT version || ' ' || applied_at FROM schema_version";
    let mut statement = connection.prepare(all).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// Whether the database is a board of this program.
fn is_upgraded(file: &Path) -> bool {
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let id: i64 = connection.query_row("PRAGMA application_id", [], |row| row.get(0)).unwrap();
    id != 0
}

/// The copies beside the database, and what an interrupted upgrade left, without the files that reading them here creates.
fn copies(board: &TestBoard) -> Vec<PathBuf> {
    let files = fs::read_dir(board.database().parent().unwrap()).unwrap().map(|file| file.unwrap().path());
    let is_copy = |file: &PathBuf| {
        let name = file.to_str().unwrap();
        name.contains("before-blackboard") && !name.ends_with("-wal") && !name.ends_with("-shm")
    };
    let mut copies: Vec<_> = files.filter(is_copy).collect();
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
        if version % 4 == 0 {
            // As a copy with another program leaves it.
            let connection = Connection::open(board.database()).unwrap();
            connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).unwrap();
        }
        let before = Before::of(board.database(), version);
        let answers = at_once(20, |index| match index % 4 {
            0 => run(&board, &["work", "list", "--all", "--json"]),
            1 => run(&board, &["status", "--json"]),
            2 => run(&board, &["upgrade", "--yes", "--json"]),
            _ => run(&board, &["write", &format!("key:{index}"), "1", "--json"]),
        });
        for answer in &answers {
            assert_eq!((answer.status.code(), answer.stderr.as_str()), (Some(0), ""), "{answer:?}");
        }
        before.assert_complete(&board);
        assert_eq!(board.number("SELECT count(*) FROM marks WHERE name = 'ivy_blackboard'"), 1);
        assert_eq!(board.json(&["list"]).as_array().unwrap().len(), 5);
    }
}

#[test]
fn killed_upgrade_leaves_the_board_upgraded_or_unchanged() {
    let rounds = size(36, 360);
    let templates: Vec<_> = VERSIONS
        .map(|version| {
            let template = location();
            put(&template, &reference::large_database(version, 2_000));
            (fs::read(template.database()).unwrap(), Before::of(template.database(), version))
        })
        .collect();
    let mut lifetime = Duration::from_millis(200);
    let (mut killed, mut unchanged) = (0, 0);
    for round in 0..rounds {
        let (bytes, before) = &templates[round % templates.len()];
        let board = location();
        fs::write(board.database(), bytes).unwrap();
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
                before.assert_is(board.database());
                let refusal = board.refusal(4, &["work", "list"]);
                assert_eq!(refusal["code"], "upgrade_needed", "{refusal}");
            }
        }
        board.json(&["upgrade", "--yes"]);
        before.assert_complete(&board);
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
    for version in VERSIONS {
        put(&board, &reference::large_database(version, 500));
        fill_and_upgrade(&board, &Before::of(board.database(), version));
        for file in fs::read_dir(directory).unwrap() {
            fs::remove_file(file.unwrap().path()).unwrap();
        }
    }
}

/// Upgrades a board on a disk that has more space each time, until it is enough.
fn fill_and_upgrade(board: &TestBoard, before: &Before) {
    let ballast = board.database().with_file_name("ballast");
    // Another step for each version, so that the disk is full at other calls.
    let step = 60 + 4 * before.version as usize;
    for (refused, leave) in (0..3_000).step_by(step).enumerate() {
        let mut file = OpenOptions::new().create(true).append(true).open(&ballast).unwrap();
        while file.write_all(&[0; 4_096]).is_ok() {}
        let length = file.metadata().unwrap().len();
        file.set_len(length.saturating_sub(leave * 1_024)).unwrap();
        drop(file);
        let answer = board.run(["upgrade", "--yes", "--json"]);
        fs::remove_file(&ballast).unwrap();
        if answer.code == 0 {
            before.assert_complete(board);
            assert!(refused > 0, "there was always space");
            return;
        }
        assert_eq!(answer.json()["code"], "disk_full", "{answer:?}");
        before.assert_is(board.database());
        // The copy stays if the commit failed.
        for copy in copies(board) {
            before.assert_is(&copy);
        }
    }
    panic!("there was never enough space for version {}", before.version);
}

/// Upgrades a board while the n-th of some system calls on some files fails. Returns whether it failed, and whether a call did.
fn upgrade_with_failure(
    board: &TestBoard,
    files: &[PathBuf],
    (calls, error, when): (&str, &str, usize),
) -> (Ended, bool) {
    let inject = format!("inject={calls}:error={error}:when={when}");
    let trace = board.path().join("trace");
    let mut wrapper = vec!["strace", "-f", "-qq", "-o", trace.to_str().unwrap(), "-e", &inject];
    wrapper.extend(files.iter().flat_map(|file| ["-P", file.to_str().unwrap()]));
    let ended = board.wrapped(&wrapper, &["upgrade", "--yes", "--json"]);
    (ended, fs::read_to_string(trace).unwrap().contains("(INJECTED)"))
}

#[test]
fn upgrade_with_a_failing_system_call_is_complete_or_leaves_the_board_unchanged() {
    if !can_trace("a failing system call") {
        return;
    }
    let (mut tried, mut failed) = (0, 0);
    for version in VERSIONS {
        let copy = format!(".before-blackboard-{version}");
        for (calls, error) in [("pwrite64", "ENOSPC"), ("fsync,fdatasync", "EIO"), ("pread64", "EIO")] {
            for when in (1..=size(3, 40)).map(|number| number * number + version as usize - 1) {
                let board = location();
                put(&board, &reference::database(version));
                let before = Before::of(board.database(), version);
                make_private(&board);
                let files = ["", "-wal", &copy, &format!("{copy}-new")].map(|ending| board.beside(ending));
                let (ended, was_injected) = upgrade_with_failure(&board, &files, (calls, error, when));
                tried += usize::from(was_injected);
                if !ended.status.success() {
                    failed += 1;
                    if !is_upgraded(board.database()) {
                        before.assert_is(board.database());
                    }
                    for copy in copies(&board) {
                        before.assert_is(&copy);
                    }
                    make_private(&board);
                    board.json(&["upgrade", "--yes"]);
                }
                before.assert_complete(&board);
            }
        }
    }
    println!("upgrade: {tried} with a failing call, {failed} of them failed");
    assert!(failed > 0, "nothing ever failed");
}

#[test]
fn copy_stays_when_the_commit_fails() {
    if !can_trace("a disk that fails during a commit") {
        return;
    }
    for version in VERSIONS {
        let board = location();
        put(&board, &reference::database(version));
        // A process of ivy-blackboard that was killed left its last commit in the WAL.
        let killed = Connection::open(board.database()).unwrap();
        killed.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
        killed.execute_batch("UPDATE agents SET current_work = 'in the WAL'").unwrap();
        drop(killed);
        let before = Before::of(board.database(), version);
        make_private(&board);
        let wal = [board.beside("-wal")];
        let (ended, was_injected) = upgrade_with_failure(&board, &wal, ("fsync,fdatasync", "EIO", 1));
        assert!(was_injected && ended.status.code() == Some(1), "{ended:?}");
        let copies = copies(&board);
        assert_eq!(copies.len(), 1, "{copies:?}");
        before.assert_is(&copies[0]);
        let answer: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        assert!(answer["hint"].as_str().unwrap().contains(copies[0].to_str().unwrap()), "{answer}");
        // All of its frames are in the WAL. SQLite reads them there when it makes the index again.
        assert!(is_upgraded(board.database()), "version {version}");
        make_private(&board);
        assert_eq!(board.json(&["upgrade", "--yes"])["upgraded"], false);
        before.assert_complete(&board);
    }
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
