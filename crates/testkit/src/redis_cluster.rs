//! A cluster of three servers. A board is in one slot, so that one of the three has it.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::redis::{RedisServer, command, free_port, skip_without_redis, start_for_all_tests};
use crate::wait_until;

/// The number of slots of a cluster.
const SLOTS: usize = 16_384;

/// The number of servers.
const NODES: usize = 3;

const SETTINGS: [(&str, &str); 2] = [("cluster-enabled", "yes"), ("cluster-node-timeout", "15000")];

/// One server of a cluster: its port, and its socket.
struct Node {
    port: u16,
    socket: PathBuf,
}

/// A cluster of one test; `None` if this machine has no server.
#[track_caller]
pub fn start_cluster() -> Option<Vec<RedisServer>> {
    let servers: Vec<_> =
        (0..NODES).map(|_| RedisServer::start_with_port(&SETTINGS)).collect::<Option<_>>()?;
    let nodes = servers.iter().map(|server| Node { port: server.port(), socket: server.socket() });
    join(&nodes.collect::<Vec<_>>());
    Some(servers)
}

/// The address of a new board on the cluster that the tests of this process share, by one of its servers, which need not
/// have the board. `None` if this machine has no server.
#[track_caller]
pub fn shared_cluster() -> Option<String> {
    static NODES_OF_ALL: OnceLock<Vec<Node>> = OnceLock::new();
    static BOARDS: AtomicUsize = AtomicUsize::new(0);
    if skip_without_redis() {
        return None;
    }
    let nodes = NODES_OF_ALL.get_or_init(|| {
        let nodes: Vec<_> = (0..NODES).map(|_| start_node()).collect();
        join(&nodes);
        nodes
    });
    let board = BOARDS.fetch_add(1, Ordering::Relaxed);
    Some(format!("redis://127.0.0.1:{}?board=test-{board}", nodes[board % NODES].port))
}

fn start_node() -> Node {
    let port = free_port();
    let text = port.to_string();
    let own = [("port", text.as_str()), ("bind", "127.0.0.1")];
    let settings = own.iter().chain(&SETTINGS);
    let settings = settings.flat_map(|(name, value)| [format!("--{name}"), (*value).to_owned()]);
    Node { port, socket: start_for_all_tests(settings.collect()) }
}

/// Gives each server a third of the slots, and waits until all know it.
fn join(nodes: &[Node]) {
    for (number, node) in nodes.iter().enumerate() {
        let (from, to) = (number * SLOTS / nodes.len(), (number + 1) * SLOTS / nodes.len() - 1);
        let tell = |arguments: &[&str]| command(&node.socket, arguments).unwrap();
        let (from, to) = (from.to_string(), to.to_string());
        assert_eq!(tell(&["CLUSTER", "ADDSLOTSRANGE", &from, &to]), "+OK\r\n");
        tell(&["CLUSTER", "MEET", "127.0.0.1", &nodes[0].port.to_string()]);
    }
    wait_until("a cluster whose servers know each other", || {
        let is_ready = |node: &Node| {
            let info = command(&node.socket, &["CLUSTER", "INFO"]).unwrap();
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
        };
        nodes.iter().all(is_ready).then_some(())
    });
}
