//! Imports: the entries of a file are decided and written in the same commit.

use super::*;
use crate::entry::{Import, ImportOutcome, Keep, SkipReason};
use crate::scope::{CreateScope, Eviction, Policies};
use crate::swarm::FileEntry;

on_every_engine![
    import_keeps_author_time_and_expiry_and_is_idempotent,
    an_older_file_does_not_replace_a_newer_entry,
    dry_run_reports_the_same_and_changes_nothing,
    refused_entry_does_not_stop_the_others_of_its_commit,
    a_dry_run_evicts_what_the_import_evicts,
    nothing_is_imported_into_the_scope_of_locks,
];

fn file_entry(fixture: &Fixture, key: &str, value: &str) -> FileEntry {
    FileEntry {
        author: Some("orchestrator".to_owned()),
        timestamp: Some(fixture.now().minus(Duration::from_mins(1))),
        ttl: Some(Duration::from_mins(2)),
        ..FileEntry::new(key, json(value))
    }
}

fn outcomes(fixture: &Fixture, entries: &[FileEntry], import: Import) -> Vec<ImportOutcome> {
    let report = fixture.scope().import(entries, &import).unwrap();
    report.entries.into_iter().map(|entry| entry.outcome).collect()
}

fn import_keeps_author_time_and_expiry_and_is_idempotent(fixture: &Fixture) {
    let entries = [file_entry(fixture, "a", "1"), file_entry(fixture, "b", "[2]")];
    let (imported, recorded) = fixture.events_of(|| outcomes(fixture, &entries, Import::default()));
    assert_eq!(imported, [ImportOutcome::Created, ImportOutcome::Created]);
    assert_eq!(recorded, [EventType::EntryWritten, EventType::EntryWritten]);
    let entry = fixture.scope().entry("a").unwrap().unwrap();
    assert_eq!((&*entry.updated_by, entry.version), ("orchestrator", 1));
    assert_eq!(entry.expires_at, Some(fixture.now().plus(Duration::from_mins(1))));
    let view = fixture.board.swarm_view("team").unwrap();
    assert_eq!((view.entries[0].timestamp, view.entries[0].ttl), (entries[0].timestamp, entries[0].ttl));
    let (again, recorded) = fixture.events_of(|| outcomes(fixture, &entries, Import::default()));
    assert_eq!((again, recorded), (vec![ImportOutcome::Unchanged, ImportOutcome::Unchanged], vec![]));
}

fn an_older_file_does_not_replace_a_newer_entry(fixture: &Fixture) {
    fixture.write("a", "1");
    let older = [file_entry(fixture, "a", "2")];
    assert_eq!(outcomes(fixture, &older, Import::default()), [ImportOutcome::Kept]);
    let theirs = Import { keep: Keep::Theirs, ..Import::default() };
    assert_eq!(outcomes(fixture, &older, theirs), [ImportOutcome::Updated]);
    // A write that keeps the metadata is newer than the file.
    fixture.clock.advance(Duration::from_secs(1));
    fixture.scope().increment("a", 1).unwrap();
    assert_eq!(outcomes(fixture, &older, Import::default()), [ImportOutcome::Kept]);
}

fn dry_run_reports_the_same_and_changes_nothing(fixture: &Fixture) {
    fixture.write("same", "1");
    let expired = FileEntry { ttl: Some(Duration::from_secs(1)), ..file_entry(fixture, "late", "1") };
    let entries = [file_entry(fixture, "a", "1"), file_entry(fixture, "same", "2"), expired];
    let dry_run = Import { dry_run: true, ..Import::default() };
    let (planned, recorded) = fixture.events_of(|| outcomes(fixture, &entries, dry_run));
    assert_eq!(recorded, []);
    assert_eq!(planned, outcomes(fixture, &entries, Import::default()));
    assert!(matches!(planned[2], ImportOutcome::Skipped(SkipReason::Expired(_))));
}

fn refused_entry_does_not_stop_the_others_of_its_commit(fixture: &Fixture) {
    // Only the commit knows that this key is new, and then refuses it.
    let entries: Vec<_> =
        ["a", "b", "e\u{301}", "c", "d"].iter().map(|key| file_entry(fixture, key, "1")).collect();
    let imported = outcomes(fixture, &entries, Import::default());
    assert!(matches!(&imported[2], ImportOutcome::Refused { code: Code::InvalidValue, .. }), "{imported:?}");
    assert_eq!(imported.iter().filter(|outcome| **outcome == ImportOutcome::Created).count(), 4);
}

fn a_dry_run_evicts_what_the_import_evicts(fixture: &Fixture) {
    let counted = |key: &str, count: usize| FileEntry {
        metadata: Some(Metadata::parse(&format!(r#"{{"access_count": {count}}}"#)).unwrap()),
        tags: Some(Vec::new()),
        ..file_entry(fixture, key, "1")
    };
    let dry_run = Import { dry_run: true, ..Import::default() };
    for (eviction, expected) in [
        (Eviction::Lru, [None, Some("x"), Some("held-free"), Some("y"), Some("a"), Some("b")]),
        (Eviction::Lfu, [None, Some("x"), Some("y"), Some("a"), Some("b"), Some("c")]),
        (Eviction::Refuse, [None; 6]),
    ] {
        let name = format!("scope-{eviction}");
        let policies = Policies { max_entries: Some(4), eviction, ..Policies::default() };
        fixture.board.scopes().create(&CreateScope::new(&name, policies)).unwrap();
        let scope = fixture.board.scope(&name);
        // The import has more entries than the scope may have, and one that the board has.
        let before = [counted("x", 1), counted("held-free", 9), counted("y", 2)];
        scope.import(&before, &Import::default()).unwrap();
        let file: Vec<_> = [("a", 3), ("b", 4), ("c", 5), ("d", 6), ("e", 7), ("f", 8)]
            .into_iter()
            .map(|(key, count)| counted(key, count))
            .collect();
        let (planned, events) = fixture.events_of(|| scope.import(&file, &dry_run).unwrap());
        assert_eq!(events, []);
        let (imported, events) = fixture.events_of(|| scope.import(&file, &Import::default()).unwrap());
        assert_eq!(planned, imported, "{eviction}");
        let evicted: Vec<_> = imported.entries.iter().map(|entry| entry.evicted.as_deref()).collect();
        assert_eq!(evicted, expected, "{eviction}");
        let evictions = events.iter().filter(|event| **event == EventType::EntryEvicted).count();
        assert_eq!((evictions, imported.evicted()), (imported.evicted(), expected.iter().flatten().count()));
    }
}

fn nothing_is_imported_into_the_scope_of_locks(fixture: &Fixture) {
    for scope in ["locks", "files"] {
        let entries = [file_entry(fixture, "a", "1")];
        let refused = fixture.board.scope(scope).import(&entries, &Import::default()).unwrap_err();
        assert_eq!(refused.code(), Code::InvalidValue);
        assert!(refused.to_string().contains("is reserved for"), "{refused}");
    }
}
