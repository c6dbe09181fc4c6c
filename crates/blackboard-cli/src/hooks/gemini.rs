//! Gemini CLI: <https://geminicli.com/docs/hooks/reference>. Before a tool it takes a decision, but no context.

use serde_json::{Value, json};

use super::call::{Dialect, Meaning};
use super::{Platform, Reply};

/// How Gemini CLI calls, and what it takes for an answer.
pub const GEMINI: Platform = Platform {
    id: "gemini",
    name: "Gemini CLI",
    dialect: Dialect {
        events: &[
            ("SessionStart", Meaning::Started),
            ("BeforeAgent", Meaning::Prompted),
            ("BeforeTool", Meaning::BeforeTool),
            ("AfterTool", Meaning::AfterTool),
            ("AfterAgent", Meaning::Idle),
            ("SessionEnd", Meaning::Ended),
        ],
        edit_tools: &["write_file", "replace"],
        delegate_tools: &[],
        unnamed: None,
    },
    hosts_many: false,
    hears_before_tools: false,
    hears_prompts: true,
    speak,
};

fn speak(event: &str, reply: &Reply) -> Option<Value> {
    match reply {
        Reply::Silence => None,
        Reply::Context { text, .. } => {
            Some(json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}))
        }
        Reply::Deny(reason) => Some(json!({"decision": "deny", "reason": reason})),
    }
}
