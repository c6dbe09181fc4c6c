//! `blackboard purge`

use blackboard::Result;
use blackboard::entry::Actor;

use crate::commands::Run;
use crate::commands::arguments::{ScopeOption, WriteOptions};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::entry::{PurgedKey, WouldPurge};

/// Erase a key with its history
///
/// Erases the entry, its previous values, and what events hold of them. A deleted key can be purged too. Exits with 4
/// if another session holds the entry, and with 3 if the key has neither a value nor a history.
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
            let (board, session) = context.open(Access::read_as(self.acting.session.named()))?;
            let by = Actor { author: self.acting.agent, session, fences, operation: None };
            return Ok(Outcome::new(WouldPurge(board.scope(&scope).acting_as(by).plan_purge(&self.key)?)));
        }
        let (board, session) = context.open(Access::change(self.acting.session.named()))?;
        let by = self.acting.by(session)?;
        Ok(Outcome::new(PurgedKey(board.scope(&scope).acting_as(by).purge(&self.key)?)))
    }
}
