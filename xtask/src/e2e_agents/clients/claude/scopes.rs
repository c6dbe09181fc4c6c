//! `blackboard setup` works at the project and local settings levels as it does at the user level.

use std::fs;

use super::claim;
use crate::Result;
use crate::e2e_agents::check::Checks;
use crate::e2e_agents::story::{Stage, ended, holds, text};

pub const CHECKS: &[&str] = &[PROJECT, LOCAL];

const PROJECT: &str = "the same with setup --settings project";
const LOCAL: &str = "the same with setup --settings local";

pub fn play(stage: &Stage, checks: &mut Checks) {
    checks.see(PROJECT, || {
        let stage = stage.another("project")?;
        // The answer to Claude Code's question whether to use the project's server.
        let answers = stage.scratch.repository().join(".claude/settings.local.json");
        fs::write(answers, r#"{"enabledMcpjsonServers": ["blackboard"]}"#)?;
        works(&stage)
    });
    checks.see(LOCAL, || works(&stage.another("local")?));
}

/// A session registers, is briefed, claims and ends.
fn works(stage: &Stage) -> Result<String> {
    stage.scratch.board(&["work", "create", "--id", "scoped", "--title", "scoped"])?;
    let mut scene = stage.start("SCENE-SCOPED")?;
    let turn = scene.turn()?;
    let session = scene.session()?;
    let id = text(&session["session_id"]);
    if !turn.reads(id) {
        return Err("the model does not read its session".into());
    }
    turn.say(claim("scoped"));
    let turn = scene.turn()?;
    holds(stage, "scoped", id)?;
    turn.done();
    scene.end()?;
    ended(stage, &session, "completed")?;
    Ok("registered, briefed, claimed by MCP, deregistered".to_owned())
}
