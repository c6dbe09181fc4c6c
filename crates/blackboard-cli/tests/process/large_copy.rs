//! A large board that is copied to a server and back, by processes with little memory.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::Instant;

use blackboard::entry::{Value as EntryValue, Write};
use blackboard::work::{Claim, Create};
use serde_json::Value;
use testkit::redis::RedisServer;

use crate::scale::{progress, size};
use crate::test_board::TestBoard;

/// How much memory a copy may use for its data, in kilobytes. The full board has many times more.
const MEMORY: usize = 100_000;

/// How many entries one commit writes.
const BATCH: usize = 1_000;

/// Writes so many entries that many events, and returns the fence token of a claim that was lost.
fn fill(board: &TestBoard, entries: usize, events: usize) -> i64 {
    let library = board.library();
    let value = EntryValue::of(&"x".repeat(200)).unwrap();
    for first in (0..events).step_by(BATCH) {
        let writes = (first..events.min(first + BATCH))
            .map(|number| Write::new(&format!("key:{:06}", number % entries), value.clone()));
        library.scope("default").write_batch(&writes.collect::<Vec<_>>()).unwrap();
        progress("copy: events", first, events);
    }
    let ivy = board.session("Ivy");
    library.work().create(&Create::new("x", "X")).unwrap();
    let fence = library.work().claim(&Claim::of("x", &ivy)).unwrap().item.fence.unwrap();
    library.work().reset("x", None).unwrap();
    library.work().claim(&Claim::of("x", &ivy)).unwrap();
    fence.get()
}

fn copy(board: &TestBoard, from: &str, to: &str) -> Value {
    let limit = format!("ulimit -d {MEMORY}; exec \"$@\"");
    let start = Instant::now();
    let ended = board.wrapped(&["sh", "-c", &limit, "sh"], &["copy", from, to, "--json"]);
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    println!("copy: {} s", start.elapsed().as_secs());
    serde_json::from_str(&ended.stdout).unwrap()
}

/// Whether two exports are equal but for their times.
fn is_equal(one: &Path, other: &Path) -> bool {
    let files = [one, other].map(|path| BufReader::new(File::open(path).unwrap()));
    let [(one_head, one), (other_head, other)] = files.map(|mut file| {
        let mut head = Vec::new();
        file.read_until(b',', &mut head).unwrap();
        file.read_until(b',', &mut head).unwrap();
        (String::from_utf8(head).unwrap(), file)
    });
    let before_time = |head: &str| head.split_once("\"exported_at\":").unwrap().0.to_owned();
    assert_eq!(before_time(&one_head), before_time(&other_head));
    let (mut one, mut other) = (one.bytes(), other.bytes());
    loop {
        match (one.next(), other.next()) {
            (None, None) => return true,
            (Some(one), Some(other)) if one.as_ref().unwrap() == other.as_ref().unwrap() => {}
            _ => return false,
        }
    }
}

#[test]
fn large_board_is_equal_after_it_was_copied_to_a_server_and_back() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let board = TestBoard::new();
    let (entries, events) = (size(1_000, 100_000), size(10_000, 1_000_000));
    let old_fence = fill(&board, entries, events).to_string();
    let (from, url, back) = (board.database().to_str().unwrap(), server.url("copy"), "back.db");
    let there = copy(&board, from, &url);
    let copied = copy(&board, &url, back);
    assert_eq!(there["copied"], copied["copied"]);
    assert_eq!(copied["copied"]["entries"], entries);
    assert_eq!(copied["copied"]["entry_versions"], events);
    board.json(&["export", "--output", "before.json"]);
    for copy in [url.as_str(), back] {
        board.json(&["export", "--output", "after.json", "--db", copy]);
        let files = ["before.json", "after.json"].map(|name| board.path().join(name));
        assert!(is_equal(&files[0], &files[1]), "{copy}");
        let complete = ["work", "complete", "x", "--session", "Ivy", "--fence", &old_fence, "--db", copy];
        assert_eq!(board.refusal(4, &complete)["code"], "stale_fence");
    }
    println!("copy: {entries} entries and {events} events, there and back");
}
