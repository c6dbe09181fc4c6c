//! Usage that hooks read from transcripts: sums are exact, whatever happens to files and processes.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use blackboard::clock::{Clock, SystemClock};
use serde_json::json;
use testkit::process::RunToEnd as _;
use testkit::scratch::Scratch;

use crate::crowd::{at_once, end_of, kill};
use crate::scale::{Chance, size};

const QUOTA: &str = r#"{"quota": {"providers": {"a": {"windows": {"5h": {"budget": 1000000000000}}}}}}"#;

/// Counts the messages of all files below some directories, each id once, and prints the sums.
const INDEPENDENT_COUNT: &str = r#"
import json, os, sys
found = {}
for root in sys.argv[1:]:
    for directory, _, names in os.walk(root):
        for name in names:
            for line in open(os.path.join(directory, name), errors="replace"):
                try:
                    line = json.loads(line)
                    if line["type"] == "assistant":
                        found[line["message"]["id"]] = line["message"]["usage"]
                except (ValueError, KeyError, TypeError):
                    pass
kinds = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"]
print(json.dumps([sum(usage[kind] for usage in found.values()) for kind in kinds]))
"#;

/// A home with a quota, and a session of Claude Code on its board.
struct Stage {
    scratch: Scratch,
    written: std::cell::Cell<u64>,
}

impl Stage {
    fn new() -> Stage {
        let scratch = Scratch::new();
        let file = scratch.home_file("config.json");
        let directory = file.parent().unwrap();
        fs::create_dir_all(directory).unwrap();
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(file, QUOTA).unwrap();
        let stage = Stage { scratch, written: std::cell::Cell::new(0) };
        fs::create_dir_all(stage.file("x").parent().unwrap()).unwrap();
        stage.hook("s1", "SessionStart");
        stage
    }

    fn file(&self, name: &str) -> PathBuf {
        self.scratch.path().canonicalize().unwrap().join(".claude/projects/p").join(name)
    }

    fn archive(&self) -> PathBuf {
        let archive = self.scratch.path().join("archive");
        fs::create_dir_all(&archive).unwrap();
        archive
    }

    fn append(&self, name: &str, text: &str) {
        let file = self.file(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let mut options = OpenOptions::new();
        options.append(true).create(true).open(file).unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Appends a number of messages that no file has.
    fn write(&self, name: &str, count: usize) {
        let first = self.written.replace(self.written.get() + count as u64);
        self.append(name, &messages(first..first + count as u64));
    }

    fn start(&self, session: &str, event: &str) -> Child {
        let mut command = self.scratch.command(["hook", "claude"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let call = json!({"session_id": session, "hook_event_name": event, "cwd": self.scratch.path(),
            "tool_name": "Bash", "transcript_path": self.file(&format!("{session}.jsonl"))});
        let _ = child.stdin.take().unwrap().write_all(call.to_string().as_bytes());
        child
    }

    fn hook(&self, session: &str, event: &str) {
        let ended = end_of(self.start(session, event));
        assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    }

    /// Uncached input, cache writes, cache reads and output.
    fn usage(&self) -> [u64; 4] {
        let status = self.scratch.json(["quota", "status"]);
        let usage = &status["providers"][0]["windows"][0]["usage"];
        ["input", "cache_write", "cache_read", "output"].map(|kind| usage[kind].as_u64().unwrap())
    }

    /// The same, counted by another program.
    fn counted_independently(&self) -> [u64; 4] {
        let mut command = Command::new("python3");
        command.args(["-c", INDEPENDENT_COUNT]).arg(self.file("")).arg(self.archive());
        let output = command.run_to_end();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// Lines of messages. A number is also the usage of its message.
fn messages(numbers: std::ops::Range<u64>) -> String {
    let now = SystemClock.now();
    let mut text = String::new();
    for number in numbers {
        let usage = json!({"input_tokens": number, "cache_creation_input_tokens": 2 * number,
            "cache_read_input_tokens": 3, "output_tokens": 1});
        let message = json!({"id": format!("msg_{number}"), "model": "claude-opus", "usage": usage});
        let line = json!({"type": "assistant", "timestamp": now, "message": message});
        writeln!(text, "{line}").unwrap();
    }
    text
}

fn sums(count: u64) -> [u64; 4] {
    let input = (0..count).sum();
    [input, 2 * input, 3 * count, count]
}

#[test]
fn sums_equal_those_of_an_independent_count() {
    if !testkit::machine::can("an independent count of usage", "python3", &["--version"]) {
        return;
    }
    let stage = Stage::new();
    let lines = size(20_000, 100_000);
    // Each message has a line for each of its parts, and other tools and damaged lines are between them.
    stage.write("s1.jsonl", lines / 2);
    let first = fs::read_to_string(stage.file("s1.jsonl")).unwrap();
    let doubled: String = first.lines().fold(String::new(), |mut text, line| {
        let other = r#"{"type":"user","message":{"content":"\"type\":\"assistant\""}}"#;
        writeln!(text, "{line}\n{line}\n{other}").unwrap();
        text
    });
    fs::write(stage.file("s1.jsonl"), doubled).unwrap();
    stage.append(
        "s1.jsonl",
        "not json \"type\":\"assistant\"\n{\"type\":\"assistant\",\"message\":{}}\n\n\u{0}\n",
    );
    stage.hook("s1", "PostToolUse");
    // A resumed session goes on in its file. A forked one copies its lines.
    stage.write("s1.jsonl", 100);
    fs::copy(stage.file("s1.jsonl"), stage.file("s2.jsonl")).unwrap();
    stage.write("s2.jsonl", 100);
    stage.hook("s2", "PostToolUse");
    for delegate in 0..5 {
        stage.write(&format!("s1/subagents/agent-{delegate}.jsonl"), 100);
    }
    stage.hook("s1", "Stop");
    // A file that is rotated, and one that is cut off.
    for (round, session) in ["s3", "s4", "s3", "s4"].into_iter().enumerate() {
        let file = format!("{session}.jsonl");
        stage.write(&file, 50 + 10 * round);
        stage.hook(session, "PostToolUse");
        let archived = stage.archive().join(format!("{round}.jsonl"));
        if session == "s3" {
            fs::rename(stage.file(&file), archived).unwrap();
        } else {
            fs::copy(stage.file(&file), archived).unwrap();
            fs::write(stage.file(&file), "").unwrap();
        }
        stage.write(&file, 7);
    }
    stage.hook("s3", "Stop");
    stage.hook("s4", "Stop");
    let usage = stage.usage();
    assert_eq!(usage, stage.counted_independently());
    assert_eq!(usage, sums(stage.written.get()));
    // A line that is not complete is not counted before it is.
    stage.append("s1.jsonl", messages(900_000..900_001).trim_end());
    stage.hook("s1", "Stop");
    assert_eq!(stage.usage(), usage);
    stage.append("s1.jsonl", "\n");
    assert_eq!(stage.usage(), stage.counted_independently());
    // Everything once more, without what is known about the files.
    fs::remove_dir_all(stage.scratch.home_file("quota-transcripts")).unwrap();
    stage.hook("s1", "Stop");
    stage.hook("s2", "Stop");
    assert_eq!(stage.usage(), stage.counted_independently());
}

#[test]
fn hooks_of_one_transcript_at_once_count_each_message_once() {
    let stage = Stage::new();
    for _ in 0..size(4, 20) {
        stage.write("s1.jsonl", 200);
        let (scratch, file) = (&stage.scratch, stage.file("s1.jsonl"));
        let starts = at_once(8, |_| start_stop(scratch, &file));
        assert!(starts.iter().all(|code| *code == Some(0)), "{starts:?}");
    }
    assert_eq!(stage.usage(), sums(stage.written.get()));
}

fn start_stop(scratch: &Scratch, transcript: &std::path::Path) -> Option<i32> {
    let mut command = scratch.command(["hook", "claude"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let call = json!({"session_id": "s1", "hook_event_name": "Stop", "cwd": scratch.path(), "transcript_path": transcript});
    let _ = child.stdin.take().unwrap().write_all(call.to_string().as_bytes());
    end_of(child).status.code()
}

#[test]
fn killed_hooks_and_killed_folds_leave_sums_that_are_exact() {
    let stage = Stage::new();
    let mut chance = Chance::new(16);
    let mut killed = 0;
    for round in 0..size(20, 200) {
        stage.write("s1.jsonl", 1 + chance.below(400));
        stage.write("s1/subagents/agent-a.jsonl", 1 + chance.below(20));
        let mut processes = vec![stage.start("s1", "Stop")];
        if round % 2 == 0 {
            let mut command = stage.scratch.command(["quota", "fold"]);
            processes.push(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
        }
        // At any moment: while one starts, reads, appends to the spool, or commits.
        std::thread::sleep(Duration::from_millis(chance.below(40) as u64));
        for process in processes {
            if chance.below(4) > 0 {
                kill(process.id());
            }
            killed += usize::from(end_of(process).status.signal().is_some());
        }
        if round % 7 == 0 {
            let status = stage.scratch.run(["quota", "status", "--json"]);
            assert_eq!((status.code, status.stderr.as_str()), (0, ""), "{status:?}");
        }
    }
    assert!(killed > 0, "every process had ended before it was killed");
    stage.hook("s1", "Stop");
    assert_eq!(stage.usage(), sums(stage.written.get()));
    assert!(!stage.scratch.home_file("quota-spool").exists());
}

#[test]
fn a_stopped_fold_does_not_stop_hooks_and_commands_for_long() {
    let stage = Stage::new();
    stage.write("s1.jsonl", 10);
    stage.hook("s1", "Stop");
    assert_eq!(stage.usage(), sums(10));
    // The lock of a fold that does not go on.
    let lock = OpenOptions::new().write(true).open(stage.scratch.home_file("quota-fold")).unwrap();
    lock.lock().unwrap();
    stage.write("s1.jsonl", 10);
    stage.hook("s1", "Stop");
    let status = stage.scratch.run(["quota", "status", "--json"]);
    assert_eq!(status.code, 0, "{status:?}");
    assert!(status.stderr.contains("usage that hooks have read is not counted yet"), "{status:?}");
    let counted = &status.json()["providers"][0]["windows"][0]["usage"]["output"];
    assert_eq!(*counted, 10, "the others are in the spool");
    assert!(stage.scratch.home_file("quota-spool").exists(), "the hook went on");
    drop(lock);
    assert_eq!(stage.usage(), sums(20));
}
