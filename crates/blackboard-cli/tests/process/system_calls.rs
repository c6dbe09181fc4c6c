//! The n-th system call fails, for every kind of call that the board's files see: what was acknowledged is there, what
//! was not can be asked for again, and the board is whole.

use crate::machine::can_trace;
use crate::scale::{progress, size};
use crate::test_board::TestBoard;

const FAILURES: &[(&str, &str)] = &[
    ("pwrite64", "EIO"),
    ("pwrite64", "ENOSPC"),
    ("pread64", "EIO"),
    ("fsync,fdatasync", "EIO"),
    ("openat", "EIO"),
    ("openat", "EMFILE"),
    ("openat", "ENOSPC"),
    ("fcntl", "EIO"),
    ("fcntl", "ENOLCK"),
    ("ftruncate", "EIO"),
    ("mmap", "ENOMEM"),
    ("newfstatat,fstat,lstat,stat,statx", "EIO"),
    ("flock", "ENOLCK"),
    ("rename,renameat2", "EIO"),
];

/// No command makes more calls of one kind on the files of its board.
const MOST_CALLS: usize = 40;

/// Which of the calls fails: some of them in CI, each of them at full size.
fn places(some: usize) -> impl Iterator<Item = usize> {
    let count = size(some, MOST_CALLS);
    (0..count).map(move |index| 1 + index * MOST_CALLS / count)
}

#[test]
fn whatever_system_call_fails_the_board_tells_the_truth() {
    if !can_trace("a failing system call") {
        return;
    }
    let board = TestBoard::new();
    board.session("Ivy");
    let files = ["", "-wal", "-shm", "-lock"].map(|ending| board.beside(ending).to_str().unwrap().to_owned());
    let (mut tried, mut failed) = (0, 0);
    for (number, (calls, error)) in FAILURES.iter().enumerate() {
        for when in places(6) {
            let inject = format!("inject={calls}:error={error}:when={when}");
            let item = format!("{}-{error}-{when}", calls.split(',').next().unwrap());
            let mut wrapper = vec!["strace", "-f", "-qq", "-o", "/dev/null", "-e", &inject];
            wrapper.extend(files.iter().flat_map(|file| ["-P", file]));
            tried += 1;
            failed += usize::from(create_fails(&board, &wrapper, &item, &inject));
        }
        board.assert_sound();
        progress("syscalls, kinds", number + 1, FAILURES.len());
    }
    println!("syscalls: {tried} commands with a failing call, {failed} of them failed, no lie");
    assert!(failed > 0, "nothing ever failed");
}

#[test]
fn whatever_system_call_fails_while_a_board_is_created_the_next_one_creates_it() {
    if !can_trace("a failing system call") {
        return;
    }
    for (calls, error) in FAILURES {
        for when in places(3) {
            let board = TestBoard::new();
            let inject = format!("inject={calls}:error={error}:when={when}");
            let files = ["", "-new", "-new-journal", "-new-wal", "-lock"];
            let files = files.map(|ending| board.beside(ending).to_str().unwrap().to_owned());
            let mut wrapper = vec!["strace", "-f", "-qq", "-o", "/dev/null", "-e", &inject];
            wrapper.extend(files.iter().flat_map(|file| ["-P", file]));
            create_fails(&board, &wrapper, "item", &inject);
            board.assert_sound();
        }
    }
}

/// Creates an item under failing system calls, and again without, if that did not work. Returns whether it did not.
fn create_fails(board: &TestBoard, wrapper: &[&str], item: &str, what: &str) -> bool {
    let call = ["work", "create", item, "--title", "Work", "--json"];
    let ended = board.wrapped(wrapper, &call);
    assert_eq!(ended.stderr, "", "{what}: {ended:?}");
    let code = ended.status.code().unwrap_or_else(|| panic!("{what}: {ended:?}"));
    if code != 0 {
        assert!([1, 5, 6].contains(&code), "{what}: {ended:?}");
        let answer: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_ne!(answer["code"], "internal", "{what}: {ended:?}");
        board.run(call).success();
    }
    let there = format!("SELECT count(*) FROM work_items WHERE item_id = '{item}'");
    assert_eq!(board.number(&there), 1, "{what}: acknowledged and lost");
    code != 0
}
