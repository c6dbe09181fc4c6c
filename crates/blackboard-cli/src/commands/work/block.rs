//! `blackboard work block`

use blackboard::Result;
use blackboard::work::Block as Blocking;

use crate::commands::Run;
use crate::commands::arguments::{Item, Session, trimmed};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::work::BlockedItem;

/// Block a work item until others are completed
///
/// The item cannot be claimed until every item in --blocked-by is completed; a current holder keeps it but cannot
/// complete it. Blockers do not have to exist yet. Dependency cycles are refused (exit 4).
///
/// Examples:
///   blackboard work block ship-it --blocked-by design-schema
///   blackboard work block ship-it --blocked-by run-tests --reason "Flaky tests"
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Block {
    #[command(flatten)]
    item: Item,

    /// Ids of the blockers, separated by commas
    #[arg(long, value_name = "IDS", value_delimiter = ',', value_parser = trimmed::<String>, required = true)]
    blocked_by: Vec<String>,

    /// Reason
    #[arg(short = 'm', long, value_name = "TEXT", allow_hyphen_values = true)]
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
