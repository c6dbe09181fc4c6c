//! Copilot CLI: Claude Code's names for events where they are configured in that form, and answers without an envelope.
//!
//! It also runs the hooks of a repository's `.claude/settings.json`, so that one session may call twice.

use serde_json::{Value, json};

use super::call::{Dialect, Meaning};
use super::{Platform, Reply};

/// How Copilot CLI calls, and what it takes for an answer.
pub const COPILOT: Platform = Platform {
    id: "copilot",
    name: "Copilot CLI",
    dialect: Dialect {
        events: &[
            ("SessionStart", Meaning::Started),
            ("UserPromptSubmit", Meaning::Prompted),
            ("UserPromptSubmitted", Meaning::Prompted),
            ("PreToolUse", Meaning::BeforeTool),
            ("PostToolUse", Meaning::AfterTool),
            ("SubagentStart", Meaning::DelegateStarted),
            ("SubagentStop", Meaning::DelegateEnded),
            ("Stop", Meaning::Idle),
            ("AgentStop", Meaning::Idle),
            ("SessionEnd", Meaning::Ended),
        ],
        edit_tools: &["edit", "create", "str_replace_editor", "apply_patch", "Edit", "Write", "MultiEdit"],
        delegate_tools: &["task", "Task"],
        // Of all the events it has the old form, whose calls do not say what they are about.
        unnamed: Some("SubagentStart"),
    },
    hosts_many: false,
    hears_before_tools: false,
    hears_prompts: true,
    speak,
};

fn speak(_event: &str, reply: &Reply) -> Option<Value> {
    match reply {
        Reply::Silence => None,
        Reply::Context { text, .. } => Some(json!({ "additionalContext": text })),
        Reply::Deny(reason) => {
            Some(json!({"permissionDecision": "deny", "permissionDecisionReason": reason}))
        }
    }
}
