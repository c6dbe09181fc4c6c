//! Cursor: <https://cursor.com/docs/agent/hooks>. It accepts context when a session starts and after a tool, not with a
//! prompt.

use jsonc_parser::json;
use serde_json::{Value, json as answer};

use super::claude::{FIELDS, PAYLOAD};
use super::{AgentProcess, Exceptions, Platform, PlatformSettings, Reply, ReplyFormat, Variables};
use crate::hooks::{EventKind, PayloadFields, PayloadFormat};
use crate::setup::{Content, Part, SettingsDirs, SettingsLevel, Target, Wanted, servers, skill};

pub const CURSOR: Platform = Platform {
    id: "cursor",
    name: "Cursor",
    // One editor has many conversations.
    process: AgentProcess { names: &["cursor", "cursor-agent"], hosts_many: true, is_hidden: false },
    variables: Variables { session: None, delegate: None, pid: None, others: &[] },
    payload: PayloadFormat {
        fields: PayloadFields {
            session: &["session_id", "conversation_id"],
            roots: &["workspace_roots"],
            path: &["file_path", "path", "target_file", "absolute_path", "filename"],
            delegate: &["agent_id", "subagent_id"],
            task: &["task", "task_description", "description"],
            ..FIELDS
        },
        events: &[
            ("sessionStart", EventKind::Started),
            ("beforeSubmitPrompt", EventKind::Prompted),
            ("preToolUse", EventKind::BeforeTool),
            ("postToolUse", EventKind::AfterTool),
            ("stop", EventKind::Idle),
            ("sessionEnd", EventKind::Ended),
        ],
        edit_tools: &["Write", "Edit", "MultiEdit", "StrReplace", "Delete", "edit_file", "search_replace"],
        delegate_tools: &[],
        ..PAYLOAD
    },
    replies: ReplyFormat { takes_context_before_tools: false, takes_context_on_prompt: false, format_reply },
    settings: PlatformSettings {
        program: "cursor-agent",
        levels: &[SettingsLevel::User, SettingsLevel::Project],
        directory: |dirs| dirs.home.join(".cursor"),
        targets,
        note: None,
        afterwards: |level| match level {
            SettingsLevel::User | SettingsLevel::Local => {
                &["switch the MCP server \"blackboard\" on in Cursor's settings if it is off"]
            }
            SettingsLevel::Project => &[
                "trust this workspace when Cursor asks: it runs a project's hooks only then",
                "switch the MCP server \"blackboard\" on in Cursor's settings if it is off",
            ],
        },
    },
    usage: None,
    exceptions: Exceptions::NONE,
};

fn format_reply(event: &str, reply: &Reply) -> Option<Value> {
    match reply {
        Reply::Silence => None,
        // It accepts variables only when a session starts.
        Reply::Context { text, session: Some(session) } if event == "sessionStart" => {
            Some(answer!({"env": {"BLACKBOARD_SESSION_ID": session}, "additional_context": text}))
        }
        Reply::Context { text, .. } => Some(answer!({ "additional_context": text })),
        Reply::Deny(reason) => {
            let message = "blackboard: another agent has this file";
            Some(answer!({"permission": "deny", "user_message": message, "agent_message": reason}))
        }
    }
}

fn targets(dirs: &SettingsDirs, level: SettingsLevel) -> Vec<Target> {
    let directory = match level {
        SettingsLevel::User | SettingsLevel::Local => dirs.home.join(".cursor"),
        SettingsLevel::Project => dirs.project.join(".cursor"),
    };
    let server = json!({ "command": "blackboard", "args": ["mcp"] });
    vec![
        Target::new(
            Part::Hooks,
            directory.join("hooks.json"),
            Content::Json(vec![Wanted::Format("version", json!(1)), hooks()]),
        ),
        Target::new(
            Part::Server,
            directory.join("mcp.json"),
            Content::Json(vec![Wanted::Server(servers("mcpServers"), server)]),
        ),
        skill(&directory.join("skills")),
    ]
}

/// Handlers are direct elements of the list. Inside a group, as on other platforms, they would never run.
fn hooks() -> Wanted {
    let handler = json!({ "command": "blackboard hook cursor", "timeout": 10 });
    let events = ["sessionStart", "beforeSubmitPrompt", "preToolUse", "postToolUse", "stop", "sessionEnd"];
    Wanted::Hooks(events.into_iter().map(|event| (event, handler.clone())).collect())
}
