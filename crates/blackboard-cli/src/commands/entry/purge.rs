//! `blackboard purge`

use blackboard::{Code, Result};

use crate::commands::Run;
use crate::commands::arguments::{ScopeOption, WriteOptions};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::entry::{PurgedKey, WouldPurge};

/// Erase a key with its history
///
/// Erases the entry, its previous values, and copies of them in events. A deleted key can be purged too. Titles, notes
/// and agent names stay in the event log until it is pruned; replace a credential that was on a board.
///
/// Exits with 4 if another session holds the entry, and with 3 if the board has no record of the key. Exits with 6 if
/// old values may still be in files, for example because a reader is open; run it again.
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
        let access = if self.dry_run { Access::plan } else { Access::change };
        let (board, session) = context.open(access(self.acting.session.named()))?;
        let scope = board.scope(&scope).acting_as(self.acting.by(session)?);
        if self.dry_run {
            return Ok(Outcome::new(WouldPurge(scope.plan_purge(&self.key)?)));
        }
        let purged = scope.purge(&self.key)?;
        let is_erased = purged.scrubbed;
        if !context.update_search_index(&board)? {
            context.note("the search index has the purged words until the next search");
        }
        let outcome = Outcome::new(PurgedKey(purged));
        // The secret is still in the files: a script must not take that for success.
        Ok(if is_erased { outcome } else { outcome.that_means(Code::Busy) })
    }
}
