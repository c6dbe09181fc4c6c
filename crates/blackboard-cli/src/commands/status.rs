//! `blackboard status`

use blackboard::Result;
use blackboard::clock::{Clock, SystemClock};
use blackboard::work::{CountedItems, Status as WorkStatus, WorkFilter};

use super::Run;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::local_midnight;
use crate::output::status::{BoardOverview, ROWS_SHOWN};

/// Show a summary of the board
///
/// Shows the database, counts of agents, work items, entries and events, active agents and claimed work.
///
/// Examples:
///   blackboard status
///   blackboard status --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Status {}

impl Run for Status {
    fn run(self, context: &Context) -> Result<Outcome> {
        let board = context.open(Access::read())?;
        let resolved = context.resolve()?;
        let status = board.status_since(local_midnight(SystemClock.now()))?;
        let exists = resolved.engine.exists();
        let statuses = vec![WorkStatus::Claimed];
        let claimed = if context.json() {
            CountedItems::default()
        } else {
            board.work().list_counted(&WorkFilter {
                statuses,
                limit: Some(ROWS_SHOWN),
                ..WorkFilter::default()
            })?
        };
        let warn_size_bytes = resolved.config.database.warn_size_mb as u64 * 1024 * 1024;
        let is_large = status.database_size_bytes > warn_size_bytes;
        let room = if is_large { board.space_usage()? } else { Vec::new() };
        Ok(Outcome::new(BoardOverview {
            database: resolved.engine.name(),
            exists,
            warn_size_bytes,
            room,
            claimed,
            status,
        }))
    }
}
