//! Codex.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::{Client, More, Package, Tools};
use crate::Result;
use crate::e2e_agents::check::Checks;
use crate::e2e_agents::model::openai::Responses;
use crate::e2e_agents::model::{Model, Say};
use crate::e2e_agents::scratch::Scratch;
use crate::e2e_agents::story::Stage;
use crate::e2e_agents::usage::{self, PartOf};
use crate::e2e_agents::usual::{self, Usual};

pub const fn client(version: &'static str) -> Client {
    Client {
        id: "codex",
        title: "Codex",
        package: Package { name: "@openai/codex", version },
        program: "codex",
        dialect: &Responses,
        prepare,
        session,
        is_agent: |process| process.name == "codex",
        tools: Tools { shell, claim, delegate: Ok(delegate) },
        usage: More {
            checks: &[usage::CHECKS],
            play: |stage, checks| usage::play(stage, checks, PartOf::Itself, again),
        },
        more: Some(More { checks: &[usual::CHECKS], play }),
    }
}

fn prepare(scratch: &Scratch, model: &Model) -> Result {
    let mut settings = OpenOptions::new().append(true).open(scratch.home().join(".codex/config.toml"))?;
    write!(
        settings,
        "\n[model_providers.stand-in]\nname = \"stand-in\"\nbase_url = \"{}/v1\"\nwire_api = \"responses\"\n",
        model.address()
    )?;
    // It runs hooks and commands in a login shell, which sets its own PATH.
    let directory = scratch.program();
    let directory = directory.parent().ok_or("the program has no directory")?;
    let profile = format!("export PATH=\"{}:$PATH\"\n", directory.display());
    Ok(fs::write(scratch.home().join(".profile"), profile)?)
}

fn play(stage: &Stage, checks: &mut Checks) -> Result {
    usual::play(stage, checks, &Usual { editing, again, write, delegates_claim: Ok(()) })
}

fn session(command: &mut Command, _: &Model, prompt: &str) {
    exec(command, "stand-in").arg(prompt);
}

/// It offers its edit tool only to models that it knows.
fn editing(command: &mut Command, _: &Model, prompt: &str) {
    exec(command, "gpt-5.5").arg(prompt);
}

fn again(command: &mut Command, _: &Model, prompt: &str) {
    exec(command, "stand-in").args(["resume", "--last", prompt]);
}

fn exec<'c>(command: &'c mut Command, model: &str) -> &'c mut Command {
    // There is no user to trust the hooks with `/hooks`.
    command.args(["exec", "--dangerously-bypass-hook-trust", "--sandbox", "workspace-write"]).args([
        "--config",
        "model_provider=stand-in",
        "--model",
        model,
    ])
}

fn write(file: &Path) -> Say {
    let patch = format!("*** Begin Patch\n*** Add File: {}\n+text\n*** End Patch", file.display());
    Say::Call { tool: "apply_patch".to_owned(), input: json!(patch) }
}

fn shell(text: &str) -> Say {
    Say::Call { tool: "exec_command".to_owned(), input: json!({ "cmd": text }) }
}

fn claim(item: &str) -> Say {
    Say::Call { tool: "work_claim".to_owned(), input: json!({ "id": item }) }
}

fn delegate(prompt: &str) -> Say {
    Say::Call { tool: "spawn_agent".to_owned(), input: json!({ "message": prompt }) }
}
