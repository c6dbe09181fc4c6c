use blackboard::Code;
use serde_json::json;

use crate::scratch::Scratch;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_record,
    text_that_was_changed_is_reported,
    a_record_is_an_entry,
];

fn human_output_matches_transcript() {
    transcript::check("memory remember");
}

fn json_has_the_record() {
    let scratch = Scratch::new();
    let first = scratch.json(["memory", "remember", "Use nextest", "--tag", "tests", "--relevance", "0.8"]);
    assert_eq!(
        (&first["level"], &first["written"], &first["relevance"]),
        (&json!("short-term"), &json!(true), &json!(0.8))
    );
    assert_eq!(first["defined"].as_array().map(Vec::len), Some(6));
    let again = scratch.json(["memory", "remember", "Use nextest", "--tag", "tests"]);
    assert_eq!((&again["key"], &again["written"]), (&first["key"], &json!(false)));
    let ivy = scratch.json(["agent", "register", "--name", "Ivy"])["session_id"].clone();
    let own = scratch.json(["memory", "remember", "Own", "--session", ivy.as_str().unwrap()]);
    assert_eq!(own["level"], "working");
}

fn text_that_was_changed_is_reported() {
    let scratch = Scratch::new();
    let long = scratch.run(["memory", "remember", &"long ".repeat(1_000), "--json"]).success();
    assert_eq!(long.json()["shortened"], json!(["text"]));
    scratch.run(["memory", "remember", " ", "--json"]).refused(Code::InvalidValue);
    scratch.run(["memory", "remember", "--json"]).refused(Code::Usage);
}

fn a_record_is_an_entry() {
    let scratch = Scratch::new();
    scratch.json(["memory", "remember", "--record", r#"{"cmd": "make ci"}"#, "--key", "build"]);
    let entry = scratch.json(["read", "build", "--scope", "memory:short-term"]);
    assert_eq!((&entry["value"], &entry["metadata"]["relevance"]), (&json!({"cmd": "make ci"}), &json!(0.5)));
}
