//! `blackboard work reassign`

use blackboard::Result;
use blackboard::work::Reassign as Reassigning;

use crate::commands::Run;
use crate::commands::arguments::{FenceArgument, Item, Session, fence};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::work::ReassignedItem;
use crate::quota::claims::{ItemQuota, release_claim};

/// Hand a work item over to another session
///
/// Moves the claim to the session in --to, with a new fence token; the old one is refused from then on. An available
/// item is claimed for that session. If the holder is a session that is neither yours nor the one in --to, the command
/// exits with 4 unless --force is given. Needs a session of your own, also with --force.
///
/// Examples:
///   blackboard work reassign design-schema --to Oak
///   blackboard work reassign design-schema --to Oak --reason "Oak knows SQL"
///   blackboard work reassign design-schema --to Ivy --force
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Reassign {
    #[command(flatten)]
    item: Item,

    /// Session that gets the item: id, prefix of 6 or more, or agent name
    #[arg(long, value_name = "SESSION")]
    to: String,

    /// Fence token printed by `work claim`, or $BLACKBOARD_FENCE
    #[arg(long, value_name = "N", value_parser = fence)]
    fence: Option<FenceArgument>,

    /// Reason
    #[arg(short = 'm', long, value_name = "TEXT", allow_hyphen_values = true)]
    reason: Option<String>,

    /// Reassign it even if a third session holds it
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
        if let Some(holder) = reassigned.previously_held_by_session.as_ref().filter(|_| reassigned.reassigned)
        {
            release_claim(ItemQuota::of(context)?.as_ref(), holder, &reassigned.item.item_id);
        }
        context.note_text(&reassigned.text);
        if !reassigned.ignored.is_empty() {
            let id = &reassigned.item.item_id;
            let holder = reassigned.item.holder_label().unwrap_or_else(|| "the session".to_owned());
            context.note(&format!("{holder} already holds work item {id}; ignored --reason"));
        }
        Ok(Outcome::new(ReassignedItem(reassigned)))
    }
}
