//! `blackboard memory pending`

use blackboard::Result;

use crate::commands::Run;
use crate::commands::arguments::ReadAs;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::memory::PendingBatches;

/// Show records that need a summary
///
/// Prints batches of records, marked as data: those of a level that has 90 % of its tokens or too many records, and those
/// from which another level takes summaries. Write the summary with `memory compact`.
///
/// Examples:
///   blackboard memory pending
///   blackboard memory pending working --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Pending {
    /// Level of the records [default: all]
    #[arg(value_name = "LEVEL")]
    level: Option<String>,

    #[command(flatten)]
    reader: ReadAs,
}

impl Run for Pending {
    fn run(self, context: &Context) -> Result<Outcome> {
        let board = self.reader.apply(context.open(Access::read())?)?;
        Ok(Outcome::new(PendingBatches(board.memories().pending(self.level.as_deref())?)))
    }
}
