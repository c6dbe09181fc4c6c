use std::sync::Arc;

use super::*;
use crate::agent::Register;
use crate::board::Board;
use crate::clock::{Clock, FixedClock};
use crate::entry::{Query, Value};
use crate::store::Memory;
use crate::swarm::{Dialect, parse, render};

const NOW: &str = "2026-02-03T15:30:00.000Z";

fn board() -> Board {
    board_and_clock().0
}

fn board_and_clock() -> (Board, Arc<FixedClock>) {
    let fixed = Arc::new(FixedClock::at(NOW).unwrap());
    let clock: Arc<dyn Clock> = fixed.clone();
    (Board::on(Arc::new(Memory::new(clock.clone())), clock), fixed)
}

fn file_entry(key: &str, value: i64, time: &str) -> FileEntry {
    FileEntry {
        author: Some("ivy".to_owned()),
        timestamp: Some(time.parse().unwrap()),
        ..FileEntry::new(key, Value::of(&value).unwrap())
    }
}

fn outcome_of(board: &Board, entry: &FileEntry, import: Import) -> ImportOutcome {
    let report = board.scope("default").import(std::slice::from_ref(entry), &import).unwrap();
    report.entries[0].outcome.clone()
}

#[test]
fn outcome_depends_on_age_and_on_what_is_kept() {
    use ImportOutcome::{Created, Kept, Unchanged, Updated};
    let (older, newer, future) = ("2026-02-03T15:00:00Z", "2026-02-03T16:00:00Z", "2099-02-03T16:00:00Z");
    for (in_file, keep, expected) in [
        (file_entry("k", 1, older), Keep::Newest, Unchanged),
        (file_entry("k", 1, newer), Keep::Theirs, Unchanged),
        (file_entry("k", 2, older), Keep::Newest, Kept),
        (file_entry("k", 2, newer), Keep::Newest, Updated),
        // A person has edited the entry in the file.
        (file_entry("k", 2, NOW), Keep::Newest, Updated),
        (file_entry("k", 2, NOW), Keep::Ours, Kept),
        (file_entry("k", 2, future), Keep::Newest, Kept),
        (file_entry("k", 2, future), Keep::Theirs, Updated),
        (file_entry("k", 2, older), Keep::Theirs, Updated),
        (file_entry("k", 2, newer), Keep::Ours, Kept),
        (FileEntry { timestamp: None, ..file_entry("k", 2, newer) }, Keep::Newest, Kept),
        (FileEntry { author: Some("oak".to_owned()), ..file_entry("k", 1, newer) }, Keep::Newest, Updated),
        (file_entry("new", 2, older), Keep::Ours, Created),
    ] {
        let (board, clock) = board_and_clock();
        board
            .scope("default")
            .acting_as(Actor::author("ivy"))
            .write(&Write::new("k", Value::of(&1).unwrap()))
            .unwrap();
        clock.advance(Duration::from_hours(1));
        let planned = outcome_of(&board, &in_file, Import { keep, dry_run: true, ..Import::default() });
        let revision = board.revision().unwrap();
        assert_eq!(planned, expected, "{in_file:?} {keep:?}");
        assert_eq!(outcome_of(&board, &in_file, Import { keep, ..Import::default() }), expected);
        assert_eq!(board.revision().unwrap() > revision, matches!(expected, Created | Updated));
        // A second import changes nothing.
        let again = outcome_of(&board, &in_file, Import { keep, ..Import::default() });
        assert!(matches!(again, Unchanged | Kept), "{in_file:?} {keep:?}: {again:?}");
    }
}

#[test]
fn ttl_counts_from_the_time_in_the_file() {
    let board = board();
    let with_ttl = |seconds| FileEntry {
        ttl: Some(Duration::from_secs(seconds)),
        ..file_entry("k", 1, "2026-02-03T15:00:00Z")
    };
    let expired = ImportOutcome::Skipped(SkipReason::Expired("2026-02-03T15:30:00Z".parse().unwrap()));
    assert_eq!(outcome_of(&board, &with_ttl(1800), Import::default()), expired);
    assert_eq!(outcome_of(&board, &with_ttl(3600), Import::default()), ImportOutcome::Created);
    let entry = board.scope("default").entry("k").unwrap().unwrap();
    assert_eq!(entry.expires_at.unwrap().to_string(), "2026-02-03T16:00:00.000Z");
    assert_eq!(outcome_of(&board, &with_ttl(3600), Import::default()), ImportOutcome::Unchanged);
    let metadata = entry.metadata.unwrap();
    let expected = r#"{"imported":{"at":"2026-02-03T15:30:00.000Z","timestamp":"2026-02-03T15:00:00.000Z"}}"#;
    assert_eq!(metadata.to_map(), serde_json::from_str(expected).unwrap());
}

#[test]
fn a_time_in_the_future_is_left_out_and_reported() {
    let (board, clock) = board_and_clock();
    let time = "2099-02-03T16:00:00Z";
    let entry = FileEntry { ttl: Some(Duration::from_mins(1)), ..file_entry("k", 1, time) };
    let scope = board.scope("default");
    let import = || scope.import(std::slice::from_ref(&entry), &Import::default()).unwrap().entries.remove(0);
    let imported = import();
    assert_eq!(
        (imported.outcome, imported.future_time),
        (ImportOutcome::Created, Some(time.parse().unwrap()))
    );
    // Its TTL starts with the import, and a later write is newer.
    let stored = scope.entry("k").unwrap().unwrap();
    assert_eq!(stored.expires_at.unwrap().to_string(), "2026-02-03T15:31:00.000Z");
    assert!(!stored.metadata.unwrap().as_str().contains("2099"));
    assert_eq!(import().outcome, ImportOutcome::Unchanged);
    clock.advance(Duration::from_secs(1));
    scope.write(&Write::new("k", Value::of(&2).unwrap())).unwrap();
    assert_eq!(import().outcome, ImportOutcome::Kept);
}

#[test]
fn what_cannot_be_imported_is_reported_and_stops_nothing() {
    testkit::limit_test();
    let (board, clock) = board_and_clock();
    let session = board.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
    let leased = Write { lease: true, ..Write::new("held", Value::null()) };
    board.scope("default").acting_as(Actor::session(&session)).write(&leased).unwrap();
    clock.advance(Duration::from_secs(1));
    let long = "x".repeat(2000);
    let newer = "2026-02-03T15:30:00.001Z";
    // A real one would be taken for a leak.
    let secret = Value::of(&format!("ghp_{}", "a1B2c3D4e5F6".repeat(3))).unwrap();
    let entries = [
        file_entry("lock:sap", 1, newer),
        FileEntry { is_leased: true, ..file_entry("leased", 1, newer) },
        FileEntry { scope: Some("locks".to_owned()), ..file_entry("deploy", 1, newer) },
        file_entry("a*", 1, newer),
        file_entry(&long, 1, newer),
        file_entry("cafe\u{301}", 1, newer),
        FileEntry { author: Some("<b>x</b>".to_owned()), ..file_entry("markup", 1, newer) },
        FileEntry { value: secret, ..file_entry("secret", 1, newer) },
        file_entry("held", 1, newer),
        file_entry("twice", 1, NOW),
        file_entry("twice", 2, newer),
        FileEntry { author: None, ..file_entry("good", 1, newer) },
    ];
    let report = board.scope("default").import(&entries, &Import::default()).unwrap();
    let outcomes: Vec<_> = report.entries.iter().map(|entry| entry.outcome.as_str()).collect();
    assert_eq!(
        outcomes,
        [
            "skipped", "skipped", "skipped", "refused", "refused", "refused", "refused", "refused",
            "skipped", "skipped", "created", "created"
        ]
    );
    assert_eq!(report.entries[0].outcome, ImportOutcome::Skipped(SkipReason::Lock("sap".to_owned())));
    assert!(matches!(report.entries[7].outcome, ImportOutcome::Refused { code: Code::SecretLooking, .. }));
    assert_eq!(report.entries[8].outcome, ImportOutcome::Skipped(SkipReason::Held));
    assert!(report.entries.iter().all(|entry| {
        entry.outcome.reason().is_some() == ["skipped", "refused"].contains(&entry.outcome.as_str())
    }));
    let scope = board.scope("default");
    assert_eq!(scope.entry("twice").unwrap().unwrap().value.as_str(), "2");
    assert_eq!(scope.entry("good").unwrap().unwrap().updated_by, "cli");
    let escape = Import { escape_keys: true, ..Import::default() };
    let report = scope.import(&entries[3..6], &escape).unwrap();
    let keys: Vec<_> = report.entries.iter().map(|entry| (&entry.key[..4], entry.outcome.as_str())).collect();
    assert_eq!(keys, [("a%2A", "created"), ("xxxx", "refused"), ("cafe", "created")]);
    assert_eq!(report.entries[0].key_in_file.as_deref(), Some("a*"));
}

#[test]
fn entries_are_the_same_after_a_file_of_every_dialect() {
    testkit::limit_test();
    let source = board();
    let scope = source.scope("default").acting_as(Actor::author("ivy"));
    let writes: Vec<_> = (0..1000)
        .map(|number| Write {
            ttl: (number % 3 == 0).then(|| Duration::from_secs(60 + number)),
            ..Write::new(
                &format!("task:{number} <!-- ### `{{"),
                Value::of(&format!("```\n### {number}\n<!-- blackboard:end entries -->")).unwrap(),
            )
        })
        .collect();
    scope.write_batch(&writes).unwrap();
    let view = source.swarm_view("default").unwrap();
    for dialect in Dialect::ALL {
        let text = render(&view, dialect, "").unwrap().text;
        let target = board();
        let report = target.scope("default").import(&parse(&text).entries, &Import::default()).unwrap();
        assert_eq!(report.count("created"), 1000);
        let again = target.swarm_view("default").unwrap();
        assert_eq!(again.entries.len(), 1000);
        for (ours, theirs) in again.entries.iter().zip(&view.entries) {
            let ours = FileEntry { metadata: None, ..ours.clone() };
            assert_eq!(ours, *theirs);
        }
        // Back on its own board, nothing is new.
        let report = source.scope("default").import(&parse(&text).entries, &Import::default()).unwrap();
        assert_eq!(report.count("unchanged"), 1000);
    }
}

#[test]
fn tags_and_metadata_stay_unless_the_file_has_them() {
    let (board, clock) = board_and_clock();
    let scope = board.scope("default");
    let tagged = Write {
        tags: vec!["x".to_owned()],
        metadata: Some(Metadata::parse(r#"{"a":1.0}"#).unwrap()),
        ..Write::new("k", Value::of(&1).unwrap())
    };
    scope.write(&tagged).unwrap();
    clock.advance(Duration::from_hours(2));
    let newer = file_entry("k", 2, "2026-02-03T16:00:00Z");
    scope.import(std::slice::from_ref(&newer), &Import::default()).unwrap();
    let entry = scope.entry("k").unwrap().unwrap();
    assert_eq!((&*entry.tags, entry.value.as_str()), (&["x".to_owned()][..], "2"));
    assert!(entry.metadata.unwrap().as_str().starts_with(r#"{"a":1.0,"imported":{"#));
    let complete = FileEntry { tags: Some(Vec::new()), ..file_entry("k", 3, "2026-02-03T17:00:00Z") };
    scope.import(&[complete], &Import::default()).unwrap();
    let entry = scope.entry("k").unwrap().unwrap();
    assert!(entry.tags.is_empty() && entry.metadata.unwrap().as_str().starts_with(r#"{"imported":{"#));
    assert_eq!(scope.snapshot(&Query::default()).unwrap().entries.len(), 1);
}

#[test]
fn large_imports_are_several_commits() {
    testkit::limit_test();
    let board = board();
    let entries: Vec<_> = (0..1201).map(|number| file_entry(&format!("k{number}"), number, NOW)).collect();
    board.scope("default").import(&entries, &Import::default()).unwrap();
    let view = board.swarm_view("default").unwrap();
    let commits: std::collections::BTreeSet<_> = view.events.iter().map(|event| event.commit_id).collect();
    assert_eq!((view.entries.len(), commits.len()), (1201, 1));
    // 1,000 events are before the last commit.
    assert_eq!(view.events[0].commit_id.get(), 1001);
}
