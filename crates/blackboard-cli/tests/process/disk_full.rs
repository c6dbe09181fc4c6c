//! A full disk: a clear error, a complete board, and everything works again once there is space.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use crate::machine::SmallDisk;
use crate::scale::{progress, size};
use crate::test_board::TestBoard;

const DISK_KILOBYTES: usize = 1_024;

/// Fills the disk, and leaves about this many kilobytes.
fn fill(file: &Path, leave: usize) {
    let mut ballast = OpenOptions::new().create(true).append(true).open(file).unwrap();
    while ballast.write_all(&[0; 4_096]).is_ok() {}
    let length = ballast.metadata().unwrap().len();
    ballast.set_len(length.saturating_sub(leave as u64 * 1_024)).unwrap();
}

#[test]
fn board_on_a_full_disk_reports_it_stays_complete_and_continues_when_there_is_space() {
    let board = TestBoard::new();
    let directory = board.database().parent().unwrap();
    fs::create_dir(directory).unwrap();
    let Some(_disk) = SmallDisk::mount(directory, DISK_KILOBYTES) else { return };
    let ballast = directory.join("ballast");
    let session = board.session("Ivy");
    let rounds = size(12, 120);
    let (mut acknowledged, mut written) = (0, 0);
    let mut refused = 0;
    let value = format!("\"{}\"", "x".repeat(1_000));
    board.json(&["write", "fact", "1"]);
    for round in 0..rounds {
        fill(&ballast, 4 * (round % 12));
        for attempt in 0..40 {
            let item = format!("item-{round}-{attempt}");
            let (key, is_entry) = (format!("key-{}", attempt % 4), (round + attempt) % 2 == 0);
            let answer = if is_entry {
                board.run(["write", &key, &value, "--json"])
            } else {
                board.run(["work", "create", &item, "--title", "Work", "--json"])
            };
            if answer.code == 0 {
                *if is_entry { &mut written } else { &mut acknowledged } += 1;
                continue;
            }
            assert_eq!((answer.code, answer.stderr.as_str()), (1, ""), "{answer:?}");
            assert_eq!(answer.json()["code"], "disk_full", "{answer:?}");
            refused += 1;
            break;
        }
        // A command that only reads needs no space.
        board.run(["work", "list", "--limit", "1", "--json"]).success();
        assert_eq!(board.json(&["read", "fact"])["value"], 1);
        assert!(!board.json(&["list"]).as_array().unwrap().is_empty());
        fs::remove_file(&ballast).unwrap();
        assert_eq!(board.count_of("work_created"), acknowledged, "done means done, and nothing more");
        assert_eq!(board.count_of("entry_written"), written + 1, "done means done, and nothing more");
        board.assert_sound();
        board.run(["agent", "heartbeat", "--session", &session]).success();
        progress("disk-full, rounds", round + 1, rounds);
    }
    println!(
        "disk-full: {rounds} rounds, {acknowledged} items created, {written} entries written, {refused} calls without room"
    );
    assert!(refused > 0, "the disk was never full");
}

#[test]
fn board_on_a_full_disk_is_created_completely_or_not_at_all() {
    let board = TestBoard::new();
    let directory = board.database().parent().unwrap();
    fs::create_dir(directory).unwrap();
    let Some(_disk) = SmallDisk::mount(directory, DISK_KILOBYTES) else { return };
    let ballast = directory.join("ballast");
    for (refused, leave) in (0..240).step_by(8).enumerate() {
        fill(&ballast, leave);
        let answer = board.run(["agent", "register", "--name", "Ivy", "--json"]);
        if answer.code == 0 {
            fs::remove_file(&ballast).unwrap();
            assert_eq!(board.count_of("agent_registered"), 1);
            board.assert_sound();
            assert!(refused > 0, "there was always room");
            return;
        }
        assert_eq!((answer.code, answer.stderr.as_str()), (1, ""), "{answer:?}");
        assert_eq!(answer.json()["code"], "disk_full", "{answer:?}");
    }
    panic!("there was never room enough");
}
