//! `agent list`: who is here.

use std::collections::HashMap;

use serde::{Serialize, Serializer};

use super::{Agent, AgentStatus, Agents};
use crate::error::Result;
use crate::store::{Range, Wanted};

/// Which agents to list.
#[derive(Clone, Debug)]
pub struct AgentFilter {
    /// Those with one of these statuses.
    pub statuses: Vec<AgentStatus>,
    /// Those that work there.
    pub project: Option<String>,
}

impl Default for AgentFilter {
    /// Everybody who is alive.
    fn default() -> AgentFilter {
        AgentFilter { statuses: vec![AgentStatus::Active, AgentStatus::Idle], project: None }
    }
}

/// An agent in a list. For programs it is the agent: they see the tree by its `parent_id`.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedAgent {
    /// The session.
    pub agent: Agent,
    /// How deep it stands below the session that it works for.
    pub depth: usize,
}

impl Serialize for ListedAgent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.agent.serialize(serializer)
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
            self.board.read(&[Wanted::Range(range.clone())], |tx| tx.rows(&range))?;
        agents.retain(|agent| {
            filter.statuses.contains(&agent.status)
                && filter.project.as_ref().is_none_or(|project| agent.project.as_ref() == Some(project))
        });
        agents.sort_by(|a, b| (a.started_at, &a.session_id).cmp(&(b.started_at, &b.session_id)));
        Ok(as_tree(agents))
    }
}

/// Puts delegates after their parents. A delegate whose parent is not in the list stands on its own.
fn as_tree(agents: Vec<Agent>) -> Vec<ListedAgent> {
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
            listed.push(ListedAgent { agent, depth });
            waiting.extend(children[place].iter().rev().map(|&child| (child, depth + 1)));
        }
    }
    // Sessions that are left are their own ancestors, which no command can bring about, but other programs' SQL could.
    listed.extend(agents.into_iter().flatten().map(|agent| ListedAgent { agent, depth: 0 }));
    listed
}
