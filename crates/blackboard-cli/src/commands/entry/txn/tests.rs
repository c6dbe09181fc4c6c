use super::*;

fn parsed(text: &str) -> entry::Txn {
    parse(text, "here").unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> String {
    parse(text, "here").expect_err(text).to_string()
}

#[test]
fn a_null_is_a_value_to_compare_with_and_to_write() {
    let txn = parsed(
        r#"{"compare":[{"key":"a","value":null}],"then":[{"write":{"key":"a","value": null }}],"else":[]}"#,
    );
    assert_eq!(txn.comparisons[0].expected, Expected::Value(Value::null()));
    let Operation::Write { write, .. } = &txn.then[0] else { panic!("{txn:?}") };
    assert_eq!(write.value, Value::null());
    assert_eq!(txn.otherwise, Some(Vec::new()));
}

#[test]
fn values_stay_as_they_came() {
    let value = r#"{"b": 1.0, "a": 123456789012345678901234567890}"#;
    let txn = parsed(&format!(r#"{{"then":[{{"write":{{"key":"a","value":{value}}}}}]}}"#));
    let Operation::Write { write, .. } = &txn.then[0] else { panic!("{txn:?}") };
    assert_eq!(write.value.as_str(), value);
}

#[test]
fn every_part_may_name_its_scope() {
    let txn = parsed(
        r#"{"compare":[{"scope":"there","key":"a","version":2}],
            "then":[{"delete":{"key":"a"}},{"read":{"scope":"there","key":"b"}}]}"#,
    );
    assert_eq!(txn.comparisons[0].scope, "there");
    let here = Operation::Delete { scope: "here".to_owned(), key: "a".to_owned() };
    let there = Operation::Read { scope: "there".to_owned(), key: "b".to_owned() };
    assert_eq!(txn.then, [here, there]);
    assert_eq!(txn.otherwise, None);
}

#[test]
fn a_write_has_everything_that_the_command_has() {
    let txn = parsed(
        r#"{"then":[{"write":{"key":"a","value":1,"tags":["x"],"ttl":"1h","metadata":{"m":1.0},"merge":true,
            "if_absent":true,"if_revision":4,"lease":true}}]}"#,
    );
    let Operation::Write { scope, write } = &txn.then[0] else { panic!("{txn:?}") };
    assert_eq!(scope, "here");
    let expected = Write {
        tags: vec!["x".to_owned()],
        ttl: Some(Duration::from_hours(1)),
        metadata: Some(Metadata::parse(r#"{"m":1.0}"#).unwrap()),
        merge: true,
        if_absent: true,
        if_revision: Some(Revision::new(4)),
        lease: true,
        ..Write::new("a", Value::of(&1).unwrap())
    };
    assert_eq!(*write, expected);
}

#[test]
fn a_time_to_live_is_seconds_or_a_text() {
    for (ttl, expected) in [
        ("60", Some(Duration::from_mins(1))),
        ("0.5", Some(Duration::from_millis(500))),
        (r#""90s""#, Some(Duration::from_secs(90))),
        (r#""90""#, Some(Duration::from_secs(90))),
        ("null", None),
    ] {
        let txn = parsed(&format!(r#"{{"then":[{{"write":{{"key":"a","value":1,"ttl":{ttl}}}}}]}}"#));
        let Operation::Write { write, .. } = &txn.then[0] else { panic!("{txn:?}") };
        assert_eq!(write.ttl, expected, "{ttl}");
    }
    for ttl in ["-1", "1e300", r#""soon""#, "true", "[1]"] {
        refused(&format!(r#"{{"then":[{{"write":{{"key":"a","value":1,"ttl":{ttl}}}}}]}}"#));
    }
}

#[test]
fn parse_error_names_the_unknown_field() {
    testkit::limit_test();
    for (text, part) in [
        (" ", "requires a transaction"),
        ("{", "EOF"),
        ("[]", "an object with"),
        (r#"{"them":[]}"#, "unknown field `them`"),
        (r#"{"compare":[{"key":"a","exist":true}]}"#, "unknown field `exist`"),
        (r#"{"compare":[{"key":"a"}]}"#, "\"a\" needs exactly one of"),
        (r#"{"compare":[{"key":"a","exists":true,"version":1}]}"#, "\"a\" needs exactly one of"),
        (r#"{"then":[{"wirte":{"key":"a","value":1}}]}"#, "unknown field `wirte`"),
        (r#"{"then":[{"write":{"key":"a"}}]}"#, "missing field `value`"),
        (r#"{"then":[{"write":{"key":"a","value":1,"tag":["x"]}}]}"#, "unknown field `tag`"),
        (r#"{"then":[{"write":{"key":"a","value":1,"metadata":[1]}}]}"#, "metadata"),
        (r#"{"then":[{"delete":{"key":"a","value":1}}]}"#, "unknown field `value`"),
        (r#"{"then":[{"delete":{"key":"a"},"read":{"key":"a"}}]}"#, "exactly one of write, delete, read"),
        (r#"{"then":[{}]}"#, "exactly one of write, delete, read"),
        (r#"{"compare":[{"key":"a","revision":-1}]}"#, "of at least 0"),
        (r#"{"then":[]} {"then":[]}"#, "trailing characters"),
    ] {
        let message = refused(text);
        assert!(message.contains(part), "{text}: {message}");
    }
    let long = refused(&format!(r#"{{"{}":1}}"#, "x".repeat(100_000)));
    assert!(long.len() < 400, "{}", long.len());
}

#[test]
fn depth_is_bounded_before_anything_else_sees_it() {
    testkit::limit_test();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let message = refused(&format!(r#"{{"then":[{{"write":{{"key":"a","value":{deep}}}}}]}}"#));
    assert!(message.contains("the maximum is 128"), "{message}");
}
