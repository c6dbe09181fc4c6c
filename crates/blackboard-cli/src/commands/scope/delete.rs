//! `blackboard scope delete`

use blackboard::Result;
use blackboard::scope::DeleteScope;

use crate::commands::Run;
use crate::commands::arguments::Session;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::scope::DeletedScope;

/// Delete the policies of a scope
///
/// Deletes the policies and keeps the entries. With --entries, deletes the entries first, in batches. If another session
/// leases one of them, the command is refused (exit 4); entries that it deleted before stay deleted.
///
/// Examples:
///   blackboard scope delete cache
///   blackboard scope delete cache --entries
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Delete {
    /// Name of the scope
    #[arg(value_name = "NAME")]
    name: String,

    /// Delete its entries too
    #[arg(long)]
    entries: bool,

    #[command(flatten)]
    session: Session,
}

impl Run for Delete {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (board, session) = context.open(Access::change(self.session.named()))?;
        let deleted =
            board.scopes().delete(&DeleteScope { name: self.name, entries: self.entries, session })?;
        Ok(Outcome::new(DeletedScope(deleted)))
    }
}
