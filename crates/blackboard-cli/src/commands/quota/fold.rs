//! `blackboard quota fold`

use blackboard::Result;

use crate::commands::Run;
use crate::commands::arguments::Session;
use crate::context::Context;
use crate::outcome::{Nothing, Outcome};
use crate::quota::{Caller, existing_ledger};

/// Count what hooks have read, and announce passed thresholds
///
/// Moves usage that hooks have read to the ledger, and puts an event on the board for each threshold that a window has
/// passed. Prints nothing. Hooks start it, and every other command of the quota counts first, so it is rarely needed.
///
/// Examples:
///   blackboard quota fold
///   blackboard quota fold && blackboard observe --limit 5
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Fold {}

impl Run for Fold {
    fn run(self, context: &Context) -> Result<Outcome> {
        if let (_, Some(ledger)) = existing_ledger(context)? {
            Caller::find(context, &Session::default())?.announce(context, &ledger)?;
        }
        Ok(Outcome::new(Nothing))
    }
}
