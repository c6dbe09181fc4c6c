//! The file of a board: private from its first byte, and no foreign file is ever changed.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blackboard::agent::Register;
use blackboard::clock::SystemClock;
use blackboard::store::sqlite::{SCHEMA_VERSION, Sqlite, SqliteOptions};
use blackboard::work::Create;
use blackboard::{Board, Code};
use rusqlite::Connection;
use tempfile::TempDir;
use testkit::process::RunToEnd as _;

/// A change to the bytes of a file.
type Damage = fn(&mut Vec<u8>);

/// The page size of the file.
const PAGE: usize = 4096;

/// A directory, perhaps with a file at the board's path.
struct Scratch {
    directory: TempDir,
    path: PathBuf,
}

impl Scratch {
    fn new() -> Scratch {
        let directory = testkit::tempdir().unwrap();
        let path = directory.path().join("local.db");
        Scratch { directory, path }
    }

    /// With a board in it that no process has open.
    fn with_board() -> Scratch {
        let scratch = Scratch::new();
        let board = Board::open(&scratch.path).unwrap();
        board.work().create(&Create::new("x", "X")).unwrap();
        drop(board);
        // A test changes the file directly, so the WAL has to be checkpointed first.
        let connection = Connection::open(&scratch.path).unwrap();
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        drop(connection);
        scratch
    }

    /// The same board under a path that this process has not opened yet.
    fn moved(mut self) -> Scratch {
        let moved = self.directory.path().join("moved.db");
        fs::rename(&self.path, &moved).unwrap();
        for ending in ["-wal", "-shm", "-lock"] {
            let _ = fs::remove_file(format!("{}{ending}", self.path.display()));
        }
        self.path = moved;
        self
    }

    fn beside(&self, ending: &str) -> PathBuf {
        PathBuf::from(format!("{}{ending}", self.path.display()))
    }

    fn sql(&self, sql: &str) {
        Connection::open(&self.path).unwrap().execute_batch(sql).unwrap();
    }

    fn write(&self, bytes: &[u8]) {
        fs::write(&self.path, bytes).unwrap();
        set_mode(&self.path, 0o600);
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Opens the board in every way, and returns the code that all of them refuse it with. Nothing in the directory
    /// changes.
    fn refused(&self) -> Code {
        let (names, bytes) = (self.names(), self.bytes());
        let opened = Board::open(&self.path).map(drop).unwrap_err();
        let options = SqliteOptions::default();
        let read = Sqlite::open_existing(&self.path, Arc::new(SystemClock), &options).map(drop).unwrap_err();
        assert_eq!(opened.code(), read.code());
        assert!(opened.hint().is_some(), "it says what to do: {opened}");
        assert_eq!(self.names(), names, "no companions are created");
        assert_eq!(self.bytes(), bytes, "the file is left as it is");
        opened.code()
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        fs::symlink_metadata(&self.path).unwrap().is_file().then(|| fs::read(&self.path).unwrap())
    }
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn every_file_is_private_and_foreign_directories_stay_unchanged() {
    let directory = testkit::tempdir().unwrap();
    set_mode(directory.path(), 0o755);
    let own = directory.path().join("deep/.blackboard");
    let path = own.join("local.db");
    let board = Board::open(&path).unwrap();
    board.agents().register(&Register::named("Ivy")).unwrap();
    assert_eq!(mode(directory.path()), 0o755);
    assert_eq!(mode(&own), 0o700);
    let entries: Vec<_> = fs::read_dir(&own).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(entries.len() >= 3, "{entries:?}");
    for entry in entries {
        assert_eq!(mode(&entry), 0o600, "{}", entry.display());
    }
}

#[test]
fn open_existing_creates_no_board() {
    let scratch = Scratch::new();
    let options = SqliteOptions::default();
    for path in [scratch.path.clone(), scratch.directory.path().join("no/such/local.db")] {
        let found = Sqlite::open_existing(&path, Arc::new(SystemClock), &options).unwrap();
        assert!(found.is_none());
    }
    assert!(scratch.names().is_empty());
}

#[test]
fn a_file_that_others_may_read_or_write_is_refused() {
    for bad in [0o644, 0o640, 0o602, 0o660, 0o601] {
        let scratch = Scratch::with_board();
        set_mode(&scratch.path, bad);
        assert_eq!(scratch.refused(), Code::UnsafePermissions, "{bad:o}");
        assert_eq!(mode(&scratch.path), bad, "its mode is not ours to change");
        set_mode(&scratch.path, 0o600);
        assert!(Board::open(&scratch.path).is_ok());
    }
}

#[test]
fn companion_files_have_to_pass_the_same_checks() {
    let companions = ["-wal", "-shm", "-journal", "-lock"];
    for ending in companions {
        for bad in [0o644, 0o620, 0o601] {
            let scratch = Scratch::with_board();
            let companion = scratch.beside(ending);
            fs::OpenOptions::new().create(true).append(true).open(&companion).unwrap();
            set_mode(&companion, bad);
            assert_eq!(scratch.refused(), Code::UnsafePermissions, "{ending} {bad:o}");
            assert_eq!(mode(&companion), bad, "its mode is not ours to change");
        }
        let scratch = Scratch::with_board();
        let companion = scratch.beside(ending);
        let _ = fs::remove_file(&companion);
        symlink(scratch.directory.path().join("elsewhere"), &companion).unwrap();
        assert_eq!(scratch.refused(), Code::UnsafePermissions, "{ending} is a link");
        fs::remove_file(&companion).unwrap();
        fs::write(scratch.directory.path().join("elsewhere"), "").unwrap();
        set_mode(&scratch.directory.path().join("elsewhere"), 0o600);
        fs::hard_link(scratch.directory.path().join("elsewhere"), &companion).unwrap();
        assert_eq!(scratch.refused(), Code::UnsafePermissions, "{ending} has a second name");
    }

    // One command fixes all of it.
    let scratch = Scratch::with_board();
    let all = ["", "-wal", "-shm", "-lock"].map(|ending| scratch.beside(ending));
    for file in &all {
        fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
        set_mode(file, 0o644);
    }
    let refused = Board::open(&scratch.path).map(drop).unwrap_err();
    let hint = format!("chmod 600 {}", all.map(|file| file.display().to_string()).join(" "));
    assert_eq!(refused.hint().and_then(|hint| hint.advice()), Some(hint.as_str()));
    let ran = std::process::Command::new("sh").args(["-c", &hint]).run_to_end().status;
    assert!(ran.success() && Board::open(&scratch.path).is_ok());
}

#[test]
fn foreign_file_is_refused_before_its_mode_is_checked() {
    let scratch = Scratch::new();
    scratch.write(b"root:x:0:0:root:/root:/bin/sh\n");
    set_mode(&scratch.path, 0o644);
    assert_eq!(scratch.refused(), Code::ForeignDatabase);
}

#[cfg(target_os = "linux")]
#[test]
fn board_reopened_by_another_path_keeps_its_locks() {
    let scratch = Scratch::with_board();
    let board = Board::open(&scratch.path).unwrap();
    let before = locks_on(&scratch.path);
    assert!(!before.is_empty(), "SQLite holds a lock on a database that is open");
    let name = scratch.directory.path().file_name().unwrap();
    let spelled = scratch.directory.path().join("..").join(name).join("local.db");
    drop(Board::open(&spelled).unwrap());
    assert_eq!(locks_on(&scratch.path), before);
    drop(board);
}

/// The locks of this process on a file, as the kernel sees them. Not from `/proc/locks`, which is read in parts: locks that
/// other processes take or release meanwhile move a line to another part, where it is missed or found twice.
#[cfg(target_os = "linux")]
fn locks_on(path: &Path) -> Vec<String> {
    let place = format!(":{} ", fs::metadata(path).unwrap().ino());
    let mut found = Vec::new();
    for descriptor in fs::read_dir("/proc/self/fdinfo").unwrap() {
        // Other tests of this process close theirs at any time.
        let Ok(text) = fs::read_to_string(descriptor.unwrap().path()) else { continue };
        let locks = text.lines().filter(|line| line.starts_with("lock:") && line.contains(&place));
        found.extend(locks.map(|line| line.split_whitespace().skip(2).collect::<Vec<_>>().join(" ")));
    }
    found.sort();
    found
}

#[test]
fn a_directory_may_be_reached_through_a_link() {
    let scratch = Scratch::with_board();
    let link = scratch.directory.path().join("link");
    symlink(scratch.directory.path(), &link).unwrap();
    let board = Board::open(&link.join("local.db")).unwrap();
    board.work().create(&Create::new("y", "Y")).unwrap();
    assert_eq!(Board::open(&scratch.path).unwrap().export().unwrap().work_items.len(), 2);
    assert!(Board::open(&link.join("new.db")).is_ok(), "a new one too");
}

#[test]
fn file_that_is_not_a_plain_file_of_this_user_is_refused() {
    let scratch = Scratch::new();
    fs::create_dir(&scratch.path).unwrap();
    assert_eq!(scratch.refused(), Code::UnsafePermissions, "a directory");

    let scratch = Scratch::new();
    let made =
        std::process::Command::new("mkfifo").args(["-m", "600"]).arg(&scratch.path).run_to_end().status;
    assert!(made.success() && fs::metadata(&scratch.path).unwrap().file_type().is_fifo());
    assert_eq!(scratch.refused(), Code::UnsafePermissions, "a FIFO, without waiting for its other end");

    let scratch = Scratch::with_board().moved();
    let link = scratch.directory.path().join("link.db");
    symlink(&scratch.path, &link).unwrap();
    let link = Scratch { path: link, directory: scratch.directory };
    assert_eq!(link.refused(), Code::UnsafePermissions, "a symbolic link to a board");

    let scratch = Scratch::new();
    symlink(scratch.directory.path().join("nowhere"), &scratch.path).unwrap();
    assert_eq!(scratch.refused(), Code::UnsafePermissions, "a symbolic link to nothing");

    let scratch = Scratch::with_board();
    fs::hard_link(&scratch.path, scratch.directory.path().join("second.db")).unwrap();
    assert_eq!(fs::metadata(&scratch.path).unwrap().nlink(), 2);
    assert_eq!(scratch.refused(), Code::UnsafePermissions, "a hard link");
}

#[test]
fn a_file_of_another_program_is_refused_untouched() {
    for bytes in [&b""[..], b"hello", &[0; 4096], &b"#!/bin/sh\n".repeat(100)] {
        let scratch = Scratch::new();
        scratch.write(bytes);
        assert_eq!(scratch.refused(), Code::ForeignDatabase, "{} bytes", bytes.len());
    }
    // As the reference implementation writes it: SQLite, without an application id.
    let scratch = Scratch::new();
    scratch.sql("PRAGMA journal_mode = WAL; CREATE TABLE agents (session_id TEXT PRIMARY KEY)");
    set_mode(&scratch.path, 0o600);
    assert_eq!(scratch.refused(), Code::ForeignDatabase);

    let scratch = Scratch::new();
    scratch.sql("PRAGMA application_id = 42; CREATE TABLE t (a)");
    set_mode(&scratch.path, 0o600);
    assert_eq!(scratch.refused(), Code::ForeignDatabase);
}

#[test]
fn a_board_of_a_newer_version_is_refused() {
    let scratch = Scratch::with_board();
    scratch.sql(&format!("PRAGMA user_version = {}", SCHEMA_VERSION + 1));
    let refused = Board::open(&scratch.path).map(drop).unwrap_err();
    assert_eq!(refused.code(), Code::NewerSchema);
    scratch.sql(&format!("PRAGMA user_version = {SCHEMA_VERSION}"));
    assert_eq!(Board::open(&scratch.path).unwrap().export().unwrap().work_items.len(), 1);
}

#[test]
fn foreign_schema_change_is_refused() {
    for (sql, undo) in [
        ("CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END", "DROP TRIGGER t"),
        ("CREATE VIEW v AS SELECT 1", "DROP VIEW v"),
        ("CREATE TABLE t (a)", "DROP TABLE t"),
        ("CREATE INDEX i ON events(timestamp)", "DROP INDEX i"),
        ("ALTER TABLE agents ADD COLUMN extra TEXT", "ALTER TABLE agents DROP COLUMN extra"),
    ] {
        let scratch = Scratch::with_board();
        scratch.sql(sql);
        let refused = Board::open(&scratch.path).map(drop).unwrap_err();
        assert_eq!(refused.code(), Code::ForeignDatabase, "{sql}");
        scratch.sql(undo);
        assert!(Board::open(&scratch.path).is_ok(), "{undo}");
    }
}

#[test]
fn a_schema_that_lacks_something_is_damaged() {
    for sql in ["DROP TABLE cursors", "DROP INDEX work_items_queue", "DROP TABLE marks"] {
        let scratch = Scratch::with_board();
        scratch.sql(sql);
        let refused = Board::open(&scratch.path).map(drop).unwrap_err();
        assert_eq!(refused.code(), Code::Corrupt, "{sql}");
        let cause = std::error::Error::source(&refused).unwrap().to_string();
        assert!(cause.contains(sql.split(' ').next_back().unwrap()), "{sql}: {cause}");
    }
}

#[test]
fn a_damaged_file_is_a_fault_and_never_a_panic() {
    let board = Scratch::with_board().moved();
    let whole = fs::read(&board.path).unwrap();
    let mutations: [(&str, Damage); 5] = [
        ("half of it", |bytes| bytes.truncate(bytes.len() / 2)),
        ("the header alone", |bytes| bytes.truncate(100)),
        ("no schema", |bytes| bytes[100..PAGE].fill(0xff)),
        ("no tables", |bytes| bytes[PAGE..].fill(0)),
        ("noise", |bytes| {
            for (byte, noise) in bytes[PAGE..].iter_mut().zip((0..=250).cycle()) {
                *byte = noise;
            }
        }),
    ];
    for (what, mutate) in mutations {
        let mut bytes = whole.clone();
        mutate(&mut bytes);
        let scratch = Scratch::new();
        scratch.write(&bytes);
        let outcome = Board::open(&scratch.path).and_then(|board| {
            board.agents().register(&Register::named("Ivy"))?;
            board.export()
        });
        let code = outcome.unwrap_err().code();
        assert!(matches!(code, Code::Corrupt | Code::ForeignDatabase), "{what}: {code}");
    }
}

#[test]
fn value_of_another_program_is_reported_as_damaged() {
    let scratch = Scratch::with_board();
    scratch.sql("UPDATE work_items SET created_at = 'yesterday'");
    let failed = Board::open(&scratch.path).unwrap().export().unwrap_err();
    assert_eq!(failed.code(), Code::Corrupt);
    assert!(failed.to_string().contains("work_items"), "{failed}");
}

#[test]
fn long_write_lock_is_busy_and_readers_continue() {
    let scratch = Scratch::with_board();
    let options =
        SqliteOptions { busy_timeout: std::time::Duration::from_millis(50), ..SqliteOptions::default() };
    let clock = Arc::new(SystemClock);
    let store = Sqlite::open(&scratch.path, clock.clone(), &options).unwrap();
    let board = Board::on(Arc::new(store), clock);
    let writer = Connection::open(&scratch.path).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = board.work().create(&Create::new("y", "Y")).unwrap_err();
    assert_eq!(refused.code(), Code::Busy);
    assert_eq!(board.export().unwrap().work_items.len(), 1);
    assert!(board.try_sweep(None).stale_agents.is_empty());
    writer.execute_batch("ROLLBACK").unwrap();
    assert!(board.work().create(&Create::new("y", "Y")).unwrap().created);
}

#[test]
fn concurrent_processes_create_one_board() {
    let scratch = Scratch::new();
    let start = std::sync::Barrier::new(16);
    std::thread::scope(|scope| {
        for number in 0..16 {
            let (path, start) = (&scratch.path, &start);
            scope.spawn(move || {
                start.wait();
                let board = Board::open(path).unwrap();
                board.agents().register(&Register::named(&format!("agent {number}"))).unwrap();
            });
        }
    });
    assert_eq!(Board::open(&scratch.path).unwrap().export().unwrap().agents.len(), 16);
    assert!(!scratch.names().iter().any(|name| name.contains("-new")), "{:?}", scratch.names());
}

fn open_to_read(scratch: &Scratch) -> Option<Board> {
    let clock = Arc::new(SystemClock);
    let store = Sqlite::open_to_read(&scratch.path, clock.clone(), &SqliteOptions::default()).unwrap()?;
    Some(Board::on(Arc::new(store), clock))
}

#[test]
fn board_opened_for_reading_is_read_and_not_changed() {
    let scratch = Scratch::with_board().moved();
    let before = fs::read(&scratch.path).unwrap();
    let board = open_to_read(&scratch).unwrap();
    assert_eq!(board.work().status("x").unwrap().item.title, "X");
    let refused = board.work().create(&Create::new("y", "Y")).unwrap_err();
    assert_eq!(refused.code(), Code::ReadOnly);
    assert!(board.try_sweep(None).stale_agents.is_empty());
    board.maintain();
    drop(board);
    assert!(fs::read(&scratch.path).unwrap() == before);
}

#[test]
fn opening_for_reading_creates_no_board() {
    let scratch = Scratch::new();
    assert!(open_to_read(&scratch).is_none());
    assert_eq!(fs::read_dir(scratch.directory.path()).unwrap().count(), 0);
}

#[test]
fn read_only_board_is_woken_by_other_writers() {
    let scratch = Scratch::with_board();
    let board = open_to_read(&scratch).unwrap();
    let seen = board.revision().unwrap();
    let writer = Board::open(&scratch.path).unwrap();
    let writing = std::thread::spawn(move || writer.work().create(&Create::new("y", "Y")).map(drop));
    assert!(board.wait(seen, std::time::Duration::from_mins(1)).unwrap() > seen);
    writing.join().unwrap().unwrap();
}
