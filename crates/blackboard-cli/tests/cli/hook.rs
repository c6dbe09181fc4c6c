use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use blackboard::id::session_of_hint;
use serde_json::{Value, json};

use crate::scratch::{Output, Scratch};
use crate::transcript;

#[test]
fn people_see_what_the_transcript_shows() {
    transcript::check("hook");
}

/// A repository with its own board, in which everything happens.
struct Stage {
    scratch: Scratch,
}

impl Stage {
    fn new() -> Stage {
        let scratch = Scratch::new();
        fs::create_dir_all(scratch.path().join("project/.git")).unwrap();
        fs::create_dir_all(scratch.path().join("project/src")).unwrap();
        let config = "[remote \"origin\"]\n\turl = git@github.com:owner/collab.git\n";
        fs::write(scratch.path().join("project/.git/config"), config).unwrap();
        Stage { scratch }
    }

    fn directory(&self) -> String {
        self.scratch.path().canonicalize().unwrap().join("project").to_str().unwrap().to_owned()
    }

    /// Runs a hook with an environment, and returns everything about it.
    fn run(&self, platform: &str, input: &[u8], environment: &[(&str, &str)]) -> Output {
        let mut command = self.scratch.command(["hook", platform]);
        command.envs(environment.iter().copied()).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Whoever does not want to read all of it may go.
        let _ = child.stdin.take().unwrap().write_all(input);
        Output::of(child.wait_with_output().unwrap())
    }

    /// Runs a hook that has to end well, and returns what it said.
    #[track_caller]
    fn hook(&self, platform: &str, session: &str, event: &str, more: Value) -> Option<Value> {
        self.hook_in(platform, session, event, more, &[])
    }

    #[track_caller]
    fn hook_in(
        &self,
        platform: &str,
        session: &str,
        event: &str,
        more: Value,
        environment: &[(&str, &str)],
    ) -> Option<Value> {
        let Value::Object(more) = more else { panic!("{more} is no object") };
        let mut call = json!({"cwd": self.directory(), "session_id": session, "hook_event_name": event});
        call.as_object_mut().unwrap().extend(more);
        let output = self.run(platform, call.to_string().as_bytes(), environment);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
        (!output.stdout.is_empty()).then(|| output.json())
    }

    fn agent(&self, hint: &str) -> Value {
        self.scratch.json(["agent", "show", &session_of_hint(hint)])
    }

    fn log(&self) -> String {
        fs::read_to_string(self.scratch.path().join(".pai/blackboard/hook.log")).unwrap_or_default()
    }

    fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.directory())
    }

    fn configure(&self, text: &str) {
        fs::write(self.scratch.path().join(".pai/blackboard/config.json"), text).unwrap();
    }
}

/// Everything that is text in an answer.
fn text_of(said: &Value) -> String {
    match said {
        Value::String(text) => text.clone(),
        Value::Object(fields) => fields.values().map(text_of).collect(),
        _ => String::new(),
    }
}

const NONE: fn() -> Value = || json!({});

#[test]
fn a_session_lives_by_its_hooks() {
    let stage = Stage::new();
    for (platform, name, events) in [
        ("claude", "Claude Code", ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"]),
        ("codex", "Codex", ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"]),
        ("gemini", "Gemini CLI", ["SessionStart", "BeforeAgent", "AfterTool", "AfterAgent", "SessionEnd"]),
        ("copilot", "Copilot CLI", ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"]),
        ("cursor", "Cursor", ["sessionStart", "beforeSubmitPrompt", "postToolUse", "stop", "sessionEnd"]),
        (
            "opencode",
            "OpenCode",
            ["session.created", "chat.message", "tool.execute.after", "session.idle", "session.deleted"],
        ),
    ] {
        let hint = format!("{platform}:s1");
        let [start, prompt, tool, idle, end] = events;
        let said = stage.hook(platform, "s1", start, NONE()).unwrap();
        assert!(text_of(&said).contains(&session_of_hint(&hint)), "{platform}: {said}");
        let agent = stage.agent(&hint);
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
        assert_eq!(stage.agent(&hint)["status"], "active", "{platform}: it is resumed");
        stage.hook(platform, "s1", end, NONE());
    }
}

#[test]
fn a_session_whose_start_was_missed_starts_with_a_prompt_or_a_tool() {
    let stage = Stage::new();
    stage.hook("codex", "oak", "SessionStart", NONE());
    for (platform, prompt, tool, end) in [
        ("claude", "UserPromptSubmit", "PostToolUse", "SessionEnd"),
        ("cursor", "beforeSubmitPrompt", "postToolUse", "sessionEnd"),
        ("opencode", "chat.message", "tool.execute.after", "session.deleted"),
    ] {
        let session = |name: &str| session_of_hint(&format!("{platform}:{name}"));
        let is_brief = |said: Option<Value>, name: &str| {
            said.is_some_and(|said| text_of(&said).contains(&format!("is {}", session(name))))
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
    // A sub-agent proves that its parent lives, unless that has just ended.
    let edit = |agent: &str| json!({"tool_name": "Bash", "agent_id": agent});
    assert!(stage.hook("claude", "lost", "PostToolUse", edit("sub1")).is_some());
    assert_eq!(stage.agent("claude:lost/sub1")["parent_id"], session_of_hint("claude:lost"));
    stage.hook("claude", "lost", "SessionEnd", NONE());
    assert_eq!(stage.hook("claude", "lost", "PostToolUse", edit("sub2")), None);
    assert_eq!(stage.agent("claude:lost")["status"], "completed");
}

#[test]
fn a_session_whose_parent_has_ended_has_none_and_keeps_its_name() {
    let stage = Stage::new();
    stage.hook("opencode", "s0", "session.created", NONE());
    stage.hook("opencode", "s1", "session.created", json!({"parent_id": "s0"}));
    stage.hook("opencode", "s1", "session.deleted", NONE());
    stage.hook("opencode", "s1", "chat.message", NONE());
    assert_eq!(stage.agent("opencode:s1")["agent_name"], "OpenCode (delegate)");
    stage.hook("opencode", "s0", "session.deleted", NONE());
    assert!(stage.hook("opencode", "s2", "session.created", json!({"parent_id": "s0"})).is_some());
    let agent = stage.agent("opencode:s2");
    assert_eq!((&agent["status"], &agent["parent_id"]), (&json!("active"), &Value::Null));
}

#[test]
fn a_session_that_forgot_is_told_again_and_its_shell_always_knows_it() {
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

#[test]
fn no_form_of_an_edit_gets_past_a_reservation() {
    let stage = Stage::new();
    stage.hook("claude", "ivy", "SessionStart", NONE());
    stage.hook("codex", "ivy", "SessionStart", NONE());
    stage.hook("gemini", "oak", "SessionStart", NONE());
    stage.configure(r#"{"fileGuard": "deny"}"#);
    let mut command = stage.scratch.command(["file", "reserve", "src/held.rs"]);
    command.current_dir(stage.directory()).args(["--session", &session_of_hint("gemini:oak")]);
    Output::of(command.output().unwrap()).success();
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
    // Whoever is on no board is kept from it like everybody else.
    let edit = json!({"tool_name": "Write", "tool_input": {"file_path": "src/held.rs"}});
    assert!(stage.hook("claude", "unknown", "PreToolUse", edit.clone()).is_some());
    // A Copilot CLI that runs the hooks of Claude Code has tools of its own, one of which also shows files.
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

#[test]
fn the_work_of_a_delegate_is_what_it_was_asked_to_do() {
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

#[test]
fn a_session_is_called_as_pai_calls_its_assistant() {
    let stage = Stage::new();
    let settings = stage.scratch.path().join(".claude/settings.json");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    fs::write(&settings, r#"{"daidentity": {"name": "Ivy"}}"#).unwrap();
    stage.hook("claude", "1", "SessionStart", NONE());
    assert_eq!(stage.agent("claude:1")["agent_name"], "Ivy");
    assert_eq!(stage.scratch.json(["agent", "register"])["agent_name"], "Ivy");
}

#[test]
fn a_patch_with_indented_headers_is_noted_as_denied_and_as_edited() {
    let stage = Stage::new();
    stage.hook("codex", "oak", "SessionStart", NONE());
    stage.hook("codex", "ivy", "SessionStart", NONE());
    stage.configure(r#"{"fileGuard": "deny"}"#);
    let patch = "*** Begin Patch\n  *** Update File: src/a.rs\n@@\n-x\n+y\n*** End Patch";
    let usage = json!({"tool_name": "apply_patch", "tool_input": {"command": patch}});
    stage.hook("codex", "oak", "PostToolUse", usage.clone());
    let said = stage.hook("codex", "ivy", "PreToolUse", usage).unwrap();
    assert_eq!(said["hookSpecificOutput"]["permissionDecision"], "deny", "{said}");
    assert!(text_of(&said).contains("src/a.rs: edited by Codex"), "{said}");
}

#[test]
fn an_edit_of_more_files_than_are_checked_is_not_let_through() {
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
        assert!(text_of(&said).contains("Split the edit"), "{what}: {said}");
        let log = stage.log();
        let line = log.lines().last().unwrap_or_default();
        assert!(line.contains("some files of the edit were not checked"), "{what}: {line}");
        stage.configure(r#"{"fileGuard": "warn"}"#);
        let said = stage.hook("codex", "ivy", "PreToolUse", usage.clone()).unwrap_or_default();
        assert_eq!(said["hookSpecificOutput"]["permissionDecision"], Value::Null, "{what}: {said}");
        assert!(text_of(&said).contains("were not checked"), "{what}: {said}");
        // After the edit it is only a heartbeat, with as many files as are noted of one call.
        stage.hook("codex", "ivy", "PostToolUse", usage.clone());
    }
    stage.configure(r#"{"fileGuard": "deny"}"#);
    let usual = patch(&mut (0..1000).map(|number| format!("src/{number}")));
    assert_eq!(stage.hook("codex", "ivy", "PreToolUse", usual), None, "as many as are checked");
}

#[test]
fn a_hook_ends_well_also_when_it_was_called_wrongly_or_can_not_answer() {
    let stage = Stage::new();
    for words in [&["hook"][..], &["hook", "claude", "--nonsense"], &["--json", "hook"]] {
        assert_eq!(stage.scratch.run(words).code, 0, "{words:?}");
    }
    assert_eq!(stage.scratch.run(["work", "claim", "hook", "--nonsense"]).code, 2, "only hooks do");
    let call = json!({"session_id": "1", "hook_event_name": "SessionStart", "cwd": stage.directory()});
    let mut command = stage.scratch.command(["hook", "claude"]);
    command.stdin(Stdio::piped()).stdout(fs::File::create("/dev/full").unwrap()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(call.to_string().as_bytes()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn an_agent_is_warned_before_it_edits_what_another_one_has() {
    let stage = Stage::new();
    // Whoever has the process that others share belongs to them, which this one does not.
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
        &session_of_hint("codex:oak"),
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
            .filter(|text| text.contains("has a file that you"))
            .collect();
        assert_eq!(warnings.len(), 1, "{platform} is warned once: {warnings:?}");
        for expected in ["src/lib.rs: edited by Codex", "The engine"] {
            assert!(warnings[0].contains(expected), "{platform}: {warnings:?}");
        }
        stage.configure(r#"{"fileGuard": "deny"}"#);
        let denied = stage.hook(platform, "ivy", before, usage()).unwrap();
        assert!(text_of(&denied).contains("Not edited"), "{platform}: {denied}");
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

#[test]
fn whoever_was_denied_a_file_is_told_when_it_is_free() {
    let stage = Stage::new();
    stage.hook("claude", "ivy", "SessionStart", NONE());
    stage.hook("codex", "oak", "SessionStart", NONE());
    stage.configure(r#"{"fileGuard": "deny"}"#);
    let in_project = |words: &[&str]| {
        let mut command = stage.scratch.command(words);
        command.current_dir(stage.directory()).args(["--session", &session_of_hint("codex:oak")]);
        Output::of(command.output().unwrap()).success();
    };
    in_project(&["file", "reserve", "src/", "--note", "rewriting"]);
    let usage = json!({"tool_name": "Write", "tool_input": {"file_path": "src/new/deep.rs"}});
    let denied = stage.hook("claude", "ivy", "PreToolUse", usage).unwrap();
    assert_eq!(denied["hookSpecificOutput"]["permissionDecision"], "deny");
    let reason = denied["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap();
    assert!(reason.contains("reserved (src/**) by Codex") && reason.contains("rewriting"), "{reason}");
    stage.hook("claude", "ivy", "UserPromptSubmit", NONE());
    in_project(&["file", "release", "--all"]);
    let told = stage.hook("claude", "ivy", "UserPromptSubmit", NONE()).unwrap();
    assert!(text_of(&told).contains("src/**"), "{told}");
    assert_eq!(stage.hook("claude", "ivy", "UserPromptSubmit", NONE()), None, "once");
}

#[test]
fn sub_agents_are_delegates_with_sessions_of_their_own() {
    let stage = Stage::new();
    stage.hook("claude", "ivy", "SessionStart", NONE());
    let sub = || json!({"agent_id": "sub1", "agent_type": "Explore"});
    let said = stage.hook("claude", "ivy", "SubagentStart", sub()).unwrap();
    let session = session_of_hint("claude:ivy/sub1");
    assert!(text_of(&said).contains(&format!("--session {session}")), "{said}");
    let agent = stage.agent("claude:ivy/sub1");
    assert_eq!(agent["parent_id"], session_of_hint("claude:ivy"));
    assert_eq!(
        (&agent["agent_name"], &agent["current_work"], &agent["project"]),
        (&json!("Claude Code (delegate)"), &json!("Explore"), &json!("collab"))
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
    assert!(text_of(&warned).contains("edited by Claude Code (delegate)"), "{warned}");
    stage.hook("claude", "ivy", "SubagentStop", sub());
    assert_eq!(stage.agent("claude:ivy/sub1")["status"], "completed");
    assert_eq!(stage.agent("claude:ivy")["status"], "active");
    stage.hook("claude", "ivy", "SessionEnd", NONE());
    assert_eq!(stage.agent("claude:ivy/sub2")["status"], "completed", "it ends with its parent");
    // OpenCode has sessions with parents instead.
    stage.hook("opencode", "s0", "session.created", NONE());
    stage.hook("opencode", "s1", "session.created", json!({"parent_id": "s0"}));
    assert_eq!(stage.agent("opencode:s1")["parent_id"], session_of_hint("opencode:s0"));
}

/// Its sub-agents have sessions of their own, and the call that tells of one has another form than all the others.
#[test]
fn a_sub_agent_of_copilot_is_a_delegate() {
    let stage = Stage::new();
    stage.hook("copilot", "cop", "SessionStart", NONE());
    let started = json!({"sessionId": "cop", "timestamp": 1_794_787_200_000_u64, "cwd": stage.directory(),
        "agentName": "general-purpose", "agent_id": "sub", "agent_type": "general-purpose",
        "parent_agent_id": "cop"});
    let said = stage.run("copilot", started.to_string().as_bytes(), &[]).success().json();
    let session = session_of_hint("copilot:sub");
    assert!(said["additionalContext"].as_str().unwrap().contains(&format!("--session {session}")), "{said}");
    let agent = stage.agent("copilot:sub");
    assert_eq!(agent["parent_id"], session_of_hint("copilot:cop"));
    assert_eq!(
        (&agent["agent_name"], &agent["current_work"]),
        (&json!("Copilot CLI (delegate)"), &json!("general-purpose"))
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

#[test]
fn names_projects_and_sessions_are_found_and_handed_on() {
    let stage = Stage::new();
    let file = stage.file("env file");
    let environment = [("BLACKBOARD_AGENT_NAME", "Ivy"), ("CLAUDE_ENV_FILE", &*file)];
    stage.hook_in("claude", "1", "SessionStart", NONE(), &environment);
    let session = session_of_hint("claude:1");
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
    assert_eq!(cursor["env"]["BLACKBOARD_SESSION_ID"], session_of_hint("cursor:1"));
}

#[test]
fn a_copilot_that_calls_twice_is_one_session_and_told_once() {
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

#[test]
fn whatever_goes_wrong_it_is_silent_and_the_log_has_a_line() {
    let stage = Stage::new();
    let silent = |platform: &str, input: &[u8], environment: &[(&str, &str)]| {
        let before = stage.log().lines().count();
        let output = stage.run(platform, input, environment);
        assert_eq!((output.code, &*output.stdout, &*output.stderr), (0, "", ""), "{platform} {input:.80?}");
        let log = stage.log();
        assert_eq!(log.lines().count(), before + 1, "{platform} {input:.80?}: {log}");
        log.lines().last().unwrap().to_owned()
    };
    let call = |session: &str, event: &str| {
        let call = json!({"session_id": session, "hook_event_name": event, "cwd": stage.directory()});
        call.to_string().into_bytes()
    };
    // Without a board there is nothing to do, and nothing is created: not even a log.
    let contents = stage.scratch.contents();
    let output = stage.run("claude", &call("1", "PostToolUse"), &[]);
    assert_eq!((output.code, &*output.stdout, &*output.stderr), (0, "", ""));
    assert!(stage.scratch.contents() == contents, "nothing was created");

    stage.hook("claude", "known", "SessionStart", NONE());
    for input in [
        &b""[..],
        b"nonsense",
        b"[]",
        b"{\"session_id\": 1}",
        b"\xff\xfe",
        b"{\"hook_event_name\": \"Stop\"",
        &call(&"x".repeat(1000), "Stop"),
        &vec![b'x'; 17 * 1024 * 1024],
    ] {
        silent("claude", input, &[]);
    }
    for event in ["Stop", "SessionEnd"] {
        assert!(silent("claude", &call("unknown", event), &[]).contains("agent_not_found"), "{event}");
    }
    assert!(silent("amp", &call("1", "Stop"), &[]).contains("unknown platform"));
    silent("claude", &call("known", "Stop"), &[("BLACKBOARD_DB", "redis://nowhere")]);
    silent("claude", &call("new", "SessionStart"), &[("BLACKBOARD_PID", "nonsense")]);
    let foreign = stage.scratch.path().join(".pai/blackboard/foreign.db").to_str().unwrap().to_owned();
    fs::write(&foreign, "not a database").unwrap();
    silent("claude", &call("new", "SessionStart"), &[("BLACKBOARD_DB", &foreign)]);
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &fs::metadata(stage.scratch.path().join(".pai/blackboard/hook.log")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn nothing_of_prompts_inputs_and_outputs_is_kept() {
    let stage = Stage::new();
    let secret = "xyzzy-plugh-7f3a";
    let more = |tool: &str| {
        json!({
            "prompt": secret, "initial_prompt": secret, "transcript_path": format!("/{secret}"), "tool_name": tool,
            "tool_input": {"file_path": "a.rs", "content": secret, "command": secret, "old_string": secret},
            "tool_response": {"output": secret}, "error": secret, "message": secret, "last_assistant_message": secret,
        })
    };
    let environment = [("SECRET_TOKEN", secret)];
    for event in
        ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "Unheard", "SessionEnd"]
    {
        for session in ["ivy", "unknown"] {
            stage.hook_in("claude", session, event, more("Write"), &environment);
        }
    }
    stage.run("claude", format!("{{\"prompt\": \"{secret}\"").as_bytes(), &environment);
    let directory = stage.scratch.path().join(".pai/blackboard");
    let mut files = 0;
    for file in fs::read_dir(directory).unwrap() {
        let content = fs::read(file.unwrap().path()).unwrap();
        let found = content.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "what was said is on the board or in the log");
        files += 1;
    }
    assert!(files >= 3 && !stage.log().is_empty(), "{files} files");
}
