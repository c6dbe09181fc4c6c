//! The n-th system call fails, for every kind of call that the board's files see: what was acknowledged is stored, what
//! was not can be repeated, and the board is complete.

use crate::crowd::{Ended, at_once, end_of, wait_until};
use crate::machine::can_trace;
use crate::scale::{progress, size};
use crate::test_board::TestBoard;

/// The system calls of every command on the files of a board.
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

/// The additional system calls when a board is created.
const FAILURES_OF_CREATION: &[(&str, &str)] =
    &[("flock", "ENOLCK"), ("flock", "EOPNOTSUPP"), ("rename,renameat,renameat2", "EIO"), ("unlink", "EIO")];

/// No command makes more calls of one kind on the files of its board.
const MOST_CALLS: usize = 40;

/// The files of a board.
const FILES: &[&str] = &["", "-wal", "-shm", "-lock", "-wake"];

/// Which of the calls fails: some of them in CI, each of them at full size.
fn places(some: usize) -> impl Iterator<Item = usize> {
    let count = size(some, MOST_CALLS);
    (0..count).map(move |index| 1 + index * MOST_CALLS / count)
}

#[test]
fn results_are_true_when_any_system_call_fails() {
    if !can_trace("a failing system call") {
        return;
    }
    let board = TestBoard::new();
    board.session("Ivy");
    have_a_sidecar(&board);
    // So that a commit waits for the disk, which may fail as well.
    board.configure(r#"{"database": {"durability": "full"}}"#);
    let (mut tried, mut failed) = (0, 0);
    for (number, (calls, error)) in FAILURES.iter().enumerate() {
        for when in places(6) {
            let item = format!("{}-{error}-{when}", calls.split(',').next().unwrap());
            for change in [create, write] {
                let attempt = change(&board, FILES, (calls, error, when), &item);
                assert!(attempt.was_injected || when > 1, "{calls} never failed with {error}");
                tried += usize::from(attempt.was_injected);
                failed += usize::from(attempt.failed);
            }
        }
        board.assert_sound();
        progress("syscalls, kinds", number + 1, FAILURES.len());
    }
    println!("syscalls: {tried} commands with a failing call, {failed} of them failed, no lie");
    assert!(failed > 0, "nothing ever failed");
}

#[test]
fn reads_never_report_a_missing_entry_when_a_system_call_fails() {
    if !can_trace("a failing system call") {
        return;
    }
    let board = TestBoard::new();
    board.json(&["write", "fact", "\"true\""]);
    have_a_sidecar(&board);
    let (mut tried, mut failed) = (0, 0);
    for failure in FAILURES {
        for when in places(2) {
            for call in [
                &["read", "fact", "--value", "--json"][..],
                &["list", "--json"],
                &["wait", "fact", "--value", "--json"],
            ] {
                let (ended, was_injected) = with_failure(&board, FILES, (failure.0, failure.1, when), call);
                tried += usize::from(was_injected);
                if ended.status.code() == Some(0) {
                    let expected = if call[0] == "list" { "[\"fact\",\"signal\"]\n" } else { "\"true\"\n" };
                    assert_eq!(ended.stdout, expected, "{failure:?} {when} {call:?}");
                } else {
                    failed += 1;
                }
            }
        }
    }
    board.assert_sound();
    println!("syscalls: {tried} readers with a failing call, {failed} of them failed, no lie");
    assert!(failed > 0, "nothing ever failed");
}

#[test]
fn the_next_command_creates_the_board_when_a_system_call_failed() {
    if !can_trace("a failing system call") {
        return;
    }
    for (calls, error) in FAILURES.iter().chain(FAILURES_OF_CREATION) {
        for when in places(3) {
            let board = TestBoard::new();
            let files = ["", "-new", "-new-journal", "-new-wal", "-wal", "-shm", "-lock", "-wake"];
            let attempt = create(&board, &files, (calls, error, when), "item");
            assert!(attempt.was_injected || when > 1, "{calls} never failed with {error}");
            assert!(!attempt.failed || *calls != "flock", "a queue that does not work costs nothing else");
            board.assert_sound();
        }
    }
}

#[test]
fn many_processes_create_one_board_without_working_file_locks() {
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
    assert_eq!(board.count_of("agent_registered"), 16, "no board was replaced by another");
    board.assert_sound();
    for entry in std::fs::read_dir(board.database().parent().unwrap()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.contains("-new"), "{name} is left over");
    }
}

#[test]
fn command_waits_without_a_thread_when_none_can_be_started() {
    if !can_trace("threads that cannot start") {
        return;
    }
    let board = TestBoard::new();
    board.session("Ivy");
    // Another process is before it in the queue.
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

/// The result of a command with a failing system call.
struct Attempt {
    was_injected: bool,
    failed: bool,
}

/// Creates an item while the n-th of some system calls on some files fails, and again without, if that did not work.
#[track_caller]
fn create(board: &TestBoard, files: &[&str], failure: (&str, &str, usize), item: &str) -> Attempt {
    let attempt = change(board, files, failure, &["work", "create", item, "--title", "Work", "--json"]);
    let there = format!("SELECT count(*) FROM work_items WHERE item_id = '{item}'");
    assert_eq!(board.number(&there), 1, "{failure:?}: acknowledged and lost");
    attempt
}

/// Writes an entry in the same way. Its idempotency key prevents a second write.
#[track_caller]
fn write(board: &TestBoard, files: &[&str], failure: (&str, &str, usize), key: &str) -> Attempt {
    let attempt = change(board, files, failure, &["write", key, "1", "--op", key, "--json"]);
    let there = format!("SELECT count(*) FROM entry_versions WHERE key = '{key}'");
    assert_eq!(board.number(&there), 1, "{failure:?}: acknowledged and lost, or done twice");
    attempt
}

#[track_caller]
fn change(board: &TestBoard, files: &[&str], failure: (&str, &str, usize), call: &[&str]) -> Attempt {
    let (ended, was_injected) = with_failure(board, files, failure, call);
    let failed = ended.status.code() != Some(0);
    if failed {
        board.run(call).success();
    }
    Attempt { was_injected, failed }
}

/// Runs a command while the n-th of some system calls on some files fails, and returns whether one did. The command succeeds
/// or reports an error.
#[track_caller]
fn with_failure(
    board: &TestBoard,
    files: &[&str],
    (calls, error, when): (&str, &str, usize),
    call: &[&str],
) -> (Ended, bool) {
    let inject = format!("inject={calls}:error={error}:when={when}");
    let trace = board.path().join("trace");
    let files: Vec<_> =
        files.iter().map(|ending| board.beside(ending).to_str().unwrap().to_owned()).collect();
    let mut wrapper = vec!["strace", "-f", "-qq", "-o", trace.to_str().unwrap(), "-e", &inject];
    wrapper.extend(files.iter().flat_map(|file| ["-P", file]));
    let ended = board.wrapped(&wrapper, call);
    assert_eq!(ended.stderr, "", "{inject}: {ended:?}");
    let code = ended.status.code().unwrap_or_else(|| panic!("{inject}: {ended:?}"));
    if code != 0 {
        assert!([1, 5, 6].contains(&code), "{inject}: {ended:?}");
        let answer: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_ne!(answer["code"], "internal", "{inject}: {ended:?}");
        assert_ne!(answer["code"], "read_only", "this user may write everything: {inject}: {ended:?}");
    }
    (ended, std::fs::read_to_string(trace).unwrap().contains("(INJECTED)"))
}

/// Starts a process that waits, so that the file exists with which writers wake waiting processes.
fn have_a_sidecar(board: &TestBoard) {
    let waiting = board.start(["wait", "signal", "--timeout", "10m"]);
    wait_until("a sidecar", || board.beside("-wake").exists().then_some(()));
    board.json(&["write", "signal", "1"]);
    assert!(end_of(waiting).status.success());
}
