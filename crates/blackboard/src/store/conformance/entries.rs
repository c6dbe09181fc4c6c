//! Entries: a key has a value, a version that counts its writes, and a revision for comparisons.

use super::*;
use crate::entry::{Operation, OperationResult, Txn};
use crate::store::{Key, RememberedCall as Remembered};

on_every_engine![
    write_is_read_with_all_fields,
    each_write_counts_one_version,
    rewrite_keeps_the_creator_and_replaces_the_rest,
    a_merge_adds_to_tags_and_metadata_and_keeps_the_time_to_live,
    merged_metadata_keeps_its_text,
    author_is_the_given_name_or_the_agent_or_cli,
    null_value_exists_and_an_absent_key_does_not,
    values_round_trip_unchanged,
    batch_read_is_atomic_and_omits_missing_keys,
    batch_write_is_atomic,
    key_may_occur_twice_in_a_batch,
    versions_continue_after_a_removal,
    if_absent_writes_only_missing_keys,
    if_revision_writes_only_at_that_revision,
    delete_happens_once,
    clear_deletes_matching_entries_with_an_event_each,
    the_same_key_in_two_scopes_is_two_entries,
    append_grows_an_array_and_increment_adds,
    call_with_an_idempotency_key_happens_once_for_every_verb,
    idempotency_key_is_for_one_call,
    answer_remembered_by_an_older_program_is_returned,
    remembered_answer_is_identical,
];

fn write_is_read_with_all_fields(fixture: &Fixture) {
    let write = Write {
        tags: owned(&["urgent", "finance", "urgent"]),
        ttl: Some(Duration::from_mins(1)),
        metadata: Some(Metadata::parse(r#"{"z": 1.0, "a": 2}"#).unwrap()),
        ..a_write("result:q4", r#"{"b": 1, "a": [1.0]}"#)
    };
    let scope = fixture.scope().acting_as(Actor::author("analyst"));
    let (written, recorded) = fixture.events_of(|| scope.write(&write).unwrap());
    assert_eq!(recorded, [EventType::EntryWritten]);
    assert_eq!((written.version, written.created, written.fence), (1, true, None));
    assert_eq!(written.revision, fixture.revision());
    let expires_at = Some(fixture.now().plus(Duration::from_mins(1)));
    assert_eq!(written.expires_at, expires_at);
    let expected = Entry {
        scope: "team".to_owned(),
        key: "result:q4".to_owned(),
        value: json(r#"{"b": 1, "a": [1.0]}"#),
        version: 1,
        revision: fixture.revision(),
        created_at: fixture.now(),
        created_by: "analyst".to_owned(),
        updated_at: fixture.now(),
        updated_by: "analyst".to_owned(),
        expires_at,
        tags: owned(&["finance", "urgent"]),
        metadata: write.metadata.clone(),
        session_id: None,
        fence: None,
    };
    assert_eq!(fixture.entry("result:q4"), Some(expected));
    assert_eq!(fixture.entry("result:q4").unwrap().metadata.unwrap().as_str(), r#"{"z": 1.0, "a": 2}"#);
    let event = fixture.events().pop().unwrap();
    assert_eq!(event.summary, "Agent \"analyst\" wrote \"result:q4\" in scope \"team\"");
    assert_eq!((event.target_id.as_deref(), event.target_type), (Some("result:q4"), Some(TargetType::Entry)));
    assert_eq!(metadata(&event), serde_json::json!({"op": "create", "scope": "team"}));
}

fn each_write_counts_one_version(fixture: &Fixture) {
    for version in 1..=5 {
        let written = fixture.write("a", &version.to_string());
        assert_eq!((written.version, written.created), (version, version == 1));
        assert_eq!(written.revision, fixture.revision());
        assert_eq!(fixture.entry("a").unwrap().version, version);
    }
    assert_eq!(fixture.revision(), fixture.id(5), "one event each");
    assert_eq!(metadata(&fixture.events()[4])["op"], "update");
}

fn rewrite_keeps_the_creator_and_replaces_the_rest(fixture: &Fixture) {
    let first = Write {
        tags: owned(&["old"]),
        ttl: Some(Duration::from_mins(10)),
        metadata: Some(Metadata::parse(r#"{"old": true}"#).unwrap()),
        ..a_write("a", "1")
    };
    fixture.scope().acting_as(Actor::author("first")).write(&first).unwrap();
    let created_at = fixture.now();
    fixture.pass(10);
    fixture.scope().acting_as(Actor::author("second")).write(&a_write("a", "2")).unwrap();
    let entry = fixture.entry("a").unwrap();
    assert_eq!((entry.created_at, entry.created_by.as_str()), (created_at, "first"));
    assert_eq!((entry.updated_at, entry.updated_by.as_str()), (fixture.now(), "second"));
    assert_eq!((entry.tags, entry.metadata, entry.expires_at), (vec![], None, None));
    fixture.pass(1000);
    assert_eq!(fixture.value("a").as_deref(), Some("2"), "the first time to live is forgotten");
}

fn a_merge_adds_to_tags_and_metadata_and_keeps_the_time_to_live(fixture: &Fixture) {
    let first = Write {
        tags: owned(&["b"]),
        ttl: Some(Duration::from_secs(100)),
        metadata: Some(Metadata::parse(r#"{"kept": 1, "changed": 1}"#).unwrap()),
        ..a_write("a", "1")
    };
    fixture.scope().write(&first).unwrap();
    let expires_at = fixture.entry("a").unwrap().expires_at;
    fixture.pass(10);
    let more = Write {
        tags: owned(&["a", "b"]),
        metadata: Some(Metadata::parse(r#"{"changed": 2, "new": 3}"#).unwrap()),
        merge: true,
        ..a_write("a", "2")
    };
    fixture.scope().write(&more).unwrap();
    let entry = fixture.entry("a").unwrap();
    assert_eq!((entry.tags, entry.expires_at), (owned(&["a", "b"]), expires_at));
    let merged: serde_json::Value = serde_json::from_str(entry.metadata.unwrap().as_str()).unwrap();
    assert_eq!(merged, serde_json::json!({"kept": 1, "changed": 2, "new": 3}));
    let renewed = Write { ttl: Some(Duration::from_secs(50)), ..more };
    let written = fixture.scope().write(&renewed).unwrap();
    assert_eq!(written.expires_at, Some(fixture.now().plus(Duration::from_secs(50))));
    let started = Write { key: "new".to_owned(), ..renewed };
    assert!(fixture.scope().write(&started).unwrap().created, "there is nothing to merge with");
}

fn merged_metadata_keeps_its_text(fixture: &Fixture) {
    let with = |metadata: &str| Write {
        metadata: Some(Metadata::parse(metadata).unwrap()),
        merge: true,
        ..a_write("a", "1")
    };
    fixture.scope().write(&with(r#"{"z": 12345678901234567890123, "y": 1.0, "x": 1}"#)).unwrap();
    fixture.scope().write(&with(r#"{"x": [1.50,  2], "a": 0.1e1}"#)).unwrap();
    let text = fixture.entry("a").unwrap().metadata.unwrap().as_str().to_owned();
    for part in [r#""z":12345678901234567890123"#, r#""y":1.0"#, r#""x":[1.50,  2]"#, r#""a":0.1e1"#] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    // Half of the allowed size, twice, with different names.
    let half = |name: &str| with(&format!("{{\"{name}\": \"{}\"}}", "x".repeat(40_000)));
    fixture.scope().write(&half("first")).unwrap();
    assert_eq!(code(fixture.scope().write(&half("second"))), Code::InvalidValue);
}

fn author_is_the_given_name_or_the_agent_or_cli(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    for (by, author) in [
        (Actor::default(), "cli"),
        (Actor::session(&session), "Ivy"),
        (Actor { author: Some("Oak".to_owned()), ..Actor::session(&session) }, "Oak"),
    ] {
        fixture.scope().acting_as(by.clone()).write(&a_write("a", "1")).unwrap();
        assert_eq!(fixture.entry("a").unwrap().updated_by, author);
        assert_eq!(fixture.events().pop().unwrap().actor_id, by.session);
    }
    let unknown = fixture.scope_of("unknown");
    assert_eq!(code(unknown.write(&a_write("a", "2"))), Code::AgentNotFound);
    assert_eq!(
        code(fixture.scope().acting_as(Actor::author("")).write(&a_write("a", "2"))),
        Code::InvalidValue
    );
    assert_eq!(fixture.value("a").as_deref(), Some("1"));
}

fn null_value_exists_and_an_absent_key_does_not(fixture: &Fixture) {
    fixture.write("present", "null");
    assert_eq!(fixture.scope().read("present").unwrap(), Some(Value::null()));
    assert_eq!(fixture.scope().read("absent").unwrap(), None);
    assert_eq!(fixture.scope().read_batch(&["present", "absent"]).unwrap().len(), 1);
    assert!(!fixture.scope().history("present", 9).unwrap().versions[0].removed);
    let absent = Write { if_absent: true, ..a_write("present", "1") };
    assert_eq!(code(fixture.scope().write(&absent)), Code::AlreadyExists);
    fixture.scope().delete("present").unwrap();
    assert_eq!(fixture.entry("present"), None);
}

fn values_round_trip_unchanged(fixture: &Fixture) {
    let texts = [
        r#"{"z": 1, "a": 2, "z": 3}"#,
        "1.0",
        "-0",
        "1e999",
        "123456789012345678901234567890.000",
        "{\n\t\"a\" :  [ 1 ,\r\n 2 ]\n}",
        "\"caf\u{e9} \u{1f469}\u{200d}\u{1f680} \u{2028}\u{2029} \u{fffd}\"",
        r#""\u0000 \ud83d\ude00 \/ \u00e9""#,
        "[]",
        "\"\"",
        "false",
    ];
    for text in texts {
        fixture.write("a", text);
        assert_eq!(fixture.value("a").as_deref(), Some(text));
        let history = fixture.scope().history("a", 1).unwrap();
        assert_eq!(history.versions[0].entry.value.as_str(), text);
        assert_eq!(
            fixture.scope().entry_as_of("a", fixture.revision()).unwrap().unwrap().value.as_str(),
            text
        );
        assert_eq!(fixture.board.export().unwrap().entries[0].value.as_str(), text);
    }
    // Names too: spaces inside and every script are ordinary characters.
    for key in ["a  b", "\u{e9}:\u{4e2d}\u{6587}", "e\u{334}", "\u{1f469}\u{1f680}", "a'b\"c;--", "%_\\"] {
        fixture.write(key, "1");
        assert_eq!(fixture.entry(key).unwrap().key, key);
    }
    assert_eq!(fixture.entry("\u{e9}"), None, "a letter is not the same key as one that begins with it");
}

fn batch_read_is_atomic_and_omits_missing_keys(fixture: &Fixture) {
    for key in ["b", "a", "gone"] {
        fixture.write(key, "1");
    }
    fixture.scope().delete("gone").unwrap();
    fixture.board.scope("other").write(&a_write("elsewhere", "1")).unwrap();
    let found = fixture.scope().read_batch(&["gone", "b", "elsewhere", "a", "b", "never"]).unwrap();
    assert_eq!(found.into_keys().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(code(fixture.scope().read_batch(&["a", ""])), Code::InvalidValue);
}

fn batch_write_is_atomic(fixture: &Fixture) {
    let exists = fixture.write("exists", "1");
    let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
    let leased = Write { lease: true, ..a_write("leased", "1") };
    fixture.scope_of(&ivy).write(&leased).unwrap();
    let before = fixture.board.export().unwrap();
    for (bad, expected) in [
        (a_write("not:*", "1"), Code::InvalidValue),
        (Write { if_absent: true, ..a_write("exists", "2") }, Code::AlreadyExists),
        (Write { if_revision: Some(exists.revision.next()), ..a_write("exists", "2") }, Code::Conflict),
        (a_write("leased", "2"), Code::Held),
        (Write { tags: owned(&[""]), ..a_write("b", "1") }, Code::InvalidValue),
    ] {
        let batch = [a_write("a", "1"), bad, a_write("z", "1")];
        assert_eq!(code(fixture.scope_of(&oak).write_batch(&batch)), expected);
        assert_eq!(fixture.board.export().unwrap(), before);
    }
    let batch = [a_write("b", "1"), a_write("a", "2")];
    let written = fixture.scope().write_batch(&batch).unwrap();
    let first = written[0].revision;
    assert!(first > before.revision);
    assert_eq!(written.iter().map(|written| written.revision).collect::<Vec<_>>(), [first, first.next()]);
    let events = fixture.events_after(before.revision);
    assert!(events.iter().all(|event| event.commit_id == first), "one commit");
    assert_eq!(fixture.scope().write_batch(&[]).unwrap(), []);
    assert_eq!(fixture.revision(), first.next());
}

fn key_may_occur_twice_in_a_batch(fixture: &Fixture) {
    let twice = |first: &str, second: &str| [a_write("a", first), a_write("a", second)];
    let written = fixture.scope().write_batch(&twice("1", "2")).unwrap();
    assert_eq!(
        written.iter().map(|written| (written.version, written.created)).collect::<Vec<_>>(),
        [(1, true), (2, false)]
    );
    let entry = fixture.entry("a").unwrap();
    assert_eq!((entry.version, entry.revision, entry.value.as_str()), (2, fixture.id(2), "2"));
    let history = fixture.scope().history("a", 9).unwrap();
    let chain: Vec<_> =
        history.versions.iter().map(|version| (version.entry.revision, version.previous)).collect();
    assert_eq!(chain, [(fixture.id(2), Some(fixture.id(1))), (fixture.id(1), None)]);
    // The second comparison sees the result of the first write.
    let once = Write { if_absent: true, ..a_write("b", "1") };
    assert_eq!(code(fixture.scope().write_batch(&[once.clone(), once])), Code::AlreadyExists);
    assert_eq!(fixture.entry("b"), None);
}

fn versions_continue_after_a_removal(fixture: &Fixture) {
    fixture.write("a", "1");
    fixture.write("a", "2");
    let deleted = fixture.scope().delete("a").unwrap();
    assert_eq!((deleted.version, deleted.revision), (2, fixture.revision()));
    fixture.pass(5);
    let again = fixture.scope().acting_as(Actor::author("second")).write(&a_write("a", "3")).unwrap();
    assert_eq!((again.version, again.created), (3, true));
    let entry = fixture.entry("a").unwrap();
    assert_eq!((entry.created_at, entry.created_by.as_str()), (fixture.now(), "second"));
    fixture.scope().clear("*").unwrap();
    assert_eq!(fixture.write("a", "4").version, 4);
    // All of it in one commit.
    let scope = || "team".to_owned();
    let write = |value: &str| Operation::Write { scope: scope(), write: a_write("a", value) };
    let delete = || Operation::Delete { scope: scope(), key: "a".to_owned() };
    let then = vec![write("5"), delete(), write("6"), delete(), write("7")];
    fixture.board.txn(&Txn { then, ..Txn::default() }, &Actor::default()).unwrap();
    let entry = fixture.entry("a").unwrap();
    assert_eq!((entry.version, entry.value.as_str()), (7, "7"));
    let history = fixture.scope().history("a", 99).unwrap();
    let versions: Vec<_> =
        history.versions.iter().map(|version| (version.entry.version, version.removed)).collect();
    assert_eq!(
        versions,
        [
            (7, false),
            (6, true),
            (6, false),
            (5, true),
            (5, false),
            (4, false),
            (3, true),
            (3, false),
            (2, true),
            (2, false),
            (1, false)
        ]
    );
}

fn if_absent_writes_only_missing_keys(fixture: &Fixture) {
    let absent = Write { if_absent: true, ..a_write("a", "1") };
    let first = fixture.scope().acting_as(Actor::author("Ivy")).write(&absent).unwrap();
    let refused = fixture.scope().write(&absent).unwrap_err();
    assert_eq!(refused.code(), Code::AlreadyExists);
    assert_eq!(refused.details().unwrap()["revision"], first.revision.get());
    assert_eq!(refused.details().unwrap()["held_by_name"], "Ivy");
    fixture.scope().delete("a").unwrap();
    assert!(fixture.scope().write(&absent).unwrap().created);
}

fn if_revision_writes_only_at_that_revision(fixture: &Fixture) {
    let at = |revision| Write { if_revision: Some(revision), ..a_write("a", "1") };
    let refused = fixture.scope().write(&at(Revision::new(7))).unwrap_err();
    assert_eq!(refused.code(), Code::Conflict);
    let details = refused.details().unwrap();
    assert_eq!((&details["key"], &details["scope"]), (&"a".into(), &"team".into()));
    assert_eq!((&details["expected"], &details["revision"]), (&7.into(), &0.into()));
    let first = fixture.scope().write(&at(Revision::ZERO)).unwrap();
    assert_eq!(code(fixture.scope().write(&at(Revision::ZERO))), Code::Conflict);
    let second = fixture.scope().write(&at(first.revision)).unwrap();
    let refused = fixture.scope().write(&at(first.revision)).unwrap_err();
    let details = refused.details().unwrap();
    assert_eq!((&details["key"], &details["scope"]), (&"a".into(), &"team".into()));
    assert_eq!(details["expected"], first.revision.get());
    assert_eq!(details["revision"], second.revision.get());
    assert_eq!(details["updated_by"], "cli");
    // A key that was deleted and written again is another entry, though its versions continue.
    fixture.scope().delete("a").unwrap();
    fixture.write("a", "1");
    assert_eq!(code(fixture.scope().write(&at(second.revision))), Code::Conflict);
}

fn delete_happens_once(fixture: &Fixture) {
    let first = fixture.write("a", "1");
    let second = fixture.write("a", "2");
    assert_eq!(code(fixture.scope().delete_if_revision("a", first.revision)), Code::Conflict);
    let (deleted, recorded) =
        fixture.events_of(|| fixture.scope().delete_if_revision("a", second.revision).unwrap());
    assert_eq!((deleted.version, recorded), (2, vec![EventType::EntryDeleted]));
    assert_eq!(metadata(&fixture.events()[2]), serde_json::json!({"op": "delete", "scope": "team"}));
    let (refused, recorded) = fixture.events_of(|| code(fixture.scope().delete("a")));
    assert_eq!((refused, recorded.len()), (Code::EntryNotFound, 0));
    assert_eq!(code(fixture.scope().delete_if_revision("a", second.revision)), Code::EntryNotFound);
    assert_eq!(code(fixture.scope().delete("never")), Code::EntryNotFound);
}

fn clear_deletes_matching_entries_with_an_event_each(fixture: &Fixture) {
    for key in ["cache:b", "cache:a:x", "cache", "result:a"] {
        fixture.write(key, "1");
    }
    fixture.board.scope("other").write(&a_write("cache:b", "1")).unwrap();
    let (cleared, recorded) = fixture.events_of(|| fixture.scope().clear("cache:*").unwrap());
    assert_eq!(cleared.keys, ["cache:a:x", "cache:b"]);
    assert_eq!(cleared.revision, fixture.revision());
    assert_eq!(recorded, [EventType::EntryDeleted, EventType::EntryDeleted, EventType::EntriesCleared]);
    let whole = fixture.events().pop().unwrap();
    assert_eq!(metadata(&whole), serde_json::json!({"pattern": "cache:*", "count": 2}));
    let left: Vec<_> = fixture.board.export().unwrap().entries.into_iter().map(|entry| entry.key).collect();
    assert_eq!(left, ["cache:b", "cache", "result:a"]);
    let (nothing, recorded) = fixture.events_of(|| fixture.scope().clear("cache:*").unwrap());
    assert!(nothing.keys.is_empty() && recorded.is_empty());
    assert_eq!(nothing.revision, fixture.revision());
    assert_eq!(fixture.scope().clear("*").unwrap().keys, ["cache", "result:a"]);
}

fn the_same_key_in_two_scopes_is_two_entries(fixture: &Fixture) {
    let other = fixture.board.scope("team:2");
    fixture.write("a", "1");
    other.write(&a_write("a", "2")).unwrap();
    assert_eq!(other.entry("a").unwrap().unwrap().version, 1);
    assert_eq!(fixture.value("a").as_deref(), Some("1"));
    fixture.scope().delete("a").unwrap();
    assert_eq!(other.read("a").unwrap(), Some(json("2")));
    // A scope and a key are never joined: these are different entries too.
    fixture.board.scope("x").write(&a_write("y:z", "1")).unwrap();
    fixture.board.scope("x:y").write(&a_write("z", "2")).unwrap();
    assert_eq!(fixture.board.scope("x:y").read("z").unwrap(), Some(json("2")));
    assert_eq!(fixture.board.scope("x").clear("*").unwrap().keys, ["y:z"]);
    assert_eq!(fixture.board.scope("x:y").read("z").unwrap(), Some(json("2")));
}

fn append_grows_an_array_and_increment_adds(fixture: &Fixture) {
    let tagged =
        Write { tags: owned(&["t"]), ttl: Some(Duration::from_mins(1)), ..a_write("list", "[ 1.0 ]") };
    fixture.scope().write(&tagged).unwrap();
    let written = fixture.scope().append("list", &json("{\"b\": 1e999}")).unwrap();
    assert_eq!(fixture.value("list").as_deref(), Some(r#"[ 1.0,{"b": 1e999} ]"#));
    assert_eq!((written.version, written.created), (2, false));
    let entry = fixture.entry("list").unwrap();
    assert_eq!((entry.tags, entry.expires_at.is_some()), (owned(&["t"]), true));
    assert!(fixture.scope().append("new", &json("null")).unwrap().created);
    assert_eq!(fixture.value("new").as_deref(), Some("[null]"));
    assert_eq!(fixture.scope().increment("counter", 41).unwrap().version, 1);
    fixture.scope().increment("counter", -1).unwrap();
    assert_eq!(fixture.value("counter").as_deref(), Some("40"));
    fixture.write("text", "\"a\"");
    assert_eq!(code(fixture.scope().append("text", &json("1"))), Code::InvalidValue);
    assert_eq!(code(fixture.scope().increment("text", 1)), Code::InvalidValue);
    assert_eq!(code(fixture.scope().increment("new", 1)), Code::InvalidValue);
    fixture.write("last", &i64::MAX.to_string());
    assert_eq!(code(fixture.scope().increment("last", 1)), Code::InvalidValue);
    assert_eq!(fixture.value("last"), Some(i64::MAX.to_string()));
}

fn idempotency_key_is_for_one_call(fixture: &Fixture) {
    let by = |name: &str| Actor { operation: Some(name.to_owned()), ..Actor::default() };
    let named = |name: &str| fixture.scope().acting_as(by(name));
    fixture.write("gone", "1");
    fixture.write("left", "1");
    named("write").write(&a_write("a", "1")).unwrap();
    named("batch").write_batch(&[a_write("b", "1")]).unwrap();
    named("append").append("list", &json("1")).unwrap();
    named("increment").increment("counter", 1).unwrap();
    named("delete").delete("gone").unwrap();
    named("clear").clear("nothing:*").unwrap();
    let write = |value: &str| Operation::Write { scope: "team".to_owned(), write: a_write("d", value) };
    let txn = |value: &str| Txn { then: vec![write(value)], ..Txn::default() };
    fixture.board.txn(&txn("1"), &by("txn")).unwrap();
    let before = fixture.revision();
    let elsewhere = fixture.board.scope("other").acting_as(by("write"));
    for (what, refused) in [
        ("another key", code(named("write").write(&a_write("z", "1")))),
        ("another value", code(named("write").write(&a_write("a", "2")))),
        ("another comparison", code(named("write").write(&Write { if_absent: true, ..a_write("a", "1") }))),
        ("another scope", code(elsewhere.write(&a_write("a", "1")))),
        ("another batch", code(named("batch").write_batch(&[a_write("b", "1"), a_write("c", "1")]))),
        ("another item", code(named("append").append("list", &json("2")))),
        ("another number", code(named("increment").increment("counter", 2))),
        ("another deletion", code(named("delete").delete("left"))),
        ("another pattern", code(named("clear").clear("*"))),
        ("another transaction", code(fixture.board.txn(&txn("2"), &by("txn")))),
        ("a transaction of a closure", code(fixture.board.transaction(|tx| tx.acting_as(by("new"))))),
    ] {
        assert_eq!(refused, Code::InvalidValue, "{what}");
    }
    assert_eq!(fixture.revision(), before);
}

fn answer_remembered_by_an_older_program_is_returned(fixture: &Fixture) {
    let scope = || fixture.scope().acting_as(Actor { operation: Some("op".to_owned()), ..Actor::default() });
    let first = scope().write(&a_write("a", "1")).unwrap();
    let key = Key::RememberedCall("op".to_owned());
    fixture
        .commit(|tx| {
            let known: Remembered = tx.row(&key)?.unwrap();
            let mut changes = Changes::new();
            changes.put(Remembered { verb: "write".to_owned(), ..known });
            Ok(changes)
        })
        .unwrap();
    assert_eq!(scope().write(&a_write("a", "1")).unwrap(), first);
    assert_eq!(scope().write(&a_write("b", "1")).unwrap(), first, "its request is unknown");
}

fn call_with_an_idempotency_key_happens_once_for_every_verb(fixture: &Fixture) {
    fn twice<T: PartialEq + std::fmt::Debug>(fixture: &Fixture, name: &str, verb: impl Fn(Scope<'_>) -> T) {
        let by = || fixture.scope().acting_as(Actor { operation: Some(name.to_owned()), ..Actor::default() });
        let first = verb(by());
        let (second, recorded) = fixture.events_of(|| verb(by()));
        assert_eq!(first, second, "{name}");
        assert!(recorded.is_empty(), "{name} happened twice");
    }
    fixture.write("other", "[]");
    twice(fixture, "write", |scope| scope.write(&a_write("a", "1")).unwrap());
    twice(fixture, "batch", |scope| scope.write_batch(&[a_write("b", "1"), a_write("c", "1")]).unwrap());
    twice(fixture, "append", |scope| scope.append("list", &json("1")).unwrap());
    twice(fixture, "increment", |scope| scope.increment("counter", 2).unwrap());
    twice(fixture, "delete", |scope| scope.delete("a").unwrap());
    twice(fixture, "clear", |scope| scope.clear("b").unwrap());
    twice(fixture, "clear nothing", |scope| scope.clear("b").unwrap());
    assert_eq!(fixture.value("list").as_deref(), Some("[1]"));
    assert_eq!(fixture.value("counter").as_deref(), Some("2"));
    let by = Actor { operation: Some("txn".to_owned()), ..Actor::default() };
    let read = |key: &str| Operation::Read { scope: "team".to_owned(), key: key.to_owned() };
    let write = Operation::Write { scope: "team".to_owned(), write: a_write("d", "null") };
    let delete = Operation::Delete { scope: "team".to_owned(), key: "c".to_owned() };
    let txn = Txn { then: vec![write, read("d"), delete, read("c"), read("other")], ..Txn::default() };
    let first = fixture.board.txn(&txn, &by).unwrap();
    let (second, recorded) = fixture.events_of(|| fixture.board.txn(&txn, &by).unwrap());
    assert_eq!((first, recorded.len()), (second, 0));
    // The idempotency key of one verb is refused for another.
    let again = fixture.scope().acting_as(Actor { operation: Some("write".to_owned()), ..Actor::default() });
    assert_eq!(code(again.delete("d")), Code::InvalidValue);
    // A refusal is not remembered.
    let by = || fixture.scope().acting_as(Actor { operation: Some("later".to_owned()), ..Actor::default() });
    assert_eq!(code(by().delete("e")), Code::EntryNotFound);
    fixture.write("e", "1");
    assert_eq!(by().delete("e").unwrap().version, 1);
}

fn remembered_answer_is_identical(fixture: &Fixture) {
    fixture.write("a", "{\n  \"a\": 1\r\n}");
    let by = Actor { operation: Some("look".to_owned()), ..Actor::default() };
    let then = vec![Operation::Read { scope: "team".to_owned(), key: "a".to_owned() }];
    let txn = Txn { then, ..Txn::default() };
    let read = || match &fixture.board.txn(&txn, &by).unwrap().results[..] {
        [OperationResult::Read(Some(entry))] => entry.clone(),
        other => panic!("{other:?}"),
    };
    let (first, second) = (read(), read());
    assert!(first.value.says_the_same_as(&second.value), "an answer is remembered on one line");
    assert_eq!(Entry { value: first.value.clone(), ..second }, first);
}
