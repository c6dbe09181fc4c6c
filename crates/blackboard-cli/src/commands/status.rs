//! `blackboard status`

use blackboard::Result;

use super::Run;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::status::BoardOverview;
use crate::zone;

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
        let status = board.status_since(zone::today())?;
        let exists = context.missing_board().is_none();
        let warn_size_bytes = resolved.config.database.warn_size_mb as u64 * 1024 * 1024;
        let is_large = status.database_size_bytes > warn_size_bytes;
        let room = if is_large { board.space_usage()? } else { Vec::new() };
        Ok(Outcome::new(BoardOverview {
            database: resolved.engine.name(),
            exists,
            sealed: board.sealed()?,
            warn_size_bytes,
            room,
            status,
        }))
    }
}
