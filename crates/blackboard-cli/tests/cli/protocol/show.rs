use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_messages_with_schema_and_ttl,
    defined_text_is_escaped,
    messages_have_the_same_name_in_both_outputs,
];

fn human_output_matches_transcript() {
    transcript::check("protocol show");
}

fn json_has_messages_with_schema_and_ttl() {
    let scratch = Scratch::new();
    let signal = scratch.json(["protocol", "show", "Signal"]);
    is_object(&signal, &["name", "level", "scope_template", "summary", "built_in", "messages"]);
    let message = &signal["messages"][0];
    assert_eq!(message["recommended_ttl"], serde_json::json!({"min_seconds": 60, "max_seconds": 120}));
    assert_eq!(message["value_schema"]["required"][0], "agent_id");
}

fn messages_have_the_same_name_in_both_outputs() {
    let scratch = Scratch::new();
    for protocol in ["Signal", "AgentRun"] {
        let shown = scratch.run(["protocol", "show", protocol]).success().stdout;
        for message in scratch.json(["protocol", "show", protocol])["messages"].as_array().unwrap() {
            let name = format!("{protocol}.{}", message["name"].as_str().unwrap());
            assert!(shown.lines().any(|line| line.starts_with(&name)), "{shown}");
            scratch.json(["protocol", "pattern", &name]);
        }
    }
}

fn defined_text_is_escaped() {
    let scratch = Scratch::new();
    let schema = "{\"title\": \"\u{9b}31m\u{202e}\"}";
    scratch.json(["protocol", "define", "review", "review:{id}", "--schema", schema]);
    let shown = scratch.run(["protocol", "show", "review"]).success().stdout;
    assert!(shown.contains("{\"title\": \"\\u009b31m\\u202e\"}"), "{shown}");
}
