//! `blackboard delete`

use blackboard::{Result, Revision};

use crate::commands::Run;
use crate::commands::arguments::{ScopeOption, WriteOptions, revision};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::entry::DeletedEntry;

/// Delete a key
///
/// If there is no such key, that is not found (exit 3).
///
/// Examples:
///   blackboard delete signal:data_analyst
///   blackboard delete task:analyze_q4 --if-revision 12
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Delete {
    /// The key
    key: String,

    /// Only if the entry is at this revision
    #[arg(long, value_name = "N", value_parser = revision)]
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
