//! Many processes that write into a scope with a limit: it never has more entries than that.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::crowd::at_once;
use crate::scale::size;
use crate::test_board::TestBoard;

testkit::on_each_engine![sixteen_processes_never_exceed_the_limit_of_a_scope,];

const PROCESSES: usize = 16;
const LIMIT: usize = 100;
const LEASED: usize = 3;

/// How many keys one command writes.
const BATCH: usize = 4;

fn sixteen_processes_never_exceed_the_limit_of_a_scope() {
    let board = TestBoard::new();
    let session =
        board.json(&["agent", "register", "--name", "Ivy"])["session_id"].as_str().unwrap().to_owned();
    board.json(&["scope", "create", "cache", "--max-entries", &LIMIT.to_string()]);
    let leased: BTreeSet<_> = (0..LEASED).map(|number| format!("leased-{number}")).collect();
    for key in &leased {
        board.json(&["write", key, "1", "--scope", "cache", "--lease", "--session", &session]);
    }
    let times = size(4, 100);
    at_once(PROCESSES, |process| {
        for time in 0..times {
            let write = |part| {
                let key = format!("k-{process}-{time}-{part}");
                json!({"write": {"scope": "cache", "key": key, "value": 1}})
            };
            let writes: Vec<_> = (0..BATCH).map(write).collect();
            let answer = board.fed(&["txn", "--json"], &json!({"then": writes}).to_string());
            assert_eq!(answer.code, 0, "{answer:?}");
        }
    });
    let written = PROCESSES * times * BATCH + LEASED;
    let (there, evicted) = replayed(&board);
    assert_eq!(evicted, written - LIMIT, "one event for each eviction");
    assert_eq!((there.len(), leased.is_subset(&there)), (LIMIT, true));
    let keys = board.json(&["list", "--scope", "cache"]);
    let keys: BTreeSet<_> =
        keys.as_array().unwrap().iter().map(|key| key.as_str().unwrap().to_owned()).collect();
    assert_eq!(keys, there);
    assert_eq!(board.json(&["scope", "show", "cache"])["entries"], LIMIT);
    board.assert_sound();
}

/// The keys of the scope after all events, and how many were evicted. After no event there are more than the limit.
fn replayed(board: &TestBoard) -> (BTreeSet<String>, usize) {
    let events = board.json(&["observe", "--after", "0", "--limit", "1000000"]);
    let (mut there, mut evicted) = (BTreeSet::new(), 0);
    for event in events["items"].as_array().unwrap() {
        let key = event["target_id"].as_str().unwrap_or_default().to_owned();
        match event["event_type"].as_str() {
            Some("entry_written") => assert!(there.insert(key), "{event}"),
            Some("entry_evicted") => {
                assert!(there.remove(&key), "{event}");
                evicted += 1;
            }
            Some("entry_deleted" | "entry_expired") => panic!("{event}"),
            _ => {}
        }
        assert!(there.len() <= LIMIT, "{}: {event}", there.len());
    }
    assert_ne!(events["items"], Value::Null);
    (there, evicted)
}
