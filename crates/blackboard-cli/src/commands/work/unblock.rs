//! `blackboard work unblock`

use blackboard::Result;

use crate::commands::Run;
use crate::commands::arguments::{Item, Session, trimmed};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::work::UnblockedItem;

/// Remove blockers from a work item
///
/// Removes the blockers in --blocked-by, or all of them.
///
/// Examples:
///   blackboard work unblock ship-it
///   blackboard work unblock ship-it --blocked-by design-schema
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Unblock {
    #[command(flatten)]
    item: Item,

    /// Ids of the blockers to remove, separated by commas [default: all]
    #[arg(long, value_name = "IDS", value_delimiter = ',', value_parser = trimmed::<String>)]
    blocked_by: Vec<String>,

    #[command(flatten)]
    session: Session,
}

impl Run for Unblock {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (board, session) = context.open(Access::change(self.session.named()))?;
        let unblocked = board.work().unblock(&self.item.id(), &self.blocked_by, session.as_deref())?;
        if let [first, rest @ ..] = &unblocked.not_blockers[..] {
            let (ids, verb) = match rest {
                [] => (first.clone(), "was not a blocker"),
                _ => (unblocked.not_blockers.join(", "), "were not blockers"),
            };
            context.note(&format!("{ids} {verb} of {}", unblocked.item.item_id));
        }
        Ok(Outcome::new(UnblockedItem(unblocked)))
    }
}
