//! ccusage: a public program that counts the usage in transcripts of Claude Code. It checks our sums.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Package;
use crate::Result;
use crate::e2e_agents::check::Checks;
use crate::e2e_agents::scratch::{self, Scratch};
use crate::e2e_agents::story::text;
use crate::run;

pub const ID: &str = "ccusage";
pub const TITLE: &str = "ccusage";

pub const PACKAGE: Package = Package { name: "ccusage", version: "20.0.24" };

const SAME: &str = "usage: the sums of 10^5 lines";
const GROWN: &str = "usage: the sums after all files have grown";
const OLD: &str = "usage: lines without an id of the request";

const CHECKS: &[&str] = &[SAME, GROWN, OLD];

/// Two models, each with its own provider, so that sums can be compared by model.
const MODELS: [&str; 2] = ["claude-opus-4-5", "claude-haiku-4-5"];
const QUOTA: &str = r#"{"quota": {
    "models": {"claude-opus-*": "opus", "claude-haiku-*": "haiku"},
    "providers": {
        "opus": {"windows": {"5h": {"budget": 1000000000000}}},
        "haiku": {"windows": {"5h": {"budget": 1000000000000}}}
    }
}}"#;

const SESSIONS: [&str; 5] = ["s1", "s2", "s3", "s4", "s5"];

/// The messages of the first session. Each has three lines.
const MESSAGES: usize = 20_000;

/// How long a fold of all lines may take with a debug build.
const TO_FOLD: Duration = Duration::from_mins(3);

/// Runs it. An error is a result.
pub fn attempt(program: &Path, keep: bool) -> Checks {
    let mut checks = Checks::new();
    let played = Counted::set_up(program, keep).and_then(|mut counted| counted.play(&mut checks));
    let why = played.err().map(|error| error.to_string()).unwrap_or_default();
    checks.fail_missing(CHECKS, &why);
    checks
}

/// For each model: uncached input, cache writes, cache reads, and output with reasoning, which ccusage does not separate.
type Sums = [[u64; 4]; 2];

/// A home with transcripts that both programs count.
struct Counted {
    scratch: Scratch,
    programs: PathBuf,
    now: String,
    /// How many messages were generated.
    written: usize,
}

impl Counted {
    fn set_up(program: &Path, keep: bool) -> Result<Counted> {
        let programs = scratch::install(&PACKAGE)?;
        let scratch = Scratch::new(ID, program, keep)?;
        let written = scratch.board(&["quota", "init"])?;
        fs::write(text(&written["file"]), QUOTA)?;
        let now = text(&written["timestamp"]).to_owned();
        Ok(Counted { scratch, programs, now, written: 0 })
    }

    fn play(&mut self, checks: &mut Checks) -> Result {
        self.generate()?;
        checks.see(SAME, || self.compare([[0; 4]; 2]));
        // A resumed session goes on in its file, and the line that was cut off is completed.
        let rest = self.cut_line()[CUT..].to_owned();
        self.append("s3.jsonl", &rest)?;
        for file in ["s1.jsonl", "s2.jsonl", "s1/subagents/agent-0.jsonl"] {
            let new = self.messages(100, true);
            self.append(file, &new)?;
        }
        self.hooks()?;
        checks.see(GROWN, || self.compare([[0; 4]; 2]));
        // Older versions write no id of the request. ccusage then takes copies in another session for other messages, so
        // its sums have the copies twice. Ours are by the id of the message, which a copy keeps.
        let old = self.messages(100, false);
        let copied = sums_of(&old);
        self.append("s4.jsonl", &old)?;
        self.append("s5.jsonl", &forked(&old))?;
        self.hooks()?;
        checks.see(OLD, || self.compare(copied));
        Ok(())
    }

    /// Writes transcripts as Claude Code does, and worse, and runs hooks meanwhile.
    fn generate(&mut self) -> Result {
        let messages = self.messages(MESSAGES, true);
        self.append("s1.jsonl", &messages)?;
        self.append(
            "s1.jsonl",
            "not json \"type\":\"assistant\"\n{\"type\":\"assistant\",\"message\":{}}\n\n",
        )?;
        for session in SESSIONS {
            self.hook(session, "SessionStart")?;
        }
        self.hook("s1", "PostToolUse")?;
        // A forked session copies the lines of the first one.
        self.append("s2.jsonl", &forked(&fs::read_to_string(self.file("s1.jsonl"))?))?;
        let own = self.messages(1000, true);
        self.append("s2.jsonl", &own)?;
        for delegate in 0..5 {
            let part = self.messages(100, true);
            self.append(&format!("s1/subagents/agent-{delegate}.jsonl"), &part)?;
        }
        // A session whose last line is cut off.
        let whole = self.messages(100, true);
        self.append("s3.jsonl", &whole)?;
        let cut = self.cut_line()[..CUT].to_owned();
        self.append("s3.jsonl", &cut)?;
        self.hooks()
    }

    fn cut_line(&self) -> String {
        line(&self.now, MESSAGES * 10, true)
    }

    /// The lines of new messages: one for each of two parts with the same numbers, and one of another kind.
    fn messages(&mut self, count: usize, has_request: bool) -> String {
        let mut lines = String::new();
        for number in self.written..self.written + count {
            let line = line(&self.now, number, has_request);
            let other = r#"{"type":"user","message":{"content":"\"type\":\"assistant\",\"usage\":{\"input_tokens\":9}"}}"#;
            // Writing to a string cannot fail.
            let _ = writeln!(lines, "{line}{line}{other}");
        }
        self.written += count;
        lines
    }

    fn file(&self, name: &str) -> PathBuf {
        self.scratch.home().join(".claude/projects/p").join(name)
    }

    fn append(&self, name: &str, text: &str) -> Result {
        let file = self.file(name);
        fs::create_dir_all(file.parent().ok_or("a transcript has no directory")?)?;
        Ok(fs::OpenOptions::new().append(true).create(true).open(file)?.write_all(text.as_bytes())?)
    }

    fn hooks(&self) -> Result {
        for session in SESSIONS {
            self.hook(session, "Stop")?;
        }
        Ok(())
    }

    fn hook(&self, session: &str, event: &str) -> Result {
        let mut command = self.scratch.command(self.scratch.program());
        let call = json!({"session_id": session, "hook_event_name": event, "cwd": self.scratch.repository(),
            "tool_name": "Bash", "transcript_path": self.file(&format!("{session}.jsonl"))});
        let mut child =
            command.args(["hook", "claude"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        child.stdin.take().ok_or("the hook has no input")?.write_all(call.to_string().as_bytes())?;
        let status = run::within(run::SHORT, child.id(), "blackboard hook claude", move || child.wait())?;
        if status.success() { Ok(()) } else { Err(format!("the hook ended with {status}").into()) }
    }

    /// Compares both sums by model. Those of ccusage are this much larger.
    fn compare(&self, more: Sums) -> Result<String> {
        let theirs = self.theirs()?;
        let until = Instant::now() + TO_FOLD;
        loop {
            let mut ours = self.ours()?;
            for (model, more) in ours.iter_mut().zip(more) {
                for (kind, more) in model.iter_mut().zip(more) {
                    *kind += more;
                }
            }
            if ours == theirs {
                if let Some(lines) = self.scratch.hook_log() {
                    return Err(lines.into());
                }
                let sum: u64 = theirs.iter().flatten().sum();
                return Ok(format!("{} messages, {sum} tokens, by model and kind: {theirs:?}", self.written));
            }
            if Instant::now() >= until {
                return Err(format!("the ledger has {ours:?}, ccusage {theirs:?}").into());
            }
            // A hook may have started a fold, which a command does not wait for very long.
            thread::sleep(Duration::from_millis(200));
        }
    }

    fn ours(&self) -> Result<Sums> {
        let status = self.scratch.board(&["quota", "status"])?;
        let providers = status["providers"].as_array().cloned().unwrap_or_default();
        Ok(["opus", "haiku"].map(|name| {
            let provider = providers.iter().find(|provider| provider["provider"] == name);
            let usage = provider.map_or(&Value::Null, |provider| &provider["windows"][0]["usage"]);
            let of = |kind: &str| usage[kind].as_u64().unwrap_or_default();
            [of("input"), of("cache_write"), of("cache_read"), of("output") + of("reasoning")]
        }))
    }

    fn theirs(&self) -> Result<Sums> {
        let mut command = self.scratch.command(self.programs.join("ccusage"));
        command.args(["claude", "daily", "--json", "--offline", "--timezone", "UTC"]);
        command.env("CLAUDE_CONFIG_DIR", self.scratch.home().join(".claude"));
        let output = run::output(&mut command, run::SHORT)?;
        if !output.status.success() {
            return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)).into());
        }
        let counted: Value = serde_json::from_slice(&output.stdout)?;
        let days = counted["daily"].as_array().into_iter().flatten();
        let models: Vec<&Value> =
            days.flat_map(|day| day["modelBreakdowns"].as_array().into_iter().flatten()).collect();
        Ok(MODELS.map(|name| {
            let kinds = ["inputTokens", "cacheCreationTokens", "cacheReadTokens", "outputTokens"];
            kinds.map(|kind| {
                let of_model = models.iter().filter(|model| model["modelName"] == name);
                of_model.map(|model| model[kind].as_u64().unwrap_or_default()).sum()
            })
        }))
    }
}

/// Where a line is cut off: in the middle of its numbers.
const CUT: usize = 300;

/// The line of a message. The number decides all of its contents.
fn line(now: &str, number: usize, has_request: bool) -> String {
    let mut line = json!({
        "type": "assistant", "timestamp": now, "version": "2.1.325", "isSidechain": false, "sessionId": "s",
        "message": {
            "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": MODELS[number % 2],
            "content": [{"type": "text", "text": "…"}], "stop_reason": "end_turn",
            "usage": {
                "input_tokens": number % 1009, "cache_creation_input_tokens": number % 997,
                "cache_read_input_tokens": 1000 + number % 991, "output_tokens": 1 + number % 983,
                "output_tokens_details": {"thinking_tokens": number % 2},
            },
        },
    });
    if has_request {
        line["requestId"] = json!(format!("req_{number}"));
    }
    format!("{line}\n")
}

/// The lines as a fork of their session has them: with its own id, and the ids of messages and requests that they had.
fn forked(lines: &str) -> String {
    lines.replace(r#""sessionId":"s""#, r#""sessionId":"fork""#)
}

/// The sums of lines that have each message twice.
fn sums_of(lines: &str) -> Sums {
    let mut sums = Sums::default();
    let lines = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    for line in lines.filter(|line| line["type"] == "assistant").step_by(2) {
        let message = &line["message"];
        let model = usize::from(message["model"] == MODELS[1]);
        let kinds =
            ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"];
        for (sum, kind) in sums[model].iter_mut().zip(kinds) {
            *sum += message["usage"][kind].as_u64().unwrap_or_default();
        }
    }
    sums
}
