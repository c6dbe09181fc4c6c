//! Claude Code: <https://code.claude.com/docs/en/hooks>.

use std::path::{Path, PathBuf};

use blackboard::quota::Usage;
use jsonc_parser::json;
use serde::Deserialize;
use serde_json::{Value, json as answer};

use super::{AgentProcess, Exceptions, Platform, PlatformSettings, Reply, ReplyFormat, Variables};
use crate::disk::plain_text;
use crate::environment::Environment;
use crate::hooks::{EventKind, PayloadFields, PayloadFormat};
use crate::identity::usable_name;
use crate::quota::reading::{Reading, UsageFormat, moment};
use crate::setup::{Content, Part, SettingsDirs, SettingsLevel, Target, Wanted, grouped, servers, skill};

pub const CLAUDE: Platform = Platform {
    id: "claude",
    name: "Claude Code",
    process: AgentProcess {
        names: &["claude", "claude-agent-sdk", "claude-code"],
        hosts_many: false,
        is_hidden: false,
    },
    variables: Variables {
        session: Some("CLAUDE_CODE_SESSION_ID"),
        delegate: None,
        pid: Some("CLAUDE_PID"),
        others: &[CONFIG_DIR, START_DIRECTORY, SHELL_SCRIPT, PAI_DIR],
    },
    payload: PAYLOAD,
    replies: ReplyFormat { takes_context_before_tools: true, takes_context_on_prompt: true, format_reply },
    settings: PlatformSettings {
        program: "claude",
        levels: &[SettingsLevel::User, SettingsLevel::Project, SettingsLevel::Local],
        directory,
        targets,
        note: None,
        afterwards: |level| match level {
            SettingsLevel::User | SettingsLevel::Local => {
                &["restart the sessions that run now: hooks are read when one starts"]
            }
            SettingsLevel::Project => &[
                "each user who works here is asked once whether to trust the project's hooks and its MCP server (.mcp.json)",
                "restart the sessions that run now: hooks are read when one starts",
            ],
        },
    },
    usage: Some(UsageFormat { delegates: Some(delegate_transcripts), ..UsageFormat::lines(read_usage) }),
    exceptions: Exceptions {
        start_directory: Some(START_DIRECTORY),
        shell_script: Some(SHELL_SCRIPT),
        agent_name: Some(pai_name),
        ..Exceptions::NONE
    },
};

/// Replaces `~/.claude`.
const CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";
/// The directory in which the session was started.
const START_DIRECTORY: &str = "CLAUDE_PROJECT_DIR";
/// The script that Claude Code runs before each of its shell commands.
const SHELL_SCRIPT: &str = "CLAUDE_ENV_FILE";
/// The directory of PAI (Personal AI Infrastructure), with its settings.
const PAI_DIR: &str = "PAI_DIR";

/// Longer settings are not read.
const LONGEST_SETTINGS: u64 = 1024 * 1024;

/// The input format of Claude Code. Other platforms have adopted its names.
pub const PAYLOAD: PayloadFormat = PayloadFormat {
    fields: FIELDS,
    events: EVENTS,
    edit_tools: &["Edit", "Write", "MultiEdit", "NotebookEdit"],
    patch_tools: &[],
    delegate_tools: &["Task", "Agent"],
    forgetful_sources: &["clear", "compact"],
    view_call: None,
    unnamed_event: None,
};

/// Its fields.
pub const FIELDS: PayloadFields = PayloadFields {
    event: &["hook_event_name"],
    session: &["session_id"],
    directory: &["cwd"],
    roots: &[],
    source: &["source"],
    tool: &["tool_name"],
    input: &["tool_input"],
    path: &["file_path", "notebook_path", "path"],
    paths: &["files", "file_paths", "paths"],
    delegate: &["agent_id"],
    parent: &[],
    kind: &["agent_type", "subagent_type"],
    task: &["description"],
};

/// Its events.
pub const EVENTS: &[(&str, EventKind)] = &[
    ("SessionStart", EventKind::Started),
    ("UserPromptSubmit", EventKind::Prompted),
    ("PreToolUse", EventKind::BeforeTool),
    ("PostToolUse", EventKind::AfterTool),
    ("SubagentStart", EventKind::DelegateStarted),
    ("SubagentStop", EventKind::DelegateEnded),
    ("Stop", EventKind::Idle),
    ("SessionEnd", EventKind::Ended),
];

/// The answer, which names its event. Codex accepts the same.
pub fn format_reply(event: &str, reply: &Reply) -> Option<Value> {
    let said = match reply {
        Reply::Silence => return None,
        Reply::Context { text, .. } => answer!({"hookEventName": event, "additionalContext": text}),
        Reply::Deny(reason) => answer!({
            "hookEventName": event,
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }),
    };
    Some(answer!({ "hookSpecificOutput": said }))
}

/// The name that a user of PAI gave to the assistant. PAI keeps it in the `settings.json` of its own directory, which
/// is that of Claude Code unless it was moved.
fn pai_name(environment: &Environment) -> Option<String> {
    let moved = [PAI_DIR, CONFIG_DIR].map(|name| environment.variable(name).map(PathBuf::from));
    let usual = environment.user_home.as_ref().map(|home| Path::new(home).join(".claude"));
    let directories = moved.into_iter().flatten().chain(usual);
    directories.filter(|directory| directory.is_absolute()).find_map(|directory| {
        name_in_settings(&plain_text(&directory.join("settings.json"), LONGEST_SETTINGS)?)
    })
}

/// `daidentity.name`, or the variable `DA` of older versions.
fn name_in_settings(text: &str) -> Option<String> {
    let settings: Value = serde_json::from_str(text).ok()?;
    let names = [&settings["daidentity"]["name"], &settings["env"]["DA"]];
    let mut names = names.into_iter().filter_map(|name| name.as_str());
    names.find_map(|name| if name.contains(char::is_control) { None } else { usable_name(name) })
}

/// A line of a transcript: one for each part of a message, with the usage of the complete message.
#[derive(Deserialize)]
struct UsageLine {
    #[serde(rename = "type")]
    kind: String,
    timestamp: Option<String>,
    message: UsageMessage,
}

#[derive(Deserialize)]
struct UsageMessage {
    id: String,
    model: Option<String>,
    usage: MessageTokens,
}

/// The numbers of a message. Input contains neither of the caches.
#[derive(Deserialize)]
struct MessageTokens {
    input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<OutputTokens>,
}

#[derive(Deserialize)]
struct OutputTokens {
    thinking_tokens: Option<u64>,
}

/// Reads a line of a transcript. Copies in another file, of a forked session, have the same id.
fn read_usage(line: &str, reading: &mut Reading) {
    if !line.contains(r#""type":"assistant""#) {
        return;
    }
    let Ok(UsageLine { kind, timestamp, message }) = serde_json::from_str(line) else { return };
    if kind != "assistant" {
        return;
    }
    let tokens = message.usage;
    let output = tokens.output_tokens.unwrap_or_default();
    let thinking = tokens.output_tokens_details.and_then(|details| details.thinking_tokens);
    let reasoning = thinking.unwrap_or_default().min(output);
    let usage = Usage {
        input: tokens.input_tokens.unwrap_or_default(),
        cache_write: tokens.cache_creation_input_tokens.unwrap_or_default(),
        cache_read: tokens.cache_read_input_tokens.unwrap_or_default(),
        output: output - reasoning,
        reasoning,
    };
    let id = format!("claude:{}", message.id);
    reading.add(id, message.model.as_deref(), moment(timestamp.as_deref()), usage);
}

/// `SESSION/subagents` beside `SESSION.jsonl`
fn delegate_transcripts(transcript: &Path) -> PathBuf {
    transcript.with_extension("").join("subagents")
}

/// `$CLAUDE_CONFIG_DIR`, `~/.claude`
fn directory(dirs: &SettingsDirs) -> PathBuf {
    dirs.moved_by(CONFIG_DIR).unwrap_or_else(|| dirs.home.join(".claude"))
}

/// The state file of Claude Code, which moves with its settings. `claude mcp add` writes the same entry there.
fn state(dirs: &SettingsDirs) -> PathBuf {
    dirs.moved_by(CONFIG_DIR).unwrap_or_else(|| dirs.home.clone()).join(".claude.json")
}

fn targets(dirs: &SettingsDirs, level: SettingsLevel) -> Vec<Target> {
    let directory = match level {
        SettingsLevel::User => directory(dirs),
        SettingsLevel::Project | SettingsLevel::Local => dirs.project.join(".claude"),
    };
    let settings = if level == SettingsLevel::Local { "settings.local.json" } else { "settings.json" };
    let (servers_file, path) = match level {
        SettingsLevel::User => (state(dirs), servers("mcpServers")),
        SettingsLevel::Project => (dirs.project.join(".mcp.json"), servers("mcpServers")),
        SettingsLevel::Local => {
            let project = dirs.project.display().to_string();
            (state(dirs), [vec!["projects".to_owned(), project], servers("mcpServers")].concat())
        }
    };
    let server = json!({ "type": "stdio", "command": "blackboard", "args": ["mcp"] });
    let server = Target::new(Part::Server, servers_file, Content::Json(vec![Wanted::Server(path, server)]));
    let own_command = format!("claude mcp add --scope {} blackboard -- blackboard mcp", level.as_str());
    let mut targets = vec![
        Target::new(Part::Hooks, directory.join(settings), Content::Json(vec![hooks()])),
        Target { is_private: level != SettingsLevel::Project, own_command: Some(own_command), ..server },
    ];
    // A skill belongs to the project or to the user; there is no third level.
    if level != SettingsLevel::Local {
        targets.push(skill(&directory.join("skills")));
    }
    targets
}

/// With `args`, Claude Code starts the program without a shell: the agent is its parent, and nothing needs quoting.
fn hooks() -> Wanted {
    let handler =
        || json!({ "type": "command", "command": "blackboard", "args": ["hook", "claude"], "timeout": 5 });
    Wanted::Hooks(vec![
        ("SessionStart", grouped(None, handler())),
        ("UserPromptSubmit", grouped(None, handler())),
        ("PreToolUse", grouped(Some("Edit|MultiEdit|Write|NotebookEdit|Task|Agent"), handler())),
        ("PostToolUse", grouped(None, handler())),
        ("SubagentStart", grouped(None, handler())),
        ("SubagentStop", grouped(None, handler())),
        ("Stop", grouped(None, handler())),
        ("SessionEnd", grouped(None, handler())),
    ])
}
