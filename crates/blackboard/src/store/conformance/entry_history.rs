//! History: earlier versions of a key, from the oldest kept revision on, and what retention keeps of it.

use std::collections::BTreeMap;

use super::*;
use crate::store::Key;

on_every_engine![
    history_lists_every_version_newest_first,
    history_has_the_events_of_removals_and_reports_more,
    entry_as_of_a_revision_is_its_state_then,
    every_version_has_its_event_and_the_one_before,
    removal_has_no_value,
    pruning_keeps_history_correct_from_the_oldest_kept_revision,
    pruning_removes_unreachable_versions,
    history_reports_pruned_versions,
    key_with_a_pruned_tombstone_starts_at_version_one,
    pruning_the_same_events_twice_changes_nothing,
    pruning_removes_old_versions_and_no_current_value,
];

fn trim(fixture: &Fixture, until: Revision) {
    fixture.trim(until);
}

fn as_of(fixture: &Fixture, key: &str, revision: Revision) -> Option<String> {
    let entry = fixture.scope().entry_as_of(key, revision).unwrap();
    entry.map(|entry| entry.value.as_str().to_owned())
}

fn history_lists_every_version_newest_first(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    let tagged = Write { tags: owned(&["t"]), ..a_write("a", "1") };
    fixture.scope_of(&session).write(&tagged).unwrap();
    fixture.write("b", "0");
    fixture.pass(5);
    fixture.write("a", "2");
    fixture.scope().delete("a").unwrap();
    fixture.write("a", "3");
    let history = fixture.scope().history("a", 10).unwrap();
    assert!(!history.compacted);
    let recorded: Vec<_> = history
        .versions
        .iter()
        .map(|version| {
            (
                fixture.number(version.entry.revision),
                version.previous.map(|previous| fixture.number(previous)),
                version.entry.version,
                version.removed,
            )
        })
        .collect();
    assert_eq!(
        recorded,
        [(6, Some(5), 3, false), (5, Some(4), 2, true), (4, Some(2), 2, false), (2, None, 1, false)]
    );
    let first = &history.versions[3].entry;
    assert_eq!((first.updated_by.as_str(), &first.tags, first.value.as_str()), ("Ivy", &owned(&["t"]), "1"));
    assert_eq!(fixture.scope().history("a", 2).unwrap().versions, history.versions[..2]);
    assert!(!fixture.scope().history("a", 2).unwrap().compacted);
    assert!(fixture.scope().history("a", 0).unwrap().versions.is_empty());
    assert!(fixture.scope().history("never", 9).unwrap().versions.is_empty());
    assert!(fixture.board.scope("other").history("a", 9).unwrap().versions.is_empty());
}

fn history_has_the_events_of_removals_and_reports_more(fixture: &Fixture) {
    for value in ["1", "2"] {
        fixture.write("a", value);
        fixture.write("b", value);
        fixture.scope().delete("a").unwrap();
    }
    let history = fixture.scope().history("a", 10).unwrap();
    let removed: Vec<_> = history.versions.iter().filter(|version| version.removed).collect();
    assert_eq!((removed.len(), history.removals.len(), history.more), (2, 2, false));
    for version in removed {
        let event = &history.removals[&version.entry.revision];
        assert_eq!((event.id, &event.event_type), (version.entry.revision, &EventType::EntryDeleted));
    }
    let newest = fixture.scope().history("a", 3).unwrap();
    assert_eq!((newest.versions.len(), newest.more, newest.compacted), (3, true, false));
}

fn entry_as_of_a_revision_is_its_state_then(fixture: &Fixture) {
    fixture.write("b", "0");
    fixture.write("a", "1");
    fixture.write("b", "0");
    fixture.write("a", "2");
    fixture.scope().delete("a").unwrap();
    fixture.write("b", "0");
    fixture.write("a", "3");
    let expected = [None, None, Some("1"), Some("1"), Some("2"), None, None, Some("3")];
    for (revision, expected) in (0..).zip(expected) {
        assert_eq!(as_of(fixture, "a", fixture.id(revision)).as_deref(), expected, "as of {revision}");
    }
    let entry = fixture.scope().entry_as_of("a", fixture.id(3)).unwrap().unwrap();
    assert_eq!((entry.version, entry.revision), (1, fixture.id(2)));
    assert_eq!(code(fixture.scope().entry_as_of("a", fixture.id(8))), Code::CursorAhead);
}

fn every_version_has_its_event_and_the_one_before(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    fixture.write("a", "1");
    fixture.scope_of(&session).write(&Write { lease: true, ..a_write("a", "2") }).unwrap();
    fixture.scope().write(&Write { ttl: Some(Duration::from_secs(1)), ..a_write("b", "1") }).unwrap();
    fixture.pass(1);
    fixture.write("b", "2");
    fixture.scope().clear("b").unwrap();
    fixture.board.agents().deregister(&session).unwrap();
    for event in fixture.events() {
        let version = fixture.read(|tx| tx.version(event.id)).unwrap();
        let of_entry = event.target_type == Some(TargetType::Entry);
        assert_eq!(version.is_some(), of_entry, "{event:?}");
        let Some(version) = version else { continue };
        assert_eq!(version.entry.revision, event.id);
        assert_eq!(Some(version.entry.key.as_str()), event.target_id.as_deref());
        assert_eq!(version.removed, event.event_type != EventType::EntryWritten);
        let Some(previous) = version.previous else { continue };
        assert!(previous < event.id);
        let previous = fixture.read(|tx| tx.version(previous)).unwrap().unwrap();
        assert_eq!(previous.entry.key, version.entry.key);
    }
}

fn removal_has_no_value(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    fixture.scope_of(&session).write(&Write { lease: true, ..a_write("a", "1") }).unwrap();
    fixture.scope().write(&Write { ttl: Some(Duration::from_secs(1)), ..a_write("b", "2") }).unwrap();
    let tagged = Write {
        tags: owned(&["t"]),
        metadata: Some(Metadata::parse(r#"{"m": 1.0}"#).unwrap()),
        ..a_write("c", "3")
    };
    fixture.scope().write(&tagged).unwrap();
    fixture.scope().delete("c").unwrap();
    fixture.pass(1);
    fixture.sweep();
    fixture.board.agents().deregister(&session).unwrap();
    for key in ["a", "b", "c"] {
        let versions = fixture.scope().history(key, 9).unwrap().versions;
        let [removal, written] = &versions[..] else { panic!("{versions:?}") };
        assert!(removal.removed && !written.removed);
        // Everything else describes the removed entry.
        let expected =
            Entry { revision: removal.entry.revision, value: Value::null(), ..written.entry.clone() };
        assert_eq!(removal.entry, expected);
    }
}

/// A model of the past: the value of each key after each revision.
type Past = BTreeMap<Revision, BTreeMap<String, String>>;

/// Writes, deletes, and lets keys expire, several times each, and records their values.
fn lively_past(fixture: &Fixture) -> Past {
    let mut past = Past::from([(Revision::ZERO, BTreeMap::new())]);
    let mut now: BTreeMap<String, String> = BTreeMap::new();
    for round in 0..60_u64 {
        let key = format!("k{}", round * 7 % 5);
        match round % 4 {
            3 if now.remove(&key).is_some() => drop(fixture.scope().delete(&key).unwrap()),
            _ => {
                fixture.write(&key, &round.to_string());
                now.insert(key, round.to_string());
            }
        }
        past.insert(fixture.revision(), now.clone());
    }
    past
}

fn pruning_keeps_history_correct_from_the_oldest_kept_revision(fixture: &Fixture) {
    let past = lively_past(fixture);
    let newest = fixture.revision();
    for floor in [1, 2, 10, 11, 12, 29, 30, 41, 58, fixture.number(newest) - 1] {
        let floor = fixture.id(floor);
        trim(fixture, floor);
        for (revision, expected) in &past {
            for key in ["k0", "k1", "k2", "k3", "k4", "never"] {
                let found = fixture.scope().entry_as_of(key, *revision);
                if *revision < floor {
                    let refused = found.unwrap_err();
                    assert_eq!(refused.code(), Code::Compacted);
                    assert_eq!(refused.details().unwrap()["floor"], floor.get());
                    continue;
                }
                let found = found.unwrap().map(|entry| entry.value.as_str().to_owned());
                assert_eq!(found.as_ref(), expected.get(key), "{key} as of {revision}, floor {floor}");
            }
        }
    }
    let expected = past.values().last().unwrap();
    let found: BTreeMap<_, _> = fixture
        .board
        .export()
        .unwrap()
        .entries
        .into_iter()
        .map(|entry| (entry.key, entry.value.as_str().to_owned()))
        .collect();
    assert_eq!(&found, expected, "current values stay");
}

fn pruning_removes_unreachable_versions(fixture: &Fixture) {
    lively_past(fixture);
    let newest = fixture.number(fixture.revision());
    let read = |revision| fixture.read(|tx| tx.version(revision)).unwrap();
    let all: Vec<_> = (1..=newest).filter_map(|number| read(fixture.id(number))).collect();
    for floor in [7, 20, 40, newest - 1] {
        let floor = fixture.id(floor);
        trim(fixture, floor);
        let superseded = |revision: Revision| {
            all.iter().any(|version| version.previous == Some(revision) && version.entry.revision <= floor)
        };
        for version in &all {
            let revision = version.entry.revision;
            let goes = superseded(revision) || (version.removed && revision <= floor);
            let left = read(revision);
            assert_eq!(left.as_ref(), Some(version).filter(|_| !goes), "{revision}, floor {floor}");
        }
        for key in ["k0", "k1", "k2", "k3", "k4"] {
            let grave = Key::Tombstone("team".to_owned(), key.to_owned());
            let grave = fixture.read(|tx| tx.row::<crate::entry::Tombstone>(&grave)).unwrap();
            assert!(grave.is_none_or(|grave| grave.revision > floor), "{key}, floor {floor}");
        }
    }
}

fn history_reports_pruned_versions(fixture: &Fixture) {
    for value in ["1", "2", "3"] {
        fixture.write("a", value);
    }
    fixture.write("b", "1");
    trim(fixture, fixture.id(1));
    assert!(!fixture.scope().history("a", 9).unwrap().compacted, "the first one is right from the floor on");
    trim(fixture, fixture.id(2));
    let history = fixture.scope().history("a", 9).unwrap();
    assert_eq!((history.versions.len(), history.compacted), (2, true));
    assert!(fixture.scope().history("a", 2).unwrap().compacted, "nothing older is there");
    assert!(!fixture.scope().history("a", 1).unwrap().compacted, "there is an older one");
    trim(fixture, fixture.id(3));
    let history = fixture.scope().history("a", 9).unwrap();
    assert_eq!((history.versions.len(), history.compacted), (1, true));
    assert!(!fixture.scope().history("b", 9).unwrap().compacted);
}

fn key_with_a_pruned_tombstone_starts_at_version_one(fixture: &Fixture) {
    fixture.write("a", "1");
    fixture.write("a", "2");
    fixture.scope().delete("a").unwrap();
    fixture.write("b", "1");
    trim(fixture, fixture.id(2));
    assert_eq!(fixture.scope().history("a", 9).unwrap().versions.len(), 2, "the removal has an event");
    trim(fixture, fixture.id(3));
    assert!(fixture.scope().history("a", 9).unwrap().versions.is_empty());
    let again = fixture.write("a", "3");
    assert_eq!(again.version, 1, "the others are forgotten");
    assert!(again.revision > fixture.id(4), "revisions never start again");
}

fn pruning_the_same_events_twice_changes_nothing(fixture: &Fixture) {
    for value in ["1", "2", "3"] {
        fixture.write("a", value);
    }
    fixture.write("b", "1");
    // Two prunes at the same time may come to the same result.
    for until in [2, 2, 1, 0, 3, 2] {
        trim(fixture, fixture.id(until));
    }
    assert_eq!(fixture.read(|tx| tx.floor()).unwrap(), fixture.id(3));
    assert_eq!(fixture.value("a").as_deref(), Some("3"));
    assert_eq!(fixture.scope().history("a", 9).unwrap().versions.len(), 1);
}

fn pruning_removes_old_versions_and_no_current_value(fixture: &Fixture) {
    fixture.write("kept", "\"old\"");
    for round in 0..20 {
        fixture.write("busy", &round.to_string());
    }
    fixture.write("gone", "1");
    let removal = fixture.scope().delete("gone").unwrap();
    fixture.pass_days(31);
    let last = fixture.write("busy", "20");
    while fixture.board.prune().unwrap().more {}
    assert_eq!(fixture.read(|tx| tx.floor()).unwrap(), removal.revision);
    assert_eq!(fixture.value("kept").as_deref(), Some("\"old\""));
    assert_eq!(fixture.value("busy").as_deref(), Some("20"));
    assert_eq!(as_of(fixture, "busy", last.revision.previous()).as_deref(), Some("19"));
    assert_eq!(as_of(fixture, "gone", last.revision.previous()), None);
    assert!(fixture.scope().history("gone", 9).unwrap().versions.is_empty());
}
