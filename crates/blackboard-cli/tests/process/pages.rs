//! Writers and folds that are killed at any moment: the stored pages become those of a fresh build.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::crowd::{at_once, end_of, kill};
use crate::scale::{Chance, size};
use crate::test_board::TestBoard;

testkit::on_each_engine![pages_are_those_of_a_fresh_build_after_kill_9,];

/// How many of a hundred calls are killed.
const KILLED: usize = 40;

/// How many keys there are.
const KEYS: usize = 60;

const MAP: &[&str] = &["page", "map", "default", "--by", "prefix", "--max-tokens", "100"];

fn pages_are_those_of_a_fresh_build_after_kill_9() {
    let (workers, rounds) = (size(8, 40), size(12, 50));
    let board = TestBoard::new();
    board.json(MAP);
    let killed = at_once(workers, |worker| {
        let (mut chance, mut lifetime, mut killed) = (Chance::new(worker), Duration::from_millis(20), 0);
        for _ in 0..rounds {
            let number = chance.below(KEYS);
            let key = format!("group-{}:{number}", number % 5);
            let calls: [&[&str]; 5] = [
                &["write", &key, "\"a value of some words\""],
                &["write", &key, "1"],
                &["delete", &key],
                &["page", "list"],
                &["page", "list", "default"],
            ];
            let call = calls[chance.below(calls.len())];
            killed += usize::from(call_and_perhaps_die(&board, call, &mut lifetime, &mut chance));
        }
        killed
    });
    println!("pages: {} calls, {} killed", workers * rounds, killed.iter().sum::<usize>());
    board.assert_sound();
    // The first one stores what is missing, after its output.
    board.json(&["page", "list"]);
    let listed = board.json(&["page", "list"]);
    assert_eq!(listed["behind"], 0);
    let pages = hashes(&listed);
    assert_eq!(pages_of_log(&board), pages, "the events of pages say which pages there are");
    let mut in_pages: Vec<String> = pages.iter().flat_map(|page| keys_in(&board, page)).collect();
    in_pages.sort_unstable();
    let keys: Vec<String> = serde_json::from_value(board.json(&["list"])).unwrap();
    assert_eq!(in_pages, keys, "each entry is in one page");
    board.json(&["page", "unmap", "default"]);
    board.json(MAP);
    assert_eq!(hashes(&board.json(&["page", "list"])), pages, "a fresh build has the same pages");
}

/// Makes a call, and may kill it after a random part of the duration of the last complete one. Returns whether it was killed.
fn call_and_perhaps_die(
    board: &TestBoard,
    call: &[&str],
    lifetime: &mut Duration,
    chance: &mut Chance,
) -> bool {
    let started = Instant::now();
    let mut child = board.start(call.iter().chain(&["--json"]));
    if chance.below(100) < KILLED {
        thread::sleep(*lifetime * u32::try_from(chance.below(100)).unwrap() / 100);
        // The PID of a process that was waited for can be reused.
        if child.try_wait().unwrap().is_none() {
            kill(child.id());
        }
    }
    let ended = end_of(child);
    assert_eq!(ended.stderr, "", "{ended:?}");
    if let Some(code) = ended.status.code() {
        // A key to delete may be missing.
        assert!([0, 3].contains(&code), "{call:?}: {ended:?}");
        *lifetime = started.elapsed();
    }
    ended.status.signal().is_some()
}

fn hashes(listed: &Value) -> BTreeSet<String> {
    let pages = listed["items"].as_array().unwrap().iter();
    pages.map(|page| page["hash"].as_str().unwrap().to_owned()).collect()
}

fn keys_in(board: &TestBoard, page: &str) -> Vec<String> {
    let page = board.json(&["page", "show", page]);
    let entries = page["entries"].as_array().unwrap().iter();
    entries.map(|entry| entry["key"].as_str().unwrap().to_owned()).collect()
}

/// The pages that there are after all events.
fn pages_of_log(board: &TestBoard) -> BTreeSet<String> {
    let mut pages = BTreeSet::new();
    for line in board.log() {
        let name = |field: &str| line.metadata[field].as_str().unwrap().to_owned();
        match line.event_type.as_str() {
            "page_added" => assert!(pages.insert(name("page")), "{line:?}"),
            "page_replaced" => {
                assert!(pages.remove(&name("replaces")), "{line:?}");
                assert!(pages.insert(name("page")), "{line:?}");
            }
            "page_invalidated" => assert!(pages.remove(&name("page")), "{line:?}"),
            _ => {}
        }
    }
    pages
}
