//! Claude Code.

use std::process::Command;

use serde_json::json;

use super::{Client, Package, Tools};
use crate::e2e_agents::model::anthropic::Messages;
use crate::e2e_agents::model::{Model, Say};

pub const fn client(version: &'static str) -> Client {
    Client {
        id: "claude",
        title: "Claude Code",
        package: Package { name: "@anthropic-ai/claude-code", version },
        program: "claude",
        dialect: &Messages,
        prepare: |_, _| Ok(()),
        session,
        is_agent: |process| process.name == "claude",
        tools: Tools { shell, claim, delegate: Ok(delegate) },
        more: None,
    }
}

fn session(command: &mut Command, model: &Model, prompt: &str) {
    command
        .args(["--print", "--dangerously-skip-permissions", prompt])
        .env("ANTHROPIC_BASE_URL", model.address())
        .env("ANTHROPIC_API_KEY", "none")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("DISABLE_AUTOUPDATER", "1")
        .env("DISABLE_TELEMETRY", "1")
        // It refuses to skip permissions for root, unless it is told that nothing else can be harmed.
        .env("IS_SANDBOX", "1");
}

fn shell(text: &str) -> Say {
    Say::Call { tool: "Bash".to_owned(), input: json!({"command": text, "description": "A step"}) }
}

fn claim(item: &str) -> Say {
    Say::Call { tool: "mcp__blackboard__work_claim".to_owned(), input: json!({"id": item}) }
}

fn delegate(prompt: &str) -> Say {
    let input = json!({"description": "A part", "prompt": prompt, "subagent_type": "general-purpose"});
    Say::Call { tool: "Agent".to_owned(), input }
}
