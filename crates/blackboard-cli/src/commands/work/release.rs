//! `blackboard work release`

use blackboard::Result;
use blackboard::work::Release as Releasing;

use crate::commands::Run;
use crate::commands::arguments::{FenceArgument, Item, Session, fence};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::work::ReleasedItem;
use crate::quota::claims::{ItemQuota, release_claim};

/// Release a claimed work item without completing it
///
/// Makes the item available to other agents. Releasing an unclaimed item is not an error. With --fence, only the
/// claim with that fence token is released.
///
/// With --failed, the release counts as a failure. After the third failure the item is on hold: it is blocked until
/// `work unblock` or `work reset`.
///
/// Examples:
///   blackboard work release design-schema
///   blackboard work release design-schema --failed --reason "Tests fail"
///   fence=$(blackboard work claim design-schema --json | jq .fence)
///   blackboard work release design-schema --fence "$fence"
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Release {
    #[command(flatten)]
    item: Item,

    /// Fence token printed by `work claim`, or $BLACKBOARD_FENCE
    #[arg(long, value_name = "N", value_parser = fence)]
    fence: Option<FenceArgument>,

    /// Count a failure; after the third one the item is on hold
    #[arg(long)]
    failed: bool,

    /// Reason
    #[arg(short = 'm', long, value_name = "TEXT", allow_hyphen_values = true)]
    reason: Option<String>,

    #[command(flatten)]
    session: Session,
}

impl Run for Release {
    fn run(self, context: &Context) -> Result<Outcome> {
        let id = self.item.id();
        let fence = self.fence.map(|fence| fence.of_work(&id)).transpose()?;
        let (board, session) = context.open(Access::act(self.session.named()))?;
        let released = board.work().release(&Releasing {
            id,
            session: session.clone(),
            fence,
            failed: self.failed,
            reason: self.reason,
        })?;
        release_claim(ItemQuota::of(context)?.as_ref(), &session, &released.item.item_id);
        context.note_text(&released.text);
        Ok(Outcome::new(ReleasedItem(released)))
    }
}
