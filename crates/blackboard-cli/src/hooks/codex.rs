//! Codex: the events and answers of Claude Code, but for its tools. What it does not know in an answer, it refuses.

use super::Platform;
use super::call::Dialect;
use super::claude::{EVENTS, speak};

/// How Codex calls, and what it takes for an answer.
pub const CODEX: Platform = Platform {
    id: "codex",
    name: "Codex",
    dialect: Dialect {
        events: EVENTS,
        edit_tools: &["apply_patch", "Edit", "Write"],
        delegate_tools: &[],
        unnamed: None,
    },
    hosts_many: false,
    hears_before_tools: true,
    hears_prompts: true,
    speak,
};
