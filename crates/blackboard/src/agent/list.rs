//! `agent list`: lists agents.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::{Agent, AgentStatus, Agents};
use crate::error::Result;
use crate::process::{Liveness, ProcessIdentity};
use crate::store::{Prefetch, Range};

/// Which agents to list.
#[derive(Clone, Debug)]
pub struct AgentFilter {
    /// Agents with one of these statuses.
    pub statuses: Vec<AgentStatus>,
    /// Agents of this project.
    pub project: Option<String>,
}

impl Default for AgentFilter {
    /// Active and idle agents.
    fn default() -> AgentFilter {
        AgentFilter { statuses: vec![AgentStatus::Active, AgentStatus::Idle], project: None }
    }
}

/// An agent in a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListedAgent {
    /// The session.
    #[serde(flatten)]
    pub agent: Agent,
    /// How deep it is below its parent session. JSON output shows the tree by `parent_id`.
    #[serde(skip)]
    pub depth: usize,
    /// The state of its process: `alive`, `dead`, or `unknown`. Always `unknown` if the session is stale or
    /// completed.
    pub process: &'static str,
}

impl ListedAgent {
    /// An agent whose process is not checked yet.
    pub(crate) fn unchecked(agent: Agent) -> ListedAgent {
        ListedAgent { agent, depth: 0, process: UNKNOWN }
    }

    /// Whether its process has ended although its session is live.
    pub fn is_gone(&self) -> bool {
        self.process == Liveness::Dead.as_str()
    }
}

impl Agents<'_> {
    /// The agents, oldest first, each followed by its delegates.
    ///
    /// ```
    /// # use blackboard::{Board, agent::{AgentFilter, Register}};
    /// # let board = Board::memory();
    /// board.agents().register(&Register::named("Ivy"))?;
    /// assert_eq!(board.agents().list(&AgentFilter::default())?.len(), 1);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn list(&self, filter: &AgentFilter) -> Result<Vec<ListedAgent>> {
        let range = if filter.statuses.iter().all(|status| status.is_live()) {
            Range::live_agents()
        } else {
            Range::agents()
        };
        let mut agents: Vec<Agent> =
            self.board.read_list(&[Prefetch::Range(range.clone())], |tx| tx.rows(&range))?;
        agents.retain(|agent| {
            filter.statuses.contains(&agent.status)
                && filter.project.as_ref().is_none_or(|project| agent.project.as_ref() == Some(project))
        });
        agents.sort_by(|a, b| (a.started_at, &a.session_id).cmp(&(b.started_at, &b.session_id)));
        let mut listed = as_tree(agents);
        self.check_processes(&mut listed);
        Ok(listed)
    }

    /// Checks whether the processes of these agents run.
    pub(crate) fn check_processes(self, listed: &mut [ListedAgent]) {
        let mut judged = Judged::new();
        for row in listed {
            row.process = self.judge(&row.agent, &mut judged);
        }
    }
}

/// Processes that were checked, by PID: several sessions may share one process, and two processes one PID.
pub(super) type Judged = BTreeMap<u32, Vec<(Option<ProcessIdentity>, Liveness)>>;

impl Agents<'_> {
    /// Whether the process of a session runs. A process that several sessions share is checked once. That of an ended
    /// session does not matter, and there may be thousands of such sessions.
    pub(super) fn judge(self, agent: &Agent, judged: &mut Judged) -> &'static str {
        let Some(pid) = agent.pid.filter(|_| agent.status.is_live()) else { return UNKNOWN };
        let judged = judged.entry(pid).or_default();
        if let Some((_, liveness)) = judged.iter().find(|(process, _)| *process == agent.process) {
            return liveness.as_str();
        }
        let liveness = self.process_of(agent);
        judged.push((agent.process.clone(), liveness));
        liveness.as_str()
    }
}

/// The state of a process that was not checked.
pub(super) const UNKNOWN: &str = "unknown";

/// Sorts delegates behind their parents. A delegate whose parent is not in the list is at the top level.
fn as_tree(agents: Vec<Agent>) -> Vec<ListedAgent> {
    if agents.iter().all(|agent| agent.parent_id.is_none()) {
        return agents.into_iter().map(ListedAgent::unchecked).collect();
    }
    let known: HashMap<String, usize> =
        agents.iter().enumerate().map(|(place, agent)| (agent.session_id.clone(), place)).collect();
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); agents.len()];
    let mut roots = Vec::new();
    for (place, agent) in agents.iter().enumerate() {
        match agent.parent_id.as_ref().and_then(|parent| known.get(parent)) {
            Some(&parent) if parent != place => children[parent].push(place),
            _ => roots.push(place),
        }
    }
    let mut agents: Vec<Option<Agent>> = agents.into_iter().map(Some).collect();
    let mut listed = Vec::with_capacity(agents.len());
    let mut waiting: Vec<(usize, usize)> = roots.into_iter().rev().map(|root| (root, 0)).collect();
    while let Some((place, depth)) = waiting.pop() {
        if let Some(agent) = agents[place].take() {
            listed.push(ListedAgent { depth, ..ListedAgent::unchecked(agent) });
            waiting.extend(children[place].iter().rev().map(|&child| (child, depth + 1)));
        }
    }
    // Sessions that remain are their own ancestors. No command creates such a cycle, but SQL of another program
    // could.
    listed.extend(agents.into_iter().flatten().map(ListedAgent::unchecked));
    listed
}
