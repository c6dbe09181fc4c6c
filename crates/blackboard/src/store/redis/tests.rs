//! Commits of many rows, rows that another program has damaged, commits that begin with a guess, and servers that
//! change between a read and a commit.

#![cfg(unix)]

use std::sync::Arc;
use std::time::Duration;

use testkit::proxy::{Fault, Proxy, Target};
use testkit::redis::RedisServer;

use super::{Redis, RedisOptions};
use crate::Board;
use crate::agent::{Heartbeat, Register};
use crate::clock::FixedClock;
use crate::entry::{Value, Write};
use crate::error::{Code, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::revision::Revision;
use crate::store::{Changes, Commit, Key, OnBusy, Page, Prefetch, Range, Row, Store, Tx};
use crate::work::{Claim, Create, Release, Status, WorkItem};

/// More rows than a script passes to one command.
const MANY: usize = 9000;

fn commit(store: &dyn Store, prefetch: &[Prefetch<'_>], f: &mut dyn FnMut(&dyn Tx) -> Result<Changes>) {
    let commit = Commit { name: "test", prefetch, on_busy: OnBusy::Wait, callers: &[] };
    store.commit(&commit, f).unwrap();
}

fn read<T>(store: &dyn Store, f: impl Fn(&dyn Tx) -> Result<T>) -> T {
    let mut answer = None;
    store
        .read(&[], &mut |tx| {
            answer = Some(f(tx)?);
            Ok(())
        })
        .unwrap();
    answer.unwrap()
}

fn patient() -> RedisOptions {
    let (patience, reply_limit) = (Duration::from_mins(1), Duration::from_secs(30));
    RedisOptions { patience, reply_limit, ..RedisOptions::default() }
}

fn board(store: &Arc<Redis>) -> Board {
    Board::on(store.clone(), store.clock())
}

fn event() -> NewEvent {
    NewEvent::new(EventType::WorkCreated, TargetType::WorkItem, "x", "Something happened")
}

#[test]
fn commit_of_thousands_of_rows_is_applied_completely() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let store = Arc::new(Redis::open(server.url("a").parse().unwrap(), &patient()).unwrap());
    let board = board(&store);
    let template = board.work().create(&Create::new("template", "T")).unwrap().item;
    let items: Vec<WorkItem> = (0..MANY)
        .map(|number| WorkItem { item_id: format!("item-{number:05}"), ..template.clone() })
        .collect();
    let keys: Vec<Key> = items.iter().map(|item| Key::WorkItem(item.item_id.clone())).collect();
    let prefetch: Vec<_> = keys.iter().cloned().map(Prefetch::Row).collect();
    commit(&*store, &prefetch, &mut |tx| {
        let mut changes = Changes::new();
        for item in &items {
            assert!(tx.get(&Key::WorkItem(item.item_id.clone()))?.is_none());
            let revision = changes.event(event());
            changes.put(WorkItem { revision, ..item.clone() });
        }
        Ok(changes)
    });
    let log = read(&*store, |tx| tx.events(&Page::after(Revision::ZERO, usize::MAX)));
    assert_eq!(log.len(), MANY + 1);
    let found = read(&*store, |tx| tx.range(&Range::work_items()));
    assert_eq!(found.len(), MANY + 1);
    assert_eq!(read(&*store, |tx| tx.count(&Range::work_queue(Status::Available))), MANY as u64 + 1);
    // Every row of the range is validated, and removed.
    commit(&*store, &[Prefetch::Range(Range::work_items())], &mut |tx| {
        let remove = tx.range(&Range::work_items())?.iter().map(Row::key).collect();
        Ok(Changes { remove, events: vec![event()], ..Changes::new() })
    });
    assert_eq!(read(&*store, |tx| tx.count(&Range::work_items())), 0);
    assert_eq!(server.command(&["ZCARD", "bb:{a}:index"]), ":1\r\n", "no member of a row is left");
    assert!(board.wait(board.revision().unwrap(), Duration::ZERO).is_ok());
}

#[test]
fn damaged_row_is_replaced_and_removed_with_all_its_members() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let store = Arc::new(Redis::open(server.url("a").parse().unwrap(), &patient()).unwrap());
    let board = board(&store);
    let item = board.work().create(&Create::new("x", "X")).unwrap().item;
    let key = Key::WorkItem("x".to_owned());
    let damage = || server.command(&["HSET", "bb:{a}:rows", "rwtx\0", "12345678r1\0damaged"]);
    let members = || server.command(&["ZCARD", "bb:{a}:index"]);
    let before = members();
    damage();
    assert!(board.work().status("x").is_err());
    let claimed = WorkItem { status: Status::Claimed, ..item };
    let mut is_damaged = false;
    commit(&*store, &[Prefetch::Row(key.clone())], &mut |tx| {
        // The first run may see the row as it was.
        is_damaged = tx.get(&key).is_err();
        Ok(Changes { put: vec![claimed.clone().into()], events: vec![event()], ..Changes::new() })
    });
    assert!(is_damaged);
    assert_eq!(members(), before, "it left its old members");
    assert_eq!(read(&*store, |tx| tx.count(&Range::work_queue(Status::Available))), 0);
    assert_eq!(read(&*store, |tx| tx.count(&Range::work_queue(Status::Claimed))), 1);
    damage();
    let mut is_damaged = false;
    commit(&*store, &[Prefetch::Row(key.clone())], &mut |tx| {
        // The first run may see the row as it was.
        is_damaged = tx.get(&key).is_err();
        Ok(Changes { remove: vec![key.clone()], events: vec![event()], ..Changes::new() })
    });
    assert!(is_damaged);
    assert_eq!(members(), ":1\r\n", "no member of a row is left");
    board.work().create(&Create::new("x", "X")).unwrap();
}

#[test]
fn row_with_the_key_of_another_one_is_unreadable() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let open = || Arc::new(Redis::open(server.url("a").parse().unwrap(), &patient()).unwrap());
    for id in ["w1", "w2"] {
        board(&open()).work().create(&Create::new(id, "T")).unwrap();
    }
    let rename = "local row = redis.call('HGET', KEYS[1], ARGV[1]) \
        redis.call('HSET', KEYS[1], ARGV[1], (string.gsub(row, 'w2', 'w3'))) return #row";
    server.command(&["EVAL", rename, "1", "bb:{a}:rows", "rwtw2\0"]);
    let board = board(&open());
    let session = board.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
    let error = board.work().claim(&Claim::of("w2", &session)).unwrap_err();
    assert_eq!(error.code(), Code::Corrupt, "{error}");
    board.work().claim(&Claim::of("w1", &session)).unwrap();
}

#[test]
fn server_that_restarts_between_read_and_commit_takes_the_commit() {
    let settings = [("appendonly", "yes"), ("appendfsync", "always")];
    let Some(mut server) = RedisServer::start(&settings) else { return };
    let store = Arc::new(Redis::open(server.url("a").parse().unwrap(), &patient()).unwrap());
    let board = board(&store);
    let item = board.work().create(&Create::new("x", "X")).unwrap().item;
    let (key, before) = (Key::WorkItem("x".to_owned()), board.revision().unwrap());
    let mut runs = 0;
    commit(&*store, &[Prefetch::Row(key.clone())], &mut |tx| {
        assert!(tx.get(&key)?.is_some());
        runs += 1;
        if runs == 1 {
            server.kill();
            server.start_again();
        }
        let put = vec![WorkItem { title: "Changed".to_owned(), ..item.clone() }.into()];
        Ok(Changes { put, events: vec![event()], ..Changes::new() })
    });
    assert_eq!(board.work().status("x").unwrap().item.title, "Changed");
    let log = read(&*store, |tx| tx.events(&Page::after(before, usize::MAX)));
    assert_eq!(log.len(), 1, "it is applied once, in {runs} runs");
    assert!(log[0].id.get() > before.get() + 32_768, "{before} {}", log[0].id);
}

#[test]
fn damaged_heartbeat_is_removed_with_all_its_members_and_the_board_stays_writable() {
    const DAMAGE: &str = "local rows = redis.call('HGETALL', KEYS[1]) \
        for i = 2, #rows, 2 do if string.sub(rows[i], 9, 9) == 'h' then \
        redis.call('HSET', KEYS[1], rows[i - 1], string.sub(rows[i], 1, 9) .. ARGV[1]) end end";
    let Some(server) = RedisServer::start(&[]) else { return };
    let store = Arc::new(Redis::open(server.url("a").parse().unwrap(), &patient()).unwrap());
    let board = board(&store);
    let members = || server.command(&["ZCARD", "bb:{a}:index"]);
    let session = board.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
    // Without an end of its number, and with more members than it has.
    for damage in ["1", "1\0\x07ab"] {
        let before = members();
        board.agents().heartbeat(&Heartbeat::of(&session)).unwrap();
        let keys: Vec<Key> =
            read(&*store, |tx| tx.range(&Range::heartbeats_of(&session))).iter().map(Row::key).collect();
        assert!(!keys.is_empty());
        server.command(&["EVAL", DAMAGE, "1", "bb:{a}:rows", damage]);
        commit(&*store, &[], &mut |_| {
            Ok(Changes { remove: keys.clone(), events: vec![event()], ..Changes::new() })
        });
        assert_eq!(members(), before, "{damage:?}");
        board.scope("team").increment("counter", 1).unwrap();
    }
}

#[test]
fn copy_that_replicas_do_not_have_is_not_complete() {
    let Some(first) = testkit::redis_sentinel::start_server() else { return };
    let Some(replica) = testkit::redis_sentinel::start_replica(&first) else { return };
    testkit::redis_sentinel::wait_for_sync(&first, &replica);
    let address = format!("{}&replicas=1", first.url("a")).parse().unwrap();
    let loading = Redis::create_to_load(address, &patient(), false).unwrap();
    loading.wait_for_replicas(Duration::from_mins(1)).unwrap();
    replica.signal(testkit::process::Signal::STOP);
    let error = loading.wait_for_replicas(Duration::ZERO).unwrap_err();
    assert_eq!(error.code(), Code::ServerUnavailable, "{error}");
    replica.signal(testkit::process::Signal::CONT);
    loading.wait_for_replicas(Duration::from_mins(1)).unwrap();
}

/// How often the server has read from its connections.
fn requests(server: &RedisServer) -> u64 {
    let stats = server.command(&["INFO", "stats"]);
    let number = stats.lines().find_map(|line| line.strip_prefix("total_reads_processed:"));
    number.unwrap().trim().parse().unwrap()
}

#[test]
fn a_process_that_saw_the_rows_of_a_commit_needs_one_round_trip() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let store = Arc::new(Redis::open(server.url("a").parse().unwrap(), &patient()).unwrap());
    let board = board(&store);
    let scope = board.scope("team");
    let write = |number: u64| scope.write(&Write::new("k", Value::of(&number).unwrap())).unwrap();
    write(0);
    // The role of a server is checked again after 100 ms, and rows are read again after two seconds.
    let (mut number, mut before) = (0, requests(&server));
    testkit::wait_until("writes with one round trip each", || {
        for _ in 0..10 {
            number += 1;
            assert_eq!(write(number).version, number + 1);
        }
        let last = std::mem::replace(&mut before, requests(&server));
        // To count is a request, too, and its connection is closed.
        (before - last <= 10 + 2).then_some(())
    });
    let refused = Write { if_revision: Some(Revision::new(1)), ..Write::new("k", Value::null()) };
    assert_eq!(scope.write(&refused).unwrap_err().code(), Code::Conflict);
    assert_eq!(scope.read("k").unwrap(), Some(Value::of(&number).unwrap()));
}

#[test]
fn a_wrong_guess_is_corrected_by_a_read() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let open = || Arc::new(Redis::open(server.url("a").parse().unwrap(), &patient()).unwrap());
    let boards = [board(&open()), board(&open())];
    let write = |board: &Board, key: &str| {
        board.scope("team").write(&Write::new(key, Value::of(&1).unwrap())).unwrap().version
    };
    for round in 0..10 {
        for (number, board) in (1..).zip(&boards) {
            assert_eq!(write(board, "k"), round * 2 + number, "the other process has written it meanwhile");
        }
    }
    assert_eq!(write(&boards[0], "gone"), 1);
    boards[1].scope("team").delete("gone").unwrap();
    let held = Write { if_absent: true, ..Write::new("gone", Value::null()) };
    boards[0].scope("team").write(&held).unwrap();
    let refused = boards[1].scope("team").write(&held).unwrap_err();
    assert_eq!(refused.code(), boards[0].scope("team").write(&held).unwrap_err().code());
    let ivy = boards[0].agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
    let oak = boards[1].agents().register(&Register::named("Oak")).unwrap().agent.session_id;
    for number in 0..10 {
        let id = format!("item-{number}");
        boards[0].work().create(&Create::new(&id, "T")).unwrap();
        let claim = |board: &Board, session: &str| board.work().claim(&Claim::of(&id, session));
        claim(&boards[0], &ivy).unwrap();
        assert_eq!(claim(&boards[1], &oak).unwrap_err().code(), Code::AlreadyClaimed);
        boards[0].work().release(&Release::of(&id, &ivy)).unwrap();
        claim(&boards[1], &oak).unwrap();
        assert_eq!(claim(&boards[0], &ivy).unwrap_err().code(), Code::AlreadyClaimed);
    }
}

#[test]
fn late_copy_is_refused_although_another_connection_has_used_its_slot() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let proxy = Proxy::before(&server);
    // The time stands still: otherwise a copy that is later than two seconds is refused for that.
    let clock = Arc::new(FixedClock::at("2026-02-03T15:30:00Z").unwrap());
    let options = RedisOptions { fixed_clock: Some(clock), ..patient() };
    let open = |url: String| {
        let store = Arc::new(Redis::open(url.parse().unwrap(), &options).unwrap());
        store.inner.pool.use_slot(7);
        board(&store)
    };
    let (late, other) = (open(proxy.url("a")), open(server.url("a")));
    // The copy of a commit whose repetition is refused, and of one whose repetition is applied.
    for is_refused in [true, false] {
        let title = format!("Of the late copy {is_refused}");
        proxy.fail_next_of(Target::Event("work_created"), Fault::HoldRequest);
        std::thread::scope(|scope| {
            let creating = scope.spawn(|| late.work().create(&Create::new("x", &title)));
            testkit::wait_until("a first copy that is held back", || proxy.has_failed().then_some(()));
            if is_refused {
                other.work().create(&Create::new("x", "Of another process")).unwrap();
            }
            proxy.accept();
            assert_eq!(creating.join().unwrap().is_err(), is_refused);
        });
        other.work().delete("x", false, None).unwrap();
        let outcomes = server.command(&["HSTRLEN", "bb:{a}:rows", "d7"]);
        assert_ne!(outcomes, ":0\r\n", "both use this slot");
        let answer = proxy.deliver_held();
        let expected = if is_refused { "conflict" } else { "ok" };
        assert!(answer.contains(expected), "{answer}");
        assert_eq!(other.work().status("x").unwrap_err().code(), Code::WorkNotFound, "{is_refused}");
    }
    let fields = server.command(&["HKEYS", "bb:{a}:rows"]);
    assert_eq!(fields.lines().filter(|line| line.starts_with('d')).count(), 1, "{fields}");
}

#[test]
fn outcome_of_another_connection_leaves_a_slot_when_no_copy_can_be_applied_any_more() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let clock = Arc::new(FixedClock::at("2026-02-03T15:30:00Z").unwrap());
    let options = RedisOptions { fixed_clock: Some(clock.clone()), ..patient() };
    let length = || -> usize {
        let reply = server.command(&["HSTRLEN", "bb:{a}:rows", "d7"]);
        reply.trim_start_matches(':').trim().parse().unwrap()
    };
    let mut lengths = Vec::new();
    // More connections than a slot keeps outcomes of.
    for _ in 0..30 {
        let store = Arc::new(Redis::open(server.url("a").parse().unwrap(), &options).unwrap());
        store.inner.pool.use_slot(7);
        board(&store).scope("team").increment("counter", 1).unwrap();
        lengths.push(length());
    }
    assert!(lengths[1] > lengths[0], "{lengths:?}");
    assert!(lengths[29] < 20 * lengths[0], "{lengths:?}");
    clock.advance(Duration::from_secs(3));
    let store = Arc::new(Redis::open(server.url("a").parse().unwrap(), &options).unwrap());
    store.inner.pool.use_slot(7);
    board(&store).scope("team").increment("counter", 1).unwrap();
    assert!(length() < 2 * lengths[0], "{} {lengths:?}", length());
}

#[test]
fn large_range_is_read_in_parts_from_one_state() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let open = |rows: usize| {
        let store = Redis::open(server.url("a").parse().unwrap(), &patient()).unwrap();
        Arc::new(store.changed(|inner| inner.test_modes.rows_at_once = Some(rows)))
    };
    let (store, writer) = (open(3), open(1000));
    let template = board(&writer).work().create(&Create::new("item-00", "T")).unwrap().item;
    let item = |number: usize| WorkItem { item_id: format!("item-{number:02}"), ..template.clone() };
    let key = |number: usize| Key::WorkItem(format!("item-{number:02}"));
    // One item is replaced by another, so that there are always as many.
    let replace = |gone: Option<usize>, new: usize| {
        let keys: Vec<Key> = gone.into_iter().chain([new]).map(key).collect();
        let prefetch: Vec<_> = keys.iter().cloned().map(Prefetch::Row).collect();
        commit(&*writer, &prefetch, &mut |tx| {
            for read in &keys {
                tx.get(read)?;
            }
            let remove = gone.map(key).into_iter().collect();
            Ok(Changes { put: vec![item(new).into()], remove, events: vec![event()], ..Changes::new() })
        });
    };
    for number in 1..10 {
        replace(None, number);
    }
    let names = |rows: Vec<Row>| -> Vec<String> {
        rows.iter().map(|row| if let Key::WorkItem(id) = row.key() { id } else { String::new() }).collect()
    };
    let all = |store: &Redis| names(read(store, |tx| tx.range(&Range::work_items())));
    assert_eq!(all(&store), all(&writer));
    for limit in [1, 3, 4, 9, 10, 11] {
        let first = |store: &Redis| names(read(store, |tx| tx.candidates(&Range::work_items(), limit)));
        assert_eq!(first(&store), first(&writer), "{limit}");
        let newest = |store: &Redis| {
            let range = Range::newest_work(Status::Available, template.priority);
            let keys = read(store, |tx| tx.keys(&range, limit));
            keys.into_iter().map(|key| format!("{:?}", key.unwrap())).collect::<Vec<_>>()
        };
        assert_eq!(newest(&store), newest(&writer), "{limit} backwards");
    }
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for round in 0..200 {
                replace(Some(round % 11), (round + 10) % 11);
            }
        });
        while !writing.is_finished() {
            assert_eq!(all(&store).len(), 10);
        }
    });
    assert_eq!(all(&store), all(&writer));
}

#[test]
fn call_that_loses_to_others_has_its_patience_again_while_the_server_answers() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let writer = Arc::new(Redis::open(server.url("a").parse().unwrap(), &patient()).unwrap());
    let mut number = 0;
    // Only a machine that takes this long for one reply needs more than the first.
    for patience in [1, 8, 60].map(Duration::from_secs) {
        let options = RedisOptions { patience, reply_limit: patience, ..RedisOptions::default() };
        let store = Redis::open(server.url("a").parse().unwrap(), &options).unwrap();
        let mut runs = 0;
        let outcome = store.read(&[], &mut |tx| {
            runs += 1;
            // Each run reads another row, so that it asks the server before and after the change.
            tx.get(&Key::WorkItem(format!("before-{runs}")))?;
            if runs < 4 {
                number += 1;
                board(&writer).work().create(&Create::new(&format!("item-{number}"), "T"))?;
                std::thread::sleep(patience / 2);
            }
            tx.get(&Key::WorkItem(format!("after-{runs}"))).map(drop)
        });
        match outcome {
            Err(error) if error.code() == Code::ServerUnavailable => {}
            outcome => {
                outcome.unwrap();
                assert_eq!(runs, 4);
                return;
            }
        }
    }
    panic!("the server did not answer in 30 s");
}

/// How often the server has run a script.
fn scripts_run(server: &RedisServer) -> u64 {
    let stats = server.command(&["INFO", "commandstats"]);
    let calls = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    calls.map_or(0, |calls| calls.split(',').next().unwrap().parse().unwrap())
}

#[test]
fn commit_waits_for_a_reservation_without_asking_all_the_time() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let store = Arc::new(Redis::open(server.url("a").parse().unwrap(), &patient()).unwrap());
    let board = board(&store);
    let scope = board.scope("team");
    scope.increment("x", 1).unwrap();
    let limit = Duration::from_secs(1);
    let mut call = store.inner.call(limit * 60);
    store.inner.reserve(&mut call, "another", limit).unwrap();
    let before = scripts_run(&server);
    let began = std::time::Instant::now();
    scope.increment("x", 1).unwrap();
    let asked = scripts_run(&server) - before;
    // A machine that was busy for that long has not waited.
    assert!(asked < 80, "{asked} times in {:?}", began.elapsed());
    assert!(began.elapsed() < limit || asked > 1, "it has waited: {asked} times");
    // A reservation that ends early is noticed soon.
    store.inner.reserve(&mut call, "another", 30 * limit).unwrap();
    let began = std::time::Instant::now();
    std::thread::scope(|threads| {
        let waiting = threads.spawn(|| scope.increment("x", 1).unwrap());
        let before = scripts_run(&server);
        testkit::wait_until("a commit that waits", || (scripts_run(&server) > before + 1).then_some(()));
        server.command(&["HDEL", "bb:{a}:rows", "?"]);
        waiting.join().unwrap();
    });
    assert!(began.elapsed() < 20 * limit, "{:?}", began.elapsed());
}

#[test]
fn reservation_needs_no_memory_and_the_board_of_its_caller() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let store = Arc::new(Redis::open(server.url("a").parse().unwrap(), &patient()).unwrap());
    let board = board(&store);
    board.scope("team").increment("x", 1).unwrap();
    let reserve = |store: &Redis| {
        let mut call = store.inner.call(Duration::from_mins(1));
        let reserved = store.inner.reserve(&mut call, "mine", Duration::from_millis(1));
        reserved.map_err(|error| error.code())
    };
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(reserve(&store), Ok(()));
    // A commit that only ends something, and that loses until it has reserved its run.
    let key = Key::Entry("team".to_owned(), "x".to_owned());
    let mut runs = 0;
    let prefetch = [Prefetch::Entry("team", "x")];
    let ending = Commit { name: "delete", prefetch: &prefetch, on_busy: OnBusy::Wait, callers: &[] };
    store
        .commit(&ending, &mut |tx| {
            tx.get(&key)?;
            runs += 1;
            if runs < 12 {
                server.command(&["CONFIG", "SET", "maxmemory", "0"]);
                server.command(&["HDEL", "bb:{a}:rows", "?"]);
                board.scope("team").increment("x", 1).unwrap();
                server.command(&["CONFIG", "SET", "maxmemory", "1"]);
            }
            Ok(Changes { remove: vec![key.clone()], events: vec![event()], ..Changes::new() })
        })
        .unwrap();
    assert!(runs >= 12, "{runs}");
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    store.seal("elsewhere").unwrap();
    assert_eq!(reserve(&store), Err(Code::BoardSealed));
    store.unseal().unwrap();
    let state = server.command(&["HGET", "bb:{a}:rows", "!"]);
    let state = state.lines().nth(1).unwrap().to_owned();
    let newer = state.replacen("1 ", "2 ", 1);
    server.command(&["HSET", "bb:{a}:rows", "!", &newer]);
    assert_eq!(reserve(&store), Err(Code::NewerSchema));
    let mut call = store.inner.call(Duration::from_mins(1));
    let confirmed = store.inner.count_replicas(&mut call).map_err(|error| error.code());
    assert_eq!(confirmed, Err(Code::NewerSchema));
    drop(call);
    let other = state.replacen(store.id(), "another", 1);
    server.command(&["HSET", "bb:{a}:rows", "!", &other]);
    assert_eq!(reserve(&store), Err(Code::BoardNotFound));
    server.command(&["DEL", "bb:{a}:rows"]);
    assert_eq!(reserve(&store), Err(Code::BoardNotFound));
    assert_eq!(server.command(&["EXISTS", "bb:{a}:rows"]), ":0\r\n", "nothing was created");
}

#[test]
fn full_server_lets_a_board_be_sealed_and_opened_again() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let store = Arc::new(Redis::open(server.url("a").parse().unwrap(), &patient()).unwrap());
    let board = board(&store);
    board.scope("team").increment("x", 1).unwrap();
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    assert!(store.seal("elsewhere").unwrap());
    assert_eq!(store.sealed().unwrap().as_deref(), Some("elsewhere"));
    assert_eq!(board.scope("team").delete("x").unwrap_err().code(), Code::BoardSealed);
    assert!(store.unseal().unwrap());
    board.scope("team").delete("x").unwrap();
}
