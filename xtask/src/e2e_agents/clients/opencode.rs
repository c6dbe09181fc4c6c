//! OpenCode.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::{Client, More, Package, Tools, edit_json};
use crate::Result;
use crate::e2e_agents::check::Checks;
use crate::e2e_agents::model::openai::Chat;
use crate::e2e_agents::model::{Model, Say};
use crate::e2e_agents::scratch::Scratch;
use crate::e2e_agents::story::Stage;
use crate::e2e_agents::usage::{self, PartOf};
use crate::e2e_agents::usual::{self, Usual};

pub const fn client(version: &'static str) -> Client {
    Client {
        id: "opencode",
        title: "OpenCode",
        package: Package { name: "opencode-ai", version },
        program: "opencode",
        dialect: &Chat,
        prepare,
        session,
        is_agent: |process| process.name == "opencode" || process.name == ".opencode",
        tools: Tools { shell, claim, delegate: Ok(delegate) },
        usage: More {
            checks: &[usage::CHECKS],
            play: |stage, checks| usage::play(stage, checks, PartOf::Itself, again),
        },
        more: Some(More { checks: &[usual::CHECKS], play }),
    }
}

fn prepare(scratch: &Scratch, model: &Model) -> Result {
    edit_json(&scratch.home().join(".config/opencode/opencode.json"), |settings| {
        settings["provider"] = json!({"stand-in": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": format!("{}/v1", model.address()), "apiKey": "none"},
            "models": {"stand-in": {"name": "stand-in", "tool_call": true}},
        }});
        settings["permission"] = json!({"*": "allow"});
    })
}

fn play(stage: &Stage, checks: &mut Checks) -> Result {
    usual::play(stage, checks, &Usual { editing: session, again, write, delegates_claim: Ok(()) })
}

fn again(command: &mut Command, model: &Model, prompt: &str) {
    session(command, model, prompt);
    command.arg("--continue");
}

fn write(file: &Path) -> Say {
    Say::Call { tool: "write".to_owned(), input: json!({"filePath": file, "content": "text\n"}) }
}

fn session(command: &mut Command, _: &Model, prompt: &str) {
    command.env("OPENCODE_DISABLE_AUTOUPDATE", "1").env("OPENCODE_DISABLE_MODELS_FETCH", "1").args([
        "run",
        "--model",
        "stand-in/stand-in",
        prompt,
    ]);
}

fn shell(text: &str) -> Say {
    Say::Call { tool: "bash".to_owned(), input: json!({"command": text, "description": "A step"}) }
}

fn claim(item: &str) -> Say {
    Say::Call { tool: "blackboard_work_claim".to_owned(), input: json!({ "id": item }) }
}

fn delegate(prompt: &str) -> Say {
    let input = json!({"description": "A part", "prompt": prompt, "subagent_type": "general"});
    Say::Call { tool: "task".to_owned(), input }
}
