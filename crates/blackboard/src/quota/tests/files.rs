use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rusqlite::Connection;

use super::*;
use crate::error::Code;
use crate::{Board, Error, Hint};

fn config() -> Config {
    Config::parse(r#"{"providers": {"a": {"windows": {"5h": {"budget": 1000}}}}}"#).unwrap()
}

fn refused(path: &Path) -> Error {
    let before = fs::read(path).unwrap();
    let Err(refused) = Ledger::open(path, &config()) else { panic!("{} was opened", path.display()) };
    assert_eq!(fs::read(path).unwrap(), before, "the file was not changed");
    refused
}

#[test]
fn the_file_is_private() {
    let directory = testkit::tempdir().unwrap();
    let file = directory.path().join("home").join("quota.db");
    Ledger::open(&file, &config()).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(file.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let directory = testkit::tempdir().unwrap();
    let copy = directory.path().join("quota.db");
    fs::copy(&file, &copy).unwrap();
    assert_eq!(refused(&copy).code(), Code::UnsafePermissions);
}

#[test]
fn an_existing_ledger_is_opened_and_none_is_created_to_read() {
    let directory = testkit::tempdir().unwrap();
    let file = directory.path().join("quota.db");
    let clock = Arc::new(FixedClock::at(START).unwrap());
    let open = || Ledger::open_existing(&file, &config(), clock.clone(), &SqliteOptions::default()).unwrap();
    assert!(open().is_none());
    assert!(!file.exists());
    Ledger::open(&file, &config()).unwrap();
    assert!(open().is_some());
}

#[test]
fn files_of_others_are_refused() {
    let directory = testkit::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let write = |name: &str, content: &[u8]| {
        fs::write(path(name), content).unwrap();
        fs::set_permissions(path(name), fs::Permissions::from_mode(0o600)).unwrap();
        path(name)
    };
    assert_eq!(refused(&write("empty", b"")).code(), Code::ForeignDatabase);
    assert_eq!(refused(&write("text", &[b'x'; 5000])).code(), Code::ForeignDatabase);
    Board::open(&path("board.db")).unwrap();
    assert_eq!(refused(&path("board.db")).code(), Code::ForeignDatabase, "a board is no ledger");
    let foreign = Connection::open(path("other.db")).unwrap();
    foreign.execute_batch("CREATE TABLE a (b)").unwrap();
    foreign.close().unwrap();
    fs::set_permissions(path("other.db"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(refused(&path("other.db")).code(), Code::ForeignDatabase);
    Ledger::open(&path("quota.db"), &config()).unwrap();
    let opened = Board::open(&path("quota.db")).map(drop).unwrap_err();
    assert_eq!(opened.code(), Code::ForeignDatabase, "a ledger is no board");
}

/// A ledger that this statement has changed.
fn changed(statement: &str) -> (TempDir, std::path::PathBuf) {
    let directory = testkit::tempdir().unwrap();
    let file = directory.path().join("quota.db");
    let other = directory.path().join("changed.db");
    Ledger::open(&file, &config()).unwrap();
    let connection = Connection::open(&file).unwrap();
    connection.execute_batch(statement).unwrap();
    connection.execute_batch("PRAGMA journal_mode = DELETE").unwrap();
    connection.close().unwrap();
    // This process has checked the header of the first file already.
    fs::copy(&file, &other).unwrap();
    (directory, other)
}

#[test]
fn newer_older_and_extended_files_are_refused() {
    for (statement, code) in [
        ("PRAGMA user_version = 1000", Code::NewerSchema),
        ("PRAGMA user_version = 0", Code::Corrupt),
        ("DROP TABLE limits", Code::Corrupt),
        ("CREATE TABLE extra (a)", Code::ForeignDatabase),
        ("CREATE TRIGGER t AFTER INSERT ON seen BEGIN DELETE FROM buckets; END", Code::ForeignDatabase),
    ] {
        let (_directory, file) = changed(statement);
        assert_eq!(refused(&file).code(), code, "{statement}");
    }
}

/// A ledger as the first version created it.
fn first_version(file: &Path) {
    let connection = Connection::open(file).unwrap();
    connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA application_id = 0x626c7175").unwrap();
    connection.execute_batch(include_str!("../schema.sql")).unwrap();
    connection.execute_batch("PRAGMA user_version = 1").unwrap();
    connection.close().unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn a_ledger_of_the_first_version_is_upgraded_once_by_many_threads() {
    testkit::limit_test();
    let directory = testkit::tempdir().unwrap();
    let file = directory.path().join("quota.db");
    first_version(&file);
    let connection = Connection::open(&file).unwrap();
    connection.execute_batch("INSERT INTO marks (name, value) VALUES ('kept', 7)").unwrap();
    connection.close().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let ledger = Ledger::open(&file, &config()).unwrap();
                assert!(ledger.take_crossings("b").unwrap().is_empty());
            });
        }
    });
    let ledger = Ledger::open(&file, &config()).unwrap();
    let kept: i64 = ledger
        .read(|connection| {
            connection.query_row("SELECT value FROM marks WHERE name = 'kept'", [], |row| row.get(0))
        })
        .unwrap();
    assert_eq!(kept, 7);
}

#[test]
fn a_first_version_with_tables_of_a_later_one_is_refused() {
    testkit::limit_test();
    let directory = testkit::tempdir().unwrap();
    let file = directory.path().join("quota.db");
    first_version(&file);
    let connection = Connection::open(&file).unwrap();
    connection.execute_batch(include_str!("../steps/0002_notices.sql")).unwrap();
    connection.execute_batch("PRAGMA journal_mode = DELETE").unwrap();
    connection.close().unwrap();
    assert_eq!(refused(&file).code(), Code::ForeignDatabase);
}

#[test]
fn a_ledger_of_the_first_version_is_upgraded_and_keeps_its_usage() {
    let directory = testkit::tempdir().unwrap();
    let file = directory.path().join("quota.db");
    let connection = Connection::open(&file).unwrap();
    connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA application_id = 0x626c7175").unwrap();
    connection.execute_batch(include_str!("../schema.sql")).unwrap();
    connection.execute_batch("PRAGMA user_version = 1").unwrap();
    let clock = Arc::new(FixedClock::at(START).unwrap());
    let minute = fold::minute_of(clock.now());
    connection.execute("INSERT INTO sources VALUES (1, 'a', '', '', '', '', '')", []).unwrap();
    connection.execute("INSERT INTO buckets VALUES (1, ?1, 1, 1, 7, 0, 0, 0, 0)", [minute]).unwrap();
    connection.close().unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    for _ in 0..2 {
        let ledger = Ledger::open_with(&file, &config(), clock.clone(), &SqliteOptions::default()).unwrap();
        let status = ledger.status().unwrap();
        assert_eq!((status.providers[0].windows[0].used, status.uncounted.len()), (7, 0));
    }
}

#[test]
fn a_damaged_file_is_reported_and_left_as_it_is() {
    let (_directory, file) = changed("INSERT INTO buckets VALUES (1, 29500000, 1, 1, 'text', 1, 1, 1, 1)");
    let ledger = Ledger::open(&file, &config()).unwrap();
    ledger
        .write(|connection| {
            connection.execute("INSERT INTO sources VALUES (1, 'a', '', '', '', '', '')", [])?;
            connection
                .execute("UPDATE buckets SET input = 'text', start = ?1", [fold::minute_of(ledger.now())])
        })
        .unwrap();
    assert_eq!(ledger.status().unwrap_err().code(), Code::Corrupt, "text is no number of tokens");
    let mut bytes = fs::read(&file).unwrap();
    let length = bytes.len();
    bytes[4096..length.min(4096 * 4)].fill(0xa5);
    let directory = testkit::tempdir().unwrap();
    let broken = directory.path().join("quota.db");
    fs::write(&broken, bytes).unwrap();
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o600)).unwrap();
    let outcome = Ledger::open(&broken, &config()).and_then(|ledger| {
        ledger.status()?;
        ledger.record(&[Record::new("m", "a", ledger.now(), Usage::default())])
    });
    let Error::Fault(fault) = outcome.unwrap_err() else { panic!("it is damaged") };
    assert_eq!(fault.code, Code::Corrupt);
    let Some(Hint::Advice(hint)) = fault.hint else { panic!("no hint") };
    assert!(hint.contains("restore a copy") && hint.contains("quota.db away"), "{hint}");
}

#[test]
fn the_wal_is_short_again_after_a_stuck_reader() {
    testkit::limit_test();
    let mut stage = Stage::with_windows(&[("5h", 1_000_000)]);
    let now = stage.now();
    let record = |number: usize| {
        let usage = Usage { input: 1, ..Usage::default() };
        Record {
            session: Some(format!("session-{number}")),
            ..Record::new(number.to_string(), "a", now, usage)
        }
    };
    stage.ledger.record(&[record(0)]).unwrap();
    let reader = Connection::open(stage.directory.path().join("quota.db")).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM seen").unwrap();
    let many: Vec<_> = (1..50_000).map(record).collect();
    stage.ledger.record(&many).unwrap();
    let wal = stage.directory.path().join("quota.db-wal");
    let length = || std::fs::metadata(&wal).map_or(0, |file| file.len());
    assert!(length() > 2 << 20, "the reader keeps it");
    reader.execute_batch("COMMIT").unwrap();
    // As two other processes.
    for id in ["x", "y"] {
        stage.reopen(r#"{"providers": {"a": {}}}"#);
        stage.record(id, now, 1);
    }
    assert!(length() <= 1 << 20, "{} bytes", length());
}
