//! Scopes: their policies apply to every write, and the number of entries of a scope with a limit is always right.

use std::collections::BTreeSet;

use super::*;
use crate::entry::{MAX_OPERATIONS, Operation, Txn};
use crate::protocol::{DefineProtocol, Schema};
use crate::scope::{
    AllowedValues, CreateScope, DeleteScope, Eviction, Policies, ScopePolicies, SetScope, ValueRule,
    ValueRules, ValueType, Visibility,
};
use crate::store::Key;

on_every_engine![
    a_scope_is_created_changed_shown_listed_and_deleted,
    locks_and_files_have_no_policies,
    a_write_without_a_ttl_gets_that_of_its_scope,
    the_least_recently_written_entry_is_evicted,
    the_least_frequently_used_entry_is_evicted,
    a_full_scope_that_evicts_nothing_refuses_new_keys,
    leased_entries_are_never_evicted,
    a_commit_evicts_nothing_that_it_wrote,
    every_removal_makes_space,
    a_limit_below_the_number_of_entries_is_refused,
    a_value_has_the_type_that_the_scope_allows,
    a_value_matches_the_schema_that_the_scope_requires,
    a_value_matches_the_protocol_that_the_scope_requires,
    a_rule_names_a_protocol_that_describes_values,
    rules_that_cannot_be_stored_are_refused,
    deleting_a_scope_with_its_entries_deletes_more_than_a_batch,
    no_interleaving_of_writers_exceeds_the_limit,
    entries_are_read_from_the_oldest_one,
    the_entries_of_a_limited_scope_are_not_counted_again,
];

fn create(fixture: &Fixture, policies: Policies) {
    fixture.board.scopes().create(&CreateScope::new("team", policies)).unwrap();
}

fn limited(limit: u64, eviction: Eviction) -> Policies {
    Policies { max_entries: Some(limit), eviction, ..Policies::default() }
}

fn counted(key: &str, count: u64) -> Write {
    let metadata = Metadata::parse(&format!(r#"{{"access_count": {count}}}"#)).unwrap();
    Write { metadata: Some(metadata), ..a_write(key, "1") }
}

/// The keys of the scope, and the number that its row has.
fn keys(fixture: &Fixture) -> (Vec<String>, Option<u64>) {
    let heads = fixture.read(|tx| tx.heads(&Range::entries("team", ""), usize::MAX)).unwrap();
    let row = fixture.read(|tx| tx.row::<ScopePolicies>(&Key::ScopePolicies("team".to_owned()))).unwrap();
    (heads.into_iter().map(|head| head.key).collect(), row.and_then(|row| row.entries))
}

fn check_keys(fixture: &Fixture, expected: &[&str]) {
    assert_eq!(keys(fixture), (owned(expected), Some(expected.len() as u64)));
}

fn a_scope_is_created_changed_shown_listed_and_deleted(fixture: &Fixture) {
    let scopes = fixture.board.scopes();
    let ivy = fixture.session("Ivy");
    let day = Some(Duration::from_hours(24));
    let request = CreateScope {
        session: Some(ivy.clone()),
        ..CreateScope::new("team", Policies { ttl: day, ..Policies::default() })
    };
    let (created, events) = fixture.events_of(|| scopes.create(&request).unwrap());
    assert_eq!((created.created, events), (true, vec![EventType::ScopeCreated]));
    assert_eq!(created.scope.revision, Some(fixture.revision()));
    assert_eq!(created.scope.created_by.as_deref(), Some("Ivy"));
    let (again, events) = fixture.events_of(|| scopes.create(&request).unwrap());
    assert_eq!((again.created, events), (false, vec![]));
    assert_eq!(code(scopes.create(&CreateScope::new("team", Policies::default()))), Code::AlreadyExists);

    let limit = SetScope { max_entries: Some(Some(5)), ..SetScope::of("team") };
    let (set, events) = fixture.events_of(|| scopes.set(&limit).unwrap());
    assert_eq!((set.updated, events), (true, vec![EventType::ScopeUpdated]));
    assert_eq!((set.scope.policies.ttl, set.scope.policies.max_entries), (day, Some(5)));
    let (set, events) = fixture.events_of(|| scopes.set(&limit).unwrap());
    assert_eq!((set.updated, events), (false, vec![]));
    assert_eq!(code(scopes.set(&SetScope::of("other"))), Code::ScopeNotFound);

    fixture.write("a", "1");
    fixture.board.scope("plain").write(&a_write("a", "1")).unwrap();
    let shown = scopes.show("team").unwrap();
    assert_eq!((shown.entries, &shown.policies), (1, &set.scope.policies));
    let listed: Vec<_> = scopes.list().unwrap();
    assert_eq!(listed[0], scopes.show("plain").unwrap());
    assert_eq!(listed[1..], [shown]);
    assert_eq!(code(scopes.show("other")), Code::ScopeNotFound);
    assert_eq!(fixture.board.export().unwrap().scopes, listed[1..]);

    let delete =
        |name: &str, entries| scopes.delete(&DeleteScope { name: name.to_owned(), entries, session: None });
    let (deleted, events) = fixture.events_of(|| delete("team", false).unwrap());
    assert_eq!((deleted.deleted_entries, events), (0, vec![EventType::ScopeDeleted]));
    assert_eq!(scopes.show("team").unwrap().policies, Policies::default());
    assert_eq!(code(delete("team", false)), Code::ScopeNotFound);
    let (deleted, events) = fixture.events_of(|| delete("plain", true).unwrap());
    assert_eq!(deleted.deleted_entries, 1);
    assert_eq!(events, [EventType::EntryDeleted, EventType::ScopeDeleted]);
    assert_eq!(code(delete("plain", true)), Code::ScopeNotFound);
}

fn locks_and_files_have_no_policies(fixture: &Fixture) {
    let scopes = fixture.board.scopes();
    for name in ["locks", "files"] {
        assert_eq!(code(scopes.create(&CreateScope::new(name, Policies::default()))), Code::InvalidValue);
        assert_eq!(code(scopes.set(&SetScope::of(name))), Code::InvalidValue);
        let delete = DeleteScope { name: name.to_owned(), entries: true, session: None };
        assert_eq!(code(scopes.delete(&delete)), Code::InvalidValue);
    }
    for name in ["", "a*", "\u{7}"] {
        assert_eq!(code(scopes.create(&CreateScope::new(name, Policies::default()))), Code::InvalidValue);
        assert_eq!(code(scopes.show(name)), Code::InvalidValue);
    }
}

fn a_write_without_a_ttl_gets_that_of_its_scope(fixture: &Fixture) {
    fixture.write("old", "1");
    create(fixture, Policies { ttl: Some(Duration::from_mins(1)), ..Policies::default() });
    let ttl = |key: &str| fixture.entry(key).unwrap().ttl();
    fixture.write("a", "1");
    fixture.scope().write(&Write { ttl: Some(Duration::from_secs(5)), ..a_write("b", "1") }).unwrap();
    fixture.scope().write_batch(&[a_write("c", "1")]).unwrap();
    fixture.scope().increment("d", 1).unwrap();
    fixture.board.scope("other").write(&a_write("a", "1")).unwrap();
    assert_eq!(
        (ttl("old"), ttl("a"), ttl("b"), ttl("c"), ttl("d")),
        (None, Some(60.0), Some(5.0), Some(60.0), Some(60.0))
    );
    assert_eq!(fixture.board.scope("other").entry("a").unwrap().unwrap().ttl(), None);
    // A merge keeps the time to live that the entry has.
    let merge = |key: &str| Write { merge: true, ..a_write(key, "2") };
    fixture.scope().write(&merge("b")).unwrap();
    fixture.scope().write(&merge("old")).unwrap();
    assert_eq!((ttl("b"), ttl("old")), (Some(5.0), Some(60.0)));
    let own = fixture.board.transaction(|tx| {
        tx.scope("team").write(&a_write("e", "1"))?;
        tx.scope("team").entry("e")
    });
    assert_eq!((own.unwrap().unwrap().ttl(), ttl("e")), (Some(60.0), Some(60.0)));
    let write = Operation::Write { scope: "team".to_owned(), write: a_write("f", "1") };
    fixture.board.txn(&Txn { then: vec![write], ..Txn::default() }, &Actor::default()).unwrap();
    assert_eq!(ttl("f"), Some(60.0));

    let forever = SetScope { ttl: Some(None), ..SetScope::of("team") };
    fixture.board.scopes().set(&forever).unwrap();
    fixture.write("g", "1");
    assert_eq!(ttl("g"), None);
    let persistent = SetScope { visibility: Some(Visibility::Persistent), ..forever };
    fixture.board.scopes().set(&persistent).unwrap();
    let ttl = SetScope { ttl: Some(Some(Duration::from_secs(9))), ..SetScope::of("team") };
    assert_eq!(code(fixture.board.scopes().set(&ttl)), Code::InvalidValue);
}

fn the_least_recently_written_entry_is_evicted(fixture: &Fixture) {
    fixture.write("before", "1");
    create(fixture, limited(3, Eviction::Lru));
    for key in ["a", "b"] {
        fixture.write(key, "1");
    }
    fixture.write("before", "2");
    check_keys(fixture, &["a", "b", "before"]);
    let (written, events) = fixture.events_of(|| fixture.write("c", "1"));
    assert_eq!(events, [EventType::EntryEvicted, EventType::EntryWritten]);
    assert_eq!((written.evicted.as_deref(), written.revision), (Some("a"), fixture.revision()));
    check_keys(fixture, &["b", "before", "c"]);
    let evicted =
        fixture.events().into_iter().find(|event| event.event_type == EventType::EntryEvicted).unwrap();
    assert_eq!(evicted.target_id.as_deref(), Some("a"));
    assert_eq!(evicted.summary, "\"a\" in scope \"team\" evicted: the scope is full");
    assert_eq!(metadata(&evicted)["op"], "evict");
    // A write of an existing key needs no room.
    let (_, events) = fixture.events_of(|| fixture.write("b", "2"));
    assert_eq!(events, [EventType::EntryWritten]);
    // The version of an evicted key continues.
    assert_eq!(fixture.write("a", "2").version, 2);
    check_keys(fixture, &["a", "b", "c"]);
    assert_eq!(fixture.scope().history("a", 9).unwrap().versions.len(), 3);
    let batch = [a_write("x", "1"), a_write("y", "1")];
    fixture.scope().write_batch(&batch).unwrap();
    check_keys(fixture, &["a", "x", "y"]);
    // What expired is no eviction.
    fixture.scope().write(&Write { ttl: Some(Duration::from_secs(1)), ..a_write("a", "3") }).unwrap();
    for key in ["x", "y"] {
        fixture.write(key, "2");
    }
    fixture.pass(2);
    let (written, events) = fixture.events_of(|| fixture.write("z", "1"));
    assert_eq!(events, [EventType::EntryExpired, EventType::EntryWritten]);
    assert_eq!(written.evicted, None);
    check_keys(fixture, &["x", "y", "z"]);
}

fn the_least_frequently_used_entry_is_evicted(fixture: &Fixture) {
    for key in ["new", "old"] {
        fixture.scope().write(&counted(key, 50)).unwrap();
    }
    create(fixture, limited(4, Eviction::Lfu));
    assert_eq!(code(fixture.scope().write(&a_write("a", "1"))), Code::InvalidValue);
    let text = Metadata::parse(r#"{"access_count": "many"}"#).unwrap();
    let uncounted = Write { metadata: Some(text), ..a_write("a", "1") };
    assert_eq!(code(fixture.scope().write(&uncounted)), Code::InvalidValue);
    for (key, count) in [("a", 7), ("b", 3)] {
        fixture.scope().write(&counted(key, count)).unwrap();
    }
    // Entries from before the policy go first, the oldest one before the others, whatever their counts are.
    fixture.scope().write(&counted("c", 3)).unwrap();
    check_keys(fixture, &["a", "b", "c", "old"]);
    fixture.scope().write(&counted("d", 10)).unwrap();
    check_keys(fixture, &["a", "b", "c", "d"]);
    // Then the least used one; of two with the same count, the one that was written first.
    fixture.scope().write(&counted("e", 0)).unwrap();
    check_keys(fixture, &["a", "c", "d", "e"]);
    fixture.scope().write(&counted("e", 20)).unwrap();
    fixture.scope().write(&counted("f", 9)).unwrap();
    check_keys(fixture, &["a", "d", "e", "f"]);
    // A merge keeps the count.
    fixture.scope().write(&Write { merge: true, ..a_write("a", "2") }).unwrap();
    fixture.scope().write(&counted("g", 8)).unwrap();
    check_keys(fixture, &["d", "e", "f", "g"]);
    // A leased entry needs no count, and is not evicted.
    let ivy = fixture.session("Ivy");
    fixture.scope_of(&ivy).write(&Write { lease: true, ..a_write("h", "1") }).unwrap();
    check_keys(fixture, &["d", "e", "f", "h"]);
    let to_recent = SetScope { eviction: Some(Eviction::Lru), ..SetScope::of("team") };
    fixture.board.scopes().set(&to_recent).unwrap();
    fixture.write("i", "1");
    check_keys(fixture, &["e", "f", "h", "i"]);
}

fn a_full_scope_that_evicts_nothing_refuses_new_keys(fixture: &Fixture) {
    create(fixture, limited(2, Eviction::Refuse));
    fixture.write("a", "1");
    fixture.write("b", "1");
    let before = fixture.revision();
    let refused = fixture.scope().write(&a_write("c", "1")).unwrap_err();
    assert_eq!((refused.code(), fixture.revision()), (Code::ScopeFull, before));
    assert_eq!(refused.to_string(), "scope team is full: it has 2 entries, and it evicts none");
    assert_eq!(code(fixture.scope().write_batch(&[a_write("a", "2"), a_write("c", "1")])), Code::ScopeFull);
    assert_eq!(
        code(fixture.board.transaction(|tx| tx.scope("team").write(&a_write("c", "1")))),
        Code::ScopeFull
    );
    // A condition that does not hold comes first.
    let conditional = Write { if_revision: Some(before), ..a_write("c", "1") };
    assert_eq!(code(fixture.scope().write(&conditional)), Code::Conflict);
    fixture.write("a", "3");
    // A commit may make the room that it needs.
    let scope = || "team".to_owned();
    let swap = vec![
        Operation::Delete { scope: scope(), key: "a".to_owned() },
        Operation::Write { scope: scope(), write: a_write("c", "1") },
    ];
    fixture.board.txn(&Txn { then: swap, ..Txn::default() }, &Actor::default()).unwrap();
    check_keys(fixture, &["b", "c"]);
    let persistent = SetScope { visibility: Some(Visibility::Persistent), ..SetScope::of("team") };
    fixture.board.scopes().set(&persistent).unwrap();
    let evict = SetScope { eviction: Some(Eviction::Lru), ..SetScope::of("team") };
    assert_eq!(code(fixture.board.scopes().set(&evict)), Code::InvalidValue);
}

fn leased_entries_are_never_evicted(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    create(fixture, limited(7, Eviction::Lru));
    for number in 0..6 {
        fixture
            .scope_of(&ivy)
            .write(&Write { lease: true, ..a_write(&format!("leased{number}"), "1") })
            .unwrap();
    }
    for key in ["a", "b", "c"] {
        fixture.write(key, "1");
    }
    let leased: Vec<_> = (0..6).map(|number| format!("leased{number}")).collect();
    let with = |key: &str| -> Vec<String> { [key.to_owned()].into_iter().chain(leased.clone()).collect() };
    assert_eq!(keys(fixture), (with("c"), Some(7)));
    fixture.scope_of(&ivy).write(&Write { lease: true, ..a_write("z", "1") }).unwrap();
    let refused = fixture.scope().write(&a_write("d", "1")).unwrap_err();
    assert_eq!(refused.code(), Code::ScopeFull);
    assert_eq!(
        refused.to_string(),
        "scope team is full: it has 7 entries, and each is leased, or written by this call"
    );
    // A lease that has expired holds no place.
    let short = Write { ttl: Some(Duration::from_secs(1)), ..a_write("z", "2") };
    fixture.scope_of(&ivy).write(&short).unwrap();
    fixture.pass(2);
    let (_, events) = fixture.events_of(|| fixture.write("d", "1"));
    assert_eq!(events, [EventType::EntryExpired, EventType::EntryWritten]);
    fixture.scope().delete("d").unwrap();
    fixture.board.agents().deregister(&ivy).unwrap();
    check_keys(fixture, &[]);
    fixture.write("d", "1");
    check_keys(fixture, &["d"]);
}

fn a_commit_evicts_nothing_that_it_wrote(fixture: &Fixture) {
    create(fixture, limited(2, Eviction::Lru));
    fixture.write("a", "1");
    let three = [a_write("b", "1"), a_write("c", "1"), a_write("d", "1")];
    assert_eq!(code(fixture.scope().write_batch(&three)), Code::ScopeFull);
    check_keys(fixture, &["a"]);
    fixture.scope().write_batch(&three[..2]).unwrap();
    check_keys(fixture, &["b", "c"]);
    // Also not an entry that it changed, though that is the oldest one.
    fixture.scope().write_batch(&[a_write("b", "2"), a_write("d", "1")]).unwrap();
    check_keys(fixture, &["b", "d"]);
    let many: Vec<_> =
        (0..MAX_OPERATIONS / 10).map(|number| a_write(&format!("k{number:04}"), "1")).collect();
    let room = SetScope { max_entries: Some(Some(many.len() as u64)), ..SetScope::of("team") };
    fixture.board.scopes().set(&room).unwrap();
    fixture.scope().write_batch(&many).unwrap();
    let again: Vec<_> =
        many.iter().map(|write| Write { key: format!("l{}", write.key), ..write.clone() }).collect();
    let (_, events) = fixture.events_of(|| fixture.scope().write_batch(&again).unwrap());
    assert_eq!(events.iter().filter(|kind| **kind == EventType::EntryEvicted).count(), many.len());
    let (found, number) = keys(fixture);
    assert_eq!((found.len(), number), (many.len(), Some(many.len() as u64)));
    assert!(found.iter().all(|key| key.starts_with("lk")));
}

fn every_removal_makes_space(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    create(fixture, limited(9, Eviction::Refuse));
    let fill = || {
        for key in ["a", "b", "c", "x:1", "x:2"] {
            fixture.write(key, "1");
        }
        fixture.scope().write(&Write { ttl: Some(Duration::from_secs(1)), ..a_write("t", "1") }).unwrap();
        for (session, key) in [(&ivy, "i"), (&oak, "o")] {
            let lease = Write { lease: true, ..a_write(key, "1") };
            fixture.scope_of(session).write(&lease).unwrap();
        }
    };
    fill();
    check_keys(fixture, &["a", "b", "c", "i", "o", "t", "x:1", "x:2"]);
    fixture.scope().delete("a").unwrap();
    fixture.scope().clear("x:*").unwrap();
    fixture.scope().purge("b").unwrap();
    check_keys(fixture, &["c", "i", "o", "t"]);
    fixture.pass(2);
    fixture.sweep();
    check_keys(fixture, &["c", "i", "o"]);
    fixture.board.agents().deregister(&ivy).unwrap();
    check_keys(fixture, &["c", "o"]);
    fixture.pass(301);
    fixture.sweep();
    check_keys(fixture, &["c"]);
    fixture.board.transaction(|tx| tx.scope("team").delete("c")).unwrap();
    check_keys(fixture, &[]);
    // A key that is created and deleted in one commit was never there.
    let there_and_back = fixture.board.transaction(|tx| {
        tx.scope("team").write(&a_write("a", "1"))?;
        tx.scope("team").delete("a")
    });
    assert!(there_and_back.unwrap());
    check_keys(fixture, &[]);
    // Without a limit nothing is counted.
    let unlimited = SetScope { max_entries: Some(None), ..SetScope::of("team") };
    fixture.board.scopes().set(&unlimited).unwrap();
    fixture.write("a", "1");
    assert_eq!(keys(fixture), (owned(&["a"]), None));
    let limit = SetScope { max_entries: Some(Some(2)), ..SetScope::of("team") };
    fixture.board.scopes().set(&limit).unwrap();
    check_keys(fixture, &["a"]);
}

fn a_limit_below_the_number_of_entries_is_refused(fixture: &Fixture) {
    for key in ["a", "b", "c"] {
        fixture.write(key, "1");
    }
    let scopes = fixture.board.scopes();
    let refused = scopes.create(&CreateScope::new("team", limited(2, Eviction::Lru))).unwrap_err();
    assert_eq!(
        (refused.code(), refused.to_string().as_str()),
        (Code::ScopeFull, "scope team has 3 entries, more than 2")
    );
    create(fixture, limited(3, Eviction::Lru));
    check_keys(fixture, &["a", "b", "c"]);
    let fewer = SetScope { max_entries: Some(Some(2)), ..SetScope::of("team") };
    assert_eq!(code(scopes.set(&fewer)), Code::ScopeFull);
    fixture.scope().delete("a").unwrap();
    scopes.set(&fewer).unwrap();
    check_keys(fixture, &["b", "c"]);
}

fn a_value_has_the_type_that_the_scope_allows(fixture: &Fixture) {
    fixture.write("count.old", "\"many\"");
    let rules = ["config.*=dict", "count.*=int"].map(|rule| rule.parse().unwrap());
    create(fixture, Policies { validation: ValueRules::new(rules.to_vec()), ..Policies::default() });
    fixture.write("config.a", "{}");
    fixture.write("count.a", "1");
    fixture.write("other", "\"any\"");
    let refused = fixture.scope().write(&a_write("count.a", "1.5")).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidValue);
    assert_eq!(refused.to_string(), "scope team allows no number under count.a: its rule is count.*=integer");
    assert_eq!(refused.details().unwrap()["rule"], "count.*=integer");
    assert_eq!(refused.details().unwrap()["found"], "number");
    let bad = || a_write("config.b", "[]");
    assert_eq!(code(fixture.scope().write_batch(&[a_write("fine", "1"), bad()])), Code::InvalidValue);
    assert_eq!(code(fixture.scope().append("config.c", &json("1"))), Code::InvalidValue);
    assert_eq!(code(fixture.scope().increment("config.c", 1)), Code::InvalidValue);
    assert_eq!(code(fixture.board.transaction(|tx| tx.scope("team").write(&bad()))), Code::InvalidValue);
    let operation = Operation::Write { scope: "team".to_owned(), write: bad() };
    let txn = Txn { then: vec![operation], ..Txn::default() };
    assert_eq!(code(fixture.board.txn(&txn, &Actor::default())), Code::InvalidValue);
    assert_eq!(fixture.value("fine"), None);
    // What was there before stays, and can be deleted.
    assert_eq!(fixture.value("count.old").as_deref(), Some("\"many\""));
    fixture.scope().delete("count.old").unwrap();
    let shown = fixture.board.scopes().show("team").unwrap();
    assert_eq!(shown.policies.validation.as_slice()[1].values, AllowedValues::Type(ValueType::Integer));
    let none = SetScope { validation: Some(ValueRules::default()), ..SetScope::of("team") };
    fixture.board.scopes().set(&none).unwrap();
    fixture.write("count.a", "1.5");
}

fn with_rules(rules: Vec<ValueRule>) -> Policies {
    Policies { validation: ValueRules::new(rules), ..Policies::default() }
}

/// A value of the built-in protocol `Task`.
const TASK: &str = r#"{"status": "pending", "assigned_to": "ivy", "started_at": "2026-02-04T10:00:00Z"}"#;

fn schema(text: &str) -> Schema {
    Schema::parse(text).unwrap()
}

/// The problem of a refused value, and where in the value it is.
fn mismatches(refused: &crate::Error) -> Vec<(String, String)> {
    let details = refused.details().unwrap()["mismatches"].as_array().cloned().unwrap_or_default();
    let text = |detail: &serde_json::Value, name: &str| detail[name].as_str().unwrap().to_owned();
    details.iter().map(|detail| (text(detail, "path"), text(detail, "problem"))).collect()
}

fn a_value_matches_the_schema_that_the_scope_requires(fixture: &Fixture) {
    let scopes = fixture.board.scopes();
    let text =
        "{\"type\": \"object\",\n \"required\": [\"by\"], \"properties\": {\"score\": {\"maximum\": 1}}}";
    let rules = || with_rules(vec![ValueRule::schema("score:*", schema(text))]);
    create(fixture, rules());
    // The same schema, with other white space.
    let same = scopes.create(&CreateScope::new("team", rules())).unwrap();
    let shorter = text.replace([' ', '\n'], "");
    let again = with_rules(vec![ValueRule::schema("score:*", schema(&shorter))]);
    assert_eq!((same.created, same.scope.policies.clone()), (false, again.clone()));
    assert!(!scopes.create(&CreateScope::new("team", again)).unwrap().created);

    fixture.write("score:a", r#"{"by": "ivy", "score": 1}"#);
    fixture.write("other", "7");
    let bad = || a_write("score:a", r#"{"score": 2}"#);
    let refused = fixture.scope().write(&bad()).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidValue);
    assert_eq!(
        refused.to_string(),
        "the value of score:a does not match the rule score:*=schema of scope team: \"by\" is missing"
    );
    let expected = [("", "\"by\" is missing"), ("/score", "expected at most 1, found 2")]
        .map(|(path, problem)| (path.to_owned(), problem.to_owned()));
    assert_eq!(mismatches(&refused), expected);
    assert_eq!(code(fixture.scope().write_batch(&[a_write("fine", "1"), bad()])), Code::InvalidValue);
    assert_eq!(code(fixture.scope().append("score:b", &json("1"))), Code::InvalidValue);
    assert_eq!(code(fixture.scope().increment("score:b", 1)), Code::InvalidValue);
    assert_eq!(code(fixture.board.transaction(|tx| tx.scope("team").write(&bad()))), Code::InvalidValue);
    assert_eq!(fixture.value("fine"), None);
}

fn a_value_matches_the_protocol_that_the_scope_requires(fixture: &Fixture) {
    let protocols = fixture.board.protocols();
    let review = DefineProtocol {
        value_schema: Some(r#"{"type": "object", "required": ["verdict"]}"#.to_owned()),
        ..DefineProtocol::new("review", "review:{id}")
    };
    protocols.define(&review).unwrap();
    create(
        fixture,
        with_rules(vec![
            ValueRule::protocol("task:*", "Task"),
            ValueRule::protocol("review:*", "review"),
            ValueRule::protocol("audit:*", "review"),
        ]),
    );
    fixture.write("task:1", TASK);
    fixture.write("review:1", r#"{"verdict": "fine"}"#);
    for key in ["task:2", "review:2", "audit:2"] {
        let refused = fixture.scope().write(&a_write(key, "{}")).unwrap_err();
        assert_eq!(refused.code(), Code::InvalidValue, "{key}: {refused}");
        assert!(!mismatches(&refused).is_empty(), "{key}");
    }
    let several = [a_write("review:3", r#"{"verdict": "fine"}"#), a_write("audit:3", r#"{"verdict": 1}"#)];
    fixture.scope().write_batch(&several).unwrap();

    // To remove it and define another one would change what the scope allows.
    let refused = protocols.remove("review", None).unwrap_err();
    assert_eq!(refused.code(), Code::InUse);
    assert_eq!(refused.to_string(), "cannot remove protocol review: the rules of scope team name it");
    // Another program may have removed it. Without its protocol a rule allows nothing: to ignore it would accept what it was made to refuse.
    let removed = fixture.commit(|tx| {
        let key = Key::CustomProtocol("review".to_owned());
        assert!(tx.get(&key)?.is_some());
        let mut changes = Changes::new();
        changes.remove(key);
        changes.event(an_event());
        Ok(changes)
    });
    removed.unwrap();
    let refused = fixture.scope().write(&a_write("review:1", r#"{"verdict": "fine"}"#)).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidValue);
    assert_eq!(
        refused.to_string(),
        "scope team allows no value under review:1: its rule is review:*=protocol review, and protocol review does not \
         exist"
    );
    assert_eq!(refused.details().unwrap()["protocol"], "review");
    fixture.write("task:1", TASK);
    fixture.write("other", "1");
    fixture.scope().delete("review:1").unwrap();
    // A protocol with the same name is used from its definition on.
    let other = DefineProtocol {
        value_schema: Some(r#"{"type": "string"}"#.to_owned()),
        ..DefineProtocol::new("review", "audit:{id}")
    };
    protocols.define(&other).unwrap();
    fixture.write("review:1", "\"fine\"");
    // A caller that may not know the scope does not learn its name.
    let shared = SetScope {
        visibility: Some(Visibility::Shared),
        members: Some(owned(&["Ivy"])),
        ..SetScope::of("team")
    };
    fixture.board.scopes().set(&shared).unwrap();
    let refused = protocols.remove("review", Some(&fixture.session("Oak"))).unwrap_err();
    assert_eq!(refused.to_string(), "cannot remove protocol review: the rules of a scope name it");
    let without = SetScope { validation: Some(ValueRules::default()), ..SetScope::of("team") };
    fixture.board.scopes().set(&without).unwrap();
    protocols.remove("review", None).unwrap();
}

fn a_rule_names_a_protocol_that_describes_values(fixture: &Fixture) {
    let scopes = fixture.board.scopes();
    fixture.board.protocols().define(&DefineProtocol::new("plain", "plain:{id}")).unwrap();
    create(fixture, Policies::default());
    for (protocol, expected) in [
        ("review", Code::ProtocolNotFound),
        ("", Code::ProtocolNotFound),
        ("Task.other", Code::ProtocolNotFound),
        ("AgentRun", Code::ProtocolNotFound),
        ("AgentRun.request", Code::InvalidValue),
        ("plain", Code::InvalidValue),
    ] {
        let policies = with_rules(vec![ValueRule::protocol("a.*", protocol)]);
        let validation = Some(policies.validation.clone());
        assert_eq!(code(scopes.create(&CreateScope::new("other", policies))), expected, "{protocol}");
        assert_eq!(
            code(scopes.set(&SetScope { validation, ..SetScope::of("team") })),
            expected,
            "{protocol}"
        );
    }
    let policies =
        with_rules(vec![ValueRule::protocol("task:*", "task"), ValueRule::protocol("*", "Task.entry")]);
    scopes.create(&CreateScope::new("other", policies)).unwrap();
}

fn rules_that_cannot_be_stored_are_refused(fixture: &Fixture) {
    let scopes = fixture.board.scopes();
    let secret = format!(r#"{{"const": "ghp_{}"}}"#, "a1B2c3D4e5F6".repeat(3));
    let refused = with_rules(vec![ValueRule::schema("a", schema(&secret))]);
    assert_eq!(code(scopes.create(&CreateScope::new("team", refused))), Code::SecretLooking);
    let long = schema(&format!(r#"{{"title": "{}"}}"#, "x".repeat(16_000)));
    let rules = |count| with_rules(vec![ValueRule::schema("a", long.clone()); count]);
    assert_eq!(code(scopes.create(&CreateScope::new("team", rules(3)))), Code::InvalidValue);
    create(fixture, rules(2));
    fixture.write("a", "1");
}

fn deleting_a_scope_with_its_entries_deletes_more_than_a_batch(fixture: &Fixture) {
    create(fixture, limited(2000, Eviction::Lru));
    let many: Vec<_> = (0..1100).map(|number| a_write(&format!("k{number}"), "1")).collect();
    fixture.scope().write_batch(&many).unwrap();
    fixture.scope().write(&Write { ttl: Some(Duration::from_secs(1)), ..a_write("t", "1") }).unwrap();
    fixture.pass(2);
    let ivy = fixture.session("Ivy");
    fixture.scope_of(&ivy).write(&Write { lease: true, ..a_write("z", "1") }).unwrap();
    let delete = DeleteScope { name: "team".to_owned(), entries: true, session: None };
    assert_eq!(code(fixture.board.scopes().delete(&delete)), Code::Held);
    let (left, number) = keys(fixture);
    assert_eq!(number, Some(left.len() as u64));
    assert!(fixture.entry("z").is_some());
    let own = DeleteScope { session: Some(ivy), ..delete };
    let deleted = fixture.board.scopes().delete(&own).unwrap();
    assert_eq!((deleted.deleted_entries, keys(fixture)), (left.len() as u64, (vec![], None)));
    assert_eq!(code(fixture.board.scopes().show("team")), Code::ScopeNotFound);
    let events = fixture.events();
    let largest = events.chunk_by(|one, next| one.commit_id == next.commit_id).map(<[_]>::len);
    // The batch that wrote them is the largest commit.
    assert_eq!(largest.collect::<BTreeSet<_>>().into_iter().rev().take(2).collect::<Vec<_>>(), [1100, 500]);
}

fn no_interleaving_of_writers_exceeds_the_limit(fixture: &Fixture) {
    const WRITERS: u64 = 4;
    const WRITES: u64 = 12;
    const LIMIT: u64 = 7;
    create(fixture, limited(LIMIT, Eviction::Lru));
    std::thread::scope(|threads| {
        for writer in 0..WRITERS {
            threads.spawn(move || {
                for number in 0..WRITES {
                    fixture.write(&format!("k{writer}-{number}"), "1");
                }
            });
        }
    });
    let (mut there, mut evicted) = (BTreeSet::new(), 0);
    for event in fixture.events() {
        let key = event.target_id.unwrap_or_default();
        match event.event_type {
            EventType::EntryWritten => assert!(there.insert(key)),
            EventType::EntryEvicted => {
                assert!(there.remove(&key));
                evicted += 1;
            }
            _ => {}
        }
        assert!(there.len() as u64 <= LIMIT, "{there:?}");
    }
    assert_eq!(evicted, WRITERS * WRITES - LIMIT);
    assert_eq!(keys(fixture), (there.into_iter().collect(), Some(LIMIT)));
}

fn entries_are_read_from_the_oldest_one(fixture: &Fixture) {
    for key in ["b", "a", "c"] {
        fixture.write(key, "1");
    }
    fixture.board.scope("other").write(&a_write("x", "1")).unwrap();
    fixture.write("b", "2");
    let third = fixture.entry("c").unwrap().revision;
    for (range, expected) in [
        (Range::oldest_entries("team"), &["a", "c", "b"][..]),
        (Range::oldest_entries("team").before(third), &["a"]),
        (Range::oldest_entries("team").from(third), &["c", "b"]),
        (Range::newest_entries("team", None), &["b", "c", "a"]),
    ] {
        let heads = fixture.read(|tx| tx.heads(&range, usize::MAX)).unwrap();
        assert_eq!(heads.iter().map(|head| head.key.as_str()).collect::<Vec<_>>(), expected, "{range:?}");
        let first = fixture.read(|tx| tx.heads(&range, 1)).unwrap();
        assert_eq!(first, heads[..1]);
        let rows = fixture.read(|tx| tx.candidates(&range, 2)).unwrap();
        let rows: Vec<_> = rows.iter().map(Row::key).collect();
        let keys = expected.iter().take(2).map(|key| Key::Entry("team".to_owned(), (*key).to_owned()));
        assert_eq!(rows, keys.collect::<Vec<_>>(), "{range:?}");
    }
}

fn the_entries_of_a_limited_scope_are_not_counted_again(fixture: &Fixture) {
    create(fixture, limited(50, Eviction::Lru));
    fixture.write("a", "1");
    // A number that no count would give.
    let key = Key::ScopePolicies("team".to_owned());
    let row = fixture.read(|tx| tx.row::<ScopePolicies>(&key)).unwrap().unwrap();
    assert_eq!(row.entries, Some(1));
    fixture.put(&[ScopePolicies { entries: Some(41), ..row }.into()]);
    let scopes = fixture.board.scopes();
    assert_eq!(scopes.show("team").unwrap().entries, 41);
    assert_eq!(scopes.list().unwrap()[0].entries, 41);
    let set = SetScope { max_entries: Some(Some(60)), ..SetScope::of("team") };
    assert_eq!(scopes.set(&set).unwrap().scope.entries, 41);
}
