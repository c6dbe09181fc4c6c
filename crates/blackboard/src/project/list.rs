//! `project list`: lists projects.

use std::collections::HashMap;

use serde::Serialize;

use super::{Project, Projects};
use crate::agent::{Agent, ListedAgent};
use crate::error::Result;
use crate::store::{Prefetch, Range};

/// A project in a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListedProject {
    /// The project.
    #[serde(flatten)]
    pub project: Project,
    /// How many live agents it has.
    pub active_agents: usize,
    /// How many of them have a process that has ended.
    pub gone_agents: usize,
}

impl Projects<'_> {
    /// All projects, by id.
    ///
    /// ```
    /// # use blackboard::{Board, project::RegisterProject};
    /// # let board = Board::memory();
    /// board.projects().register(&RegisterProject::new("pai", "PAI"))?;
    /// assert_eq!(board.projects().list()?[0].active_agents, 0);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn list(&self) -> Result<Vec<ListedProject>> {
        let prefetch = [Prefetch::Range(Range::projects()), Prefetch::Range(Range::live_agents())];
        let (projects, agents) = self.board.read_list(&prefetch, |tx| {
            let agents = tx.rows::<Agent>(&Range::live_agents())?;
            Ok((tx.rows::<Project>(&Range::projects())?, agents))
        })?;
        let mut agents: Vec<_> = agents.into_iter().map(ListedAgent::unchecked).collect();
        agents.retain(|listed| listed.agent.project.is_some());
        self.board.agents().check_processes(&mut agents);
        let mut counts: HashMap<&str, (usize, usize)> = HashMap::new();
        for listed in &agents {
            let (active, gone) =
                counts.entry(listed.agent.project.as_deref().unwrap_or_default()).or_default();
            *active += 1;
            *gone += usize::from(listed.is_gone());
        }
        let listed = projects.into_iter().map(|project| {
            let (active_agents, gone_agents) =
                counts.get(project.project_id.as_str()).copied().unwrap_or_default();
            ListedProject { project, active_agents, gone_agents }
        });
        Ok(listed.collect())
    }
}
