//! `blackboard work complete`

use blackboard::Result;
use blackboard::work::Complete as Completion;

use crate::commands::Run;
use crate::commands::arguments::{FenceArgument, Item, Session, fence};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::work::CompletedItem;

/// Complete a work item
///
/// Only the session that holds the item can complete it. Items that were blocked only by this one become available in
/// the same transaction. With --fence, exits with 4 if the session has lost the claim.
///
/// Examples:
///   blackboard work complete design-schema
///   blackboard work complete design-schema --summary "Five tables"
///   fence=$(blackboard work claim design-schema --json | jq .fence)
///   blackboard work complete design-schema --fence "$fence"
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Complete {
    #[command(flatten)]
    item: Item,

    /// Fence token printed by `work claim`, or $BLACKBOARD_FENCE
    #[arg(long, value_name = "N", value_parser = fence)]
    fence: Option<FenceArgument>,

    /// Result, shown with the item
    #[arg(short = 'm', long, value_name = "TEXT", allow_hyphen_values = true)]
    summary: Option<String>,

    #[command(flatten)]
    session: Session,
}

impl Run for Complete {
    fn run(self, context: &Context) -> Result<Outcome> {
        let id = self.item.id();
        let fence = self.fence.map(|fence| fence.of_work(&id)).transpose()?;
        let (board, session) = context.open(Access::act(self.session.named()))?;
        let completed = board.work().complete(&Completion { id, session, fence, summary: self.summary })?;
        context.note_text(&completed.text);
        Ok(Outcome::new(CompletedItem(completed)))
    }
}
