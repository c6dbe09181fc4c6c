use blackboard::Code;
use serde_json::json;

use crate::scratch::{Output, Scratch};
use crate::shapes::{SCOPE, is_object};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_policies,
    policies_apply_to_every_command_that_writes,
    values_match_the_schemas_of_rules_and_protocols,
    a_schema_comes_from_json_a_file_or_standard_input,
    json_has_members_and_access_rules,
];

fn human_output_matches_transcript() {
    transcript::check("scope create");
}

fn json_has_the_policies() {
    let scratch = Scratch::new();
    let call = ["scope", "create", "cache", "--ttl", "1h", "--max-entries", "9", "--validate", "count.*=int"];
    let created = scratch.json(call);
    is_object(&created, SCOPE);
    assert_eq!((&created["created"], &created["ttl"]), (&json!(true), &json!(3600)));
    assert_eq!(created["validation"], json!([{"keys": "count.*", "type": "integer"}]));
    assert_eq!(scratch.json(call)["created"], false);
}

fn policies_apply_to_every_command_that_writes() {
    let scratch = Scratch::new();
    scratch.json(["scope", "create", "cache", "--ttl", "1h", "--max-entries", "1", "--validate", "*=int"]);
    let write = ["write", "a", "1", "--scope", "cache"];
    assert!(scratch.json(write)["expires_at"].is_string());
    assert_eq!(scratch.json(["increment", "b", "--scope", "cache"])["evicted"], "a");
    let keys = scratch.json(["list", "--scope", "cache"]);
    assert_eq!(keys, json!(["b"]));
    let events = scratch.json(["observe", "--since", "1h", "--filter", "evict"]);
    assert_eq!((&events["count"], &events["items"][0]["target_id"]), (&json!(1), &json!("a")));
    let refused =
        scratch.run(["write", "c", "text", "--scope", "cache", "--json"]).refused(Code::InvalidValue);
    assert_eq!((&refused["rule"], &refused["found"]), (&json!("*=integer"), &json!("string")));
}

fn values_match_the_schemas_of_rules_and_protocols() {
    let scratch = Scratch::new();
    scratch.json(["protocol", "define", "review", "review:{id}", "--schema", r#"{"required":["verdict"]}"#]);
    let schema = r#"score:*={"properties":{"score":{"maximum":1}}}"#;
    let rules = ["--validate-schema", schema, "--validate-protocol", "review:*=review"];
    let created = scratch.json(["scope", "create", "team"].into_iter().chain(rules));
    let stored = json!([
        {"keys": "score:*", "schema": {"properties": {"score": {"maximum": 1}}}},
        {"keys": "review:*", "protocol": "review"},
    ]);
    assert_eq!(created["validation"], stored);
    scratch.json(["write", "score:1", r#"{"score":1}"#, "--scope", "team"]);
    for (key, value, mismatch) in [
        ("score:1", r#"{"score":2}"#, json!({"path": "/score", "problem": "expected at most 1, found 2"})),
        ("review:1", "{}", json!({"path": "", "problem": "\"verdict\" is missing"})),
    ] {
        let write = scratch.run(["write", key, value, "--scope", "team", "--json"]);
        assert_eq!(write.refused(Code::InvalidValue)["mismatches"], json!([mismatch]));
    }
    let remove = scratch.run(["protocol", "remove", "review", "--json"]);
    assert_eq!(remove.refused(Code::InUse)["protocol"], "review");
}

fn a_schema_comes_from_json_a_file_or_standard_input() {
    let scratch = Scratch::new();
    let file = scratch.path().join("schema.json");
    std::fs::write(file, "{\n  \"type\": \"string\"\n}\n").unwrap();
    let expected = json!([{"keys": "a.*", "schema": {"type": "string"}}]);
    let created = scratch.json(["scope", "create", "one", "--validate-schema", "a.*=schema.json"]);
    assert_eq!(created["validation"], expected);
    let call = ["scope", "create", "two", "--validate-schema", "a.*=-", "--json"];
    let given = Output::fed(&mut scratch.command(call), "{\"type\": \"string\"}");
    assert_eq!(given.success().json()["validation"], expected);
    for wrong in ["a.*", "a.*={\"pattern\":\"x\"}", "a.*=no-such-file.json"] {
        let refused = scratch.run(["scope", "create", "three", "--validate-schema", wrong, "--json"]);
        refused.refused(Code::InvalidValue);
    }
}

fn json_has_members_and_access_rules() {
    let scratch = Scratch::new();
    let call = [
        "scope",
        "create",
        "review",
        "--visibility",
        "shared",
        "--member",
        "ivy",
        "--member",
        "oak",
        "--allow",
        "ivy:write,delete:result:*",
        "--deny",
        "*:delete",
    ];
    let created = scratch.json(call);
    is_object(&created, SCOPE);
    assert_eq!((&created["members"], &created["owner"]), (&json!(["ivy", "oak"]), &json!(null)));
    let allowed =
        json!({"effect": "allow", "who": "ivy", "operations": ["write", "delete"], "keys": "result:*"});
    let denied = json!({"effect": "deny", "who": "*", "operations": ["delete"], "keys": "*"});
    assert_eq!(created["access"], json!([allowed, denied]));
    for wrong in [["--allow", "ivy"], ["--deny", "ivy:own"], ["--allow", ":read"]] {
        let call = ["scope", "create", "other"].into_iter().chain(wrong).chain(["--json"]);
        scratch.run(call).refused(Code::InvalidValue);
    }
}
