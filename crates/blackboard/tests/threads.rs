//! Concurrent threads on one board: one clone each in memory, and in a SQLite file and on a Redis server both one clone
//! and one connection each.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use blackboard::agent::{AgentStatus, Heartbeat, Register};
use blackboard::clock::{Clock, FixedClock};
use blackboard::event::{Event, EventType, Since};
use blackboard::file::{FileFilter, Reserve};
use blackboard::lock::{Acquire, Release as Unlock};
use blackboard::store::Memory;
#[cfg(all(unix, feature = "redis"))]
use blackboard::store::redis::{Redis, RedisOptions};
use blackboard::store::sqlite::{Sqlite, SqliteOptions};
use blackboard::sweep::Sweep;
use blackboard::work::{Claim, ClaimNext, Create, Reassign, Status, WorkFilter};
use blackboard::{Board, Code, Revision};
use tempfile::TempDir;

/// A board, and how each thread gets its handle.
struct Shared {
    clock: Arc<FixedClock>,
    handle: Box<dyn Fn() -> Board + Sync>,
    _directory: Option<TempDir>,
}

impl Shared {
    fn memory() -> Shared {
        testkit::limit_test();
        let clock = clock();
        let board = Board::on(Arc::new(Memory::new(clock.clone())), clock.clone());
        Shared { clock, handle: Box::new(move || board.clone()), _directory: None }
    }

    /// Every thread shares one handle on the file.
    fn sqlite() -> Shared {
        let (clock, directory) = (clock(), testkit::tempdir().unwrap());
        let board = open(&directory, &clock);
        Shared { clock, handle: Box::new(move || board.clone()), _directory: Some(directory) }
    }

    /// Every thread opens the file for itself, as every process does.
    fn sqlite_opened_by_each() -> Shared {
        let (clock, directory) = (clock(), testkit::tempdir().unwrap());
        let path = directory.path().join("local.db");
        let of_all = clock.clone();
        let handle = move || open_at(&path, &of_all);
        Shared { clock, handle: Box::new(handle), _directory: Some(directory) }
    }

    /// Every thread shares one handle. `None` if this machine has no server.
    #[cfg(all(unix, feature = "redis"))]
    fn redis() -> Option<Shared> {
        let shared = Shared::redis_opened_by_each()?;
        let board = shared.board();
        Some(Shared { handle: Box::new(move || board.clone()), ..shared })
    }

    /// Every thread connects for itself, as every process does. `None` if this machine has no server.
    #[cfg(all(unix, feature = "redis"))]
    fn redis_opened_by_each() -> Option<Shared> {
        testkit::limit_test();
        let (clock, url) = (clock(), testkit::redis::shared_redis()?);
        let of_all = clock.clone();
        let handle = move || {
            let clock: Arc<dyn Clock> = of_all.clone();
            // A long limit, because the test machine may have two cores and other work.
            let options = RedisOptions {
                patience: Duration::from_mins(1),
                reply_limit: Duration::from_secs(30),
                fixed_clock: Some(clock.clone()),
                ..RedisOptions::default()
            };
            Board::on(Arc::new(Redis::open(url.parse().unwrap(), &options).unwrap()), clock)
        };
        Some(Shared { clock, handle: Box::new(handle), _directory: None })
    }

    fn board(&self) -> Board {
        (self.handle)()
    }

    /// Runs `f` on this many threads at once, each with its number and its own handle.
    fn at_once<T: Send>(&self, threads: usize, f: impl Fn(usize, Board) -> T + Sync) -> Vec<T> {
        let start = Barrier::new(threads);
        std::thread::scope(|scope| {
            let (start, f) = (&start, &f);
            let running: Vec<_> = (0..threads)
                .map(|number| {
                    let board = self.board();
                    scope.spawn(move || {
                        start.wait();
                        f(number, board)
                    })
                })
                .collect();
            running.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }
}

fn clock() -> Arc<FixedClock> {
    Arc::new(FixedClock::at("2026-02-03T15:30:00Z").unwrap())
}

fn open(directory: &TempDir, clock: &Arc<FixedClock>) -> Board {
    open_at(&directory.path().join("local.db"), clock)
}

fn open_at(path: &std::path::Path, clock: &Arc<FixedClock>) -> Board {
    // A long timeout, because the test machine may have two cores and other work.
    let options = SqliteOptions { busy_timeout: Duration::from_mins(1), ..SqliteOptions::default() };
    let store = Sqlite::open(path, clock.clone() as Arc<dyn Clock>, &options).unwrap();
    Board::on(Arc::new(store), clock.clone())
}

fn register(board: &Board, name: &str) -> String {
    board.agents().register(&Register::named(name)).unwrap().agent.session_id
}

fn create(board: &Board, count: usize) {
    for number in 0..count {
        board.work().create(&Create::new(&format!("item-{number}"), "Something")).unwrap();
    }
}

fn log(board: &Board) -> Vec<Event> {
    let observation = board.events().observe(&Since::Revision(Revision::ZERO), &[]).unwrap();
    board.events().next(&observation, Revision::ZERO, usize::MAX).unwrap().unwrap().events
}

fn count(events: &[Event], event_type: &EventType) -> usize {
    events.iter().filter(|event| event.event_type == *event_type).count()
}

macro_rules! on_every_engine {
    ($($test:ident),+ $(,)?) => {
        mod memory { $(#[test] fn $test() { super::$test(&super::Shared::memory()); })+ }
        mod sqlite { $(#[test] fn $test() { super::$test(&super::Shared::sqlite()); })+ }
        mod sqlite_opened_by_each {
            $(#[test] fn $test() { super::$test(&super::Shared::sqlite_opened_by_each()); })+
        }
        #[cfg(all(unix, feature = "redis"))]
        mod redis {
            $(#[test] fn $test() { super::Shared::redis().as_ref().into_iter().for_each(super::$test); })+
        }
        #[cfg(all(unix, feature = "redis"))]
        mod redis_opened_by_each {
            $(#[test] fn $test() { super::Shared::redis_opened_by_each().as_ref().into_iter().for_each(super::$test); })+
        }
    };
}

on_every_engine![
    one_of_64_concurrent_claims_gets_the_item,
    one_of_16_concurrent_reassignments_gets_the_item,
    one_of_32_concurrent_acquires_gets_the_lock,
    contended_lock_is_never_held_twice,
    one_of_32_overlapping_reservations_succeeds,
    shared_reservations_all_succeed_and_an_exclusive_one_is_refused,
    every_item_goes_to_one_of_16_sessions,
    event_ids_are_in_the_order_of_commits,
    concurrent_heartbeat_and_sweep_leave_the_session_active,
    two_sweeps_at_once_mark_once,
    concurrent_heartbeats_with_one_idempotency_key_count_once,
];

fn one_of_64_concurrent_claims_gets_the_item(shared: &Shared) {
    let board = shared.board();
    create(&board, 1);
    let sessions: Vec<_> = (0..64).map(|number| register(&board, &format!("agent {number}"))).collect();
    let outcomes =
        shared.at_once(64, |number, board| board.work().claim(&Claim::of("item-0", &sessions[number])));
    let winners: Vec<_> = outcomes.iter().flatten().collect();
    assert_eq!(winners.len(), 1);
    let winner = winners[0].item.claimed_by.clone().unwrap();
    for refused in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        assert_eq!(refused.code(), Code::AlreadyClaimed);
        assert_eq!(refused.details().unwrap()["held_by"], winner.as_str(), "losers are told who has it");
    }
    assert_eq!(count(&log(&board), &EventType::WorkClaimed), 1);
}

fn one_of_16_concurrent_reassignments_gets_the_item(shared: &Shared) {
    let board = shared.board();
    create(&board, 1);
    let holder = register(&board, "holder");
    board.work().claim(&Claim::of("item-0", &holder)).unwrap();
    let sessions: Vec<_> = (0..16).map(|number| register(&board, &format!("agent {number}"))).collect();
    let outcomes = shared.at_once(16, |number, board| {
        board.work().reassign(&Reassign::of("item-0", &holder, &sessions[number]))
    });
    let winners: Vec<_> = outcomes.iter().flatten().collect();
    assert_eq!(winners.len(), 1);
    let winner = winners[0].item.claimed_by.clone().unwrap();
    for refused in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        assert_eq!(refused.code(), Code::AlreadyClaimed);
        assert_eq!(refused.details().unwrap()["held_by"], winner.as_str(), "losers are told who has it");
    }
    assert_eq!(board.work().status("item-0").unwrap().item, winners[0].item);
    let log = log(&board);
    assert_eq!((count(&log, &EventType::WorkReleased), count(&log, &EventType::WorkClaimed)), (1, 2));
}

fn one_of_32_concurrent_acquires_gets_the_lock(shared: &Shared) {
    let board = shared.board();
    let sessions: Vec<_> = (0..32).map(|number| register(&board, &format!("agent {number}"))).collect();
    for round in 1..=3 {
        let outcomes = shared
            .at_once(32, |number, board| board.locks().acquire(&Acquire::of("deploy", &sessions[number])));
        let winners: Vec<_> = outcomes.iter().flatten().collect();
        assert_eq!(winners.len(), 1);
        let winner = &winners[0].lock;
        for refused in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
            assert_eq!(refused.code(), Code::Held);
            assert_eq!(
                refused.details().unwrap()["held_by"],
                *winner.session_id,
                "losers are told who has it"
            );
        }
        assert_eq!(count(&log(&board), &EventType::EntryWritten), round);
        assert!(board.locks().release(&Unlock::of("deploy", &winner.session_id)).unwrap().released);
    }
}

fn contended_lock_is_never_held_twice(shared: &Shared) {
    const ROUNDS: usize = 5;
    let inside = AtomicUsize::new(0);
    let fences = shared.at_once(8, |number, board| {
        let session = register(&board, &format!("agent {number}"));
        let mut fences = Vec::new();
        for _ in 0..ROUNDS {
            let request = Acquire::of("deploy", &session);
            let taken = board.locks().acquire_waiting(&request, Duration::from_mins(2)).unwrap();
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "another thread is inside");
            fences.push(taken.lock.fence);
            std::thread::yield_now();
            assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
            let fence = Some(taken.lock.fence);
            board.locks().release(&Unlock { fence, ..Unlock::of("deploy", &session) }).unwrap();
        }
        fences
    });
    let fences: BTreeSet<_> = fences.into_iter().flatten().collect();
    assert_eq!(fences.len(), 8 * ROUNDS, "each time another one");
}

fn one_of_32_overlapping_reservations_succeeds(shared: &Shared) {
    let board = shared.board();
    let sessions: Vec<_> = (0..32).map(|number| register(&board, &format!("agent {number}"))).collect();
    // No two of them share a key: only the check of all reservations keeps them apart.
    let patterns = ["src/**", "**/*.rs", "src/lib.rs", "*/lib.*"];
    let outcomes = shared.at_once(32, |number, board| {
        board.files().reserve(&Reserve::of("/project", &[patterns[number % 4]], &sessions[number]))
    });
    let winners: Vec<_> = outcomes.iter().flatten().collect();
    assert_eq!(winners.len(), 1);
    let winner = &winners[0].reservations[0].reservation.session_id;
    for refused in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        assert_eq!(refused.code(), Code::Held);
        assert_eq!(refused.details().unwrap()["held_by"], **winner);
    }
    assert_eq!(board.files().list(&FileFilter::default()).unwrap().len(), 1);
}

fn shared_reservations_all_succeed_and_an_exclusive_one_is_refused(shared: &Shared) {
    let board = shared.board();
    let sessions: Vec<_> = (0..16).map(|number| register(&board, &format!("agent {number}"))).collect();
    let outcomes = shared.at_once(16, |number, board| {
        // The last one reserves exclusively.
        let reserve = Reserve::of("/project", &["src/**"], &sessions[number]);
        board.files().reserve(&Reserve { shared: number < 15, ..reserve }).is_ok()
    });
    let sharing = outcomes[..15].iter().filter(|got| **got).count();
    assert_eq!(sharing, if outcomes[15] { 0 } else { 15 }, "{outcomes:?}");
}

fn every_item_goes_to_one_of_16_sessions(shared: &Shared) {
    let board = shared.board();
    create(&board, 50);
    let claimed = shared.at_once(16, |number, board| {
        let next =
            ClaimNext { session: register(&board, &format!("agent {number}")), ..ClaimNext::default() };
        let mut claimed = Vec::new();
        loop {
            match board.work().claim_next(&next) {
                Ok(item) => claimed.push((item.item.item_id, item.item.fence.unwrap())),
                Err(error) if error.code() == Code::NothingAvailable => return claimed,
                Err(error) => panic!("{error}"),
            }
        }
    });
    let claimed: Vec<_> = claimed.into_iter().flatten().collect();
    let items: BTreeSet<_> = claimed.iter().map(|(item, _)| item).collect();
    assert_eq!((claimed.len(), items.len()), (50, 50), "each once");
    let events = log(&board);
    let told: BTreeMap<_, _> = events
        .iter()
        .filter(|event| event.event_type == EventType::WorkClaimed)
        .map(|event| (event.target_id.clone().unwrap(), event.id))
        .collect();
    assert_eq!(told, claimed.into_iter().collect(), "the fence is the revision of the claim");
    let open = board.work().list(&WorkFilter { statuses: vec![Status::Available], ..WorkFilter::default() });
    assert!(open.unwrap().is_empty());
}

fn event_ids_are_in_the_order_of_commits(shared: &Shared) {
    let board = shared.board();
    let sessions: Vec<_> = (0..8).map(|number| register(&board, &format!("agent {number}"))).collect();
    let seen = shared.at_once(9, |number, board| {
        if number == 8 {
            // A reader that has seen an id never sees a new event below it.
            let mut last = Revision::ZERO;
            let mut ids = Vec::new();
            while ids.len() < 8 + 8 * 20 {
                let observation = board.events().observe(&Since::Revision(last), &[]).unwrap();
                if let Some(batch) = board.events().next(&observation, last, 7).unwrap() {
                    ids.extend(batch.events.iter().map(|event| event.id.get()));
                    last = batch.last;
                }
                std::thread::yield_now();
            }
            return ids;
        }
        let mut own = Vec::new();
        for round in 0..20 {
            let beat =
                Heartbeat { progress: Some(format!("Round {round}")), ..Heartbeat::of(&sessions[number]) };
            own.push(board.agents().heartbeat(&beat).unwrap().revision.get());
        }
        own
    });
    assert_eq!(seen[8], (1..=168).collect::<Vec<_>>(), "without gaps, in order");
    for own in &seen[..8] {
        assert!(own.is_sorted(), "what one does later has a higher id");
    }
    let all: BTreeSet<_> = seen[..8].iter().flatten().collect();
    assert_eq!(all.len(), 160, "no id was given twice");
}

fn concurrent_heartbeat_and_sweep_leave_the_session_active(shared: &Shared) {
    let board = shared.board();
    let session = register(&board, "Ivy");
    create(&board, 1);
    for round in 0..100 {
        board.work().claim(&Claim::of("item-0", &session)).unwrap();
        shared.clock.advance(Duration::from_secs(301));
        let before = board.status().unwrap().revision;
        let (mut beats, mut marked) = (Vec::new(), 0);
        for outcome in shared.at_once(2, |number, board| {
            if number == 0 {
                Ok(board.agents().heartbeat(&Heartbeat::of(&session)).unwrap())
            } else {
                Err(board.sweep(&Sweep::default()).unwrap().stale_agents.len())
            }
        }) {
            match outcome {
                Ok(beat) => beats.push(beat),
                Err(count) => marked += count,
            }
        }
        let agent = board.agents().show(&session).unwrap();
        let told: Vec<_> =
            log(&board).into_iter().filter(|event| event.id > before).map(|event| event.event_type).collect();
        // Either the heartbeat came first, and the sweep found nothing; or the sweep did, and the heartbeat recovered
        // the session. A session is never marked stale after the heartbeat.
        assert_eq!(agent.agent.status, AgentStatus::Active, "round {round}");
        if beats[0].recovered {
            assert_eq!(marked, 1, "round {round}");
            assert_eq!(beats[0].lost, ["item-0"], "round {round}");
            assert!(agent.work_items.is_empty(), "round {round}");
            let expected = [EventType::AgentStale, EventType::StaleLocksReleased, EventType::AgentRecovered];
            assert_eq!(told, expected, "round {round}");
        } else {
            assert_eq!(marked, 0, "round {round}");
            assert_eq!(agent.work_items.len(), 1, "round {round}");
            assert!(told.is_empty(), "round {round}");
        }
    }
}

fn two_sweeps_at_once_mark_once(shared: &Shared) {
    let board = shared.board();
    create(&board, 20);
    for number in 0..20 {
        let session = register(&board, &format!("agent {number}"));
        board.work().claim(&Claim::of(&format!("item-{number}"), &session)).unwrap();
    }
    shared.clock.advance(Duration::from_secs(301));
    let sweeps = shared.at_once(4, |number, board| {
        if number % 2 == 0 { board.sweep(&Sweep::default()).unwrap() } else { board.try_sweep(None) }
    });
    let marked: Vec<_> = sweeps.iter().flat_map(|swept| &swept.stale_agents).collect();
    assert_eq!(marked.len(), 20);
    let events = log(&board);
    assert_eq!(count(&events, &EventType::AgentStale), 20);
    assert_eq!(count(&events, &EventType::StaleLocksReleased), 20);
}

fn concurrent_heartbeats_with_one_idempotency_key_count_once(shared: &Shared) {
    let board = shared.board();
    let session = register(&board, "Ivy");
    let beat = Heartbeat {
        progress: Some("Half done".to_owned()),
        operation: Some("op-1".to_owned()),
        ..Heartbeat::of(&session)
    };
    let answers = shared.at_once(8, |_, board| board.agents().heartbeat(&beat).unwrap());
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "the same answer for every caller");
    assert_eq!(count(&log(&board), &EventType::HeartbeatReceived), 1);
}
