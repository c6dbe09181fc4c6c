//! Locks: one session holds a lock at a time, it is released with the session, and an old fence token is refused.

use super::*;
use crate::agent::{AgentFilter, AgentStatus, label, short_id};
use crate::entry::{Actor, Comparison, Expected, FenceToken, LOCKS, Operation, Query, Txn, Write};
use crate::hint::Hint;
use crate::lock::{Acquire, Acquired, Lock, Release};

on_every_engine![
    lock_goes_to_one_session_with_a_fence_token,
    repeated_acquire_reports_since_when_the_lock_is_held,
    repeated_acquire_with_a_ttl_restarts_it,
    a_refusal_because_of_a_gone_process_says_how_to_release_its_holdings,
    programs_that_share_a_session_can_exclude_each_other,
    a_refused_lock_names_its_holder,
    a_refused_lock_leaves_no_new_session,
    a_new_session_waits_unregistered_until_it_gets_the_lock,
    only_a_live_session_acquires_a_lock,
    lock_is_released_once,
    old_fence_token_releases_nothing,
    lock_of_another_session_cannot_be_released,
    expired_lock_is_reported_before_it_is_acquired_again,
    a_lock_ends_with_its_session,
    sweep_releases_locks_of_stale_agents,
    old_fence_token_is_refused_on_every_path,
    names_of_locks_are_keys,
    only_lock_verbs_change_locks,
    no_entry_has_the_key_of_a_lock,
    waiting_session_gets_a_released_lock,
    waiting_session_gets_an_expired_lock,
    waiting_session_sweeps_stale_holders,
    timed_out_wait_names_the_holder,
    waiting_session_counts_as_alive,
    session_that_ends_while_waiting_gets_no_lock,
];

/// So long that a test that reaches it has failed.
const LONG: Duration = Duration::from_mins(2);

fn acquire(fixture: &Fixture, name: &str, session: &str) -> Acquired {
    fixture.board.locks().acquire(&Acquire::of(name, session)).unwrap()
}

fn refused(fixture: &Fixture, name: &str, session: &str) -> crate::Error {
    fixture.board.locks().acquire(&Acquire::of(name, session)).unwrap_err()
}

fn release(fixture: &Fixture, name: &str, session: &str) {
    assert!(fixture.board.locks().release(&Release::of(name, session)).unwrap().released);
}

fn holders(fixture: &Fixture) -> Vec<(String, String)> {
    let locks = fixture.board.locks().list().unwrap();
    locks.into_iter().map(|lock| (lock.name, lock.session_id)).collect()
}

fn lock_goes_to_one_session_with_a_fence_token(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    let request = Acquire {
        ttl: Some(Duration::from_mins(1)),
        note: Some("release\u{1b}[2J 1.2".to_owned()),
        ..Acquire::of("deploy", &ivy)
    };
    let (taken, recorded) = fixture.events_of(|| fixture.board.locks().acquire(&request).unwrap());
    assert_eq!(recorded, [EventType::EntryWritten]);
    assert!(taken.acquired && !taken.already_held);
    let expected = Lock {
        name: "deploy".to_owned(),
        fence: fixture.revision(),
        session_id: ivy.clone(),
        agent_name: "Ivy".to_owned(),
        since: fixture.now(),
        note: Some("release 1.2".to_owned()),
        expires_at: Some(fixture.now().plus(Duration::from_mins(1))),
    };
    assert_eq!(taken.lock, expected);
    assert_eq!(fixture.board.locks().list().unwrap(), [expected]);
    let event = fixture.events().pop().unwrap();
    assert_eq!(event.summary, "Agent \"Ivy\" acquired lock \"deploy\"");
    assert_eq!((event.actor_id.clone(), event.target_id.as_deref()), (Some(ivy.clone()), Some("deploy")));
    assert_eq!(metadata(&event)["scope"], LOCKS);
    let entry = fixture.board.scope(LOCKS).entry("deploy").unwrap().unwrap();
    assert_eq!(entry.value.as_str(), r#"{"note":"release 1.2"}"#);
    assert_eq!((entry.session_id, entry.fence), (Some(ivy), Some(event.id)));
}

fn repeated_acquire_reports_since_when_the_lock_is_held(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    let first = acquire(fixture, "deploy", &ivy);
    fixture.pass(10);
    let (again, recorded) = fixture.events_of(|| acquire(fixture, "deploy", &ivy));
    assert!(recorded.is_empty());
    assert!(again.already_held && !again.acquired);
    assert_eq!(again.lock, first.lock);
    acquire(fixture, "another", &ivy);
    assert_eq!(holders(fixture), [("another".to_owned(), ivy.clone()), ("deploy".to_owned(), ivy)]);
}

fn repeated_acquire_with_a_ttl_restarts_it(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    let acquire = |seconds, session: &str| {
        let ttl = Some(Duration::from_secs(seconds));
        fixture.board.locks().acquire(&Acquire { ttl, ..Acquire::of("deploy", session) })
    };
    let first = acquire(10, &ivy).unwrap().lock;
    fixture.pass(9);
    let (renewed, recorded) = fixture.events_of(|| acquire(10, &ivy).unwrap());
    assert_eq!(recorded, [EventType::EntryWritten]);
    assert!(renewed.already_held);
    assert_eq!((renewed.lock.fence, renewed.lock.since), (first.fence, first.since));
    fixture.pass(9);
    assert_eq!(code(acquire(10, &oak)), Code::Held);
    fixture.pass(1);
    assert!(acquire(10, &oak).unwrap().acquired);
}

fn a_refusal_because_of_a_gone_process_says_how_to_release_its_holdings(fixture: &Fixture) {
    let (dead, oak) = (fixture.session_of_process("Ivy", 7), fixture.session("Oak"));
    acquire(fixture, "deploy", &dead);
    fixture.item("item");
    fixture.claim("item", &dead);
    let hints = || {
        let lock = fixture.board.locks().acquire(&Acquire::of("deploy", &oak)).unwrap_err();
        let item = fixture.board.work().claim(&Claim::of("item", &oak)).unwrap_err();
        [lock, item].map(
            |refused| matches!(refused.hint(), Some(Hint::EndGoneHolder { session, .. }) if *session == dead),
        )
    };
    assert_eq!(hints(), [false, false]);
    fixture.item("done");
    fixture.claim("done", &dead);
    fixture.complete("done", &dead);
    fixture.processes.end(7);
    assert_eq!(hints(), [true, true]);
    // A completed item is no longer held.
    let done = fixture.board.work().claim(&Claim::of("done", &oak)).unwrap_err();
    assert_eq!(done.hint(), Some(&Hint::ResetItem("done".to_owned())));
}

fn programs_that_share_a_session_can_exclude_each_other(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    let wish = Acquire { refuse_own: true, ..Acquire::of("deploy", &ivy) };
    let fence = fixture.board.locks().acquire(&wish).unwrap().lock.fence;
    let refused = fixture.board.locks().acquire(&wish).unwrap_err();
    assert_eq!((refused.code(), &refused.details().unwrap()["fence"]), (Code::Held, &fence.get().into()));
    assert_eq!(refused.to_string(), "this session already holds lock deploy");
    std::thread::scope(|scope| {
        let next = scope.spawn(|| fixture.board.locks().acquire_waiting(&wish, LONG).unwrap());
        let release = Release { fence: Some(fence), ..Release::of("deploy", &ivy) };
        assert!(fixture.board.locks().release(&release).unwrap().released);
        let next = next.join().unwrap();
        assert!(next.acquired && next.lock.fence > fence);
    });
}

fn a_refused_lock_names_its_holder(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    let taken = acquire(fixture, "deploy", &ivy).lock;
    fixture.pass(10);
    let (refused, recorded) = fixture.events_of(|| refused(fixture, "deploy", &oak));
    assert!(recorded.is_empty());
    assert_eq!(refused.code(), Code::Held);
    assert_eq!(refused.to_string(), format!("lock deploy is held by {}", label("Ivy", &ivy)));
    let details = refused.details().unwrap();
    assert_eq!((&details["held_by"], &details["held_by_name"]), (&ivy.into(), &"Ivy".into()));
    assert_eq!(
        (&details["since"], &details["fence"]),
        (&taken.since.to_string().into(), &taken.fence.get().into())
    );
}

/// A lock for a session that does not exist yet.
fn for_new_session(name: &str) -> Acquire {
    Acquire { refuse_own: true, ..Acquire::registering(name, Register::named("Nightly")) }
}

fn a_refused_lock_leaves_no_new_session(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    acquire(fixture, "deploy", &ivy);
    let before = (fixture.revision(), agents(fixture));
    for timeout in [None, Some(Duration::ZERO), Some(Duration::from_millis(20))] {
        let refused = match timeout {
            None => fixture.board.locks().acquire(&for_new_session("deploy")),
            Some(timeout) => fixture.board.locks().acquire_waiting(&for_new_session("deploy"), timeout),
        };
        let expected = if timeout.is_none() { Code::Held } else { Code::TimedOut };
        assert_eq!(refused.unwrap_err().code(), expected);
        assert_eq!((fixture.revision(), agents(fixture)), before, "waited for {timeout:?}");
    }
    let (taken, recorded) =
        fixture.events_of(|| fixture.board.locks().acquire(&for_new_session("free")).unwrap().lock);
    assert_eq!(recorded, [EventType::AgentRegistered, EventType::EntryWritten]);
    let agent = fixture.agent(&taken.session_id);
    assert_eq!((taken.fence, &*agent.agent_name), (fixture.revision(), "Nightly"));
    assert!(agent.status == AgentStatus::Active && agent.revision < taken.fence);
    assert_eq!(fixture.events().pop().unwrap().summary, "Agent \"Nightly\" acquired lock \"free\"");
    fixture.board.agents().deregister(&taken.session_id).unwrap();
    assert_eq!(holders(fixture), [("deploy".to_owned(), ivy)]);
}

fn a_new_session_waits_unregistered_until_it_gets_the_lock(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    acquire(fixture, "deploy", &ivy);
    let before = agents(fixture);
    std::thread::scope(|scope| {
        let (asked, has_asked) = std::sync::mpsc::channel();
        let waiting = scope.spawn(move || {
            let wish = for_new_session("deploy");
            // It is called after the first attempt and before each sleep.
            fixture.board.locks().acquire_waiting_while(&wish, LONG, || {
                let _ = asked.send(());
                true
            })
        });
        has_asked.recv().unwrap();
        assert_eq!(agents(fixture), before, "it waits without a session");
        release(fixture, "deploy", &ivy);
        let taken = waiting.join().unwrap().unwrap().unwrap();
        assert!(taken.acquired);
        assert_eq!(holders(fixture), [("deploy".to_owned(), taken.lock.session_id)]);
        assert_eq!(agents(fixture), before + 1);
    });
}

fn agents(fixture: &Fixture) -> usize {
    let all = AgentFilter { statuses: AgentStatus::ALL.to_vec(), project: None };
    fixture.board.agents().list(&all).unwrap().len()
}

fn only_a_live_session_acquires_a_lock(fixture: &Fixture) {
    let (stale, ended) = (fixture.session("Stale"), fixture.session("Ended"));
    fixture.board.agents().deregister(&ended).unwrap();
    fixture.pass(301);
    fixture.sweep();
    for (session, expected) in
        [(&*stale, Code::SessionStale), (&ended, Code::SessionEnded), ("unknown", Code::AgentNotFound)]
    {
        assert_eq!(refused(fixture, "deploy", session).code(), expected);
    }
    assert!(holders(fixture).is_empty());
}

fn lock_is_released_once(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    let fence = acquire(fixture, "deploy", &ivy).lock.fence;
    fixture.pass(90);
    let request = Release { fence: Some(fence), ..Release::of("deploy", &ivy) };
    let (released, recorded) = fixture.events_of(|| fixture.board.locks().release(&request).unwrap());
    assert_eq!(recorded, [EventType::EntryDeleted]);
    assert_eq!((released.released, released.fence, released.held_seconds), (true, Some(fence), 90));
    assert_eq!(fixture.events().pop().unwrap().summary, "Agent \"Ivy\" released lock \"deploy\"");
    let (again, recorded) = fixture.events_of(|| fixture.board.locks().release(&request).unwrap());
    assert!(!again.released && recorded.is_empty());
    assert!(holders(fixture).is_empty());
    assert!(acquire(fixture, "deploy", &oak).lock.fence > fence, "fences only grow");
}

fn old_fence_token_releases_nothing(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    let old = acquire(fixture, "deploy", &ivy).lock.fence;
    release(fixture, "deploy", &ivy);
    let new = acquire(fixture, "deploy", &ivy).lock.fence;
    let late = Release { fence: Some(old), ..Release::of("deploy", &ivy) };
    let refused = fixture.board.locks().release(&late).unwrap_err();
    assert_eq!(refused.code(), Code::StaleFence);
    assert_eq!(refused.details().unwrap()["fence"], new.get());
    assert_eq!(holders(fixture).len(), 1);
}

fn lock_of_another_session_cannot_be_released(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    let fence = acquire(fixture, "deploy", &ivy).lock.fence;
    for fence in [None, Some(fence)] {
        let refused = fixture.board.locks().release(&Release { fence, ..Release::of("deploy", &oak) });
        let refused = refused.unwrap_err();
        assert_eq!(refused.code(), Code::NotHolder);
        assert_eq!(refused.details().unwrap()["held_by"], ivy.as_str());
    }
    let refused = fixture.board.locks().release(&Release::of("deploy", "unknown"));
    assert_eq!(code(refused), Code::AgentNotFound);
    assert_eq!(holders(fixture), [("deploy".to_owned(), ivy)]);
}

fn expired_lock_is_reported_before_it_is_acquired_again(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    let brief =
        |session: &str| Acquire { ttl: Some(Duration::from_secs(10)), ..Acquire::of("deploy", session) };
    for next in [&oak, &ivy] {
        let old = fixture.board.locks().acquire(&brief(&ivy)).unwrap().lock.fence;
        fixture.pass(10);
        assert!(holders(fixture).is_empty(), "no session sees it now");
        let late = Release { fence: Some(old), ..Release::of("deploy", &ivy) };
        assert!(!fixture.board.locks().release(&late).unwrap().released);
        let (taken, recorded) = fixture.events_of(|| acquire(fixture, "deploy", next));
        assert_eq!(recorded, [EventType::EntryExpired, EventType::EntryWritten]);
        assert!(taken.acquired && taken.lock.fence > old);
        assert_eq!(taken.lock.fence, fixture.revision());
        let events = fixture.events();
        let [.., expired, taken] = &events[..] else { panic!("{events:?}") };
        assert_eq!((expired.commit_id, &*expired.summary), (taken.commit_id, "Lock \"deploy\" expired"));
        release(fixture, "deploy", next);
    }
    // Or a sweep was faster.
    fixture.board.locks().acquire(&brief(&ivy)).unwrap();
    fixture.pass(10);
    assert_eq!(fixture.sweep().entries_expired, 1);
    let (_, recorded) = fixture.events_of(|| acquire(fixture, "deploy", &oak));
    assert_eq!(recorded, [EventType::EntryWritten]);
}

fn a_lock_ends_with_its_session(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    acquire(fixture, "deploy", &ivy);
    let (_, recorded) = fixture.events_of(|| fixture.board.agents().deregister(&ivy).unwrap());
    assert_eq!(recorded, [EventType::EntryDeleted, EventType::AgentDeregistered]);
    let events = fixture.events();
    let released = events.iter().find(|event| event.event_type == EventType::EntryDeleted).unwrap();
    assert_eq!(
        released.summary,
        format!("Lock \"deploy\" of agent \"Ivy\" ({}) released (session ended)", short_id(&ivy))
    );
    assert_eq!(released.commit_id, events.last().unwrap().commit_id, "in one commit");
    assert!(acquire(fixture, "deploy", &oak).acquired);
}

fn sweep_releases_locks_of_stale_agents(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session_of_process("Ivy", 10), fixture.session_of_process("Oak", 11));
    let old = acquire(fixture, "deploy", &ivy).lock.fence;
    fixture.processes.end(10);
    assert_eq!(refused(fixture, "deploy", &oak).code(), Code::Held, "it was alive a moment ago");
    fixture.pass(301);
    let (swept, recorded) = fixture.events_of(|| fixture.sweep());
    assert_eq!(recorded, [EventType::AgentStale, EventType::EntryDeleted]);
    let leases = &swept.stale_agents[0].released_leases;
    assert_eq!((&*leases[0].scope, &*leases[0].key), (LOCKS, "deploy"));
    let event = fixture.events().pop().unwrap();
    assert_eq!(
        event.summary,
        format!("Lock \"deploy\" of agent \"Ivy\" ({}) released (marked stale)", short_id(&ivy))
    );
    let new = acquire(fixture, "deploy", &oak).lock.fence;
    assert!(new > old);

    let late = Release { fence: Some(old), ..Release::of("deploy", &ivy) };
    assert_eq!(code(fixture.board.locks().release(&late)), Code::SessionStale);
    let back = fixture.beat(&ivy);
    assert!(back.recovered);
    assert_eq!(code(fixture.board.locks().release(&late)), Code::NotHolder);
    assert_eq!(refused(fixture, "deploy", &ivy).code(), Code::Held);
    assert_eq!(holders(fixture), [("deploy".to_owned(), oak)]);
}

/// Every way to change entries, with this fence token; each changes something if it is allowed.
fn every_path(board: &Board, by: &Actor) -> Vec<(&'static str, Result<()>)> {
    let value = || Value::of(&1).unwrap();
    let plain = board.scope("work");
    for key in ["delete", "delete_if_revision", "clear"] {
        plain.write(&Write::new(key, value())).unwrap();
    }
    let revision = plain.entry("delete_if_revision").unwrap().unwrap().revision;
    let scope = board.scope("work").acting_as(by.clone());
    let write = |key: &str| Write::new(key, value());
    let operation = || vec![Operation::Write { scope: "work".to_owned(), write: write("compare") }];
    let exists = |exists| Comparison {
        scope: "work".to_owned(),
        key: "compare".to_owned(),
        expected: Expected::Exists(exists),
    };
    let txn =
        |comparisons, otherwise| board.txn(&Txn { comparisons, then: operation(), otherwise }, by).map(drop);
    vec![
        ("write", scope.write(&write("write")).map(drop)),
        ("leased write", scope.write(&Write { lease: true, ..write("leased") }).map(drop)),
        ("write_batch", scope.write_batch(&[write("batch")]).map(drop)),
        ("append", scope.append("append", &value()).map(drop)),
        ("increment", scope.increment("increment", 1).map(drop)),
        ("delete", scope.delete("delete").map(drop)),
        ("delete_if_revision", scope.delete_if_revision("delete_if_revision", revision).map(drop)),
        ("clear", scope.clear("clear*").map(drop)),
        ("compare", txn(Vec::new(), None)),
        ("compare, otherwise", txn(vec![exists(false)], Some(operation()))),
        (
            "transaction",
            board.try_transaction(|tx| {
                tx.acting_as(by.clone())?;
                tx.scope("work").write(&write("transaction"))?;
                Ok(())
            }),
        ),
        (
            "transaction that writes nothing",
            board.try_transaction(|tx| {
                tx.acting_as(by.clone())?;
                tx.scope("work").read("transaction").map(drop)
            }),
        ),
    ]
}

fn old_fence_token_is_refused_on_every_path(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    let fenced = |session: &str, fence| Actor {
        fences: vec![FenceToken::Lock { name: "deploy".to_owned(), fence }],
        ..Actor::session(session)
    };
    let keys = || fixture.board.scope("work").list(&crate::entry::Query::default()).unwrap();
    let old = acquire(fixture, "deploy", &ivy).lock.fence;
    for (path, outcome) in every_path(&fixture.board, &fenced(&ivy, old)) {
        outcome.unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    assert_eq!(keys().len(), 7);
    fixture.board.scope("work").acting_as(Actor::session(&ivy)).clear("*").unwrap();

    let all_refused = |why: &str, fence| {
        for (path, outcome) in every_path(&fixture.board, &fenced(&ivy, fence)) {
            assert_eq!(outcome.unwrap_err().code(), Code::StaleFence, "{path}, {why}");
        }
        assert_eq!(keys().len(), 3, "only what was prepared is there, {why}");
    };
    fixture.beat(&oak);
    fixture.pass(200);
    fixture.beat(&oak);
    fixture.pass(200);
    fixture.sweep();
    fixture.beat(&ivy);
    all_refused("while no session holds it", old);
    let theirs = acquire(fixture, "deploy", &oak).lock.fence;
    all_refused("while another one holds it", old);
    release(fixture, "deploy", &oak);
    let new = acquire(fixture, "deploy", &ivy).lock.fence;
    all_refused("though it holds it again", old);
    all_refused("with the fence of another", theirs);
    release(fixture, "deploy", &ivy);
    let ttl = Some(Duration::from_secs(5));
    let brief = fixture.board.locks().acquire(&Acquire { ttl, ..Acquire::of("deploy", &ivy) });
    let brief = brief.unwrap().lock.fence;
    assert!(brief > new);
    fixture.pass(5);
    all_refused("when its time is over", brief);
}

fn names_of_locks_are_keys(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    for name in ["deploy", "gh:owner/repo#78", "zwei Wörter", "lock:deploy=1"] {
        acquire(fixture, name, &ivy);
        release(fixture, name, &ivy);
    }
    for name in ["", "a*", "two\nlines", "a:", &"x".repeat(1025)] {
        assert_eq!(refused(fixture, name, &ivy).code(), Code::InvalidValue, "{name}");
        let release = fixture.board.locks().release(&Release::of(name, &ivy));
        assert_eq!(code(release), Code::InvalidValue, "{name}");
    }
    let ttl = Some(Duration::ZERO);
    let nothing = fixture.board.locks().acquire(&Acquire { ttl, ..Acquire::of("deploy", &ivy) });
    assert_eq!(code(nothing), Code::InvalidValue);
    let secret = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    assert_eq!(refused(fixture, &secret, &ivy).code(), Code::SecretLooking);
}

fn no_entry_has_the_key_of_a_lock(fixture: &Fixture) {
    let scope = fixture.board.scope("team");
    let write = |key: &str| Write::new(key, json("1"));
    for refused in [
        scope.write(&write("lock:deploy")).unwrap_err(),
        scope.write_batch(&[write("a"), write("lock:deploy")]).unwrap_err(),
        scope.append("lock:deploy", &json("1")).unwrap_err(),
        scope.increment("lock:deploy", 1).unwrap_err(),
        fixture.board.transaction(|tx| tx.scope("team").write(&write("lock:deploy"))).unwrap_err(),
    ] {
        assert_eq!(refused.code(), Code::InvalidValue, "{refused}");
        assert_eq!(refused.hint(), Some(&Hint::AcquireLock("deploy".to_owned())));
    }
    assert!(scope.list(&Query::default()).unwrap().is_empty(), "nothing was written");
    // Keys that only look similar are entries.
    for key in ["lock", "locks:deploy", "a:lock:deploy"] {
        scope.write(&write(key)).unwrap();
    }
}

fn only_lock_verbs_change_locks(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    let before = acquire(fixture, "deploy", &ivy).lock;
    let scope = fixture.board.scope(LOCKS).acting_as(Actor::session(&ivy));
    let write = || Write::new("deploy", Value::null());
    let within = |operation| Txn { then: vec![operation], ..Txn::default() };
    let by = Actor::session(&ivy);
    let (name, key) = (LOCKS.to_owned(), "deploy".to_owned());
    let (outcomes, recorded) = fixture.events_of(|| {
        [
            scope.write(&write()).map(drop),
            scope.write_batch(&[write()]).map(drop),
            scope.append("deploy", &Value::null()).map(drop),
            scope.increment("deploy", 1).map(drop),
            scope.delete("deploy").map(drop),
            scope.delete_if_revision("deploy", before.fence).map(drop),
            scope.clear("*").map(drop),
            fixture
                .board
                .txn(&within(Operation::Write { scope: name.clone(), write: write() }), &by)
                .map(drop),
            fixture
                .board
                .txn(&within(Operation::Delete { scope: name.clone(), key: key.clone() }), &by)
                .map(drop),
            fixture.board.try_transaction(|tx| tx.scope(LOCKS).write(&write()).map(drop)),
            fixture.board.try_transaction(|tx| tx.scope(LOCKS).delete("deploy").map(drop)),
        ]
    });
    for (number, outcome) in outcomes.into_iter().enumerate() {
        assert_eq!(code(outcome), Code::InvalidValue, "{number}");
    }
    assert!(recorded.is_empty());
    assert_eq!(fixture.board.locks().list().unwrap(), [before]);
}

fn waiting(fixture: &Fixture, session: &str, timeout: Duration) -> Result<Acquired> {
    fixture.board.locks().acquire_waiting(&Acquire::of("deploy", session), timeout)
}

fn waiting_session_gets_a_released_lock(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    assert!(
        waiting(fixture, &ivy, Duration::ZERO).unwrap().acquired,
        "no session has to wait for a free one"
    );
    assert!(waiting(fixture, &ivy, LONG).unwrap().already_held);
    for _ in 0..20 {
        std::thread::scope(|scope| {
            let taken = scope.spawn(|| waiting(fixture, &oak, LONG).unwrap());
            release(fixture, "deploy", &ivy);
            assert!(taken.join().unwrap().acquired);
        });
        std::thread::scope(|scope| {
            let taken = scope.spawn(|| waiting(fixture, &ivy, LONG).unwrap());
            release(fixture, "deploy", &oak);
            assert!(taken.join().unwrap().acquired);
        });
    }
}

fn waiting_session_gets_an_expired_lock(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    let ttl = Some(Duration::from_secs(100));
    let request = Acquire { ttl, ..Acquire::of("deploy", &ivy) };
    fixture.board.locks().acquire(&request).unwrap();
    std::thread::scope(|scope| {
        let taken = scope.spawn(|| waiting(fixture, &oak, LONG).unwrap());
        fixture.pass(100);
        assert!(taken.join().unwrap().acquired);
    });
}

fn waiting_session_sweeps_stale_holders(fixture: &Fixture) {
    // The holder has no process: only a sweep by the threshold releases the lock.
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session_of_process("Oak", 11));
    acquire(fixture, "deploy", &ivy);
    // Nothing is due at the start of the wait.
    assert_eq!(fixture.board.try_sweep(None), Swept::default());
    std::thread::scope(|scope| {
        let (refused, is_refused) = std::sync::mpsc::channel();
        let locks = fixture.board.locks();
        let taken = scope.spawn(move || {
            let go_on = || refused.send(()).is_ok();
            locks.acquire_waiting_while(&Acquire::of("deploy", &oak), LONG, go_on).unwrap()
        });
        is_refused.recv_timeout(patience()).expect("the first attempt was not refused");
        fixture.pass(301);
        assert!(taken.join().unwrap().is_some_and(|lock| lock.acquired));
        drop(is_refused);
    });
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Stale);
}

fn timed_out_wait_names_the_holder(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    let fence = acquire(fixture, "deploy", &ivy).lock.fence;
    for timeout in [Duration::ZERO, Duration::from_millis(20)] {
        let refused = waiting(fixture, &oak, timeout).unwrap_err();
        assert_eq!((refused.code(), refused.code().exit_code()), (Code::TimedOut, 6));
        let details = refused.details().unwrap();
        assert_eq!((&details["held_by_name"], &details["fence"]), (&"Ivy".into(), &fence.get().into()));
    }
}

fn waiting_session_counts_as_alive(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    acquire(fixture, "deploy", &ivy);
    let board = fixture.with_settings(|settings| settings.heartbeat_interval = Duration::from_millis(1));
    std::thread::scope(|scope| {
        let waiting =
            scope.spawn(|| board.locks().acquire_waiting(&Acquire::of("deploy", &oak), LONG).unwrap());
        fixture.pass(200);
        wait_until("a heartbeat of the session that waits", || {
            (fixture.agent(&oak).last_beat_at == fixture.now()).then_some(())
        });
        release(fixture, "deploy", &ivy);
        assert!(waiting.join().unwrap().acquired);
    });
}

fn session_that_ends_while_waiting_gets_no_lock(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    acquire(fixture, "deploy", &ivy);
    let board = fixture.with_settings(|settings| settings.heartbeat_interval = Duration::from_millis(1));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| board.locks().acquire_waiting(&Acquire::of("deploy", &oak), LONG));
        fixture.board.agents().deregister(&oak).unwrap();
        assert_eq!(code(waiting.join().unwrap()), Code::SessionEnded);
    });
    release(fixture, "deploy", &ivy);
    assert!(holders(fixture).is_empty());
}
