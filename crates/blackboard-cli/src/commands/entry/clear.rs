//! `blackboard clear`

use blackboard::Result;

use super::note_unclosed_class;
use crate::commands::Run;
use crate::commands::arguments::{ScopeOption, WriteOptions};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::entry::{ClearedEntries, WouldClear};

/// Delete all keys that match a pattern
///
/// Deletes all matching entries in one transaction. If another session holds one of them, nothing is deleted (exit
/// 4). --dry-run lists the keys.
///
/// Examples:
///   blackboard clear 'cache:*' --dry-run
///   blackboard clear 'cache:*'
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Clear {
    /// Pattern of the keys: * any characters, ? one, [abc] one of these; quote it
    #[arg(value_name = "PATTERN")]
    pattern: String,

    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    scope: ScopeOption,

    #[command(flatten)]
    acting: WriteOptions,
}

impl Run for Clear {
    fn run(self, context: &Context) -> Result<Outcome> {
        let scope = context.scope(&self.scope)?;
        let access = if self.dry_run { Access::plan } else { Access::change };
        let (board, session) = context.open(access(self.acting.session.named()))?;
        let scope = board.scope(&scope).acting_as(self.acting.by(session)?);
        note_unclosed_class(context, Some(&self.pattern));
        if self.dry_run {
            return Ok(Outcome::new(WouldClear(scope.plan_clear(&self.pattern)?)));
        }
        Ok(Outcome::new(ClearedEntries(scope.clear(&self.pattern)?)))
    }
}
