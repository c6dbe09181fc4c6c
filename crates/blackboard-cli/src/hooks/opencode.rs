//! OpenCode: a small plugin passes its events on, in a form of our own, which `docs/hooks.md` describes.
//!
//! One process hosts many sessions, and a sub-agent is a session with a parent.

use serde_json::{Value, json};

use super::call::{Dialect, Meaning};
use super::{Platform, Reply};

/// How the plugin for OpenCode calls, and what it takes for an answer.
pub const OPENCODE: Platform = Platform {
    id: "opencode",
    name: "OpenCode",
    dialect: Dialect {
        events: &[
            ("session.created", Meaning::Started),
            ("chat.message", Meaning::Prompted),
            ("tool.execute.before", Meaning::BeforeTool),
            ("tool.execute.after", Meaning::AfterTool),
            ("session.idle", Meaning::Idle),
            ("session.deleted", Meaning::Ended),
        ],
        edit_tools: &["edit", "write", "multiedit", "patch", "apply_patch"],
        delegate_tools: &[],
        unnamed: None,
    },
    hosts_many: true,
    hears_before_tools: false,
    hears_prompts: true,
    speak,
};

fn speak(_event: &str, reply: &Reply) -> Option<Value> {
    match reply {
        Reply::Silence => None,
        Reply::Context { text, session: Some(session) } => {
            Some(json!({"context": text, "env": {"BLACKBOARD_SESSION_ID": session}}))
        }
        Reply::Context { text, session: None } => Some(json!({ "context": text })),
        Reply::Deny(reason) => Some(json!({ "deny": reason })),
    }
}
