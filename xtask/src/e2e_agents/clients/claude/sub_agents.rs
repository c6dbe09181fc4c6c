//! Two subagents of one session at the same time, in its process and with its environment.

use serde_json::Value;

use super::{delegate, shell};
use crate::Result;
use crate::e2e_agents::check::Checks;
use crate::e2e_agents::model::{Say, Turn};
use crate::e2e_agents::scratch::soon;
use crate::e2e_agents::story::{Stage, ended, holds, prompt, text};

pub const CHECKS: &[&str] = &[APART, ENDED];

const APART: &str = "two subagents at once claim for themselves";
const ENDED: &str = "the end of one of them ends only that";

const SCENES: [&str; 2] = ["SCENE-LEFT", "SCENE-RIGHT"];
const ITEMS: [&str; 2] = ["left", "right"];

pub fn play(stage: &Stage, checks: &mut Checks) -> Result {
    for item in ITEMS {
        stage.scratch.board(&["work", "create", "--id", item, "--title", item])?;
    }
    let mut parent = stage.start("SCENE-PARENT")?;
    // They run at the same time as their parent, whose next request comes at once.
    for scene in SCENES {
        parent.turn()?.say(delegate(&prompt(scene)));
    }
    let waiting = parent.turn()?;
    let (left, right) = (stage.model.turn(SCENES[0])?, stage.model.turn(SCENES[1])?);
    let session = parent.session()?;
    let (first, second) = (delegate_in(stage, &session, &left)?, delegate_in(stage, &session, &right)?);
    left.say(claim_as(ITEMS[0], &first));
    right.say(claim_as(ITEMS[1], &second));
    let (left, right) = (stage.model.turn(SCENES[0])?, stage.model.turn(SCENES[1])?);
    checks.see(APART, || {
        holds(stage, ITEMS[0], text(&first["session_id"]))?;
        holds(stage, ITEMS[1], text(&second["session_id"]))?;
        Ok("two items, each held by the one that was told its session".to_owned())
    });
    left.done();
    checks.see(ENDED, || {
        soon(|| ended(stage, &first, "completed"))?;
        holds(stage, ITEMS[1], text(&second["session_id"]))?;
        right.done();
        soon(|| ended(stage, &second, "completed"))?;
        Ok("the other one keeps its item until its own end".to_owned())
    });
    waiting.done();
    parent.end()
}

/// The delegate of a session whose id is in a request.
fn delegate_in(stage: &Stage, parent: &Value, turn: &Turn) -> Result<Value> {
    let mut agents = stage.scratch.agents()?;
    agents
        .retain(|agent| agent["parent_id"] == parent["session_id"] && turn.reads(text(&agent["session_id"])));
    match (agents.pop(), agents.len()) {
        (Some(agent), 0) => Ok(agent),
        (_, more) => Err(format!("a subagent reads the ids of {more} others, or not its own").into()),
    }
}

fn claim_as(item: &str, agent: &Value) -> Say {
    shell(&format!("blackboard work claim {item} --session {}", text(&agent["session_id"])))
}
