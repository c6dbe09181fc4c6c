//! An interactive session at a terminal: it waits between prompts, and one process may have several sessions in turn.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::{claim, environment, shell, shell_claim};
use crate::Result;
use crate::e2e_agents::check::Checks;
use crate::e2e_agents::clients::edit_json;
use crate::e2e_agents::scratch::soon;
use crate::e2e_agents::story::{Scene, Stage, ended, holds, prompt, text};

pub const CHECKS: &[&str] = &[STARTED, WAITS, UPDATES, CLEARED, CLAIMED, LEFT];

const STARTED: &str = "at a terminal: registered with its PID, briefed";
const WAITS: &str = "idle while it waits for a prompt, then active";
const UPDATES: &str = "updates arrive once, with the next prompt";
const CLEARED: &str = "/clear begins another session of the process";
const CLAIMED: &str = "the new session claims through MCP and the shell";
const LEFT: &str = "/exit deregisters";

/// The scenes before and after `/clear`.
const TYPED: &str = "SCENE-TYPED";
const AFTER: &str = "SCENE-AFTER-CLEAR";

/// The title of a new work item.
const NEW: &str = "Mend the roof";

pub fn play(stage: &Stage, checks: &mut Checks) -> Result {
    for item in ["typed-mcp", "typed-shell"] {
        stage.scratch.board(&["work", "create", "--id", item, "--title", item])?;
    }
    accept_everything(stage)?;
    let allowed = ["--permission-mode", "default", "--allowedTools", "Bash,mcp__blackboard__work_claim"];
    let mut scene = stage.start_in_terminal(TYPED, &allowed, |command| environment(command, &stage.model))?;
    let session = scene.session()?;
    enter(&mut scene, &prompt(TYPED))?;
    let turn = scene.turn()?;
    checks.see(STARTED, || {
        scene.running.wait_for_agent(&session["pid"], stage.client.is_agent)?;
        if !turn.reads(text(&session["session_id"])) {
            return Err("the model does not read its session".into());
        }
        Ok("process and session are right".to_owned())
    });
    ended(stage, &session, "active")?;
    turn.done();
    let idle = soon(|| ended(stage, &session, "idle"));
    stage.scratch.board(&["work", "create", "--id", "typed-new", "--title", NEW])?;
    enter(&mut scene, "Go on.")?;
    let turn = scene.turn()?;
    let active = soon(|| ended(stage, &session, "active"));
    checks.see(WAITS, || {
        idle?;
        active?;
        Ok("by Stop and UserPromptSubmit".to_owned())
    });
    turn.say(shell("true"));
    let turn = scene.turn()?;
    checks.see(UPDATES, || match turn.asked.text.matches(NEW).count() {
        1 => Ok("an item that was created meanwhile".to_owned()),
        count => Err(format!("the model reads it {count} times").into()),
    });
    turn.done();
    soon(|| ended(stage, &session, "idle"))?;

    enter(&mut scene, "/clear")?;
    let mut second = Value::Null;
    checks.see(CLEARED, || {
        soon(|| ended(stage, &session, "completed"))?;
        second = soon(|| {
            let mut sessions = scene.sessions()?;
            sessions.retain(|agent| agent["session_id"] != session["session_id"]);
            sessions.pop().ok_or_else(|| "no session is registered after it".into())
        })?;
        if second["pid"] != session["pid"] {
            return Err(format!("it has the process {}", second["pid"]).into());
        }
        Ok("the first one is completed, the second has the same process".to_owned())
    });
    enter(&mut scene, &prompt(AFTER))?;
    let turn = stage.model.turn(AFTER)?;
    turn.say(claim("typed-mcp"));
    stage.model.turn(AFTER)?.say(shell_claim("typed-shell"));
    let turn = stage.model.turn(AFTER)?;
    checks.see(CLAIMED, || {
        let id = text(&second["session_id"]);
        if !turn.reads(id) {
            return Err("the model does not read its session".into());
        }
        holds(stage, "typed-mcp", id)?;
        holds(stage, "typed-shell", id)?;
        Ok("two items, and it was told its session".to_owned())
    });
    turn.done();
    soon(|| ended(stage, &second, "idle"))?;
    enter(&mut scene, "/exit")?;
    checks.see(LEFT, || {
        scene.end()?;
        soon(|| ended(stage, &second, "completed"))?;
        Ok("completed".to_owned())
    });
    Ok(())
}

/// Types a line. Text and the final key must not arrive together: that would be a paste.
fn enter(scene: &mut Scene<'_>, line: &str) -> Result {
    const AS_PEOPLE_TYPE: Duration = Duration::from_secs(1);
    thread::sleep(AS_PEOPLE_TYPE);
    scene.running.type_text(line)?;
    thread::sleep(AS_PEOPLE_TYPE);
    scene.running.type_text("\r")
}

/// Answers the questions that Claude Code asks at its first start.
fn accept_everything(stage: &Stage) -> Result {
    let project = stage.scratch.repository().display().to_string();
    edit_json(&stage.scratch.home().join(".claude.json"), |known| {
        known["hasCompletedOnboarding"] = json!(true);
        known["customApiKeyResponses"] = json!({"approved": [super::KEY], "rejected": []});
        known["projects"][&project]["hasTrustDialogAccepted"] = json!(true);
    })
}
