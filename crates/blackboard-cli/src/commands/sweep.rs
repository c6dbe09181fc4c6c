//! `blackboard sweep`

use std::time::Duration;

use blackboard::Result;
use blackboard::sweep::Sweep as Sweeping;

use super::Run;
use crate::context::Context;
use crate::outcome::Outcome;
use crate::output::sweep::SweptBoard;

/// Find dead agents and free what they hold
///
/// Every command does that in passing; this one waits its turn, looks at everybody, and says what it did. An agent is
/// dead if it was silent for longer than the threshold and its process is gone.
///
/// Examples:
///   blackboard sweep
///   blackboard sweep --dry-run
///   blackboard sweep --threshold 60 --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Sweep {
    /// Only say what would happen
    #[arg(long)]
    dry_run: bool,

    /// Silent for this many seconds [default: 300, or as configured]
    #[arg(long, value_name = "SECONDS")]
    threshold: Option<u64>,
}

impl Run for Sweep {
    fn run(self, context: &Context) -> Result<Outcome> {
        let board = if self.dry_run { context.inspecting()? } else { context.operating()? };
        let keep_heartbeats = board.settings().keep_heartbeats;
        let swept = board.sweep(&Sweeping {
            threshold: self.threshold.map(Duration::from_secs),
            dry_run: self.dry_run,
            caller: None,
        })?;
        Ok(Outcome::new(SweptBoard { swept, dry_run: self.dry_run, keep_heartbeats }))
    }
}
