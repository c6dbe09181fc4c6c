//! `blackboard guard install`

use blackboard::Result;

use super::hook::{HookPaths, Mode};
use crate::commands::Run;
use crate::context::Context;
use crate::outcome::Outcome;
use crate::output::guard::InstalledHook;

/// Have git check every commit for files that others have reserved
///
/// Writes a pre-commit hook that runs `blackboard guard check`, for all worktrees of this repository. A hook that is there
/// already is kept as it is: it runs first, and `blackboard guard remove` puts it back. Whatever goes wrong with the
/// board or with this program, commits are not stopped; only a reservation of somebody else stops them. Where something
/// else looks after the hooks (core.hooksPath, husky, symbolic links), nothing is written, and the line to add is told.
///
/// Examples:
///   blackboard guard install
///   blackboard guard install --warn
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Install {
    /// Only tell of reserved files, and let them be committed
    #[arg(long)]
    warn: bool,
}

impl Run for Install {
    fn run(self, _context: &Context) -> Result<Outcome> {
        let mode = if self.warn { Mode::Warn } else { Mode::Refuse };
        let place = HookPaths::to_install()?;
        let installed = place.install(mode)?;
        Ok(Outcome::new(InstalledHook {
            hook: place.hook.display().to_string(),
            warn: self.warn,
            installed: installed.changed,
            chained: installed.chained,
        }))
    }
}
