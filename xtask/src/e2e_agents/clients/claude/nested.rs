//! One agent starts another of its kind in its shell, which inherits its environment: they must be distinguished.

use serde_json::Value;

use super::{claim, shell, shell_claim};
use crate::Result;
use crate::e2e_agents::check::Checks;
use crate::e2e_agents::scratch::soon;
use crate::e2e_agents::story::{Scene, Stage, ended, holds, prompt, text};

pub const CHECKS: &[&str] = &[APART, OWN_CLAIMS, OUTLIVED];

const APART: &str = "an agent started in its shell has its own session";
const OWN_CLAIMS: &str = "both claim for themselves, by MCP and shell";
const OUTLIVED: &str = "the end of the inner one ends only that";

const INNER: &str = "SCENE-INNER";

/// The items: claimed by MCP and in the shell, first by the inner agent, then by the outer one.
const ITEMS: [&str; 4] = ["inner-mcp", "inner-shell", "outer-mcp", "outer-shell"];

pub fn play(stage: &Stage, checks: &mut Checks) -> Result {
    for item in ITEMS {
        stage.scratch.board(&["work", "create", "--id", item, "--title", item])?;
    }
    let mut outer = stage.start("SCENE-OUTER")?;
    let turn = outer.turn()?;
    let outer_session = outer.session()?;
    let program = stage.program.display();
    turn.say(shell(&format!("{program} --print --dangerously-skip-permissions '{}'", prompt(INNER))));

    let turn = stage.model.turn(INNER).map_err(|error| {
        let why = outer.turn().ok().and_then(|turn| turn.asked.text.lines().last().map(str::to_owned));
        format!("{error}; the shell said: {}", why.unwrap_or_default())
    })?;
    let mut inner_session = Value::Null;
    checks.see(APART, || {
        inner_session = another(stage, &outer, &outer_session)?;
        let processes = outer.running.agents(stage.client.is_agent)?;
        let registered = [&outer_session["pid"], &inner_session["pid"]];
        if registered.iter().map(|pid| pid.as_u64()).ne(processes.iter().map(|pid| Some(u64::from(*pid)))) {
            return Err(format!("the board has {registered:?}, the agents are {processes:?}").into());
        }
        if !turn.reads(text(&inner_session["session_id"])) {
            return Err("the inner one is not told its own session".into());
        }
        Ok("each with its own process, the inner one told its own session".to_owned())
    });
    turn.say(claim(ITEMS[0]));
    let turn = stage.model.turn(INNER)?;
    turn.say(shell_claim(ITEMS[1]));
    let turn = stage.model.turn(INNER)?;
    let inner = text(&inner_session["session_id"]);
    let claimed_inside = [holds(stage, ITEMS[0], inner), holds(stage, ITEMS[1], inner)];
    turn.done();
    stage.model.close(INNER);

    let turn = outer.turn()?;
    let outlived = soon(|| ended(stage, &inner_session, "completed"))
        .and_then(|_| ended(stage, &outer_session, "active"));
    turn.say(claim(ITEMS[2]));
    outer.turn()?.say(shell_claim(ITEMS[3]));
    let turn = outer.turn()?;
    checks.see(OWN_CLAIMS, || {
        let outer = text(&outer_session["session_id"]);
        let claimed_outside = [holds(stage, ITEMS[2], outer), holds(stage, ITEMS[3], outer)];
        for claimed in claimed_inside.into_iter().chain(claimed_outside) {
            claimed?;
        }
        Ok("four items, each held by the one that claimed it".to_owned())
    });
    checks.see(OUTLIVED, || {
        outlived?;
        Ok("the outer one stays active, and goes on".to_owned())
    });
    turn.done();
    outer.end()
}

/// The session that was registered during a scene, besides the scene's own.
fn another(stage: &Stage, scene: &Scene<'_>, own: &Value) -> Result<Value> {
    soon(|| {
        let mut others = scene.sessions()?;
        others.retain(|agent| agent["session_id"] != own["session_id"]);
        match (others.pop(), others.len()) {
            (Some(other), 0) => stage.agent(&other),
            (_, more) => Err(format!("{more} sessions more than one were registered").into()),
        }
    })
}
