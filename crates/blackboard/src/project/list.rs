//! `project list`: lists projects.

use std::collections::HashMap;

use serde::Serialize;

use super::{Project, Projects};
use crate::agent::Agent;
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
        self.board.read_list(&prefetch, |tx| {
            let mut agents: HashMap<String, usize> = HashMap::new();
            for agent in tx.rows::<Agent>(&Range::live_agents())? {
                *agents.entry(agent.project.unwrap_or_default()).or_default() += 1;
            }
            let projects = tx.rows::<Project>(&Range::projects())?.into_iter();
            Ok(projects
                .map(|project| ListedProject {
                    active_agents: agents.get(&project.project_id).copied().unwrap_or(0),
                    project,
                })
                .collect())
        })
    }
}
