//! No reader is ever blocked, and a writer does not wait forever. The lock of writers is one of a file: a server has none.

use std::path::Path;
use std::time::Duration;

use blackboard::entry::{Value, Write};
use rusqlite::Connection;
use rustix::process::Signal;

use crate::crowd::{Ended, at_once, end_of, signal, wait_until};
use crate::machine::can_trace;
use crate::test_board::TestBoard;

testkit::on_each_engine![readers_change_nothing_but_a_cursor];

/// Commands that only read; `SESSION` is one that has events to see, `FACT` the revision of an entry.
const READERS: &[&[&str]] = &[
    &["agent", "list"],
    &["agent", "show", "SESSION"],
    &["observe", "--session", "SESSION"],
    &["observe", "--since", "1h"],
    &["observe", "--session", "SESSION", "--follow", "--timeout", "0s"],
    &["observe", "--follow", "--after", "0", "--timeout", "0s"],
    &["status"],
    &["work", "list"],
    &["work", "status", "item-0"],
    &["project", "list"],
    &["export"],
    &["sweep", "--dry-run"],
    &["read", "fact"],
    &["read", "fact", "--as-of", "FACT"],
    &["list"],
    &["list", "--prefix", "f", "--tag", "x"],
    &["snapshot"],
    &["query", "*", "--tag", "x"],
    &["history", "fact"],
    &["wait", "fact"],
    &["clear", "*", "--dry-run"],
    &["purge", "fact", "--dry-run"],
];

/// A board where each reader would have a reason to write: an agent is gone, the session has not observed yet, and an entry has
/// expired.
fn board_with_temptations() -> (TestBoard, String) {
    let board = TestBoard::new();
    board.session("Dead");
    board.forget_processes();
    board.make_all_heartbeats_old();
    let session = board.session("Ivy");
    board.items(3);
    let library = board.library();
    let scope = library.scope("default");
    let write = |key: &str, ttl| Write { tags: vec!["x".to_owned()], ttl, ..Write::new(key, Value::null()) };
    scope.write(&write("fact", None)).unwrap();
    scope.write(&write("signal", Some(Duration::from_hours(1)))).unwrap();
    board.let_time_pass();
    (board, session)
}

fn read_everything(board: &TestBoard, session: &str) {
    let fact = board.number("SELECT revision FROM entries WHERE key = 'fact'").to_string();
    for reader in READERS {
        let call = reader.iter().map(|word| match *word {
            "SESSION" => session,
            "FACT" => &fact,
            word => word,
        });
        let answer = board.run(call.chain(["--json"]));
        assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{reader:?}: {answer:?}");
    }
}

fn readers_change_nothing_but_a_cursor() {
    let (board, session) = board_with_temptations();
    // What is due is swept by the first command, also by one that reads.
    board.run(["sweep"]).success();
    let contents = || {
        let mut contents = contents(&board.tables());
        contents.retain(|row| !row.starts_with("cursors:"));
        contents
    };
    let before = contents();
    read_everything(&board, &session);
    assert_eq!(contents(), before);
    board.assert_sound();
}

/// Everything that is on the board.
fn contents(connection: &Connection) -> Vec<String> {
    let tables = ["agents", "work_items", "events", "heartbeats", "cursors", "operations", "marks"];
    let tables = tables.into_iter().chain(["entries", "entry_versions", "entry_tags", "entry_tombstones"]);
    let mut contents = Vec::new();
    for table in tables {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let values = (0..columns).map(|column| format!("{:?}", row.get_ref(column).unwrap()));
            contents.push(format!("{table}: {}", values.collect::<Vec<_>>().join(", ")));
        }
    }
    contents
}

mod of_a_file {
    use super::*;

    #[test]
    fn readers_finish_while_another_process_holds_the_write_lock() {
        let (board, session) = board_with_temptations();
        let holder = board.sql();
        let before = contents(&holder);
        holder.execute_batch("BEGIN IMMEDIATE").unwrap();
        read_everything(&board, &session);
        // Only this test can end the transaction: the lock was held while they ran from beginning to end.
        assert!(!holder.is_autocommit());
        holder.execute_batch("ROLLBACK").unwrap();
        assert_eq!(contents(&holder), before);
    }

    #[test]
    fn writers_that_time_out_report_the_holder_of_the_lock() {
        let (board, session) = board_with_temptations();
        let holder = board.sql();
        let before = contents(&holder);
        holder.execute_batch("BEGIN IMMEDIATE").unwrap();
        let answers = at_once(4, |index| match index {
            0 => board.run(["write", "fact", "1", "--json"]),
            _ => board.run(["work", "claim", "item-0", "--json", "--session", &session]),
        });
        assert!(!holder.is_autocommit());
        let this = format!("process {} ", std::process::id());
        for answer in answers {
            assert_eq!((answer.code, answer.stderr.as_str()), (6, ""), "{answer:?}");
            let refusal = answer.json();
            assert_eq!(refusal["code"], "busy");
            assert!(refusal["lock_holder"].as_str().unwrap().starts_with(&this), "{refusal}");
            assert!(refusal["error"].as_str().unwrap().contains(&this), "{refusal}");
        }
        holder.execute_batch("ROLLBACK").unwrap();
        assert_eq!(contents(&holder), before);
        board.run(["work", "claim", "item-0", "--session", &session]).success();
    }

    #[test]
    fn writer_stopped_inside_its_transaction_blocks_no_reader_and_is_reported() {
        if !can_trace("a stopped writer") {
            return;
        }
        let (board, session) = board_with_temptations();
        board.run(["sweep"]).success();
        let (log, trace) = (board.beside("-wal"), board.path().join("trace"));
        // Its first write to the WAL is inside its transaction.
        let stop = "inject=pwrite64:signal=SIGSTOP:when=1";
        let (log, output) = (log.to_str().unwrap(), trace.to_str().unwrap());
        let wrapper = ["strace", "-f", "-qq", "-o", output, "-P", log, "-e", stop];
        let writer = board.start_wrapped(&wrapper, &["work", "create", "new", "--title", "New", "--json"]);
        let stopped = wait_until("a stopped writer", || stopped_process(&trace));

        read_everything(&board, &session);
        let refusal = board.refusal(6, &["work", "claim", "item-0", "--session", &session]);
        let named = format!("process {stopped} (blackboard)");
        assert_eq!(refusal["lock_holder"], named.as_str(), "{refusal}");
        assert_eq!(stopped_process(&trace), Some(stopped), "it was stopped all the time");

        signal(stopped, Signal::CONT);
        let Ended { status, stderr, .. } = end_of(writer);
        assert_eq!((status.code(), stderr.as_str()), (Some(0), ""));
        board.run(["work", "claim", "new", "--session", &session]).success();
        board.assert_sound();
    }

    /// The process that has stopped and not continued, by the trace of its system calls.
    fn stopped_process(trace: &Path) -> Option<u32> {
        let trace = std::fs::read_to_string(trace).ok()?;
        let (pid, happened) = trace.lines().last()?.split_once(' ')?;
        happened.contains("stopped by SIGSTOP").then(|| pid.parse().unwrap())
    }
}
