use blackboard::Code;
use serde_json::json;

use crate::scratch::Scratch;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_the_rules, rules_require_a_level];

fn human_output_matches_transcript() {
    transcript::check("memory define");
}

fn json_has_the_rules() {
    let scratch = Scratch::new();
    let defined = scratch.json(["memory", "define"]);
    assert_eq!(defined["levels"].as_array().map(Vec::len), Some(6));
    assert_eq!(
        (&defined["levels"][0]["level"], &defined["levels"][0]["changed"]),
        (&json!("working"), &json!(true))
    );
    let notes = scratch.json(["memory", "define", "notes", "--half-life", "30d", "--next", "semantic,none"]);
    let level = &notes["levels"][0];
    assert_eq!((&level["half_life"], &level["next"]), (&json!(2_592_000), &json!(["semantic", "none"])));
    assert_eq!((&level["scope"], &level["missing"]), (&json!("memory:notes"), &json!(["none"])));
}

fn rules_require_a_level() {
    let scratch = Scratch::new();
    scratch.run(["memory", "define", "--ttl", "1h", "--json"]).refused(Code::Usage);
    scratch.run(["memory", "define", "a", "--min-relevance", "2", "--json"]).refused(Code::Usage);
    scratch.run(["memory", "define", "a", "--next", "a", "--json"]).refused(Code::DependencyCycle);
}
