//! Cursor: <https://cursor.com/docs/agent/hooks>. It takes context when a session starts and after a tool, not with a prompt.

use serde_json::{Value, json};

use super::call::{Dialect, Meaning};
use super::{Platform, Reply};

/// How Cursor calls, and what it takes for an answer.
pub const CURSOR: Platform = Platform {
    id: "cursor",
    name: "Cursor",
    dialect: Dialect {
        events: &[
            ("sessionStart", Meaning::Started),
            ("beforeSubmitPrompt", Meaning::Prompted),
            ("preToolUse", Meaning::BeforeTool),
            ("postToolUse", Meaning::AfterTool),
            ("stop", Meaning::Idle),
            ("sessionEnd", Meaning::Ended),
        ],
        edit_tools: &["Write", "Edit", "MultiEdit", "StrReplace", "Delete", "edit_file", "search_replace"],
        delegate_tools: &[],
        unnamed: None,
    },
    // One editor has many conversations.
    hosts_many: true,
    hears_before_tools: false,
    hears_prompts: false,
    speak,
};

fn speak(event: &str, reply: &Reply) -> Option<Value> {
    match reply {
        Reply::Silence => None,
        // It takes variables when a session starts, and never again.
        Reply::Context { text, session: Some(session) } if event == "sessionStart" => {
            Some(json!({"env": {"BLACKBOARD_SESSION_ID": session}, "additional_context": text}))
        }
        Reply::Context { text, .. } => Some(json!({ "additional_context": text })),
        Reply::Deny(reason) => {
            let told = "blackboard: another agent has this file";
            Some(json!({"permission": "deny", "user_message": told, "agent_message": reason}))
        }
    }
}
