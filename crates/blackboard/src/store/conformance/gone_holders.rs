//! Holders whose process is gone: a call that is refused because of such a session sweeps it and retries. The process
//! has to be provably gone, and the session without a heartbeat of its own for 10 s.

use super::*;
use crate::agent::CheckIn;
use crate::entry::{Operation, Txn};
use crate::error::Refusal;
use crate::file::{Check, Reserve};
use crate::hint::Hint;
use crate::lock::Acquire;
use crate::store::{Key, Prefetch};
use crate::work::{ClaimNext, Reassign};

on_every_engine![
    every_call_that_a_gone_session_refuses_succeeds_ten_seconds_after_its_last_heartbeat,
    check_releases_files_of_a_gone_session,
    holdings_of_several_gone_sessions_are_released,
    process_with_a_reused_pid_is_gone,
    session_without_a_provably_gone_process_keeps_its_holdings,
    only_its_own_heartbeat_keeps_the_holdings_of_a_gone_session,
    a_session_that_writes_or_uses_tools_is_never_swept_by_a_refused_call,
    a_session_is_never_swept_by_its_own_call,
    a_delegate_that_registers_never_sweeps_its_parent,
    a_commit_that_only_reads_a_gone_holder_sweeps_it,
    claim_next_sweeps_only_holders_of_matching_items,
    session_that_is_not_live_holds_nothing,
    a_holder_that_is_stale_and_still_named_refuses_after_one_retry,
    changed_clock_sweeps_no_holder,
    a_heartbeat_ahead_of_the_clock_keeps_no_holdings_of_a_gone_session,
    a_refused_call_begins_the_threshold_of_a_heartbeat_ahead_of_the_clock,
    one_of_two_calls_sweeps_a_gone_session,
    a_wait_for_a_lock_gets_it_when_the_ten_seconds_have_passed,
    a_wait_that_times_out_names_the_gone_process,
    the_sweep_is_reported_to_the_observer,
];

const LONG: Duration = Duration::from_mins(2);
const WORKTREE: &str = "/home/ivy/project";

/// A session that holds one of everything, and whose process is gone.
fn gone(fixture: &Fixture) -> String {
    let ivy = fixture.session_of_process("Ivy", 10);
    for id in ["x", "y"] {
        fixture.item(id);
        fixture.claim(id, &ivy);
    }
    fixture.board.locks().acquire(&Acquire::of("deploy", &ivy)).unwrap();
    fixture.board.files().reserve(&Reserve::of(WORKTREE, &["src/**"], &ivy)).unwrap();
    fixture.scope_of(&ivy).write(&Write { lease: true, ..a_write("leased", "1") }).unwrap();
    fixture.processes.end(10);
    ivy
}

/// A call that is refused because of the holdings of [`gone`].
type Call = fn(&Fixture, &str) -> Result<()>;

const CALLS: &[(&str, Call)] = &[
    ("claim", |fixture, oak| fixture.board.work().claim(&Claim::of("x", oak)).map(drop)),
    ("claim the next item", |fixture, oak| {
        let next = ClaimNext { session: oak.to_owned(), ..ClaimNext::default() };
        fixture.board.work().claim_next(&next).map(drop)
    }),
    ("reassign", |fixture, oak| fixture.board.work().reassign(&Reassign::of("x", oak, oak)).map(drop)),
    ("delete an item", |fixture, oak| fixture.board.work().delete("x", false, Some(oak)).map(drop)),
    ("acquire", |fixture, oak| fixture.board.locks().acquire(&Acquire::of("deploy", oak)).map(drop)),
    ("acquire, and wait no time", |fixture, oak| {
        fixture.board.locks().acquire_waiting(&Acquire::of("deploy", oak), Duration::ZERO).map(drop)
    }),
    ("reserve", |fixture, oak| {
        fixture.board.files().reserve(&Reserve::of(WORKTREE, &["src/lib.rs"], oak)).map(drop)
    }),
    ("write", |fixture, oak| fixture.scope_of(oak).write(&a_write("leased", "2")).map(drop)),
    ("write if absent", |fixture, oak| {
        fixture.scope_of(oak).write(&Write { if_absent: true, ..a_write("leased", "2") }).map(drop)
    }),
    ("append", |fixture, oak| fixture.scope_of(oak).append("leased", &Value::null()).map(drop)),
    ("clear", |fixture, oak| fixture.scope_of(oak).clear("*").map(drop)),
    ("txn", |fixture, oak| {
        let write = Operation::Write { scope: "team".to_owned(), write: a_write("leased", "2") };
        let txn = Txn { then: vec![write], ..Txn::default() };
        fixture.board.txn(&txn, &Actor::session(oak)).map(drop)
    }),
    ("transaction", |fixture, oak| {
        fixture.board.transaction(|tx| {
            tx.acting_as(Actor::session(oak))?;
            tx.scope("team").write(&a_write("leased", "2"))
        })
    }),
];

fn every_call_that_a_gone_session_refuses_succeeds_ten_seconds_after_its_last_heartbeat(fixture: &Fixture) {
    for (name, call) in CALLS {
        let ivy = gone(fixture);
        let oak = fixture.session_of_process("Oak", 11);
        fixture.clock.advance(Duration::from_millis(9_999));
        let (refused, recorded) = fixture.events_of(|| call(fixture, &oak).unwrap_err());
        assert!(recorded.is_empty(), "{name}: {recorded:?}");
        assert_eq!(fixture.agent(&ivy).status, AgentStatus::Active, "{name}");
        // No single session is the reason why nothing is available.
        if refused.code() != Code::NothingAvailable {
            let expected = Hint::EndGoneHolder { session: ivy.clone(), pid: 10 };
            assert_eq!(refused.hint(), Some(&expected), "{name}");
            let details = refused.details().unwrap();
            let found = (&details["held_by"], &details["holder_process"]);
            assert_eq!(found, (&ivy.as_str().into(), &"gone".into()), "{name}");
        }

        fixture.clock.advance(Duration::from_millis(1));
        let (done, recorded) = fixture.events_of(|| call(fixture, &oak));
        done.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(recorded[0], EventType::AgentStale, "{name}");
        assert_eq!(fixture.agent(&ivy).status, AgentStatus::Stale, "{name}");
        // Released for the next round.
        fixture.board.agents().deregister(&oak).unwrap();
        fixture.board.agents().deregister(&ivy).unwrap();
        for id in ["x", "y"] {
            let _ = fixture.board.work().delete(id, true, None);
        }
        fixture.scope().clear("*").unwrap();
    }
}

fn check_releases_files_of_a_gone_session(fixture: &Fixture) {
    let ivy = gone(fixture);
    let oak = fixture.session_of_process("Oak", 11);
    let check = Check::of(WORKTREE, &["src/lib.rs"], Some(&oak));
    fixture.pass(9);
    assert!(!fixture.board.files().check(&check).unwrap().free);
    assert_eq!(fixture.board.files().conflicts(&check).unwrap()[0].session_id, ivy);
    fixture.pass(1);
    assert!(fixture.board.files().check(&check).unwrap().free);
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Stale);

    let elm = fixture.session_of_process("Elm", 12);
    fixture.board.files().reserve(&Reserve::of(WORKTREE, &["src/**"], &elm)).unwrap();
    fixture.processes.end(12);
    fixture.pass(10);
    assert_eq!(fixture.board.files().conflicts(&check).unwrap(), []);
    assert_eq!(fixture.agent(&elm).status, AgentStatus::Stale);
}

fn holdings_of_several_gone_sessions_are_released(fixture: &Fixture) {
    let gone: Vec<_> = (20..25)
        .map(|pid| {
            let session = fixture.session_of_process(&format!("agent {pid}"), pid);
            let pattern = format!("src/{pid}/**");
            fixture.board.files().reserve(&Reserve::of(WORKTREE, &[&pattern], &session)).unwrap();
            fixture.processes.end(pid);
            session
        })
        .collect();
    let oak = fixture.session_of_process("Oak", 11);
    fixture.pass(10);
    fixture.board.files().reserve(&Reserve::of(WORKTREE, &["src/**"], &oak)).unwrap();
    for session in gone {
        assert_eq!(fixture.agent(&session).status, AgentStatus::Stale);
    }
}

fn acquire(fixture: &Fixture, session: &str) -> Result<crate::lock::Acquired> {
    fixture.board.locks().acquire(&Acquire::of("deploy", session))
}

/// A session of this process that holds the lock, and another one.
fn holder_and_other(fixture: &Fixture) -> (String, String) {
    let ivy = fixture.session_of_process("Ivy", 10);
    acquire(fixture, &ivy).unwrap();
    (ivy, fixture.session_of_process("Oak", 11))
}

fn process_with_a_reused_pid_is_gone(fixture: &Fixture) {
    let (_, oak) = holder_and_other(fixture);
    fixture.processes.start(10);
    fixture.pass(10);
    assert!(acquire(fixture, &oak).unwrap().acquired);
}

fn session_without_a_provably_gone_process_keeps_its_holdings(fixture: &Fixture) {
    let (ivy, oak) = holder_and_other(fixture);
    let known = fixture.agent(&ivy);
    let mark = |change: fn(&mut crate::process::ProcessIdentity)| {
        let mut mark = known.process.clone().unwrap();
        change(&mut mark);
        Some(mark)
    };
    fixture.processes.end(10);
    for (why, pid, process) in [
        ("no PID", None, None),
        ("not seen alive at registration", Some(10), None),
        ("another host", Some(10), mark(|mark| mark.host = "elsewhere".to_owned())),
        ("another boot", Some(10), mark(|mark| mark.boot = "before".to_owned())),
        ("another namespace", Some(10), mark(|mark| mark.namespace = "container".to_owned())),
        ("a live process", Some(11), fixture.agent(&oak).process),
    ] {
        fixture.beat(&ivy);
        let agent = fixture.agent(&ivy);
        fixture.put(&[Agent { pid, process, ..agent }.into()]);
        fixture.pass(60);
        assert_eq!(code(acquire(fixture, &oak)), Code::Held, "{why}");
        assert_eq!(fixture.agent(&ivy).status, AgentStatus::Active, "{why}");
    }
}

fn only_its_own_heartbeat_keeps_the_holdings_of_a_gone_session(fixture: &Fixture) {
    let (ivy, oak) = holder_and_other(fixture);
    fixture.processes.end(10);
    fixture.pass(9);
    fixture.beat(&ivy);
    fixture.pass(9);
    assert_eq!(code(acquire(fixture, &oak)), Code::Held);
    // Another session saw it alive, as a sweep does that finds its process running.
    let agent = fixture.agent(&ivy);
    fixture.put(&[Agent { last_seen_at: fixture.now(), ..agent }.into()]);
    fixture.pass(1);
    assert!(acquire(fixture, &oak).unwrap().acquired);
}

fn a_session_that_writes_or_uses_tools_is_never_swept_by_a_refused_call(fixture: &Fixture) {
    let signs: [fn(&Fixture, &str); 3] = [
        |fixture, ivy| drop(fixture.scope_of(ivy).write(&a_write("note", "1")).unwrap()),
        |fixture, ivy| drop(acquire(fixture, ivy).unwrap()),
        |fixture, ivy| drop(fixture.board.agents().check_in(&CheckIn::of(ivy)).unwrap()),
    ];
    for (index, sign) in signs.iter().enumerate() {
        let (ivy, oak) = holder_and_other(fixture);
        fixture.processes.end(10);
        for second in (6..=60).step_by(6) {
            fixture.pass(3);
            // Another session saw it, which neither counts nor hides its own activity.
            let agent = fixture.agent(&ivy);
            fixture.put(&[Agent { last_seen_at: fixture.now(), ..agent }.into()]);
            fixture.pass(3);
            assert_eq!(code(acquire(fixture, &oak)), Code::Held, "sign {index} after {second} s");
            sign(fixture, &ivy);
        }
        assert_eq!(fixture.agent(&ivy).status, AgentStatus::Active, "sign {index}");
        for session in [ivy, oak] {
            fixture.board.agents().deregister(&session).unwrap();
        }
    }
}

fn a_delegate_that_registers_never_sweeps_its_parent(fixture: &Fixture) {
    let ivy = gone(fixture);
    fixture.pass(60);
    fixture.processes.start(11);
    let delegate = Register { pid: Some(11), parent: Some(ivy.clone()), ..Register::named("Ivy (delegate)") };
    let refused = fixture.board.locks().acquire(&Acquire::registering("deploy", delegate));
    assert_eq!(code(refused), Code::Held);
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Active);
}

fn a_commit_that_only_reads_a_gone_holder_sweeps_it(fixture: &Fixture) {
    let (ivy, _) = holder_and_other(fixture);
    fixture.processes.end(10);
    fixture.pass(10);
    let key = Key::Agent(ivy.clone());
    // The announced reads of a verb say nothing about its session.
    fixture
        .board
        .commit("test", &[Prefetch::Row(key.clone())], |tx| {
            let agent = tx.row::<Agent>(&key)?.unwrap();
            let held = || Refusal::new(Code::Held, "held").held_by(agent.session_id.clone(), "Ivy", None);
            if agent.status.is_live() { Err(held().into()) } else { Ok((Changes::new(), ())) }
        })
        .unwrap();
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Stale);
}

fn claim_next_sweeps_only_holders_of_matching_items(fixture: &Fixture) {
    let ivy = gone(fixture);
    let elm = fixture.session_of_process("Elm", 12);
    let urgent = Create { priority: Some(Priority::P1), ..Create::new("urgent", "Urgent") };
    fixture.board.work().create(&urgent).unwrap();
    fixture.claim("urgent", &elm);
    fixture.processes.end(12);
    let oak = fixture.session_of_process("Oak", 11);
    fixture.pass(10);
    let next = ClaimNext { session: oak, priority: Some(Priority::P1), ..ClaimNext::default() };
    assert_eq!(fixture.board.work().claim_next(&next).unwrap().item.item_id, "urgent");
    assert_eq!(fixture.agent(&elm).status, AgentStatus::Stale);
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Active);
    assert_eq!(code(fixture.board.work().claim_next(&next)), Code::NothingAvailable);
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Active);
}

fn session_that_is_not_live_holds_nothing(fixture: &Fixture) {
    let (ivy, oak) = holder_and_other(fixture);
    assert!(!fixture.board.sweep_if_gone(&ivy, OnBusy::Fail).unwrap(), "alive");
    fixture.processes.end(10);
    fixture.pass(10);
    acquire(fixture, &oak).unwrap();
    // As for a call that was refused before another one swept the session.
    assert!(fixture.board.sweep_if_gone(&ivy, OnBusy::Fail).unwrap(), "stale");
    fixture.board.agents().deregister(&ivy).unwrap();
    assert!(fixture.board.sweep_if_gone(&ivy, OnBusy::Fail).unwrap(), "completed");
    assert!(fixture.board.sweep_if_gone("no such session", OnBusy::Fail).unwrap(), "missing");
}

fn a_holder_that_is_stale_and_still_named_refuses_after_one_retry(fixture: &Fixture) {
    let (ivy, oak) = holder_and_other(fixture);
    fixture.item("x");
    fixture.claim("x", &ivy);
    // No verb does this.
    let agent = fixture.agent(&ivy);
    fixture.put(&[Agent { status: AgentStatus::Stale, ..agent }.into()]);
    assert_eq!(code(fixture.board.work().claim(&Claim::of("x", &oak))), Code::AlreadyClaimed);
    let next = ClaimNext { session: oak, ..ClaimNext::default() };
    assert_eq!(code(fixture.board.work().claim_next(&next)), Code::NothingAvailable);
}

fn a_session_is_never_swept_by_its_own_call(fixture: &Fixture) {
    let ivy = gone(fixture);
    fixture.pass(60);
    let own = Acquire { refuse_own: true, ..Acquire::of("deploy", &ivy) };
    assert_eq!(code(fixture.board.locks().acquire(&own)), Code::Held);
    let absent = Write { if_absent: true, ..a_write("leased", "2") };
    assert_eq!(code(fixture.scope_of(&ivy).write(&absent)), Code::AlreadyExists);
    assert_eq!(code(fixture.board.work().delete("x", false, Some(&ivy))), Code::InUse);
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Active);
}

fn changed_clock_sweeps_no_holder(fixture: &Fixture) {
    let (ivy, oak) = holder_and_other(fixture);
    fixture.processes.end(10);
    // The monotonic clock stops, as while the machine sleeps.
    fixture.clock.set(fixture.now().plus(Duration::from_hours(1)));
    assert_eq!(code(acquire(fixture, &oak)), Code::Held);
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Active);
    fixture.pass(300);
    assert!(acquire(fixture, &oak).unwrap().acquired);
}

fn a_heartbeat_ahead_of_the_clock_keeps_no_holdings_of_a_gone_session(fixture: &Fixture) {
    let (ivy, oak) = holder_and_other(fixture);
    fixture.set_heartbeat_ahead(&ivy, 3600);
    assert_eq!(code(acquire(fixture, &oak)), Code::Held, "its process runs");
    fixture.set_heartbeat_ahead(&ivy, 3600);
    fixture.processes.end(10);
    assert!(acquire(fixture, &oak).unwrap().acquired);
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Stale);
}

fn a_refused_call_begins_the_threshold_of_a_heartbeat_ahead_of_the_clock(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session_of_process("Oak", 11));
    acquire(fixture, &ivy).unwrap();
    fixture.set_heartbeat_ahead(&ivy, 3600);
    assert_eq!(code(acquire(fixture, &oak)), Code::Held);
    fixture.pass(299);
    fixture.board.sweep_with_next_call(Some(&oak));
    assert_eq!(code(acquire(fixture, &oak)), Code::Held);
    fixture.pass(1);
    fixture.board.sweep_with_next_call(Some(&oak));
    assert!(acquire(fixture, &oak).unwrap().acquired);
}

fn one_of_two_calls_sweeps_a_gone_session(fixture: &Fixture) {
    let (_, oak) = holder_and_other(fixture);
    let elm = fixture.session_of_process("Elm", 12);
    fixture.processes.end(10);
    fixture.pass(10);
    let acquired = std::thread::scope(|scope| {
        let threads = [&oak, &elm].map(|session| scope.spawn(|| acquire(fixture, session).is_ok()));
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|got| *got).count()
    });
    assert_eq!(acquired, 1);
    let stale = fixture.events().into_iter().filter(|event| event.event_type == EventType::AgentStale);
    assert_eq!(stale.count(), 1);
}

fn a_wait_for_a_lock_gets_it_when_the_ten_seconds_have_passed(fixture: &Fixture) {
    let (ivy, oak) = holder_and_other(fixture);
    fixture.processes.end(10);
    std::thread::scope(|scope| {
        let locks = fixture.board.locks();
        let (refused, is_refused) = std::sync::mpsc::channel();
        let waiting = scope.spawn(move || {
            let go_on = || refused.send(()).is_ok();
            locks.acquire_waiting_while(&Acquire::of("deploy", &oak), LONG, go_on).unwrap()
        });
        // Signaled only after the lock was refused: from here on only the wait itself can acquire it.
        is_refused.recv_timeout(patience()).expect("the first attempt was not refused");
        fixture.pass(10);
        assert!(waiting.join().unwrap().is_some_and(|lock| lock.acquired));
        drop(is_refused);
    });
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Stale);
}

fn a_wait_that_times_out_names_the_gone_process(fixture: &Fixture) {
    let (_, oak) = holder_and_other(fixture);
    fixture.processes.end(10);
    let locks = fixture.board.locks();
    for timeout in [Duration::ZERO, Duration::from_millis(20)] {
        let refused = locks.acquire_waiting(&Acquire::of("deploy", &oak), timeout).unwrap_err();
        assert_eq!(refused.code(), Code::TimedOut);
        assert!(matches!(refused.hint(), Some(Hint::EndGoneHolder { pid: 10, .. })), "{refused:?}");
    }
}

fn the_sweep_is_reported_to_the_observer(fixture: &Fixture) {
    let (_, oak) = holder_and_other(fixture);
    fixture.item("x");
    fixture.processes.end(10);
    fixture.pass(10);
    let (reports, reported) = std::sync::mpsc::channel();
    let board = fixture.board.clone().with_sweep_observer(move |swept| reports.send(swept.clone()).unwrap());
    board.work().claim(&Claim::of("x", &oak)).unwrap();
    assert!(reported.try_recv().is_err(), "nothing was in the way");
    board.locks().acquire(&Acquire::of("deploy", &oak)).unwrap();
    let swept = reported.try_recv().unwrap();
    assert_eq!(swept.stale_agents[0].agent_name, "Ivy");
    assert_eq!(swept.stale_agents[0].released_leases[0].key, "deploy");
    assert!(reported.try_recv().is_err());
}
