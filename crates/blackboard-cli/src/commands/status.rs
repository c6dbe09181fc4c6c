//! `blackboard status`

mod export;

use blackboard::Result;

use self::export::Export;
use super::Run;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::status::BoardOverview;
use crate::quota::QuotaReader;
use crate::zone;

/// Show a summary of the board, or export it for a hub
///
/// Shows the database, counts of agents, work items, entries and events, active agents and claimed work. With
/// a token quota, also what is used of it.
///
/// --export writes .collab/status.yaml, the report of this project to its hub: what its agents do, what git says, and
/// test results from the files that you name. No command is run, and paths and host names are left out. Without a
/// board the rest is written. The phase and the test results stay until you change them.
///
/// Examples:
///   blackboard status
///   blackboard status --json
///   blackboard status --export
///   blackboard status --export --phase build --tests junit.xml --tests lcov.info
///   blackboard status --export --stdout
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Status {
    #[command(flatten)]
    export: Export,
}

impl Run for Status {
    fn run(self, context: &Context) -> Result<Outcome> {
        if self.export.is_wanted() {
            return self.export.run(context);
        }
        let board = context.open(Access::read())?;
        let resolved = context.resolve()?;
        let status = board.status_since(zone::today())?;
        let exists = context.missing_board().is_none();
        let warn_size_bytes = resolved.config.database.warn_size_mb as u64 * 1024 * 1024;
        let is_large = status.database_size_bytes > warn_size_bytes;
        let room = if is_large { board.space_usage()? } else { Vec::new() };
        let reader = QuotaReader::of(&resolved.config, || context.request());
        let (quota, quota_error) = match reader.map(|reader| reader.status()) {
            Some(Ok(status)) => (Some(status), None),
            Some(Err(error)) => {
                context.note(&format!("the token quota is not shown: {error}"));
                (None, Some(error.to_string()))
            }
            None => (None, None),
        };
        Ok(Outcome::new(BoardOverview {
            database: resolved.engine.name(),
            exists,
            sealed: board.sealed()?,
            warn_size_bytes,
            room,
            quota,
            quota_error,
            status,
        }))
    }
}
