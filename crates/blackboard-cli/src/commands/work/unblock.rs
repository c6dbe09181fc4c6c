//! `blackboard work unblock`

use blackboard::Result;

use crate::commands::Run;
use crate::commands::arguments::{Item, Session, trimmed};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::work::UnblockedItem;

/// Make a work item wait no longer
///
/// For nothing at all, or no longer for what --blocked-by names.
///
/// Examples:
///   blackboard work unblock ship
///   blackboard work unblock --id ship --blocked-by run-tests
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Unblock {
    #[command(flatten)]
    item: Item,

    /// What it no longer waits for [default: everything]
    #[arg(long, value_name = "IDS", value_delimiter = ',', value_parser = trimmed::<String>)]
    blocked_by: Vec<String>,

    #[command(flatten)]
    session: Session,
}

impl Run for Unblock {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (board, session) = context.open(Access::change(self.session.named()))?;
        let unblocked = board.work().unblock(&self.item.id(), &self.blocked_by, session.as_deref())?;
        Ok(Outcome::new(UnblockedItem(unblocked)))
    }
}
