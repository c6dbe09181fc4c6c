//! Tests of SQLite's internals: its plans, connections, commits and migrations.

mod plans;
mod unreadable_rows;

use std::sync::Arc;

use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use crate::Board;
use crate::agent::Register;
use crate::clock::FixedClock;
use crate::error::Code;
use crate::project::{Project, RegisterProject};
use crate::store::record::{Each, Index, Record};
use crate::store::{Key, Range, Row};
use crate::work::{Claim, Create};

struct Scratch {
    directory: TempDir,
    clock: Arc<FixedClock>,
}

impl Scratch {
    fn new() -> Scratch {
        let clock = FixedClock::at("2026-02-03T15:30:00Z").unwrap();
        Scratch { directory: testkit::tempdir().unwrap(), clock: Arc::new(clock) }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("local.db")
    }

    fn open(&self) -> Result<Sqlite> {
        Sqlite::open(&self.path(), self.clock.clone(), &SqliteOptions::default())
    }

    fn board(&self) -> (Arc<Sqlite>, Board) {
        let store = Arc::new(self.open().unwrap());
        (store.clone(), Board::on(store, self.clock.clone()))
    }

    /// The length of the WAL.
    fn wal(&self) -> u64 {
        std::fs::metadata(sidecars::beside(&self.path(), "-wal")).unwrap().len()
    }

    /// Creates this many items, and returns how long the WAL was at most.
    fn longest_wal(&self, board: &Board, items: usize, after_each: impl Fn()) -> u64 {
        let mut longest = 0;
        for number in 0..items {
            board.work().create(&Create::new(&format!("item-{number}"), "Something")).unwrap();
            longest = longest.max(self.wal());
            after_each();
        }
        longest
    }
}

#[test]
fn a_commit_that_fails_leaves_nothing() {
    let scratch = Scratch::new();
    let (store, board) = scratch.board();
    let session = board.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
    board.work().create(&Create::new("x", "X")).unwrap();
    let before = board.export().unwrap();
    // SQLite itself rolls back the next commit, after every statement has run.
    let mut connection = store.take().unwrap();
    connection.commit_hook(Some(|| true)).unwrap();
    store.put_back(connection);
    let failed = board.work().claim(&Claim::of("x", &session)).unwrap_err();
    assert_eq!(failed.code(), Code::Internal);
    assert_eq!(board.export().unwrap(), before);
    // The connection that failed is not used again.
    let claimed = board.work().claim(&Claim::of("x", &session)).unwrap();
    assert_eq!(claimed.item.fence, Some(before.revision.next()));
}

#[test]
fn a_refusal_keeps_its_connection() {
    let scratch = Scratch::new();
    let (store, board) = scratch.board();
    assert_eq!(store.lock_idle().len(), 1);
    assert!(board.work().claim(&Claim::of("x", "unknown")).is_err());
    assert_eq!(store.lock_idle().len(), 1);
    board.work().create(&Create::new("x", "X")).unwrap();
}

#[test]
fn long_wal_is_checkpointed() {
    let scratch = Scratch::new();
    let (_, board) = scratch.board();
    let longest = scratch.longest_wal(&board, 600, || board.maintain());
    assert!(longest < 2 * 1024 * 1024, "{longest} bytes");
    assert!(scratch.wal() < 300 * 4200, "{} bytes are left", scratch.wal());
    assert_eq!(board.export().unwrap().work_items.len(), 600);
}

#[test]
fn wal_of_a_continuous_writer_is_bounded() {
    let scratch = Scratch::new();
    let (store, board) = scratch.board();
    let longest = scratch.longest_wal(&board, 400, || ());
    let frame = 4_096 + 24;
    let most = u64::from(FRAMES_BETWEEN_COMMITS + 50) * frame;
    assert!(longest > u64::from(FRAMES_BETWEEN_COMMITS / 2) * frame && longest < most, "{longest} bytes");
    let items = (400..).map(|number| Create::new(&format!("item-{number}"), "Something"));
    for item in items.take_while(|_| scratch.wal() <= u64::from(FRAMES_KEPT + 50) * frame) {
        board.work().create(&item).unwrap();
    }
    drop((store, board));
    assert_eq!(scratch.wal(), 0, "nothing is left to the next one");
}

#[test]
fn long_reader_blocks_no_writer() {
    let scratch = Scratch::new();
    let (store, board) = scratch.board();
    store
        .read(&[], &mut |tx| {
            let before = tx.revision()?;
            for number in 0..400 {
                board.work().create(&Create::new(&format!("item-{number}"), "Something")).unwrap();
            }
            let (frames, allowed) = (&store.frames, &store.frames_allowed);
            let tried = allowed.load(Ordering::Relaxed) > FRAMES_BETWEEN_COMMITS;
            assert!(tried && frames.load(Ordering::Relaxed) > FRAMES_BETWEEN_COMMITS);
            assert_eq!(tx.revision()?, before);
            Ok(())
        })
        .unwrap();
}

#[test]
fn long_reader_does_not_block_writes_and_checkpoints() {
    let scratch = Scratch::new();
    let (store, board) = scratch.board();
    board.work().create(&Create::new("x", "X")).unwrap();
    store
        .read(&[], &mut |tx| {
            // A write and a checkpoint continue during a read, and the read keeps its state.
            let before = tx.revision()?;
            board.work().create(&Create::new("y", "Y")).unwrap();
            board.maintain();
            assert_eq!(tx.revision()?, before);
            assert!(tx.get(&Key::WorkItem("y".to_owned()))?.is_none());
            Ok(())
        })
        .unwrap();
    assert!(board.work().status("y").is_ok());
}

/// An index over the elements of a row that no table of the program has.
const BY_WORD: &Index = &Index {
    name: "projects.BY_WORD",
    table: || Project::TABLE,
    partition: &["revision", "word"],
    order: &["registered_at", "project_id"],
    backwards: false,
    condition: None,
    includes: None,
    each: Some(Each {
        table: "project_words",
        elements: |row| match row {
            Row::Project(project) => std::slice::from_ref(&project.display_name),
            _ => &[],
        },
    }),
};

#[test]
fn list_index_is_maintained_for_any_row() {
    let scratch = Scratch::new();
    let (store, board) = scratch.board();
    board.projects().register(&RegisterProject::new("p", "old")).unwrap();
    let connection = store.take().unwrap();
    let table =
        "CREATE TABLE project_words (revision INTEGER, word TEXT, registered_at TEXT, project_id TEXT)";
    connection.execute_batch(table).unwrap();
    let path = scratch.path();
    let tx = SqliteTx::read(&connection, &path, scratch.clock.now()).unwrap();
    let Some(Row::Project(before)) = tx.get(&Key::Project("p".to_owned())).unwrap() else { panic!("no row") };
    let after = Row::Project(Project { display_name: "new".to_owned(), ..before.clone() });
    let before = Row::Project(before);
    let found = || {
        let of = |word: &str| {
            let partition = vec![Revision::new(1).into(), word.into()];
            let range = Range { partition, ..Range::all(BY_WORD) };
            let rows = tx.range(&range).unwrap();
            assert!(rows.iter().all(|row| row == &before), "the elements have no row of their own");
            assert_eq!(tx.keys(&range, 9).unwrap().len(), rows.len());
            rows.len()
        };
        (of("old"), of("new"))
    };
    for (from, to, expected) in [
        (None, Some(&before), (1, 0)),
        (Some(&before), Some(&before), (1, 0)),
        (Some(&before), Some(&after), (0, 1)),
        (Some(&after), None, (0, 0)),
    ] {
        tx.update_elements(&[BY_WORD], from, to).unwrap();
        assert_eq!(found(), expected);
    }
}

/// A board of this program whose schema is older than the first: no migration has run.
fn unmigrated(path: &Path) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(&format!("PRAGMA application_id = {}; VACUUM", schema::APPLICATION_ID)).unwrap();
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
    connection.close().unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}

#[test]
fn one_of_many_openers_migrates_an_older_board() {
    let scratch = Scratch::new();
    unmigrated(&scratch.path());
    let start = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (scratch, start) = (&scratch, &start);
            scope.spawn(move || {
                start.wait();
                let board = scratch.board().1;
                board.work().create(&Create::new(&format!("item-{number}"), "X")).unwrap();
            });
        }
    });
    let board = scratch.board().1;
    assert_eq!(board.export().unwrap().work_items.len(), 8);
    let versions: u32 = Connection::open(scratch.path())
        .unwrap()
        .query_row("SELECT count(*) FROM schema_version", [], |row| row.get(0))
        .unwrap();
    assert_eq!(versions, SCHEMA_VERSION);
}

#[test]
fn migration_waits_for_the_writer() {
    let scratch = Scratch::new();
    unmigrated(&scratch.path());
    let writer = Connection::open(scratch.path()).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::thread::scope(|scope| {
        let opening = scope.spawn(|| scratch.open().map(drop));
        // A writer that finds another one active sets the waiter flag before it waits.
        let sidecar = sidecars::beside(&scratch.path(), "-lock");
        testkit::wait_until("a writer that waits", || {
            assert!(!opening.is_finished(), "it did not wait");
            std::fs::metadata(&sidecar).is_ok_and(|metadata| metadata.len() > 0).then_some(())
        });
        writer.execute_batch("ROLLBACK").unwrap();
        opening.join().unwrap().unwrap();
    });
}

#[test]
fn a_schema_that_became_newer_is_not_written_to() {
    let scratch = Scratch::new();
    let (_, board) = scratch.board();
    board.work().create(&Create::new("x", "X")).unwrap();
    let newer = Connection::open(scratch.path()).unwrap();
    newer.execute_batch(&format!("PRAGMA user_version = {}", SCHEMA_VERSION + 1)).unwrap();
    let refused = board.work().create(&Create::new("y", "Y")).unwrap_err();
    assert_eq!(refused.code(), Code::NewerSchema);
    let items: u32 = newer.query_row("SELECT count(*) FROM work_items", [], |row| row.get(0)).unwrap();
    assert_eq!(items, 1);
}

/// A writer at the head of the queue that does nothing.
fn head_of_the_queue(scratch: &Scratch) -> std::fs::File {
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).open(sidecars::beside(&scratch.path(), "-lock")).unwrap();
    file.lock().unwrap();
    file.set_len(1).unwrap();
    file
}

#[test]
fn writer_without_waiting_does_not_overtake_the_queue() {
    let scratch = Scratch::new();
    let (store, _) = scratch.board();
    let commit = Commit { name: "test", prefetch: &[], on_busy: OnBusy::Fail, callers: &[] };
    let try_now = || store.commit(&commit, &mut |_| Ok(Changes::default()));
    assert!(try_now().is_ok(), "no process is there");
    let head = head_of_the_queue(&scratch);
    assert_eq!(try_now().unwrap_err().code(), Code::Busy);
    drop(head);
    assert!(try_now().is_ok(), "the line is gone");
    let sidecar = std::fs::metadata(sidecars::beside(&scratch.path(), "-lock")).unwrap();
    assert_eq!(sidecar.len(), 0, "and so is the hint at it");
}

#[test]
fn stopped_writer_at_the_head_blocks_no_writer_forever() {
    let scratch = Scratch::new();
    let (_, board) = scratch.board();
    let head = head_of_the_queue(&scratch);
    board.work().create(&Create::new("x", "X")).unwrap();
    drop(head);
    board.work().create(&Create::new("y", "Y")).unwrap();
}

#[test]
fn nothing_is_acknowledged_on_a_board_that_was_replaced() {
    let scratch = Scratch::new();
    let (_, board) = scratch.board();
    let ivy = board.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
    board.work().create(&Create::new("x", "X")).unwrap();
    std::fs::rename(scratch.path(), scratch.directory.path().join("moved.db")).unwrap();
    let claim = || board.work().claim(&Claim::of("x", &ivy)).unwrap_err().code();
    assert_eq!(claim(), Code::Io, "it is gone");
    drop(scratch.open().unwrap());
    assert_eq!(claim(), Code::Io, "there is another one");
    assert_eq!(board.work().create(&Create::new("x", "Y")).unwrap_err().code(), Code::Io, "nor refused");
    assert!(board.check_still_there().is_err());
}

#[test]
fn all_connections_of_a_board_use_the_same_file() {
    let scratch = Scratch::new();
    let store = scratch.open().unwrap();
    let first = store.take().unwrap();
    std::fs::rename(scratch.path(), scratch.directory.path().join("moved.db")).unwrap();
    drop(scratch.open().unwrap());
    assert_eq!(store.take().map(|_| ()).unwrap_err().code(), Code::Io);
    drop(first);
}

#[test]
fn wait_on_a_replaced_board_fails() {
    let scratch = Scratch::new();
    let (_, board) = scratch.board();
    let revision = board.agents().register(&Register::named("Ivy")).unwrap().agent.revision;
    let moment = Duration::from_millis(1);
    assert_eq!(board.wait(revision, moment).unwrap(), revision);
    std::fs::rename(scratch.path(), scratch.directory.path().join("moved.db")).unwrap();
    assert_eq!(board.wait(revision, moment).unwrap_err().code(), Code::Io);
    drop(scratch.open().unwrap());
    assert_eq!(board.wait(revision, moment).unwrap_err().code(), Code::Io);
}
