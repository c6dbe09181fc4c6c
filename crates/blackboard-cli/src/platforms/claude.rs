//! Claude Code: <https://code.claude.com/docs/en/hooks>.

use std::path::{Path, PathBuf};

use jsonc_parser::json;
use serde_json::{Value, json as answer};

use super::{AgentProcess, Exceptions, Platform, PlatformSettings, ReplyFormat, Variables};
use crate::environment::Environment;
use crate::hooks::{EventKind, PayloadFormat, Reply};
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
        others: &[CONFIG_DIR, START_DIRECTORY, SHELL_SCRIPT],
    },
    payload: PayloadFormat {
        events: EVENTS,
        edit_tools: &["Edit", "Write", "MultiEdit", "NotebookEdit"],
        delegate_tools: &["Task", "Agent"],
        unnamed_event: None,
    },
    replies: ReplyFormat { takes_context_before_tools: true, takes_context_on_prompt: true, format_reply },
    settings: PlatformSettings {
        program: "claude",
        levels: &[SettingsLevel::User, SettingsLevel::Project, SettingsLevel::Local],
        directory,
        targets,
        afterwards: |level| match level {
            SettingsLevel::User | SettingsLevel::Local => {
                &["restart the sessions that run now: hooks are read when one starts"]
            }
            SettingsLevel::Project => &[
                "everybody who works here is asked once whether to trust the project's hooks and its MCP server (.mcp.json)",
                "restart the sessions that run now: hooks are read when one starts",
            ],
        },
    },
    exceptions: Exceptions {
        start_directory: Some(START_DIRECTORY),
        shell_script: Some(SHELL_SCRIPT),
        ..Exceptions::NONE
    },
};

/// What replaces `~/.claude`.
const CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";
/// Where the session was started.
const START_DIRECTORY: &str = "CLAUDE_PROJECT_DIR";
/// What Claude Code runs before each of its shell commands.
const SHELL_SCRIPT: &str = "CLAUDE_ENV_FILE";

/// The events of Claude Code, whose names other platforms have adopted.
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

/// The answer, which names its event. Codex takes the same.
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

/// The directories in which its settings may be: where the environment says, and the usual one.
pub fn settings_directories(environment: &Environment) -> impl Iterator<Item = PathBuf> {
    let usual = environment.user_home.as_ref().map(|home| Path::new(home).join(".claude"));
    environment.variable(CONFIG_DIR).map(PathBuf::from).into_iter().chain(usual)
}

/// `$CLAUDE_CONFIG_DIR`, `~/.claude`
fn directory(dirs: &SettingsDirs) -> PathBuf {
    dirs.moved_by(CONFIG_DIR).unwrap_or_else(|| dirs.home.join(".claude"))
}

/// The file in which Claude Code keeps its own state, which moves with its settings. `claude mcp add` writes the same there.
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
    // A skill is for the project or for this user; there is no third place.
    if level != SettingsLevel::Local {
        targets.push(skill(&directory.join("skills")));
    }
    targets
}

/// With `args` the program is started without a shell: the agent is its parent, and nothing needs quoting.
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
