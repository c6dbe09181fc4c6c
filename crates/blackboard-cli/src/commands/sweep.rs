//! `blackboard sweep`

use blackboard::Result;
use blackboard::sweep::Sweep as Sweeping;

use super::Run;
use super::arguments::length;
use crate::context::Context;
use crate::hooks::maintenance;
use crate::open::Access;
use crate::outcome::{Nothing, Outcome};
use crate::output::sweep::SweptBoard;

/// Find stale agents and release what they hold
///
/// An agent is stale when it has sent no heartbeat for longer than the threshold and its process is gone. Every
/// command sweeps automatically; this one checks all agents and prints the result.
///
/// Examples:
///   blackboard sweep
///   blackboard sweep --dry-run
///   blackboard sweep --threshold 5m --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Sweep {
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Time without a heartbeat: 90s, 15m, 1h; a bare number is seconds, 0 means any [default: 5m, or as
    /// configured]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    threshold: Option<String>,

    /// Maintain the board for hooks, and neither sweep nor prune
    #[arg(long, hide = true, conflicts_with_all = ["dry_run", "threshold"])]
    maintain_only: bool,
}

impl Run for Sweep {
    fn run(self, context: &Context) -> Result<Outcome> {
        if self.maintain_only {
            let board = context.open(Access::read_unswept())?;
            maintenance::maintain(&board, &*context.resolve()?.engine);
            return Ok(Outcome::new(Nothing));
        }
        let threshold = length(self.threshold.as_deref())?;
        let access = if self.dry_run { Access::read_unswept() } else { Access::change_unswept() };
        let board = context.open(access)?;
        let keep_heartbeats = board.settings().keep_heartbeats;
        let swept = board.sweep(&Sweeping { threshold, dry_run: self.dry_run, caller: None })?;
        Ok(Outcome::new(SweptBoard { swept, dry_run: self.dry_run, keep_heartbeats }))
    }
}
