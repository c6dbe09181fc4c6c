//! `blackboard work delete`

use blackboard::Result;

use crate::commands::Run;
use crate::commands::arguments::{Item, Session};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::work::DeletedItem;

/// Delete a work item
///
/// Without --force not one that a session holds, or that others wait for (exit 4).
///
/// Examples:
///   blackboard work delete design-schema
///   blackboard work delete --id design-schema --force
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Delete {
    #[command(flatten)]
    item: Item,

    /// Also if a session holds it or others wait for it
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    session: Session,
}

impl Run for Delete {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (board, session) = context.open(Access::change(self.session.named()))?;
        let deleted = board.work().delete(&self.item.id(), self.force, session.as_deref())?;
        Ok(Outcome::new(DeletedItem(deleted)))
    }
}
