//! What an agent reads about the token quota.

use std::time::Duration;

use serde_json::{Value, json};

use super::{NONE, Stage};
use blackboard::id::session_id_from_hint;

const QUOTA: &str = r#"{"quota": {"providers": {"a": {
    "windows": {"5h": {"budget": 1000}}, "reservation": {"agents": {"maxPerAgent": 500}}, "warnAt": [0.8]
}}}}"#;

/// A board with a session of Claude Code that has its brief, and its id.
fn with_session() -> (Stage, String) {
    let stage = Stage::new();
    stage.scratch.run(["work", "create", "x", "--title", "X"]).success();
    stage.configure(QUOTA);
    stage.hook("claude", "1", "SessionStart", json!({"source": "startup"})).unwrap();
    (stage, session_id_from_hint("claude:1"))
}

fn record(stage: &Stage, session: &str, tokens: &str) {
    stage.scratch.run(["quota", "record", "--session", session, "--input-tokens", tokens]).success();
}

fn tool_used(stage: &Stage) -> String {
    let answer = stage.hook("claude", "1", "PostToolUse", json!({"tool_name": "Bash"}));
    answer.map(|answer: Value| answer.to_string()).unwrap_or_default()
}

#[test]
fn a_session_is_notified_once_by_its_next_hook() {
    let (stage, session) = with_session();
    record(&stage, &session, "490");
    assert_eq!(tool_used(&stage).matches("Token quota").count(), 0);
    record(&stage, &session, "10");
    let answer = tool_used(&stage);
    assert_eq!(answer.matches("Token quota: you have used 500 tokens of a, and your cap is 500.").count(), 1);
    assert!(answer.contains("ask the operator before you start more work"), "{answer}");
    record(&stage, &session, "400");
    let answer = tool_used(&stage);
    assert_eq!(answer.matches("Token quota: the 5h window of a is at 90%.").count(), 1, "{answer}");
    record(&stage, &session, "10");
    assert_eq!(tool_used(&stage), "", "it is notified once, and gets no update about the same");
    let events = stage.scratch.json(["observe", "--since", "1h", "--filter", "quota_warning"]);
    let summaries: Vec<_> =
        events["items"].as_array().unwrap().iter().map(|event| &event["summary"]).collect();
    assert!(summaries[0].as_str().unwrap().ends_with("has used 500 tokens of a, its cap is 500"), "{events}");
    let window = summaries[1].as_str().unwrap();
    assert!(window.starts_with("Quota: 5h window of a is at 90% (900 of 1k), frees up at "), "{events}");
    assert_eq!(summaries.len(), 2);
}

#[test]
fn of_hooks_at_the_same_time_one_notifies() {
    let (stage, session) = with_session();
    record(&stage, &session, "900");
    let notified: usize = std::thread::scope(|scope| {
        let hooks: Vec<_> =
            (0..4).map(|_| scope.spawn(|| tool_used(&stage).matches("Token quota: the").count())).collect();
        hooks.into_iter().map(|hook| hook.join().unwrap()).sum()
    });
    assert_eq!(notified, 1);
}

#[test]
fn a_session_that_does_not_use_the_provider_gets_an_update() {
    let (stage, session) = with_session();
    stage.hook("claude", "2", "SessionStart", json!({"source": "startup"})).unwrap();
    tool_used(&stage);
    record(&stage, &session, "900");
    let answer = stage.hook("claude", "2", "UserPromptSubmit", json!({})).unwrap().to_string();
    assert!(
        answer.contains("Quota: 5h window of a is at 90%") && !answer.contains("Token quota"),
        "{answer}"
    );
}

/// What sessions hold, as it is without a call that releases it.
fn reserved(stage: &Stage) -> Value {
    stage.scratch.json(["status"])["quota"]["providers"][0]["windows"][0]["reserved"].clone()
}

#[test]
fn a_session_that_ends_by_its_hook_reserves_nothing() {
    let (stage, session) = with_session();
    stage.hook("claude", "1", "SubagentStart", json!({"agent_id": "d"})).unwrap();
    let delegate = session_id_from_hint("claude:1/d");
    for (item, session) in [("own", &session), ("delegated", &delegate)] {
        stage.scratch.json(["work", "create", item, "--title", "Item", "--estimate", "200"]);
        stage.scratch.json(["work", "claim", item, "--session", session]);
    }
    assert_eq!(reserved(&stage), 400);
    stage.hook("claude", "1", "SubagentStop", json!({"agent_id": "d"}));
    assert_eq!(reserved(&stage), 200);
    stage.hook("claude", "1", "SessionEnd", NONE());
    assert_eq!(reserved(&stage), 0);
    assert_eq!(stage.log(), "");
}

#[test]
fn a_session_that_a_hook_marks_stale_reserves_nothing() {
    let (stage, session) = with_session();
    stage.scratch.json(["work", "create", "one", "--title", "Item", "--estimate", "200"]);
    stage.scratch.json(["work", "claim", "one", "--session", &session]);
    assert_eq!(reserved(&stage), 200);
    stage.scratch.forget_processes();
    stage.scratch.set_heartbeats(Duration::from_hours(1), Duration::from_hours(1));
    stage.hook("claude", "2", "SessionStart", json!({"source": "startup"}));
    assert_eq!(stage.agent("claude:1")["status"], "stale");
    assert_eq!(reserved(&stage), 0);
}

#[test]
fn a_session_of_another_board_gets_a_line_too() {
    let (stage, session) = with_session();
    record(&stage, &session, "100");
    let other = stage.scratch.path().join("other.db");
    let other = other.to_str().unwrap();
    stage.scratch.run(["--db", other, "work", "create", "x", "--title", "X"]).success();
    stage.scratch.run(["--db", other, "quota", "record", "--input-tokens", "800"]).success();
    let answer = tool_used(&stage);
    assert_eq!(answer.matches("Token quota: the 5h window of a is at 90%.").count(), 1, "{answer}");
    let events = |db: &[&str]| {
        let call = ["observe", "--since", "1h", "--filter", "quota_warning"];
        stage.scratch.json([db, &call].concat())["count"].clone()
    };
    assert_eq!((events(&["--db", other]), events(&[])), (1.into(), 0.into()));
}

#[test]
fn agents_hear_that_only_the_part_of_the_operator_is_left() {
    let (stage, session) = with_session();
    stage.configure(&QUOTA.replace(r#""agents": {"maxPerAgent": 500}"#, r#""operator": 400"#));
    record(&stage, &session, "599");
    assert_eq!(tool_used(&stage), "");
    record(&stage, &session, "1");
    let answer = tool_used(&stage);
    let expected =
        "the 5h window of a is at 60%, and nothing is left for agents: the rest is kept for the operator.";
    assert!(answer.contains(expected), "{answer}");
    let events = stage.scratch.json(["observe", "--since", "1h", "--filter", "quota_warning"]);
    let event = &events["items"][0];
    let summary = event["summary"].as_str().unwrap();
    let expected =
        "Quota: 5h window of a is at 60% (600 of 1k), only 400 kept for you are left, frees up at ";
    assert!(summary.starts_with(expected), "{summary}");
    assert_eq!(event["metadata"]["threshold"], 0.6);
}

#[test]
fn without_a_quota_a_hook_ignores_notices() {
    let (stage, session) = with_session();
    record(&stage, &session, "900");
    stage.configure("{}");
    assert!(!tool_used(&stage).contains("Token quota"));
    stage.configure(QUOTA);
    assert!(tool_used(&stage).contains("Token quota"));
}
