//! The write-ahead log is kept between commands, and stays small.

use crate::scale::{progress, size};
use crate::test_board::TestBoard;

const LIMIT: u64 = 2 * 1024 * 1024;

#[test]
fn the_log_stays_small_however_many_commands_run_one_after_the_other() {
    let commands = size(300, 10_000);
    let board = TestBoard::new();
    let session = board.session("Ivy");
    let mut largest = 0;
    for index in 0..commands / 5 {
        let item = format!("item-{index}");
        board.run(["work", "create", &item, "--title", "Work"]).success();
        board.run(["work", "claim", &item, "--session", &session]).success();
        board.run(["agent", "heartbeat", "--session", &session, "--progress", "half"]).success();
        board.run(["observe", "--session", &session]).success();
        board.run(["work", "complete", &item, "--session", &session]).success();
        largest = largest.max(log_length(&board));
        progress("wal, commands", (index + 1) * 5, commands);
    }
    println!("wal: {largest} bytes at most in {commands} commands");
    assert!(largest <= LIMIT, "{largest} bytes");
    board.assert_sound();
}

#[test]
fn readers_alone_keep_it_small_too() {
    let readers = size(500, 2_000);
    let board = TestBoard::new();
    let sessions = board.sessions("agent", readers);
    board
        .run(["work", "create", "item", "--title", "Folds back what preparing the board has written"])
        .success();
    for session in &sessions {
        // Each stores a cursor, which is the only thing that is ever written here.
        board.run(["observe", "--session", session]).success();
    }
    let length = log_length(&board);
    println!("wal: {length} bytes after {readers} readers that stored a cursor each");
    assert!(length <= LIMIT, "{length} bytes");
}

fn log_length(board: &TestBoard) -> u64 {
    std::fs::symlink_metadata(board.beside("-wal")).map_or(0, |metadata| metadata.len())
}
