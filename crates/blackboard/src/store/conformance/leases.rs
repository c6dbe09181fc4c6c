//! Leases: only its session can change a leased entry, and it is removed in the commit that ends the session.

use super::*;
use crate::agent::short_id;
use crate::entry::{Lease, Operation, Txn};

on_every_engine![
    a_lease_needs_a_live_session,
    holder_of_a_lease_can_change_it_and_keeps_it,
    leased_entry_is_refused_to_other_sessions_on_every_path,
    lease_may_be_acquired_on_an_existing_entry,
    ending_a_session_releases_its_leases,
    sweep_releases_leases_of_stale_agents,
    recovered_session_is_notified_of_its_lost_leases,
    recovered_session_can_acquire_again_with_a_new_fence_token,
    expired_lease_blocks_no_session,
    a_lease_that_expired_before_its_session_ended_was_not_released,
    dry_run_lists_leases_to_release,
    held_since_is_the_time_of_the_acquisition,
    delegates_that_end_with_their_parent_release_their_leases,
    one_of_many_sessions_gets_the_lease,
    no_lease_outlives_a_session_that_ends_meanwhile,
    lock_or_reservation_with_a_ttl_below_a_millisecond_is_refused,
];

fn leased(key: &str, value: &str) -> Write {
    Write { lease: true, ..a_write(key, value) }
}

fn lease(key: &str) -> Lease {
    Lease { scope: "team".to_owned(), key: key.to_owned(), pattern: None }
}

fn a_lease_needs_a_live_session(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    assert_eq!(code(fixture.scope().write(&leased("a", "1"))), Code::NoSession);
    assert_eq!(
        code(fixture.scope().acting_as(Actor::author("Ivy")).write(&leased("a", "1"))),
        Code::NoSession
    );
    fixture.board.agents().deregister(&oak).unwrap();
    assert_eq!(code(fixture.scope_of(&oak).write(&leased("a", "1"))), Code::SessionEnded);
    fixture.pass(301);
    fixture.sweep();
    assert_eq!(code(fixture.scope_of(&ivy).write(&leased("a", "1"))), Code::SessionStale);
    assert_eq!(fixture.entry("a"), None);
    fixture.beat(&ivy);
    let written = fixture.scope_of(&ivy).write(&leased("a", "1")).unwrap();
    assert_eq!(written.fence, Some(written.revision));
}

fn holder_of_a_lease_can_change_it_and_keeps_it(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    let scope = fixture.scope_of(&ivy);
    let fence = scope.write(&leased("a", "[]")).unwrap().fence;
    // Also if the write does not ask for the lease again.
    assert_eq!(scope.write(&a_write("a", "[1]")).unwrap().fence, fence);
    assert_eq!(scope.write(&leased("a", "[1]")).unwrap().fence, fence);
    assert_eq!(scope.append("a", &json("2")).unwrap().fence, fence);
    fixture
        .board
        .transaction(|tx| {
            tx.acting_as(Actor::session(&ivy))?;
            tx.scope("team").write(&a_write("a", "[3]"))
        })
        .unwrap();
    let entry = fixture.entry("a").unwrap();
    assert_eq!((entry.session_id.as_deref(), entry.fence), (Some(ivy.as_str()), fence));
    assert_eq!((entry.version, entry.value.as_str()), (5, "[3]"));
    scope.delete("a").unwrap();
    fixture.write("a", "1");
    assert_eq!(fixture.entry("a").unwrap().session_id, None, "a deletion gives it up");
}

fn leased_entry_is_refused_to_other_sessions_on_every_path(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    let held = fixture.scope_of(&ivy).write(&leased("a", "[1]")).unwrap();
    let before = fixture.board.export().unwrap();
    let others = [Actor::default(), Actor::author("Ivy"), Actor::session(&oak)];
    for by in &others {
        let scope = fixture.scope().acting_as(by.clone());
        let board = &fixture.board;
        let in_transaction = |f: &dyn Fn(&mut crate::entry::TransactionScope<'_, '_>) -> Result<()>| {
            board.transaction(|tx| {
                tx.acting_as(by.clone())?;
                f(&mut tx.scope("team"))
            })
        };
        let then = |operation| board.txn(&Txn { then: vec![operation], ..Txn::default() }, by);
        let (s, k) = ("team".to_owned(), "a".to_owned());
        let write = a_write("a", "2");
        let refusals = [
            ("write", scope.write(&write).err()),
            ("if absent", scope.write(&Write { if_absent: true, ..write.clone() }).err()),
            ("if revision", scope.write(&Write { if_revision: Some(held.revision), ..write.clone() }).err()),
            ("merge", scope.write(&Write { merge: true, ..write.clone() }).err()),
            ("batch", scope.write_batch(&[a_write("b", "1"), write.clone()]).err()),
            ("delete", scope.delete("a").err()),
            ("delete if revision", scope.delete_if_revision("a", held.revision).err()),
            ("clear", scope.clear("*").err()),
            ("append", scope.append("a", &json("1")).err()),
            ("increment", scope.increment("a", 1).err().filter(|error| error.code() == Code::Held)),
            ("then write", then(Operation::Write { scope: s.clone(), write: write.clone() }).err()),
            ("then delete", then(Operation::Delete { scope: s, key: k }).err()),
            ("transaction write", in_transaction(&|scope| scope.write(&write)).err()),
            ("transaction delete", in_transaction(&|scope| scope.delete("a").map(drop)).err()),
        ];
        for (path, refusal) in refusals {
            let Some(refusal) = refusal else { panic!("{path} was not refused to {by:?}") };
            assert_eq!(refusal.code(), Code::Held, "{path}: {refusal}");
            let details = refusal.details().unwrap();
            assert_eq!(details["held_by"], ivy.as_str(), "{path}");
            assert_eq!(details["held_by_name"], "Ivy", "{path}");
            assert_eq!(details["fence"], held.fence.unwrap().get(), "{path}");
            assert!(refusal.to_string().contains("held by Ivy"), "{path}: {refusal}");
        }
    }
    assert_eq!(code(fixture.scope_of(&oak).write(&leased("a", "2"))), Code::Held);
    assert_eq!(fixture.board.export().unwrap().entries, before.entries);
    assert_eq!(fixture.revision(), before.revision);
    assert_eq!(fixture.value("a").as_deref(), Some("[1]"), "anybody may look");
}

fn lease_may_be_acquired_on_an_existing_entry(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    fixture.write("a", "1");
    let taken = fixture.scope_of(&ivy).write(&leased("a", "2")).unwrap();
    assert_eq!((taken.created, taken.version), (false, 2));
    assert_eq!(taken.fence, Some(taken.revision));
    assert_eq!(code(fixture.scope_of(&oak).delete("a")), Code::Held);
}

fn ending_a_session_releases_its_leases(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    fixture.item_that_is("x", Status::Claimed, &ivy);
    let scope = fixture.scope_of(&ivy);
    scope.write_batch(&[leased("b", "1"), leased("a", "2"), a_write("stays", "3")]).unwrap();
    fixture.scope_of(&oak).write(&leased("of oak", "4")).unwrap();
    let before = fixture.revision();
    let (ended, recorded) = fixture.events_of(|| fixture.board.agents().deregister(&ivy).unwrap());
    assert_eq!(ended.leases, [lease("a"), lease("b")]);
    assert_eq!(recorded.iter().filter(|recorded| **recorded == EventType::EntryDeleted).count(), 2);
    let events = fixture.events_after(before);
    assert!(events.iter().all(|event| event.commit_id == events[0].id), "one commit");
    let released = events.iter().find(|event| event.target_id.as_deref() == Some("a")).unwrap();
    assert_eq!(
        released.summary,
        format!("\"a\" in scope \"team\" of agent \"Ivy\" ({}) removed (session ended)", short_id(&ivy))
    );
    assert_eq!(metadata(released), serde_json::json!({"op": "release", "scope": "team"}));
    assert_eq!(released.actor_id.as_deref(), Some(ivy.as_str()));
    let left: Vec<_> = fixture.board.export().unwrap().entries.into_iter().map(|entry| entry.key).collect();
    assert_eq!(left, ["of oak", "stays"]);
    let removal = &fixture.scope().history("a", 9).unwrap().versions[0];
    assert!(removal.removed && removal.entry.version == 1);
    assert_eq!(fixture.write("a", "5").version, 2, "versions go on");
    let (again, recorded) = fixture.events_of(|| fixture.board.agents().deregister(&ivy).unwrap());
    assert!(again.already_ended && again.leases.is_empty() && recorded.is_empty());
}

fn sweep_releases_leases_of_stale_agents(fixture: &Fixture) {
    let ivy = fixture.session_of_process("Ivy", 10);
    fixture.item_that_is("x", Status::Claimed, &ivy);
    fixture.scope_of(&ivy).write_batch(&[leased("a", "1"), leased("b", "1")]).unwrap();
    fixture.processes.end(10);
    fixture.pass(301);
    let before = fixture.revision();
    let (swept, recorded) = fixture.events_of(|| fixture.sweep());
    assert_eq!(swept.stale_agents[0].released_leases, [lease("a"), lease("b")]);
    assert_eq!(
        recorded,
        [
            EventType::AgentStale,
            EventType::StaleLocksReleased,
            EventType::EntryDeleted,
            EventType::EntryDeleted
        ]
    );
    let events = fixture.events_after(before);
    assert!(events.iter().all(|event| event.commit_id == events[0].id), "one commit");
    assert_eq!(
        events[2].summary,
        format!("\"a\" in scope \"team\" of agent \"Ivy\" ({}) removed (marked stale)", short_id(&ivy))
    );
    assert_eq!(events[2].actor_id, None, "it is not the dead who did that");
    assert_eq!(fixture.entry("a"), None);
    let (_, recorded) = fixture.events_of(|| fixture.sweep());
    assert!(recorded.is_empty());
}

fn recovered_session_is_notified_of_its_lost_leases(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    fixture.item_that_is("x", Status::Claimed, &ivy);
    fixture.scope_of(&ivy).write_batch(&[leased("a", "1"), a_write("stays", "1")]).unwrap();
    fixture.pass(301);
    fixture.sweep();
    let beat = fixture.beat(&ivy);
    assert!(beat.recovered);
    assert_eq!((beat.lost, beat.lost_leases), (owned(&["x"]), vec![lease("a")]));
    let beat = fixture.beat(&ivy);
    assert!(beat.lost.is_empty() && beat.lost_leases.is_empty(), "once");
}

fn recovered_session_can_acquire_again_with_a_new_fence_token(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    let first = fixture.scope_of(&ivy).write(&leased("a", "1")).unwrap();
    fixture.pass(301);
    fixture.sweep();
    fixture.beat(&ivy);
    let second = fixture.scope_of(&ivy).write(&leased("a", "1")).unwrap();
    assert_eq!((second.version, second.created), (2, true));
    assert!(second.fence > first.fence);
}

fn expired_lease_blocks_no_session(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    let short = Write { ttl: Some(Duration::from_secs(5)), ..leased("a", "1") };
    fixture.scope_of(&ivy).write(&short).unwrap();
    assert_eq!(code(fixture.scope_of(&oak).write(&short)), Code::Held);
    fixture.pass(5);
    let (written, recorded) = fixture.events_of(|| fixture.scope_of(&oak).write(&short).unwrap());
    assert_eq!(recorded, [EventType::EntryExpired, EventType::EntryWritten]);
    assert_eq!(written.fence, Some(written.revision));
    assert_eq!(fixture.entry("a").unwrap().session_id, Some(oak));
    assert_eq!(code(fixture.scope_of(&ivy).write(&short)), Code::Held);
    assert!(fixture.board.agents().deregister(&ivy).unwrap().leases.is_empty());
}

fn a_lease_that_expired_before_its_session_ended_was_not_released(fixture: &Fixture) {
    let short = |key: &str| Write { ttl: Some(Duration::from_secs(5)), ..leased(key, "1") };
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    fixture.scope_of(&ivy).write_batch(&[short("a"), leased("b", "1")]).unwrap();
    fixture.scope_of(&oak).write_batch(&[short("c"), leased("d", "1")]).unwrap();
    fixture.pass(5);
    let (ended, recorded) = fixture.events_of(|| fixture.board.agents().deregister(&ivy).unwrap());
    assert_eq!(ended.leases, [lease("b")]);
    let of_entries = |recorded: Vec<EventType>| {
        recorded.into_iter().filter(|recorded| recorded.as_str().starts_with("entry")).collect::<Vec<_>>()
    };
    assert_eq!(of_entries(recorded), [EventType::EntryExpired, EventType::EntryDeleted]);
    fixture.pass(300);
    let (swept, recorded) = fixture.events_of(|| fixture.sweep());
    assert_eq!(swept.stale_agents[0].released_leases, [lease("d")]);
    assert_eq!(of_entries(recorded), [EventType::EntryExpired, EventType::EntryDeleted]);
    assert_eq!(fixture.beat(&oak).lost_leases, [lease("d")]);
    assert!(fixture.board.export().unwrap().entries.is_empty());
}

fn dry_run_lists_leases_to_release(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    fixture.scope_of(&ivy).write(&leased("a", "1")).unwrap();
    fixture.pass(301);
    let before = fixture.board.export().unwrap();
    let dry = fixture.board.sweep(&Sweep { dry_run: true, ..Sweep::default() }).unwrap();
    assert_eq!(dry.stale_agents[0].released_leases, [lease("a")]);
    assert_eq!(fixture.board.export().unwrap(), before);
    assert_eq!(fixture.sweep(), dry);
}

fn held_since_is_the_time_of_the_acquisition(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    fixture.write("a", "1");
    fixture.pass(10);
    fixture.scope_of(&ivy).write(&leased("a", "2")).unwrap();
    let taken = fixture.now();
    fixture.pass(10);
    fixture.scope_of(&ivy).write(&a_write("a", "3")).unwrap();
    let refused = fixture.scope_of(&oak).delete("a").unwrap_err();
    assert_eq!(refused.details().unwrap()["since"], taken.to_string());
}

fn delegates_that_end_with_their_parent_release_their_leases(fixture: &Fixture) {
    let ivy = fixture.session_of_process("Ivy", 10);
    let delegate = Register { parent: Some(ivy.clone()), pid: Some(10), ..Register::default() };
    let delegate = fixture.register(&delegate).session_id;
    fixture.scope_of(&delegate).write(&leased("of the delegate", "1")).unwrap();
    fixture.scope_of(&ivy).write(&leased("of ivy", "1")).unwrap();
    let before = fixture.revision();
    let mut ended = fixture.board.agents().deregister(&ivy).unwrap();
    ended.leases.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!(ended.leases, [lease("of ivy"), lease("of the delegate")]);
    assert!(fixture.board.export().unwrap().entries.is_empty());
    let events = fixture.events_after(before);
    assert!(events.iter().all(|event| event.commit_id == events[0].id), "one commit");
}

fn one_of_many_sessions_gets_the_lease(fixture: &Fixture) {
    let sessions: Vec<_> = (0..6).map(|number| fixture.session(&number.to_string())).collect();
    let start = std::sync::Barrier::new(sessions.len());
    let got = std::thread::scope(|threads| {
        let threads: Vec<_> = sessions
            .iter()
            .map(|session| {
                let start = &start;
                threads.spawn(move || {
                    start.wait();
                    match fixture.scope_of(session).write(&leased("a", "1")) {
                        Ok(_) => true,
                        Err(refused) => {
                            assert_eq!(refused.code(), Code::Held);
                            false
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap().then_some(())).count()
    });
    assert_eq!(got, 1);
    assert_eq!(fixture.entry("a").unwrap().version, 1);
}

fn no_lease_outlives_a_session_that_ends_meanwhile(fixture: &Fixture) {
    for round in 0..10 {
        let session = fixture.session(&round.to_string());
        let start = std::sync::Barrier::new(2);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                start.wait();
                for key in 0.. {
                    let outcome = fixture.scope_of(&session).write(&leased(&format!("{round}:{key}"), "1"));
                    if let Err(refused) = outcome {
                        assert_eq!(refused.code(), Code::SessionEnded);
                        break;
                    }
                }
            });
            threads.spawn(|| {
                start.wait();
                fixture.board.agents().deregister(&session).unwrap();
            });
        });
        assert!(fixture.board.export().unwrap().entries.is_empty(), "round {round}");
    }
}

fn lock_or_reservation_with_a_ttl_below_a_millisecond_is_refused(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    let acquire = crate::lock::Acquire {
        ttl: Some(Duration::from_micros(1)),
        ..crate::lock::Acquire::of("deploy", &ivy)
    };
    assert_eq!(code(fixture.board.locks().acquire(&acquire)), Code::InvalidValue);
    let mut reserve = crate::file::Reserve::of("/src", &["a"], &ivy);
    reserve.ttl = Some(Duration::from_micros(1));
    assert_eq!(code(fixture.board.files().reserve(&reserve)), Code::InvalidValue);
}
