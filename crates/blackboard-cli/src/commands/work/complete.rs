//! `blackboard work complete`

use blackboard::Result;
use blackboard::work::Complete as Completion;

use crate::commands::Run;
use crate::commands::arguments::{FenceArgument, Item, Session, fence};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::work::CompletedItem;

/// Mark a work item as done
///
/// Only the session that holds it can do that. What waited for it last becomes available in the same step. With
/// --fence it is refused (exit 4) if the claim was lost and claimed again meanwhile.
///
/// Examples:
///   blackboard work complete design-schema
///   blackboard work complete --id design-schema --fence 42 --summary "Five tables, three indexes"
///   blackboard work complete fix-tests --fence work:fix-tests=42
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Complete {
    #[command(flatten)]
    item: Item,

    /// The fence of the claim
    #[arg(long, value_name = "N", value_parser = fence)]
    fence: Option<FenceArgument>,

    /// What came of it
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
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
