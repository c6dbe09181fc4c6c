//! A cluster of three: a board is in one slot, and every node leads to it.

use std::time::Duration;

use testkit::redis::RedisServer;
use testkit::wait_until;

use crate::{open, value, write};

/// The number of slots of a cluster.
const SLOTS: usize = 16_384;

fn start() -> Option<Vec<RedisServer>> {
    let nodes: Vec<_> = (0..3)
        .map(|_| {
            RedisServer::start_with_port(&[("cluster-enabled", "yes"), ("cluster-node-timeout", "5000")])
        })
        .collect::<Option<_>>()?;
    for (number, node) in nodes.iter().enumerate() {
        let (from, to) = (number * SLOTS / 3, (number + 1) * SLOTS / 3 - 1);
        assert_eq!(
            node.command(&["CLUSTER", "ADDSLOTSRANGE", &from.to_string(), &to.to_string()]),
            "+OK\r\n"
        );
        node.command(&["CLUSTER", "MEET", "127.0.0.1", &nodes[0].port().to_string()]);
    }
    wait_until("a cluster that works", || {
        let is_ready = |node: &RedisServer| {
            let info = node.command(&["CLUSTER", "INFO"]);
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
        };
        nodes.iter().all(is_ready).then_some(())
    });
    Some(nodes)
}

#[test]
fn board_works_through_every_node_of_a_cluster() {
    let Some(nodes) = start() else { return };
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

/// The id of a node.
fn id(node: &RedisServer) -> String {
    let reply = node.command(&["CLUSTER", "MYID"]);
    reply.lines().nth(1).unwrap().to_owned()
}

#[test]
fn board_can_be_used_while_the_cluster_moves_it() {
    const KEYS: [&str; 3] = ["bb:{a}:rows", "bb:{a}:index", "bb:{a}:log"];
    let Some(nodes) = start() else { return };
    let slot = nodes[0].command(&["CLUSTER", "KEYSLOT", KEYS[0]]);
    let slot = slot.trim().trim_start_matches(':').to_owned();
    let url = |node: &RedisServer| format!("redis://127.0.0.1:{}?board=a", node.port());
    let board = open(&url(&nodes[0]));
    write(&board, "x", 0).unwrap();
    let owner = nodes.iter().position(|node| node.command(&["EXISTS", KEYS[0]]) == ":1\r\n").unwrap();
    let (source, target) = (&nodes[owner], &nodes[(owner + 1) % 3]);
    let setslot = |node: &RedisServer, state: &str, other: &RedisServer| {
        assert_eq!(node.command(&["CLUSTER", "SETSLOT", &slot, state, &id(other)]), "+OK\r\n");
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
    let writing = {
        let board = board.clone();
        std::thread::spawn(move || write(&board, "x", 2))
    };
    migrate(&KEYS[1..]);
    writing.join().unwrap().unwrap();
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
