//! Fence tokens: a session that lost a claim or a lock meanwhile changes nothing, on any path.

use super::*;
use crate::entry::{EntryEditor, EventWording, FenceToken, LOCKS, Operation, Txn};
use crate::store::{Key, Prefetch};

on_every_engine![
    valid_fence_token_is_accepted_on_every_path,
    fence_token_of_a_lost_claim_is_refused_on_every_path,
    fence_token_of_a_lost_lock_is_refused_on_every_path,
    fence_token_of_an_expired_lock_is_refused,
    every_given_fence_token_has_to_be_valid,
    fence_token_of_completed_work_is_refused,
];

/// Acquires a lock as the lock verb does: a leased entry in the scope of locks.
fn lock(fixture: &Fixture, name: &str, session: &str, ttl: Option<Duration>) -> Revision {
    let write = Write { lease: true, ttl, ..a_write(name, "null") };
    let prefetch = [Prefetch::Row(Key::Agent(session.to_owned())), Prefetch::Entry(LOCKS, name)];
    let written = fixture.board.commit("test", &prefetch, |tx| {
        let mut editor = EntryEditor::new(&fixture.board, tx, &Actor::session(session))?;
        let written = editor.write(LOCKS, &write, EventWording::AsEntry)?;
        Ok((editor.finish()?, written))
    });
    written.unwrap().fence.unwrap()
}

fn unlock(fixture: &Fixture, name: &str, session: &str) {
    let prefetch = [Prefetch::Row(Key::Agent(session.to_owned())), Prefetch::Entry(LOCKS, name)];
    let unlocked = fixture.board.commit("test", &prefetch, |tx| {
        let mut editor = EntryEditor::new(&fixture.board, tx, &Actor::session(session))?;
        let deleted = editor.delete(LOCKS, name, EventWording::AsEntry)?;
        Ok((editor.finish()?, deleted))
    });
    assert!(unlocked.unwrap().is_some());
}

/// The result of every path that changes something, with these fence tokens.
fn on_every_path(fixture: &Fixture, fences: &[FenceToken]) -> Vec<(&'static str, Result<()>)> {
    fixture.scope().write_batch(&[a_write("a", "[]"), a_write("n", "1"), a_write("gone", "1")]).unwrap();
    let by = Actor { fences: fences.to_vec(), ..Actor::default() };
    let scope = fixture.scope().acting_as(by.clone());
    let board = &fixture.board;
    let then = |operation| board.txn(&Txn { then: vec![operation], ..Txn::default() }, &by);
    let (s, k) = ("team".to_owned(), "then".to_owned());
    let write = a_write("then", "1");
    vec![
        ("write", scope.write(&a_write("a", "[1]")).map(drop)),
        ("batch", scope.write_batch(&[a_write("b", "1"), a_write("c", "1")]).map(drop)),
        ("append", scope.append("a", &json("1")).map(drop)),
        ("increment", scope.increment("n", 1).map(drop)),
        ("delete", scope.delete("gone").map(drop)),
        ("clear", scope.clear("n").map(drop)),
        ("clear nothing", scope.clear("nothing").map(drop)),
        ("then write", then(Operation::Write { scope: s.clone(), write: write.clone() }).map(drop)),
        ("then delete", then(Operation::Delete { scope: s.clone(), key: k.clone() }).map(drop)),
        ("then read", then(Operation::Read { scope: s, key: k }).map(drop)),
        (
            "transaction",
            board.transaction(|tx| {
                tx.acting_as(by.clone())?;
                tx.scope("team").write(&write)
            }),
        ),
        (
            "transaction that reads",
            board.transaction(|tx| {
                tx.acting_as(by.clone())?;
                tx.scope("team").read("a").map(drop)
            }),
        ),
    ]
}

fn all_are_stale(fixture: &Fixture, fence: &FenceToken, current: Option<Revision>) {
    let told_before = fixture.revision();
    let refusals = on_every_path(fixture, std::slice::from_ref(fence));
    for (path, outcome) in refusals {
        let Err(refused) = outcome else { panic!("{path} was not refused") };
        assert_eq!(refused.code(), Code::StaleFence, "{path}: {refused}");
        assert_eq!(
            refused.details().unwrap()["fence"],
            serde_json::json!(current.map(Revision::get)),
            "{path}"
        );
        assert!(refused.to_string().contains(&fence.to_string()), "{path}: {refused}");
    }
    assert_eq!(fixture.events_after(told_before).len(), 3, "only what the test itself wrote");
    fixture.scope().clear("*").unwrap();
}

fn valid_fence_token_is_accepted_on_every_path(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    fixture.item("x");
    let claim = FenceToken::Work { id: "x".to_owned(), fence: fixture.claim("x", &ivy).item.fence.unwrap() };
    let deploy = FenceToken::Lock { name: "deploy".to_owned(), fence: lock(fixture, "deploy", &ivy, None) };
    for fences in [vec![claim.clone()], vec![deploy.clone()], vec![claim, deploy], vec![]] {
        for (path, outcome) in on_every_path(fixture, &fences) {
            assert!(outcome.is_ok(), "{path} with {fences:?}: {outcome:?}");
        }
    }
}

fn fence_token_of_a_lost_claim_is_refused_on_every_path(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    fixture.item("x");
    let fence = |fence| FenceToken::Work { id: "x".to_owned(), fence };
    let first = fixture.claim("x", &ivy).item.fence.unwrap();
    all_are_stale(fixture, &FenceToken::Work { id: "y".to_owned(), fence: first }, None);
    all_are_stale(fixture, &fence(first.next()), Some(first));
    fixture.release("x", &ivy);
    all_are_stale(fixture, &fence(first), None);
    let second = fixture.claim("x", &oak).item.fence.unwrap();
    all_are_stale(fixture, &fence(first), Some(second));
    fixture.release("x", &oak);
    // The same session again: it may not know what happened meanwhile.
    let third = fixture.claim("x", &ivy).item.fence.unwrap();
    all_are_stale(fixture, &fence(first), Some(third));
    fixture.pass(301);
    fixture.sweep();
    all_are_stale(fixture, &fence(third), None);
}

fn fence_token_of_a_lost_lock_is_refused_on_every_path(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    let fence = |fence| FenceToken::Lock { name: "deploy".to_owned(), fence };
    let first = lock(fixture, "deploy", &ivy, None);
    all_are_stale(fixture, &FenceToken::Lock { name: "other".to_owned(), fence: first }, None);
    all_are_stale(fixture, &fence(first.next()), Some(first));
    unlock(fixture, "deploy", &ivy);
    all_are_stale(fixture, &fence(first), None);
    let second = lock(fixture, "deploy", &oak, None);
    all_are_stale(fixture, &fence(first), Some(second));
    fixture.pass(301);
    fixture.sweep();
    all_are_stale(fixture, &fence(second), None);
    fixture.beat(&oak);
    let third = lock(fixture, "deploy", &oak, None);
    all_are_stale(fixture, &fence(second), Some(third));
    fixture.board.agents().deregister(&oak).unwrap();
    all_are_stale(fixture, &fence(third), None);
}

fn fence_token_of_an_expired_lock_is_refused(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    let first = lock(fixture, "deploy", &ivy, Some(Duration::from_secs(10)));
    let fence = FenceToken::Lock { name: "deploy".to_owned(), fence: first };
    fixture.pass(9);
    let by = Actor { fences: vec![fence.clone()], ..Actor::default() };
    fixture.scope().acting_as(by).write(&a_write("z", "1")).unwrap();
    fixture.pass(1);
    all_are_stale(fixture, &fence, None);
}

fn every_given_fence_token_has_to_be_valid(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    fixture.item("x");
    let claim = FenceToken::Work { id: "x".to_owned(), fence: fixture.claim("x", &ivy).item.fence.unwrap() };
    let deploy = FenceToken::Lock { name: "deploy".to_owned(), fence: lock(fixture, "deploy", &ivy, None) };
    unlock(fixture, "deploy", &ivy);
    for fences in [[claim.clone(), deploy.clone()], [deploy, claim]] {
        for (path, outcome) in on_every_path(fixture, &fences) {
            assert_eq!(code(outcome), Code::StaleFence, "{path}");
        }
    }
}

fn fence_token_of_completed_work_is_refused(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    fixture.item("x");
    let fence = fixture.claim("x", &ivy).item.fence.unwrap();
    fixture.complete("x", &ivy);
    all_are_stale(fixture, &FenceToken::Work { id: "x".to_owned(), fence }, None);
}
