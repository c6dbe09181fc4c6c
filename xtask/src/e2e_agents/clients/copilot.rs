//! Copilot CLI.

use std::process::Command;

use serde_json::json;

use super::{Client, Package, Tools};
use crate::e2e_agents::model::openai::Chat;
use crate::e2e_agents::model::{Model, Say};

pub const fn client(version: &'static str) -> Client {
    Client {
        id: "copilot",
        title: "Copilot CLI",
        package: Package { name: "@github/copilot", version },
        program: "copilot",
        dialect: &Chat,
        prepare: |_, _| Ok(()),
        session,
        is_agent: |process| process.arguments.first().is_some_and(|called| called.ends_with("/copilot")),
        tools: Tools { shell, claim, delegate: Ok(delegate) },
        more: None,
    }
}

fn session(command: &mut Command, model: &Model, prompt: &str) {
    command
        .env("COPILOT_OFFLINE", "true")
        .env("COPILOT_PROVIDER_TYPE", "openai")
        .env("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", model.address()))
        .env("COPILOT_PROVIDER_API_KEY", "none")
        .env("COPILOT_MODEL", "stand-in")
        .args(["--allow-all-tools", "--allow-all-paths", "--prompt", prompt]);
}

fn shell(text: &str) -> Say {
    Say::Call { tool: "bash".to_owned(), input: json!({"command": text, "description": "A step"}) }
}

fn claim(item: &str) -> Say {
    Say::Call { tool: "blackboard-work_claim".to_owned(), input: json!({ "id": item }) }
}

fn delegate(prompt: &str) -> Say {
    let input = json!({
        "description": "A part", "prompt": prompt, "agent_type": "general-purpose", "name": "a-part",
    });
    Say::Call { tool: "task".to_owned(), input }
}
