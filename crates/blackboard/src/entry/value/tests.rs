//! What a value accepts, keeps and refuses.

use proptest::prelude::*;

use super::*;

const LARGE: usize = 1024 * 1024;

fn value(text: &str) -> Value {
    Value::parse(text, LARGE).unwrap()
}

fn nested(depth: usize) -> String {
    "[".repeat(depth) + &"]".repeat(depth)
}

#[test]
fn value_round_trips_unchanged() {
    for text in [
        "null",
        "1.0",
        "1e999",
        "-0",
        "123456789012345678901234567890",
        r#"{"b":1,"a":2,"b":3}"#,
        "{ \"a\" :\n\t[1,\r\n2 ] }",
        r#""\u00e4 ä \ud83d\ude00 \/""#,
    ] {
        assert_eq!(value(text).as_str(), text);
        assert_eq!(value(&format!(" \r\n\t{text}\n")).as_str(), text);
        assert_eq!(Value::from_stored(text.to_owned()).unwrap(), value(text));
        assert_eq!(format!("{:?}", value(text)), text);
    }
}

#[test]
fn invalid_json_is_refused() {
    for text in [
        "",
        " ",
        "hello",
        "{",
        "{\"a\":}",
        "[1,]",
        "01",
        "+1",
        ".5",
        "NaN",
        "'a'",
        "1 2",
        "\"a\nb\"",
        "\"\\x\"",
        "\u{a0}1",
        "\u{feff}1",
        "[1]]",
        "nul",
        "\"\\ud800\"",
        "// 1",
    ] {
        let error = Value::parse(text, LARGE).unwrap_err();
        assert_eq!(error.code(), Code::InvalidValue, "{text}");
        assert!(error.hint().is_some(), "{text}");
    }
}

#[test]
fn limit_error_names_the_limit_and_the_found_size() {
    testkit::limit_test();
    assert_eq!(Value::parse(" [1,2] ", 5).unwrap().as_str(), "[1,2]");
    let error = Value::parse("[1,23]", 5).unwrap_err();
    assert_eq!(error.to_string(), "the value has 6 bytes; 5 are allowed");
    assert_eq!(error.details().unwrap()["allowed_bytes"], 5);

    assert!(Value::parse(&nested(128), LARGE).is_ok());
    for depth in [129, 500_000] {
        let error = Value::parse(&nested(depth), LARGE).unwrap_err();
        assert_eq!(error.to_string(), format!("the value is nested {depth} levels deep; the maximum is 128"));
    }
}

#[test]
fn text_that_is_not_json_is_a_string_and_json_beyond_a_limit_is_not() {
    testkit::limit_test();
    for (text, expected) in [
        ("42", "42"),
        (" null ", "null"),
        ("hello", "\"hello\""),
        ("", "\"\""),
        (" two words ", "\" two words \""),
        ("{\"a\":", r#""{\"a\":""#),
        ("NaN", "\"NaN\""),
        ("a\nb", r#""a\nb""#),
    ] {
        assert_eq!(Value::from_text_or_string(text, LARGE).unwrap().as_str(), expected);
    }
    let deep = nested(129);
    for (text, max_bytes) in
        [(deep.as_str(), LARGE), ("[1,2]", 4), ("hello", 6), ("hello", 2), (r#""\ud800""#, LARGE)]
    {
        assert_eq!(
            Value::from_text_or_string(text, max_bytes).unwrap_err().code(),
            Code::InvalidValue,
            "{text}"
        );
    }
}

#[test]
fn damaged_text_from_an_engine_is_a_fault() {
    for text in ["", "{", "{}{}", "\0"] {
        assert_eq!(Value::from_stored(text.to_owned()).unwrap_err().code(), Code::Corrupt, "{text}");
    }
}

#[test]
fn an_answer_has_the_value_raw_and_on_one_line() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Answer {
        value: Value,
    }
    testkit::limit_test();
    let answer = Answer { value: value("{\"b\":\r\n[1e999,\n1.0], \"a\":\"\\n\"}") };
    let line = serde_json::to_string(&answer).unwrap();
    assert_eq!(line, "{\"value\":{\"b\":  [1e999, 1.0], \"a\":\"\\n\"}}");
    assert_eq!(serde_json::to_string_pretty(&answer).unwrap().lines().count(), 3);

    let read = serde_json::from_str::<Answer>("{\"value\": {\"z\":1.0,  \"a\":1e999} }").unwrap();
    assert_eq!(read.value.as_str(), "{\"z\":1.0,  \"a\":1e999}");
    assert_eq!(serde_json::from_str::<Answer>("{\"value\":null}").unwrap().value, Value::null());
    for refused in [nested(129), r#""\ud800""#.to_owned()] {
        assert!(serde_json::from_str::<Answer>(&format!("{{\"value\":{refused}}}")).is_err());
    }
}

#[test]
fn typed_read_reports_the_mismatch() {
    testkit::limit_test();
    let error = value("{\"a\": \"x\"}").to::<std::collections::BTreeMap<String, u32>>().unwrap_err();
    assert_eq!(error.code(), Code::InvalidValue);
    assert!(error.to_string().contains("invalid type: string \"x\", expected u32"), "{error}");

    let long = Value::of(&"\u{1b}".repeat(5000)).unwrap();
    let error = long.to::<u32>().unwrap_err().to_string();
    assert!(error.len() < 1000 && !error.contains('\u{1b}'), "{error}");

    assert!(value(&nested(128)).to::<serde_json::Value>().is_ok());
}

#[test]
fn value_without_a_json_form_is_refused() {
    let map = std::collections::BTreeMap::from([([1], 2)]);
    assert_eq!(Value::of(&map).unwrap_err().code(), Code::InvalidValue);
}

#[test]
fn append_keeps_the_rest_unchanged() {
    testkit::limit_test();
    for (array, item, expected) in [
        ("[]", "1", "[1]"),
        ("[ ]", "1", "[1 ]"),
        ("[1, 2]", "{\"a\": 1.0}", "[1, 2,{\"a\": 1.0}]"),
        ("[\n  1\n]", "2", "[\n  1,2\n]"),
        ("[1e999,\"]\"]", "[ ]", "[1e999,\"]\",[ ]]"),
    ] {
        assert_eq!(value(array).appended(&value(item)).unwrap().as_str(), expected);
    }
    for (array, item) in [("{}", "1"), ("null", "1"), ("\"[]\"", "1"), ("[]", nested(128).as_str())] {
        assert_eq!(value(array).appended(&value(item)).unwrap_err().code(), Code::InvalidValue, "{array}");
    }
    assert!(value("[]").appended(&value(&nested(127))).is_ok());
}

#[test]
fn increment_needs_an_integer_and_does_not_wrap() {
    for (number, by, expected) in [
        ("0", 1, "1"),
        ("-0", 0, "0"),
        ("-5", 3, "-2"),
        ("9223372036854775806", 1, "9223372036854775807"),
        ("-9223372036854775807", -1, "-9223372036854775808"),
    ] {
        assert_eq!(value(number).incremented(by).unwrap().as_str(), expected);
    }
    for (number, by) in [
        ("9223372036854775807", 1),
        ("-9223372036854775808", -1),
        ("9223372036854775808", -1),
        ("1.0", 1),
        ("1e3", 1),
        ("\"1\"", 1),
        ("null", 1),
    ] {
        assert_eq!(value(number).incremented(by).unwrap_err().code(), Code::InvalidValue, "{number}");
    }
}

proptest! {
    #[test]
    fn accepted_value_is_one_line_of_json_in_an_answer(text in r#"[\[\]{},:"\\ \n\r0-9eE.+ua-]{0,24}"#) {
        testkit::limit_test();
        let value = Value::from_text_or_string(&text, LARGE).unwrap();
        let line = serde_json::to_string(&value).unwrap();
        prop_assert!(!line.contains(['\n', '\r']));
        // It is the same as the text, for a parser that ignores white space.
        prop_assert_eq!(line.replace([' ', '\n', '\r'], ""), value.as_str().replace([' ', '\n', '\r'], ""));
        prop_assert!(json::check_syntax(&line).is_ok());
    }
}
