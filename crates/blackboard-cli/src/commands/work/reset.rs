//! `blackboard work reset`

use blackboard::Result;

use crate::commands::Run;
use crate::commands::arguments::{Item, Session};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::work::ResetItem;
use crate::quota::claims::{ItemQuota, release_claim};

/// Reset a work item so that it can be claimed again
///
/// Clears the claim or completion, whichever session it belongs to. The previous holder can no longer complete it.
/// Items that depend on it are blocked again.
///
/// Examples:
///   blackboard work reset design-schema
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Reset {
    #[command(flatten)]
    item: Item,

    #[command(flatten)]
    session: Session,
}

impl Run for Reset {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (board, session) = context.open(Access::change(self.session.named()))?;
        let reset = board.work().reset(&self.item.id(), session.as_deref())?;
        if let Some(holder) = &reset.previously_held_by_session {
            release_claim(ItemQuota::of(context)?.as_ref(), holder, &reset.item.item_id);
        }
        Ok(Outcome::new(ResetItem(reset)))
    }
}
