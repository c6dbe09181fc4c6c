//! A file that is replaced by a link and back while commands run: no command follows the link.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::scale::size;
use crate::scratch::Output;
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

    let create = |item: &str| board.run(["work", "create", item, "--title", "Work", "--json"]);
    let swap = || renameat_with(CWD, board.database(), CWD, &link, RenameFlags::EXCHANGE).unwrap();
    swap();
    assert_refused(&create("through-the-link"));
    swap();
    assert_eq!(create("on-the-board").code, 0, "the board is back in its place");

    let stop = AtomicBool::new(false);
    let (mut done, mut refused) = (1, 1);
    thread::scope(|scope| {
        let _swapping = Swapping(&stop);
        scope.spawn(|| {
            // The link comes at a different step of a command each time, and stays for less time than the board.
            for pause in (0..3_000).step_by(7).cycle() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                swap();
                thread::sleep(Duration::from_micros(pause / 8));
                swap();
                thread::sleep(Duration::from_micros(pause));
            }
        });
        for index in 0..size(150, 2_000) {
            let answer = create(&format!("item-{index}"));
            if answer.code == 0 {
                done += 1;
            } else {
                assert_refused(&answer);
                refused += 1;
            }
        }
    });
    println!("swapped: {done} commands met the board, {refused} a link");
    assert_eq!(fs::read(victim.database()).unwrap(), before, "nothing was done through the link");
    assert_eq!(board.count_of("work_created"), done);
    board.assert_sound();
}

/// Asserts that a command was refused for what it found in place of the board, and printed nothing else.
fn assert_refused(answer: &Output) {
    assert_eq!(answer.stderr, "", "{answer:?}");
    let code = answer.json()["code"].clone();
    assert!(["unsafe_permissions", "io"].contains(&code.as_str().unwrap()), "{answer:?}");
}
