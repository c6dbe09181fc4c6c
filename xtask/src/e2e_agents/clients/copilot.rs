//! Copilot CLI.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::{Client, More, Package, Tools};
use crate::Result;
use crate::e2e_agents::check::Checks;
use crate::e2e_agents::model::openai::Chat;
use crate::e2e_agents::model::{Model, Say};
use crate::e2e_agents::story::Stage;
use crate::e2e_agents::usage::{self, PartOf};
use crate::e2e_agents::usual::{self, Usual};

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
        usage: More {
            checks: &[usage::CHECKS],
            play: |stage, checks| usage::play(stage, checks, PartOf::Session, again),
        },
        more: Some(More { checks: &[usual::CHECKS], play }),
    }
}

fn play(stage: &Stage, checks: &mut Checks) -> Result {
    usual::play(
        stage,
        checks,
        &Usual {
            editing: session,
            again,
            write,
            delegates_claim: Err("its calls do not say which subagent makes them"),
        },
    )
}

fn again(command: &mut Command, model: &Model, prompt: &str) {
    command.arg("--continue");
    session(command, model, prompt);
}

fn write(file: &Path) -> Say {
    Say::Call { tool: "create".to_owned(), input: json!({"path": file, "file_text": "text\n"}) }
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
