//! `blackboard setup status`

use blackboard::Result;

use super::Run;
use crate::context::Context;
use crate::outcome::Outcome;
use crate::output::setup::{PlatformStatus, SetupStatus, TargetStatus};
use crate::platforms::{PLATFORMS, Platform};
use crate::setup::{self, SettingsLevel};

/// Show which agents are connected
///
/// Shows for each platform whether it is installed, and what is set up in which file.
///
/// Examples:
///   blackboard setup status
///   blackboard setup status --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Status {}

impl Run for Status {
    fn run(self, context: &Context) -> Result<Outcome> {
        let dirs = setup::settings_dirs(context)?;
        let status_of = |platform: &'static Platform| {
            let scopes = platform.settings.levels.iter();
            let targets = scopes.flat_map(|&scope| {
                (platform.settings.targets)(&dirs, scope).into_iter().map(move |target| {
                    let state = setup::state(&target);
                    TargetStatus { scope, part: target.part, file: target.file, state }
                })
            });
            let mut targets: Vec<TargetStatus> = targets.collect();
            // In the home directory, the settings of the project are those of the user.
            let users: Vec<_> = targets.iter().filter(|target| target.scope == SettingsLevel::User).collect();
            let files: Vec<_> = users.into_iter().map(|target| target.file.clone()).collect();
            targets.retain(|target| target.scope != SettingsLevel::Project || !files.contains(&target.file));
            PlatformStatus { platform, installed: dirs.has(platform), targets }
        };
        let platforms = PLATFORMS.iter().map(status_of).collect();
        Ok(Outcome::new(SetupStatus { platforms, on_path: dirs.has_this_program() }))
    }
}
