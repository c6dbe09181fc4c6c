//! `blackboard sweep`

use blackboard::agent::{AgentFilter, short_id};
use blackboard::sweep::{Sweep as Sweeping, Swept};
use blackboard::{Board, Result};

use super::Run;
use super::arguments::length;
use crate::context::Context;
use crate::hooks::maintenance;
use crate::open::Access;
use crate::outcome::{Nothing, Outcome};
use crate::output::sweep::{GoneAgents, SweptBoard};

/// Find stale agents and release what they hold
///
/// An agent is stale when it has sent no heartbeat for longer than the threshold and its process is gone. Every
/// command sweeps automatically; this one checks all agents and prints the result. A command that needs what a gone
/// process holds takes it 10 s after the last heartbeat.
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

    /// Time without a heartbeat: 90s, 15m, 1h; a bare number is seconds, 0 ignores the heartbeat [default: 5m,
    /// or as configured]
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
        // JSON has what the sweep did, and nothing else.
        let gone = if context.json() { None } else { Some(gone_agents(&board, &swept, context)?) };
        Ok(Outcome::new(SweptBoard { swept, dry_run: self.dry_run, keep_heartbeats, gone }))
    }
}

/// The agents whose process has ended, and that the sweep keeps because their last heartbeat is too recent.
fn gone_agents(board: &Board, swept: &Swept, context: &Context) -> Result<GoneAgents> {
    let live = board.agents().list(&AgentFilter::default())?;
    // With `--threshold 0`, the time since the heartbeat is the only sign of life of these.
    let others_lose = live.iter().any(|listed| {
        listed.process == "unknown" || (listed.process == "alive" && listed.agent.shares_process)
    });
    let is_kept = |session: &str| !swept.stale_agents.iter().any(|stale| stale.session_id == session);
    let gone = live.into_iter().filter(|listed| listed.process == "dead");
    let agents: Vec<_> = gone.map(|listed| listed.agent).filter(|agent| is_kept(&agent.session_id)).collect();
    let command = match agents.first() {
        Some(first) if others_lose => {
            format!("agent deregister --session {}", short_id(&first.session_id))
        }
        _ => "sweep --threshold 0".to_owned(),
    };
    Ok(GoneAgents { agents, command: context.given_options().command(command) })
}
