//! The agents with their holdings, parents, and whether they are overdue.

use std::collections::HashMap;

use super::list::{Judged, UNKNOWN};
use super::{Agent, AgentStatus, Agents};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::revision::Revision;
use crate::settings::Settings;
use crate::store::{Prefetch, Range};
use crate::work::{Status, WorkItem};

/// An agent in the overview.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenAgent {
    /// The session.
    pub agent: Agent,
    /// How many work items it holds.
    pub claimed_items: usize,
    /// The name of its parent.
    pub parent_name: Option<String>,
    /// Whether it has had no heartbeat for so long that the next sweep checks it.
    pub overdue: bool,
    /// The state of its process: `alive`, `dead`, or `unknown`. Always `unknown` if the session is stale or completed.
    pub process: &'static str,
}

/// The agents of a board.
#[derive(Clone, Debug, PartialEq)]
pub struct Overview {
    /// The agents, the last started first.
    pub agents: Vec<SeenAgent>,
    /// The board's revision when they were read.
    pub revision: Revision,
}

impl Agents<'_> {
    /// The agents with one of these statuses, the last started first.
    ///
    /// ```
    /// # use blackboard::{Board, agent::{AgentStatus, Register}};
    /// # let board = Board::memory();
    /// board.agents().register(&Register::named("Ivy"))?;
    /// let overview = board.agents().overview(AgentStatus::ALL)?;
    /// assert_eq!((overview.agents[0].claimed_items, overview.agents[0].overdue), (0, false));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn overview(&self, statuses: &[AgentStatus]) -> Result<Overview> {
        let claimed = Range::work_queue(Status::Claimed);
        let prefetch =
            [Prefetch::Range(Range::agents()), Prefetch::Range(claimed.clone()), Prefetch::Revision];
        let mut overview = self.board.read_list(&prefetch, |tx| {
            let mut holds: HashMap<String, usize> = HashMap::new();
            for item in tx.rows::<WorkItem>(&claimed)? {
                *holds.entry(item.claimed_by.unwrap_or_default()).or_default() += 1;
            }
            let agents = tx.rows::<Agent>(&Range::agents())?;
            let names: HashMap<String, String> =
                agents.iter().map(|agent| (agent.session_id.clone(), agent.agent_name.clone())).collect();
            let mut agents: Vec<SeenAgent> = agents
                .into_iter()
                .filter(|agent| statuses.contains(&agent.status))
                .map(|agent| SeenAgent {
                    claimed_items: holds.get(&agent.session_id).copied().unwrap_or(0),
                    parent_name: agent.parent_id.as_ref().and_then(|parent| names.get(parent)).cloned(),
                    overdue: is_overdue(&agent, tx.now(), self.board.settings()),
                    process: UNKNOWN,
                    agent,
                })
                .collect();
            agents.sort_by(|a, b| {
                let key = |seen: &SeenAgent| (seen.agent.started_at, seen.agent.session_id.clone());
                key(b).cmp(&key(a))
            });
            Ok(Overview { agents, revision: tx.revision()? })
        })?;
        let mut judged = Judged::new();
        for seen in &mut overview.agents {
            seen.process = self.judge(&seen.agent, &mut judged);
        }
        Ok(overview)
    }
}

fn is_overdue(agent: &Agent, now: Timestamp, settings: &Settings) -> bool {
    let threshold =
        if agent.shares_process { settings.delegate_stale_threshold } else { settings.stale_threshold };
    agent.status.is_live() && now.since(agent.last_seen_at) > threshold
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::conformance::an_agent;

    #[test]
    fn agent_without_heartbeat_beyond_the_threshold_is_overdue() {
        let settings = Settings::default();
        for (status, shares_process, seconds, expected) in [
            (AgentStatus::Active, false, 300, false),
            (AgentStatus::Active, false, 301, true),
            (AgentStatus::Idle, false, 301, true),
            (AgentStatus::Active, true, 301, false),
            (AgentStatus::Active, true, 1801, true),
            (AgentStatus::Stale, false, 9999, false),
            (AgentStatus::Completed, false, 9999, false),
        ] {
            let agent = Agent { status, shares_process, ..an_agent("a") };
            let now = agent.last_seen_at.plus(Duration::from_secs(seconds));
            assert_eq!(is_overdue(&agent, now, &settings), expected, "{status} after {seconds} s");
        }
    }
}
