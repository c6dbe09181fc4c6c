use std::time::Duration;

use blackboard::Code;
use blackboard::clock::{Clock as _, SystemClock};

use super::{configured, with_quota};
use crate::scratch::Output;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_numbers_of_records,
    lines_are_recorded_once_by_id,
    an_invalid_line_records_nothing,
    a_model_without_a_provider_is_refused,
    a_reported_limit_is_shown_as_such,
    limits_that_replace_no_sum_are_reported_as_ignored,
    an_item_that_the_board_does_not_have_is_noted,
];

fn human_output_matches_transcript() {
    transcript::check("quota record");
}

fn json_has_the_numbers_of_records() {
    let scratch = configured();
    let recorded =
        scratch.json(["quota", "record", "--id", "m", "--input-tokens", "7", "--cache-read", "30"]);
    is_object(&recorded, &["recorded", "duplicates", "skipped", "limits", "limits_ignored"]);
    assert_eq!(recorded["recorded"], 1);
    let again = scratch.json(["quota", "record", "--id", "m", "--input-tokens", "7"]);
    assert_eq!((&again["recorded"], &again["duplicates"]), (&0.into(), &1.into()));
    let old = scratch.json(["quota", "record", "--input-tokens", "7", "--at", "2020-01-01T00:00:00Z"]);
    assert_eq!(old["skipped"], 1);
    assert_eq!(scratch.json(["quota", "status"])["providers"][0]["windows"][0]["used"], 10);
}

fn lines_are_recorded_once_by_id() {
    let scratch = with_quota(
        r#"{"providers": {"a": {"windows": {"5h": {"budget": 1000}}}, "b": {"windows": {"5h": {"budget": 1000}}}},
            "models": {"claude*": "a", "gpt*": "b"}}"#,
    );
    let lines = concat!(
        r#"{"id":"1","model":"claude-opus","usage":{"input":5,"output":2},"session":"s1","agent":"Ivy","item":"x"}"#,
        "\n\n",
        r#"{"id":"1","model":"claude-opus","usage":{"input":5,"output":2},"session":"s2"}"#,
        "\n",
        r#"{"id":"2","model":"gpt-5","usage":{"reasoning":3}}"#,
    );
    for expected in [2, 0] {
        let output = Output::fed(&mut scratch.command(["quota", "record", "-", "--json"]), lines).success();
        assert_eq!(output.json()["recorded"], expected);
    }
    let status = scratch.json(["quota", "status"]);
    let used = |provider: usize| status["providers"][provider]["windows"][0]["used"].as_u64();
    assert_eq!((used(0), used(1)), (Some(7), Some(3)));
    assert_eq!(status["providers"][0]["agents"][0]["agent"], "Ivy");
}

fn an_invalid_line_records_nothing() {
    let scratch = configured();
    let valid = r#"{"id":"1","usage":{"input":5}}"#;
    for (line, expected) in [
        ("text", "line 2: it is not a JSON object"),
        ("[]", "line 2: it is not a JSON object"),
        (r#"{"id":"2","usage":{"input":5"#, "line 2: EOF while parsing an object"),
        (r#"{"id":"2","usage":{"input":1000000000000001}}"#, "line 2: "),
        (r#"{"id":"2","usage":{"inputs":5}}"#, "unknown field `inputs`"),
        (r#"{"id":"2","usage":{"input":-5}}"#, "invalid value"),
        (
            r#"{"id":"2","usage":{"input":20000001}}"#,
            "at most 20,000,000 tokens, and this one has 20,000,001",
        ),
        (r#"{"id":"2","at":"2100-01-01T00:00:00Z","usage":{"input":1}}"#, "is in the future"),
        (r#"{"usage":{"input":5}}"#, "line 2: it has no id"),
        (r#"{"id":"2"}"#, "neither usage nor a limit"),
        (r#"{"id":"2","provider":"b","usage":{}}"#, "the provider b is not configured"),
        (r#"{"id":"2","at":"yesterday","usage":{}}"#, "is not an ISO 8601 time"),
        (r#"{"limit":{"window":"5x","used_percent":1,"resets_at":0}}"#, "is not a duration"),
    ] {
        let input = format!("{valid}\n{line}\n");
        let output = Output::fed(&mut scratch.command(["quota", "record", "-", "--json"]), input);
        let refused = output.refused(Code::InvalidValue);
        let error = refused["error"].as_str().unwrap();
        assert!(error.starts_with("line 2: ") && error.contains(expected), "{refused}");
        assert!(!error.contains("column"), "{refused}");
    }
    assert_eq!(scratch.json(["quota", "status"])["providers"][0]["windows"][0]["used"], 0);
    scratch.run(["quota", "record", "--json"]).refused(Code::Usage);
    for call in [&["--input-tokens", "21M"][..], &["--input-tokens", "1", "--at", "2100-01-01T00:00:00Z"]] {
        let call = [&["quota", "record", "--json"], call].concat();
        scratch.run(call).refused(Code::InvalidValue);
    }
    assert_eq!(scratch.json(["quota", "status"])["providers"][0]["windows"][0]["used"], 0);
}

fn limits_that_replace_no_sum_are_reported_as_ignored() {
    let scratch = configured();
    let now = SystemClock.now().millis() / 1_000;
    let line = |window: &str, resets: i64| {
        format!(r#"{{"limit":{{"window":"{window}","used_percent":50,"resets_at":{resets}}}}}"#)
    };
    let lines = [line("5h", now - 60), line("1h", now + 60), line("299m", now + 60)].join("\n");
    let output = Output::fed(&mut scratch.command(["quota", "record", "-"]), lines.as_str()).success();
    assert!(output.stdout.contains("Limits of the platform: 1\nIgnored limits: 2 ("), "{output:?}");
    assert_eq!(scratch.json(["quota", "status"])["providers"][0]["windows"][0]["used"], 500);
    let json = Output::fed(&mut scratch.command(["quota", "record", "-", "--json"]), lines).success().json();
    assert_eq!((&json["limits"], &json["limits_ignored"]), (&1.into(), &2.into()));
}

fn an_item_that_the_board_does_not_have_is_noted() {
    let scratch = configured();
    scratch.run(["work", "create", "x", "--title", "X"]).success();
    for (item, expected) in [("x", ""), ("y", "note: this board has no work item y\n")] {
        for call in ["record --input-tokens 5", "check --tokens 5"] {
            let words = format!("quota {call} --item {item}");
            let output = scratch.run(words.split_whitespace().collect::<Vec<_>>()).success();
            assert_eq!(output.stderr, expected, "{output:?}");
        }
    }
}

fn a_model_without_a_provider_is_refused() {
    let scratch = with_quota(r#"{"providers": {"a": {}}, "models": {"claude-*": "a"}}"#);
    for command in ["record --input-tokens 5", "check --tokens 5"] {
        let call = |more: &str| {
            let words = format!("quota {command} {more} --json");
            scratch.run(words.split_whitespace().collect::<Vec<_>>())
        };
        let refused = call("--model gpt-9").refused(Code::InvalidValue);
        assert!(refused["error"].as_str().unwrap().contains("for the model gpt-9"), "{refused}");
        for accepted in ["--model claude-5", "--model gpt-9 --provider a", ""] {
            call(accepted).success();
        }
    }
}

fn a_reported_limit_is_shown_as_such() {
    let scratch = configured();
    let before = SystemClock.now().minus(Duration::from_mins(10)).to_string();
    scratch.json(["quota", "record", "--input-tokens", "7", "--at", &before]);
    let resets =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() + 3_600;
    let line = format!(r#"{{"limit":{{"window":"300m","used_percent":42.5,"resets_at":{resets}}}}}"#);
    Output::fed(&mut scratch.command(["quota", "record", "-"]), line).success();
    let window = scratch.json(["quota", "status"])["providers"][0]["windows"][0].clone();
    assert_eq!((&window["used"], &window["reported"]["used_percent"]), (&425.into(), &42.5.into()));
    let shown = scratch.run(["quota", "status"]).success().stdout;
    assert!(shown.contains("425 (reported: 42.5%)"), "{shown}");
}
