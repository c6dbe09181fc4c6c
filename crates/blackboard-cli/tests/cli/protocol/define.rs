use blackboard::Code;

use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_protocol,
    schema_is_read_from_a_file,
    schema_that_is_no_object_is_not_a_file,
    built_in_name_is_refused,
    template_of_locks_is_refused,
];

fn human_output_matches_transcript() {
    transcript::check("protocol define");
}

fn json_has_the_protocol() {
    let scratch = Scratch::new();
    let call =
        ["protocol", "define", "review", "review:{repo}:{id}", "--level", "session", "--summary", "Reviews"];
    let defined = scratch.json(call);
    is_object(&defined, &["name", "template", "level", "summary", "defined_at", "revision", "created"]);
    assert_eq!((&defined["level"], &defined["created"]), (&"session".into(), &true.into()));
    assert_eq!(scratch.json(call)["created"], false);
    let built = scratch.json(["protocol", "key", "review", "repo=a/b", "id=7"]);
    assert_eq!(built["key"], "review:a/b:7");
    scratch.run(["protocol", "define", "review", "review:{id}", "--json"]).refused(Code::AlreadyExists);
}

fn schema_is_read_from_a_file() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path().join("score.json"), "{\"type\": \"number\"}\n").unwrap();
    let call = ["protocol", "define", "score", "score:{id}", "--schema", "score.json"];
    assert_eq!(scratch.json(call)["value_schema"]["type"], "number");
    scratch.run(["protocol", "check", "score:1", "0.5"]).success();
    scratch.run(["protocol", "check", "score:1", "high", "--json"]).refused(Code::ProtocolMismatch);
}

fn template_of_locks_is_refused() {
    let scratch = Scratch::new();
    let refused =
        scratch.run(["protocol", "define", "mine", "lock:{a}", "--json"]).refused(Code::InvalidValue);
    assert_eq!(refused["error"], "no entry has a key of the template \"lock:{a}\": it means a lock");
}

fn built_in_name_is_refused() {
    let scratch = Scratch::new();
    for name in ["Task", "agentrun"] {
        scratch.run(["protocol", "define", name, "x:{id}", "--json"]).refused(Code::InvalidValue);
    }
}

fn schema_that_is_no_object_is_not_a_file() {
    let scratch = Scratch::new();
    for schema in ["true", "[1]", "1"] {
        let call = ["protocol", "define", "score", "score:{id}", "--schema", schema, "--json"];
        let refused = scratch.run(call).refused(Code::InvalidValue);
        assert!(refused["error"].as_str().unwrap().contains("not an object"), "{refused}");
        let rule = format!("a={schema}");
        let refused = scratch.run(["scope", "create", "x", "--validate-schema", &rule, "--json"]);
        assert!(refused.refused(Code::InvalidValue)["error"].as_str().unwrap().contains("not an object"));
    }
    // A file that is too large has no value to split over keys.
    std::fs::write(scratch.path().join("large.json"), " ".repeat(1_000_000)).unwrap();
    let call = ["protocol", "define", "score", "score:{id}", "--schema", "large.json", "--json"];
    let refused = scratch.run(call).refused(Code::InvalidValue);
    assert_eq!((&refused["hint"], &refused["allowed_bytes"]), (&serde_json::Value::Null, &16_384.into()));
}
