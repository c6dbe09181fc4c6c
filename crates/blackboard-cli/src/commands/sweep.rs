//! `blackboard sweep`

use std::time::Duration;

use blackboard::agent::{AgentFilter, ShortIds};
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
/// command sweeps automatically; this one checks all agents and prints the result. A refused command sweeps a
/// holder whose process has been gone for 10 s, and retries.
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
        let gone = if context.json() { None } else { Some(gone_agents(&board, &swept, threshold, context)?) };
        Ok(Outcome::new(SweptBoard { swept, dry_run: self.dry_run, keep_heartbeats, gone }))
    }
}

/// The agents whose process has ended, and that the sweep keeps because their last heartbeat is too recent. Those that
/// cannot be read are reported already, and no command releases what they hold.
fn gone_agents(
    board: &Board,
    swept: &Swept,
    threshold: Option<Duration>,
    context: &Context,
) -> Result<GoneAgents> {
    let live = board.agents().list(&AgentFilter::default())?;
    // With `--threshold 0`, the time since the heartbeat is the only sign of life of these.
    let others_lose = live.iter().any(|listed| {
        listed.process == "unknown" || (listed.process == "alive" && listed.agent.shares_process)
    });
    // The command below has to name one of them.
    let sessions: Vec<_> = live.iter().map(|listed| listed.agent.session_id.clone()).collect();
    let ids = ShortIds::of(sessions.iter().map(String::as_str));
    let is_kept = |session: &str| {
        !swept.stale_agents.iter().any(|stale| stale.session_id == session)
            && !swept.skipped_agents.iter().any(|skipped| skipped.session_id == session)
    };
    let gone = live.into_iter().filter(|listed| listed.process == "dead");
    let agents: Vec<_> = gone.map(|listed| listed.agent).filter(|agent| is_kept(&agent.session_id)).collect();
    let first = agents.first().map(|agent| ids.shorten(&agent.session_id));
    let command = release_command(first.unwrap_or_default(), others_lose, threshold);
    Ok(GoneAgents { agents, command: context.given_options().command(command) })
}

/// The command that releases what a gone agent holds, and nothing of agents that are alive. It is never the one that was
/// just run.
fn release_command(session: &str, others_lose: bool, threshold: Option<Duration>) -> String {
    if others_lose || threshold == Some(Duration::ZERO) {
        format!("agent deregister --session {session}")
    } else {
        "sweep --threshold 0".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_never_the_command_that_was_run() {
        let (by_sweep, by_session) = ("sweep --threshold 0", "agent deregister --session 84a674b5");
        for (others_lose, threshold, expected) in [
            (false, None, by_sweep),
            (false, Some(90), by_sweep),
            (false, Some(0), by_session),
            (true, None, by_session),
            (true, Some(0), by_session),
        ] {
            let threshold = threshold.map(Duration::from_secs);
            assert_eq!(release_command("84a674b5", others_lose, threshold), expected, "{threshold:?}");
        }
    }
}
