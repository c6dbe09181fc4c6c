use blackboard::Code;
use testkit::process::RunToEnd as _;

use crate::scratch::{Output, Scratch};
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_protocols_of_a_key,
    mismatch_has_its_path_and_problem,
    value_is_read_from_standard_input,
];

fn human_output_matches_transcript() {
    transcript::check("protocol check");
}

fn json_has_the_protocols_of_a_key() {
    let scratch = Scratch::new();
    let checked = scratch.json(["protocol", "check", "result:run:compliance:7", "1"]);
    is_object(&checked, &["key", "protocols", "value_checked_by"]);
    assert_eq!(checked["protocols"][0]["values"], serde_json::json!({"ns": "compliance", "id": "7"}));
    assert_eq!(checked["protocols"][1]["protocol"], "Result");
    assert_eq!(checked["value_checked_by"], serde_json::Value::Null);
}

fn mismatch_has_its_path_and_problem() {
    let scratch = Scratch::new();
    let call = ["protocol", "check", "cache:x", "{\"confidence\": 7}", "--json"];
    let refused = scratch.run(call).refused(Code::ProtocolMismatch);
    assert_eq!(refused["template"], "cache:{id...}");
    let mismatches = refused["mismatches"].as_array().unwrap();
    let last = serde_json::json!({"path": "/confidence", "problem": "expected at most 1, found 7"});
    assert_eq!((mismatches.len(), mismatches.last()), (4, Some(&last)));
}

fn value_is_read_from_standard_input() {
    let scratch = Scratch::new();
    scratch.run(["init"]).success();
    let call = "echo '{}' | blackboard protocol check result:q4 -";
    let said = Output::of(scratch.shell(call).run_to_end()).success();
    assert!(said.stdout.ends_with("No protocol describes its values.\n"), "{said:?}");
}
