//! Gemini CLI: <https://geminicli.com/docs/hooks/reference>. Before a tool it accepts a decision, but no context.

use std::path::PathBuf;

use blackboard::quota::Usage;
use jsonc_parser::json;
use serde::Deserialize;
use serde_json::{Value, json as answer};

use super::claude::{FIELDS, PAYLOAD};
use super::{AgentProcess, Exceptions, Platform, PlatformSettings, Reply, ReplyFormat, Variables};
use crate::hooks::{EventKind, PayloadFields, PayloadFormat};
use crate::quota::reading::{Reading, UsageFormat, moment};
use crate::setup::{Content, Part, SettingsDirs, SettingsLevel, Target, Wanted, grouped, servers, skill};

pub const GEMINI: Platform = Platform {
    id: "gemini",
    name: "Gemini CLI",
    process: AgentProcess { names: &["gemini", "gemini-cli"], hosts_many: false, is_hidden: false },
    variables: Variables { session: Some("GEMINI_SESSION_ID"), delegate: None, pid: None, others: &[HOME] },
    payload: PayloadFormat {
        fields: PayloadFields { path: &["file_path", "path", "absolute_path"], ..FIELDS },
        events: &[
            ("SessionStart", EventKind::Started),
            ("BeforeAgent", EventKind::Prompted),
            ("BeforeTool", EventKind::BeforeTool),
            ("AfterTool", EventKind::AfterTool),
            ("AfterAgent", EventKind::Idle),
            ("SessionEnd", EventKind::Ended),
        ],
        edit_tools: &["write_file", "replace"],
        delegate_tools: &[],
        ..PAYLOAD
    },
    replies: ReplyFormat { takes_context_before_tools: false, takes_context_on_prompt: true, format_reply },
    settings: PlatformSettings {
        program: "gemini",
        levels: &[SettingsLevel::User, SettingsLevel::Project],
        directory,
        targets,
        note: None,
        afterwards: |level| match level {
            SettingsLevel::User | SettingsLevel::Local => {
                &["restart the sessions that run now: settings are read when one starts"]
            }
            SettingsLevel::Project => &[
                "trust this folder when `gemini` asks: it reads a project's settings only then",
                "restart the sessions that run now: settings are read when one starts",
            ],
        },
    },
    usage: Some(UsageFormat::lines(read_usage)),
    exceptions: Exceptions::NONE,
};

/// Replaces the home directory.
const HOME: &str = "GEMINI_CLI_HOME";

fn format_reply(event: &str, reply: &Reply) -> Option<Value> {
    match reply {
        Reply::Silence => None,
        Reply::Context { text, .. } => {
            Some(answer!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}))
        }
        Reply::Deny(reason) => Some(answer!({"decision": "deny", "reason": reason})),
    }
}

/// A line of a session: a message, or an update that may replace the list of messages.
#[derive(Deserialize)]
struct SessionMessage {
    #[serde(rename = "type")]
    kind: Option<String>,
    id: Option<String>,
    timestamp: Option<String>,
    model: Option<String>,
    tokens: Option<Tokens>,
    #[serde(rename = "$set")]
    update: Option<SessionUpdate>,
}

#[derive(Deserialize)]
struct SessionUpdate {
    #[serde(default)]
    messages: Vec<SessionMessage>,
}

/// Numbers of tokens. Input contains what was cached; output contains no thoughts.
#[derive(Deserialize)]
struct Tokens {
    input: Option<u64>,
    output: Option<u64>,
    cached: Option<u64>,
    thoughts: Option<u64>,
    /// Input that results of tools add.
    tool: Option<u64>,
}

/// Reads a line of a session. A message with tool calls is written twice, with the same id.
fn read_usage(line: &str, reading: &mut Reading) {
    if !line.contains(r#""tokens""#) {
        return;
    }
    let Ok(mut message) = serde_json::from_str::<SessionMessage>(line) else { return };
    let updated = message.update.take().map(|update| update.messages).unwrap_or_default();
    for message in updated.into_iter().chain([message]) {
        let SessionMessage { kind: Some(kind), id: Some(id), tokens: Some(tokens), timestamp, model, .. } =
            message
        else {
            continue;
        };
        if kind != "gemini" {
            continue;
        }
        let input = tokens.input.unwrap_or_default();
        let cache_read = tokens.cached.unwrap_or_default().min(input);
        let usage = Usage {
            input: (input - cache_read).saturating_add(tokens.tool.unwrap_or_default()),
            cache_read,
            output: tokens.output.unwrap_or_default(),
            reasoning: tokens.thoughts.unwrap_or_default(),
            ..Usage::default()
        };
        reading.add(format!("gemini:{id}"), model.as_deref(), moment(timestamp.as_deref()), usage);
    }
}

/// `$GEMINI_CLI_HOME/.gemini`, `~/.gemini`
fn directory(dirs: &SettingsDirs) -> PathBuf {
    dirs.moved_by(HOME).unwrap_or_else(|| dirs.home.clone()).join(".gemini")
}

fn targets(dirs: &SettingsDirs, level: SettingsLevel) -> Vec<Target> {
    let directory = match level {
        SettingsLevel::User | SettingsLevel::Local => directory(dirs),
        SettingsLevel::Project => dirs.project.join(".gemini"),
    };
    let server = Wanted::Server(servers("mcpServers"), json!({ "command": "blackboard", "args": ["mcp"] }));
    let content = Content::Json(vec![hooks(), server]);
    vec![
        Target::new(Part::HooksAndServer, directory.join("settings.json"), content),
        skill(&directory.join("skills")),
    ]
}

fn hooks() -> Wanted {
    // A hook that cannot be started ends the agent's turn before it begins, also for users who got the settings from a
    // repository but do not have this program. This command succeeds in every shell that may run it.
    let command = "blackboard hook gemini; exit 0";
    // In milliseconds.
    let handler = || json!({ "type": "command", "command": command, "timeout": 5000 });
    Wanted::Hooks(vec![
        ("SessionStart", grouped(None, handler())),
        ("BeforeAgent", grouped(None, handler())),
        ("BeforeTool", grouped(Some("write_file|replace"), handler())),
        ("AfterTool", grouped(None, handler())),
        ("AfterAgent", grouped(None, handler())),
        ("SessionEnd", grouped(None, handler())),
    ])
}
