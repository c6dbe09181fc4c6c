//! Scopes with many or large entries are deleted a batch at a time.

use super::*;
use crate::scope::{CreateScope, DeleteScope, Policies, Visibility};

on_every_engine![
    a_scope_with_large_values_is_deleted_in_several_commits,
    the_end_of_a_session_or_item_deletes_a_part_and_a_sweep_the_rest,
    leased_entries_that_an_eviction_passes_over_do_not_fill_the_commit,
];

/// The entries that one commit of [`small_commits`] deletes.
const AT_ONCE: usize = 3;

/// The same board, with commits of at most a few entries.
fn small_commits(fixture: &Fixture) -> Board {
    fixture.with_settings(|settings| settings.max_commit_bytes = 250)
}

/// Writes entries with values of 100 bytes.
fn fill(fixture: &Fixture, scope: &str, session: Option<&str>, count: usize) {
    let value = format!("\"{}\"", "x".repeat(98));
    let writes: Vec<_> = (0..count).map(|number| a_write(&format!("k{number:02}"), &value)).collect();
    let actor = session.map(Actor::session).unwrap_or_default();
    fixture.board.scope(scope).acting_as(actor).write_batch(&writes).unwrap();
}

fn create_local(fixture: &Fixture, name: &str, session: &str) {
    let policies = Policies { visibility: Visibility::Local, ..Policies::default() };
    let create = CreateScope { session: Some(session.to_owned()), ..CreateScope::new(name, policies) };
    assert!(fixture.board.scopes().create(&create).unwrap().created);
}

fn entries(fixture: &Fixture, scope: &str) -> u64 {
    fixture.read(|tx| tx.count(&Range::entries(scope, ""))).unwrap()
}

/// How many entries each commit after a revision deleted.
fn deleted_by_commits(fixture: &Fixture, after: Revision) -> Vec<usize> {
    let mut events = fixture.events_after(after);
    events.retain(|event| event.event_type == EventType::EntryDeleted);
    events.chunk_by(|a, b| a.commit_id == b.commit_id).map(<[_]>::len).collect()
}

fn a_scope_with_large_values_is_deleted_in_several_commits(fixture: &Fixture) {
    let board = small_commits(fixture);
    fill(fixture, "team", None, 8);
    let before = fixture.revision();
    let delete = DeleteScope { name: "team".to_owned(), entries: true, session: None };
    assert_eq!(board.scopes().delete(&delete).unwrap().deleted_entries, 8);
    assert_eq!(deleted_by_commits(fixture, before), [AT_ONCE, AT_ONCE, 2]);
    // So is one that ends with its session.
    let ivy = fixture.session("Ivy");
    create_local(fixture, "team", &ivy);
    fill(fixture, "team", Some(&ivy), 8);
    let before = fixture.revision();
    board.agents().deregister(&ivy).unwrap();
    assert_eq!(deleted_by_commits(fixture, before), [AT_ONCE, AT_ONCE, 2]);
    assert_eq!(entries(fixture, "team"), 0);
}

/// The commits that the call makes which ends a session or an item.
const COMMITS: usize = 4;

fn the_end_of_a_session_or_item_deletes_a_part_and_a_sweep_the_rest(fixture: &Fixture) {
    let board = small_commits(fixture);
    let [ivy, oak, elm] = ["Ivy", "Oak", "Elm"].map(|name| fixture.session(name));
    for (scope, session) in [("team", &ivy), ("other", &oak)] {
        create_local(fixture, scope, session);
        fill(fixture, scope, Some(session), 20);
    }
    fixture.item("task");
    let policies = Policies { work_item: Some("task".to_owned()), ..Policies::default() };
    fixture.board.scopes().create(&CreateScope::new("of-item", policies)).unwrap();
    fill(fixture, "of-item", None, 20);
    let left = (20 - COMMITS * AT_ONCE) as u64;
    board.agents().deregister(&ivy).unwrap();
    assert_eq!((entries(fixture, "team"), entries(fixture, "other")), (left, 20));
    // What another session left is not deleted by a call that ends something else.
    fixture.claim("task", &elm);
    board.work().complete(&Complete::of("task", &elm)).unwrap();
    assert_eq!((entries(fixture, "team"), entries(fixture, "of-item")), (left, left));
    let swept = fixture.sweep();
    assert_eq!(swept.deleted_scopes, ["team", "of-item"]);
    assert_eq!((entries(fixture, "team"), entries(fixture, "of-item")), (0, 0));
    assert_eq!(entries(fixture, "other"), 20);
}

fn leased_entries_that_an_eviction_passes_over_do_not_fill_the_commit(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    let policies = Policies { max_entries: Some(12), ..Policies::default() };
    fixture.board.scopes().create(&CreateScope::new("team", policies)).unwrap();
    let value = format!("\"{}\"", "x".repeat(98));
    let leased = |number| Write { lease: true, ..a_write(&format!("leased{number}"), &value) };
    let leased: Vec<_> = (0..10).map(leased).collect();
    fixture.scope_of(&ivy).write_batch(&leased).unwrap();
    fixture.scope().write_batch(&[a_write("a", "1"), a_write("b", "1")]).unwrap();
    let board = small_commits(fixture);
    let written = board.scope("team").write_batch(&[a_write("c", "1"), a_write("d", "1")]).unwrap();
    let evicted: Vec<_> = written.into_iter().filter_map(|written| written.evicted).collect();
    assert_eq!(evicted, ["a", "b"]);
}
