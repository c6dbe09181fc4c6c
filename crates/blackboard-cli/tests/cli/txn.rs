use blackboard::Code;
use serde_json::{Value, json};

use crate::scratch::{Output, Scratch};
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    txn_applies_then_or_else_atomically,
    help_lists_every_field_and_its_example_runs,
    every_comparison_compares_its_field,
    txn_changes_nothing_when_one_operation_is_refused,
    txn_with_an_idempotency_key_is_applied_once,
];

fn human_output_matches_transcript() {
    transcript::check("txn");
}

fn txn_applies_then_or_else_atomically() {
    let scratch = Scratch::new();
    let elect = json!({
        "compare": [{"key": "leader", "exists": false}],
        "then": [{"write": {"key": "leader", "value": "Ivy", "tags": ["role"]}}, {"delete": {"key": "none"}}],
        "else": [{"read": {"key": "leader"}}],
    });
    let first = txn(&scratch, &elect).success().json();
    is_object(&first, &["succeeded", "results", "revision"]);
    assert_eq!((&first["succeeded"], &first["revision"]), (&json!(true), &json!(1)));
    assert_eq!(first["results"][0]["write"]["version"], 1);
    assert_eq!(first["results"][1], json!({"delete": null}));
    let second = txn(&scratch, &elect).success().json();
    assert_eq!((&second["succeeded"], &second["revision"]), (&json!(false), &json!(1)));
    assert_eq!(second["results"][0]["read"]["value"], "Ivy");
    // Without `else` it is refused, and returns the current entry.
    let without = json!({"compare": elect["compare"], "then": elect["then"]});
    let refusal = txn(&scratch, &without).refused(Code::Conflict);
    assert_eq!((&refusal["key"], &refusal["revision"]), (&json!("leader"), &json!(1)));
}

fn help_lists_every_field_and_its_example_runs() {
    let scratch = Scratch::new();
    let help = scratch.run(["txn", "--help"]).success().stdout;
    let source = include_str!("../../src/commands/entry/txn.rs");
    for part in ["ComparisonPart", "Part", "WritePart", "KeyRef"] {
        let (_, fields) = source.split_once(&format!("\nstruct {part} {{\n")).unwrap();
        let (fields, _) = fields.split_once("\n}").unwrap();
        let fields = fields.lines().filter(|line| !line.trim().starts_with(['#', '/']));
        for field in fields.filter_map(|line| line.trim().split_once(": ")).map(|(field, _)| field) {
            assert!(help.contains(&format!("\"{field}\"")), "{field}: {help}");
        }
    }
    let (_, example) = help.split_once("otherwise:\n\n").unwrap();
    let (example, _) = example.split_once("\n\n").unwrap();
    let example: Value = serde_json::from_str(example).unwrap();
    scratch.json(["write", "counter", "8"]);
    assert_eq!(txn(&scratch, &example).success().json()["succeeded"], true);
    let second = txn(&scratch, &example).success().json();
    assert_eq!((&second["succeeded"], &second["results"][0]["read"]["value"]), (&json!(false), &json!(9)));
}

fn every_comparison_compares_its_field() {
    let scratch = Scratch::new();
    scratch.json(["write", "null", "null"]);
    scratch.json(["write", "spaced", r#"{"a": [1, 2]}"#]);
    scratch.json(["write", "spaced", r#"{"a": [1, 2]}"#, "--scope", "team-1"]);
    for (comparison, holds) in [
        (json!({"key": "null", "value": null}), true),
        (json!({"key": "none", "value": null}), false),
        (json!({"key": "spaced", "value": {"a": [1, 2]}}), true),
        (json!({"key": "spaced", "value": {"a": [2, 1]}}), false),
        (json!({"key": "spaced", "version": 1}), true),
        (json!({"key": "spaced", "revision": 2}), true),
        (json!({"key": "spaced", "revision": 3}), false),
        (json!({"scope": "team-1", "key": "spaced", "revision": 3}), true),
        (json!({"key": "none", "revision": 0}), true),
        (json!({"key": "none", "exists": true}), false),
    ] {
        let answer =
            txn(&scratch, &json!({"compare": [comparison], "then": [], "else": []})).success().json();
        assert_eq!(answer["succeeded"], holds, "{comparison}");
    }
}

fn txn_changes_nothing_when_one_operation_is_refused() {
    let scratch = Scratch::new();
    scratch.json(["write", "there", "1"]);
    let answer = txn(
        &scratch,
        &json!({"then": [
            {"write": {"key": "a", "value": 1}},
            {"write": {"key": "there", "value": 2, "if_absent": true}},
        ]}),
    );
    answer.refused(Code::AlreadyExists);
    assert_eq!(scratch.json(["list"]), json!(["there"]));
    let many: Vec<_> = (0..10_001).map(|_| json!({"delete": {"key": "a"}})).collect();
    txn(&scratch, &json!({"then": many})).refused(Code::InvalidValue);
}

fn txn_with_an_idempotency_key_is_applied_once() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path().join("move.json"), r#"{"then":[{"write":{"key":"a","value":1}}]}"#)
        .unwrap();
    let call = ["txn", "--file", "move.json", "--op", "move-7"];
    let first = scratch.json(call);
    let again = scratch.json(call);
    assert_eq!((&first["revision"], &first["results"]), (&again["revision"], &again["results"]));
    assert_eq!(scratch.json(["read", "a"])["version"], 1);
}

fn txn(scratch: &Scratch, transaction: &Value) -> Output {
    Output::fed(&mut scratch.command(["txn", "--json"]), transaction.to_string())
}
