//! `blackboard work wait`

use blackboard::Result;
use blackboard::work::{Status, WaitForItem};

use crate::commands::Run;
use crate::commands::arguments::{Item, length, limit, trimmed};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::work::AwaitedItem;

/// Wait for a work item to be completed
///
/// Returns at once if the item already has one of the statuses; otherwise waits until it does, then prints the item.
/// Sweeps automatically, so an item that a stale agent holds becomes available. Exits with 6 when --timeout expires;
/// without it, waits indefinitely.
///
/// Examples:
///   blackboard work wait design-schema
///   blackboard work wait design-schema --timeout 10m
///   blackboard work wait design-schema --status available,completed
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Wait {
    #[command(flatten)]
    item: Item,

    /// Statuses to wait for, separated by commas: available, claimed, blocked, completed [default: completed]
    #[arg(long, value_name = "STATUSES", value_delimiter = ',', value_parser = trimmed::<Status>)]
    status: Vec<Status>,

    /// Give up after this long
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    timeout: Option<String>,
}

impl Run for Wait {
    fn run(self, context: &Context) -> Result<Outcome> {
        let timeout = length(self.timeout.as_deref())?;
        let _limit = limit(timeout);
        let (board, session) = context.open(Access::wait())?;
        let (id, statuses) = (self.item.id(), self.status);
        let item = board.work().wait(&WaitForItem { id, statuses, timeout, session })?;
        Ok(Outcome::new(AwaitedItem(item)))
    }
}
