//! `blackboard guard remove`

use blackboard::Result;

use super::hook::HookPaths;
use crate::commands::Run;
use crate::context::Context;
use crate::outcome::Outcome;
use crate::output::guard::RemovedHook;

/// Remove the commit guard
///
/// Restores the previous pre-commit hook byte for byte. A hook that was edited since is left unchanged.
///
/// Examples:
///   blackboard guard remove
///   blackboard guard remove --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Remove {}

impl Run for Remove {
    fn run(self, _context: &Context) -> Result<Outcome> {
        let place = HookPaths::to_remove()?;
        let removed = place.remove()?;
        Ok(Outcome::new(RemovedHook {
            hook: place.hook.display().to_string(),
            removed: removed.changed,
            restored: removed.restored,
        }))
    }
}
