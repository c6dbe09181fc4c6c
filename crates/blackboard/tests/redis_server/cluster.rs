//! A cluster of three: a board is in one slot, and every node leads to it.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use testkit::redis::RedisServer;
use testkit::redis_cluster::start_cluster;
use testkit::wait_until;

use crate::{open, value, write};

#[test]
fn board_works_through_every_node_of_a_cluster() {
    testkit::limit_test();
    let Some(nodes) = start_cluster() else { return };
    for (number, name) in ["a", "b", "team", "default"].into_iter().enumerate() {
        for (count, node) in nodes.iter().enumerate() {
            let board = open(&format!("redis://127.0.0.1:{}?board={name}", node.port()));
            let expected = i64::try_from(number * 10 + count).unwrap();
            write(&board, "x", expected).unwrap();
            assert_eq!(value(&board, "x"), Some(expected));
            board.wait(board.revision().unwrap().previous(), std::time::Duration::from_secs(30)).unwrap();
        }
    }
}

/// The reply to a command, without its frame.
fn line(node: &RedisServer, command: &[&str]) -> String {
    let reply = node.command(command);
    let mut lines = reply.lines();
    let first = lines.next().unwrap();
    match first.split_at(1) {
        ("$", _) => lines.next().unwrap().to_owned(),
        (_, rest) => rest.to_owned(),
    }
}

/// Moves the slot of a board to another server, as `redis-cli --cluster reshard` does.
fn move_board(board: &str, from: &RedisServer, to: &RedisServer, all: &[RedisServer]) {
    let slot = line(from, &["CLUSTER", "KEYSLOT", &format!("bb:{{{board}}}:rows")]);
    let (of_from, of_to) = (line(from, &["CLUSTER", "MYID"]), line(to, &["CLUSTER", "MYID"]));
    let ok = |node: &RedisServer, command: &[&str]| assert_eq!(line(node, command), "OK", "{command:?}");
    ok(to, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &of_from]);
    ok(from, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &of_to]);
    for key in ["log", "index", "rows"] {
        let (port, key) = (to.port().to_string(), format!("bb:{{{board}}}:{key}"));
        ok(from, &["MIGRATE", "127.0.0.1", &port, &key, "0", "20000"]);
    }
    for node in [to, from].into_iter().chain(all) {
        ok(node, &["CLUSTER", "SETSLOT", &slot, "NODE", &of_to]);
    }
}

#[test]
fn board_whose_slot_moves_under_load_loses_nothing() {
    testkit::limit_test();
    let Some(nodes) = start_cluster() else { return };
    let slot: usize = line(&nodes[0], &["CLUSTER", "KEYSLOT", "bb:{a}:rows"]).parse().unwrap();
    let owner = slot * nodes.len() / 16_384;
    let url = format!("redis://127.0.0.1:{}?board=a", nodes[0].port());
    let (stop, acknowledged) = (AtomicBool::new(false), AtomicI64::new(0));
    open(&url);
    let written: i64 = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let (board, mut count) = (open(&url), 0);
                    while !stop.load(Ordering::Relaxed) {
                        board.scope("team").increment("x", 1).unwrap();
                        acknowledged.fetch_add(1, Ordering::Relaxed);
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        for round in 0..4 {
            let before = acknowledged.load(Ordering::Relaxed);
            wait_until("writers that continue", || {
                (acknowledged.load(Ordering::Relaxed) > before + 20).then_some(())
            });
            let (from, to) = (&nodes[(owner + round) % 3], &nodes[(owner + round + 1) % 3]);
            move_board("a", from, to, &nodes);
        }
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    let board = open(&url);
    assert_eq!(value(&board, "x"), Some(written));
    assert_eq!(i64::try_from(crate::log(&board).len()).unwrap(), written, "one event each");
}
