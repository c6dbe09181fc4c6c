//! `blackboard work status`

use blackboard::Result;

use crate::commands::Run;
use crate::commands::arguments::Item;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::work::ItemDetails;
use crate::quota::claims::ItemQuota;
use crate::quota::item_tokens::tokens_of;

/// Show one work item with its history
///
/// Shows the item's fields, holder, blockers, the items it blocks, and its events. If a token quota is configured, also the
/// tokens that it has used, and an estimate from similar items.
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
        let details = board.work().status(&self.item.id())?;
        let tokens = tokens_of(ItemQuota::of(context)?.as_ref(), &board, &details.item);
        Ok(Outcome::new(ItemDetails(details, tokens)))
    }
}
