//! Agents of a platform on a board, and the hook input of their tool calls.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use blackboard::agent::{READER, Register};
use blackboard::clock::{Clock, SystemClock};
use rusqlite::params;
use serde_json::json;

use crate::boards::Scratch;
use crate::{Result, Scale};

/// The output of a tool: the hook ignores it, but has to read it.
const ANSWER: usize = 2_000;

/// A repository with a board, and agents of Claude Code without pending updates.
pub struct Agents<'a> {
    scale: &'a Scale,
    pub scratch: Scratch,
}

impl<'a> Agents<'a> {
    pub fn new(scale: &'a Scale, count: usize) -> Result<Agents<'a>> {
        let scratch = Scratch::in_repository()?;
        let board = scratch.open()?;
        let mut sessions = Vec::with_capacity(count);
        let mut last = None;
        for number in 0..count {
            let registered = board.agents().register(&Register {
                session_hint: Some(format!("claude:{}", session(number))),
                pid: Some(std::process::id()),
                ..Register::named(&format!("Agent {number}"))
            })?;
            last = Some(registered.agent.revision);
            sessions.push(registered.agent.session_id);
        }
        for (session, last) in sessions.iter().zip(last.into_iter().cycle()) {
            board.events().advance(session, READER, last)?;
        }
        drop(board);
        scratch.fold()?;
        Ok(Agents { scale, scratch })
    }

    /// Moves the last heartbeat of all of them back by a minute: the next tool call of each one writes.
    pub fn fall_silent(&self) -> Result {
        let ago = SystemClock.now().minus(std::time::Duration::from_mins(1)).to_string();
        let connection = self.scratch.connect()?;
        connection.execute("UPDATE agents SET last_beat_at = ?1, last_seen_at = ?1", params![ago])?;
        drop(connection);
        self.scratch.fold()
    }

    /// Configures a token quota, so that hooks read the transcript of their session.
    pub fn configure_quota(&self) -> Result {
        let home = self.scratch.home().join(".pai/blackboard");
        fs::create_dir_all(&home)?;
        fs::set_permissions(&home, fs::Permissions::from_mode(0o700))?;
        let quota = json!({"providers": {"anthropic": {"windows": {"5h": {"budget": 1_000_000_000}}}}});
        Ok(fs::write(home.join("config.json"), json!({ "quota": quota }).to_string())?)
    }

    /// Appends 20 lines to the transcript: 10 messages of the model, and 10 results of tools.
    pub fn continue_transcript(&self, number: usize) -> Result {
        let file = transcript(&self.scratch);
        if let Some(directory) = file.parent() {
            fs::create_dir_all(directory)?;
        }
        let now = SystemClock.now();
        let mut text = String::new();
        for part in 0..10 {
            let usage = json!({"input_tokens": 11, "cache_creation_input_tokens": 101, "cache_read_input_tokens": 1001,
                "output_tokens": 57});
            let message = json!({"id": format!("msg_{number}_{part}"), "model": "claude-opus", "role": "assistant",
                "content": [{"type": "text", "text": "x".repeat(ANSWER)}], "usage": usage});
            let result = json!({"role": "user", "content": "x".repeat(ANSWER)});
            // The order of members is that of Claude Code: the type comes before the text.
            let time = now.to_string();
            writeln!(text, r#"{{"type":"assistant","timestamp":"{time}","message":{message}}}"#)?;
            writeln!(text, r#"{{"type":"user","timestamp":"{time}","message":{result}}}"#)?;
        }
        let mut file = OpenOptions::new().append(true).create(true).open(file)?;
        Ok(file.write_all(text.as_bytes())?)
    }

    /// The command that Claude Code runs after a tool, and its input.
    pub fn used_a_tool(&self, number: usize) -> (Command, String) {
        (self.hook(), after_bash(&self.scratch, number))
    }

    /// The same after an edit of a file.
    pub fn edited(&self, number: usize, file: &str) -> (Command, String) {
        let file = self.scratch.repository().join(file);
        let input = json!({"file_path": file, "old_string": "x".repeat(ANSWER), "new_string": "y"});
        (self.hook(), after_tool(&self.scratch, number, "Edit", &input, &json!({"filePath": file})))
    }

    /// The product, in the environment that Claude Code creates. Its working directory is that of this process:
    /// starting it in another one costs more, and `/bin/true` is not started there either.
    fn blackboard(&self) -> Command {
        let repository = self.scratch.repository();
        let mut command = Command::new(self.scale.program("blackboard"));
        command.env_clear().env("HOME", self.scratch.home()).env("CLAUDE_PROJECT_DIR", repository);
        command
    }

    /// The MCP server of a session in the repository, not started yet.
    pub fn server(&self) -> Command {
        let mut command = self.blackboard();
        command.arg("mcp").current_dir(self.scratch.repository());
        command
    }

    fn hook(&self) -> Command {
        let mut command = self.blackboard();
        command.args(["hook", "claude"]);
        command
    }
}

/// The input of the hook after a command of the shell, in the repository of this home.
pub fn after_bash(scratch: &Scratch, number: usize) -> String {
    let input = json!({"command": "cargo test", "description": "Run the tests"});
    let said = json!({"stdout": "x".repeat(ANSWER), "stderr": "", "interrupted": false});
    after_tool(scratch, number, "Bash", &input, &said)
}

fn after_tool(
    scratch: &Scratch,
    number: usize,
    tool: &str,
    input: &serde_json::Value,
    said: &serde_json::Value,
) -> String {
    let call = json!({
        "session_id": session(number),
        "transcript_path": transcript(scratch),
        "cwd": scratch.repository(),
        "permission_mode": "default",
        "hook_event_name": "PostToolUse",
        "tool_name": tool,
        "tool_input": input,
        "tool_response": said,
        "tool_use_id": "toolu_01ABCDEFGHIJKLMNOPQRSTUV",
    });
    call.to_string()
}

/// The transcript of all sessions.
fn transcript(scratch: &Scratch) -> PathBuf {
    scratch.home().join(".claude/projects/project/session.jsonl")
}

/// The platform's own id of a session.
pub fn session(number: usize) -> String {
    format!("00893aaf-19fa-41d2-8238-{number:012}")
}
