//! `blackboard setup remove`

use blackboard::Result;

use super::{PlatformSelection, Run, SetupOptions, chosen, platforms};
use crate::context::Context;
use crate::outcome::Outcome;
use crate::output::setup::SetupAction;
use crate::platforms::{PLATFORMS, Platform};
use crate::setup::{self, Action, BoardLocation, Change};

/// Disconnect agents and restore their settings
///
/// Removes exactly what `setup` added. Files that have not changed since are restored byte for byte; files that
/// `setup` created are deleted. The board that `setup --db` has configured stays, unless the same --db is given here.
///
/// Examples:
///   blackboard setup remove --dry-run
///   blackboard setup remove claude --yes
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Remove {
    /// Platform to disconnect [default: all]
    #[arg(value_name = "PLATFORM", value_parser = platforms())]
    platform: Option<PlatformSelection>,

    #[command(flatten)]
    how: SetupOptions,
}

impl Run for Remove {
    fn run(self, context: &Context) -> Result<Outcome> {
        let dirs = setup::settings_dirs(context)?;
        let chosen = chosen("blackboard setup remove", self.platform, self.how.settings, |_| true)?;
        let level = self.how.settings;
        let board = BoardLocation::named(context, level)?;
        let mut report =
            self.how.run(context, &dirs, &chosen, board, Change::to_remove, SetupAction::Removed)?;
        if report.board.as_ref().is_none_or(|board| board.change.action == Action::None) {
            report.board_kept = BoardLocation::configured(context);
        }
        let is_meant = |platform: &&Platform| match self.platform {
            Some(PlatformSelection::One(one)) => one.id == platform.id,
            None | Some(PlatformSelection::All) => true,
        };
        for platform in PLATFORMS.iter().filter(is_meant) {
            let levels = setup::other_levels(platform, &dirs, level);
            report.still_set_up.extend(levels.into_iter().map(|level| (platform, level)));
        }
        Ok(report.into_outcome())
    }
}
