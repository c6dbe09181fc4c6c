//! Token usage: the ledger has exactly the numbers that the stand-in model gave out, each once, for the right session.
//!
//! Every answer of a model has numbers of its own (`model/usage.rs`). The checks run in a home of their own, so that the
//! ledger has no other usage. Requests that a client makes for itself, such as for titles, are not counted on either side.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::check::Checks;
use super::model::{Model, Usage};
use super::scratch::{Scratch, soon};
use super::story::{Stage, ended, prompt, text};
use crate::Result;

pub const CHECKS: &[&str] = &[COUNTED, RESUMED];

const COUNTED: &str = "usage: the model's numbers, once, by session";
const RESUMED: &str = "usage: resumed, and all files read again";

const SCENE: &str = "SCENE-SPENT";
const PART: &str = "SCENE-SPENT-PART";

/// One provider, to which all models belong, and a window that never warns.
const QUOTA: &str = r#"{"quota": {"providers": {"all": {"windows": {"5h": {"budget": 1000000000000}}}}}}"#;

/// Whose usage that of a subagent is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PartOf {
    /// Its own.
    Itself,
    /// That of its session: the client does not say whose it is.
    Session,
}

/// The ledger of a home.
pub struct LedgerFile<'s> {
    scratch: &'s Scratch,
    /// Its directory.
    home: PathBuf,
}

/// What the ledger has for each session. It contains nothing else.
pub type BySession = BTreeMap<String, Usage>;

/// Runs the checks of a client. `again` starts a session that resumes the last one.
pub fn play(
    stage: &Stage,
    checks: &mut Checks,
    part_of: PartOf,
    again: fn(&mut Command, &Model, prompt: &str),
) -> Result {
    let stage = &stage.another("user")?;
    let ledger = LedgerFile::create(&stage.scratch)?;
    let (session, delegate) = spend(stage)?;
    let expected = || {
        let own: Usage = stage.model.given(SCENE).into_iter().sum();
        let part: Usage = stage.model.given(PART).into_iter().sum();
        match (&delegate, part_of) {
            (Some(delegate), PartOf::Itself) => {
                BySession::from([(session.clone(), own), (delegate.clone(), part)])
            }
            _ => BySession::from([(session.clone(), own + part)]),
        }
    };
    let answers = || stage.model.given(SCENE).len() + stage.model.given(PART).len();
    checks.see(COUNTED, || {
        let usage = ledger.has(&expected())?;
        Ok(format!("{} answers: {}", answers(), shown(&usage)))
    });
    ledger.forget_files()?;
    let mut resumed = stage.start_as(SCENE, |command| again(command, &stage.model, &prompt(SCENE)))?;
    resumed.turn()?.say((stage.client.tools.shell)("true"));
    resumed.turn()?.done();
    resumed.end()?;
    checks.see(RESUMED, || {
        let usage = ledger.has(&expected())?;
        Ok(format!("{} answers: {}", answers(), shown(&usage)))
    });
    Ok(())
}

/// A session that uses its shell and, if it can, a subagent that does so too. Returns both sessions.
fn spend(stage: &Stage) -> Result<(String, Option<String>)> {
    let tools = &stage.client.tools;
    let mut scene = stage.start(SCENE)?;
    let turn = scene.turn()?;
    let session = scene.session()?;
    turn.say((tools.shell)("true"));
    let turn = scene.turn()?;
    let mut part = None;
    if let Ok(delegate) = tools.delegate {
        turn.say(delegate(&prompt(PART)));
        stage.model.turn(PART)?.say((tools.shell)("true"));
        let turn = stage.model.turn(PART)?;
        let mut agents = stage.scratch.agents()?;
        agents.retain(|agent| agent["parent_id"] == session["session_id"]);
        let agent = agents.pop().ok_or("the session has no delegate")?;
        turn.done();
        soon(|| ended(stage, &agent, "completed"))?;
        part = Some(text(&agent["session_id"]).to_owned());
    } else {
        turn.done();
    }
    scene.end()?;
    Ok((text(&session["session_id"]).to_owned(), part))
}

impl LedgerFile<'_> {
    /// Configures a quota in a scratch home.
    pub fn create(scratch: &Scratch) -> Result<LedgerFile<'_>> {
        let written = scratch.board(&["quota", "init"])?;
        let file = PathBuf::from(text(&written["file"]));
        fs::write(&file, QUOTA)?;
        let home = file.parent().ok_or("the configuration has no directory")?.to_owned();
        Ok(LedgerFile { scratch, home })
    }

    /// Removes what is known about the files of the client, so that all of them are read from their start.
    pub fn forget_files(&self) -> Result {
        match fs::remove_dir_all(self.home.join("quota-transcripts")) {
            // A client whose plugin passes its messages on has no files.
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// What it has.
    fn usage(&self) -> Result<(Usage, BySession)> {
        let status = self.scratch.board(&["quota", "status"])?;
        let uncounted = status["uncounted"].as_array().is_some_and(|uncounted| !uncounted.is_empty());
        if uncounted {
            return Err(format!("messages are not counted: {}", status["uncounted"]).into());
        }
        let provider = &status["providers"][0];
        let total = Usage::in_status(&provider["windows"][0]["usage"]);
        let mut by_session = BySession::new();
        for agent in provider["agents"].as_array().into_iter().flatten() {
            let name = self.scratch.board(&["agent", "show", text(&agent["session"])])?;
            if agent["agent"] != name["agent_name"] {
                return Err(format!("{} is counted as {}", name["agent_name"], agent["agent"]).into());
            }
            let of = by_session.entry(text(&agent["session"]).to_owned()).or_default();
            *of = *of + Usage::in_status(&agent["usage"]);
        }
        Ok((total, by_session))
    }

    /// Checks that it has this soon, and nothing else. Returns the sum.
    pub fn has(&self, expected: &BySession) -> Result<Usage> {
        soon(|| {
            let (total, by_session) = self.usage()?;
            let sum: Usage = expected.values().copied().sum();
            if by_session == *expected && total == sum {
                // The hooks of this home: a line would be a failed reading.
                return self.scratch.hook_log().map_or(Ok(total), |lines| Err(lines.into()));
            }
            Err(format!("the ledger has {total:?}, {by_session:?}; the model gave {sum:?}, {expected:?}")
                .into())
        })
    }
}

/// Usage for a report.
pub fn shown(usage: &Usage) -> String {
    let Usage { input, cache_write, cache_read, output, reasoning } = usage;
    format!(
        "input {input}, cache write {cache_write}, cache read {cache_read}, output {output}, reasoning {reasoning}"
    )
}

/// The usage in a transcript of Claude Code, read without our program: each message once, by its last line.
pub fn in_transcript(transcript: &str) -> BTreeMap<String, Usage> {
    let lines = transcript.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let messages = lines.filter(|line| line["type"] == "assistant").map(|line| {
        let usage = &line["message"]["usage"];
        let of = |kind: &str| usage[kind].as_u64().unwrap_or_default();
        let reasoning = usage["output_tokens_details"]["thinking_tokens"].as_u64().unwrap_or_default();
        let usage = Usage {
            input: of("input_tokens"),
            cache_write: of("cache_creation_input_tokens"),
            cache_read: of("cache_read_input_tokens"),
            output: of("output_tokens") - reasoning,
            reasoning,
        };
        (text(&line["message"]["id"]).to_owned(), usage)
    });
    messages.collect()
}
