//! Comparisons (`txn`): one list of operations or the other, in one transaction.

use super::*;
use crate::entry::{Compare, Condition, Operation, OperationResult, Test};

on_every_engine![
    a_comparison_does_one_thing_or_the_other,
    a_comparison_tests_what_it_says,
    a_failed_comparison_names_the_key_and_what_is_there,
];

fn condition(key: &str, test: Test) -> Condition {
    Condition { scope: "team".to_owned(), key: key.to_owned(), test }
}

fn a_comparison_does_one_thing_or_the_other(fixture: &Fixture) {
    let scope = || "team".to_owned();
    let compare = Compare {
        conditions: vec![condition("leader", Test::Exists(false))],
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
    let first = fixture.board.compare(&compare, &By::author("Ivy")).unwrap();
    assert!(first.succeeded);
    assert_eq!(first.revision, fixture.id(1));
    let [OperationResult::Write(written), OperationResult::Read(Some(entry))] = &first.results[..] else {
        panic!("{first:?}");
    };
    assert_eq!((written.revision, entry.revision), (first.revision, first.revision));
    assert_eq!(Some(entry), fixture.entry("leader").as_ref());
    let second = fixture.board.compare(&compare, &By::default()).unwrap();
    assert!(!second.succeeded);
    assert_eq!(second.revision, fixture.id(2));
    let [OperationResult::Delete(Some(deleted)), OperationResult::Delete(None), OperationResult::Read(None)] =
        &second.results[..]
    else {
        panic!("{second:?}");
    };
    assert_eq!(deleted.revision, fixture.id(2));
    let nothing = Compare { then: vec![], ..compare };
    let third = fixture.board.compare(&nothing, &By::default()).unwrap();
    assert_eq!((third.succeeded, third.revision, third.results.len()), (true, fixture.id(2), 0));
}

fn a_comparison_tests_what_it_says(fixture: &Fixture) {
    fixture.write("a", "1");
    let written = fixture.write("a", r#"{"a": [1.0, 2]}"#);
    for (key, test, expected) in [
        ("a", Test::Exists(true), true),
        ("a", Test::Exists(false), false),
        ("b", Test::Exists(true), false),
        ("b", Test::Exists(false), true),
        ("a", Test::Revision(written.revision), true),
        ("a", Test::Revision(fixture.id(1)), false),
        ("a", Test::Revision(Revision::ZERO), false),
        ("b", Test::Revision(Revision::ZERO), true),
        ("a", Test::Version(2), true),
        ("a", Test::Version(1), false),
        ("b", Test::Version(0), true),
        ("a", Test::Value(json(r#"{"a":[1.0,2]}"#)), true),
        ("a", Test::Value(json(r#"{"a":[1,2]}"#)), false),
        ("b", Test::Value(Value::null()), false),
    ] {
        let compare = Compare {
            conditions: vec![condition("a", Test::Exists(true)), condition(key, test.clone())],
            otherwise: Some(vec![]),
            ..Compare::default()
        };
        let compared = fixture.board.compare(&compare, &By::default()).unwrap();
        assert_eq!(compared.succeeded, expected, "{key} {test:?}");
    }
}

fn a_failed_comparison_names_the_key_and_what_is_there(fixture: &Fixture) {
    fixture.write("a", "1");
    let written = fixture.write("a", "2");
    for test in [Test::Exists(false), Test::Revision(fixture.id(1)), Test::Version(1), Test::Value(json("1"))]
    {
        let compare = Compare {
            conditions: vec![condition("a", test.clone())],
            then: vec![Operation::Write { scope: "team".to_owned(), write: a_write("a", "3") }],
            otherwise: None,
        };
        let refused = fixture.board.compare(&compare, &By::default()).unwrap_err();
        assert_eq!(refused.code(), Code::Conflict, "{test:?}");
        let details = refused.details().unwrap();
        assert_eq!((&details["scope"], &details["key"]), (&"team".into(), &"a".into()));
        assert_eq!(details["revision"], written.revision.get());
        assert_eq!(details["version"], 2);
    }
    assert_eq!(fixture.value("a").as_deref(), Some("2"));
}
