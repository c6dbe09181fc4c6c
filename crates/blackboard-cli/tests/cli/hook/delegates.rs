//! Subagents: sessions with a parent session.

use blackboard::agent::label;
use blackboard::id::session_id_from_hint;
use serde_json::{Value, json};

use super::{NONE, Stage, generated_name, text_of};

testkit::on_each_engine![
    work_of_a_delegate_is_the_description_of_its_task,
    subagents_are_delegates_with_their_own_sessions,
    subagent_of_copilot_is_a_delegate,
];

/// The name of the first delegate of a session.
fn delegate_of(hint: &str) -> String {
    format!("{} (delegate)", generated_name(hint))
}

fn work_of_a_delegate_is_the_description_of_its_task() {
    let stage = Stage::new();
    stage.hook("claude", "ivy", "SessionStart", NONE());
    let ask = |task: &str| {
        let input = json!({"description": task, "prompt": "a long story", "subagent_type": "Explore"});
        let usage = json!({"tool_name": "Task", "tool_input": input});
        assert_eq!(stage.hook("claude", "ivy", "PreToolUse", usage), None);
    };
    // Two at once, and a third one whose task the platform never named.
    ask("Find the callers of claim");
    ask("Read the design");
    for (delegate, expected) in
        [("sub1", "Find the callers of claim"), ("sub2", "Read the design"), ("sub3", "Explore")]
    {
        let start = json!({"agent_id": delegate, "agent_type": "Explore"});
        assert!(stage.hook("claude", "ivy", "SubagentStart", start).is_some());
        assert_eq!(stage.agent(&format!("claude:ivy/{delegate}"))["current_work"], expected);
    }
    assert_eq!(stage.agent("claude:ivy")["current_work"], Value::Null, "it is the delegate's work alone");
    stage.hook("opencode", "s0", "session.created", NONE());
    let child = json!({"parent_id": "s0", "task": "Run the tests (@general subagent)"});
    stage.hook("opencode", "s1", "session.created", child);
    assert_eq!(stage.agent("opencode:s1")["current_work"], "Run the tests (@general subagent)");
}

fn subagents_are_delegates_with_their_own_sessions() {
    let stage = Stage::new();
    stage.hook("claude", "ivy", "SessionStart", NONE());
    let sub = || json!({"agent_id": "sub1", "agent_type": "Explore"});
    let said = stage.hook("claude", "ivy", "SubagentStart", sub()).unwrap();
    let session = session_id_from_hint("claude:ivy/sub1");
    assert!(text_of(&said).contains(&format!("--session {session}")), "{said}");
    let agent = stage.agent("claude:ivy/sub1");
    assert_eq!(agent["parent_id"], session_id_from_hint("claude:ivy"));
    assert_eq!(
        (&agent["agent_name"], &agent["current_work"], &agent["project"]),
        (&json!(delegate_of("claude:ivy")), &json!("Explore"), &json!("collab"))
    );
    let edit = json!({"tool_name": "Edit", "tool_input": {"file_path": "a.rs"}, "agent_id": "sub1"});
    stage.hook("claude", "ivy", "PostToolUse", edit.clone());
    assert_eq!(
        stage.hook(
            "claude",
            "ivy",
            "PreToolUse",
            json!({"tool_name": "Edit", "tool_input": {"file_path": "a.rs"}})
        ),
        None
    );
    stage.hook("claude", "ivy", "SubagentStart", json!({"agent_id": "sub2"}));
    let mut beside = edit;
    beside["agent_id"] = json!("sub2");
    let warned = stage.hook("claude", "ivy", "PreToolUse", beside).unwrap();
    let editor = label(&delegate_of("claude:ivy"), &session);
    assert!(text_of(&warned).contains(&format!("edited by {editor}")), "{warned}");
    assert_eq!(
        stage.agent("claude:ivy/sub2")["agent_name"],
        delegate_of("claude:ivy").replace(')', " 2)"),
        "the second one"
    );
    stage.hook("claude", "ivy", "SubagentStop", sub());
    assert_eq!(stage.agent("claude:ivy/sub1")["status"], "completed");
    assert_eq!(stage.agent("claude:ivy")["status"], "active");
    stage.hook("claude", "ivy", "SessionEnd", NONE());
    assert_eq!(stage.agent("claude:ivy/sub2")["status"], "completed", "it ends with its parent");
    // OpenCode has sessions with parents instead.
    stage.hook("opencode", "s0", "session.created", NONE());
    stage.hook("opencode", "s1", "session.created", json!({"parent_id": "s0"}));
    assert_eq!(stage.agent("opencode:s1")["parent_id"], session_id_from_hint("opencode:s0"));
}

/// Its subagents have their own sessions, and the call that reports one has another form than all the others.
fn subagent_of_copilot_is_a_delegate() {
    let stage = Stage::new();
    stage.hook("copilot", "cop", "SessionStart", NONE());
    let started = json!({"sessionId": "cop", "timestamp": 1_794_787_200_000_u64, "cwd": stage.directory(),
        "agentName": "general-purpose", "agent_id": "sub", "agent_type": "general-purpose",
        "parent_agent_id": "cop"});
    let said = stage.run("copilot", started.to_string().as_bytes(), &[]).success().json();
    let session = session_id_from_hint("copilot:sub");
    assert!(said["additionalContext"].as_str().unwrap().contains(&format!("--session {session}")), "{said}");
    let agent = stage.agent("copilot:sub");
    assert_eq!(agent["parent_id"], session_id_from_hint("copilot:cop"));
    assert_eq!(
        (&agent["agent_name"], &agent["current_work"]),
        (&json!(delegate_of("copilot:cop")), &json!("general-purpose"))
    );
    let sub = || json!({"agent_id": "sub", "agent_type": "general-purpose", "parent_agent_id": "cop"});
    stage.hook("copilot", "sub", "Stop", sub());
    assert_eq!(
        (&stage.agent("copilot:sub")["status"], &stage.agent("copilot:cop")["status"]),
        (&json!("idle"), &json!("active"))
    );
    stage.hook("copilot", "cop", "SubagentStop", sub());
    assert_eq!(
        (&stage.agent("copilot:sub")["status"], &stage.agent("copilot:cop")["status"]),
        (&json!("completed"), &json!("active"))
    );
    assert_eq!(stage.log(), "");
}
