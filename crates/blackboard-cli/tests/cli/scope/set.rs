use blackboard::Code;
use serde_json::{Value, json};

use crate::scratch::Scratch;
use crate::shapes::{SCOPE, is_object};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_changed_policies,
    call_without_a_policy_is_a_usage_error,
    a_rule_that_denies_does_not_open_the_scope,
];

fn human_output_matches_transcript() {
    transcript::check("scope set");
}

fn json_has_the_changed_policies() {
    let scratch = Scratch::new();
    scratch.json(["scope", "create", "cache", "--ttl", "1h", "--max-entries", "9"]);
    let set = scratch.json(["scope", "set", "cache", "--no-ttl", "--eviction", "refuse"]);
    is_object(&set, SCOPE);
    assert_eq!((&set["updated"], &set["ttl"], &set["max_entries"]), (&json!(true), &Value::Null, &json!(9)));
    assert_eq!(set["eviction"], "refuse");
    let rules = scratch.json(["scope", "set", "cache", "--validate", "a=int", "--validate", "b=dict"]);
    assert_eq!(rules["validation"].as_array().map(Vec::len), Some(2));
    let none = scratch.json(["scope", "set", "cache", "--no-validate", "--no-max-entries"]);
    assert_eq!((&none["validation"], &none["max_entries"]), (&json!([]), &Value::Null));
    assert_eq!(scratch.json(["scope", "set", "cache", "--no-validate"])["updated"], false);
}

fn call_without_a_policy_is_a_usage_error() {
    let scratch = Scratch::new();
    scratch.json(["scope", "create", "cache"]);
    let refused = scratch.run(["scope", "set", "cache", "--json"]).refused(Code::Usage);
    assert_eq!(refused["error"], "scope set requires a policy to change");
    assert!(refused["hint"].as_str().unwrap().contains("scope set --help"), "{refused}");
}

fn a_rule_that_denies_does_not_open_the_scope() {
    let scratch = Scratch::new();
    scratch.json(["scope", "create", "pr", "--allow", "ivy:*"]);
    scratch.json(["write", "plan", "1", "--scope", "pr"]);
    let read = || scratch.run(["read", "plan", "--scope", "pr", "--as", "oak", "--json"]);
    read().refused(Code::NotAllowed);
    let set = scratch.json(["scope", "set", "pr", "--deny", "elm:delete"]);
    assert_eq!(set["access"].as_array().map(Vec::len), Some(2), "{set}");
    read().refused(Code::NotAllowed);
    // Only what is asked for is removed.
    let only = scratch.json(["scope", "set", "pr", "--no-access", "--deny", "elm:delete"]);
    assert_eq!(only["access"].as_array().map(Vec::len), Some(1), "{only}");
    assert_eq!(read().success().json()["value"], 1);
    assert_eq!(scratch.json(["scope", "set", "pr", "--no-access"])["access"], json!([]));
}
