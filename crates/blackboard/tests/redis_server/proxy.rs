//! Connections that break at every point of a commit: it is applied once, or its outcome is reported as unknown.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use blackboard::agent::Register;
use blackboard::clock::FixedClock;
use blackboard::lock::{Acquire, Release};
use blackboard::store::redis::RedisOptions;
use blackboard::work::{Claim, Create};
use blackboard::{Board, CheckedSubject, Code, Hint};
use testkit::proxy::{Fault, Proxy, Target};
use testkit::redis::RedisServer;
use testkit::{scale, wait_until};

use crate::followers::wait_until_blocked;
use crate::{log, open, try_open, value, write};

fn options() -> RedisOptions {
    RedisOptions {
        patience: Duration::from_secs(30),
        reply_limit: Duration::from_millis(500),
        ..RedisOptions::default()
    }
}

/// A wait of 2 s at most, on a busy machine.
const LONGEST: Duration = Duration::from_secs(9);

#[test]
fn commit_is_applied_once_wherever_its_connection_breaks() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let proxy = Proxy::before(&server);
    let board = try_open(&proxy.url("a"), &options()).unwrap();
    let requests = [0, 1, 5, 50, 200, 500, 900, 1200, 1400].map(Fault::CutRequest);
    let replies = [0, 1, 4, 9, 12, 15].map(Fault::CutReply);
    let (short, long) = (Duration::from_millis(50), Duration::from_millis(700));
    let others = [
        Fault::SwallowRequest,
        Fault::SwallowReply,
        Fault::DelayRequest(short),
        Fault::DelayReply(short),
        // Longer than the client waits for one reply.
        Fault::DelayRequest(long),
        Fault::DelayReply(long),
        Fault::HalfCloseBefore,
        Fault::HalfCloseAfter,
        Fault::HalfCloseReply,
        Fault::ReplayBefore,
        Fault::ReplayInstead,
    ];
    let faults = requests.into_iter().chain(replies).chain(others);
    let mut count = 0;
    for fault in faults {
        proxy.fail_next(fault);
        board.scope("team").increment("x", 1).unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        assert!(proxy.has_failed(), "{fault:?}");
        count += 1;
        assert_eq!(value(&board, "x"), Some(count), "{fault:?}");
    }
    assert_eq!(i64::try_from(log(&board).len()).unwrap(), count, "one event each");
}

#[test]
fn commit_whose_answer_never_comes_is_reported_as_unknown() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let proxy = Proxy::before(&server);
    let options = RedisOptions { patience: Duration::from_millis(500), ..options() };
    let board = try_open(&proxy.url("a"), &options).unwrap();
    write(&board, "x", 1).unwrap();
    proxy.fail_next(Fault::CutReplyAndRefuse);
    let error = write(&board, "x", 2).unwrap_err();
    assert_eq!((error.code(), error.code().exit_code()), (Code::OutcomeUnknown, 1), "{error}");
    assert_eq!(value(&open(&server.url("a")), "x"), Some(2), "it was applied");
}

#[test]
fn unknown_outcome_names_what_to_check_and_the_new_session() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let direct = open(&server.url("a"));
    let ivy = direct.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
    direct.work().create(&Create::new("x", "Item")).unwrap();
    let unknown = |event: &'static str, call: &dyn Fn(&Board) -> blackboard::Result<()>| {
        let proxy = Proxy::before(&server);
        let options = RedisOptions { patience: Duration::from_millis(500), ..options() };
        let board = try_open(&proxy.url("a"), &options).unwrap();
        proxy.fail_next_of(Target::Event(event), Fault::CutReplyAndRefuse);
        let error = call(&board).unwrap_err();
        assert_eq!(error.code(), Code::OutcomeUnknown, "{error}");
        error
    };
    let claimed = unknown("work_claimed", &|board| board.work().claim(&Claim::of("x", &ivy)).map(drop));
    let item = Hint::CheckWhetherDone(CheckedSubject::Item("x".to_owned()));
    assert_eq!(claimed.hint(), Some(&item));
    let registered =
        unknown("agent_registered", &|board| board.agents().register(&Register::named("Oak")).map(drop));
    let Some(Hint::CheckWhetherDone(CheckedSubject::Session(session))) = registered.hint() else { panic!() };
    assert!(registered.to_string().ends_with(&format!("; the session is {session}")), "{registered}");
    assert_eq!(direct.agents().show(session).unwrap().agent.agent_name, "Oak");
    let written = unknown("entry_written", &|board| write(board, "x", 2).map(drop));
    assert_eq!(written.hint(), Some(&Hint::RepeatWithOperation));
}

#[test]
fn change_that_was_never_sent_is_not_reported_as_unknown() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let proxy = Proxy::before(&server);
    let options = RedisOptions { patience: Duration::from_millis(500), ..options() };
    let board = try_open(&proxy.url("a"), &options).unwrap();
    proxy.refuse();
    proxy.cut_all();
    assert_eq!(write(&board, "x", 1).unwrap_err().code(), Code::ServerUnavailable);
    assert_eq!(try_open(&proxy.url("a"), &options).err().unwrap().code(), Code::ServerUnavailable);
    assert_eq!(value(&open(&server.url("a")), "x"), None);
}

#[test]
fn commit_that_arrives_again_later_is_not_applied_again() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let proxy = Proxy::before(&server);
    let board = try_open(&proxy.url("a"), &options()).unwrap();
    board.scope("team").increment("x", 1).unwrap();
    let first = proxy.last_commit();
    assert!(proxy.deliver(&first).contains("ok"), "the answer that was lost");
    assert_eq!(value(&board, "x"), Some(1));
    board.scope("team").increment("x", 1).unwrap();
    let answer = proxy.deliver(&first);
    assert!(answer.contains("conflict") || answer.contains("old"), "{answer}");
    assert_eq!((value(&board, "x"), log(&board).len()), (Some(2), 2));
}

#[test]
fn late_copy_of_a_commit_whose_repetition_was_refused_is_not_applied() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let proxy = Proxy::before(&server);
    // The time stands still: otherwise a copy that is later than two seconds is refused for that.
    let clock = Arc::new(FixedClock::at("2026-02-03T15:30:00Z").unwrap());
    let options = RedisOptions { fixed_clock: Some(clock), ..options() };
    let board = try_open(&proxy.url("a"), &options).unwrap();
    let other = try_open(&server.url("a"), &options).unwrap();
    proxy.fail_next_of(Target::Event("work_created"), Fault::HoldRequest);
    let refused = thread::scope(|scope| {
        let creating = scope.spawn(|| board.work().create(&Create::new("x", "Of the late copy")));
        wait_until("a first copy that is held back", || proxy.has_failed().then_some(()));
        other.work().create(&Create::new("x", "Of another process")).unwrap();
        proxy.accept();
        creating.join().unwrap().unwrap_err()
    });
    assert_eq!(refused.code(), Code::AlreadyExists, "{refused}");
    // A deleted item leaves no row behind: everything is as the late copy expects it.
    other.work().delete("x", false, None).unwrap();
    let before = log(&other).len();
    let answer = proxy.deliver_held();
    assert!(answer.contains("conflict"), "{answer}");
    assert_eq!(log(&other).len(), before, "nothing was applied");
    // Only this commit is refused, not the next one of the same connection.
    board.work().create(&Create::new("x", "Of the next commit")).unwrap();
}

#[test]
fn replayed_connection_changes_nothing_even_if_everything_is_as_before() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let proxy = Proxy::before(&server);
    let board = try_open(&proxy.url("a"), &options()).unwrap();
    let session = board.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
    // A lock that is acquired and released leaves nothing that a copy of these requests could conflict with.
    for _ in 0..3 {
        board.locks().acquire(&Acquire::of("lock", &session)).unwrap();
        board.locks().release(&Release::of("lock", &session)).unwrap();
    }
    proxy.fail_next(Fault::ReplayBefore);
    let before = log(&board).len();
    write(&board, "x", 1).unwrap();
    assert!(proxy.has_failed());
    assert_eq!(log(&board).len(), before + 1, "only the new change");
}

#[test]
fn waiting_thread_misses_nothing_when_its_connection_is_cut() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let proxy = Proxy::before(&server);
    let (board, other) = (try_open(&proxy.url("a"), &options()).unwrap(), open(&server.url("a")));
    let mut seen = write(&other, "x", 0).unwrap();
    for round in 1..6 {
        let written = thread::scope(|scope| {
            let waiting = scope.spawn(|| board.wait(seen, Duration::from_mins(2)).unwrap());
            wait_until_blocked(&server, 1);
            proxy.cut_all();
            let (written, began) = (write(&other, "x", round).unwrap(), Instant::now());
            assert_eq!(waiting.join().unwrap(), written);
            assert!(began.elapsed() < LONGEST, "{:?}", began.elapsed());
            written
        });
        seen = written;
    }
}

#[test]
fn event_wakes_a_waiting_thread_that_would_not_look_for_itself_so_soon() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let (board, other) = (open(&server.url("a")), open(&server.url("a")));
    let mut seen = write(&other, "x", 0).unwrap();
    let mut delays: Vec<Duration> = Vec::new();
    for number in 1..=50 {
        seen = thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let revision = board.wait(seen, Duration::from_mins(2)).unwrap();
                (revision, Instant::now())
            });
            wait_until_blocked(&server, 1);
            let (written, began) = (write(&other, "x", number).unwrap(), Instant::now());
            let (woken, ended) = waiting.join().unwrap();
            assert_eq!(woken, written);
            delays.push(ended.saturating_duration_since(began));
            written
        });
    }
    delays.sort_unstable();
    // A thread that is not woken waits until the server ends its request, which takes up to a second.
    let limit = Duration::from_millis(250).mul_f64(testkit::patience().as_secs_f64() / 30.0);
    assert!(delays[25] < limit, "{delays:?}");
}

/// Faults of the connection that waits for events.
fn faults_of_a_listener() -> [Fault; 9] {
    [
        Fault::CutRequest(10),
        Fault::CutReply(0),
        Fault::CutReply(30),
        Fault::SwallowReply,
        Fault::SwallowRequest,
        Fault::DelayReply(Duration::from_millis(700)),
        Fault::HalfCloseBefore,
        Fault::HalfCloseAfter,
        Fault::HalfCloseReply,
    ]
}

#[test]
fn waiting_thread_misses_nothing_whatever_happens_to_its_connection() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let proxy = Proxy::before(&server);
    let (board, other) = (try_open(&proxy.url("a"), &options()).unwrap(), open(&server.url("a")));
    let mut seen = write(&other, "x", 0).unwrap();
    for (round, fault) in (1..).zip(faults_of_a_listener()) {
        seen = thread::scope(|scope| {
            proxy.fail_next_of(Target::Listen, fault);
            let waiting = scope.spawn(|| board.wait(seen, Duration::from_mins(2)).unwrap());
            wait_until(&format!("a listener with {fault:?}"), || proxy.has_failed().then_some(()));
            let (written, began) = (write(&other, "x", round).unwrap(), Instant::now());
            assert_eq!(waiting.join().unwrap(), written, "{fault:?}");
            // The listener waits 2 s for a reply. A lost wake-up would take 2 min.
            assert!(began.elapsed() < LONGEST, "{fault:?}: {:?}", began.elapsed());
            written
        });
    }
}

#[test]
fn wait_ends_at_its_timeout_whatever_happens_to_its_connection() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let proxy = Proxy::before(&server);
    let board = try_open(&proxy.url("a"), &options()).unwrap();
    let seen = write(&board, "x", 0).unwrap();
    for fault in faults_of_a_listener() {
        proxy.fail_next_of(Target::Listen, fault);
        // A thread that begins to wait may find a request that is not answered yet.
        wait_until(&format!("a listener with {fault:?}"), || {
            let began = Instant::now();
            assert_eq!(board.wait(seen, Duration::from_millis(1500)).unwrap(), seen, "{fault:?}");
            assert!(began.elapsed() < LONGEST, "{fault:?}: {:?}", began.elapsed());
            proxy.has_failed().then_some(())
        });
    }
}

#[test]
fn call_ends_at_its_limit_whatever_happens_to_its_connection() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let options = RedisOptions { patience: Duration::from_millis(700), ..options() };
    for fault in [Fault::SwallowRequest, Fault::SwallowReply, Fault::DelayReply(Duration::from_secs(10))] {
        let proxy = Proxy::before(&server);
        let board = try_open(&proxy.url("a"), &options).unwrap();
        write(&board, "x", 0).unwrap();
        proxy.fail_all(fault);
        let began = Instant::now();
        assert_eq!(write(&board, "x", 1).unwrap_err().code(), Code::OutcomeUnknown, "{fault:?}");
        assert!(began.elapsed() < LONGEST, "{fault:?}: {:?}", began.elapsed());
    }
}

#[test]
fn commit_that_arrives_after_its_client_gave_up_is_not_applied_twice() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let proxy = Proxy::before(&server);
    let board = try_open(&proxy.url("a"), &options()).unwrap();
    for count in 1..6 {
        proxy.fail_next(Fault::DelayRequestPastItsClient);
        board.scope("team").increment("x", 1).unwrap();
        assert!(proxy.has_failed());
        assert_eq!(value(&board, "x"), Some(count));
    }
    assert_eq!(log(&board).len(), 5, "one event each");
}

#[test]
fn changes_through_random_faults_are_made_once() {
    const WRITERS: usize = 4;
    let Some(server) = RedisServer::start(&[]) else { return };
    let (proxy, each) = (Proxy::before(&server), scale::size(50, 2000));
    open(&server.url("a"));
    proxy.fail_at_random(7, 4);
    let answers: Vec<(i64, i64)> = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let url = proxy.url("a");
                scope.spawn(move || {
                    let board = try_open(&url, &options()).unwrap();
                    let (key, mut count, mut unknown) = (format!("counter-{writer}"), 0, 0);
                    for _ in 0..each {
                        // Half of them meet each other.
                        let key = if count % 2 == 0 { key.as_str() } else { "counter" };
                        match board.scope("team").increment(key, 1) {
                            Ok(_) => count += 1,
                            Err(error) if error.code() == Code::OutcomeUnknown => unknown += 1,
                            Err(error) => panic!("a writer has to recover: {error}"),
                        }
                    }
                    (count, unknown)
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    assert!(proxy.faults() > each / 2, "{} faults", proxy.faults());
    let board = open(&server.url("a"));
    let keys = (0..WRITERS).map(|writer| format!("counter-{writer}")).chain(["counter".to_owned()]);
    let stored: i64 = keys.map(|key| value(&board, &key).unwrap_or(0)).sum();
    let (count, unknown): (Vec<i64>, Vec<i64>) = answers.into_iter().unzip();
    let (count, unknown): (i64, i64) = (count.iter().sum(), unknown.iter().sum());
    assert!((count..=count + unknown).contains(&stored), "{count} + {unknown} unknown, but {stored}");
    assert_eq!(i64::try_from(log(&board).len()).unwrap(), stored, "one event each");
    println!("redis-proxy: {count} changes, {unknown} unknown, {} faults", proxy.faults());
}
