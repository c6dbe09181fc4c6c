//! `blackboard quota status`

use blackboard::Result;

use crate::commands::Run;
use crate::context::Context;
use crate::outcome::Outcome;
use crate::output::quota::QuotaStatus;
use crate::quota::status_of;

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
pub struct Status {}

impl Run for Status {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (_, status) = status_of(context)?;
        Ok(Outcome::new(QuotaStatus(status)))
    }
}
