//! Expiry: an expired entry is invisible, and the first call that finds it removes it with one event.

use super::watched::ValuesRead;
use super::*;
use crate::entry::{Comparison, Expected, Operation, OperationResult, Query, Txn};

on_every_engine![
    entry_is_visible_until_it_expires,
    no_path_sees_expired_entries,
    sweep_removes_expired_entries_with_one_event_each,
    automatic_sweep_removes_a_hundred_entries,
    a_sweep_reads_only_what_it_removes,
    two_sweeps_report_an_expiry_once,
    write_over_an_expired_entry_reports_the_expiry_and_creates,
    conditions_treat_expired_entries_as_absent,
    refused_write_over_an_expired_entry_has_no_event,
    a_rewrite_renews_the_time_to_live,
    append_and_increment_start_again_after_expiry,
    expired_entry_never_becomes_visible_again,
    entry_rewritten_in_time_survives_the_sweep,
    in_one_commit_an_entry_expires_once,
];

fn write_for(fixture: &Fixture, key: &str, seconds: u64) -> Written {
    let write = Write { ttl: Some(Duration::from_secs(seconds)), tags: owned(&["t"]), ..a_write(key, "1") };
    fixture.scope().acting_as(Actor::author("Ivy")).write(&write).unwrap()
}

/// An expired entry that no sweep has removed.
fn expired(fixture: &Fixture, key: &str) -> Written {
    let written = write_for(fixture, key, 10);
    fixture.pass(10);
    written
}

fn entry_is_visible_until_it_expires(fixture: &Fixture) {
    let written = write_for(fixture, "a", 10);
    assert_eq!(written.expires_at, Some(fixture.now().plus(Duration::from_secs(10))));
    fixture.clock.advance(Duration::from_millis(9_999));
    assert_eq!(fixture.value("a").as_deref(), Some("1"));
    fixture.clock.advance(Duration::from_millis(1));
    assert_eq!(fixture.value("a"), None);
}

fn no_path_sees_expired_entries(fixture: &Fixture) {
    let written = expired(fixture, "a");
    fixture.write("b", "2");
    let before = fixture.revision();
    let scope = fixture.scope();
    let keys = |entries: Vec<Entry>| entries.into_iter().map(|entry| entry.key).collect::<Vec<_>>();
    assert_eq!(scope.read("a").unwrap(), None);
    assert_eq!(scope.entry("a").unwrap(), None);
    assert_eq!(scope.read_batch(&["a", "b"]).unwrap().len(), 1);
    for query in [
        Query::default(),
        Query { order: crate::entry::Order::Key, ..Query::default() },
        Query { pattern: Some("?".to_owned()), ..Query::default() },
        Query { limit: Some(1), ..Query::default() },
    ] {
        let page = scope.query(&query).unwrap();
        assert_eq!((keys(page.entries), page.next), (owned(&["b"]), None), "{query:?}");
        let found = fixture.board.transaction(|tx| tx.scope("team").query(&query)).unwrap();
        assert_eq!(keys(found), ["b"], "{query:?}");
    }
    let tagged = Query { tags: owned(&["t"]), ..Query::default() };
    assert!(scope.query(&tagged).unwrap().entries.is_empty());
    assert!(scope.list(&tagged).unwrap().is_empty());
    assert_eq!(scope.list(&Query::default()).unwrap().len(), 1);
    assert_eq!(keys(scope.snapshot(&Query::default()).unwrap().entries), ["b"]);
    assert_eq!(code(scope.delete("a")), Code::EntryNotFound);
    assert_eq!(code(scope.delete_if_revision("a", written.revision)), Code::EntryNotFound);
    assert!(scope.clear("a").unwrap().keys.is_empty());
    assert_eq!(fixture.board.transaction(|tx| tx.scope("team").read("a")).unwrap(), None);
    assert!(!fixture.board.transaction(|tx| tx.scope("team").delete("a")).unwrap());
    let tests = [
        (Expected::Exists(false), true),
        (Expected::Exists(true), false),
        (Expected::Revision(Revision::ZERO), true),
        (Expected::Revision(written.revision), false),
        (Expected::Version(0), true),
        (Expected::Version(1), false),
        (Expected::Value(json("1")), false),
    ];
    for (test, expected) in tests {
        let place = || ("team".to_owned(), "a".to_owned());
        let ((scope, key), (s, k)) = (place(), place());
        let operations = vec![
            Operation::Read { scope: scope.clone(), key: key.clone() },
            Operation::Delete { scope: s, key: k },
        ];
        let txn = Txn {
            comparisons: vec![Comparison { scope, key, expected: test.clone() }],
            then: operations.clone(),
            otherwise: Some(operations),
        };
        let compared = fixture.board.txn(&txn, &Actor::default()).unwrap();
        assert_eq!(compared.succeeded, expected, "{test:?}");
        assert_eq!(compared.results, [OperationResult::Read(None), OperationResult::Delete(None)]);
    }
    assert_eq!(fixture.revision(), before, "looking tells nothing");
    // The past is different: the entry existed until the event that removed it.
    assert!(scope.entry_as_of("a", before).unwrap().is_some());
}

fn sweep_removes_expired_entries_with_one_event_each(fixture: &Fixture) {
    write_for(fixture, "later", 11);
    write_for(fixture, "b", 9);
    let first = expired(fixture, "a");
    fixture.clock.set(fixture.now().minus(Duration::from_secs(10)));
    fixture.write("forever", "1");
    fixture.pass(10);
    let (swept, recorded) = fixture.events_of(|| fixture.sweep());
    assert_eq!(swept.entries_expired, 2);
    assert_eq!(recorded, [EventType::EntryExpired, EventType::EntryExpired]);
    let events = fixture.events();
    let event = events.last().unwrap();
    assert_eq!(event.summary, "\"a\" in scope \"team\" expired");
    assert_eq!(metadata(event), serde_json::json!({"op": "expire", "scope": "team"}));
    assert_eq!(event.actor_id, None);
    let history = fixture.scope().history("a", 9).unwrap();
    assert_eq!(history.versions.len(), 2);
    let removal = &history.versions[0];
    assert_eq!((removal.removed, removal.previous), (true, Some(first.revision)));
    assert_eq!((removal.entry.version, removal.entry.revision), (1, event.id));
    assert_eq!(fixture.scope().entry_as_of("a", event.id).unwrap(), None);
    let left: Vec<_> = fixture.board.export().unwrap().entries.into_iter().map(|entry| entry.key).collect();
    assert_eq!(left, ["forever", "later"]);
}

fn automatic_sweep_removes_a_hundred_entries(fixture: &Fixture) {
    let writes: Vec<_> = (0..250)
        .map(|number| Write { ttl: Some(Duration::from_secs(1)), ..a_write(&number.to_string(), "1") })
        .collect();
    fixture.scope().write_batch(&writes).unwrap();
    fixture.pass(1);
    assert_eq!(fixture.board.try_sweep(None).entries_expired, 100);
    assert_eq!(fixture.sweep().entries_expired, 150);
    assert_eq!(fixture.sweep().entries_expired, 0);
    assert_eq!(fixture.revision(), fixture.id(500));
}

fn a_sweep_reads_only_what_it_removes(fixture: &Fixture) {
    for number in 0..10 {
        write_for(fixture, &number.to_string(), 10);
    }
    fixture.pass(10);
    let values = ValuesRead::on(fixture.board.clone(), fixture.clock.clone());
    let settings = Settings { max_commit_bytes: 0, ..Settings::default() };
    let expired = values.board.clone().with_settings(settings).expire_entries(OnBusy::Wait).unwrap();
    assert_eq!((expired.count, expired.skipped.len()), (1, 0));
    // Once without the lock and once in the commit, which an engine may run twice.
    let read = values.take() - (fixture.runs_of_a_read() - 1);
    assert!((2..=3).contains(&read), "{read} values were read");
}

fn two_sweeps_report_an_expiry_once(fixture: &Fixture) {
    for number in 0..150 {
        write_for(fixture, &number.to_string(), 5);
    }
    fixture.pass(5);
    let board = &fixture.board;
    let expired: u64 = std::thread::scope(|scope| {
        let sweeps: Vec<_> =
            (0..4).map(|_| scope.spawn(|| board.sweep(&Sweep::default()).unwrap().entries_expired)).collect();
        sweeps.into_iter().map(|sweep| sweep.join().unwrap()).sum()
    });
    fixture.sweep();
    let recorded = fixture.events().into_iter().filter(|event| event.event_type == EventType::EntryExpired);
    assert_eq!(recorded.count(), 150);
    assert!(expired <= 150);
    assert!(fixture.board.export().unwrap().entries.is_empty());
}

fn write_over_an_expired_entry_reports_the_expiry_and_creates(fixture: &Fixture) {
    let first = expired(fixture, "a");
    let (written, recorded) = fixture.events_of(|| fixture.write("a", "2"));
    assert_eq!(recorded, [EventType::EntryExpired, EventType::EntryWritten]);
    assert_eq!((written.version, written.created), (2, true));
    let entry = fixture.entry("a").unwrap();
    assert_eq!((entry.created_at, entry.created_by.as_str()), (fixture.now(), "cli"));
    assert_eq!((entry.tags, entry.expires_at), (vec![], None));
    let events = fixture.events();
    assert_eq!(events[1].commit_id, events[2].commit_id);
    let history = fixture.scope().history("a", 9).unwrap();
    let chain: Vec<_> = history.versions.iter().map(|version| (version.removed, version.previous)).collect();
    assert_eq!(chain, [(false, Some(events[1].id)), (true, Some(first.revision)), (false, None)]);
    assert_eq!(fixture.sweep().entries_expired, 0);
    // A merge has nothing to merge with.
    expired(fixture, "b");
    fixture.scope().write(&Write { merge: true, ..a_write("b", "2") }).unwrap();
    assert_eq!(fixture.entry("b").unwrap().tags, Vec::<String>::new());
    let tagged = Query { tags: owned(&["t"]), ..Query::default() };
    assert!(fixture.scope().query(&tagged).unwrap().entries.is_empty());
}

fn conditions_treat_expired_entries_as_absent(fixture: &Fixture) {
    let scope = || "team".to_owned();
    expired(fixture, "a");
    assert!(fixture.scope().write(&Write { if_absent: true, ..a_write("a", "2") }).unwrap().created);
    let first = expired(fixture, "b");
    let at = |revision| Write { if_revision: Some(revision), ..a_write("b", "2") };
    assert_eq!(code(fixture.scope().write(&at(first.revision))), Code::Conflict);
    assert!(fixture.scope().write(&at(Revision::ZERO)).unwrap().created);
    expired(fixture, "c");
    let txn = Txn {
        comparisons: vec![Comparison {
            scope: scope(),
            key: "c".to_owned(),
            expected: Expected::Exists(false),
        }],
        then: vec![Operation::Write { scope: scope(), write: a_write("c", "2") }],
        otherwise: None,
    };
    let (compared, recorded) = fixture.events_of(|| fixture.board.txn(&txn, &Actor::default()).unwrap());
    assert!(compared.succeeded);
    assert_eq!(recorded, [EventType::EntryExpired, EventType::EntryWritten]);
    expired(fixture, "d");
    let ((), recorded) = fixture.events_of(|| {
        fixture
            .board
            .try_transaction(|tx| {
                let mut scope = tx.scope("team");
                assert_eq!(scope.read("d")?, None);
                scope.write(&Write { if_absent: true, ..a_write("d", "2") })
            })
            .unwrap();
    });
    assert_eq!(recorded, [EventType::EntryExpired, EventType::EntryWritten]);
}

fn refused_write_over_an_expired_entry_has_no_event(fixture: &Fixture) {
    let first = expired(fixture, "a");
    let stale = Write { if_revision: Some(first.revision), ..a_write("a", "2") };
    let ((), recorded) = fixture.events_of(|| {
        assert_eq!(code(fixture.scope().write(&stale)), Code::Conflict);
        assert_eq!(code(fixture.scope().write_batch(&[a_write("a", "2"), stale])), Code::Conflict);
    });
    assert!(recorded.is_empty());
    assert_eq!(fixture.sweep().entries_expired, 1);
}

fn a_rewrite_renews_the_time_to_live(fixture: &Fixture) {
    write_for(fixture, "a", 10);
    fixture.pass(9);
    write_for(fixture, "a", 10);
    fixture.pass(9);
    assert_eq!(fixture.entry("a").unwrap().version, 2);
    assert_eq!(fixture.sweep().entries_expired, 0);
    fixture.pass(1);
    assert_eq!(fixture.entry("a"), None);
    assert_eq!(fixture.sweep().entries_expired, 1);
}

fn append_and_increment_start_again_after_expiry(fixture: &Fixture) {
    let short = |key: &str, value: &str| Write { ttl: Some(Duration::from_secs(5)), ..a_write(key, value) };
    fixture.scope().write_batch(&[short("list", "[1]"), short("counter", "7")]).unwrap();
    fixture.pass(5);
    let ((), recorded) = fixture.events_of(|| {
        fixture.scope().append("list", &json("2")).unwrap();
        fixture.scope().increment("counter", 1).unwrap();
    });
    assert_eq!(fixture.value("list").as_deref(), Some("[2]"));
    assert_eq!(fixture.value("counter").as_deref(), Some("1"));
    let one = [EventType::EntryExpired, EventType::EntryWritten];
    assert_eq!(recorded, [one.clone(), one].concat());
    assert_eq!(fixture.entry("counter").unwrap().expires_at, None);
}

fn expired_entry_never_becomes_visible_again(fixture: &Fixture) {
    write_for(fixture, "swept", 10);
    expired(fixture, "seen");
    let moment = fixture.now();
    fixture.clock.set(moment.minus(Duration::from_secs(5)));
    assert!(fixture.entry("seen").is_some(), "it has no event");
    fixture.clock.set(moment);
    assert_eq!(fixture.sweep().entries_expired, 2);
    fixture.clock.set(moment.minus(Duration::from_hours(1)));
    assert_eq!(fixture.entry("seen"), None);
    assert_eq!(fixture.entry("swept"), None);
    assert!(fixture.scope().write(&Write { if_absent: true, ..a_write("seen", "2") }).unwrap().created);
    assert_eq!(fixture.entry("seen").unwrap().version, 2);
}

fn entry_rewritten_in_time_survives_the_sweep(fixture: &Fixture) {
    write_for(fixture, "a", 10);
    write_for(fixture, "b", 10);
    fixture.pass(5);
    fixture.write("a", "2");
    fixture.scope().delete("b").unwrap();
    fixture.pass(5);
    assert_eq!(fixture.sweep().entries_expired, 0);
    assert_eq!(fixture.value("a").as_deref(), Some("2"));
}

fn in_one_commit_an_entry_expires_once(fixture: &Fixture) {
    expired(fixture, "a");
    let twice = [a_write("a", "2"), a_write("a", "3")];
    let (written, recorded) = fixture.events_of(|| fixture.scope().write_batch(&twice).unwrap());
    assert_eq!(recorded, [EventType::EntryExpired, EventType::EntryWritten, EventType::EntryWritten]);
    assert_eq!(written.iter().map(|written| written.version).collect::<Vec<_>>(), [2, 3]);
}
