//! Following the event log of a board in a file, and waiting for keys, next to users with their own connections.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod board_file;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use blackboard::clock::SystemClock;
use blackboard::entry::{Value, WaitFor, Write};
use blackboard::follow::{Follow, Follower, Start};
use blackboard::store::sqlite::{Sqlite, SqliteOptions};
use blackboard::store::{Changes, Commit, Committed, Memory, Prefetch, Store, Tx};
use blackboard::{Board, Code, Fault, Result, Revision};
use rusqlite::Connection;
use testkit::wait_until;

use self::board_file::BoardFile;

/// So long that a test that reaches it has failed.
const LONG: Duration = Duration::from_mins(2);

/// The position of the only named cursor.
fn cursor(file: &BoardFile) -> i64 {
    let connection = Connection::open(file.path()).unwrap();
    connection.query_row("SELECT revision FROM cursors WHERE owner = ''", [], |row| row.get(0)).unwrap()
}

fn write(board: &Board, number: u32) -> Revision {
    board.scope("team").write(&Write::new("a", Value::of(&number).unwrap())).unwrap().revision
}

fn mirror() -> Follow {
    Follow { start: Start::cursor("mirror"), ..Follow::default() }
}

fn follower(board: &Board) -> Follower {
    board.follow(&mirror()).unwrap()
}

/// A store on which a wait sleeps until an event, however short its timeout is. A missed event is never noticed.
struct Drowsy(Sqlite);

impl Store for Drowsy {
    fn read(&self, prefetch: &[Prefetch<'_>], f: &mut dyn FnMut(&dyn Tx) -> Result<()>) -> Result<()> {
        self.0.read(prefetch, f)
    }

    fn commit(
        &self,
        commit: &Commit<'_>,
        f: &mut dyn FnMut(&dyn Tx) -> Result<Changes>,
    ) -> Result<Committed> {
        self.0.commit(commit, f)
    }

    fn wait(&self, after: Revision, _: Duration) -> Result<Revision> {
        self.0.wait(after, LONG)
    }

    fn size(&self) -> Result<u64> {
        self.0.size()
    }
}

#[test]
fn ten_thousand_writes_around_the_start_of_a_wait_for_a_key_are_noticed() {
    const ROUNDS: u32 = 10_000;
    let file = BoardFile::new();
    let (clock, others) = (Arc::new(SystemClock), file.board());
    let store = Sqlite::open(&file.path(), clock.clone(), &SqliteOptions::default()).unwrap();
    let board = Board::on(Arc::new(Drowsy(store)), clock);
    let (start, started) = mpsc::sync_channel(0);
    let mut seen = None;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for round in started {
                write(&others, round);
            }
        });
        for round in 0..ROUNDS {
            start.send(round).unwrap();
            // So that the write comes before, during and after every step of going to sleep.
            let later = Instant::now() + Duration::from_micros(u64::from(round % 500));
            while Instant::now() < later {
                std::hint::spin_loop();
            }
            let entry = board.scope("team").wait("a", &WaitFor { timeout: Some(LONG), after: seen }).unwrap();
            assert_eq!(entry.value, Value::of(&round).unwrap());
            seen = Some(entry.revision);
        }
        drop(start);
    });
}

#[test]
fn unstored_cursor_is_stored_before_the_next_batch() {
    let file = BoardFile::new();
    let board = file.board();
    let mut follower = follower(&board);
    write(&board, 1);
    let first = follower.next_batch(usize::MAX, LONG).unwrap().unwrap();
    write(&board, 2);
    let busy = Connection::open(file.path()).unwrap();
    busy.execute_batch("BEGIN IMMEDIATE").unwrap();
    follower.acknowledge(first.last).unwrap();
    assert_eq!(cursor(&file), 0, "another process is writing, and no call waits for that");
    std::thread::scope(|scope| {
        let (queue, ended) = (file.beside("-lock"), Arc::new(AtomicBool::new(false)));
        let has_ended = ended.clone();
        scope.spawn(move || {
            // A writer that waits for the lock sets the waiter flag in this file.
            let waits = || std::fs::metadata(&queue).is_ok_and(|metadata| metadata.len() > 0);
            wait_until("the follower waits for the lock", || {
                (waits() || has_ended.load(Ordering::Relaxed)).then_some(())
            });
            assert!(!has_ended.load(Ordering::Relaxed), "it did not wait");
            busy.execute_batch("ROLLBACK").unwrap();
        });
        let second = follower.next_batch(usize::MAX, LONG).unwrap().unwrap();
        assert_eq!((second.last.get(), cursor(&file)), (2, 1), "now one batch at most comes again");
        ended.store(true, Ordering::Relaxed);
    });
}

/// A store on which cursors cannot be moved as long as there is an error.
struct Stuck {
    store: Memory,
    error: Mutex<Option<Code>>,
}

impl Stuck {
    fn board() -> (Arc<Stuck>, Board) {
        testkit::limit_test();
        let clock = Arc::new(SystemClock);
        let stuck = Arc::new(Stuck { store: Memory::new(clock.clone()), error: Mutex::default() });
        (stuck.clone(), Board::on(stuck, clock))
    }

    fn fail_with(&self, error: Option<Code>) {
        *self.error.lock().unwrap() = error;
    }
}

impl Store for Stuck {
    fn read(&self, prefetch: &[Prefetch<'_>], f: &mut dyn FnMut(&dyn Tx) -> Result<()>) -> Result<()> {
        self.store.read(prefetch, f)
    }

    fn commit(
        &self,
        commit: &Commit<'_>,
        f: &mut dyn FnMut(&dyn Tx) -> Result<Changes>,
    ) -> Result<Committed> {
        match *self.error.lock().unwrap() {
            Some(code) if commit.name == "advance cursor" => Err(Fault::new(code, "not now").into()),
            _ => self.store.commit(commit, f),
        }
    }

    fn wait(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        self.store.wait(after, timeout)
    }

    fn size(&self) -> Result<u64> {
        self.store.size()
    }
}

#[test]
fn batch_is_not_lost_if_the_cursor_before_it_could_not_be_stored() {
    let (stuck, board) = Stuck::board();
    let mut follower = follower(&board);
    write(&board, 1);
    let first = follower.next_batch(usize::MAX, LONG).unwrap().unwrap();
    write(&board, 2);
    stuck.fail_with(Some(Code::Io));
    assert_eq!(follower.acknowledge(first.last).unwrap_err().code(), Code::Io);
    for _ in 0..2 {
        assert_eq!(follower.next_batch(usize::MAX, LONG).unwrap_err().code(), Code::Io);
    }
    stuck.fail_with(None);
    write(&board, 3);
    let rest = follower.next_batch(usize::MAX, LONG).unwrap().unwrap();
    let ids: Vec<_> = rest.events.iter().map(|event| event.id.get()).collect();
    assert_eq!(ids, [2, 3]);
}

#[test]
fn no_batch_is_delivered_until_the_cursor_is_stored() {
    let (stuck, board) = Stuck::board();
    let mut follower = follower(&board);
    write(&board, 1);
    let first = follower.next_batch(usize::MAX, LONG).unwrap().unwrap();
    write(&board, 2);
    stuck.fail_with(Some(Code::Busy));
    follower.acknowledge(first.last).unwrap();
    for _ in 0..2 {
        assert_eq!(follower.next_batch(usize::MAX, LONG).unwrap_err().code(), Code::Busy);
    }
    assert_eq!(
        board.subscribe(&mirror()).unwrap().next().unwrap().unwrap().id.get(),
        1,
        "who is killed sees one batch again"
    );
    stuck.fail_with(None);
    assert_eq!(follower.next_batch(usize::MAX, LONG).unwrap().unwrap().last.get(), 2);
    assert_eq!(board.subscribe(&mirror()).unwrap().next().unwrap().unwrap().id.get(), 2);
}

#[test]
fn slow_subscription_does_not_block_checkpoints() {
    let file = BoardFile::new();
    let (board, others) = (file.board(), file.board());
    let mut subscription = board.subscribe(&mirror()).unwrap();
    for number in 0..100 {
        write(&others, number);
    }
    // It has a batch in memory, and has delivered one event of it.
    assert_eq!(subscription.next().unwrap().unwrap().id.get(), 1);
    let wal = file.beside("-wal");
    for number in 100..400 {
        write(&others, number);
    }
    wait_until("the log is folded back: no reader holds on to a state of the board", || {
        others.maintain();
        (std::fs::metadata(&wal).unwrap().len() == 0).then_some(())
    });
    let rest: Vec<_> = subscription.take(399).map(|event| event.unwrap().id.get()).collect();
    assert_eq!(rest, (2..=400).collect::<Vec<_>>());
}
