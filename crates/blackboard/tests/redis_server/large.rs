//! Large values and many keys.

use std::sync::Arc;
use std::time::{Duration, Instant};

use blackboard::clock::SystemClock;
use blackboard::entry::{Value, Write};
use blackboard::store::LoadingBoard as _;
use blackboard::store::redis::Redis;
use blackboard::store::sqlite::{Sqlite, SqliteOptions};
use blackboard::{Board, Settings};
use testkit::redis::RedisServer;

use crate::{open, patient};

/// A server ends a connection for which more than 16 MB wait, as a client with little memory would.
const SMALL_REPLIES: [(&str, &str); 1] = [("client-output-buffer-limit", "normal 16mb 0 0")];

#[test]
fn board_with_large_values_is_copied_in_parts_of_a_limited_size() {
    let Some(server) = RedisServer::start(&SMALL_REPLIES) else { return };
    let directory = testkit::tempdir().unwrap();
    let settings = Settings { max_value_bytes: 4 << 20, ..Settings::default() };
    let board = open(&server.url("a")).with_settings(settings);
    let value = |number: usize| Value::of(&format!("{number}").repeat(3 << 20)).unwrap();
    for number in 0..9 {
        board.scope("team").write(&Write::new(&format!("large-{number}"), value(number))).unwrap();
        board
            .scope("team")
            .write(&Write::new(&format!("small-{number}"), Value::of(&number).unwrap()))
            .unwrap();
    }
    let store = Redis::open(server.url("a").parse().unwrap(), &patient()).unwrap();
    let file = directory.path().join("copy.db");
    let (clock, options) = (Arc::new(SystemClock), SqliteOptions::default());
    let mut target = Sqlite::create_to_load(&file, clock, &options, false).unwrap();
    blackboard::copy::copy(&store, &mut target, &mut |_| {}).unwrap();
    target.open().unwrap();
    let copy = Board::open(&file).unwrap();
    assert_eq!(copy.scope("team").read("large-7").unwrap(), Some(value(7)));
    assert_eq!(copy.scope("team").read("small-7").unwrap(), Some(Value::of(&7).unwrap()));
    // And back, which also compares the parts of both.
    let source = Sqlite::open(&file, Arc::new(SystemClock), &options).unwrap();
    let mut target = Redis::create_to_load(server.url("b").parse().unwrap(), &patient(), false).unwrap();
    blackboard::copy::copy(&source, &mut target, &mut |_| {}).unwrap();
}

#[test]
fn time_to_read_many_keys_grows_with_their_number_only() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let board = open(&server.url("a"));
    board.scope("team").write(&Write::new("key-7", Value::of(&7).unwrap())).unwrap();
    let keys: Vec<String> = (0..40_000).map(|number| format!("key-{number}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let begun = Instant::now();
    assert_eq!(board.scope("team").read_batch(&keys).unwrap().len(), 1);
    // Without an index of them, this takes a minute.
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn list_of_many_rows_is_read_in_parts_of_a_limited_size() {
    // The values of all entries are 6 MB.
    let Some(server) = RedisServer::start(&[("client-output-buffer-limit", "normal 4mb 0 0")]) else {
        return;
    };
    let board = open(&server.url("a"));
    let value = Value::of(&"v".repeat(500)).unwrap();
    for batch in 0..12 {
        let keys: Vec<String> = (0..1000).map(|number| format!("key-{batch}-{number}")).collect();
        let writes: Vec<Write> = keys.iter().map(|key| Write::new(key, value.clone())).collect();
        board.scope("team").write_batch(&writes).unwrap();
    }
    assert_eq!(board.export().unwrap().entries.len(), 12_000);
}
