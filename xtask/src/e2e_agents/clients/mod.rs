//! The clients, one file each. A file defines how to start its client and call its tools; the story (`story.rs`) is the
//! same for all of them.

pub mod ccusage;
mod claude;
mod codex;
mod copilot;
mod gemini;
pub mod inspector;
mod opencode;

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::check::Checks;
use super::model::{Dialect, Model, Say};
use super::process::Process;
use super::scratch::Scratch;
use super::story::Stage;
use crate::Result;

/// Every client with hooks, and the version that is tested.
pub const CLIENTS: &[Client] = &[
    claude::client("2.1.325"),
    codex::client("0.166.0"),
    gemini::client("0.61.0"),
    opencode::client("1.18.33"),
    copilot::client("1.0.102"),
];

/// A package of npm, in one version.
#[derive(Clone, Copy)]
pub struct Package {
    pub name: &'static str,
    pub version: &'static str,
}

/// A client.
pub struct Client {
    /// Its name for `--only` and for `blackboard setup`.
    pub id: &'static str,
    /// Its display name.
    pub title: &'static str,
    pub package: Package,
    /// Its program in the package.
    pub program: &'static str,
    /// The API with which it calls its model.
    pub dialect: &'static dyn Dialect,
    /// What its user would configure besides `blackboard setup`: a model's URL, trust.
    pub prepare: fn(&Scratch, &Model) -> Result,
    /// Arguments and environment of a session that answers one prompt and exits.
    pub session: fn(&mut Command, &Model, prompt: &str),
    /// Whether one of the client's processes is the agent itself.
    pub is_agent: fn(&Process) -> bool,
    pub tools: Tools,
    /// The checks of token usage.
    pub usage: More,
    /// Further checks, if any.
    pub more: Option<More>,
}

/// Stories of one client only.
pub struct More {
    /// Their checks, story by story.
    pub checks: &'static [&'static [&'static str]],
    pub play: fn(&Stage, &mut Checks) -> Result,
}

/// How the model calls the client's tools.
pub struct Tools {
    /// Runs a shell command.
    pub shell: fn(&str) -> Say,
    /// Claims a work item by our MCP server.
    pub claim: fn(&str) -> Say,
    /// Starts a subagent with a prompt, or why there is none.
    pub delegate: std::result::Result<fn(&str) -> Say, &'static str>,
}

/// Adds to the settings of a client what its user would have chosen.
fn edit_json(file: &Path, edit: impl FnOnce(&mut Value)) -> Result {
    let mut settings = serde_json::from_str(&fs::read_to_string(file)?)?;
    edit(&mut settings);
    Ok(fs::write(file, serde_json::to_string_pretty(&settings)?)?)
}
