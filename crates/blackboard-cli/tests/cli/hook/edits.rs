//! Edits of files that another session has reserved or edited.

use blackboard::id::session_id_from_hint;
use serde_json::{Value, json};
use testkit::process::RunToEnd as _;

use super::{NONE, Stage, label_of, text_of};
use crate::scratch::Output;

testkit::on_each_engine![
    every_form_of_an_edit_is_checked_against_reservations,
    patch_with_indented_headers_is_recorded_as_denied_and_as_edited,
    edit_of_too_many_files_is_denied,
    agent_is_warned_before_it_edits_a_file_of_another_agent,
    denied_agent_sees_an_update_when_the_file_is_released,
];

fn every_form_of_an_edit_is_checked_against_reservations() {
    let stage = Stage::new();
    stage.hook("claude", "ivy", "SessionStart", NONE());
    stage.hook("codex", "ivy", "SessionStart", NONE());
    stage.hook("gemini", "oak", "SessionStart", NONE());
    stage.configure(r#"{"fileGuard": "deny"}"#);
    let mut command = stage.scratch.command(["file", "reserve", "src/held.rs"]);
    command.current_dir(stage.directory()).args(["--session", &session_id_from_hint("gemini:oak")]);
    Output::of(command.run_to_end()).success();
    let patch = |files: &[String]| {
        let files: Vec<String> = files.iter().map(|file| format!("*** Add File: {file}\n+x")).collect();
        format!("*** Begin Patch\n{}\n*** End Patch", files.join("\n"))
    };
    let many: Vec<String> = (0..300).map(|number| format!("src/{number}.rs")).collect();
    let held = ["src/held.rs".to_owned()];
    let odd = ["src/a**b".to_owned(), "src/x*".to_owned(), "src/held.rs".to_owned()];
    for (what, platform, tool, input) in [
        ("many", "codex", "apply_patch", json!({"command": patch(&[&many[..], &held].concat())})),
        ("text", "codex", "apply_patch", json!(patch(&held))),
        ("indented", "codex", "apply_patch", json!({"command": patch(&held).replace("***", "  ***")})),
        ("Windows", "codex", "apply_patch", json!({"command": patch(&held).replace('\n', "\r\n")})),
        ("list", "codex", "apply_patch", json!({"command": ["apply_patch", patch(&held)]})),
        ("no name", "codex", "apply_patch", json!({"command": patch(&["src/none/../held.rs".to_owned()])})),
        ("odd", "codex", "apply_patch", json!({"command": patch(&odd)})),
        ("large", "claude", "Write", json!({"content": "x".repeat(3_000_000), "file_path": "src/held.rs"})),
    ] {
        let said = stage.hook(platform, "ivy", "PreToolUse", json!({"tool_name": tool, "tool_input": input}));
        let said = said.unwrap_or_default();
        assert_eq!(said["hookSpecificOutput"]["permissionDecision"], "deny", "{what}: {said}");
    }
    // A session that is not registered is denied like any other.
    let edit = json!({"tool_name": "Write", "tool_input": {"file_path": "src/held.rs"}});
    assert!(stage.hook("claude", "unknown", "PreToolUse", edit.clone()).is_some());
    // A Copilot CLI that runs the hooks of Claude Code has its own tools, one of which also shows files.
    let copilot = [("COPILOT_CLI", "1")];
    stage.hook_in("claude", "cop", "SessionStart", NONE(), &copilot);
    let own = |command: &str| {
        let input = json!({"command": command, "path": "src/held.rs"});
        let usage = json!({"tool_name": "str_replace_editor", "tool_input": input});
        stage.hook_in("claude", "cop", "PreToolUse", usage, &copilot)
    };
    assert_eq!(own("str_replace").unwrap()["permissionDecision"], "deny");
    assert_eq!(own("view"), None);
}

fn patch_with_indented_headers_is_recorded_as_denied_and_as_edited() {
    let stage = Stage::new();
    stage.hook("codex", "oak", "SessionStart", NONE());
    stage.hook("codex", "ivy", "SessionStart", NONE());
    stage.configure(r#"{"fileGuard": "deny"}"#);
    let patch = "*** Begin Patch\n  *** Update File: src/a.rs\n@@\n-x\n+y\n*** End Patch";
    let usage = json!({"tool_name": "apply_patch", "tool_input": {"command": patch}});
    stage.hook("codex", "oak", "PostToolUse", usage.clone());
    let said = stage.hook("codex", "ivy", "PreToolUse", usage).unwrap();
    assert_eq!(said["hookSpecificOutput"]["permissionDecision"], "deny", "{said}");
    assert!(text_of(&said).contains(&format!("src/a.rs: edited by {}", label_of("codex:oak"))), "{said}");
}

fn edit_of_too_many_files_is_denied() {
    let stage = Stage::new();
    stage.hook("claude", "ivy", "SessionStart", NONE());
    stage.hook("codex", "ivy", "SessionStart", NONE());
    let patch = |files: &mut dyn Iterator<Item = String>| {
        let mut lines = String::new();
        for file in files {
            lines.extend(["*** Update File: ", &file, "\n@@\n+x\n"]);
        }
        json!({"tool_name": "apply_patch", "tool_input": {"command": format!("*** Begin Patch\n{lines}*** End Patch")}})
    };
    let many = patch(&mut (0..100_000).map(|number| format!("src/{number}")));
    // Each has other directories, none of which exists.
    let deep = patch(&mut (0..3000).map(|number| format!("{number}{}/a", "/d".repeat(2000))));
    // A thousand of these would take longer to resolve than a hook may take.
    let costly = patch(&mut (0..900).map(|number| format!("{number}{}/a", "/d".repeat(80))));
    for (what, usage) in [("many", &many), ("deep", &deep), ("costly", &costly)] {
        stage.configure(r#"{"fileGuard": "deny"}"#);
        let said = stage.hook("codex", "ivy", "PreToolUse", usage.clone()).unwrap_or_default();
        assert_eq!(said["hookSpecificOutput"]["permissionDecision"], "deny", "{what}: {said}");
        assert!(text_of(&said).contains("split this edit"), "{what}: {said}");
        let log = stage.log();
        let line = log.lines().last().unwrap_or_default();
        assert!(line.contains("some files of the edit were not checked"), "{what}: {line}");
        stage.configure(r#"{"fileGuard": "warn"}"#);
        let said = stage.hook("codex", "ivy", "PreToolUse", usage.clone()).unwrap_or_default();
        assert_eq!(said["hookSpecificOutput"]["permissionDecision"], Value::Null, "{what}: {said}");
        assert!(text_of(&said).contains("not checked"), "{what}: {said}");
        // After the edit it is only a heartbeat, with as many files as are noted of one call.
        stage.hook("codex", "ivy", "PostToolUse", usage.clone());
    }
    stage.configure(r#"{"fileGuard": "deny"}"#);
    let usual = patch(&mut (0..1000).map(|number| format!("src/{number}")));
    assert_eq!(stage.hook("codex", "ivy", "PreToolUse", usual), None, "as many as are checked");
}

fn agent_is_warned_before_it_edits_a_file_of_another_agent() {
    let stage = Stage::new();
    // The session that owns a shared process is related to the others in it; this session is not.
    stage.hook_in("codex", "oak", "SessionStart", NONE(), &[("BLACKBOARD_PID", "1")]);
    let diff = "*** Begin Patch\n*** Update File: src/lib.rs\n@@\n-a\n+b\n*** End Patch";
    let edit = json!({"tool_name": "apply_patch", "tool_input": {"command": diff}});
    stage.hook("codex", "oak", "PostToolUse", edit);
    stage.scratch.json([
        "agent",
        "heartbeat",
        "--work",
        "The engine",
        "--session",
        &session_id_from_hint("codex:oak"),
    ]);
    for (platform, start, before, after, tool, field) in [
        ("claude", "SessionStart", "PreToolUse", "PostToolUse", "Edit", "file_path"),
        ("gemini", "SessionStart", "BeforeTool", "AfterTool", "replace", "file_path"),
        ("copilot", "SessionStart", "PreToolUse", "PostToolUse", "edit", "path"),
        ("cursor", "sessionStart", "preToolUse", "postToolUse", "Write", "file_path"),
        ("opencode", "session.created", "tool.execute.before", "tool.execute.after", "edit", "filePath"),
    ] {
        stage.hook(platform, "ivy", start, NONE());
        let path = stage.file("src/lib.rs");
        let usage = || json!({"tool_name": tool, "tool_input": {field: path}});
        stage.configure("{}");
        let warnings: Vec<String> = [before, after]
            .iter()
            .filter_map(|event| stage.hook(platform, "ivy", event, usage()))
            .map(|said| text_of(&said))
            .filter(|text| text.contains("is working on a file you"))
            .collect();
        assert_eq!(warnings.len(), 1, "{platform} is warned once: {warnings:?}");
        for expected in [format!("src/lib.rs: edited by {}", label_of("codex:oak")), "The engine".to_owned()]
        {
            assert!(warnings[0].contains(&expected), "{platform}: {warnings:?}");
        }
        stage.configure(r#"{"fileGuard": "deny"}"#);
        let denied = stage.hook(platform, "ivy", before, usage()).unwrap();
        assert!(text_of(&denied).contains("Edit blocked"), "{platform}: {denied}");
        assert!(text_of(&denied).contains("deny") || denied.get("deny").is_some(), "{platform}: {denied}");
        stage.configure(r#"{"fileGuard": "off"}"#);
        assert_eq!(stage.hook(platform, "ivy", before, usage()), None, "{platform}");
        let other = json!({"tool_name": tool, "tool_input": {field: stage.file("src/other.rs")}});
        stage.configure(r#"{"fileGuard": "deny"}"#);
        assert_eq!(stage.hook(platform, "ivy", before, other), None, "{platform}");
        for end in ["SessionEnd", "sessionEnd", "session.deleted"] {
            stage.hook(platform, "ivy", end, NONE());
        }
    }
}

fn denied_agent_sees_an_update_when_the_file_is_released() {
    let stage = Stage::new();
    stage.hook("claude", "ivy", "SessionStart", NONE());
    stage.hook("codex", "oak", "SessionStart", NONE());
    stage.configure(r#"{"fileGuard": "deny"}"#);
    let in_project = |words: &[&str]| {
        let mut command = stage.scratch.command(words);
        command.current_dir(stage.directory()).args(["--session", &session_id_from_hint("codex:oak")]);
        Output::of(command.run_to_end()).success();
    };
    in_project(&["file", "reserve", "src/", "--note", "rewriting"]);
    let usage = json!({"tool_name": "Write", "tool_input": {"file_path": "src/new/deep.rs"}});
    let denied = stage.hook("claude", "ivy", "PreToolUse", usage).unwrap();
    assert_eq!(denied["hookSpecificOutput"]["permissionDecision"], "deny");
    let reason = denied["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap();
    let reserved = format!("reserved (src/**) by {}", label_of("codex:oak"));
    assert!(reason.contains(&reserved) && reason.contains("rewriting"), "{reason}");
    stage.hook("claude", "ivy", "UserPromptSubmit", NONE());
    in_project(&["file", "release", "--all"]);
    let told = stage.hook("claude", "ivy", "UserPromptSubmit", NONE()).unwrap();
    assert!(text_of(&told).contains("src/**"), "{told}");
    assert_eq!(stage.hook("claude", "ivy", "UserPromptSubmit", NONE()), None, "once");
}
