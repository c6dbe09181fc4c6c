//! Claude Code: <https://code.claude.com/docs/en/hooks>.

use serde_json::{Value, json};

use super::call::{Dialect, Meaning};
use super::{Platform, Reply};

/// How Claude Code calls, and what it takes for an answer.
pub const CLAUDE: Platform = Platform {
    id: "claude",
    name: "Claude Code",
    dialect: Dialect {
        events: EVENTS,
        edit_tools: &["Edit", "Write", "MultiEdit", "NotebookEdit"],
        delegate_tools: &["Task", "Agent"],
        unnamed: None,
    },
    hosts_many: false,
    hears_before_tools: true,
    hears_prompts: true,
    speak,
};

/// The events of Claude Code, whose names others have taken over.
pub const EVENTS: &[(&str, Meaning)] = &[
    ("SessionStart", Meaning::Started),
    ("UserPromptSubmit", Meaning::Prompted),
    ("PreToolUse", Meaning::BeforeTool),
    ("PostToolUse", Meaning::AfterTool),
    ("SubagentStart", Meaning::DelegateStarted),
    ("SubagentStop", Meaning::DelegateEnded),
    ("Stop", Meaning::Idle),
    ("SessionEnd", Meaning::Ended),
];

/// The answer, which names its event. Codex takes the same.
pub fn speak(event: &str, reply: &Reply) -> Option<Value> {
    let said = match reply {
        Reply::Silence => return None,
        Reply::Context { text, .. } => json!({"hookEventName": event, "additionalContext": text}),
        Reply::Deny(reason) => json!({
            "hookEventName": event,
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }),
    };
    Some(json!({ "hookSpecificOutput": said }))
}
