//! Checks that most clients can pass besides the common story: shells know their session, sessions can be resumed,
//! edits of files that others hold are warned about or denied, and nothing breaks if our program is missing.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::check::Checks;
use super::model::{Model, Say, Turn};
use super::scratch::soon;
use super::story::{NEIGHBOR, Stage, ended, holds, prompt, text};
use crate::Result;

pub const CHECKS: &[&str] = &[DELEGATE_CLAIMED, SHELL, RESUMED, WARNED, DENIED, MISSING];

const DELEGATE_CLAIMED: &str = "item claimed by MCP for a subagent";
const SHELL: &str = "item claimed in the shell for that session";
const RESUMED: &str = "a resumed session is the same one again";
const WARNED: &str = "edit of a reserved file: warned";
const DENIED: &str = "fileGuard deny, reserved file: denied";
const MISSING: &str = "edits where blackboard is missing";

const WARNING: &str = "[blackboard] Another agent is working on a file you";
const DENIAL: &str = "[blackboard] Edit blocked: another agent is working on this file";

/// How to start a client for these checks.
pub struct Usual {
    /// A session that can edit files.
    pub editing: fn(&mut Command, &Model, prompt: &str),
    /// A session that resumes the last one.
    pub again: fn(&mut Command, &Model, prompt: &str),
    /// Whether the MCP server can distinguish subagents, or why not.
    pub delegates_claim: std::result::Result<(), &'static str>,
    /// Writes a new file.
    pub write: fn(&Path) -> Say,
}

/// Runs all of them. A failed story does not prevent the others.
pub fn play(stage: &Stage, checks: &mut Checks, usual: &Usual) -> Result {
    let stories = [has_a_part_done, goes_on, is_kept_from_editing, is_alone];
    let failed = stories.into_iter().filter_map(|story| story(stage, checks, usual).err());
    let errors: Vec<String> = failed.map(|error| error.to_string()).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors.join("; ").into()) }
}

/// A session whose subagent claims an item.
fn has_a_part_done(stage: &Stage, checks: &mut Checks, usual: &Usual) -> Result {
    const ITEM: &str = "part";
    const SCENE: &str = "SCENE-PART";
    let delegate = match (usual.delegates_claim, stage.client.tools.delegate) {
        (Ok(()), Ok(delegate)) => delegate,
        (Err(why), _) | (_, Err(why)) => {
            checks.absent(DELEGATE_CLAIMED, why);
            return Ok(());
        }
    };
    stage.scratch.board(&["work", "create", "--id", ITEM, "--title", ITEM])?;
    let mut scene = stage.start("SCENE-WHOLE")?;
    scene.turn()?.say(delegate(&prompt(SCENE)));
    stage.model.turn(SCENE)?.say((stage.client.tools.claim)(ITEM));
    let turn = stage.model.turn(SCENE)?;
    checks.see(DELEGATE_CLAIMED, || {
        let parent = scene.session()?;
        let mut agents = stage.scratch.agents()?;
        agents.retain(|agent| agent["parent_id"] == parent["session_id"]);
        let delegate = agents.pop().ok_or("the session has no delegate")?;
        holds(stage, ITEM, text(&delegate["session_id"]))
    });
    turn.done();
    scene.end()
}

/// A session that uses its shell, ends, and is resumed later.
fn goes_on(stage: &Stage, checks: &mut Checks, usual: &Usual) -> Result {
    const ITEM: &str = "shell";
    const SCENE: &str = "SCENE-SHELL";
    stage.scratch.board(&["work", "create", "--id", ITEM, "--title", ITEM])?;
    let mut scene = stage.start(SCENE)?;
    let turn = scene.turn()?;
    let session = scene.session()?;
    turn.say((stage.client.tools.shell)(&format!("blackboard work claim {ITEM}")));
    let turn = scene.turn()?;
    checks.see(SHELL, || holds(stage, ITEM, text(&session["session_id"])));
    turn.done();
    scene.end()?;
    soon(|| ended(stage, &session, "completed"))?;
    // The same scene: some clients keep the first prompt in the conversation, and some do not.
    let mut again = stage.start_as(SCENE, |command| (usual.again)(command, &stage.model, &prompt(SCENE)))?;
    let turn = again.turn()?;
    checks.see(RESUMED, || again.continues(&session));
    turn.done();
    again.end()
}

/// A session that edits files that another agent has reserved.
fn is_kept_from_editing(stage: &Stage, checks: &mut Checks, usual: &Usual) -> Result {
    let board = |arguments: &[&str]| stage.scratch.board(arguments);
    let config = stage.scratch.repository().join(".blackboard/config.json");
    let listed = board(&["agent", "list"])?;
    let listed = listed["items"].as_array().into_iter().flatten();
    let neighbor = listed.into_iter().find(|agent| agent["agent_name"] == NEIGHBOR);
    let neighbor = neighbor.ok_or("there is no other agent")?["session_id"].clone();
    for (check, scene, file, said, guard) in [
        (WARNED, "SCENE-WARNED", "warned.txt", WARNING, "warn"),
        (DENIED, "SCENE-DENIED", "denied.txt", DENIAL, "deny"),
    ] {
        board(&["file", "reserve", file, "--session", text(&neighbor)])?;
        fs::write(&config, format!("{{\"fileGuard\": \"{guard}\"}}"))?;
        let (turn, mut scene) = {
            let scene = stage.start_as(scene, |command| {
                (usual.editing)(command, &stage.model, &prompt(scene));
            })?;
            scene.turn()?.say((usual.write)(&stage.scratch.repository().join(file)));
            (scene.turn()?, scene)
        };
        checks.see(check, || {
            let is_written = stage.scratch.repository().join(file).exists();
            if is_written != (guard == "warn") {
                return Err(format!("the file is written: {is_written}").into());
            }
            model_reads(&turn, said, file)
        });
        turn.done();
        scene.end()?;
    }
    Ok(fs::remove_file(config)?)
}

/// Checks that the model reads something about a file.
fn model_reads(turn: &Turn, said: &str, file: &str) -> Result<String> {
    let start = turn.asked.text.rfind(said).ok_or_else(|| format!("the model does not read {said:?}"))?;
    let about = &turn.asked.text[start..];
    if !about.contains(&format!("{file}: reserved")) || !about.contains(NEIGHBOR) {
        return Err(format!("the model does not read who has {file}").into());
    }
    Ok(format!("the model reads who has {file}"))
}

/// A session of a user who has the settings but not the program.
fn is_alone(stage: &Stage, checks: &mut Checks, usual: &Usual) -> Result {
    let (program, aside) = (stage.scratch.program(), stage.scratch.program().with_extension("aside"));
    let file = stage.scratch.repository().join("alone.txt");
    let mut moved = Ok(());
    let mut scene = stage.start_as("SCENE-ALONE", |command| {
        (usual.editing)(command, &stage.model, &prompt("SCENE-ALONE"));
        moved = fs::rename(&program, &aside);
    })?;
    moved?;
    let played = scene.turn().and_then(|turn| {
        turn.say((usual.write)(&file));
        scene.turn()?.done();
        scene.end()
    });
    fs::rename(&aside, &program)?;
    checks.see(MISSING, || {
        played?;
        if file.exists() {
            Ok("the file is written".to_owned())
        } else {
            Err("the file is not written".into())
        }
    });
    Ok(())
}
