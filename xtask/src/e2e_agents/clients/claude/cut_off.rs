//! Usage of sessions that are killed, and of one that is forked.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::shell;
use crate::Result;
use crate::e2e_agents::check::Checks;
use crate::e2e_agents::model::Usage;
use crate::e2e_agents::story::{Scene, Stage, text};
use crate::e2e_agents::usage::{BySession, LedgerFile, in_transcript, shown};

pub const CHECKS: &[&str] = &[WAITING, ANSWERED, IN_TOOL, FORKED];

const WAITING: &str = "usage: kill -9 while it waits for the model";
const ANSWERED: &str = "usage: kill -9 right after an answer";
const IN_TOOL: &str = "usage: kill -9 while a tool runs";
const FORKED: &str = "usage: a forked session copies messages";

/// When a session is killed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    Waiting,
    Answered,
    InTool,
}

pub fn play(stage: &Stage, checks: &mut Checks) -> Result {
    let stage = &stage.another("user")?;
    let ledger = LedgerFile::create(&stage.scratch)?;
    let mut counted = BySession::new();
    for (check, scene, moment) in [
        (WAITING, "SCENE-CUT-WAITING", Moment::Waiting),
        (ANSWERED, "SCENE-CUT-ANSWERED", Moment::Answered),
        (IN_TOOL, "SCENE-CUT-IN-TOOL", Moment::InTool),
    ] {
        let session = cut(stage, scene, moment)?;
        checks.see(check, || {
            let messages = in_transcript(&transcript(&stage.scratch.home(), scene)?);
            let usage: Usage = messages.values().copied().sum();
            if !messages.is_empty() {
                counted.insert(session, usage);
            }
            ledger.has(&counted)?;
            // It writes its file a little later than it goes on, so a killed one lacks some of the last answers.
            let given = stage.model.given(scene);
            if messages.is_empty() || !messages.values().all(|usage| given.contains(usage)) {
                return Err(format!("the transcript has {messages:?}, the model gave {given:?}").into());
            }
            let given = given.len();
            Ok(format!("{} of {given} answers are in the transcript: {}", messages.len(), shown(&usage)))
        });
    }
    fork(stage, checks, &ledger, counted)
}

/// Starts a session and kills it. Returns its id.
fn cut(stage: &Stage, name: &str, moment: Moment) -> Result<String> {
    let mut scene = stage.start(name)?;
    let turn = scene.turn()?;
    let session = scene.session()?;
    turn.say(shell("true"));
    scene.turn()?.say(shell("true"));
    let turn = scene.turn()?;
    // It is answered only if the moment is after the answer.
    let waiting = match moment {
        Moment::Waiting => Some(turn),
        Moment::Answered => {
            turn.say(shell("true"));
            None
        }
        Moment::InTool => {
            turn.say(shell("sleep 30"));
            thread::sleep(Duration::from_secs(3));
            None
        }
    };
    kill(stage, &mut scene)?;
    drop(waiting);
    Ok(text(&session["session_id"]).to_owned())
}

fn kill(stage: &Stage, scene: &mut Scene<'_>) -> Result {
    let agent = scene.running.agent(stage.client.is_agent)?;
    scene.running.kill(agent)
}

/// A session, and a fork of it that continues the conversation in a file of its own.
fn fork(stage: &Stage, checks: &mut Checks, ledger: &LedgerFile<'_>, mut counted: BySession) -> Result {
    const SCENE: &str = "SCENE-FORKED";
    let mut first = stage.start(SCENE)?;
    let turn = first.turn()?;
    let session = first.session()?;
    turn.say(shell("true"));
    first.turn()?.done();
    first.end()?;
    let before = stage.model.given(SCENE);
    let mut second = stage.start_by(SCENE, |command| {
        command.args(["--continue", "--fork-session"]);
    })?;
    let turn = second.turn()?;
    let forked = second.session()?;
    turn.say(shell("true"));
    second.turn()?.done();
    second.end()?;
    checks.see(FORKED, || {
        let after: Usage = stage.model.given(SCENE)[before.len()..].iter().copied().sum();
        counted.insert(text(&session["session_id"]).to_owned(), before.iter().copied().sum());
        counted.insert(text(&forked["session_id"]).to_owned(), after);
        ledger.has(&counted)?;
        let copied = longest_transcript(&stage.scratch.home(), SCENE)?;
        let own = stage.model.given(SCENE).len() - before.len();
        Ok(format!("its file has {copied} messages, {own} of them its own: {}", shown(&after)))
    });
    Ok(())
}

/// The file of the session with this scene.
fn transcript(home: &Path, scene: &str) -> Result<String> {
    let found = transcripts(home)?.into_iter().find(|text| text.contains(scene));
    Ok(found.ok_or_else(|| format!("no transcript has the scene {scene}"))?)
}

/// How many messages the longest file of a scene has: that of a fork has those of its session and its own.
fn longest_transcript(home: &Path, scene: &str) -> Result<usize> {
    let found = transcripts(home)?.into_iter().filter(|text| text.contains(scene));
    Ok(found.map(|text| in_transcript(&text).len()).max().ok_or("the fork has no transcript")?)
}

/// The files of all sessions, without those of subagents.
fn transcripts(home: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for project in fs::read_dir(home.join(".claude/projects"))? {
        for file in fs::read_dir(project?.path())? {
            let file = file?.path();
            if file.extension().is_some_and(|extension| extension == "jsonl") {
                texts.push(String::from_utf8_lossy(&fs::read(file)?).into_owned());
            }
        }
    }
    Ok(texts)
}
