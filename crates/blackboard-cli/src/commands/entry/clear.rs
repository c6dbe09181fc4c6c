//! `blackboard clear`

use blackboard::Result;
use blackboard::entry::Query;

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
        if self.dry_run {
            let query = Query { pattern: Some(self.pattern), ..Query::default() };
            let keys = context.open(Access::read())?.scope(&scope).list(&query)?;
            let keys = keys.into_iter().map(|listed| listed.key).collect();
            return Ok(Outcome::new(WouldClear { scope, keys }));
        }
        let (board, session) = context.open(Access::change(self.acting.session.named()))?;
        let by = self.acting.by(session)?;
        Ok(Outcome::new(ClearedEntries(board.scope(&scope).acting_as(by).clear(&self.pattern)?)))
    }
}
