//! The same load that loses data in the Markdown file that this program replaces: nothing is lost.
//!
//! The sizes are those that were measured there, and so do not grow with the scale.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::crowd::{at_once, wait_until};
use crate::machine::can_trace;
use crate::scale::size;
use crate::test_board::TestBoard;

testkit::on_each_engine![
    twenty_writers_in_five_rounds_lose_nothing,
    twenty_writers_of_25_writes_each_lose_nothing,
    twenty_writers_of_3_writes_each_lose_nothing,
    two_hundred_writers_at_once_are_all_acknowledged,
    a_counter_by_read_and_conditional_write_is_exact,
    counter_by_increment_is_exact_and_no_call_is_refused,
    expiring_entries_delete_no_others_and_expire_once,
    one_of_two_writes_with_the_same_revision_is_applied,
    deleted_keys_do_not_come_back,
    keys_that_a_file_of_lines_would_not_survive_survive,
    a_reader_never_sees_half_of_a_value,
];

/// What was acknowledged: the key, its value and its revision.
type Acknowledged = (String, Value, i64);

/// Writes a key, and returns what was acknowledged.
#[track_caller]
fn write(board: &TestBoard, key: String, value: &str, options: &[&str]) -> Acknowledged {
    let written = board.json(&[&["write", &key, value], options].concat());
    let revision = written["revision"].as_i64().unwrap();
    (key, serde_json::from_str(value).unwrap(), revision)
}

/// Many processes, each of which writes its own keys.
fn crowd_of(board: &TestBoard, crowd: usize, each: usize, name: &str) -> Vec<Acknowledged> {
    let all = at_once(crowd, |writer| {
        let one = |number: usize| write(board, format!("{name}:{writer}:{number}"), &number.to_string(), &[]);
        (0..each).map(one).collect::<Vec<_>>()
    });
    all.into_iter().flatten().collect()
}

/// Asserts that the board has exactly the acknowledged entries.
#[track_caller]
fn assert_nothing_lost(board: &TestBoard, acknowledged: &[Acknowledged]) {
    let expected: BTreeMap<_, _> =
        acknowledged.iter().map(|(key, value, revision)| (key.clone(), (value.clone(), *revision))).collect();
    assert_eq!(expected.len(), acknowledged.len(), "each key once");
    let snapshot = board.json(&["snapshot"]);
    let found: BTreeMap<_, _> = snapshot
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, entry)| (key.clone(), (entry["value"].clone(), entry["revision"].as_i64().unwrap())))
        .collect();
    assert_eq!(found, expected);
    let keys: Vec<_> = expected.keys().collect();
    assert_eq!(board.json(&["list"]), json!(keys));
    board.assert_sound();
}

fn twenty_writers_in_five_rounds_lose_nothing() {
    let board = TestBoard::new();
    let mut acknowledged = Vec::new();
    for round in 0..5 {
        acknowledged.extend(crowd_of(&board, 20, 1, &format!("round-{round}")));
    }
    assert_eq!(acknowledged.len(), 100);
    assert_nothing_lost(&board, &acknowledged);
}

fn twenty_writers_of_25_writes_each_lose_nothing() {
    let board = TestBoard::new();
    let acknowledged = crowd_of(&board, 20, 25, "writer");
    println!("swarm: {} acknowledged, 0 lost", acknowledged.len());
    assert_nothing_lost(&board, &acknowledged);
}

fn twenty_writers_of_3_writes_each_lose_nothing() {
    let board = TestBoard::new();
    let acknowledged = crowd_of(&board, 20, 3, "writer");
    assert_nothing_lost(&board, &acknowledged);
}

fn two_hundred_writers_at_once_are_all_acknowledged() {
    let board = TestBoard::new();
    let acknowledged = crowd_of(&board, 200, 2, "writer");
    println!("swarm: {} acknowledged of 400 at once, none timed out", acknowledged.len());
    assert_nothing_lost(&board, &acknowledged);
}

fn a_counter_by_read_and_conditional_write_is_exact() {
    let board = TestBoard::new();
    board.json(&["write", "counter", "0"]);
    let refused: usize =
        at_once(20, |_| (0..10).map(|_| count_up(&board, "counter")).sum::<usize>()).into_iter().sum();
    assert_eq!(board.json(&["read", "counter"])["value"], 200);
    println!("swarm: counted to 200, {refused} writes were too late and tried again");
    board.assert_sound();
}

/// Reads and writes until no other process wrote meanwhile; returns how often one did.
fn count_up(board: &TestBoard, key: &str) -> usize {
    let mut refused = 0;
    loop {
        let entry = board.json(&["read", key]);
        let next = (entry["value"].as_i64().unwrap() + 1).to_string();
        let revision = entry["revision"].to_string();
        let answer = board.run(["write", key, &next, "--if-revision", &revision, "--json"]);
        if answer.code == 0 {
            return refused;
        }
        assert_eq!((answer.code, &answer.json()["code"]), (4, &json!("conflict")), "{answer:?}");
        refused += 1;
    }
}

fn counter_by_increment_is_exact_and_no_call_is_refused() {
    let board = TestBoard::new();
    let values = at_once(20, |_| {
        let one = |_| board.json(&["increment", "counter"])["value"].as_i64().unwrap();
        (0..10).map(one).collect::<Vec<_>>()
    });
    let mut values: Vec<_> = values.into_iter().flatten().collect();
    values.sort_unstable();
    assert_eq!(values, (1..=200).collect::<Vec<_>>(), "each number was written once");
    assert_eq!(board.json(&["read", "counter"])["value"], 200);
    board.assert_sound();
}

fn expiring_entries_delete_no_others_and_expire_once() {
    let board = TestBoard::new();
    let (writers, beaters, pollers) = (10, 5, 5);
    let writing = AtomicUsize::new(writers + beaters);
    let acknowledged = at_once(writers + beaters + pollers, |index| match index {
        writer if writer < writers => {
            let one = |number| write(&board, format!("fact:{writer}:{number}"), "true", &[]);
            let facts: Vec<_> = (0..20).map(one).collect();
            writing.fetch_sub(1, Ordering::SeqCst);
            facts
        }
        beater if beater < writers + beaters => {
            for number in 0..20 {
                // One that is renewed, and one that expires.
                write(&board, format!("signal:{beater}"), &number.to_string(), &["--ttl", "50ms"]);
                write(&board, format!("signal:{beater}:{number}"), "1", &["--ttl", "1s"]);
            }
            writing.fetch_sub(1, Ordering::SeqCst);
            Vec::new()
        }
        _ => {
            let mut seen = BTreeSet::new();
            while writing.load(Ordering::SeqCst) > 0 {
                let facts = board.json(&["list", "--prefix", "fact:"]);
                let facts: BTreeSet<_> =
                    facts.as_array().unwrap().iter().map(|key| key.as_str().unwrap().to_owned()).collect();
                assert!(seen.is_subset(&facts), "a fact disappeared: {seen:?} {facts:?}");
                seen = facts;
            }
            Vec::new()
        }
    });
    let acknowledged: Vec<_> = acknowledged.into_iter().flatten().collect();
    assert_eq!(acknowledged.len(), 200);
    let expired = |board: &TestBoard| {
        let lines = board.log().into_iter().filter(|line| line.event_type == "entry_expired");
        lines.map(|line| line.target.unwrap()).collect::<Vec<_>>()
    };
    wait_until("the end of all signals", || {
        let left = board.json(&["list", "--prefix", "signal:"]);
        at_once(4, |_| board.json(&["list"]));
        board.run(["sweep"]).success();
        left.as_array().unwrap().is_empty().then_some(())
    });
    assert_nothing_lost(&board, &acknowledged);
    let expired = expired(&board);
    for beater in writers..writers + beaters {
        let renewed = format!("signal:{beater}");
        assert!(expired.contains(&renewed), "{renewed}");
        for number in 0..20 {
            let key = format!("signal:{beater}:{number}");
            assert_eq!(expired.iter().filter(|expired| **expired == key).count(), 1, "{key}");
        }
    }
    println!("swarm: 200 facts beside {} heartbeats that expired, 0 lost", expired.len());
}

fn one_of_two_writes_with_the_same_revision_is_applied() {
    let board = TestBoard::new();
    for round in 0..size(20, 200) {
        let before = board.json(&["write", "plan", &format!("{{\"round\":{round}}}")]);
        let revision = before["revision"].to_string();
        let answers = at_once(2, |index| {
            board.run(["write", "plan", &index.to_string(), "--if-revision", &revision, "--json"])
        });
        let winner = answers.iter().position(|answer| answer.code == 0).expect("one wins");
        let refusal = answers[1 - winner].json();
        assert_eq!((answers[1 - winner].code, &refusal["code"]), (4, &json!("conflict")));
        assert_eq!(
            refusal["revision"],
            answers[winner].json()["revision"],
            "the refusal has the revision of the entry"
        );
        assert_eq!(board.json(&["read", "plan"])["value"], winner);
    }
    board.assert_sound();
}

fn deleted_keys_do_not_come_back() {
    let board = TestBoard::new();
    crowd_of(&board, 4, 10, "old");
    let written = at_once(16, |index| match index % 4 {
        0 => {
            let writer = index / 4;
            for number in 0..10 {
                board.json(&["delete", &format!("old:{writer}:{number}")]);
                let keys = board.json(&["list"]);
                let gone = format!("old:{writer}:{number}");
                assert!(!keys.as_array().unwrap().contains(&json!(gone)), "{gone} is back");
            }
            Vec::new()
        }
        _ => (0..10).map(|number| write(&board, format!("new:{index}:{number}"), "1", &[])).collect(),
    });
    let written: Vec<_> = written.into_iter().flatten().collect();
    assert_nothing_lost(&board, &written);
    assert_eq!(board.count_of("entry_deleted"), 40, "each one once");
}

fn keys_that_a_file_of_lines_would_not_survive_survive() {
    let board = TestBoard::new();
    let keys = ["key with a space", "### heading", "a\"b", "a\\b", "a|b", "```", "ünïcödé", "-- x"];
    let written: Vec<_> =
        keys.iter().map(|key| board.run(["write", "--json", "--", key, "1"]).success().json()).collect();
    crowd_of(&board, 10, 3, "other");
    for (key, written) in keys.iter().zip(written) {
        let entry = board.run(["read", "--json", "--", key]).success().json();
        assert_eq!((&entry["key"], &entry["revision"]), (&json!(key), &written["revision"]));
    }
    assert_eq!(board.json(&["list"]).as_array().unwrap().len(), keys.len() + 30);
}

fn a_reader_never_sees_half_of_a_value() {
    let board = TestBoard::new();
    let value = |letter: char| format!("{{\"a\":\"{0}\",\"b\":\"{0}\"}}", letter.to_string().repeat(100_000));
    board.fed(&["write", "large", "-"], &value('x')).success();
    let writing = AtomicUsize::new(3);
    at_once(6, |index| {
        if index < 3 {
            for round in 0..size(12, 100) {
                let letter = char::from(b'a' + u8::try_from((index * 8 + round) % 26).unwrap());
                board.fed(&["write", "large", "-"], &value(letter)).success();
            }
            writing.fetch_sub(1, Ordering::SeqCst);
            return;
        }
        let mut looks = 0;
        while writing.load(Ordering::SeqCst) > 0 || looks == 0 {
            let seen = match index % 3 {
                0 => board.json(&["snapshot"])["large"]["value"].clone(),
                1 => board.json(&["read", "large"])["value"].clone(),
                _ => board.json(&["list", "--long"])["items"][0]["value"].clone(),
            };
            let (first, second) = (seen["a"].as_str().unwrap(), seen["b"].as_str().unwrap());
            assert!(first == second && first.len() == 100_000, "a mix of two values");
            let letter = first.chars().next().unwrap();
            assert!(first.chars().all(|other| other == letter), "a mix of two values");
            looks += 1;
        }
    });
    board.assert_sound();
}

/// What a write costs in the WAL.
mod of_a_file {
    use super::*;

    #[test]
    fn five_thousand_entries_make_no_write_more_expensive() {
        if !can_trace("what a write costs") {
            return;
        }
        let board = TestBoard::new();
        let pages = |board: &TestBoard| {
            let (log, trace) = (board.beside("-wal"), board.path().join("trace"));
            let (log, output) = (log.to_str().unwrap(), trace.to_str().unwrap());
            let wrapper = ["strace", "-f", "-qq", "-o", output, "-P", log, "-e", "trace=pwrite64"];
            let ended = board.wrapped(&wrapper, &["write", "key:2500", "1"]);
            assert!(ended.status.success(), "{ended:?}");
            std::fs::read_to_string(&trace).unwrap().lines().count()
        };
        board.json(&["write", "key:2500", "0"]);
        let before = pages(&board);
        let part = |numbers: std::ops::Range<usize>| {
            let writes: Vec<_> = numbers
                .map(|number| json!({"write": {"key": format!("key:{number:04}"), "value": number}}))
                .collect();
            board.fed(&["txn", "--json"], &json!({"then": writes}).to_string()).success();
        };
        [0..2_500, 2_500..5_000].into_iter().for_each(part);
        board.json(&["write", "new", "1"]);
        assert_eq!(board.json(&["list"]).as_array().unwrap().len(), 5_001);
        let after = pages(&board);
        println!("swarm: a write makes {before} system calls on its log with one entry, {after} with 5,000");
        // A page more for each level that a tree has grown by, and each page is two calls.
        assert!(after <= before + 24, "{before} before, {after} after");
        board.assert_sound();
    }
}
