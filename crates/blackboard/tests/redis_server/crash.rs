//! A server that is killed under load loses nothing that it acknowledged, and clients continue by themselves.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use blackboard::event::EventType;
use blackboard::store::redis::RedisOptions;
use blackboard::{Code, Revision};
use testkit::redis::RedisServer;
use testkit::{scale, wait_until};

use crate::{impatient, log, open, patient, try_open, value, write};

const WRITERS: usize = 4;

#[test]
fn killed_server_loses_nothing_acknowledged_and_does_nothing_twice() {
    let kills = scale::size(5, 50);
    let Some(mut server) = RedisServer::start(&[("appendonly", "yes"), ("appendfsync", "always")]) else {
        return;
    };
    let url = server.url("a");
    let (stop, acknowledged) = (AtomicBool::new(false), AtomicUsize::new(0));
    let answers: Vec<(i64, usize)> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (url, stop, acknowledged) = (&url, &stop, &acknowledged);
                scope.spawn(move || {
                    let board = open(url);
                    let (key, mut count, mut unknown) = (format!("counter-{writer}"), 0, 0);
                    while !stop.load(Ordering::Relaxed) {
                        match board.scope("team").increment(&key, 1) {
                            Ok(_) => {
                                count += 1;
                                acknowledged.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(error) if error.code() == Code::OutcomeUnknown => unknown += 1,
                            Err(error) => panic!("a writer has to recover: {error}"),
                        }
                    }
                    (count, unknown)
                })
            })
            .collect();
        for kill in 0..kills {
            let before = acknowledged.load(Ordering::Relaxed);
            wait_until("writers that continue", || {
                (acknowledged.load(Ordering::Relaxed) > before + 20).then_some(())
            });
            server.kill();
            server.start_again();
            scale::progress("redis-kills", kill + 1, kills);
        }
        let before = acknowledged.load(Ordering::Relaxed);
        wait_until("writers that continue", || {
            (acknowledged.load(Ordering::Relaxed) > before + 20).then_some(())
        });
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    let board = open(&url);
    let mut most = 0;
    for (writer, (count, unknown)) in answers.iter().enumerate() {
        let stored = value(&board, &format!("counter-{writer}")).unwrap_or(0);
        let unknown = i64::try_from(*unknown).unwrap();
        assert!((*count..=*count + unknown).contains(&stored), "{count} + {unknown} unknown, but {stored}");
        most += stored;
    }
    // Each increment is one event, each id is assigned once, and every restart skips ids: a thousand per millisecond.
    let events = log(&board);
    let written = events.iter().filter(|event| event.event_type == EventType::EntryWritten);
    let ids: BTreeSet<_> = written.map(|event| event.id).collect();
    assert_eq!(i64::try_from(ids.len()).unwrap(), most);
    let ids: Vec<_> = ids.into_iter().map(Revision::get).collect();
    let skips = ids.windows(2).filter(|pair| pair[1] - pair[0] > 1000).count();
    assert!(skips >= kills, "{skips} skips after {kills} kills");
    let count: i64 = answers.iter().map(|(count, _)| count).sum();
    println!("redis-kills: {kills} kills, {count} acknowledged, 0 lost, {} in flight", most - count);
}

#[test]
fn restart_skips_revisions_once() {
    let Some(mut server) = RedisServer::start(&[("appendonly", "yes"), ("appendfsync", "always")]) else {
        return;
    };
    let board = open(&server.url("a"));
    let first = write(&board, "x", 1).unwrap();
    server.kill();
    server.start_again();
    let second = write(&board, "x", 2).unwrap();
    assert!(second.get() > first.get() + 32_768, "{first} {second}");
    assert_eq!(write(&board, "x", 3).unwrap(), second.next());
}

#[test]
fn waiting_thread_survives_a_restart_and_misses_nothing() {
    let Some(mut server) = RedisServer::start(&[("appendonly", "yes"), ("appendfsync", "always")]) else {
        return;
    };
    let (board, url) = (open(&server.url("a")), server.url("a"));
    let seen = write(&board, "x", 1).unwrap();
    let waiting =
        std::thread::spawn(move || open(&url).wait(seen, std::time::Duration::from_mins(2)).unwrap());
    wait_until("a thread that waits", || {
        server.command(&["INFO", "clients"]).contains("blocked_clients:1").then_some(())
    });
    server.kill();
    server.start_again();
    let written = write(&board, "x", 2).unwrap();
    assert_eq!(waiting.join().unwrap(), written);
}

#[test]
fn only_the_first_call_of_a_process_waits_for_a_server_that_is_down() {
    let Some(mut server) = RedisServer::start(&[("appendonly", "yes")]) else { return };
    let url = server.url("down");
    // Longer than a test may take.
    let endless = RedisOptions { patience: Duration::from_hours(1), ..patient() };
    let board = try_open(&url, &endless).unwrap();
    write(&board, "key", 1).unwrap();
    server.kill();
    let first = try_open(&url, &impatient()).err().unwrap();
    assert_eq!(first.code(), Code::ServerUnavailable);
    for _ in 0..3 {
        // A board that is open, and one that cannot be opened.
        for failed in [write(&board, "key", 2).unwrap_err(), try_open(&url, &endless).err().unwrap()] {
            assert_eq!(failed.code(), Code::ServerUnavailable);
            assert_eq!(failed.to_string(), first.to_string());
        }
    }
    server.start_again();
    write(&board, "key", 3).unwrap();
    assert_eq!(value(&try_open(&url, &endless).unwrap(), "key"), Some(3));
}
