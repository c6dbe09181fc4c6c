//! Connects the user's agents to the board: our entries in the settings of other programs.
//!
//! A [`Platform`](crate::platforms::Platform) defines what goes into which file, [`content`] computes a file with and
//! without our part, and [`change`] decides what to do with a file. Content of others is never touched: if a file
//! cannot be edited safely, setup skips it and prints what to add. `setup remove` restores files byte for byte.
//!
//! The commands in the settings contain neither a path nor a version of this program.

mod change;
mod command;
mod content;
mod diff;
mod files;
mod json;
mod mask;
mod shared;
mod target;
mod toml;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use blackboard::{Code, Refusal, Result};
pub use change::{Action, Change};
pub use content::{Content, State};
pub use json::Wanted;
pub use target::{Part, SettingsDirs, SettingsLevel, Target, grouped, servers, skill};

use crate::context::Context;

/// The directories that a call uses.
pub fn settings_dirs(context: &Context) -> Result<SettingsDirs> {
    let request = context.request();
    let Some(home) = &request.environment.user_home else {
        return Err(Refusal::new(Code::InvalidValue, "no home directory: HOME is not set")
            .hint("set HOME to the home directory of the user who runs the agents")
            .into());
    };
    let home = request.current_dir.join(home);
    let worktree = context.tree().map(|tree| PathBuf::from(tree.worktree)).ok();
    // Outside of a repository, the project is the current directory, never the complete machine.
    let worktree = worktree.filter(|worktree| worktree.parent().is_some());
    let project = worktree.unwrap_or_else(|| request.current_dir.clone());
    Ok(SettingsDirs::new(home, project, request.environment, request.current_dir))
}

/// Whether one file contains our part, for `setup status`.
pub fn state(target: &Target) -> std::result::Result<State, String> {
    let text = files::to_look_at(&target.file).map_err(|trouble| trouble.0)?;
    text.map_or(Ok(State::Missing), |text| target.content.state(&text).map_err(|trouble| trouble.0))
}
