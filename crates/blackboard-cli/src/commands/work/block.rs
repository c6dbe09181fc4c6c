//! `blackboard work block`

use blackboard::Result;
use blackboard::work::Block as Blocking;

use crate::commands::Run;
use crate::commands::arguments::{Item, Session, trimmed};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::work::BlockedItem;

/// Make a work item wait for others
///
/// It can't be claimed until all of them are completed. Whoever holds it keeps it, and may release or unblock it, but
/// not complete it. Items may wait for ones that do not exist yet; circles are refused (exit 4).
///
/// Examples:
///   blackboard work block ship --blocked-by design-schema
///   blackboard work block --id ship --blocked-by run-tests,gh:owner/repo#78 --reason "Waiting for review"
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Block {
    #[command(flatten)]
    item: Item,

    /// What it waits for
    #[arg(long, value_name = "IDS", value_delimiter = ',', value_parser = trimmed::<String>, required = true)]
    blocked_by: Vec<String>,

    /// Why
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    reason: Option<String>,

    #[command(flatten)]
    session: Session,
}

impl Run for Block {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (board, session) = context.open(Access::change(self.session.named()))?;
        let (id, blocked_by, reason) = (self.item.id(), self.blocked_by, self.reason);
        let blocked = board.work().block(&Blocking { id, blocked_by, reason, session })?;
        context.note_text(&blocked.text);
        if !blocked.ignored.is_empty() {
            let id = &blocked.item.item_id;
            context.note(&format!("work item {id} is already blocked by these items; ignored --reason"));
        }
        Ok(Outcome::new(BlockedItem(blocked)))
    }
}
