//! A purge erases a key with its history, and leaves the event log readable.

use super::*;
use crate::entry::{Operation, OperationResult, Txn};
use crate::event::Since;
use crate::store::Erasure;

on_every_engine![
    purge_erases_the_entry_its_versions_and_event_content,
    a_purge_keeps_every_id_and_the_events_of_other_keys,
    purged_key_continues_its_versions,
    a_deleted_key_can_be_purged,
    a_second_purge_erases_what_was_written_since_the_first,
    a_purge_is_refused_while_another_session_holds_the_entry,
    a_purge_of_an_unknown_key_is_refused_and_one_of_a_purged_key_changes_nothing,
    a_remembered_answer_loses_the_value_and_is_still_remembered,
    purge_plan_lists_the_erasures_and_changes_nothing,
    retention_removes_a_purged_key,
    an_erasure_of_a_pruned_event_removes_its_version,
];

const SECRET: &str = "\"s3cret\"";

fn leak(fixture: &Fixture, key: &str) -> Written {
    let metadata = Metadata::parse(r#"{"note": "s3cret"}"#).unwrap();
    let write = Write { tags: owned(&["s3cret"]), metadata: Some(metadata), ..a_write(key, SECRET) };
    fixture.scope().write(&write).unwrap()
}

/// Whether anything that a reader of the board gets contains the secret.
fn is_readable(fixture: &Fixture) -> bool {
    let board = &fixture.board;
    let observation = board.events().observe(&Since::Revision(Revision::ZERO), &[]).unwrap();
    let events = board.events().next(&observation, Revision::ZERO, usize::MAX).unwrap();
    let calls = fixture.read(|tx| tx.range(&super::super::Range::operations())).unwrap();
    let everything = format!("{:?} {events:?} {calls:?}", board.export().unwrap());
    everything.contains("s3cret")
}

fn purge_erases_the_entry_its_versions_and_event_content(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    let first = leak(fixture, "token");
    leak(fixture, "token");
    assert!(is_readable(fixture));
    fixture.pass(5);
    let (purged, recorded) = fixture.events_of(|| fixture.scope_of(&session).purge("token").unwrap());
    assert_eq!(recorded, [EventType::EntryPurged]);
    assert_eq!((purged.versions, purged.answers, purged.scrubbed), (2, 0, true));
    assert_eq!(purged.revision, fixture.revision());
    assert!(!is_readable(fixture));
    assert_eq!(fixture.entry("token"), None);
    let tagged = crate::entry::Query { tags: owned(&["s3cret"]), ..Default::default() };
    assert!(fixture.scope().list(&tagged).unwrap().is_empty());
    let history = fixture.scope().history("token", 10).unwrap();
    assert!(matches!(&history.versions[..], [purge] if purge.is_purge() && purge.entry.updated_by == "Ivy"));
    assert!(!history.compacted);
    assert_eq!(code(fixture.scope().entry_as_of("token", first.revision)), Code::Compacted);
    assert_eq!(fixture.scope().entry_as_of("token", purged.revision).unwrap(), None);
    let event = fixture.events().pop().unwrap();
    assert_eq!(event.summary, r#"Agent "Ivy" purged "token" in scope "team" (2 versions)"#);
    assert_eq!(metadata(&event), serde_json::json!({"op": "purge", "scope": "team", "versions": 2}));
    assert_eq!((event.actor_id.as_ref(), event.target_id.as_deref()), (Some(&session), Some("token")));
}

fn a_purge_keeps_every_id_and_the_events_of_other_keys(fixture: &Fixture) {
    leak(fixture, "token");
    fixture.write("other", "1");
    leak(fixture, "token");
    let before = fixture.events();
    fixture.scope().purge("token").unwrap();
    let after = fixture.events();
    assert_eq!(after.len(), before.len() + 1);
    for (before, after) in before.iter().zip(&after) {
        let kept = |event: &Event| {
            let Event { id, timestamp, event_type, target_id, commit_id, .. } = event.clone();
            (id, timestamp, event_type, target_id, commit_id)
        };
        assert_eq!(kept(before), kept(after));
    }
    assert_eq!(after[1], before[1]);
    assert_eq!(after[0].summary, r#""token" in scope "team" (purged)"#);
    let erased = serde_json::json!({"op": "create", "scope": "team", "purged": true});
    assert_eq!(metadata(&after[0]), erased);
    assert_eq!(fixture.value("other").as_deref(), Some("1"));
}

fn purged_key_continues_its_versions(fixture: &Fixture) {
    leak(fixture, "token");
    leak(fixture, "token");
    let purged = fixture.scope().purge("token").unwrap();
    let written = fixture.write("token", "1");
    assert_eq!((written.version, written.created), (3, true));
    let history = fixture.scope().history("token", 10).unwrap();
    let recorded: Vec<_> =
        history.versions.iter().map(|version| (version.previous, version.is_purge())).collect();
    assert_eq!(recorded, [(Some(purged.revision), false), (None, true)]);
}

fn a_deleted_key_can_be_purged(fixture: &Fixture) {
    leak(fixture, "token");
    fixture.scope().delete("token").unwrap();
    assert!(is_readable(fixture));
    let purged = fixture.scope().purge("token").unwrap();
    assert_eq!(purged.versions, 2);
    assert!(!is_readable(fixture));
    let expiring = Write { ttl: Some(Duration::from_secs(1)), ..a_write("brief", SECRET) };
    fixture.scope().write(&expiring).unwrap();
    fixture.pass(2);
    assert_eq!(fixture.scope().purge("brief").unwrap().versions, 1, "no sweep has seen that it expired");
    assert!(!is_readable(fixture));
}

fn a_second_purge_erases_what_was_written_since_the_first(fixture: &Fixture) {
    leak(fixture, "token");
    let first = fixture.scope().purge("token").unwrap();
    leak(fixture, "token");
    let second = fixture.scope().purge("token").unwrap();
    assert_eq!(second.versions, 1);
    assert!(!is_readable(fixture));
    assert_eq!(fixture.scope().history("token", 10).unwrap().versions.len(), 1);
    let events = fixture.events();
    let first = events.iter().find(|event| event.id == first.revision).unwrap();
    assert!(first.summary.contains("purged \"token\""), "the report of the first purge stays: {first:?}");
}

fn a_purge_is_refused_while_another_session_holds_the_entry(fixture: &Fixture) {
    let [ivy, oak] = ["Ivy", "Oak"].map(|name| fixture.session(name));
    let write = Write { lease: true, ..a_write("token", SECRET) };
    fixture.scope_of(&ivy).write(&write).unwrap();
    assert_eq!(code(fixture.scope_of(&oak).purge("token")), Code::Held);
    assert_eq!(code(fixture.scope_of(&oak).plan_purge("token")), Code::Held);
    assert_eq!(code(fixture.scope().purge("token")), Code::Held);
    assert_eq!(fixture.value("token").as_deref(), Some(SECRET));
    fixture.scope_of(&ivy).purge("token").unwrap();
    assert!(!is_readable(fixture));
}

fn a_purge_of_an_unknown_key_is_refused_and_one_of_a_purged_key_changes_nothing(fixture: &Fixture) {
    assert_eq!(code(fixture.scope().purge("token")), Code::EntryNotFound);
    leak(fixture, "token");
    assert_eq!(code(fixture.board.scope("other").purge("token")), Code::EntryNotFound);
    let first = fixture.scope().purge("token").unwrap();
    let (again, recorded) = fixture.events_of(|| fixture.scope().purge("token").unwrap());
    assert_eq!(recorded, []);
    assert_eq!((again.versions, again.revision, again.scrubbed), (0, first.revision, true));
}

fn a_remembered_answer_loses_the_value_and_is_still_remembered(fixture: &Fixture) {
    leak(fixture, "token");
    fixture.write("other", "1");
    let read = |key: &str| Operation::Read { scope: "team".to_owned(), key: key.to_owned() };
    let txn = Txn { then: vec![read("token"), read("other")], ..Txn::default() };
    let by = Actor { operation: Some("read-it".to_owned()), ..Actor::default() };
    let before = fixture.board.txn(&txn, &by).unwrap();
    let operation = Actor { operation: Some("purge-it".to_owned()), ..Actor::default() };
    let purged = fixture.scope().acting_as(operation.clone()).purge("token").unwrap();
    assert_eq!((purged.versions, purged.answers), (1, 1));
    assert!(!is_readable(fixture));
    let after = fixture.board.txn(&txn, &by).unwrap();
    assert_eq!(after.results[1], before.results[1]);
    let OperationResult::Read(Some(entry)) = &after.results[0] else { panic!("{after:?}") };
    assert_eq!((entry.value.as_str(), entry.version), ("null", 1));
    assert_eq!(
        fixture.scope().acting_as(operation).purge("token").unwrap(),
        purged,
        "the same call, the same answer"
    );
}

fn purge_plan_lists_the_erasures_and_changes_nothing(fixture: &Fixture) {
    leak(fixture, "token");
    leak(fixture, "token");
    let (plan, recorded) = fixture.events_of(|| fixture.scope().plan_purge("token").unwrap());
    assert_eq!((plan.versions, plan.answers, recorded.len()), (2, 0, 0));
    assert_eq!(fixture.value("token").as_deref(), Some(SECRET));
    assert_eq!(code(fixture.scope().plan_purge("none")), Code::EntryNotFound);
}

fn retention_removes_a_purged_key(fixture: &Fixture) {
    leak(fixture, "token");
    let purged = fixture.scope().purge("token").unwrap();
    fixture.write("other", "1");
    fixture.trim(purged.revision);
    assert!(fixture.scope().history("token", 10).unwrap().versions.is_empty());
    assert_eq!(code(fixture.scope().purge("token")), Code::EntryNotFound);
    assert_eq!(fixture.write("token", "1").version, 1);
}

fn an_erasure_of_a_pruned_event_removes_its_version(fixture: &Fixture) {
    let leaked = leak(fixture, "token");
    fixture.write("other", "1");
    fixture.trim(leaked.revision);
    let erasure = Erasure { event: leaked.revision, summary: "erased".to_owned(), metadata: None };
    let purged = fixture.scope().purge("token").unwrap();
    assert_eq!(purged.versions, 1);
    fixture.commit(|_| Ok(Changes { erase: vec![erasure.clone()], ..Changes::new() })).unwrap();
    let version = fixture.read(|tx| tx.version(leaked.revision)).unwrap();
    assert_eq!(version, None);
    assert!(!is_readable(fixture));
    assert!(fixture.events().iter().all(|event| event.summary != "erased"));
}
