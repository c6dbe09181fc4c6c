//! `blackboard work reassign`

use blackboard::Result;
use blackboard::work::Reassign as Reassigning;

use crate::commands::Run;
use crate::commands::arguments::{FenceArgument, Item, Session, fence};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::work::ReassignedItem;

/// Hand a work item over to another session
///
/// In one step, the session that acts loses the item and the other one holds it, with a new fence. The old fence is refused
/// from then on. An available item is claimed for the other session; for a session that holds it already nothing changes.
/// An item that a third session holds is refused (exit 4), unless --force takes it from that session. Items that are
/// completed or blocked, and sessions that are not active, are refused also with --force (exit 4).
///
/// Examples:
///   blackboard work reassign design-schema --to 3a8153
///   blackboard work reassign --id design-schema --to 3a8153 --fence 42 --reason "Oak knows the tables"
///   blackboard work reassign design-schema --to "$BLACKBOARD_SESSION_ID" --force
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Reassign {
    #[command(flatten)]
    item: Item,

    /// The session that gets it: its id, or the first 6 characters or more
    #[arg(long, value_name = "SESSION")]
    to: String,

    /// The fence of the claim
    #[arg(long, value_name = "N", value_parser = fence)]
    fence: Option<FenceArgument>,

    /// Why
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    reason: Option<String>,

    /// Also if a third session holds it
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    session: Session,
}

impl Run for Reassign {
    fn run(self, context: &Context) -> Result<Outcome> {
        let id = self.item.id();
        let fence = self.fence.map(|fence| fence.of_work(&id)).transpose()?;
        let (board, session) = context.open(Access::act(self.session.named()))?;
        let (to, _) = board.agents().resolve(&self.to)?;
        let (reason, force) = (self.reason, self.force);
        let reassigned = board.work().reassign(&Reassigning { id, session, to, fence, reason, force })?;
        context.note_text(&reassigned.text);
        if !reassigned.ignored.is_empty() {
            let id = &reassigned.item.item_id;
            let holder = reassigned.previously_held_by.as_deref().unwrap_or("the session");
            context.note(&format!("{holder} already holds work item {id}; ignored --reason"));
        }
        Ok(Outcome::new(ReassignedItem(reassigned)))
    }
}
