//! Failovers: revisions are never assigned twice, although the last ones may be lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use blackboard::agent::Register;
use blackboard::entry::{Actor, Value, Write};
use blackboard::event::Since;
use blackboard::store::Store as _;
use blackboard::store::redis::{Address, Redis, RedisOptions};
use blackboard::work::{Claim, Complete, Create};
use blackboard::{Board, Code, Hint, Revision};
use testkit::redis::RedisServer;
use testkit::redis_sentinel::{
    Sentinel, SentinelGroup, follow, promote, start_replica, start_server, wait_for_sync,
};
use testkit::{scale, wait_until};

use crate::{log, open, patient, try_open, value, write};

/// How many ids the first commit of another server skips at least.
const SKIP: i64 = 32_768;

fn ids(board: &Board) -> Vec<Revision> {
    log(board).iter().map(|event| event.id).collect()
}

#[test]
fn two_failovers_with_the_second_replica_behind_assign_no_revision_twice() {
    testkit::limit_test();
    let Some(mut first) = start_server() else { return };
    let (Some(mut second), Some(third)) = (start_replica(&first), start_replica(&first)) else { return };
    let commit = |server: &RedisServer, count: i64| -> BTreeSet<Revision> {
        let board = open(&server.url("a"));
        (0..count).map(|number| write(&board, "x", number).unwrap()).collect()
    };
    let of_first = commit(&first, 20);
    for replica in [&second, &third] {
        wait_for_sync(&first, replica);
    }
    // The third server stops following here: it never sees what the second one commits.
    promote(&third);
    first.kill();
    promote(&second);
    // Both start from the same state: whatever fixed number they skip, they continue at the same id.
    let start = open(&second.url("a")).revision().unwrap();
    assert_eq!(open(&third.url("a")).revision().unwrap(), start);
    let of_second = commit(&second, 50);
    second.kill();
    let of_third = commit(&third, 50);
    assert!(of_second.is_disjoint(&of_third), "{of_second:?} {of_third:?}");
    assert!(of_first.last() < of_second.first() && of_second.last() < of_third.first());
}

#[test]
fn server_that_is_the_primary_again_assigns_no_revision_twice() {
    testkit::limit_test();
    let Some(first) = start_server() else { return };
    let Some(second) = start_replica(&first) else { return };
    let (board, other) = (open(&first.url("a")), open(&first.url("a")));
    write(&board, "x", 1).unwrap();
    write(&other, "y", 1).unwrap();
    wait_for_sync(&first, &second);
    promote(&second);
    let lost: BTreeSet<_> = (0..10).map(|number| write(&board, "x", number).unwrap()).collect();
    // The same process is a replica of a primary that commits nothing, and then the primary again.
    follow(&first, &second);
    wait_for_sync(&second, &first);
    promote(&first);
    // A client whose connection is still open, and a new one.
    for board in [&board, &other, &open(&first.url("a"))] {
        let revision = write(board, "z", 1).unwrap();
        assert!(revision > *lost.last().unwrap(), "{revision} {lost:?}");
    }
    assert_eq!(value(&board, "x"), Some(1));
}

#[test]
fn writer_that_knows_its_rows_notices_that_its_server_lost_some() {
    testkit::limit_test();
    let Some(first) = start_server() else { return };
    let Some(second) = start_replica(&first) else { return };
    let board = open(&first.url("a"));
    let write = |key: &str| {
        let written = board.scope("team").write(&Write::new(key, Value::of(&1).unwrap())).unwrap();
        (written.version, written.revision)
    };
    for key in ["lost", "kept"] {
        assert_eq!(write(key).0, 1);
    }
    wait_for_sync(&first, &second);
    promote(&second);
    let last = (0..20).map(|_| write("lost")).max().unwrap();
    assert_eq!(last.0, 21);
    follow(&first, &second);
    wait_for_sync(&second, &first);
    promote(&first);
    // One row is another one than the process has seen, and one is the same. Both are written in a new run of the
    // server.
    for key in ["kept", "lost", "kept", "lost"] {
        let (version, revision) = write(key);
        assert!(revision > last.1, "{key}: {revision} {last:?}");
        assert!(version <= 3, "{key}: {version}");
    }
    assert_eq!([write("kept").0, write("lost").0], [4, 4]);
}

#[test]
fn demoted_primary_is_left_by_readers_writers_and_waiting_threads() {
    testkit::limit_test();
    let Some(first) = start_server() else { return };
    let Some(second) = start_replica(&first) else { return };
    let sentinel = Sentinel::naming(&first);
    let board = open(&sentinel.url("a"));
    let seen = write(&board, "x", 1).unwrap();
    wait_for_sync(&first, &second);
    let waiting = {
        let board = board.clone();
        thread::spawn(move || board.wait(seen, Duration::from_mins(2)).unwrap())
    };
    wait_until("a waiting client", || {
        first.command(&["INFO", "clients"]).contains("blocked_clients:1").then_some(())
    });
    promote(&second);
    sentinel.name(&second);
    // An operator changes the role. Unlike a sentinel, it does not close the connections of clients. The replica has no
    // primary that answers, so its data stays as it is.
    first.command(&["REPLICAOF", "127.0.0.1", "1"]);
    let written = write(&open(&second.url("a")), "x", 2).unwrap();
    assert_eq!(waiting.join().unwrap(), written);
    assert_eq!(value(&board, "x"), Some(2));
    assert!(write(&board, "x", 3).unwrap() > written);
    assert_eq!(value(&open(&second.url("a")), "x"), Some(3));
}

#[test]
fn replica_promoted_during_its_full_sync_has_no_board_and_gets_none() {
    testkit::limit_test();
    let Some(mut first) = start_server() else { return };
    let sentinel = Sentinel::naming(&first);
    let board = open(&sentinel.url("a"));
    let seen = write(&board, "x", 1).unwrap();
    // Each key takes so long that the copy does not end before the promotion.
    assert_eq!(first.command(&["CONFIG", "SET", "rdb-key-save-delay", "20000000"]), "+OK\r\n");
    let Some(replica) = start_replica(&first) else { return };
    wait_until("a full sync that has begun", || {
        let info = replica.command(&["INFO", "replication"]);
        info.contains("master_sync_in_progress:1").then_some(())
    });
    promote(&replica);
    // Unlike a kill, this also ends the process that makes the copy.
    first.command(&["SHUTDOWN", "NOSAVE", "NOW"]);
    first.kill();
    sentinel.name(&replica);
    let error = write(&board, "x", 2).unwrap_err();
    assert_eq!(error.code(), Code::BoardNotFound, "{error}");
    assert_eq!(board.wait(seen, Duration::from_mins(1)).unwrap_err().code(), Code::BoardNotFound);
    assert_eq!(board.check_still_there().unwrap_err().code(), Code::BoardNotFound);
    assert_eq!(replica.command(&["DBSIZE"]), ":0\r\n", "nothing was created");
}

#[test]
fn promoted_replica_without_data_has_no_board_and_gets_none() {
    let Some(mut first) = RedisServer::start_with_port(&[]) else { return };
    let board = open(&format!("redis://127.0.0.1:{}?board=a", first.port()));
    write(&board, "x", 1).unwrap();
    let port = first.port();
    first.kill();
    drop(first);
    // Another process at the same address, without the data.
    let other = RedisServer::start(&[("port", &port.to_string())]).unwrap();
    let error = write(&board, "x", 2).unwrap_err();
    assert_eq!(error.code(), Code::BoardNotFound, "{error}");
    assert_eq!(other.command(&["DBSIZE"]), ":0\r\n");
}

#[test]
fn replica_is_not_used_as_a_primary() {
    testkit::limit_test();
    let Some(first) = start_server() else { return };
    let Some(replica) = start_replica(&first) else { return };
    wait_for_sync(&first, &replica);
    let error = try_open(&replica.url("a"), &crate::impatient()).err().unwrap();
    assert_eq!(error.code(), Code::ServerUnavailable);
    assert!(error.to_string().contains("replica"), "{error}");
}

#[test]
fn sentinel_that_names_an_old_primary_is_passed_over() {
    testkit::limit_test();
    let Some(mut first) = start_server() else { return };
    let (Some(replica), Some(second)) = (start_replica(&first), start_server()) else { return };
    // One names a replica, one a server that is gone, and one the primary.
    let sentinels = [Sentinel::naming(&replica), Sentinel::naming(&first), Sentinel::naming(&second)];
    wait_for_sync(&first, &replica);
    first.kill();
    let ports: Vec<_> = sentinels.iter().map(|one| format!("127.0.0.1:{}", one.port())).collect();
    let board = open(&format!("redis+sentinel://{}/main?board=a", ports.join(",")));
    write(&board, "x", 1).unwrap();
    assert_eq!(value(&open(&second.url("a")), "x"), Some(1));
}

#[test]
fn commit_with_too_few_replicas_is_reported_as_unknown() {
    testkit::limit_test();
    let Some(first) = start_server() else { return };
    let Some(replica) = start_replica(&first) else { return };
    wait_for_sync(&first, &replica);
    let board = |replicas: usize| open(&format!("{}&replicas={replicas}", first.url("a")));
    write(&board(1), "x", 1).unwrap();
    let error = write(&board(2), "x", 2).unwrap_err();
    assert_eq!((error.code(), error.code().exit_code()), (Code::OutcomeUnknown, 1), "{error}");
    assert!(matches!(error.hint(), Some(Hint::RepeatWithOperation)), "{:?}", error.hint());
    // What has no idempotency key does not name one.
    let store = Redis::open(format!("{}&replicas=2", first.url("a")).parse().unwrap(), &patient()).unwrap();
    let error = store.unseal().unwrap_err();
    assert_eq!(error.code(), Code::OutcomeUnknown, "{error}");
    assert!(error.hint().and_then(Hint::advice).is_some_and(|advice| advice.contains("repeat")), "{error:?}");
    // A caller with a short limit learns that a replica is missing, too.
    let options = RedisOptions { patience: testkit::patience() / 20, ..RedisOptions::default() };
    let hurried = try_open(&format!("{}&replicas=2", first.url("a")), &options).unwrap();
    let error = write(&hurried, "x", 2).unwrap_err();
    assert!(error.to_string().contains("only 1 of 2 replicas have it"), "{error}");
    // The same operation is found done when it is repeated, which is no answer while a replica is missing.
    let two = board(2);
    let by = Actor { operation: Some("the same".to_owned()), ..Actor::default() };
    let repeat = || two.scope("team").acting_as(by.clone()).increment("y", 1);
    for _ in 0..2 {
        assert_eq!(repeat().unwrap_err().code(), Code::OutcomeUnknown);
    }
    let Some(other) = start_replica(&first) else { return };
    wait_for_sync(&first, &other);
    repeat().unwrap();
    assert_eq!(value(&two, "y"), Some(1));
}

#[test]
fn what_a_failover_loses_is_the_end_of_the_log_and_its_tokens_are_refused() {
    testkit::limit_test();
    let Some(mut first) = start_server() else { return };
    let Some(second) = start_replica(&first) else { return };
    let sentinel = Sentinel::naming(&first);
    let board = open(&sentinel.url("a"));
    let session = |name: &str| board.agents().register(&Register::named(name)).unwrap().agent.session_id;
    let (ivy, rex) = (session("Ivy"), session("Rex"));
    board.work().create(&Create::new("item", "Item")).unwrap();
    let kept = write(&board, "x", 1).unwrap();
    wait_for_sync(&first, &second);
    promote(&second);
    // From here on, everything is lost.
    let fence = board.work().claim(&Claim::of("item", &ivy)).unwrap().item.fence;
    let lost: Vec<_> = (2..20).map(|number| write(&board, "x", number).unwrap()).collect();
    let (compared, cursor, before) = (lost[0], *lost.last().unwrap(), ids(&board));
    first.kill();
    sentinel.name(&second);
    assert_eq!(ids(&board)[..], before[..=before.iter().position(|id| *id == kept).unwrap()], "a clean end");
    // A cursor after the end of the log.
    let observed = board.events().observe(&Since::Revision(cursor), &[]);
    assert!(observed.is_err(), "{observed:?}");
    // A fence token, while the item is free and while another session has it.
    let complete = Complete { fence, ..Complete::of("item", &ivy) };
    assert!(board.work().complete(&complete).is_err());
    let of_rex = board.work().claim(&Claim::of("item", &rex)).unwrap().item.fence;
    assert!(of_rex > fence, "{of_rex:?} {fence:?}");
    assert!(board.work().complete(&complete).is_err());
    let wrong = Complete { fence, ..Complete::of("item", &rex) };
    assert!(board.work().complete(&wrong).is_err(), "a token of another claim");
    // A comparison with a revision that is lost.
    for value in [&Value::of(&2).unwrap(), &Value::of(&3).unwrap()] {
        let swap = Write { if_revision: Some(compared), ..Write::new("x", value.clone()) };
        assert_eq!(board.scope("team").write(&swap).unwrap_err().code(), Code::Conflict);
    }
    // The cursor now continues after the gap, and every event that is there comes after it.
    let next = write(&board, "x", 100).unwrap();
    assert!(next.get() > cursor.get());
    let observation = board.events().observe(&Since::Revision(cursor), &[]).unwrap();
    let batch = board.events().next(&observation, observation.after, usize::MAX).unwrap().unwrap();
    let after: Vec<_> = batch.events.iter().map(|event| event.id).collect();
    let expected: Vec<_> = ids(&board).into_iter().filter(|id| *id > kept).collect();
    assert_eq!(after, expected);
    board.work().complete(&Complete { fence: of_rex, ..Complete::of("item", &rex) }).unwrap();
}

/// What a writer was told.
#[derive(Default)]
struct Answers {
    acknowledged: Vec<Revision>,
    unknown: usize,
}

/// Counts up until it is stopped.
fn count_up(url: &str, key: &str, stop: &AtomicBool, acknowledged: &AtomicUsize) -> Answers {
    let (board, mut answers) = (open(url), Answers::default());
    while !stop.load(Ordering::Relaxed) {
        match board.scope("team").increment(key, 1) {
            Ok(written) => {
                answers.acknowledged.push(written.revision);
                acknowledged.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) if error.code() == Code::OutcomeUnknown => answers.unknown += 1,
            Err(error) => panic!("a writer has to recover: {error}"),
        }
    }
    answers
}

#[test]
fn failovers_under_load_lose_nothing_with_replicas_and_only_the_end_without() {
    const WRITERS: usize = 2;
    testkit::limit_test();
    let Some(mut group) = SentinelGroup::start() else { return };
    let (failovers, stop) = (scale::size(2, 20), AtomicBool::new(false));
    let url = group.url("a");
    open(&url);
    let [safe, unsafe_] = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let (of_safe, of_unsafe): (Vec<_>, Vec<_>) = thread::scope(|scope| {
        let writers = |kind: &'static str, url: String, acknowledged| {
            let stop = &stop;
            (0..WRITERS)
                .map(|writer| {
                    let (key, url) = (format!("{kind}-{writer}"), url.clone());
                    scope.spawn(move || count_up(&url, &key, stop, acknowledged))
                })
                .collect::<Vec<_>>()
        };
        let of_safe = writers("safe", format!("{url}&replicas=2"), &safe);
        let of_unsafe = writers("unsafe", url.clone(), &unsafe_);
        for number in 0..failovers {
            for counter in [&safe, &unsafe_] {
                let before = counter.load(Ordering::Relaxed);
                wait_until("writers that continue", || {
                    (counter.load(Ordering::Relaxed) > before + 20).then_some(())
                });
            }
            if number % 2 == 0 {
                group.fail_over_behind(|| {
                    let before = unsafe_.load(Ordering::Relaxed);
                    wait_until("changes that no replica has", || {
                        (unsafe_.load(Ordering::Relaxed) > before + 20).then_some(())
                    });
                });
            } else {
                group.fail_over();
            }
            scale::progress("redis-failovers", number + 1, failovers);
        }
        for counter in [&safe, &unsafe_] {
            let before = counter.load(Ordering::Relaxed);
            wait_until("writers that continue", || {
                (counter.load(Ordering::Relaxed) > before + 20).then_some(())
            });
        }
        stop.store(true, Ordering::Relaxed);
        let join = |writers: Vec<thread::ScopedJoinHandle<'_, Answers>>| {
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        };
        (join(of_safe), join(of_unsafe))
    });
    let board = open(&url);
    let kept: BTreeSet<_> = ids(&board).into_iter().collect();
    for (writer, answers) in of_safe.iter().enumerate() {
        let missing: Vec<_> = answers.acknowledged.iter().filter(|id| !kept.contains(id)).collect();
        assert!(missing.is_empty(), "lost although two replicas had it: {missing:?}");
        let stored = usize::try_from(value(&board, &format!("safe-{writer}")).unwrap()).unwrap();
        let count = answers.acknowledged.len();
        let most = count + answers.unknown;
        assert!((count..=most).contains(&stored), "{count} to {most}, but {stored}");
    }
    // Every acknowledged id, and whether it is still there.
    let mut acknowledged = BTreeMap::new();
    for id in of_safe.iter().chain(&of_unsafe).flat_map(|answers| &answers.acknowledged) {
        assert!(acknowledged.insert(*id, kept.contains(id)).is_none(), "{id} was assigned twice");
    }
    let lost = acknowledged.values().filter(|is_kept| !**is_kept).count();
    assert!(lost > 0, "replicas that had lost the primary had all that it acknowledged");
    // Of the ids of one server, which follow each other without a skip, only the last ones may be lost.
    let (mut previous, mut is_lost) = (Revision::ZERO, false);
    for (id, is_kept) in &acknowledged {
        if id.get() > previous.get() + SKIP {
            is_lost = false;
        }
        is_lost |= !is_kept;
        assert!(!is_lost || !is_kept, "{id} is kept, and one before it is lost");
        previous = *id;
    }
    let unknown: usize = of_safe.iter().map(|answers| answers.unknown).sum();
    println!(
        "redis-failovers: {failovers} failovers, {} acknowledged, {lost} lost (all without replicas), {unknown} unknown",
        acknowledged.len()
    );
}

#[test]
fn sentinels_get_their_own_password_and_never_that_of_the_server() {
    let Some(server) = RedisServer::start_with_port(&[("requirepass", "s3rver")]) else { return };
    let own = "requirepass sent1nel\nsentinel auth-pass main s3rver\n";
    let (closed, open) = (Sentinel::with_settings(&server, own), Sentinel::naming(&server));
    let address = |sentinel: &Sentinel, password: Option<&str>| -> Address {
        let url = format!("redis+sentinel://:s3rver@127.0.0.1:{}/main?board=a", sentinel.port());
        url.parse::<Address>().unwrap().with_sentinel_password(password.map(str::to_owned))
    };
    let opened = |address: Address| Redis::open(address, &crate::impatient()).map(drop);
    opened(address(&closed, Some("sent1nel"))).unwrap();
    opened(address(&open, None)).unwrap();
    for (sentinel, password) in [(&closed, None), (&closed, Some("wr0ng")), (&open, Some("sent1nel"))] {
        let error = opened(address(sentinel, password)).unwrap_err();
        assert_eq!(error.code(), Code::AccessDenied, "{error}");
        let text = format!("{error} {error:?}");
        assert!(text.contains("sentinel"), "{text}");
        assert!(["s3rver", "sent1nel", "wr0ng"].iter().all(|secret| !text.contains(secret)), "{text}");
    }
}
