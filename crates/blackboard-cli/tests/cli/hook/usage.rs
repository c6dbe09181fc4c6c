//! Usage that hooks read from what platforms write.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use blackboard::clock::{Clock, SystemClock};
use blackboard::id::session_id_from_hint;
use serde_json::{Value, json};

use super::{NONE, Stage};

testkit::on_each_engine![
    usage_of_each_platform_is_counted_once,
    usage_belongs_to_the_agent_and_to_the_item_that_it_holds,
    usage_of_subagents_is_theirs,
    a_subagent_that_names_the_file_of_its_session_does_not_own_it,
    a_session_that_ends_before_its_second_hook_has_a_name,
    the_message_after_the_last_hook_is_counted,
    messages_of_a_model_without_a_provider_are_reported,
    messages_are_counted_when_their_model_gets_a_provider,
    a_ledger_that_was_moved_away_is_made_again_from_transcripts,
    states_of_transcripts_are_kept_for_30_days,
    a_message_with_numbers_that_none_has_is_one_line_in_the_log,
    a_spool_that_cannot_be_used_is_named_with_the_reason,
    limits_that_a_platform_reports_replace_sums,
    a_hook_starts_a_process_that_counts_what_it_read,
    files_that_are_not_those_of_the_platform_are_not_read,
    without_a_quota_no_file_is_created,
    nothing_of_a_conversation_is_kept,
];

const QUOTA: &str = r#"{"quota": {"cacheReadFactor": 1, "providers": {
    "anthropic": {"windows": {"5h": {"budget": 100000000}}}, "openai": {"windows": {"5h": {"budget": 1000000}}}},
    "models": {"claude-*": "anthropic", "gpt-5*": "openai", "gemini-*": "openai"}}}"#;

/// A stage with a quota and a session of this platform.
fn configured(platform: &str) -> Stage {
    let stage = Stage::new();
    stage.hook(platform, "s1", "SessionStart", NONE());
    if platform == "opencode" {
        stage.hook(platform, "s1", "session.created", NONE());
    }
    stage.configure(QUOTA);
    stage
}

impl Stage {
    /// Writes lines to a file in the home directory, and returns its path.
    fn lines(&self, name: &str, lines: &[Value]) -> String {
        let file = self.home().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let before = fs::read_to_string(&file).unwrap_or_default();
        let text = lines.iter().fold(before, |text, line| text + &line.to_string() + "\n");
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    }

    fn home(&self) -> PathBuf {
        self.scratch.path().canonicalize().unwrap()
    }

    fn status(&self) -> Value {
        self.scratch.json(["quota", "status"])
    }

    /// Uncached input, cache writes, cache reads, output and reasoning of all providers.
    fn usage(&self) -> [u64; 5] {
        let status = self.status();
        let kinds = ["input", "cache_write", "cache_read", "output", "reasoning"];
        let windows = status["providers"].as_array().unwrap().iter().map(|provider| &provider["windows"][0]);
        let windows: Vec<_> = windows.collect();
        kinds.map(|kind| windows.iter().map(|window| window["usage"][kind].as_u64().unwrap()).sum())
    }
}

fn now() -> String {
    SystemClock.now().to_string()
}

fn claude(id: &str) -> Value {
    let usage = json!({"input_tokens": 11, "cache_creation_input_tokens": 101, "cache_read_input_tokens": 1001,
        "output_tokens": 57, "output_tokens_details": {"thinking_tokens": 7}});
    let message = json!({"id": id, "model": "claude-opus", "content": "SECRET", "usage": usage});
    json!({"type": "assistant", "timestamp": now(), "message": message})
}

fn codex() -> Vec<Value> {
    let tokens = json!({"input_tokens": 1113, "cached_input_tokens": 1001, "output_tokens": 57,
        "reasoning_output_tokens": 7, "total_tokens": 1170});
    let resets = SystemClock.now().millis() / 1000 + 3600;
    let limits = json!({"primary": {"used_percent": 42.5, "window_minutes": 300, "resets_at": resets}});
    let line = |kind: &str, payload: Value| json!({"timestamp": now(), "type": kind, "payload": payload});
    let record = json!({"thread_id": "s1", "response_id": "r1", "usage": tokens});
    let info = json!({"total_token_usage": tokens, "last_token_usage": tokens});
    vec![
        line("session_meta", json!({"id": "s1"})),
        line("turn_context", json!({"model": "gpt-5"})),
        line("token_usage_record", record),
        line("event_msg", json!({"type": "token_count", "info": info, "rate_limits": limits})),
    ]
}

fn usage_of_each_platform_is_counted_once() {
    let tokens = json!({"input": 1113, "output": 50, "cached": 1001, "thoughts": 7, "tool": 0});
    let gemini =
        json!({"id": "g", "timestamp": now(), "type": "gemini", "model": "gemini-2.5", "tokens": tokens});
    let usage = json!({"model": "gpt-5", "inputTokens": 1113, "outputTokens": 57, "cacheReadTokens": 1001,
        "cacheWriteTokens": 0, "reasoningTokens": 7, "accounting": {"sourceSessionId": "s1", "sequence": 1}});
    let copilot = json!({"type": "session.usage_record", "timestamp": now(), "data": {"usage": usage}});
    let usual = [112, 0, 1001, 50, 7];
    for (platform, event, file, lines, expected) in [
        (
            "claude",
            "Stop",
            ".claude/projects/p/s1.jsonl",
            vec![claude("m"), claude("m")],
            [11, 101, 1001, 50, 7],
        ),
        ("codex", "Stop", ".codex/sessions/2026/rollout-1-s1.jsonl", codex(), usual),
        ("gemini", "AfterAgent", ".gemini/tmp/p/chats/session-1.jsonl", vec![gemini.clone(), gemini], usual),
        ("copilot", "Stop", ".copilot/session-state/s1/events.jsonl", vec![copilot.clone(), copilot], usual),
    ] {
        let stage = configured(platform);
        let path = stage.lines(file, &lines);
        // The same lines in another file, as after a fork.
        let fork = stage.lines(&file.replace("s1", "s2"), &lines);
        for path in [&path, &fork, &path] {
            stage.hook(platform, "s1", event, json!({"transcript_path": path}));
        }
        if platform == "copilot" {
            // Not every hook of it names the file.
            fs::remove_dir_all(stage.scratch.home_file("quota-transcripts")).unwrap();
            stage.hook(platform, "s1", event, NONE());
        }
        assert_eq!(stage.usage(), expected, "{platform}");
        assert_eq!(stage.log(), "", "{platform}");
    }
    let stage = configured("opencode");
    let tokens = json!({"input": 112, "output": 50, "reasoning": 7, "cache": {"read": 1001, "write": 0}});
    let message = json!({"id": "m", "model": "gpt-5", "at": SystemClock.now().millis(), "tokens": tokens});
    for _ in 0..2 {
        stage.hook("opencode", "s1", "session.idle", json!({"usage": [message, {"id": 7}, message]}));
    }
    assert_eq!(stage.usage(), usual);
}

/// No process folds while the file is open.
fn lock_folds(stage: &Stage) -> File {
    let lock = stage.scratch.home_file("quota-fold");
    let lock = OpenOptions::new().write(true).create(true).mode(0o600).truncate(false).open(lock).unwrap();
    lock.lock().unwrap();
    lock
}

fn usage_belongs_to_the_agent_and_to_the_item_that_it_holds() {
    let stage = configured("claude");
    // A fold between two hooks would count for the item of the first one.
    let fold = lock_folds(&stage);
    let session = session_id_from_hint("claude:s1");
    let path = stage.lines(".claude/projects/p/s1.jsonl", &[claude("m1")]);
    let used =
        || stage.hook("claude", "s1", "PostToolUse", json!({"transcript_path": path, "tool_name": "Bash"}));
    used();
    stage
        .scratch
        .run(["--db", &board(&stage), "work", "create", "--id", "first", "--title", "First"])
        .success();
    stage.scratch.run(["--db", &board(&stage), "work", "claim", "first", "--session", &session]).success();
    stage.lines(".claude/projects/p/s1.jsonl", &[claude("m2"), claude("m3")]);
    used();
    stage.scratch.run(["--db", &board(&stage), "work", "complete", "first", "--session", &session]).success();
    stage.lines(".claude/projects/p/s1.jsonl", &[claude("m4")]);
    used();
    drop(fold);
    let provider = stage.status()["providers"][0].clone();
    let each = 11 + 101 + 1001 + 57;
    assert_eq!(
        (&provider["items"][0]["item"], &provider["items"][0]["tokens"]),
        (&"first".into(), &(2 * each).into())
    );
    let agent = &provider["agents"][0];
    assert_eq!((&agent["session"], &agent["tokens"]), (&session.clone().into(), &(4 * each).into()));
    assert_eq!(agent["agent"], stage.agent("claude:s1")["agent_name"]);
}

/// The location of the board that hooks of this stage use.
fn board(stage: &Stage) -> String {
    stage.scratch.location()
}

fn usage_of_subagents_is_theirs() {
    let stage = configured("claude");
    let path = stage.lines(".claude/projects/p/s1.jsonl", &[claude("m1")]);
    stage.lines(".claude/projects/p/s1/subagents/agent-a1.jsonl", &[claude("m2")]);
    stage.lines(".claude/projects/p/s1/subagents/agent-a2.jsonl", &[claude("m3"), claude("m4")]);
    stage.lines(".claude/projects/p/s1/subagents/agent-a2.meta.json", &[claude("m5")]);
    let call = json!({"transcript_path": path, "agent_id": "a1", "tool_name": "Bash"});
    stage.hook("claude", "s1", "PostToolUse", call);
    stage.hook("claude", "s1", "Stop", json!({"transcript_path": path}));
    let agents = stage.status()["providers"][0]["agents"].clone();
    let tokens = |hint: &str| {
        let session = session_id_from_hint(hint);
        let mut found = agents.as_array().unwrap().iter().filter(|agent| agent["session"] == session);
        found.next().map(|agent| agent["tokens"].as_u64().unwrap() / 1170)
    };
    assert_eq!(tokens("claude:s1"), Some(1), "{agents}");
    assert_eq!(tokens("claude:s1/a1"), Some(1), "{agents}");
    assert_eq!(tokens("claude:s1/a2"), Some(2), "{agents}");
}

fn a_subagent_that_names_the_file_of_its_session_does_not_own_it() {
    let stage = configured("copilot");
    let usage = json!({"model": "gpt-5", "inputTokens": 12, "outputTokens": 7,
        "accounting": {"sourceSessionId": "s1", "sequence": 1}});
    let line = json!({"type": "session.usage_record", "timestamp": now(), "data": {"usage": usage}});
    let path = stage.lines(".copilot/session-state/s1/events.jsonl", &[line]);
    for event in ["SubagentStart", "SubagentStop"] {
        let more = json!({"agent_id": "a", "transcript_path": path, "agent_transcript_path": path});
        stage.hook("copilot", "s1", event, more);
    }
    let agents = &stage.status()["providers"][1]["agents"];
    assert_eq!(agents[0]["session"], session_id_from_hint("copilot:s1"), "{agents}");
    assert_eq!(agents.as_array().unwrap().len(), 1, "{agents}");
}

fn a_session_that_ends_before_its_second_hook_has_a_name() {
    let stage = configured("claude");
    let file = ".claude/projects/p/s1.jsonl";
    let path = stage.lines(file, &[]);
    stage.hook("claude", "s1", "UserPromptSubmit", json!({"transcript_path": path}));
    // It is killed, so that no hook reads its message.
    stage.lines(file, &[claude("m")]);
    let agent = &stage.status()["providers"][0]["agents"][0];
    assert!(agent["agent"].as_str().unwrap().starts_with("claude-"), "{agent}");
}

fn the_message_after_the_last_hook_is_counted() {
    let stage = configured("claude");
    // The file does not exist when the session starts.
    let path = stage.home().join(".claude/projects/p/s1.jsonl");
    fs::create_dir_all(stage.home().join(".claude")).unwrap();
    stage.hook("claude", "s1", "UserPromptSubmit", json!({"transcript_path": path}));
    stage.lines(".claude/projects/p/s1.jsonl", &[claude("m1")]);
    assert_eq!(stage.usage()[0], 11);
    stage.lines(".claude/projects/p/s1.jsonl", &[claude("m2")]);
    stage.lines(".claude/projects/p/s1/subagents/agent-a1.jsonl", &[claude("m3")]);
    assert_eq!(stage.usage()[0], 33);
    let exported = stage.scratch.run(["export", "--format", "yaml", "--what", "quota"]).success().stdout;
    assert!(exported.contains("3510"), "{exported}");
}

fn messages_of_a_model_without_a_provider_are_reported() {
    let stage = configured("claude");
    let unknown = |id: &str| {
        let mut line = claude(id);
        line["message"]["model"] = "gpt-9".into();
        line
    };
    let path = stage.lines(".claude/projects/p/s1.jsonl", &[unknown("m1"), unknown("m2"), claude("m3")]);
    for _ in 0..2 {
        stage.hook("claude", "s1", "Stop", json!({"transcript_path": path}));
        fs::remove_dir_all(stage.scratch.home_file("quota-transcripts")).unwrap();
    }
    assert_eq!(stage.usage()[0], 11);
    assert_eq!(stage.status()["uncounted"], json!([{"model": "gpt-9", "messages": 2}]));
    let shown = stage.scratch.run(["quota", "status"]).success().stdout;
    let expected = "Not counted: 2 messages of gpt-9, which no provider has: ";
    assert!(shown.contains(expected), "{shown}");
    assert!(shown.ends_with("quota set models.gpt-9 PROVIDER\n"), "{shown}");
}

/// No hook starts a fold for the next 30 seconds.
fn pause_folds(stage: &Stage) {
    let mut options = OpenOptions::new();
    let lock = stage.scratch.home_file("quota-fold");
    let mut lock = options.write(true).create(true).mode(0o600).truncate(false).open(lock).unwrap();
    lock.write_all(b"0").unwrap();
}

fn messages_are_counted_when_their_model_gets_a_provider() {
    let stage = configured("claude");
    let mut unknown = claude("m1");
    unknown["message"]["model"] = "gpt-9.1".into();
    let path = stage.lines(".claude/projects/p/s1.jsonl", &[unknown, claude("m2")]);
    stage.hook("claude", "s1", "Stop", json!({"transcript_path": path}));
    assert_eq!(stage.usage()[0], 11);
    assert_eq!(stage.status()["uncounted"], json!([{"model": "gpt-9.1", "messages": 1}]));
    stage.scratch.json(["quota", "set", "models.gpt-9.1", "openai"]);
    for _ in 0..2 {
        assert_eq!(stage.usage()[0], 22, "each message once");
        let status = stage.status();
        assert_eq!(status["uncounted"], json!([]));
        assert_eq!(status["providers"][1]["windows"][0]["usage"]["input"], 11);
    }
}

fn a_ledger_that_was_moved_away_is_made_again_from_transcripts() {
    let stage = configured("claude");
    pause_folds(&stage);
    let path = stage.lines(".claude/projects/p/s1.jsonl", &[claude("m1"), claude("m2")]);
    stage.hook("claude", "s1", "Stop", json!({"transcript_path": path}));
    stage.scratch.json(["quota", "record", "--provider", "anthropic", "--input-tokens", "1000"]);
    assert_eq!(stage.usage()[0], 1022);
    for _ in 0..2 {
        for name in ["quota.db", "quota.db-wal", "quota.db-shm"] {
            // Those beside it exist only while it is open, or after that.
            let _ = fs::remove_file(stage.scratch.home_file(name));
        }
        assert_eq!(stage.usage()[0], 22);
    }
}

fn states_of_transcripts_are_kept_for_30_days() {
    let stage = configured("claude");
    pause_folds(&stage);
    let path = stage.lines(".claude/projects/p/s1.jsonl", &[claude("m1")]);
    stage.hook("claude", "s1", "Stop", json!({"transcript_path": path}));
    assert_eq!(stage.usage()[0], 11);
    let states = || fs::read_dir(stage.scratch.home_file("quota-transcripts")).unwrap().flatten();
    assert_eq!(states().count(), 1);
    for (days, expected) in [(29, 1), (31, 0)] {
        for found in states() {
            let file = File::options().write(true).open(found.path()).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_hours(days * 24)).unwrap();
        }
        assert_eq!(stage.usage()[0], 11);
        assert_eq!(states().count(), expected, "{days}");
    }
}

fn a_message_with_numbers_that_none_has_is_one_line_in_the_log() {
    let stage = configured("claude");
    let mut large = claude("m1");
    large["message"]["usage"]["input_tokens"] = 30_000_000.into();
    let path = stage.lines(".claude/projects/p/s1.jsonl", &[large, claude("m2")]);
    stage.hook("claude", "s1", "Stop", json!({"transcript_path": path}));
    assert_eq!(stage.usage()[0], 11);
    let log = stage.log();
    let expected =
        "usage was not read: 1 messages have more tokens than a message can have, and are not counted";
    assert_eq!(log.matches(expected).count(), 1, "{log}");
}

fn a_spool_that_cannot_be_used_is_named_with_the_reason() {
    let stage = configured("claude");
    fs::create_dir(stage.scratch.home_file("quota-spool")).unwrap();
    let path = stage.lines(".claude/projects/p/s1.jsonl", &[claude("m1")]);
    stage.hook("claude", "s1", "Stop", json!({"transcript_path": path}));
    let log = stage.log();
    assert!(log.contains("usage was not read: quota-spool: Is a directory"), "{log}");
    let shown = stage.scratch.run(["quota", "status"]).success();
    let file = stage.scratch.home_file("quota-spool-folding").display().to_string();
    assert!(shown.stderr.contains(&file) && shown.stderr.contains("Is a directory"), "{shown:?}");
    for name in ["quota-spool", "quota-spool-folding"] {
        // A fold has renamed it.
        let _ = fs::remove_dir(stage.scratch.home_file(name));
    }
    fs::remove_file(stage.scratch.home_file("quota-fold")).unwrap();
    fs::create_dir(stage.scratch.home_file("quota-fold")).unwrap();
    let shown = stage.scratch.run(["quota", "status"]).success();
    assert!(shown.stderr.contains("quota-fold cannot be used: "), "{shown:?}");
}

fn limits_that_a_platform_reports_replace_sums() {
    let stage = configured("codex");
    let mut lines = codex();
    // What is used in the minute of a report counts, too.
    lines[2]["timestamp"] = SystemClock.now().minus(Duration::from_mins(10)).to_string().into();
    let path = stage.lines(".codex/sessions/rollout-1-s1.jsonl", &lines);
    stage.hook("codex", "s1", "Stop", json!({"transcript_path": path}));
    let window = stage.status()["providers"][1]["windows"][0].clone();
    assert_eq!((&window["reported"]["used_percent"], &window["used"]), (&42.5.into(), &425_000.into()));
}

fn a_hook_starts_a_process_that_counts_what_it_read() {
    let stage = configured("claude");
    let path = stage.lines(".claude/projects/p/s1.jsonl", &[claude("m1")]);
    stage.hook("claude", "s1", "Stop", json!({"transcript_path": path}));
    let folded = || {
        let has_ended =
            fs::read_to_string(stage.scratch.home_file("quota-fold")).is_ok_and(|text| text.len() > 1);
        (has_ended && !stage.scratch.home_file("quota-spool").exists()).then_some(())
    };
    testkit::wait_until("the usage is folded", folded);
    assert!(stage.scratch.home_file("quota.db").exists());
    // Another one is not started within 30 seconds. A busy machine may need several attempts for that.
    let attempt = (2..100).find(|number| {
        let began = Instant::now();
        let last_start = fs::File::options().write(true).open(stage.scratch.home_file("quota-fold")).unwrap();
        last_start.set_modified(SystemTime::now()).unwrap();
        stage.lines(".claude/projects/p/s1.jsonl", &[claude(&format!("m{number}"))]);
        stage.hook("claude", "s1", "Stop", json!({"transcript_path": path}));
        let is_spooled = stage.scratch.home_file("quota-spool").exists();
        let was_in_time = began.elapsed() < Duration::from_secs(30);
        assert!(is_spooled || !was_in_time);
        was_in_time
    });
    assert_eq!(stage.usage()[0], 11 * attempt.unwrap());
}

fn files_that_are_not_those_of_the_platform_are_not_read() {
    let stage = configured("claude");
    let outside = stage.lines("elsewhere/s1.jsonl", &[claude("m1")]);
    stage.lines(".claude/projects/p/other.jsonl", &[]);
    let inside = |name: &str| stage.home().join(".claude/projects/p").join(name);
    std::os::unix::fs::symlink(&outside, inside("link.jsonl")).unwrap();
    fs::create_dir(inside("directory.jsonl")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, inside("fifo.jsonl"), rustix::fs::Mode::RWXU).unwrap();
    let inside = |name: &str| inside(name).to_str().unwrap().to_owned();
    for path in [
        outside,
        inside("link.jsonl"),
        inside("directory.jsonl"),
        inside("fifo.jsonl"),
        inside("../../../elsewhere/s1.jsonl"),
        "elsewhere/s1.jsonl".to_owned(),
        "/dev/zero".to_owned(),
        "/etc/passwd".to_owned(),
        format!("{}{}", inside(""), "x/".repeat(5000)),
        "\u{0}".to_owned(),
    ] {
        for event in ["PostToolUse", "Stop"] {
            let agent = json!({"transcript_path": path, "agent_transcript_path": path, "agent_id": "../x"});
            stage.hook("claude", "s1", event, agent);
            stage.hook("claude", "s1", event, json!({"transcript_path": path}));
        }
    }
    assert_eq!(stage.usage(), [0; 5]);
    assert!(!stage.log().contains("time limit"), "{}", stage.log());
}

fn without_a_quota_no_file_is_created() {
    let stage = Stage::new();
    stage.hook("claude", "s1", "SessionStart", NONE());
    let path = stage.lines(".claude/projects/p/s1.jsonl", &[claude("m1")]);
    for event in ["UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"] {
        stage.hook("claude", "s1", event, json!({"transcript_path": path}));
    }
    let files = stage.scratch.contents().into_iter().map(|(path, ..)| path.display().to_string());
    let created: Vec<_> = files.filter(|path| path.contains("quota")).collect();
    assert_eq!(created, Vec::<String>::new());
}

fn nothing_of_a_conversation_is_kept() {
    let stage = configured("claude");
    let path = stage
        .lines(".claude/projects/p/s1.jsonl", &[claude("m1"), json!({"type": "user", "message": "SECRET"})]);
    // No fold takes the spool away before it is looked at.
    let fold = lock_folds(&stage);
    stage.hook("claude", "s1", "Stop", json!({"transcript_path": path}));
    let look = || {
        let own = stage.scratch.contents().into_iter();
        let own = own.filter(|(path, ..)| path.to_str().unwrap().contains(".pai/blackboard/quota"));
        own.map(|(path, mode, content)| (path, mode & 0o077, String::from_utf8_lossy(&content).into_owned()))
            .collect::<Vec<_>>()
    };
    let before = look();
    assert!(before.iter().any(|(path, ..)| path.ends_with("quota-spool")), "{before:?}");
    drop(fold);
    stage.status();
    for (path, mode, content) in before.into_iter().chain(look()) {
        assert!(!content.contains("SECRET"), "{}: {content}", path.display());
        assert_eq!(mode, 0, "{} is private", path.display());
    }
}
