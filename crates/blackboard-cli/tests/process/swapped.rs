//! A file that becomes a link and a file again while commands run: nothing is ever done through the link.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::scale::size;
use crate::test_board::TestBoard;

/// Swaps two names until it is dropped.
struct Swapping<'a>(&'a AtomicBool);

impl Drop for Swapping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_link_that_takes_the_place_of_a_board_is_never_followed() {
    let (board, victim) = (TestBoard::new(), TestBoard::new());
    board.session("Ivy");
    victim.session("Oak");
    victim.tamper("PRAGMA wal_checkpoint(TRUNCATE)");
    let before = fs::read(victim.database()).unwrap();
    let link = board.path().join("board/link");
    symlink(victim.database(), &link).unwrap();

    let stop = AtomicBool::new(false);
    let (mut done, mut refused) = (0, 0);
    thread::scope(|scope| {
        let _swapping = Swapping(&stop);
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, board.database(), CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        for index in 0..size(150, 2_000) {
            let item = format!("item-{index}");
            let answer = board.run(["work", "create", &item, "--title", "Work", "--json"]);
            assert_eq!(answer.stderr, "", "{answer:?}");
            if answer.code == 0 {
                done += 1;
                continue;
            }
            refused += 1;
            let answer = answer.json();
            assert!(["unsafe_permissions", "io"].contains(&answer["code"].as_str().unwrap()), "{answer}");
        }
    });
    println!("swapped: {done} commands met the board, {refused} a link");
    assert!(done > 0 && refused > 0, "both were met: {done} and {refused}");
    assert_eq!(fs::read(victim.database()).unwrap(), before, "nothing was done through the link");
    if fs::symlink_metadata(board.database()).unwrap().is_symlink() {
        fs::rename(&link, board.database()).unwrap();
    }
    assert_eq!(board.count_of("work_created"), done);
    board.assert_sound();
}
