//! Two sessions in one repository: the second one edits files that the first one has reserved.

use std::fs;

use serde_json::json;

use super::shell;
use crate::Result;
use crate::e2e_agents::check::Checks;
use crate::e2e_agents::model::Say;
use crate::e2e_agents::story::{Scene, Stage};

pub const CHECKS: &[&str] =
    &[WARNED_RESERVED, WARNED_MCP, WARNED_EDITED, DENIED_RESERVED, DENIED_EDITED, FREED];

const WARNED_RESERVED: &str = "edit of a file reserved in the shell: warned";
const WARNED_MCP: &str = "edit of a file reserved by MCP: warned";
const WARNED_EDITED: &str = "edit of a file just edited: warned";
const DENIED_RESERVED: &str = "fileGuard deny, reserved file: denied";
const DENIED_EDITED: &str = "fileGuard deny, edited file: denied";
const FREED: &str = "notified when a denied file is released";

const WARNING: &str = "[blackboard] Another agent is working on a file you are about to edit.";
const DENIAL: &str = "[blackboard] Edit blocked: another agent is working on this file";

/// The name of the first session.
const HOLDER: &str = "Holder";

const BY_SHELL: &str = "by-shell.txt";
const BY_MCP: &str = "by-mcp.txt";
const EDITED: &str = "edited.txt";

pub fn play(stage: &Stage, checks: &mut Checks) -> Result {
    for file in [BY_SHELL, BY_MCP] {
        fs::write(stage.scratch.repository().join(file), "before\n")?;
    }
    let mut holder = stage.start_by("SCENE-HOLDER", |command| {
        command.env("BLACKBOARD_AGENT_NAME", HOLDER);
    })?;
    holder.turn()?.say(shell(&format!("blackboard file reserve {BY_SHELL}")));
    holder.turn()?.say(Say::Call {
        tool: "mcp__blackboard__hold".to_owned(),
        input: json!({"action": "reserve", "paths": [BY_MCP]}),
    });
    let path = stage.scratch.repository().join(EDITED);
    let input = json!({"file_path": path, "content": "before\n"});
    holder.turn()?.say(Say::Call { tool: "Write".to_owned(), input });
    // While this waits, the first session is running.
    let holding = holder.turn()?;

    let mut second = stage.start("SCENE-WARNED")?;
    for (check, file) in [(WARNED_RESERVED, BY_SHELL), (WARNED_MCP, BY_MCP), (WARNED_EDITED, EDITED)] {
        let tried = edit(stage, &second, file)?;
        checks.see(check, || {
            let line = tried.model_reads(WARNING, file)?;
            if !tried.is_changed {
                return Err("it was warned, but the edit did not happen".into());
            }
            Ok(line)
        });
    }
    second.end()?;

    fs::write(stage.scratch.repository().join(".blackboard/config.json"), r#"{"fileGuard": "deny"}"#)?;
    let mut third = stage.start("SCENE-DENIED")?;
    for (check, file) in [(DENIED_RESERVED, BY_SHELL), (DENIED_EDITED, EDITED)] {
        let tried = edit(stage, &third, file)?;
        checks.see(check, || {
            let line = tried.model_reads(DENIAL, file)?;
            if tried.is_changed {
                return Err("it was denied, but the edit happened".into());
            }
            Ok(line)
        });
    }
    holding.say(shell(&format!("blackboard file release {BY_SHELL}")));
    let holding = holder.turn()?;
    let turn = third.turn()?;
    turn.say(shell("true"));
    let turn = third.turn()?;
    checks.see(FREED, || {
        let updates = turn
            .asked
            .text
            .rfind("[blackboard] Updates from other agents:")
            .map(|start| &turn.asked.text[start..]);
        let line = updates.and_then(|updates| updates.lines().find(|line| line.contains(BY_SHELL)));
        Ok(line.ok_or("the model reads nothing of it")?.trim().to_owned())
    });
    turn.done();
    third.end()?;
    holding.done();
    holder.end()
}

/// The result of an edit.
struct Tried {
    /// What the model read after it.
    text: String,
    is_changed: bool,
}

impl Tried {
    /// The line about a file in what the model has read.
    fn model_reads(&self, what: &str, file: &str) -> Result<String> {
        let read = self.text.rfind(what).map(|start| &self.text[start..]);
        let read = read.ok_or_else(|| format!("the model does not read {what:?}"))?;
        let line =
            read.lines().find(|line| line.starts_with(&format!("- {file}: ")) && line.contains(HOLDER));
        Ok(line.ok_or_else(|| format!("the model does not read who has {file}"))?.to_owned())
    }
}

/// Lets a session read a file and change it. The next request is still waiting for an answer.
fn edit(stage: &Stage, scene: &Scene<'_>, file: &str) -> Result<Tried> {
    let path = stage.scratch.repository().join(file);
    let before = fs::read_to_string(&path)?;
    scene.turn()?.say(Say::Call { tool: "Read".to_owned(), input: json!({"file_path": path}) });
    let input = json!({"file_path": path, "old_string": before.trim(), "new_string": format!("{} and after", before.trim())});
    scene.turn()?.say(Say::Call { tool: "Edit".to_owned(), input });
    let turn = scene.turn()?;
    let text = turn.asked.text.clone();
    let is_changed = fs::read_to_string(&path)? != before;
    // The next edit asks for this turn.
    scene.put_back(turn);
    Ok(Tried { text, is_changed })
}
