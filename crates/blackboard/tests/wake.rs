//! Waiting for writes to the file of a board: from other connections, and from other processes.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod board_file;

use std::path::Path;
use std::process::{Child, Command};
use std::sync::Barrier;
use std::time::Duration;

use blackboard::agent::{Heartbeat, Register};
use blackboard::event::Since;
use blackboard::work::Create;
use blackboard::{Board, Revision};
use rusqlite::Connection;
use testkit::process::wait_for;
use testkit::wait_until;

use self::board_file::BoardFile;

/// So long that a test that reaches it has failed.
const LONG: Duration = Duration::from_mins(2);

/// The environment variable with the path of the board, for a writer in another process.
const BOARD: &str = "BLACKBOARD_TEST_BOARD";

/// How many commits the writer makes.
const COMMITS: i64 = 100;

/// A session that reports its progress: one event each time.
struct Teller {
    board: Board,
    session: String,
}

impl Teller {
    fn new(board: Board) -> Teller {
        let session = board.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
        Teller { board, session }
    }

    fn tell(&self) -> Revision {
        let beat =
            Heartbeat { progress: Some("One step further".to_owned()), ..Heartbeat::of(&self.session) };
        self.board.agents().heartbeat(&beat).unwrap().revision
    }
}

fn revision(board: &Board) -> Revision {
    board.wait(Revision::ZERO, Duration::ZERO).unwrap()
}

/// Waits for the next event after `seen`.
fn wait(board: &Board, seen: &mut Revision) {
    let now = board.wait(*seen, LONG).unwrap();
    assert!(now > *seen, "the time is over");
    *seen = now;
}

/// Waits until a process waits for the board: the first one creates this file, and completes it before it sleeps.
#[cfg(target_os = "linux")]
#[track_caller]
fn wait_until_a_process_waits(file: &BoardFile) {
    let is_complete = || std::fs::metadata(file.beside("-wake")).is_ok_and(|metadata| metadata.len() > 0);
    wait_until("a file to sleep on", || is_complete().then_some(()));
}

/// Not a test: the writer of the next one, in its own process.
#[test]
#[ignore = "it is run by another test"]
fn runs_as_writer_process() {
    testkit::limit_test();
    let Some(path) = std::env::var_os(BOARD) else { return };
    let teller = Teller::new(Board::open(Path::new(&path)).unwrap());
    for _ in 1..COMMITS {
        teller.tell();
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn start_writer(path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "runs_as_writer_process", "--ignored"])
        .env(BOARD, path)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn two_hundred_waiting_threads_see_every_commit_of_another_process() {
    let file = BoardFile::new();
    drop(file.board());
    let ready = Barrier::new(201);
    std::thread::scope(|scope| {
        let (file, ready) = (&file, &ready);
        let mut following = Vec::new();
        for _ in 0..50 {
            // Some of them share a handle, as in a program with several clients.
            let shared = file.board();
            following.extend((0..4).map(|_| {
                let board = shared.clone();
                scope.spawn(move || {
                    ready.wait();
                    let (mut last, mut ids) = (Revision::ZERO, Vec::new());
                    while last < Revision::new(COMMITS) {
                        assert!(board.wait(last, LONG).unwrap() > last, "the time is over");
                        let observation = board.events().observe(&Since::Revision(last), &[]).unwrap();
                        while let Some(batch) = board.events().next(&observation, last, 10).unwrap() {
                            ids.extend(batch.events.iter().map(|event| event.id.get()));
                            last = batch.last;
                        }
                    }
                    ids
                })
            }));
        }
        ready.wait();
        let mut writer = start_writer(&file.path());
        for following in following {
            let ids = following.join().unwrap();
            assert_eq!(ids, (1..=COMMITS).collect::<Vec<_>>(), "each once, in order");
        }
        assert!(wait_for(&mut writer).success());
    });
}

#[test]
fn commit_without_a_wake_up_is_still_found() {
    let file = BoardFile::new();
    let board = file.board();
    let before = Teller::new(file.board()).tell();
    // Like a writer that is killed between its commit and the wake-up.
    let writer = Connection::open(file.path()).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| board.wait(before, LONG).unwrap());
        #[cfg(target_os = "linux")]
        wait_until_a_process_waits(&file);
        writer
            .execute_batch(
                "INSERT INTO events (id, timestamp, event_type, target_id, target_type, summary, commit_id)
                 SELECT id + 1, timestamp, event_type, target_id, target_type, summary, id + 1
                 FROM events ORDER BY id DESC LIMIT 1",
            )
            .unwrap();
        assert_eq!(waiting.join().unwrap(), before.next());
    });
}

#[test]
fn sleeping_thread_does_not_block_checkpoints() {
    let file = BoardFile::new();
    let (board, others) = (file.board(), file.board());
    let last = Revision::new(300);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let mut seen = Revision::ZERO;
            while seen < last {
                wait(&board, &mut seen);
            }
        });
        for number in 1..last.get() {
            others.work().create(&Create::new(&format!("item-{number}"), "Something")).unwrap();
        }
        // Only the waiting thread has the board open, and only during its checks.
        wait_until("the log is folded back: no reader holds on to a state of the board", || {
            others.maintain();
            (std::fs::metadata(file.beside("-wal")).unwrap().len() == 0).then_some(())
        });
        others.work().create(&Create::new("the last one", "Something")).unwrap();
        waiting.join().unwrap();
    });
}

#[cfg(target_os = "linux")]
#[test]
fn commit_without_events_wakes_no_thread() {
    let file = BoardFile::new();
    let board = file.board();
    let teller = Teller::new(file.board());
    let word = || std::fs::read(file.beside("-wake")).ok();
    let seen = teller.tell();
    assert_eq!(word(), None, "no session has waited yet");
    let told = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| board.wait(seen, LONG).unwrap());
        wait_until_a_process_waits(&file);
        let told = teller.tell();
        assert_eq!(waiting.join().unwrap(), told);
        told
    });
    let after_event = word().unwrap();
    assert_eq!(after_event[..4], u32::try_from(told.get()).unwrap().to_ne_bytes());
    teller.board.agents().heartbeat(&Heartbeat::of(&teller.session)).unwrap();
    assert_eq!(revision(&board), told);
    std::fs::write(file.beside("-wake"), [0; 4096]).unwrap();
    teller.board.agents().heartbeat(&Heartbeat::of(&teller.session)).unwrap();
    assert_eq!(word().unwrap(), [0; 4096], "it is not touched");
}
