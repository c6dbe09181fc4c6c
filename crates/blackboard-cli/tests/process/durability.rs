//! What a commit waits for: nothing, or the disk.

use std::fs;

use crate::machine::can_trace;
use crate::test_board::TestBoard;

/// How often a command waits until its commit is on the disk, with this configuration.
fn waits_for_the_disk(configuration: &str) -> usize {
    let board = TestBoard::new();
    board.session("Ivy");
    board.configure(configuration);
    // The first commit to an empty WAL also syncs its header.
    board.run(["work", "create", "first", "--title", "Work"]).success();
    let (trace, log) = (board.path().join("trace"), board.beside("-wal"));
    let wrapper = ["strace", "-f", "-qq", "-o", trace.to_str().unwrap(), "-P", log.to_str().unwrap()];
    let wrapper = [&wrapper[..], &["-e", "trace=fsync,fdatasync,pwrite64"]].concat();
    let ended = board.wrapped(&wrapper, &["work", "create", "item", "--title", "Work"]);
    assert!(ended.status.success(), "{ended:?}");
    let trace = fs::read_to_string(trace).unwrap();
    assert!(trace.contains("pwrite64"), "the commit was seen: {trace}");
    trace.lines().filter(|line| line.contains("sync(")).count()
}

#[test]
fn commit_waits_for_the_disk_only_with_full_durability() {
    if !can_trace("durability") {
        return;
    }
    assert_eq!(waits_for_the_disk("{}"), 0);
    assert_eq!(waits_for_the_disk(r#"{"database": {"durability": "normal"}}"#), 0);
    assert_eq!(waits_for_the_disk(r#"{"database": {"durability": "full"}}"#), 1);
}

/// The directories that the first command of a board syncs with this configuration: the board's and its parent.
fn synced_directories(configuration: &str) -> [bool; 2] {
    let board = TestBoard::new();
    board.configure(configuration);
    let trace = board.path().join("trace");
    let wrapper = ["strace", "-f", "-y", "-qq", "-o", trace.to_str().unwrap()];
    let wrapper = [&wrapper[..], &["-e", "trace=fsync,fdatasync"]].concat();
    let ended = board.wrapped(&wrapper, &["write", "key", "1"]);
    assert!(ended.status.success(), "{ended:?}");
    let trace = fs::read_to_string(trace).unwrap();
    let above = fs::canonicalize(board.path()).unwrap();
    [above.join("board"), above].map(|directory| trace.contains(&format!("<{}>)", directory.display())))
}

#[test]
fn new_board_and_its_directory_are_synced_with_full_durability() {
    if !can_trace("durability") {
        return;
    }
    assert_eq!(synced_directories(r#"{"database": {"durability": "full"}}"#), [true, true]);
    // SQLite itself waits for the board's own directory, when it has filled the new file.
    let [_, above] = synced_directories("{}");
    assert!(!above);
}
