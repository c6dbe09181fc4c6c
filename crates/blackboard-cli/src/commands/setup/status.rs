//! `blackboard setup status`

use blackboard::Result;

use super::Run;
use crate::context::Context;
use crate::outcome::Outcome;
use crate::output::setup::{PlatformStatus, SetupStatus, TargetStatus};
use crate::platforms::{PLATFORMS, Platform};
use crate::setup::{self, BoardLocation};

/// Show which agents are connected
///
/// Shows for each platform whether it is installed, and what is set up in which file; and the server of the board, if
/// `setup --db` has configured one. If a hook fails, hook.log next to
/// the board has the reason.
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
            let targets = setup::targets_at_all_levels(platform, &dirs).into_iter().map(|(scope, target)| {
                let state = setup::state(&target);
                TargetStatus { scope, part: target.part, file: target.file, state }
            });
            let targets = targets.collect();
            PlatformStatus { platform, installed: dirs.has(platform), targets }
        };
        let platforms = PLATFORMS.iter().map(status_of).collect();
        let board = BoardLocation::configured(context);
        Ok(Outcome::new(SetupStatus { platforms, on_path: dirs.has_this_program(), board }))
    }
}
