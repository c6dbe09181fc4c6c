//! `blackboard setup remove`

use blackboard::Result;

use super::{PlatformSelection, Run, SetupOptions, chosen, platforms};
use crate::context::Context;
use crate::outcome::Outcome;
use crate::output::setup::Done;
use crate::setup::{self, Change};

/// Disconnect agents from the board again
///
/// Takes out exactly what `setup` has put in. A file that nobody has changed since is as it was before, to the byte, and a
/// file that `setup` has made is gone.
///
/// Examples:
///   blackboard setup remove --dry-run
///   blackboard setup remove claude --yes
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Remove {
    /// The agent to disconnect; `all` are all that there are [default: all]
    #[arg(value_name = "AGENT", value_parser = platforms())]
    platform: Option<PlatformSelection>,

    #[command(flatten)]
    how: SetupOptions,
}

impl Run for Remove {
    fn run(self, context: &Context) -> Result<Outcome> {
        let dirs = setup::settings_dirs(context)?;
        let chosen = chosen("blackboard setup remove", self.platform, self.how.scope, |_| true)?;
        self.how.run(context, &dirs, &chosen, Change::to_remove, Done::Removed)
    }
}
