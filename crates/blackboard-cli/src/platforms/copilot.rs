//! Copilot CLI: the event names of Claude Code if hooks are configured in that form, and answers without an envelope.
//!
//! It also runs the hooks in a repository's `.claude/settings.json`, so one session may call twice. It reads every file
//! of a directory, so our hooks have their own file. With event names in this spelling, it sends the same fields as
//! other platforms.

use std::path::{Path, PathBuf};

use blackboard::quota::Usage;
use jsonc_parser::json;
use serde::Deserialize;
use serde_json::{Value, json as answer};

use super::claude::{CLAUDE, FIELDS, PAYLOAD};
use super::{AgentProcess, Exceptions, Platform, PlatformSettings, Reply, ReplyFormat, Variables};
use crate::environment::Environment;
use crate::hooks::{EventKind, PayloadFields, PayloadFormat};
use crate::quota::reading::{Reading, UsageFormat, moment};
use crate::setup::{Content, Part, SettingsDirs, SettingsLevel, Target, Wanted, servers, skill};

pub const COPILOT: Platform = Platform {
    id: "copilot",
    name: "Copilot CLI",
    process: AgentProcess { names: &["copilot"], hosts_many: false, is_hidden: false },
    variables: Variables { session: None, delegate: None, pid: None, others: &[HOME, IS_PARENT] },
    payload: PayloadFormat {
        fields: PayloadFields {
            event: &["hook_event_name", "hookEventName"],
            session: &["session_id", "sessionId"],
            tool: &["tool_name", "toolName"],
            input: &["tool_input", "toolArgs", "tool_args"],
            path: &["file_path", "filePath", "path", "filename"],
            delegate: &["agent_id", "agentId"],
            parent: &["parent_agent_id", "parent_session_id"],
            kind: &["agent_type", "agentType", "subagent_type", "agent_name", "agentName"],
            ..FIELDS
        },
        events: &[
            ("SessionStart", EventKind::Started),
            ("UserPromptSubmit", EventKind::Prompted),
            ("UserPromptSubmitted", EventKind::Prompted),
            ("PreToolUse", EventKind::BeforeTool),
            ("PostToolUse", EventKind::AfterTool),
            ("SubagentStart", EventKind::DelegateStarted),
            ("SubagentStop", EventKind::DelegateEnded),
            ("Stop", EventKind::Idle),
            ("AgentStop", EventKind::Idle),
            ("SessionEnd", EventKind::Ended),
        ],
        edit_tools: &["edit", "create", "str_replace_editor", "apply_patch", "Edit", "Write", "MultiEdit"],
        patch_tools: &["apply_patch"],
        delegate_tools: &["task", "Task"],
        view_call: Some(("command", "view")),
        // Only this event has the old form, whose calls do not name their event.
        unnamed_event: Some("SubagentStart"),
        ..PAYLOAD
    },
    replies: ReplyFormat { takes_context_before_tools: false, takes_context_on_prompt: true, format_reply },
    settings: PlatformSettings {
        program: "copilot",
        levels: &[SettingsLevel::User, SettingsLevel::Project],
        directory,
        targets,
        note: None,
        afterwards: |level| match level {
            SettingsLevel::User | SettingsLevel::Local => {
                &["restart the sessions that run now: hooks are read when one starts"]
            }
            SettingsLevel::Project => &[
                "trust this folder when `copilot` asks: it reads a project's hooks only then",
                "restart the sessions that run now: hooks are read when one starts",
            ],
        },
    },
    // Only some of its hooks name the file.
    usage: Some(UsageFormat {
        usual_transcript: Some(|session| Path::new("session-state").join(session).join("events.jsonl")),
        ..UsageFormat::lines(read_usage)
    }),
    exceptions: Exceptions { runs_hooks_of: Some(runs_hooks_of), ..Exceptions::NONE },
};

/// Replaces `~/.copilot`.
const HOME: &str = "COPILOT_HOME";
/// Set for every program that it runs.
const IS_PARENT: &str = "COPILOT_CLI";

/// It also runs the hooks of Claude Code that it finds in a repository. A Claude Code that Copilot CLI started inherits
/// its environment, but knows its own session.
fn runs_hooks_of(named: &Platform, session: &str, environment: &Environment) -> bool {
    let own_session = || CLAUDE.variables.session.and_then(|name| environment.variable(name));
    named.id == CLAUDE.id
        && environment.variable(IS_PARENT).is_some()
        && own_session().is_none_or(|own| *own != *session)
}

fn format_reply(_event: &str, reply: &Reply) -> Option<Value> {
    match reply {
        Reply::Silence => None,
        Reply::Context { text, .. } => Some(answer!({ "additionalContext": text })),
        Reply::Deny(reason) => {
            Some(answer!({"permissionDecision": "deny", "permissionDecisionReason": reason}))
        }
    }
}

/// An event of a session: one for each call of the model.
#[derive(Deserialize)]
struct UsageEvent {
    #[serde(rename = "type")]
    kind: String,
    timestamp: Option<String>,
    data: UsageData,
}

#[derive(Deserialize)]
struct UsageData {
    usage: CallUsage,
}

/// The numbers of a call. Input contains cache reads, and output contains reasoning.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallUsage {
    model: Option<String>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
    reasoning_tokens: Option<u64>,
    accounting: Accounting,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Accounting {
    source_session_id: String,
    sequence: u64,
}

/// Reads an event of a session.
fn read_usage(line: &str, reading: &mut Reading) {
    if !line.contains(r#""session.usage_record""#) {
        return;
    }
    let Ok(UsageEvent { kind, timestamp, data: UsageData { usage } }) = serde_json::from_str(line) else {
        return;
    };
    if kind != "session.usage_record" {
        return;
    }
    let (input, output) = (usage.input_tokens.unwrap_or_default(), usage.output_tokens.unwrap_or_default());
    let cache_read = usage.cache_read_tokens.unwrap_or_default().min(input);
    let reasoning = usage.reasoning_tokens.unwrap_or_default().min(output);
    let tokens = Usage {
        input: input - cache_read,
        cache_write: usage.cache_write_tokens.unwrap_or_default(),
        cache_read,
        output: output - reasoning,
        reasoning,
    };
    let Accounting { source_session_id, sequence } = usage.accounting;
    let id = format!("copilot:{source_session_id}:{sequence}");
    reading.add(id, usage.model.as_deref(), moment(timestamp.as_deref()), tokens);
}

/// `$COPILOT_HOME`, `~/.copilot`
fn directory(dirs: &SettingsDirs) -> PathBuf {
    dirs.moved_by(HOME).unwrap_or_else(|| dirs.home.join(".copilot"))
}

fn targets(dirs: &SettingsDirs, level: SettingsLevel) -> Vec<Target> {
    let (directory, servers_file) = match level {
        SettingsLevel::User | SettingsLevel::Local => (directory(dirs), "mcp-config.json"),
        SettingsLevel::Project => (dirs.project.join(".github"), "mcp.json"),
    };
    let server = json!({ "type": "local", "command": "blackboard", "args": ["mcp"], "tools": ["*"] });
    vec![
        Target::new(
            Part::Hooks,
            directory.join("hooks/blackboard.json"),
            Content::Json(vec![Wanted::Format("version", json!(1)), hooks()]),
        ),
        Target::new(
            Part::Server,
            directory.join(servers_file),
            Content::Json(vec![Wanted::Server(servers("mcpServers"), server)]),
        ),
        skill(&directory.join("skills")),
    ]
}

fn hooks() -> Wanted {
    let handler =
        json!({ "type": "command", "exec": "blackboard", "args": ["hook", "copilot"], "timeoutSec": 5 });
    // It denies every tool whose hook cannot be started, also for users who got the settings from a repository but do
    // not have this program. A shell that always exits with 0 allows these tools.
    let guard = json!({
        "type": "command",
        "matcher": "edit|create|str_replace_editor|apply_patch|Edit|Write|MultiEdit|task|Task",
        "bash": "blackboard hook copilot || true",
        "powershell": "blackboard hook copilot; exit 0",
        "timeoutSec": 5
    });
    Wanted::Hooks(vec![
        ("SessionStart", handler.clone()),
        ("UserPromptSubmit", handler.clone()),
        ("PreToolUse", guard),
        ("PostToolUse", handler.clone()),
        ("SubagentStart", handler.clone()),
        ("SubagentStop", handler.clone()),
        ("Stop", handler.clone()),
        ("SessionEnd", handler),
    ])
}
