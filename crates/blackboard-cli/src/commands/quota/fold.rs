//! `blackboard quota fold`

use blackboard::Result;

use crate::commands::Run;
use crate::context::Context;
use crate::outcome::Outcome;
use crate::output::quota::{FoldReport, FoldedUsage};
use crate::quota::{Caller, Folded, folded_ledger};

/// Count what hooks have read, and announce passed thresholds
///
/// Moves usage that hooks have read to the ledger, and puts an event on the board for each threshold that a window has
/// passed. Releases what sessions have reserved that have ended. Hooks start it, and every other command of the quota
/// counts first, so it is rarely needed.
///
/// Examples:
///   blackboard quota fold
///   blackboard quota fold && blackboard observe --limit 5
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Fold {}

impl Run for Fold {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (location, folded) = folded_ledger(context)?;
        let mut report = FoldReport::default();
        if let Some(Folded { ledger, recorded }) = folded {
            report.counted = recorded;
            let caller = Caller::without_session(context)?;
            report.released = caller.release_ended(&ledger, &location)?;
            report.announced = caller.announce(context, &ledger)?;
        }
        Ok(Outcome::new(FoldedUsage(report)))
    }
}
