//! An expired entry is gone for all readers at once, and one event reports it.

use serde_json::json;

use crate::crowd::{at_once, wait_until};
use crate::scale::{progress, size};
use crate::test_board::TestBoard;

testkit::on_each_engine![
    entry_with_a_short_ttl_expires,
    expired_key_is_absent_for_a_writer_and_its_versions_continue,
    one_of_many_writers_gets_an_expired_key,
    one_event_reports_an_expiration_with_many_concurrent_readers,
];

/// A board with one key that has expired, before any sweep, and one that stays.
fn expired() -> TestBoard {
    let board = TestBoard::new();
    board.json(&["write", "fact", "1", "--tag", "x"]);
    board.json(&["write", "signal", "1", "--tag", "x", "--ttl", "1h"]);
    board.let_time_pass();
    board
}

fn entry_with_a_short_ttl_expires() {
    let board = TestBoard::new();
    board.json(&["write", "signal", "1", "--ttl", "1ms"]);
    // The time of the machine, which passes by itself.
    wait_until("it has expired", || (board.run(["read", "signal"]).code == 3).then_some(()));
    assert_eq!(board.json(&["list"]), json!([]));
    board.run(["sweep"]).success();
    assert_eq!(board.count_of("entry_expired"), 1);
    board.assert_sound();
}

fn expired_key_is_absent_for_a_writer_and_its_versions_continue() {
    let board = expired();
    let written = board.json(&["write", "signal", "2", "--if-absent"]);
    assert_eq!((&written["created"], &written["version"]), (&json!(true), &json!(2)));
    let told: Vec<_> = board.log().into_iter().skip(2).map(|line| line.event_type).collect();
    assert_eq!(told, ["entry_expired", "entry_written"]);
    assert_eq!(board.json(&["read", "signal"])["value"], 2);
    board.assert_sound();
}

fn one_of_many_writers_gets_an_expired_key() {
    for round in 0..size(3, 50) {
        let board = expired();
        let answers =
            at_once(16, |index| board.run(["write", "signal", &index.to_string(), "--if-absent", "--json"]));
        assert_eq!(answers.iter().filter(|answer| answer.code == 0).count(), 1, "round {round}");
        assert_eq!(answers.iter().filter(|answer| answer.code == 4).count(), 15, "round {round}");
        assert_eq!((board.count_of("entry_expired"), board.count_of("entry_written")), (1, 3));
        board.assert_sound();
    }
}

fn one_event_reports_an_expiration_with_many_concurrent_readers() {
    let rounds = size(5, 200);
    let board = TestBoard::new();
    board.json(&["write", "fact", "1"]);
    for round in 1..=rounds {
        board.json(&["write", "signal", "1", "--ttl", "1h"]);
        board.let_time_pass();
        let lists = at_once(20, |index| match index % 4 {
            0 => board.json(&["sweep"]),
            _ => board.json(&["list"]),
        });
        for (index, list) in lists.iter().enumerate().filter(|(index, _)| index % 4 != 0) {
            assert_eq!(*list, json!(["fact"]), "process {index}");
        }
        let reported: u64 = lists.iter().filter_map(|answer| answer["entriesExpired"].as_u64()).sum();
        assert!(reported <= 1, "{reported} sweeps say that they removed it");
        assert_eq!(board.count_of("entry_expired"), round);
        progress("expiry, rounds", round, rounds);
    }
    board.assert_sound();
}

/// What needs the lock of writers, so that no process can sweep.
mod of_a_file {
    use super::*;

    #[test]
    fn an_expired_key_is_invisible_before_any_sweep() {
        let board = expired();
        // While this lock is held, no process can sweep.
        let holder = board.sql();
        holder.execute_batch("BEGIN IMMEDIATE").unwrap();
        for options in [&[][..], &["--json"], &["--value"]] {
            let answer = board.run(["read", "signal"].iter().chain(options));
            assert_eq!((answer.code, answer.stdout.as_str()), (3, "null\n"), "{answer:?}");
        }
        assert_eq!(board.json(&["list"]), json!(["fact"]));
        assert_eq!(board.json(&["list", "--tag", "x"]), json!(["fact"]));
        assert_eq!(board.json(&["list", "--prefix", "s"]), json!([]));
        assert_eq!(board.json(&["query", "*"])["count"], 1);
        assert_eq!(board.json(&["query", "--tag", "x"])["count"], 1);
        assert_eq!(board.json(&["snapshot"]).as_object().unwrap().len(), 1);
        assert_eq!(board.refusal(6, &["wait", "signal", "--timeout", "10ms"])["code"], "timed_out");
        holder.execute_batch("ROLLBACK").unwrap();
        assert_eq!(board.count_of("entry_expired"), 0, "no process could record it");
        board.json(&["list"]);
        assert_eq!(board.count_of("entry_expired"), 1);
        board.assert_sound();
    }
}
