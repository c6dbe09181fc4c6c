//! Scopes that have ended: their history is as private as they were, and they accept no writes.

use super::*;
use crate::entry::{Operation, Txn};
use crate::event::{Lines, Since};
use crate::follow::{Follow, Start};
use crate::scope::{CreateScope, DeleteScope, Policies, ScopePolicies, ScopeStatus, SetScope, Visibility};
use crate::store::Key;

on_every_engine![
    the_history_of_a_local_scope_stays_private,
    the_history_of_a_shared_scope_stays_with_its_members,
    a_scope_that_has_ended_accepts_no_writes,
    a_new_scope_with_the_same_name_hides_the_past,
    a_deleted_scope_still_hides_what_was_before_it,
    a_scope_that_has_ended_is_not_listed,
    what_is_pruned_last_removes_the_policies,
    a_stale_session_that_recovers_has_its_local_scope,
];

const SECRET: &str = "\"hidden\"";

fn local() -> Policies {
    Policies { visibility: Visibility::Local, ..Policies::default() }
}

fn create(fixture: &Fixture, policies: Policies, session: &str) {
    let create = CreateScope { session: Some(session.to_owned()), ..CreateScope::new("team", policies) };
    assert!(fixture.board.scopes().create(&create).unwrap().created);
}

/// A local scope of Ivy with an entry, which has ended. Returns the revision of the entry.
fn ended_scope(fixture: &Fixture) -> Revision {
    let ivy = fixture.session("Ivy");
    create(fixture, local(), &ivy);
    let written = fixture.scope_of(&ivy).write(&a_write("secret", SECRET)).unwrap();
    fixture.board.agents().deregister(&ivy).unwrap();
    assert_eq!(fixture.value("secret"), None);
    written.revision
}

fn row(fixture: &Fixture) -> Option<ScopePolicies> {
    fixture.read(|tx| tx.row::<ScopePolicies>(&Key::ScopePolicies("team".to_owned()))).unwrap()
}

/// Whether a board shows a key or the value of the tests in its events.
fn log_shows(board: &Board) -> bool {
    let events = board.events();
    let newest = events.newest(&Lines::default()).unwrap();
    let observation = events.observe(&Since::Revision(Revision::ZERO), &[]).unwrap();
    let observed = events.next(&observation, observation.after, 1000).unwrap();
    let follow = Follow { start: Start::Revision(Revision::ZERO), ..Follow::default() };
    let followed = board.follow(&follow).unwrap().next_batch(1000, Duration::ZERO).unwrap();
    let texts = [format!("{newest:?}"), format!("{observed:?}"), format!("{followed:?}")];
    let shows = texts.map(|text| text.contains("secret") || text.contains("hidden") || text.contains("team"));
    assert_eq!(shows, [shows[0]; 3]);
    shows[0]
}

fn the_history_of_a_local_scope_stays_private(fixture: &Fixture) {
    let written = ended_scope(fixture);
    for actor in [Actor::session(&fixture.session("Oak")), Actor::author("Ivy")] {
        let board = fixture.board.with_caller(actor);
        assert!(!log_shows(&board));
        let scope = board.scope("team");
        assert_eq!(code(scope.history("secret", 9)), Code::NotAllowed);
        assert_eq!(code(scope.entry_as_of("secret", written)), Code::NotAllowed);
        assert_eq!(code(scope.read("secret")), Code::NotAllowed);
    }
    assert!(log_shows(&fixture.board));
    let before = fixture.scope().entry_as_of("secret", written).unwrap().unwrap();
    assert_eq!(before.value.as_str(), SECRET);
}

fn the_history_of_a_shared_scope_stays_with_its_members(fixture: &Fixture) {
    let elm = fixture.session("Elm");
    fixture.item("task");
    let policies = Policies {
        visibility: Visibility::Shared,
        members: owned(&["Oak"]),
        work_item: Some("task".to_owned()),
        ..Policies::default()
    };
    create(fixture, policies, &fixture.session("Ivy"));
    fixture.write("secret", SECRET);
    fixture.claim("task", &elm);
    fixture.complete("task", &elm);
    assert!(!log_shows(&fixture.board.with_caller(Actor::session(&elm))));
    let oak = fixture.board.with_caller(Actor::author("Oak"));
    assert!(log_shows(&oak));
    assert_eq!(oak.scope("team").history("secret", 9).unwrap().versions.len(), 2);
}

fn a_scope_that_has_ended_accepts_no_writes(fixture: &Fixture) {
    let elm = fixture.session("Elm");
    fixture.item("task");
    let policies = Policies { work_item: Some("task".to_owned()), ..Policies::default() };
    create(fixture, policies.clone(), &elm);
    fixture.write("a", "1");
    fixture.claim("task", &elm);
    let before = fixture.revision();
    fixture.complete("task", &elm);
    let refused = fixture.scope().write(&a_write("b", "1")).unwrap_err();
    assert_eq!(refused.code(), Code::ScopeEnded);
    assert_eq!(refused.to_string(), "scope team has ended with work item task");
    let write = Operation::Write { scope: "team".to_owned(), write: a_write("b", "1") };
    let txn = Txn { then: vec![write], ..Txn::default() };
    let outcomes = [
        code(fixture.scope().write_batch(&[a_write("b", "1")])),
        code(fixture.scope().append("b", &json("1"))),
        code(fixture.scope().increment("b", 1)),
        code(fixture.board.txn(&txn, &Actor::default())),
        code(fixture.board.transaction(|tx| tx.scope("team").write(&a_write("b", "1")))),
        code(fixture.board.scopes().set(&SetScope { ttl: Some(None), ..SetScope::of("team") })),
    ];
    assert_eq!(outcomes, [Code::ScopeEnded; 6]);
    // Its history was open to every caller, and still is.
    assert!(fixture.board.with_caller(Actor::author("Oak")).scope("team").history("a", 9).is_ok());
    // The commit that ends the item ends the scope: no write comes in between.
    let ended = fixture.events_after(before);
    let completed = ended.iter().find(|event| event.event_type == EventType::WorkCompleted).unwrap();
    assert!(row(fixture).unwrap().revision > completed.id);
    // A new item may have a new scope with the name.
    fixture.item("again");
    create(fixture, Policies { work_item: Some("again".to_owned()), ..policies }, &elm);
    fixture.write("b", "1");
}

fn a_new_scope_with_the_same_name_hides_the_past(fixture: &Fixture) {
    let written = ended_scope(fixture);
    let oak = fixture.session("Oak");
    create(fixture, local(), &oak);
    let board = fixture.board.with_caller(Actor::session(&oak));
    let scope = board.scope("team");
    assert_eq!(scope.entry_as_of("secret", written).unwrap(), None);
    assert!(scope.history("secret", 9).unwrap().versions.is_empty());
    scope.write(&a_write("secret", "1")).unwrap();
    let history = scope.history("secret", 9).unwrap();
    assert_eq!((history.versions.len(), history.more, history.compacted), (1, false, false));
    assert_eq!(scope.entry_as_of("secret", written).unwrap(), None);
    let newest = format!("{:?}", board.events().newest(&Lines::default()).unwrap());
    assert!(newest.contains("secret") && !newest.contains("Ivy\\\" wrote"), "{newest}");
    assert_eq!(fixture.scope().history("secret", 9).unwrap().versions.len(), 3);
    // It ends as the first one did, and its own past is hidden from a third one.
    board.agents().deregister(&oak).unwrap();
    let elm = fixture.session("Elm");
    create(fixture, Policies::default(), &elm);
    let open = fixture.board.with_caller(Actor::session(&elm));
    assert!(open.scope("team").history("secret", 9).unwrap().versions.is_empty());
}

fn a_deleted_scope_still_hides_what_was_before_it(fixture: &Fixture) {
    ended_scope(fixture);
    let oak = fixture.session("Oak");
    create(fixture, Policies::default(), &oak);
    fixture.write("a", "1");
    let delete = DeleteScope { name: "team".to_owned(), entries: false, session: Some(oak.clone()) };
    assert_eq!(fixture.board.scopes().delete(&delete).unwrap().kept_entries, 1);
    assert_eq!(code(fixture.board.scopes().delete(&delete)), Code::ScopeNotFound);
    let scopes = fixture.board.scopes();
    assert_eq!(code(scopes.set(&SetScope { ttl: Some(None), ..SetScope::of("team") })), Code::ScopeNotFound);
    let shown = scopes.show("team").unwrap();
    assert_eq!((shown.policies.clone(), shown.created_at), (Policies::default(), None));
    assert_eq!(scopes.list().unwrap(), [shown]);
    // It is open, and its past is not.
    let board = fixture.board.with_caller(Actor::session(&oak));
    board.scope("team").write(&a_write("secret", "1")).unwrap();
    assert_eq!(board.scope("team").history("secret", 9).unwrap().versions.len(), 1);
    create(fixture, Policies::default(), &oak);
    assert_eq!(board.scope("team").history("secret", 9).unwrap().versions.len(), 1);
}

fn a_scope_that_has_ended_is_not_listed(fixture: &Fixture) {
    ended_scope(fixture);
    let scopes = fixture.board.scopes();
    assert!(scopes.list().unwrap().is_empty());
    assert!(fixture.board.export().unwrap().scopes.is_empty());
    assert_eq!(code(fixture.board.export_scope("team")), Code::ScopeNotFound);
    assert_eq!(scopes.show("team").unwrap().policies.status, ScopeStatus::Ended);
    let oak = fixture.board.with_caller(Actor::author("Oak"));
    assert_eq!(code(oak.scopes().show("team")), Code::NotAllowed);
    let delete = |entries| DeleteScope { name: "team".to_owned(), entries, session: None };
    for entries in [true, false] {
        assert_eq!(code(scopes.delete(&delete(entries))), Code::ScopeNotFound);
    }
}

fn what_is_pruned_last_removes_the_policies(fixture: &Fixture) {
    ended_scope(fixture);
    let prune = || {
        fixture.pass(2 * 3600);
        fixture.board.prune().unwrap();
        row(fixture).is_some()
    };
    assert!(prune());
    let ended = row(fixture).unwrap().revision;
    fixture.board.scope("other").write(&a_write("a", "1")).unwrap();
    fixture.trim(ended.previous());
    assert!(prune(), "the event of its end is kept");
    fixture.trim(ended);
    assert!(!prune());
    let left = fixture.read(|tx| tx.count(&Range::bookkeeping_rows("past-scopes:"))).unwrap();
    assert_eq!(left, 0);
    fixture.write("open", "1");
}

fn a_stale_session_that_recovers_has_its_local_scope(fixture: &Fixture) {
    let ivy = fixture.session_of_process("Ivy", 100);
    create(fixture, local(), &ivy);
    fixture.scope_of(&ivy).write(&a_write("secret", SECRET)).unwrap();
    fixture.processes.end(100);
    fixture.pass(3600);
    let swept = fixture.sweep();
    assert_eq!((swept.stale_agents.len(), swept.deleted_scopes.len()), (1, 0));
    assert!(fixture.board.agents().heartbeat(&Heartbeat::of(&ivy)).unwrap().recovered);
    assert_eq!(fixture.scope_of(&ivy).read("secret").unwrap(), Some(json(SECRET)));
    fixture.scope_of(&ivy).write(&a_write("other", "1")).unwrap();
    fixture.board.agents().deregister(&ivy).unwrap();
    assert_eq!(fixture.value("secret"), None);
}
