//! Scopes that end with a session or a work item: they are deleted a batch at a time.

use super::access::delete;
use super::*;
use crate::scope::{CreateScope, Policies, ScopePolicies, SetScope, Visibility};
use crate::store::{BookkeepingRow, Key, Prefetch};

on_every_engine![
    a_local_scope_is_for_its_session_and_ends_with_it,
    a_scope_ends_with_its_work_item,
    a_scope_that_was_not_deleted_completely_is_deleted_by_the_next_sweep,
    an_automatic_sweep_ends_scopes_a_batch_at_a_time,
    a_damaged_list_of_ended_scopes_does_not_stop_the_others,
    a_session_or_item_has_a_limited_number_of_scopes,
    only_a_scope_that_still_ends_with_a_session_is_deleted,
    a_scope_that_ends_begins_without_entries,
];

fn create_local(fixture: &Fixture, name: &str, session: &str) {
    let policies = Policies { visibility: Visibility::Local, ..Policies::default() };
    let create = CreateScope { session: Some(session.to_owned()), ..CreateScope::new(name, policies) };
    assert!(fixture.board.scopes().create(&create).unwrap().created);
}

/// How many entries of a scope are stored, and whether the scope exists or waits for its deletion.
fn rest_of(fixture: &Fixture, scope: &str) -> (u64, bool) {
    let policies = Key::ScopePolicies(scope.to_owned());
    let listed = Range::bookkeeping_rows("ended-scopes:");
    let rest = fixture.read(|tx| {
        let row = tx.row::<ScopePolicies>(&policies)?;
        let mut listed = tx.rows::<BookkeepingRow>(&listed)?.into_iter();
        let waits = listed.any(|list| list.value.contains(&format!("\"{scope}\"")));
        let exists = row.is_some_and(|row| row.is_live());
        Ok((tx.count(&Range::entries(scope, ""))?, exists || waits))
    });
    rest.unwrap()
}

fn a_local_scope_is_for_its_session_and_ends_with_it(fixture: &Fixture) {
    let local = Policies { visibility: Visibility::Local, ..Policies::default() };
    let scopes = fixture.board.scopes();
    assert_eq!(code(scopes.create(&CreateScope::new("team", local))), Code::NoSession);
    for ends_by_itself in [true, false] {
        let ivy = fixture.session_of_process("Ivy", 100);
        let oak = fixture.session("Oak");
        create_local(fixture, "team", &ivy);
        for batch in 0..3 {
            let write = |number| Write { lease: number == 7, ..a_write(&format!("{batch}-{number}"), "1") };
            let writes: Vec<_> = (0..400).map(write).collect();
            fixture.scope_of(&ivy).write_batch(&writes).unwrap();
        }
        assert_eq!(code(fixture.scope_of(&oak).read("0-0")), Code::NotAllowed);
        assert_eq!(code(fixture.scope().acting_as(Actor::author("Ivy")).read("0-0")), Code::NotAllowed);
        assert!(fixture.scope_of(&ivy).read("0-0").unwrap().is_some());
        let global = SetScope { visibility: Some(Visibility::Global), ..SetScope::of("team") };
        assert_eq!(code(scopes.set(&global)), Code::InvalidValue);
        fixture.board.agents().deregister(&oak).unwrap();
        let before = fixture.revision();
        if ends_by_itself {
            fixture.board.agents().deregister(&ivy).unwrap();
        } else {
            fixture.processes.end(100);
            fixture.pass(3600);
            fixture.sweep();
            fixture.pass(8 * 24 * 3600);
            fixture.board.prune().unwrap();
            fixture.sweep();
        }
        assert_eq!(rest_of(fixture, "team"), (0, false), "by itself: {ends_by_itself}");
        let events = fixture.events_after(before);
        let removed = events.iter().filter(|event| event.event_type == EventType::EntryDeleted);
        assert_eq!(removed.count(), 1200);
        let largest = events
            .iter()
            .map(|event| events.iter().filter(|other| other.commit_id == event.commit_id).count());
        assert!(largest.max().unwrap() <= 510, "a commit is not larger than a batch");
        let ended = events.iter().filter(|event| event.event_type == EventType::ScopeDeleted);
        assert_eq!(ended.count(), 1);
    }
}

fn a_scope_ends_with_its_work_item(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    let create = |scope: &str, item: &str| {
        let policies =
            Policies { work_item: Some(item.to_owned()), max_entries: Some(9), ..Policies::default() };
        fixture.board.scopes().create(&CreateScope::new(scope, policies))
    };
    assert_eq!(code(create("team", "none")), Code::WorkNotFound);
    for item in ["done", "deleted", "open"] {
        fixture.item(item);
        create(item, item).unwrap();
        create(&format!("{item}-2"), item).unwrap();
        fixture.board.scope(item).write(&a_write("a", "1")).unwrap();
        fixture.board.scope(item).write(&a_write("b", "1")).unwrap();
    }
    fixture.claim("done", &ivy);
    fixture.complete("done", &ivy);
    fixture.board.work().delete("deleted", false, None).unwrap();
    for (scope, expected) in [
        ("done", (0, false)),
        ("done-2", (0, false)),
        ("deleted", (0, false)),
        ("deleted-2", (0, false)),
        ("open", (2, true)),
        ("open-2", (0, true)),
    ] {
        assert_eq!(rest_of(fixture, scope), expected, "{scope}");
    }
    assert_eq!(code(create("late", "done")), Code::AlreadyCompleted);
}

fn a_scope_that_was_not_deleted_completely_is_deleted_by_the_next_sweep(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    create_local(fixture, "team", &ivy);
    fixture.scope_of(&ivy).write(&a_write("a", "1")).unwrap();
    end_without_deletion(fixture, &ivy);
    assert_eq!(rest_of(fixture, "team"), (1, true));
    let swept = fixture.board.sweep(&Sweep::default()).unwrap();
    assert_eq!((swept.deleted_scopes, swept.skipped_scopes), (vec!["team".to_owned()], Vec::new()));
    assert_eq!(rest_of(fixture, "team"), (0, false));
    assert_eq!(lists(fixture, "ended-scopes:"), 0);
}

/// The commit that ends a session, without what follows it.
fn end_without_deletion(fixture: &Fixture, session: &str) {
    let ended = fixture.commit(|tx| {
        let mut changes = Changes::new();
        assert!(crate::scope::EndsWith::Session(session).end(tx, &mut changes)?);
        changes.event(an_event());
        Ok(changes)
    });
    ended.unwrap();
}

/// How many lists of scopes there are.
fn lists(fixture: &Fixture, prefix: &str) -> u64 {
    fixture.read(|tx| tx.count(&Range::bookkeeping_rows(prefix))).unwrap()
}

fn an_automatic_sweep_ends_scopes_a_batch_at_a_time(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session_of_process("Oak", 100));
    create_local(fixture, "team", &ivy);
    for batch in 0..2 {
        let writes: Vec<_> = (0..300).map(|number| a_write(&format!("{batch}-{number}"), "1")).collect();
        fixture.scope_of(&ivy).write_batch(&writes).unwrap();
    }
    create_local(fixture, "other", &oak);
    end_without_deletion(fixture, &ivy);
    // Nothing else is due: each sweep finds that there is something left.
    for (expected, deleted) in [((100, true), 0), ((0, true), 0), ((0, false), 1), ((0, false), 0)] {
        let swept = fixture.board.try_sweep(None);
        assert_eq!((rest_of(fixture, "team"), swept.deleted_scopes.len()), (expected, deleted));
    }
    // A session that is marked stale may recover. It ends when it is pruned.
    fixture.processes.end(100);
    fixture.pass(3600);
    fixture.board.try_sweep(None);
    assert_eq!((rest_of(fixture, "other"), lists(fixture, "scopes:")), ((0, true), 1));
    fixture.pass(8 * 24 * 3600);
    fixture.board.prune().unwrap();
    fixture.board.try_sweep(None);
    assert_eq!((rest_of(fixture, "other"), lists(fixture, "scopes:")), ((0, false), 0));
    assert_eq!(lists(fixture, "ended-scopes:"), 0);
}

fn a_damaged_list_of_ended_scopes_does_not_stop_the_others(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    create_local(fixture, "team", &ivy);
    end_without_deletion(fixture, &ivy);
    let damaged = fixture.commit(|tx| {
        let mut changes = Changes::new();
        for name in ["ended-scopes:other", "ended-scopes:session:"] {
            let key = Key::BookkeepingRow(name.into());
            tx.prefetch(&[Prefetch::Row(key.clone())])?;
            assert!(tx.get(&key)?.is_none());
            changes.put(BookkeepingRow { name: name.into(), value: "{".to_owned() });
        }
        changes.event(an_event());
        Ok(changes)
    });
    damaged.unwrap();
    for left in [2, 1, 0] {
        fixture.board.try_sweep(None);
        assert_eq!(lists(fixture, "ended-scopes:"), left);
    }
    assert_eq!(rest_of(fixture, "team"), (0, false));
}

fn a_session_or_item_has_a_limited_number_of_scopes(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    fixture.item("task");
    let scopes = fixture.board.scopes();
    let local = Policies { visibility: Visibility::Local, ..Policies::default() };
    let of_item = Policies { work_item: Some("task".to_owned()), ..Policies::default() };
    for (kind, policies) in [("local", local), ("item", of_item)] {
        let create = |number: usize| {
            let name = format!("{kind}-{number}");
            let session = Some(ivy.clone());
            scopes.create(&CreateScope { session, ..CreateScope::new(&name, policies.clone()) })
        };
        for number in 0..100 {
            create(number).unwrap();
        }
        assert_eq!(code(create(100)), Code::InvalidValue, "{kind}");
        assert!(!create(99).unwrap().created, "{kind}");
        delete(fixture, &format!("{kind}-7"));
        create(100).unwrap();
        assert_eq!(code(create(7)), Code::InvalidValue, "{kind}");
        for number in (0..101).filter(|number| *number != 7) {
            delete(fixture, &format!("{kind}-{number}"));
        }
        assert_eq!(lists(fixture, "scopes:"), 0, "{kind}");
    }
}

fn only_a_scope_that_still_ends_with_a_session_is_deleted(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    for scope in ["team", "other", "plain"] {
        create_local(fixture, scope, &ivy);
        delete(fixture, scope);
    }
    create_local(fixture, "team", &oak);
    create_local(fixture, "other", &ivy);
    for (scope, session) in [("team", &oak), ("other", &ivy), ("plain", &oak)] {
        let scope = fixture.board.scope(scope);
        scope.acting_as(Actor::session(session)).write(&a_write("a", "1")).unwrap();
    }
    fixture.board.agents().deregister(&ivy).unwrap();
    assert_eq!(rest_of(fixture, "team"), (1, true));
    assert_eq!(rest_of(fixture, "other"), (0, false));
    assert_eq!(rest_of(fixture, "plain"), (1, false));
}

fn a_scope_that_ends_begins_without_entries(fixture: &Fixture) {
    let (ivy, scopes) = (fixture.session("Ivy"), fixture.board.scopes());
    fixture.item("item");
    fixture.write("a", "1");
    let local = Policies { visibility: Visibility::Local, ..Policies::default() };
    let of_item = Policies { work_item: Some("item".to_owned()), ..Policies::default() };
    for policies in [local.clone(), of_item] {
        let create = CreateScope { session: Some(ivy.clone()), ..CreateScope::new("team", policies) };
        assert_eq!(scopes.create(&create).unwrap_err().code(), Code::InUse);
    }
    assert!(fixture.value("a").is_some());
    fixture.scope().delete("a").unwrap();
    let create = CreateScope { session: Some(ivy), ..CreateScope::new("team", local) };
    assert!(scopes.create(&create).unwrap().created);
}
