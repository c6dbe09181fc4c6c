//! `blackboard delete`

use blackboard::{Result, Revision};

use crate::commands::Run;
use crate::commands::arguments::{ScopeOption, WriteOptions, revision};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::entry::DeletedEntry;

/// Delete an entry
///
/// Exits with 3 if the key does not exist. Previous values stay in the history; `purge` erases them.
///
/// Examples:
///   blackboard delete counter
///   revision=$(blackboard read counter --json | jq .revision)
///   blackboard delete counter --if-revision "$revision"
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Delete {
    /// Key
    #[arg(value_name = "KEY")]
    key: String,

    /// Delete only if the entry has this revision
    #[arg(long, value_name = "REVISION", value_parser = revision)]
    if_revision: Option<Revision>,

    #[command(flatten)]
    scope: ScopeOption,

    #[command(flatten)]
    acting: WriteOptions,
}

impl Run for Delete {
    fn run(self, context: &Context) -> Result<Outcome> {
        let scope = context.scope(&self.scope)?;
        let (board, session) = context.open(Access::change(self.acting.session.named()))?;
        let by = self.acting.by(session)?;
        let scope = board.scope(&scope).acting_as(by);
        let deleted = match self.if_revision {
            Some(revision) => scope.delete_if_revision(&self.key, revision)?,
            None => scope.delete(&self.key)?,
        };
        Ok(Outcome::new(DeletedEntry(deleted)))
    }
}
