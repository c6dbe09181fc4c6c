//! Imports: the entries of a file are decided and written in the same commit.

use super::*;
use crate::entry::{Import, ImportOutcome, Keep, SkipReason};
use crate::swarm::FileEntry;

on_every_engine![
    import_keeps_author_time_and_expiry_and_is_idempotent,
    an_older_file_does_not_replace_a_newer_entry,
    dry_run_reports_the_same_and_changes_nothing,
    refused_entry_does_not_stop_the_others_of_its_commit,
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
