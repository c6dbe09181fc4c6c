//! Comparisons (`txn`): one list of operations or the other, in one transaction.

use super::*;
use crate::entry::{Comparison, Expected, Operation, OperationResult, Txn};
use crate::scope::{AccessRule, AccessRules, CreateScope, Effect, Eviction, Policies, SetScope};

on_every_engine![
    txn_runs_one_list_of_operations,
    each_comparison_tests_its_condition,
    failed_comparison_names_the_key_and_the_found_value,
    a_repeated_txn_shows_only_what_its_caller_may_read,
    a_repeated_txn_is_for_the_caller_of_the_board_that_made_it,
];

fn comparison(key: &str, expected: Expected) -> Comparison {
    Comparison { scope: "team".to_owned(), key: key.to_owned(), expected }
}

fn txn_runs_one_list_of_operations(fixture: &Fixture) {
    let scope = || "team".to_owned();
    let txn = Txn {
        comparisons: vec![comparison("leader", Expected::Exists(false))],
        then: vec![
            Operation::Write { scope: scope(), write: a_write("leader", "1") },
            Operation::Read { scope: scope(), key: "leader".to_owned() },
        ],
        otherwise: Some(vec![
            Operation::Delete { scope: scope(), key: "leader".to_owned() },
            Operation::Delete { scope: scope(), key: "nothing".to_owned() },
            Operation::Read { scope: scope(), key: "leader".to_owned() },
        ]),
    };
    let first = fixture.board.txn(&txn, &Actor::author("Ivy")).unwrap();
    assert!(first.succeeded);
    assert_eq!(first.revision, fixture.id(1));
    let [OperationResult::Write(written), OperationResult::Read(Some(entry))] = &first.results[..] else {
        panic!("{first:?}");
    };
    assert_eq!((written.revision, entry.revision), (first.revision, first.revision));
    assert_eq!(Some(entry), fixture.entry("leader").as_ref());
    let second = fixture.board.txn(&txn, &Actor::default()).unwrap();
    assert!(!second.succeeded);
    assert_eq!(second.revision, fixture.id(2));
    let [OperationResult::Delete(Some(deleted)), OperationResult::Delete(None), OperationResult::Read(None)] =
        &second.results[..]
    else {
        panic!("{second:?}");
    };
    assert_eq!(deleted.revision, fixture.id(2));
    let nothing = Txn { then: vec![], ..txn };
    let third = fixture.board.txn(&nothing, &Actor::default()).unwrap();
    assert_eq!((third.succeeded, third.revision, third.results.len()), (true, fixture.id(2), 0));
}

fn each_comparison_tests_its_condition(fixture: &Fixture) {
    fixture.write("a", "1");
    let written = fixture.write("a", r#"{"a": [1.0, 2]}"#);
    for (key, test, expected) in [
        ("a", Expected::Exists(true), true),
        ("a", Expected::Exists(false), false),
        ("b", Expected::Exists(true), false),
        ("b", Expected::Exists(false), true),
        ("a", Expected::Revision(written.revision), true),
        ("a", Expected::Revision(fixture.id(1)), false),
        ("a", Expected::Revision(Revision::ZERO), false),
        ("b", Expected::Revision(Revision::ZERO), true),
        ("a", Expected::Version(2), true),
        ("a", Expected::Version(1), false),
        ("b", Expected::Version(0), true),
        ("a", Expected::Value(json(r#"{"a":[1.0,2]}"#)), true),
        ("a", Expected::Value(json(r#"{"a":[1,2]}"#)), false),
        ("b", Expected::Value(Value::null()), false),
    ] {
        let txn = Txn {
            comparisons: vec![comparison("a", Expected::Exists(true)), comparison(key, test.clone())],
            otherwise: Some(vec![]),
            ..Txn::default()
        };
        let compared = fixture.board.txn(&txn, &Actor::default()).unwrap();
        assert_eq!(compared.succeeded, expected, "{key} {test:?}");
    }
}

fn failed_comparison_names_the_key_and_the_found_value(fixture: &Fixture) {
    fixture.write("a", "1");
    let written = fixture.write("a", "2");
    for test in [
        Expected::Exists(false),
        Expected::Revision(fixture.id(1)),
        Expected::Version(1),
        Expected::Value(json("1")),
    ] {
        let txn = Txn {
            comparisons: vec![comparison("a", test.clone())],
            then: vec![Operation::Write { scope: "team".to_owned(), write: a_write("a", "3") }],
            otherwise: None,
        };
        let refused = fixture.board.txn(&txn, &Actor::default()).unwrap_err();
        assert_eq!(refused.code(), Code::Conflict, "{test:?}");
        let details = refused.details().unwrap();
        assert_eq!((&details["scope"], &details["key"]), (&"team".into(), &"a".into()));
        assert_eq!(details["revision"], written.revision.get());
        assert_eq!(details["version"], 2);
    }
    assert_eq!(fixture.value("a").as_deref(), Some("2"));
}

fn once() -> Actor {
    Actor { operation: Some("op".to_owned()), ..Actor::default() }
}

fn reading(key: &str) -> Operation {
    Operation::Read { scope: "team".to_owned(), key: key.to_owned() }
}

fn a_repeated_txn_shows_only_what_its_caller_may_read(fixture: &Fixture) {
    let denying = |rule: &str| AccessRules::new(vec![AccessRule::parse(Effect::Deny, rule).unwrap()]);
    let policies = Policies { max_entries: Some(3), eviction: Eviction::Lru, ..Policies::default() };
    fixture.board.scopes().create(&CreateScope::new("team", policies)).unwrap();
    for key in ["evicted", "read", "compared"] {
        fixture.write(key, "1");
    }
    let txn = Txn {
        comparisons: vec![comparison("compared", Expected::Exists(true))],
        then: vec![
            reading("read"),
            Operation::Write { scope: "team".to_owned(), write: a_write("new", "1") },
        ],
        otherwise: Some(vec![reading("other")]),
    };
    let oak = fixture.board.with_caller(Actor::author("oak"));
    let first = oak.txn(&txn, &once()).unwrap();
    assert_eq!(oak.txn(&txn, &once()).unwrap(), first);
    for (key, expected) in [
        ("read", Err(Code::NotAllowed)),
        ("compared", Err(Code::NotAllowed)),
        ("evicted", Err(Code::NotAllowed)),
        // The answer says nothing about the operations that did not run.
        ("other", Ok(first)),
    ] {
        let deny = Some(denying(&format!("oak:read:{key}")));
        fixture.board.scopes().set(&SetScope { deny, ..SetScope::of("team") }).unwrap();
        let repeated = oak.txn(&txn, &once()).map_err(|error| error.code());
        assert_eq!(repeated, expected, "{key}");
    }
}

fn a_repeated_txn_is_for_the_caller_of_the_board_that_made_it(fixture: &Fixture) {
    fixture.write("a", "1");
    let txn = Txn { then: vec![reading("a")], ..Txn::default() };
    let by = |author: &str| fixture.board.with_caller(Actor::author(author)).txn(&txn, &once());
    let first = by("ivy").unwrap();
    assert_eq!(by("ivy").unwrap(), first);
    assert_eq!(code(by("oak")), Code::InvalidValue);
    // The same caller, named by the call.
    let named = Actor { operation: once().operation, ..Actor::author("ivy") };
    assert_eq!(fixture.board.txn(&txn, &named).unwrap(), first);
}
