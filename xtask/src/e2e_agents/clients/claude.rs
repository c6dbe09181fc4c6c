//! Claude Code.

mod cut_off;
mod nested;
mod scopes;
mod sub_agents;
mod terminal;
mod two_sessions;

use std::process::Command;

use serde_json::json;

use super::{Client, More, Package, Tools};
use crate::Result;
use crate::e2e_agents::check::Checks;
use crate::e2e_agents::model::anthropic::Messages;
use crate::e2e_agents::model::{Model, Say};
use crate::e2e_agents::scratch::soon;
use crate::e2e_agents::story::{Stage, ended, holds, text};
use crate::e2e_agents::usage::{self, PartOf};

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
        usage: More { checks: &[usage::CHECKS, cut_off::CHECKS], play: play_usage },
        more: Some(More {
            checks: &[
                &[SKILL, SHELL, RESUMED],
                sub_agents::CHECKS,
                nested::CHECKS,
                terminal::CHECKS,
                two_sessions::CHECKS,
                scopes::CHECKS,
            ],
            play,
        }),
    }
}

/// A placeholder for a key.
const KEY: &str = "none";

const SKILL: &str = "skill and tools offered to the model";
const SHELL: &str = "item claimed in the shell for that session";
const RESUMED: &str = "a resumed session is the same one again";

fn play(stage: &Stage, checks: &mut Checks) -> Result {
    let stories = [resumed, sub_agents::play, nested::play, terminal::play, two_sessions::play];
    // A failed story does not prevent the others.
    let errors: Vec<String> = stories
        .into_iter()
        .filter_map(|story| story(stage, checks).err())
        .map(|error| error.to_string())
        .collect();
    scopes::play(stage, checks);
    if errors.is_empty() { Ok(()) } else { Err(errors.join("; ").into()) }
}

fn play_usage(stage: &Stage, checks: &mut Checks) -> Result {
    let played = usage::play(stage, checks, PartOf::Itself, |command, model, prompt| {
        command.arg("--continue");
        session(command, model, prompt);
    });
    // A failed story does not prevent the other one.
    cut_off::play(stage, checks).and(played)
}

/// A session that uses its shell, ends, and is resumed later.
fn resumed(stage: &Stage, checks: &mut Checks) -> Result {
    const ITEM: &str = "shell";
    stage.scratch.board(&["work", "create", "--id", ITEM, "--title", ITEM])?;
    let mut scene = stage.start("SCENE-SHELL")?;
    let turn = scene.turn()?;
    let session = scene.session()?;
    checks.see(SKILL, || {
        for wanted in ["- blackboard: See what other coding agents", "mcp__blackboard__work_claim"] {
            if !turn.reads(wanted) {
                return Err(format!("the model does not read {wanted:?}").into());
            }
        }
        Ok("by the skill's description, and the names of the tools".to_owned())
    });
    turn.say(shell_claim(ITEM));
    let turn = scene.turn()?;
    checks.see(SHELL, || holds(stage, ITEM, text(&session["session_id"])));
    turn.done();
    scene.end()?;
    soon(|| ended(stage, &session, "completed"))?;
    let mut again = stage.start_by("SCENE-SHELL-AGAIN", |command| {
        command.arg("--continue");
    })?;
    // The resumed conversation contains the first scene first.
    let turn = stage.model.turn("SCENE-SHELL")?;
    checks.see(RESUMED, || again.continues(&session));
    turn.done();
    again.end()
}

fn session(command: &mut Command, model: &Model, prompt: &str) {
    environment(command, model);
    command.args(["--print", "--dangerously-skip-permissions", prompt]);
}

fn environment(command: &mut Command, model: &Model) {
    command
        .env("ANTHROPIC_BASE_URL", model.address())
        .env("ANTHROPIC_API_KEY", KEY)
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("DISABLE_AUTOUPDATER", "1")
        .env("DISABLE_TELEMETRY", "1")
        // It refuses to skip permissions for root, unless a variable says that it runs in a sandbox.
        .env("IS_SANDBOX", "1");
}

fn shell(text: &str) -> Say {
    Say::Call { tool: "Bash".to_owned(), input: json!({"command": text, "description": "A step"}) }
}

fn claim(item: &str) -> Say {
    Say::Call { tool: "mcp__blackboard__work_claim".to_owned(), input: json!({"id": item}) }
}

/// Claims in the shell, with the variable that the start of the session has exported.
fn shell_claim(item: &str) -> Say {
    shell(&format!("blackboard work claim {item} --session \"$BLACKBOARD_SESSION_ID\""))
}

fn delegate(prompt: &str) -> Say {
    let input = json!({"description": "A part", "prompt": prompt, "subagent_type": "general-purpose"});
    Say::Call { tool: "Agent".to_owned(), input }
}
