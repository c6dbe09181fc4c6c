//! Connects the user's agents to the board: our entries in the settings of other programs.
//!
//! A [`Platform`](crate::platforms::Platform) defines what goes into which file, [`content`] computes a file with and
//! without our part, and [`change`] decides what to do with a file. Content of others is never touched: if a file
//! cannot be edited safely, setup skips it and prints what to add. `setup remove` restores files byte for byte.
//!
//! The commands in the settings contain neither a path nor a version of this program.

mod board;
mod change;
mod command;
mod content;
mod diff;
mod directories;
pub mod files;
mod json;
mod mask;
mod shared;
mod target;
mod toml;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use blackboard::{Code, Refusal, Result};
pub use board::BoardLocation;
pub use change::{Action, Change};
pub use content::{Content, State};
pub use directories::CreatedDirectories;
pub use json::Wanted;
pub use target::{Part, SettingsDirs, SettingsLevel, Target, grouped, servers, skill};

use crate::context::Context;
use crate::platforms::{PLATFORMS, Platform};

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

/// The files of a platform at each of its levels. In the home directory, the settings of the project are those of the
/// user, and are listed once.
pub fn targets_at_all_levels(platform: &Platform, dirs: &SettingsDirs) -> Vec<(SettingsLevel, Target)> {
    let levels = platform.settings.levels.iter();
    let at_level = |&level: &SettingsLevel| {
        (platform.settings.targets)(dirs, level).into_iter().map(move |target| (level, target))
    };
    let mut targets: Vec<_> = levels.flat_map(at_level).collect();
    let users = targets.iter().filter(|(level, _)| *level == SettingsLevel::User);
    let files: Vec<_> = users.map(|(_, target)| target.file.clone()).collect();
    targets.retain(|(level, target)| *level != SettingsLevel::Project || !files.contains(&target.file));
    targets
}

/// The levels other than `removed` at which a platform is set up.
pub fn other_levels(platform: &Platform, dirs: &SettingsDirs, removed: SettingsLevel) -> Vec<SettingsLevel> {
    let files: Vec<_> =
        (platform.settings.targets)(dirs, removed).into_iter().map(|target| target.file).collect();
    let mut levels = Vec::new();
    for (level, target) in targets_at_all_levels(platform, dirs) {
        // Local settings can be another part of the same file. The same file at the other two levels is the same part.
        let is_removed = level == removed
            || (![level, removed].contains(&SettingsLevel::Local) && files.contains(&target.file));
        let is_set_up = |target| state(target).is_ok_and(|state| state != State::Missing);
        if !is_removed && !levels.contains(&level) && is_set_up(&target) {
            levels.push(level);
        }
    }
    levels
}

/// Forgets the directories that setup created for these files, unless something of ours is still in them.
pub fn forget_directories<'a>(
    directories: &mut CreatedDirectories,
    files: impl IntoIterator<Item = &'a Path>,
    dirs: &SettingsDirs,
) {
    let is_there = |target: &Target| state(target) != Ok(State::Missing);
    let targets = PLATFORMS.iter().flat_map(|platform| targets_at_all_levels(platform, dirs));
    let used: Vec<_> =
        targets.filter(|(_, target)| is_there(target)).map(|(_, target)| target.file).collect();
    for file in files {
        directories.forget_parents(file, |directory| used.iter().any(|used| used.starts_with(directory)));
    }
}
