//! A cluster of three: a board is in one slot, and every node leads to it.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

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

#[test]
fn board_can_be_used_while_the_cluster_moves_it() {
    const KEYS: [&str; 3] = ["bb:{a}:rows", "bb:{a}:index", "bb:{a}:log"];
    testkit::limit_test();
    let Some(nodes) = start_cluster() else { return };
    let slot = nodes[0].command(&["CLUSTER", "KEYSLOT", KEYS[0]]);
    let slot = slot.trim().trim_start_matches(':').to_owned();
    let url = |node: &RedisServer| format!("redis://127.0.0.1:{}?board=a", node.port());
    let board = open(&url(&nodes[0]));
    write(&board, "x", 0).unwrap();
    let owner = nodes.iter().position(|node| node.command(&["EXISTS", KEYS[0]]) == ":1\r\n").unwrap();
    let (source, target) = (&nodes[owner], &nodes[(owner + 1) % 3]);
    let setslot = |node: &RedisServer, state: &str, other: &RedisServer| {
        assert_eq!(
            node.command(&["CLUSTER", "SETSLOT", &slot, state, &line(other, &["CLUSTER", "MYID"])]),
            "+OK\r\n"
        );
    };
    let migrate = |keys: &[&str]| {
        let port = target.port().to_string();
        let call = [&["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"], keys].concat();
        assert_eq!(source.command(&call), "+OK\r\n");
    };
    let seen = board.revision().unwrap();
    let waiting = {
        let board = board.clone();
        std::thread::spawn(move || board.wait(seen, Duration::from_mins(1)))
    };
    setslot(target, "IMPORTING", source);
    setslot(source, "MIGRATING", target);
    write(&board, "x", 1).unwrap();
    waiting.join().unwrap().unwrap();
    // One key has moved: a commit waits until the others have, too.
    migrate(&KEYS[..1]);
    let change = {
        let board = board.clone();
        std::thread::spawn(move || write(&board, "x", 2))
    };
    migrate(&KEYS[1..]);
    change.join().unwrap().unwrap();
    // All keys have moved, and the slot still belongs to the source.
    for (number, node) in (3..).zip(&nodes) {
        let other = open(&url(node));
        write(&other, "x", number).unwrap();
        assert_eq!((value(&other, "x"), value(&board, "x")), (Some(number), Some(number)));
    }
    assert_eq!(source.command(&["EXISTS", KEYS[0]]).split(' ').next(), Some("-ASK"));
    let seen = board.revision().unwrap();
    let waiting = {
        let board = board.clone();
        std::thread::spawn(move || board.wait(seen, Duration::from_mins(1)))
    };
    write(&board, "x", 6).unwrap();
    assert!(waiting.join().unwrap().unwrap() > seen);
    for node in [target, source] {
        setslot(node, "NODE", target);
    }
    write(&board, "x", 7).unwrap();
    assert_eq!(value(&open(&url(source)), "x"), Some(7));
    assert_eq!(crate::log(&board).len(), 8, "nothing was lost or done twice");
}
