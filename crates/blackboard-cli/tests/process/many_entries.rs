//! A board with very many entries, and the largest of them.

use blackboard::entry::{Value as EntryValue, Write};
use serde_json::{Value, json};

use crate::crowd::Ended;
use crate::scale::size;
use crate::test_board::TestBoard;

testkit::on_each_engine![
    memory_follows_what_is_shown_and_not_what_is_stored,
    paging_shows_each_entry_once,
    the_largest_value_is_stored_and_one_byte_more_is_refused,
];

/// The length of each value.
const VALUE: usize = 4 * 1024;

/// The largest value that is accepted.
const LARGEST: usize = 1024 * 1024;

fn crowded_board(count: usize) -> TestBoard {
    let board = TestBoard::new();
    let library = board.library();
    let value = EntryValue::of(&"x".repeat(VALUE)).unwrap();
    for start in (0..count).step_by(1_000) {
        let writes: Vec<_> = (start..count.min(start + 1_000))
            .map(|number| Write {
                tags: vec![format!("tag-{}", number % 10)],
                ..Write::new(&format!("key:{number:06}"), value.clone())
            })
            .collect();
        library.scope("default").write_batch(&writes).unwrap();
    }
    board
}

/// Runs the program with no more memory than this for its data.
fn within(board: &TestBoard, kilobytes: usize, call: &[&str]) -> Ended {
    let limit = format!("ulimit -d {kilobytes}; exec \"$@\"");
    board.wrapped(&["sh", "-c", &limit, "sh"], call)
}

fn memory_follows_what_is_shown_and_not_what_is_stored() {
    let count = size(4_000, 100_000);
    let board = crowded_board(count);
    let stored = count * VALUE / 1024;
    // Enough for all keys, and far too little for all values.
    let allowed = 10_000 + count * 400 / 1024;
    assert!(allowed < stored * 3 / 4, "{allowed} of {stored} KB");
    let answer = |call: &[&str]| -> Value {
        let ended = within(&board, allowed, call);
        assert_eq!(
            (ended.status.code(), ended.stderr.as_str()),
            (Some(0), ""),
            "{call:?}: {:?}",
            ended.status
        );
        serde_json::from_str(&ended.stdout).unwrap()
    };
    assert_eq!(answer(&["list", "--json"]).as_array().unwrap().len(), count);
    assert_eq!(answer(&["list", "--prefix", "key:0001", "--json"]).as_array().unwrap().len(), 100);
    assert_eq!(answer(&["query", "key:*", "--limit", "50", "--json"])["count"], 50);
    assert_eq!(answer(&["query", "--tag", "tag-3", "--limit", "50", "--json"])["count"], 50);
    assert_eq!(answer(&["write", "new", "1", "--json"])["version"], 1);
    // The limit works: all values at once do not fit.
    assert!(!within(&board, allowed, &["snapshot", "--json"]).status.success());
    let snapshot = board.json(&["snapshot"]);
    assert_eq!(snapshot.as_object().unwrap().len(), count + 1);
    println!("many-entries: {count} entries of {stored} KB listed within {allowed} KB");
}

fn paging_shows_each_entry_once() {
    let count = size(1_000, 20_000);
    let board = crowded_board(count);
    let mut seen = Vec::new();
    let mut after = None::<String>;
    loop {
        let mut call = vec!["query", "key:*", "--limit", "300"];
        call.extend(after.as_deref().into_iter().flat_map(|after| ["--after", after]));
        let page = board.json(&call);
        seen.extend(page["items"].as_array().unwrap().iter().map(|entry| entry["key"].clone()));
        match &page["next"] {
            Value::Null => break,
            next => after = Some(next.as_str().map_or_else(|| next.to_string(), str::to_owned)),
        }
    }
    seen.sort_by_key(Value::to_string);
    let expected: Vec<_> = (0..count).map(|number| json!(format!("key:{number:06}"))).collect();
    assert_eq!(seen, expected);
}

fn the_largest_value_is_stored_and_one_byte_more_is_refused() {
    let board = TestBoard::new();
    let largest = format!("\"{}\"", "x".repeat(LARGEST - 2));
    board.fed(&["write", "large", "-", "--json"], &largest).success();
    assert_eq!(board.run(["read", "large", "--value"]).success().stdout, format!("{largest}\n"));
    let before = board.log();
    let larger = format!("\"x{}", &largest[1..]);
    for call in [&["write", "large", "-", "--json"][..], &["write", "new", "-", "--json"]] {
        let answer = board.fed(call, &larger);
        let refusal = answer.json();
        assert_eq!((answer.code, &refusal["code"]), (2, &json!("invalid_value")), "{:?}", answer.code);
        assert_eq!(refusal["allowed_bytes"], LARGEST);
    }
    // An append that exceeds it is refused too.
    let half = format!("\"{}\"", "x".repeat(LARGEST / 2));
    board.fed(&["append", "list", "-"], &half).success();
    let answer = board.fed(&["append", "list", "-", "--json"], &half);
    assert_eq!((answer.code, &answer.json()["code"]), (2, &json!("invalid_value")));
    assert_eq!(board.log().len(), before.len() + 1, "nothing was changed");
    board.assert_sound();
}
