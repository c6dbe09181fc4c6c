//! A cluster of three: a board is in one slot, and every node leads to it.

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
