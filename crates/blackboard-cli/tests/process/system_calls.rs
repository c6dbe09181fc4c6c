//! The n-th system call fails, for every kind of call that the board's files see: what was acknowledged is there, what
//! was not can be asked for again, and the board is whole.

use crate::crowd::at_once;
use crate::machine::can_trace;
use crate::scale::{progress, size};
use crate::test_board::TestBoard;

/// What every command does to the files of a board.
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
];

/// What is done besides when a board is created.
const FAILURES_OF_CREATION: &[(&str, &str)] =
    &[("flock", "ENOLCK"), ("flock", "EOPNOTSUPP"), ("rename,renameat,renameat2", "EIO"), ("unlink", "EIO")];

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
    // So that a commit waits for the disk, which may fail as well.
    board.configure(r#"{"database": {"durability": "full"}}"#);
    let (mut tried, mut failed) = (0, 0);
    for (number, (calls, error)) in FAILURES.iter().enumerate() {
        for when in places(6) {
            let item = format!("{}-{error}-{when}", calls.split(',').next().unwrap());
            let attempt = create(&board, &["", "-wal", "-shm", "-lock"], (calls, error, when), &item);
            assert!(attempt.was_injected || when > 1, "{calls} never failed with {error}");
            tried += usize::from(attempt.was_injected);
            failed += usize::from(attempt.failed);
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
    for (calls, error) in FAILURES.iter().chain(FAILURES_OF_CREATION) {
        for when in places(3) {
            let board = TestBoard::new();
            let files = ["", "-new", "-new-journal", "-new-wal", "-wal", "-shm", "-lock"];
            let attempt = create(&board, &files, (calls, error, when), "item");
            assert!(attempt.was_injected || when > 1, "{calls} never failed with {error}");
            assert!(!attempt.failed || *calls != "flock", "a queue that does not work costs nothing else");
            board.assert_sound();
        }
    }
}

#[test]
fn where_locks_do_not_work_many_create_one_board_all_the_same() {
    if !can_trace("locks that do not work") {
        return;
    }
    let board = TestBoard::new();
    let lock = board.beside("-lock");
    let wrapper = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", lock.to_str().unwrap()];
    let wrapper = [&wrapper[..], &["-e", "inject=flock:error=ENOLCK"]].concat();
    let answers = at_once(16, |index| {
        let name = format!("agent-{index}");
        board.wrapped(&wrapper, &["agent", "register", "--name", &name, "--json"])
    });
    for answer in &answers {
        assert!(answer.status.success() && answer.stderr.is_empty(), "{answer:?}");
    }
    assert_eq!(board.count_of("agent_registered"), 16, "nobody's board was replaced by another");
    board.assert_sound();
    for entry in std::fs::read_dir(board.database().parent().unwrap()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.contains("-new"), "{name} is left over");
    }
}

#[test]
fn where_there_can_be_no_more_threads_a_command_waits_without_one() {
    if !can_trace("threads that can't start") {
        return;
    }
    let board = TestBoard::new();
    board.session("Ivy");
    // Somebody is in line before it.
    let head = std::fs::OpenOptions::new().write(true).open(board.beside("-lock")).unwrap();
    head.lock().unwrap();
    head.set_len(1).unwrap();
    let trace = board.path().join("trace");
    let wrapper =
        ["strace", "-f", "-qq", "-o", trace.to_str().unwrap(), "-e", "inject=clone,clone3:error=EAGAIN"];
    let ended = board.wrapped(&wrapper, &["work", "create", "item", "--title", "Work", "--json"]);
    assert!(ended.status.success() && ended.stderr.is_empty(), "{ended:?}");
    assert!(std::fs::read_to_string(trace).unwrap().contains("(INJECTED)"), "it wanted a thread");
}

/// What came of a command with a failing system call.
struct Attempt {
    was_injected: bool,
    failed: bool,
}

/// Creates an item while the n-th of some system calls on some files fails, and again without, if that did not work.
#[track_caller]
fn create(board: &TestBoard, files: &[&str], failure: (&str, &str, usize), item: &str) -> Attempt {
    let (calls, error, when) = failure;
    let inject = format!("inject={calls}:error={error}:when={when}");
    let trace = board.path().join("trace");
    let files: Vec<_> =
        files.iter().map(|ending| board.beside(ending).to_str().unwrap().to_owned()).collect();
    let mut wrapper = vec!["strace", "-f", "-qq", "-o", trace.to_str().unwrap(), "-e", &inject];
    wrapper.extend(files.iter().flat_map(|file| ["-P", file]));
    let call = ["work", "create", item, "--title", "Work", "--json"];
    let ended = board.wrapped(&wrapper, &call);
    assert_eq!(ended.stderr, "", "{inject}: {ended:?}");
    let code = ended.status.code().unwrap_or_else(|| panic!("{inject}: {ended:?}"));
    if code != 0 {
        assert!([1, 5, 6].contains(&code), "{inject}: {ended:?}");
        let answer: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_ne!(answer["code"], "internal", "{inject}: {ended:?}");
        assert_ne!(answer["code"], "read_only", "this user may write everything: {inject}: {ended:?}");
        board.run(call).success();
    }
    let there = format!("SELECT count(*) FROM work_items WHERE item_id = '{item}'");
    assert_eq!(board.number(&there), 1, "{inject}: acknowledged and lost");
    let was_injected = std::fs::read_to_string(trace).unwrap().contains("(INJECTED)");
    Attempt { was_injected, failed: code != 0 }
}
