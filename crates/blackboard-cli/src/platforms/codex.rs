//! Codex: the events and answers of Claude Code, but different tools. It refuses an answer with an unknown member.
//!
//! It asks the user about every hook whose text is new, and skips untrusted hooks. So the text never changes: it
//! contains no path and no version.

use std::path::PathBuf;

use jsonc_parser::json;
use serde_json::Value;

use super::claude::{PAYLOAD, format_reply};
use super::{AgentProcess, CallMetadata, Exceptions, Platform, PlatformSettings, ReplyFormat, Variables};
use crate::hooks::PayloadFormat;
use crate::setup::{Content, Part, SettingsDirs, SettingsLevel, Target, Wanted, grouped, skill};

pub const CODEX: Platform = Platform {
    id: "codex",
    name: "Codex",
    process: AgentProcess { names: &["codex"], hosts_many: false, is_hidden: true },
    variables: Variables {
        session: Some("CODEX_SESSION_ID"),
        // A subagent is a thread in its parent's session.
        delegate: Some("CODEX_THREAD_ID"),
        pid: None,
        others: &[HOME],
    },
    payload: PayloadFormat {
        edit_tools: &["apply_patch", "Edit", "Write"],
        patch_tools: &["apply_patch"],
        delegate_tools: &[],
        ..PAYLOAD
    },
    replies: ReplyFormat { takes_context_before_tools: true, takes_context_on_prompt: true, format_reply },
    settings: PlatformSettings {
        program: "codex",
        levels: &[SettingsLevel::User, SettingsLevel::Project],
        directory,
        targets,
        note: Some("Codex runs the hooks only after you have trusted them: type /hooks in Codex."),
        afterwards: |level| match level {
            SettingsLevel::User | SettingsLevel::Local => &[
                "accept the hooks: start `codex`, type /hooks and trust them. Until then Codex skips them silently",
            ],
            SettingsLevel::Project => &[
                "trust this directory when `codex` asks: it reads a project's settings only then",
                "accept the hooks: start `codex`, type /hooks and trust them. Until then Codex skips them silently",
            ],
        },
    },
    exceptions: Exceptions {
        call_metadata: Some(CallMetadata { key: "x-codex-turn-metadata", session_hints }),
        ..Exceptions::NONE
    },
};

/// Replaces `~/.codex`.
const HOME: &str = "CODEX_HOME";

/// The session and the thread of an MCP tool call, in an object or in JSON text.
fn session_hints(metadata: &Value) -> Vec<String> {
    let parsed = metadata.as_str().and_then(|text| serde_json::from_str(text).ok());
    let metadata: &Value = parsed.as_ref().unwrap_or(metadata);
    let id = |name| metadata.get(name).and_then(Value::as_str);
    CODEX.session_hints(id("session_id"), id("thread_id")).collect()
}

/// `$CODEX_HOME`, `~/.codex`
fn directory(dirs: &SettingsDirs) -> PathBuf {
    dirs.moved_by(HOME).unwrap_or_else(|| dirs.home.join(".codex"))
}

fn targets(dirs: &SettingsDirs, level: SettingsLevel) -> Vec<Target> {
    let directory = match level {
        SettingsLevel::User | SettingsLevel::Local => directory(dirs),
        SettingsLevel::Project => dirs.project.join(".codex"),
    };
    vec![
        Target::new(Part::Hooks, directory.join("hooks.json"), Content::Json(vec![hooks()])),
        Target::new(Part::Server, directory.join("config.toml"), Content::Toml("mcp_servers")),
        skill(&directory.join("skills")),
    ]
}

fn hooks() -> Wanted {
    let handler =
        |timeout: u32| json!({ "type": "command", "command": "blackboard hook codex", "timeout": timeout });
    Wanted::Hooks(vec![
        ("SessionStart", grouped(None, handler(5))),
        ("UserPromptSubmit", grouped(None, handler(5))),
        ("PreToolUse", grouped(Some("apply_patch|Edit|Write"), handler(5))),
        ("PostToolUse", grouped(None, handler(5))),
        ("SubagentStart", grouped(None, handler(5))),
        ("SubagentStop", grouped(None, handler(5))),
        ("Stop", grouped(None, handler(5))),
        // The longest timeout that it allows.
        ("SessionEnd", grouped(None, handler(3))),
    ])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn call_metadata_is_an_object_or_its_text() {
        let hints = ["codex:s1/t1".to_owned(), "codex:s1".to_owned(), "codex:t1".to_owned()];
        let metadata = json!({"session_id": "s1", "thread_id": "t1", "turn_id": "x"});
        assert_eq!(session_hints(&metadata), hints);
        assert_eq!(session_hints(&json!(metadata.to_string())), hints);
        assert_eq!(session_hints(&json!({"session_id": "s1", "thread_id": "s1"})), hints[1..2]);
        assert_eq!(session_hints(&json!({"session_id": "s1"})), hints[1..2]);
        assert_eq!(session_hints(&json!({"thread_id": "t1"})), hints[2..]);
        for odd in [json!(null), json!("{"), json!(7), json!({"session_id": 7}), json!([])] {
            assert_eq!(session_hints(&odd), Vec::<String>::new(), "{odd}");
        }
    }
}
