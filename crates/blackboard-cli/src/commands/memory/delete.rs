//! `blackboard memory delete`

use blackboard::Result;
use blackboard::entry::Actor;

use crate::commands::Run;
use crate::commands::arguments::Session;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::memory::DeletedRecords;

/// Delete records
///
/// Deletes all of them in one transaction, or none. Their text stays in the history of their keys; `blackboard purge`
/// erases it.
///
/// Examples:
///   blackboard memory delete build --level semantic
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Delete {
    /// Keys of the records
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<String>,

    /// Level of the records [default: the only one that has the key]
    #[arg(long, value_name = "LEVEL")]
    level: Option<String>,

    #[command(flatten)]
    session: Session,
}

impl Run for Delete {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (board, session) = context.open(Access::change(self.session.named()))?;
        let actor = Actor { session, ..Actor::default() };
        let deleted = board.memories().delete(&self.keys, self.level.as_deref(), &actor)?;
        Ok(Outcome::new(DeletedRecords(deleted)))
    }
}
