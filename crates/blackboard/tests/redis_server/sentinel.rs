//! Failovers: revisions are never assigned twice, although the last ones may be lost.

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};

use blackboard::Revision;
use blackboard::store::redis::{Address, Redis};
use testkit::redis::{RedisServer, redis_program};
use testkit::wait_until;

use crate::{open, value, write};

/// Waits until a replica has everything of its primary.
fn wait_for_sync(primary: &RedisServer, replica: &RedisServer) {
    let offset = |server: &RedisServer| {
        let info = server.command(&["INFO", "replication"]);
        let is_up = !info.contains("role:slave") || info.contains("master_link_status:up");
        let line = info.lines().find_map(|line| line.strip_prefix("master_repl_offset:").map(str::to_owned));
        line.filter(|_| is_up)
    };
    wait_until("a replica in step", || {
        let of_primary = offset(primary)?;
        (offset(replica)? == of_primary).then_some(())
    });
}

fn replica_of(primary: &RedisServer) -> Option<RedisServer> {
    let replica = RedisServer::start_with_port(&[])?;
    replica.command(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
    Some(replica)
}

/// The second of the server's clock.
fn second(server: &RedisServer) -> u64 {
    let reply = server.command(&["TIME"]);
    reply.lines().nth(2).unwrap().parse().unwrap()
}

#[test]
fn two_failovers_with_the_second_replica_behind_assign_no_revision_twice() {
    let Some(mut first) = RedisServer::start_with_port(&[]) else { return };
    let (Some(mut second_server), Some(third)) = (replica_of(&first), replica_of(&first)) else { return };
    let commit = |server: &RedisServer, count: i64| -> BTreeSet<Revision> {
        let board = open(&server.url("a"));
        (0..count).map(|number| write(&board, "x", number).unwrap()).collect()
    };
    let of_first = commit(&first, 20);
    for replica in [&second_server, &third] {
        wait_for_sync(&first, replica);
    }
    // The third server stops following here: it never sees what the second one commits.
    third.command(&["REPLICAOF", "NO", "ONE"]);
    first.kill();
    second_server.command(&["REPLICAOF", "NO", "ONE"]);
    let of_second = commit(&second_server, 50);
    // A failover takes longer than a second: sentinels wait at least that long.
    let began = second(&second_server);
    wait_until("the next second of the server", || (second(&second_server) > began + 1).then_some(()));
    second_server.kill();
    let of_third = commit(&third, 50);
    assert!(of_second.is_disjoint(&of_third), "{of_second:?} {of_third:?}");
    assert!(of_first.last() < of_second.first() && of_second.last() < of_third.first());
}

#[test]
fn promoted_replica_without_data_has_no_board_and_gets_none() {
    let Some(mut first) = RedisServer::start_with_port(&[]) else { return };
    let Some(empty) = RedisServer::start_with_port(&[]) else { return };
    let board = open(&format!("redis://127.0.0.1:{}?board=a", first.port()));
    write(&board, "x", 1).unwrap();
    let port = first.port();
    first.kill();
    drop(first);
    drop(empty);
    // Another process at the same address, without the data.
    let other = RedisServer::start(&[("port", &port.to_string())]).unwrap();
    let error = write(&board, "x", 2).unwrap_err();
    assert_eq!(error.code(), blackboard::Code::BoardNotFound, "{error}");
    assert_eq!(other.command(&["DBSIZE"]), ":0\r\n");
}

#[test]
fn replica_is_not_used_as_a_primary() {
    let Some(first) = RedisServer::start_with_port(&[]) else { return };
    let Some(replica) = replica_of(&first) else { return };
    wait_for_sync(&first, &replica);
    let error = crate::try_open(&replica.url("a"), &crate::impatient()).err().unwrap();
    assert_eq!(error.code(), blackboard::Code::ServerUnavailable);
    assert!(error.to_string().contains("replica"), "{error}");
}

#[test]
fn commit_with_too_few_replicas_is_reported_as_unknown() {
    let Some(first) = RedisServer::start_with_port(&[]) else { return };
    let Some(replica) = replica_of(&first) else { return };
    wait_for_sync(&first, &replica);
    let board = |replicas: usize| open(&format!("{}&replicas={replicas}", first.url("a")));
    write(&board(1), "x", 1).unwrap();
    let error = write(&board(2), "x", 2).unwrap_err();
    assert_eq!(error.code(), blackboard::Code::OutcomeUnknown, "{error}");
}

struct Sentinel {
    _directory: tempfile::TempDir,
    child: Child,
    port: u16,
}

impl Sentinel {
    fn of(primary: &RedisServer) -> Sentinel {
        Sentinel::with(primary, "")
    }

    /// A sentinel with further settings.
    fn with(primary: &RedisServer, settings: &str) -> Sentinel {
        let (directory, port) = (testkit::tempdir().unwrap(), testkit::redis::free_port());
        let file = directory.path().join("sentinel.conf");
        let text = format!(
            "port {port}\nbind 127.0.0.1\ndir {}\nsentinel monitor main 127.0.0.1 {} 1\n\
             sentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 5000\n{settings}",
            directory.path().display(),
            primary.port()
        );
        std::fs::write(&file, text).unwrap();
        let command = redis_program().unwrap();
        let child = Command::new(command).arg(&file).arg("--sentinel").stdout(Stdio::null()).spawn().unwrap();
        Sentinel { _directory: directory, child, port }
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        testkit::process::wait_for(&mut self.child);
    }
}

#[test]
fn client_follows_a_failover_of_sentinels_and_loses_nothing_with_replicas() {
    let Some(mut first) = RedisServer::start_with_port(&[]) else { return };
    let Some(replica) = replica_of(&first) else { return };
    wait_for_sync(&first, &replica);
    let sentinel = Sentinel::of(&first);
    let url = format!("redis+sentinel://127.0.0.1:{}/main?board=a&replicas=1", sentinel.port);
    let board = open(&url);
    wait_until("a sentinel that knows the replica", || {
        let stream = std::net::TcpStream::connect(("127.0.0.1", sentinel.port)).ok()?;
        testkit::redis::ask(stream, &["SENTINEL", "replicas", "main"])
            .ok()?
            .contains("flags\r\n")
            .then_some(())
    });
    let revisions: Vec<_> = (0..20).map(|number| write(&board, "x", number).unwrap()).collect();
    let last = revisions[19];
    first.kill();
    // There is no replica any more, so that this commit cannot be acknowledged as safe.
    let without_replicas = open(&url.replace("&replicas=1", ""));
    let after = write(&without_replicas, "y", 1).unwrap();
    assert!(after.get() > last.get() + 1, "the new primary skips ids: {last} {after}");
    assert_eq!(value(&without_replicas, "x"), Some(19));
    assert_eq!(write(&board, "x", 20).unwrap_err().code(), blackboard::Code::OutcomeUnknown);
}

#[test]
fn sentinels_get_their_own_password_and_never_that_of_the_server() {
    let Some(server) = RedisServer::start_with_port(&[("requirepass", "s3rver")]) else { return };
    let own = "requirepass sent1nel\nsentinel auth-pass main s3rver\n";
    let (closed, open) = (Sentinel::with(&server, own), Sentinel::of(&server));
    let address = |sentinel: &Sentinel, password: Option<&str>| -> Address {
        let url = format!("redis+sentinel://:s3rver@127.0.0.1:{}/main?board=a", sentinel.port);
        url.parse::<Address>().unwrap().with_sentinel_password(password.map(str::to_owned))
    };
    let opened = |address: Address| Redis::open(address, &crate::impatient()).map(drop);
    // It listens when it is ready.
    for sentinel in [&closed, &open] {
        wait_until("a sentinel", || std::net::TcpStream::connect(("127.0.0.1", sentinel.port)).ok());
    }
    opened(address(&closed, Some("sent1nel"))).unwrap();
    opened(address(&open, None)).unwrap();
    for (sentinel, password) in [(&closed, None), (&closed, Some("wr0ng")), (&open, Some("sent1nel"))] {
        let error = opened(address(sentinel, password)).unwrap_err();
        assert_eq!(error.code(), blackboard::Code::AccessDenied, "{error}");
        let text = format!("{error} {error:?}");
        assert!(text.contains("sentinel"), "{text}");
        assert!(["s3rver", "sent1nel", "wr0ng"].iter().all(|secret| !text.contains(secret)), "{text}");
    }
}
