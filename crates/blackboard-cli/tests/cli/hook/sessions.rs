//! A session from its first hook to its last.

use std::fs;
use std::path::Path;

use blackboard::id::session_id_from_hint;
use serde_json::{Value, json};

use super::{NONE, Stage, generated_name, label_of, text_of};
use crate::mcp::client::Client;

testkit::on_each_engine![
    hooks_register_a_session_keep_it_active_and_end_it,
    session_whose_start_was_missed_starts_with_a_prompt_or_a_tool,
    two_sessions_of_one_platform_are_told_apart_by_their_names,
    a_session_whose_parent_has_ended_has_none_and_keeps_its_name,
    cleared_session_gets_its_brief_again_and_its_shell_always_has_its_id,
    session_gets_the_name_of_the_pai_assistant,
    sessions_with_one_configured_name_are_told_apart,
    hooks_find_names_projects_and_sessions_and_export_them,
    copilot_that_calls_twice_has_one_session_and_one_brief,
];

fn hooks_register_a_session_keep_it_active_and_end_it() {
    let stage = Stage::new();
    for (platform, events) in [
        ("claude", ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"]),
        ("codex", ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"]),
        ("gemini", ["SessionStart", "BeforeAgent", "AfterTool", "AfterAgent", "SessionEnd"]),
        ("copilot", ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"]),
        ("cursor", ["sessionStart", "beforeSubmitPrompt", "postToolUse", "stop", "sessionEnd"]),
        (
            "opencode",
            ["session.created", "chat.message", "tool.execute.after", "session.idle", "session.deleted"],
        ),
    ] {
        let hint = format!("{platform}:s1");
        let [start, prompt, tool, idle, end] = events;
        let said = stage.hook(platform, "s1", start, NONE()).unwrap();
        assert!(text_of(&said).contains(&session_id_from_hint(&hint)), "{platform}: {said}");
        let agent = stage.agent(&hint);
        let name = generated_name(&hint);
        assert_eq!((&agent["agent_name"], &agent["project"]), (&json!(name), &json!("collab")), "{platform}");
        assert_eq!((&agent["status"], &agent["pid"]), (&json!("active"), &json!(std::process::id())));
        assert_eq!(stage.hook(platform, "s1", idle, NONE()), None, "{platform}");
        assert_eq!(stage.agent(&hint)["status"], "idle", "{platform}");
        assert_eq!(stage.hook(platform, "s1", prompt, NONE()), None, "{platform}");
        assert_eq!(stage.agent(&hint)["status"], "active", "{platform}");
        stage.hook(platform, "s1", idle, NONE());
        assert_eq!(stage.hook(platform, "s1", tool, json!({"tool_name": "Bash"})), None, "{platform}");
        assert_eq!(stage.agent(&hint)["status"], "active", "{platform}");
        assert_eq!(stage.hook(platform, "s1", end, NONE()), None, "{platform}");
        assert_eq!(stage.agent(&hint)["status"], "completed", "{platform}");
        assert_eq!(stage.hook(platform, "s1", tool, NONE()), None, "{platform}: it was under way");
        assert_eq!(stage.hook(platform, "s1", idle, NONE()), None, "{platform}");
        assert_eq!(stage.agent(&hint)["status"], "completed", "{platform}");
        stage.hook(platform, "s1", start, NONE()).unwrap();
        let agent = stage.agent(&hint);
        let resumed = (&agent["status"], &agent["agent_name"]);
        assert_eq!(resumed, (&json!("active"), &json!(name)), "{platform}: it is resumed");
        stage.hook(platform, "s1", end, NONE());
    }
}

fn session_whose_start_was_missed_starts_with_a_prompt_or_a_tool() {
    let stage = Stage::new();
    stage.hook("codex", "oak", "SessionStart", NONE());
    for (platform, prompt, tool, end) in [
        ("claude", "UserPromptSubmit", "PostToolUse", "SessionEnd"),
        ("cursor", "beforeSubmitPrompt", "postToolUse", "sessionEnd"),
        ("opencode", "chat.message", "tool.execute.after", "session.deleted"),
    ] {
        let session = |name: &str| session_id_from_hint(&format!("{platform}:{name}"));
        let is_brief = |said: Option<Value>, name: &str| {
            said.is_some_and(|said| text_of(&said).contains(&format!(", session {} ", session(name))))
        };
        assert_eq!(stage.hook(platform, "never", end, NONE()), None, "{platform}");
        assert_eq!(stage.scratch.run(["agent", "show", &session("never")]).code, 3, "{platform}");
        let told = stage.hook(platform, "new", prompt, NONE());
        assert_eq!(stage.agent(&format!("{platform}:new"))["status"], "active", "{platform}");
        let told_next = stage.hook(platform, "new", tool, NONE());
        let (at_prompt, at_tool) = (is_brief(told, "new"), is_brief(told_next, "new"));
        assert_eq!((at_prompt, at_tool), (platform != "cursor", platform == "cursor"), "{platform}");
        assert_eq!(stage.hook(platform, "new", tool, NONE()), None, "{platform}: it is told once");
        assert!(is_brief(stage.hook(platform, "tool", tool, NONE()), "tool"), "{platform}");
        stage.hook(platform, "new", end, NONE());
        stage.hook(platform, "new", prompt, NONE());
        assert_eq!(stage.agent(&format!("{platform}:new"))["status"], "active", "{platform}: it goes on");
        for name in ["new", "tool"] {
            stage.hook(platform, name, end, NONE());
        }
    }
    // A subagent proves that its parent is alive, unless the parent has just ended.
    let edit = |agent: &str| json!({"tool_name": "Bash", "agent_id": agent});
    assert!(stage.hook("claude", "lost", "PostToolUse", edit("sub1")).is_some());
    assert_eq!(stage.agent("claude:lost/sub1")["parent_id"], session_id_from_hint("claude:lost"));
    stage.hook("claude", "lost", "SessionEnd", NONE());
    assert_eq!(stage.hook("claude", "lost", "PostToolUse", edit("sub2")), None);
    assert_eq!(stage.agent("claude:lost")["status"], "completed");
}

fn two_sessions_of_one_platform_are_told_apart_by_their_names() {
    let stage = Stage::new();
    let (ivy, oak) = ("claude:ivy", "claude:oak");
    for hint in [ivy, oak] {
        let said = stage.hook("claude", &hint["claude:".len()..], "SessionStart", NONE()).unwrap();
        let own = format!("You are {}, session {}", generated_name(hint), session_id_from_hint(hint));
        assert!(text_of(&said).contains(&own), "{said}");
    }
    assert_ne!(generated_name(ivy), generated_name(oak));
    // A refusal. Commands accept the name.
    stage.scratch.json(["work", "claim", "x", "--title", "X", "--session", &generated_name(ivy)]);
    let refused = stage.scratch.run(["work", "claim", "x", "--session", &generated_name(oak)]);
    assert!(refused.stderr.contains(&format!("claimed by {}", label_of(ivy))), "{refused:?}");
    // Updates.
    stage.hook("claude", "ivy", "SessionEnd", NONE());
    stage.hook("claude", "ivy", "SessionStart", NONE());
    let said = stage.hook("claude", "oak", "PostToolUse", NONE()).unwrap();
    let registered =
        format!("Agent \"{}\" ({}) registered", generated_name(ivy), &session_id_from_hint(ivy)[..8]);
    assert!(text_of(&said).contains(&registered), "{said}");
    // A warning.
    let edit = || json!({"tool_name": "Edit", "tool_input": {"file_path": "a.rs"}});
    stage.hook("claude", "ivy", "PostToolUse", edit());
    let said = stage.hook("claude", "oak", "PreToolUse", edit()).unwrap();
    assert!(text_of(&said).contains(&format!("edited by {}", label_of(ivy))), "{said}");
    // The result of an MCP tool.
    let mut client = Client::new(&stage.scratch);
    let who = client.call("who", json!({}));
    let mut names: Vec<_> =
        who["agents"]["items"].as_array().unwrap().iter().map(|agent| text(&agent["agent_name"])).collect();
    names.sort_unstable();
    let mut expected = [ivy, oak].map(generated_name);
    expected.sort_unstable();
    assert_eq!(names, expected);
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn a_session_whose_parent_has_ended_has_none_and_keeps_its_name() {
    let stage = Stage::new();
    stage.hook("opencode", "s0", "session.created", NONE());
    stage.hook("opencode", "s1", "session.created", json!({"parent_id": "s0"}));
    stage.hook("opencode", "s1", "session.deleted", NONE());
    stage.hook("opencode", "s1", "chat.message", NONE());
    let name = format!("{} (delegate)", generated_name("opencode:s0"));
    assert_eq!(stage.agent("opencode:s1")["agent_name"], name);
    stage.hook("opencode", "s0", "session.deleted", NONE());
    assert!(stage.hook("opencode", "s2", "session.created", json!({"parent_id": "s0"})).is_some());
    let agent = stage.agent("opencode:s2");
    assert_eq!((&agent["status"], &agent["parent_id"]), (&json!("active"), &Value::Null));
}

fn cleared_session_gets_its_brief_again_and_its_shell_always_has_its_id() {
    let stage = Stage::new();
    let file = stage.file("env");
    let environment = [("CLAUDE_ENV_FILE", &*file)];
    let start = |source: &str| {
        let _ = fs::remove_file(&file);
        let said = stage.hook_in("claude", "ivy", "SessionStart", json!({"source": source}), &environment);
        assert!(fs::read_to_string(&file).unwrap().contains("BLACKBOARD_SESSION_ID"), "{source}");
        said.is_some()
    };
    assert!(start("startup"));
    assert!(!start("startup"), "it was told a moment ago");
    stage.scratch.json(["work", "create", "--id", "x", "--title", "X"]);
    assert!(stage.hook("claude", "ivy", "PostToolUse", NONE()).is_some());
    assert!(start("compact"));
    assert_eq!(stage.hook("claude", "ivy", "PostToolUse", NONE()), None);
}

fn session_gets_the_name_of_the_pai_assistant() {
    let stage = Stage::new();
    let settings = stage.scratch.path().join(".claude/settings.json");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    fs::write(&settings, r#"{"daidentity": {"name": "Ivy"}}"#).unwrap();
    stage.hook("claude", "1", "SessionStart", NONE());
    assert_eq!(stage.agent("claude:1")["agent_name"], "Ivy");
    assert_eq!(stage.scratch.json(["agent", "register"])["agent_name"], "Ivy");
}

fn sessions_with_one_configured_name_are_told_apart() {
    let stage = Stage::new();
    let ivy = [("BLACKBOARD_AGENT_NAME", "Ivy")];
    let start = |session: &str| {
        stage.hook_in("claude", session, "SessionStart", NONE(), &ivy);
        stage.agent(&format!("claude:{session}"))["agent_name"].as_str().unwrap().to_owned()
    };
    let second = format!("Ivy-{}", &session_id_from_hint("claude:2")[..4]);
    assert_eq!([start("1"), start("2")], ["Ivy", &second]);
    stage.hook_in("claude", "2", "SessionEnd", NONE(), &ivy);
    assert_eq!(start("2"), second, "a session that is resumed keeps its name");

    stage.scratch.json(["work", "create", "x", "--title", "X"]);
    stage.scratch.json(["work", "claim", "x", "-s", &second]);
    let list = stage.scratch.run(["work", "list"]).success().stdout;
    assert!(list.contains(&second), "{list}");
    let refused = stage.scratch.run(["work", "claim", "x", "-s", "Ivy"]);
    assert!(refused.code == 4 && refused.stderr.contains(&second), "{refused:?}");
    let by_hand = stage.scratch.json(["agent", "register", "--name", "Ivy"]);
    assert_eq!(by_hand["agent_name"], "Ivy", "a name that is given is kept");
}

fn hooks_find_names_projects_and_sessions_and_export_them() {
    let stage = Stage::new();
    let file = stage.file("env file");
    let environment = [("BLACKBOARD_AGENT_NAME", "Ivy"), ("CLAUDE_ENV_FILE", &*file)];
    stage.hook_in("claude", "1", "SessionStart", NONE(), &environment);
    let session = session_id_from_hint("claude:1");
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("export BLACKBOARD_SESSION_ID='{session}'\n"));
    assert_eq!(stage.agent("claude:1")["agent_name"], "Ivy");
    stage.hook_in("gemini", "1", "SessionStart", NONE(), &environment);
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 1, "that file is Claude Code's");
    stage.configure(r#"{"agent": {"name": "Elm"}}"#);
    stage.hook("claude", "2", "SessionStart", NONE());
    assert_eq!(stage.agent("claude:2")["agent_name"], "Elm");
    for (id, path) in
        [("outer", stage.scratch.path().to_owned()), ("inner", Path::new(&stage.directory()).into())]
    {
        let path = path.canonicalize().unwrap();
        stage.scratch.json([
            "project",
            "register",
            "--id",
            id,
            "--name",
            id,
            "--path",
            path.to_str().unwrap(),
        ]);
    }
    stage.hook("claude", "3", "SessionStart", json!({"cwd": stage.file("src")}));
    assert_eq!(stage.agent("claude:3")["project"], "inner", "the nearest that is registered");
    fs::create_dir_all(stage.scratch.path().join("plain")).unwrap();
    let plain = stage.scratch.path().join("plain");
    stage.hook("claude", "4", "SessionStart", json!({"cwd": plain}));
    assert_eq!(stage.agent("claude:4")["project"], "outer");
    let cursor = stage.hook("cursor", "1", "sessionStart", NONE()).unwrap();
    assert_eq!(cursor["env"]["BLACKBOARD_SESSION_ID"], session_id_from_hint("cursor:1"));
}

fn copilot_that_calls_twice_has_one_session_and_one_brief() {
    let stage = Stage::new();
    let copilot = [("COPILOT_CLI", "1")];
    assert!(stage.hook_in("copilot", "1", "SessionStart", NONE(), &copilot).is_some());
    assert_eq!(stage.hook_in("claude", "1", "SessionStart", NONE(), &copilot), None);
    stage.scratch.json(["work", "create", "--id", "x", "--title", "X"]);
    let told = stage.hook_in("claude", "1", "PostToolUse", NONE(), &copilot).unwrap();
    assert!(told["additionalContext"].as_str().unwrap().contains("\"X\""), "{told}");
    assert_eq!(stage.hook_in("copilot", "1", "PostToolUse", NONE(), &copilot), None);
    assert_eq!(stage.scratch.json(["agent", "list", "--all"])["count"], 1);
}
