//! Following the log of a board in a file, and waiting for keys: beside others who have connections of their own.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod board_file;

use std::sync::mpsc;
use std::time::{Duration, Instant};

use blackboard::entry::{Value, WaitFor, Write};
use blackboard::event::{Start, Subscribe, Subscription};
use blackboard::{Board, Revision};
use rusqlite::Connection;

use self::board_file::BoardFile;

/// So long that a test has failed if it is over.
const LONG: Duration = Duration::from_mins(2);

/// Who has slept longer than this was not woken, but woke by itself.
const NOT_WOKEN: Duration = Duration::from_millis(200);

/// Where the only named cursor stands.
fn cursor(file: &BoardFile) -> i64 {
    let connection = Connection::open(file.path()).unwrap();
    connection.query_row("SELECT revision FROM cursors WHERE owner = ''", [], |row| row.get(0)).unwrap()
}

fn write(board: &Board, number: u32) -> Revision {
    board.scope("team").write(&Write::new("a", Value::of(&number).unwrap())).unwrap().revision
}

fn mirror(board: &Board) -> Subscription {
    board.subscribe(&Subscribe { start: Start::cursor("mirror"), ..Subscribe::default() }).unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn of_ten_thousand_writes_around_the_beginning_of_a_wait_for_their_key_none_is_slept_through() {
    const ROUNDS: u32 = 10_000;
    let file = BoardFile::new();
    let (board, others) = (file.board(), file.board());
    let (start, started) = mpsc::sync_channel(0);
    let (mut seen, mut not_woken) = (None, 0);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for round in started {
                write(&others, round);
            }
        });
        for round in 0..ROUNDS {
            start.send(round).unwrap();
            // So that the write comes before, during and after every step of falling asleep.
            let later = Instant::now() + Duration::from_micros(u64::from(round % 500));
            while Instant::now() < later {
                std::hint::spin_loop();
            }
            let began = Instant::now();
            let entry = board.scope("team").wait("a", &WaitFor { timeout: Some(LONG), after: seen }).unwrap();
            not_woken += u32::from(began.elapsed() > NOT_WOKEN);
            assert_eq!(entry.value, Value::of(&round).unwrap());
            seen = Some(entry.revision);
            // A machine that has much else to do wakes late.
            assert!(not_woken < ROUNDS / 100, "{not_woken} of {round} waits were not woken");
        }
        drop(start);
    });
}

#[test]
fn a_cursor_that_could_not_be_stored_is_stored_before_more_is_handed_out() {
    let file = BoardFile::new();
    let board = file.board();
    let mut subscription = mirror(&board);
    write(&board, 1);
    let first = subscription.next_batch(LONG).unwrap().unwrap();
    write(&board, 2);
    let busy = Connection::open(file.path()).unwrap();
    busy.execute_batch("BEGIN IMMEDIATE").unwrap();
    subscription.acknowledge(first.last).unwrap();
    assert_eq!(cursor(&file), 0, "somebody else is writing, and nobody waits for that");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            busy.execute_batch("ROLLBACK").unwrap();
        });
        let second = subscription.next_batch(LONG).unwrap().unwrap();
        assert_eq!((second.last.get(), cursor(&file)), (2, 1), "now one batch at most comes again");
    });
}

#[test]
fn a_subscription_whose_caller_takes_its_time_keeps_nobody_from_folding_the_log_back() {
    let file = BoardFile::new();
    let (board, others) = (file.board(), file.board());
    let mut subscription = mirror(&board);
    for number in 0..100 {
        write(&others, number);
    }
    // It has a batch in its hands, and has handed out one event of it.
    assert_eq!(subscription.next().unwrap().unwrap().id.get(), 1);
    let wal = file.beside("-wal");
    for number in 100..400 {
        write(&others, number);
    }
    let began = Instant::now();
    while std::fs::metadata(&wal).unwrap().len() > 0 {
        assert!(began.elapsed() < LONG, "somebody holds on to a state of the board");
        others.settle();
        std::thread::yield_now();
    }
    let rest: Vec<_> = subscription.take(399).map(|event| event.unwrap().id.get()).collect();
    assert_eq!(rest, (2..=400).collect::<Vec<_>>());
}
