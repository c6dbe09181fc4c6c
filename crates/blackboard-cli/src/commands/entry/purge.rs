//! `blackboard purge`

use blackboard::entry::Actor;
use blackboard::{Code, Result};

use crate::commands::Run;
use crate::commands::arguments::{ScopeOption, WriteOptions};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::entry::{PurgedKey, WouldPurge};

/// Erase a key with its history
///
/// Erases the entry, its previous values, and what events hold of them. A deleted key can be purged too. Purges entries
/// only: texts of agents and work items stay in the event log, also after `work delete`.
///
/// Exits with 4 if another session holds the entry, and with 3 if the board has no record of the key. Exits with 6 if
/// an open reader prevents erasing old values from the file; run it again.
///
/// Examples:
///   blackboard purge task:q4 --dry-run
///   blackboard purge task:q4
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Purge {
    /// Key
    #[arg(value_name = "KEY")]
    key: String,

    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    scope: ScopeOption,

    #[command(flatten)]
    acting: WriteOptions,
}

impl Run for Purge {
    fn run(self, context: &Context) -> Result<Outcome> {
        let scope = context.scope(&self.scope)?;
        if self.dry_run {
            let fences = self.acting.fences.iter().map(|fence| fence.parse()).collect::<Result<_>>()?;
            let (board, session) = context.open(Access::plan(self.acting.session.named()))?;
            let by = Actor { author: self.acting.agent, session, fences, operation: None };
            return Ok(Outcome::new(WouldPurge(board.scope(&scope).acting_as(by).plan_purge(&self.key)?)));
        }
        let (board, session) = context.open(Access::change(self.acting.session.named()))?;
        let by = self.acting.by(session)?;
        let purged = board.scope(&scope).acting_as(by).purge(&self.key)?;
        let is_erased = purged.scrubbed;
        let outcome = Outcome::new(PurgedKey(purged));
        // The secret is still in the files: a script must not take that for success.
        Ok(if is_erased { outcome } else { outcome.that_means(Code::Busy) })
    }
}
