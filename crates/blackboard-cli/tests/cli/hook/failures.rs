//! What a hook does on an error, and what it never stores.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::json;
use testkit::process::wait_for;

use super::{NONE, Stage};

testkit::on_each_engine![
    hook_exits_with_0_on_wrong_arguments_or_a_closed_output,
    hook_prints_nothing_on_an_error_and_writes_a_line_to_its_log,
    hooks_store_no_prompts_inputs_and_outputs,
];

fn hook_exits_with_0_on_wrong_arguments_or_a_closed_output() {
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
    assert_eq!(wait_for(&mut child).code(), Some(0));
}

fn hook_prints_nothing_on_an_error_and_writes_a_line_to_its_log() {
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
    assert!(stage.logs().iter().all(|(mode, _)| mode & 0o777 == 0o600));
}

fn hooks_store_no_prompts_inputs_and_outputs() {
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
    // A file name is stored, unless it looks like a credential.
    let credential = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    stage.hook("claude", "elm", "SessionStart", NONE());
    for file in ["named.rs", &credential] {
        let edit = json!({"tool_name": "Edit", "tool_input": {"file_path": file}});
        stage.hook_in("claude", "elm", "PostToolUse", edit, &environment);
    }
    let edited = |file: &str| -> i64 {
        let sql = "SELECT count(*) FROM file_edits WHERE path LIKE '%' || ?1";
        stage.scratch.tables().query_row(sql, [file], |row| row.get(0)).unwrap()
    };
    assert_eq!((edited("named.rs"), edited(&credential)), (1, 0));
    stage.run("claude", format!("{{\"prompt\": \"{secret}\"").as_bytes(), &environment);
    let board = stage.scratch.run(["export"]).success().stdout;
    assert!(board.contains("claude-") && !board.contains(secret), "what was said is on the board: {board}");
    assert!(!stage.log().is_empty());
    for (path, _, content) in stage.scratch.contents() {
        let found = content.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "what was said is in {}", path.display());
    }
}
