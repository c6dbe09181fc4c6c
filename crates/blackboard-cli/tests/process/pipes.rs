//! A reader that closes the pipe: the program exits with 0, and moves no cursor past unread events.

use std::io::pipe;
use std::process::{Command, Stdio};

use blackboard::agent::Heartbeat;
use blackboard::entry::{Value, Write};
use testkit::process::RunToEnd as _;

use crate::crowd::{Ended, end_of};
use crate::test_board::TestBoard;

testkit::on_each_engine![
    list_exits_with_0_when_its_reader_reads_one_line,
    entry_lists_exit_with_0_when_their_reader_reads_one_line,
    cursor_does_not_move_when_its_reader_closed_the_pipe,
    a_limited_observe_moves_the_cursor_to_the_last_event_that_it_showed,
];

/// More events than fit into a pipe.
const EVENTS: usize = 3_000;

/// A board with many events, and a session that has observed none of them.
fn eventful_board() -> (TestBoard, String) {
    let board = TestBoard::new();
    let session = board.session("Ivy");
    board.items(EVENTS);
    let library = board.library();
    for _ in 0..10 {
        library
            .agents()
            .heartbeat(&Heartbeat { progress: Some("half".to_owned()), ..Heartbeat::of(&session) })
            .unwrap();
    }
    (board, session)
}

/// `blackboard … | head -1`: how the program ended, and the line.
fn first_line(board: &TestBoard, arguments: &[&str]) -> (Ended, String) {
    let (reader, writer) = pipe().unwrap();
    let head = Command::new("head").arg("-1").stdin(reader).stdout(Stdio::piped()).spawn().unwrap();
    let program = board.command(arguments).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    // In this order, because one line of JSON does not fit into a pipe.
    let line = end_of(head).stdout;
    (end_of(program), line)
}

fn cursors(board: &TestBoard) -> i64 {
    board.number("SELECT count(*) FROM cursors")
}

fn observed(board: &TestBoard, session: &str) -> usize {
    board.json(&["observe", "--session", session])["items"].as_array().unwrap().len()
}

fn list_exits_with_0_when_its_reader_reads_one_line() {
    let (board, session) = eventful_board();
    for call in [
        &["observe", "--session", &session][..],
        &["observe", "--session", &session, "--json"],
        &["observe", "--since", "1h"],
        &["work", "list", "--all"],
        &["work", "list", "--json"],
        &["export", "--pretty"],
        &["--help"],
    ] {
        let (ended, line) = first_line(&board, call);
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{call:?}");
        assert!(!line.is_empty(), "{call:?}");
    }
}

fn entry_lists_exit_with_0_when_their_reader_reads_one_line() {
    let board = TestBoard::new();
    let value = Value::of(&"x".repeat(1_000)).unwrap();
    let writes: Vec<_> =
        (0..1_000).map(|number| Write::new(&format!("{number:0100}"), value.clone())).collect();
    board.library().scope("default").write_batch(&writes).unwrap();
    board.json(&["write", "large", &format!("\"{}\"", "x".repeat(100_000))]);
    for call in [
        &["list"][..],
        &["list", "--json"],
        &["list", "--long", "--json"],
        &["snapshot"],
        &["query", "--limit", "1000"],
        &["query", "--limit", "1000", "--json"],
        &["history", "large"],
        &["read", "large"],
        &["read", "large", "--value"],
        &["wait", "large"],
    ] {
        let (ended, line) = first_line(&board, call);
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{call:?}");
        assert!(!line.is_empty(), "{call:?}");
    }
}

fn cursor_does_not_move_when_its_reader_closed_the_pipe() {
    let (board, session) = eventful_board();
    let (ended, line) = first_line(&board, &["observe", "--session", &session]);
    assert!(ended.status.success() && !line.is_empty(), "{ended:?}");
    assert_eq!(cursors(&board), 0);
    assert_eq!(observed(&board, &session), EVENTS + 10, "the next one shows everything");
    assert_eq!(cursors(&board), 1);
    assert_eq!(observed(&board, &session), 0);

    board.run(["agent", "heartbeat", "--session", &session, "--progress", "all"]).success();
    for closed in [closed_pipe(), std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap().into()] {
        board.command(["observe", "--session", &session]).stdout(closed).spawn().unwrap().run_to_end();
        let peek = board.json(&["observe", "--session", &session, "--peek"]);
        assert_eq!(peek["count"], 1, "it was not read");
    }
    assert_eq!(observed(&board, &session), 1);
}

fn a_limited_observe_moves_the_cursor_to_the_last_event_that_it_showed() {
    let (board, session) = eventful_board();
    let mut seen = Vec::new();
    loop {
        let answer = board.json(&["observe", "--session", &session, "--limit", "700"]);
        let items = answer["items"].as_array().unwrap();
        if items.is_empty() {
            break;
        }
        seen.extend(items.iter().map(|event| event["id"].as_i64().unwrap()));
    }
    let all: Vec<_> = board.log().iter().skip(1).map(|line| line.id).collect();
    assert_eq!(seen, all, "each event once, in order");
}

fn closed_pipe() -> Stdio {
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    writer.into()
}
