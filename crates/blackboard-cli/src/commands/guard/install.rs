//! `blackboard guard install`

use blackboard::Result;

use super::hook::{HookPaths, Mode};
use crate::commands::Run;
use crate::context::Context;
use crate::outcome::Outcome;
use crate::output::guard::InstalledHook;

/// Install the commit guard for this repository
///
/// Installs a pre-commit hook that refuses commits of files that another session has reserved. An existing hook is
/// kept and runs first. If the board cannot be read, commits are allowed.
///
/// Examples:
///   blackboard guard install
///   blackboard guard install --warn
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Install {
    /// Report reserved files, and allow the commit
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
