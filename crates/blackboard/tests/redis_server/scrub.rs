//! What a purge leaves in the files of a server.

use std::fs;
use std::path::Path;

use blackboard::Board;
use blackboard::entry::{Purged, Value, Write};
use testkit::redis::RedisServer;
use testkit::wait_until;

use crate::open;

const SECRET: &str = "hunter2-hunter2-hunter2";

fn purge(board: &Board) -> Purged {
    board.scope("team").write(&Write::new("token", Value::of(SECRET).unwrap())).unwrap();
    board.scope("team").write(&Write::new("token", Value::of("another").unwrap())).unwrap();
    board.scope("team").purge("token").unwrap()
}

/// The files below a directory that contain the secret.
fn files_with_secret(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with_secret(&path));
        } else if let Ok(content) = fs::read(&path)
            && content.windows(SECRET.len()).any(|part| part == SECRET.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn purge_rewrites_the_append_only_file_and_the_snapshot() {
    for settings in [
        &[("appendonly", "yes"), ("appendfsync", "always")][..],
        &[("appendonly", "yes"), ("rdbcompression", "no"), ("save", "3600 1")],
        &[("rdbcompression", "no"), ("save", "3600 1")],
        &[],
    ] {
        let Some(server) = RedisServer::start(settings) else { return };
        let board = open(&server.url("a"));
        board.scope("team").write(&Write::new("token", Value::of(SECRET).unwrap())).unwrap();
        if settings.iter().any(|(name, _)| *name == "save") {
            server.command(&["SAVE"]);
        }
        assert_eq!(files_with_secret(server.directory()).is_empty(), settings.is_empty(), "{settings:?}");
        let purged = purge(&board);
        assert!(purged.scrubbed, "{settings:?}: {purged:?}");
        // The server deletes the old file in another thread.
        wait_until("files without the secret", || {
            files_with_secret(server.directory()).is_empty().then_some(())
        });
        assert_eq!(board.scope("team").read("token").unwrap(), None);
    }
}

#[test]
fn purge_reports_what_remains_in_files_that_this_user_may_not_rewrite() {
    let Some(server) = RedisServer::start(&[("appendonly", "yes")]) else { return };
    let user = ["ACL", "SETUSER", "ivy", "on", ">secret", "~bb:{a}:*", "+@all", "-bgrewriteaof", "-config"];
    assert_eq!(server.command(&user), "+OK\r\n");
    let board = open(&server.url("a").replacen("://", "://ivy:secret@", 1));
    let purged = purge(&board);
    assert!(!purged.scrubbed);
    assert_eq!(
        purged.remains,
        ["the server does not let this user rewrite the append-only file (BGREWRITEAOF)"],
        "the settings are hidden, so the snapshot was written again"
    );
    assert!(!files_with_secret(server.directory()).is_empty());
    // A user who may do it erases the rest, without another event.
    let again = open(&server.url("a")).scope("team").purge("token").unwrap();
    assert_eq!((again.scrubbed, again.revision), (true, purged.revision));
    wait_until("files without the secret", || files_with_secret(server.directory()).is_empty().then_some(()));
}

#[test]
fn purge_waits_for_another_file_that_the_server_is_writing() {
    let Some(server) = RedisServer::start(&[("save", "3600 1")]) else { return };
    let board = open(&server.url("a"));
    board.scope("team").write(&Write::new("other", Value::of(&1).unwrap())).unwrap();
    // Each key takes a while, and the server writes one file at a time.
    assert_eq!(server.command(&["CONFIG", "SET", "rdb-key-save-delay", "300000"]), "+OK\r\n");
    assert!(server.command(&["BGREWRITEAOF"]).contains("started"));
    assert!(server.command(&["BGSAVE"]).contains("child process is active"), "the snapshot has to wait");
    let purged = purge(&board);
    assert!(purged.scrubbed, "{purged:?}");
}

#[test]
fn purges_at_the_same_time_share_what_the_server_writes() {
    const PURGES: usize = 8;
    let Some(server) = RedisServer::start(&[("appendonly", "yes")]) else { return };
    let board = open(&server.url("a"));
    let scope = board.scope("team");
    for number in 0..PURGES {
        scope.write(&Write::new(&format!("token:{number}"), Value::of(SECRET).unwrap())).unwrap();
    }
    // One that began before the purges is no help, and holds up all of them.
    assert_eq!(server.command(&["CONFIG", "SET", "rdb-key-save-delay", "1000000"]), "+OK\r\n");
    assert!(server.command(&["BGREWRITEAOF"]).contains("started"));
    let url = &*server.url("a");
    std::thread::scope(|threads| {
        let purges: Vec<_> = (0..PURGES)
            .map(|number| {
                threads.spawn(move || open(url).scope("team").purge(&format!("token:{number}")).unwrap())
            })
            .collect();
        for purge in purges {
            let result = purge.join().unwrap();
            assert!(result.scrubbed, "{result:?}");
        }
    });
    wait_until("files without the secret", || files_with_secret(server.directory()).is_empty().then_some(()));
    let info = server.command(&["INFO", "persistence"]);
    let count = info.lines().find_map(|line| line.strip_prefix("aof_rewrites:")).unwrap();
    let count: usize = count.trim().parse().unwrap();
    assert!((2..=PURGES).contains(&count), "{count} rewrites for {PURGES} purges after the first");
}

#[test]
fn purge_reports_a_command_that_the_server_does_not_have() {
    let directory = testkit::tempdir().unwrap();
    let file = directory.path().join("redis.conf");
    fs::write(&file, "rename-command BGREWRITEAOF \"\"\n").unwrap();
    let Some(server) = RedisServer::start_with_file(&file, &[("appendonly", "yes")]) else { return };
    let purged = purge(&open(&server.url("a")));
    let [remains] = &purged.remains[..] else { panic!("{purged:?}") };
    assert!(remains.contains("unknown command") && !remains.contains("user"), "{remains}");
}

#[test]
fn purge_reports_the_files_of_replicas() {
    let Some(server) = RedisServer::start_with_port(&[]) else { return };
    let Some(replica) = RedisServer::start_with_port(&[]) else { return };
    replica.command(&["REPLICAOF", "127.0.0.1", &server.port().to_string()]);
    wait_until("a connected replica", || {
        server.command(&["INFO", "replication"]).contains("connected_slaves:1").then_some(())
    });
    let purged = purge(&open(&server.url("a")));
    assert_eq!(purged.remains, ["a replica of the server has files of its own"]);
}
