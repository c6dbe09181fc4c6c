//! The allowed names and sizes of entries, on every path.

use super::*;
use crate::entry::{Comparison, Expected, MAX_OPERATIONS, Operation, Query, Txn};

on_every_engine![
    every_path_refuses_a_bad_key,
    every_path_refuses_a_bad_scope,
    every_path_refuses_writes_to_reserved_scopes,
    every_query_refuses_a_bad_pattern_or_tag,
    limits_are_exact,
    a_commit_has_a_limited_number_of_operations,
    a_commit_holds_a_limited_number_of_bytes,
    one_key_of_any_size_can_be_changed,
    sweep_leaves_the_rest_to_the_next_one,
    ttl_below_a_millisecond_is_refused,
];

/// The result of each path that takes a key.
fn on_every_path(fixture: &Fixture, scope: &str, key: &str) -> Vec<(&'static str, Code)> {
    let handle = fixture.board.scope(scope);
    let write = a_write(key, "1");
    let place = || (scope.to_owned(), key.to_owned());
    let txn = |comparisons, then| {
        code(fixture.board.txn(&Txn { comparisons, then, otherwise: Some(vec![]) }, &Actor::default()))
    };
    let operation = |operation| txn(vec![], vec![operation]);
    let (s, k) = place();
    let comparison = Comparison { scope: s, key: k, expected: Expected::Exists(true) };
    let (s, k) = place();
    vec![
        ("read", code(handle.read(key))),
        ("read batch", code(handle.read_batch(&["fine", key]))),
        ("write", code(handle.write(&write))),
        ("batch", code(handle.write_batch(&[a_write("fine", "1"), write.clone()]))),
        ("delete", code(handle.delete(key))),
        ("append", code(handle.append(key, &json("1")))),
        ("increment", code(handle.increment(key, 1))),
        ("history", code(handle.history(key, 1))),
        ("as of", code(handle.entry_as_of(key, Revision::ZERO))),
        ("comparison", txn(vec![comparison], vec![])),
        ("then write", operation(Operation::Write { scope: scope.to_owned(), write: write.clone() })),
        ("then read", operation(Operation::Read { scope: s.clone(), key: k.clone() })),
        ("then delete", operation(Operation::Delete { scope: s, key: k })),
        ("transaction read", code(fixture.board.transaction(|tx| tx.scope(scope).read(key)))),
        ("transaction write", code(fixture.board.transaction(|tx| tx.scope(scope).write(&write)))),
        ("transaction delete", code(fixture.board.transaction(|tx| tx.scope(scope).delete(key)))),
    ]
}

fn every_path_refuses_a_bad_key(fixture: &Fixture) {
    let long = "x".repeat(1025);
    for key in [
        "",
        ":a",
        "a:",
        "a*",
        "a?",
        "a[",
        "a]",
        "team:a",
        "polymathera:a",
        "a\nb",
        "a\u{2028}b",
        "a\0",
        &long,
    ] {
        for (path, refused) in on_every_path(fixture, "team", key) {
            assert_eq!(refused, Code::InvalidValue, "{key:?} on {path}");
        }
    }
    assert_eq!(fixture.revision(), Revision::ZERO);
}

fn every_path_refuses_a_bad_scope(fixture: &Fixture) {
    let long = "x".repeat(129);
    for scope in ["", "a*", "a?b", "[", "a\nb", "a\u{200b}", &long] {
        for (path, refused) in on_every_path(fixture, scope, "fine") {
            assert_eq!(refused, Code::InvalidValue, "{scope:?} on {path}");
        }
        let handle = fixture.board.scope(scope);
        assert_eq!(code(handle.query(&Query::default())), Code::InvalidValue, "{scope:?}");
        assert_eq!(code(handle.list(&Query::default())), Code::InvalidValue, "{scope:?}");
        assert_eq!(code(handle.snapshot(&Query::default())), Code::InvalidValue, "{scope:?}");
        assert_eq!(code(handle.clear("*")), Code::InvalidValue, "{scope:?}");
    }
    assert_eq!(fixture.revision(), Revision::ZERO);
}

fn every_path_refuses_writes_to_reserved_scopes(fixture: &Fixture) {
    for scope in ["locks", "files"] {
        for (path, refused) in on_every_path_that_writes(fixture, scope) {
            assert_eq!(refused, Code::InvalidValue, "{path} in {scope}");
        }
        assert_eq!(fixture.board.scope(scope).read("a").unwrap(), None, "looking is fine");
    }
    assert_eq!(fixture.revision(), Revision::ZERO);
}

fn on_every_path_that_writes(fixture: &Fixture, scope: &str) -> Vec<(&'static str, Code)> {
    let handle = fixture.board.scope(scope);
    let write = a_write("a", "1");
    let operation = |operation| {
        code(fixture.board.txn(&Txn { then: vec![operation], ..Txn::default() }, &Actor::default()))
    };
    let (s, k) = (scope.to_owned(), "a".to_owned());
    vec![
        ("write", code(handle.write(&write))),
        ("batch", code(handle.write_batch(std::slice::from_ref(&write)))),
        ("delete", code(handle.delete("a"))),
        ("clear", code(handle.clear("*"))),
        ("append", code(handle.append("a", &json("1")))),
        ("increment", code(handle.increment("a", 1))),
        ("then write", operation(Operation::Write { scope: s.clone(), write: write.clone() })),
        ("then delete", operation(Operation::Delete { scope: s, key: k })),
        ("transaction write", code(fixture.board.transaction(|tx| tx.scope(scope).write(&write)))),
        ("transaction delete", code(fixture.board.transaction(|tx| tx.scope(scope).delete("a")))),
    ]
}

fn every_query_refuses_a_bad_pattern_or_tag(fixture: &Fixture) {
    let with = |pattern: Option<&str>, prefix: Option<&str>, tags: &[&str]| Query {
        pattern: pattern.map(str::to_owned),
        prefix: prefix.map(str::to_owned),
        tags: owned(tags),
        ..Query::default()
    };
    for query in [
        with(Some(""), None, &[]),
        with(Some("team:*"), None, &[]),
        with(Some("polymathera:*"), None, &[]),
        with(Some("a\n*"), None, &[]),
        with(None, Some("team:"), &[]),
        with(None, None, &[""]),
        with(None, None, &["a\nb"]),
        Query { after: Some("not a revision".to_owned()), ..Query::default() },
    ] {
        assert_eq!(code(fixture.scope().query(&query)), Code::InvalidValue, "{query:?}");
        assert_eq!(code(fixture.board.transaction(|tx| tx.scope("team").query(&query))), Code::InvalidValue);
    }
    for pattern in ["", "team:*", "polymathera:*"] {
        assert_eq!(code(fixture.scope().clear(pattern)), Code::InvalidValue, "{pattern:?}");
    }
    // Wildcards have no meaning in a prefix, so no key begins with one.
    fixture.write("a", "1");
    assert!(fixture.scope().query(&with(None, Some("*"), &[])).unwrap().entries.is_empty());
}

fn limits_are_exact(fixture: &Fixture) {
    let refused = |write: &Write, part: &str| {
        let error = fixture.scope().write(write).unwrap_err();
        assert_eq!(error.code(), Code::InvalidValue);
        assert!(error.to_string().contains(part), "{error}");
    };
    let key = |length| a_write(&"k".repeat(length), "1");
    fixture.scope().write(&key(1024)).unwrap();
    assert_eq!(fixture.entry(&"k".repeat(1024)).unwrap().version, 1);
    refused(&key(1025), "1025 bytes; 1024 are allowed");
    refused(&a_write(&"\u{e9}".repeat(513), "1"), "1026 bytes; 1024 are allowed");

    let value = |length: usize| Write::new("a", Value::of(&"v".repeat(length - 2)).unwrap());
    fixture.scope().write(&value(1024 * 1024)).unwrap();
    assert_eq!(fixture.value("a").unwrap().len(), 1024 * 1024);
    refused(&value(1024 * 1024 + 1), "1048577 bytes; 1048576 are allowed");
    let small = fixture.with_settings(|settings| settings.max_value_bytes = 4);
    assert_eq!(code(small.scope("team").write(&a_write("a", "12345"))), Code::InvalidValue);
    small.scope("team").write(&a_write("b", "[12]")).unwrap();
    assert_eq!(code(small.scope("team").append("b", &json("1"))), Code::InvalidValue);
    small.scope("team").write(&a_write("c", "9999")).unwrap();
    assert_eq!(code(small.scope("team").increment("c", 1)), Code::InvalidValue);
    let too_long = a_write("d", "12345");
    assert_eq!(code(small.transaction(|tx| tx.scope("team").write(&too_long))), Code::InvalidValue);

    let tags = |count: usize, length: usize| Write {
        tags: (0..count).map(|number| format!("{number:0length$}")).collect(),
        ..a_write("a", "1")
    };
    fixture.scope().write(&tags(64, 128)).unwrap();
    assert_eq!(fixture.entry("a").unwrap().tags.len(), 64);
    refused(&tags(65, 3), "65 tags; 64 are allowed");
    refused(&tags(1, 129), "129 bytes; 128 are allowed");
    refused(
        &Write { tags: owned(&["one more"]), merge: true, ..a_write("a", "1") },
        "65 tags; 64 are allowed",
    );

    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    fixture.write("deep", &deep(128));
    assert_eq!(fixture.value("deep").unwrap(), deep(128));
    let error = Value::parse(&deep(129), usize::MAX).unwrap_err();
    assert!(error.to_string().contains("the maximum is 128"), "{error}");
    fixture.write("list", "[]");
    assert_eq!(code(fixture.scope().append("list", &json(&deep(128)))), Code::InvalidValue);
}

fn a_commit_has_a_limited_number_of_operations(fixture: &Fixture) {
    let batch = |count: usize| (0..count).map(|number| a_write(&number.to_string(), "1")).collect::<Vec<_>>();
    let refused = fixture.scope().write_batch(&batch(MAX_OPERATIONS + 1)).unwrap_err();
    assert_eq!(refused.to_string(), "10001 operations are too many for one commit; 10000 are allowed");
    fixture.scope().write_batch(&batch(MAX_OPERATIONS)).unwrap();
    assert_eq!(fixture.revision(), fixture.id(10_000));
    let last = a_write("one more", "1");
    let refused = fixture.board.transaction(|tx| {
        let mut scope = tx.scope("team");
        batch(MAX_OPERATIONS).iter().try_for_each(|write| scope.write(write))?;
        scope.write(&last)
    });
    assert_eq!(code(refused), Code::InvalidValue);
    assert_eq!(fixture.revision(), fixture.id(10_000));
    fixture.scope().write(&last).unwrap();
    assert_eq!(code(fixture.scope().clear("*")), Code::InvalidValue);
    assert_eq!(fixture.scope().clear("[0-9]*").unwrap().keys.len(), 10_000);
    let read = || Operation::Read { scope: "team".to_owned(), key: "a".to_owned() };
    let then = std::iter::repeat_with(read).take(MAX_OPERATIONS + 1).collect();
    let txn = Txn { then, ..Txn::default() };
    assert_eq!(code(fixture.board.txn(&txn, &Actor::default())), Code::InvalidValue);
}

fn ttl_below_a_millisecond_is_refused(fixture: &Fixture) {
    for ttl in [Duration::ZERO, Duration::from_nanos(1), Duration::from_micros(999)] {
        let write = Write { ttl: Some(ttl), ..a_write("a", "1") };
        assert_eq!(code(fixture.scope().write(&write)), Code::InvalidValue, "{ttl:?}");
    }
    let write = Write { ttl: Some(Duration::from_millis(1)), ..a_write("a", "1") };
    fixture.scope().write(&write).unwrap();
    assert_eq!(fixture.value("a").as_deref(), Some("1"));
    fixture.scope().write(&Write { ttl: Some(Duration::MAX), ..a_write("a", "2") }).unwrap();
    assert_eq!(fixture.value("a").as_deref(), Some("2"), "for as long as there are dates");
}

/// Ten entries with values of a kilobyte, on a board whose commits may have three of them.
fn ten_large_entries(fixture: &Fixture, ttl: Option<Duration>) -> Board {
    let large = format!("\"{}\"", "x".repeat(1022));
    let writes: Vec<_> =
        (0..10).map(|number| Write { ttl, ..a_write(&format!("large:{number}"), &large) }).collect();
    fixture.board.scope("team").write_batch(&writes).unwrap();
    fixture.with_settings(|settings| settings.max_commit_bytes = 3 * 1024 + 100)
}

fn a_commit_holds_a_limited_number_of_bytes(fixture: &Fixture) {
    let board = ten_large_entries(fixture, None);
    let scope = board.scope("team");
    let before = fixture.revision();
    let place = |number: usize| ("team".to_owned(), format!("large:{number}"));
    let txn = |count: usize, operation: &dyn Fn(String, String) -> Operation| {
        let then = (0..count).map(|number| operation(place(number).0, place(number).1)).collect();
        board.txn(&Txn { then, ..Txn::default() }, &Actor::default()).map(drop)
    };
    let read = |scope, key| Operation::Read { scope, key };
    let delete = |scope, key| Operation::Delete { scope, key };
    let overwrites: Vec<_> = (0..4).map(|number| a_write(&format!("large:{number}"), "1")).collect();
    let comparisons = (0..4).map(|number| Comparison {
        scope: place(number).0,
        key: place(number).1,
        expected: Expected::Exists(true),
    });
    let comparisons = Txn { comparisons: comparisons.collect(), ..Txn::default() };
    let in_a_transaction = board.transaction(|tx| {
        let mut scope = tx.scope("team");
        (0..4).try_for_each(|number| scope.delete(&format!("large:{number}")).map(drop))
    });
    for (what, refused) in [
        ("clear", code(scope.clear("*"))),
        ("overwrite", code(scope.write_batch(&overwrites))),
        ("delete", code(txn(4, &delete))),
        ("read", code(txn(4, &read))),
        ("compare", code(board.txn(&comparisons, &Actor::default()))),
        ("transaction", code(in_a_transaction)),
    ] {
        assert_eq!(refused, Code::InvalidValue, "{what}");
    }
    assert_eq!(fixture.revision(), before);
    txn(1, &read).unwrap();
    txn(3, &delete).unwrap();
    scope.clear("large:3").unwrap();
}

fn one_key_of_any_size_can_be_changed(fixture: &Fixture) {
    ten_large_entries(fixture, None);
    let board = fixture.with_settings(|settings| settings.max_commit_bytes = 10);
    let scope = board.scope("team");
    scope.write(&a_write("large:0", "\"longer than ten bytes\"")).unwrap();
    scope.delete("large:1").unwrap();
    scope.clear("large:2").unwrap();
    let read = Operation::Read { scope: "team".to_owned(), key: "large:3".to_owned() };
    let txn = Txn { then: vec![read.clone()], ..Txn::default() };
    board.txn(&txn, &Actor::default()).unwrap();
    let twice = Txn { then: vec![read.clone(), read], ..Txn::default() };
    assert_eq!(code(board.txn(&twice, &Actor::default())), Code::InvalidValue);
}

fn sweep_leaves_the_rest_to_the_next_one(fixture: &Fixture) {
    let board = ten_large_entries(fixture, Some(Duration::from_secs(1)));
    fixture.pass(2);
    let mut expired = Vec::new();
    while expired.last() != Some(&0) {
        expired.push(board.expire_entries(OnBusy::Wait).unwrap().count);
    }
    assert_eq!(expired, [4, 4, 2, 0]);
}
