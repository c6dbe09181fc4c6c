//! `blackboard quota status`

use blackboard::Result;

use crate::commands::Run;
use crate::commands::arguments::Session;
use crate::context::Context;
use crate::outcome::{Nothing, Outcome};
use crate::output::quota::QuotaStatus;
use crate::quota::{Caller, existing_ledger, status_of};

/// Show budgets, usage and load of the token quota
///
/// Shows for each provider and window the budget, what was used and reserved, what remains, and when it frees up; the
/// current load; usage per agent and work item. A limit that the platform has reported replaces the sum of a window, and is
/// marked.
///
/// Examples:
///   blackboard quota status
///   blackboard quota status --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Status {
    /// Count what hooks have read, announce what was passed, and print nothing
    #[arg(long, hide = true)]
    fold_only: bool,
}

impl Run for Status {
    fn run(self, context: &Context) -> Result<Outcome> {
        if self.fold_only {
            if let (_, Some(ledger)) = existing_ledger(context)? {
                Caller::find(context, &Session::default())?.announce(context, &ledger)?;
            }
            return Ok(Outcome::new(Nothing));
        }
        let (_, status) = status_of(context)?;
        Ok(Outcome::new(QuotaStatus(status)))
    }
}
