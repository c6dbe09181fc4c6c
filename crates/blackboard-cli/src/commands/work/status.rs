//! `blackboard work status`

use blackboard::Result;

use crate::commands::Run;
use crate::commands::arguments::Item;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::work::ItemDetails;

/// Show one work item with its history
///
/// Shows the item's fields, holder, blockers, the items it blocks, and its events.
///
/// Examples:
///   blackboard work status design-schema
///   blackboard work status design-schema --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Status {
    #[command(flatten)]
    item: Item,
}

impl Run for Status {
    fn run(self, context: &Context) -> Result<Outcome> {
        let board = context.open(Access::read())?;
        Ok(Outcome::new(ItemDetails(board.work().status(&self.item.id())?)))
    }
}
