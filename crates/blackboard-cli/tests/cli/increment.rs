use blackboard::Code;
use serde_json::json;

use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_number_that_this_call_produced,
    number_that_is_not_whole_is_refused_with_what_is_allowed,
    hint_for_a_missing_access_count_names_a_command_that_has_it,
];

fn human_output_matches_transcript() {
    transcript::check("increment");
}

fn json_has_the_number_that_this_call_produced() {
    let scratch = Scratch::new();
    let first = scratch.json(["increment", "counter", "--by", "5", "--op", "five"]);
    is_object(&first, &["scope", "key", "version", "revision", "value"]);
    assert_eq!(first["value"], 5);
    assert_eq!(scratch.json(["increment", "counter"])["value"], 6);
    // A retry returns the same number, although other calls counted meanwhile.
    assert_eq!(scratch.json(["increment", "counter", "--by", "5", "--op", "five"])["value"], 5);
    assert_eq!(scratch.json(["read", "counter"])["value"], json!(6));
}

fn number_that_is_not_whole_is_refused_with_what_is_allowed() {
    let scratch = Scratch::new();
    for number in ["0.5", "-0.5", "one", "9223372036854775808"] {
        let refused = scratch.run(["increment", "n", "--by", number]);
        let expected = "expected a whole number from -9223372036854775808 to 9223372036854775807";
        assert!(refused.code == 2 && refused.stderr.contains(expected), "{refused:?}");
    }
    assert_eq!(scratch.json(["increment", "n", "--by", "-3"])["value"], -3);
}

fn hint_for_a_missing_access_count_names_a_command_that_has_it() {
    let scratch = Scratch::new();
    scratch.json(["scope", "create", "cache", "--max-entries", "9", "--eviction", "lfu"]);
    for call in [&["increment", "n"][..], &["append", "n", "1"], &["write", "n", "1"]] {
        let refused =
            scratch.run(call.iter().chain(&["--scope", "cache", "--json"])).refused(Code::InvalidValue);
        let hint = refused["hint"].as_str().unwrap();
        let command = "write --metadata '{\"access_count\":0}' --scope cache n VALUE";
        assert!(hint.ends_with(command), "{hint}");
    }
    scratch.json(["write", "--metadata", r#"{"access_count":0}"#, "--scope", "cache", "n", "1"]);
    assert_eq!(scratch.json(["increment", "n", "--scope", "cache"])["value"], 2);
}
