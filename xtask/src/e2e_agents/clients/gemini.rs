//! Gemini CLI.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::{Client, More, Package, Tools, edit_json};
use crate::Result;
use crate::e2e_agents::check::Checks;
use crate::e2e_agents::model::gemini::Generate;
use crate::e2e_agents::model::{Model, Say};
use crate::e2e_agents::scratch::Scratch;
use crate::e2e_agents::story::Stage;
use crate::e2e_agents::usage::{self, PartOf};
use crate::e2e_agents::usual::{self, Usual};

pub const fn client(version: &'static str) -> Client {
    Client {
        id: "gemini",
        title: "Gemini CLI",
        package: Package { name: "@google/gemini-cli", version },
        program: "gemini",
        dialect: &Generate,
        prepare,
        session,
        is_agent: |process| process.arguments.iter().any(|argument| argument.ends_with("/gemini")),
        tools: Tools { shell, claim, delegate: Err("it does not report its subagents") },
        usage: More {
            checks: &[usage::CHECKS],
            play: |stage, checks| usage::play(stage, checks, PartOf::Itself, again),
        },
        more: Some(More { checks: &[usual::CHECKS], play }),
    }
}

/// The choices of its user at the first start.
fn prepare(scratch: &Scratch, _: &Model) -> Result {
    edit_json(&scratch.home().join(".gemini/settings.json"), |settings| {
        settings["security"] = json!({"auth": {"selectedType": "gemini-api-key"}});
    })
}

fn play(stage: &Stage, checks: &mut Checks) -> Result {
    usual::play(
        stage,
        checks,
        &Usual { editing: session, again, write, delegates_claim: Err("it does not report its subagents") },
    )
}

fn again(command: &mut Command, model: &Model, prompt: &str) {
    command.args(["--resume", "latest"]);
    session(command, model, prompt);
}

fn write(file: &Path) -> Say {
    Say::Call { tool: "write_file".to_owned(), input: json!({"file_path": file, "content": "text\n"}) }
}

fn session(command: &mut Command, model: &Model, prompt: &str) {
    command
        .env("GOOGLE_GEMINI_BASE_URL", model.address())
        .env("GEMINI_API_KEY", "none")
        .env("GEMINI_CLI_TRUST_WORKSPACE", "true")
        .args(["--model", "gemini-2.5-flash", "--yolo", "--prompt", prompt]);
}

fn shell(text: &str) -> Say {
    let input = json!({"command": text, "description": "A step"});
    Say::Call { tool: "run_shell_command".to_owned(), input }
}

fn claim(item: &str) -> Say {
    Say::Call { tool: "mcp_blackboard_work_claim".to_owned(), input: json!({ "id": item }) }
}
