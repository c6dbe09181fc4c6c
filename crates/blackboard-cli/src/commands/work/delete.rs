//! `blackboard work delete`

use blackboard::Result;

use crate::commands::Run;
use crate::commands::arguments::{Item, Session};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::work::DeletedItem;
use crate::quota::claims::{ItemQuota, release_items};

/// Delete a work item
///
/// Refused (exit 4) while a session holds the item or it blocks other items, unless --force is given.
///
/// Examples:
///   blackboard work delete design-schema
///   blackboard work delete design-schema --force
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Delete {
    #[command(flatten)]
    item: Item,

    /// Delete it even if a session holds it or it blocks other items
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    session: Session,
}

impl Run for Delete {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (board, session) = context.open(Access::change(self.session.named()))?;
        let deleted = board.work().delete(&self.item.id(), self.force, session.as_deref())?;
        release_items(ItemQuota::of(context)?.as_ref(), [deleted.item_id.as_str()]);
        Ok(Outcome::new(DeletedItem(deleted)))
    }
}
