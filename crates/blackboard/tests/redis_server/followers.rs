//! Followers get every event once and in order, however it reaches them.

use std::thread;
use std::time::Duration;

use blackboard::event::Event;
use blackboard::follow::{Follow, Follower, Start};
use blackboard::{Code, Revision};
use testkit::redis::RedisServer;
use testkit::redis_sentinel::{Sentinel, follow, promote, start_replica, start_server, wait_for_sync};
use testkit::{patience, wait_until};

use crate::{log, open, write};

/// The next events, until this one is among them.
fn events_until(follower: &mut Follower, last: Revision) -> Vec<Event> {
    let mut events = Vec::new();
    while follower.position() < last {
        let batch = follower.next_batch(100, patience()).unwrap().unwrap();
        assert!(batch.last >= batch.events.last().unwrap().id);
        events.extend(batch.events);
        follower.acknowledge(batch.last).unwrap();
    }
    events
}

/// Waits until this many clients wait for events.
pub(crate) fn wait_until_blocked(server: &RedisServer, clients: usize) {
    wait_until("followers that wait", || {
        server.command(&["INFO", "clients"]).contains(&format!("blocked_clients:{clients}\r")).then_some(())
    });
}

/// How often the server was asked for a part of the event log, besides waits for its end.
fn reads_of_the_log(server: &RedisServer) -> u64 {
    let info = server.command(&["INFO", "commandstats"]);
    let calls = info.lines().find_map(|line| line.strip_prefix("cmdstat_xrange:calls="));
    calls.map_or(0, |calls| calls.split(',').next().unwrap().parse().unwrap())
}

#[test]
fn followers_get_every_event_of_concurrent_writers_once_in_order_and_with_its_value() {
    testkit::limit_test();
    let Some(server) = RedisServer::start(&[]) else { return };
    let (writers, count) = (4_usize, 100_usize);
    let board = open(&server.url("a"));
    let start = board.revision().unwrap();
    // Two that share a connection, one with a cursor, one with another connection, and one without values.
    let others = open(&server.url("a"));
    let mut followers = [
        board.follow(&Follow::default()).unwrap(),
        board.follow(&Follow::default()).unwrap(),
        board.follow(&Follow { start: Start::cursor("mirror"), ..Follow::default() }).unwrap(),
        others.follow(&Follow::default()).unwrap(),
        others.follow(&Follow { without_values: true, ..Follow::default() }).unwrap(),
    ];
    let total = writers * count;
    thread::scope(|scope| {
        let threads: Vec<_> = followers
            .iter_mut()
            .map(|follower| {
                scope.spawn(move || {
                    let mut events = Vec::new();
                    while events.len() < total {
                        let batch = follower.next_batch(100, patience()).unwrap().unwrap();
                        events.extend(batch.events);
                        follower.acknowledge(batch.last).unwrap();
                    }
                    events
                })
            })
            .collect();
        for writer in 0..writers {
            let url = server.url("a");
            scope.spawn(move || {
                let board = open(&url);
                for number in 0..count {
                    write(&board, &format!("key-{writer}"), i64::try_from(number).unwrap()).unwrap();
                    if number % 10 == 0 {
                        thread::sleep(Duration::from_millis(2));
                    }
                }
            });
        }
        let mut expected = Vec::new();
        for (number, thread) in threads.into_iter().enumerate() {
            let events = thread.join().unwrap();
            let ids: Vec<Revision> = events.iter().map(|event| event.id).collect();
            assert!(ids.is_sorted_by(|a, b| a < b) && ids[0] > start, "follower {number}");
            let has_values = events.iter().all(|event| event.entry.is_some());
            assert_eq!(has_values, number != 4, "follower {number}");
            assert!(expected.is_empty() || expected == ids, "follower {number}");
            expected = ids;
        }
        assert_eq!(log(&board).iter().map(|event| event.id).collect::<Vec<_>>(), expected);
    });
}

#[test]
fn event_that_arrives_alone_is_not_read_again() {
    testkit::limit_test();
    let Some(server) = RedisServer::start(&[]) else { return };
    let (board, writer) = (open(&server.url("a")), open(&server.url("a")));
    let mut follower = board.follow(&Follow { without_sweep: true, ..Follow::default() }).unwrap();
    write(&writer, "x", 0).unwrap();
    events_until(&mut follower, writer.revision().unwrap());
    // On a machine with other work, an event may arrive while the follower is not waiting yet.
    let rounds = 100;
    let enough = (1..=rounds)
        .map(|number| {
            thread::scope(|scope| {
                let waiting = scope.spawn(|| follower.next_batch(100, patience()).unwrap().unwrap());
                wait_until_blocked(&server, 1);
                // Only the first part of a wait is in doubt.
                thread::sleep(Duration::from_millis(5));
                let before = reads_of_the_log(&server);
                write(&writer, "x", number).unwrap();
                let batch = waiting.join().unwrap();
                assert_eq!(batch.events.len(), 1);
                assert!(batch.events[0].entry.is_some());
                reads_of_the_log(&server) - before
            })
        })
        .filter(|count| *count == 0)
        .count();
    assert!(
        2 * enough >= usize::try_from(rounds).unwrap(),
        "{enough} of {rounds} events were not read again"
    );
}

#[test]
fn follower_reports_pruned_events_once_and_continues_with_the_next() {
    testkit::limit_test();
    let Some(server) = RedisServer::start(&[]) else { return };
    let (board, writer) = (open(&server.url("a")), open(&server.url("a")));
    let mut follower = board.follow(&Follow::default()).unwrap();
    let first = write(&writer, "x", 1).unwrap();
    assert_eq!(events_until(&mut follower, first).len(), 1);
    // The follower pauses. Meanwhile its next events are written and pruned, in the way of the script.
    let pruned = (2..30).map(|number| write(&writer, "x", number).unwrap()).max().unwrap();
    let kept = write(&writer, "x", 30).unwrap();
    let state = server.command(&["HGET", "bb:{a}:rows", "!"]);
    assert!(state.contains(&format!(" {kept} ")), "{state}");
    let script = "local state = redis.call('HGET', KEYS[1], '!')
        local head, stamp = string.match(state, '^(%S+ %S+ %d+ %d+ %d+ %d+ %S+) %d+ (.*)$')
        redis.call('HSET', KEYS[1], '!', head .. ' ' .. ARGV[1] .. ' ' .. stamp)
        redis.call('XTRIM', KEYS[2], 'MINID', '=', string.format('%.0f', ARGV[1] + 1))
        return 1";
    let pruned_text = pruned.to_string();
    server.command(&["EVAL", script, "2", "bb:{a}:rows", "bb:{a}:log", &pruned_text]);
    let error = follower.next_batch(100, patience()).unwrap_err();
    assert_eq!(error.code(), Code::Compacted, "{error}");
    let events = events_until(&mut follower, kept);
    assert_eq!(events.iter().map(|event| event.id).collect::<Vec<_>>(), [kept]);
    let next = write(&writer, "x", 31).unwrap();
    assert_eq!(events_until(&mut follower, next).len(), 1);
}

#[test]
fn followers_continue_in_order_after_a_failover() {
    testkit::limit_test();
    let Some(first) = start_server() else { return };
    let Some(second) = start_replica(&first) else { return };
    let sentinel = Sentinel::naming(&first);
    let board = open(&sentinel.url("a"));
    let mut follower = board.follow(&Follow::default()).unwrap();
    let before = write(&board, "x", 1).unwrap();
    assert_eq!(events_until(&mut follower, before).len(), 1);
    wait_for_sync(&first, &second);
    let waiting = thread::spawn(move || {
        let mut events = Vec::new();
        while events.len() < 3 {
            // A call during the failover may fail, and the next one continues.
            if let Ok(Some(batch)) = follower.next_batch(100, patience()) {
                events.extend(batch.events);
            }
        }
        events
    });
    wait_until_blocked(&first, 1);
    promote(&second);
    sentinel.name(&second);
    follow(&first, &second);
    let writer = open(&second.url("a"));
    let written: Vec<Revision> = (2..5).map(|number| write(&writer, "x", number).unwrap()).collect();
    let events = waiting.join().unwrap();
    assert_eq!(events.iter().map(|event| event.id).collect::<Vec<_>>(), written);
    assert!(before < written[0]);
}
