//! `project status`: a project with its agents and work.

use serde::Serialize;

use super::{Project, Projects, known};
use crate::agent::{Agent, ListedAgent};
use crate::error::Result;
use crate::store::{Key, Prefetch, Range};
use crate::work::{ListedItem, Status, WorkItem, with_blockers};

/// A project with its agents and its open work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProjectStatus {
    /// The project.
    #[serde(flatten)]
    pub project: Project,
    /// Its live agents.
    pub active_agents: Vec<ListedAgent>,
    /// Its open work items, P1 first, then oldest first.
    pub work_items: Vec<ListedItem>,
}

impl Projects<'_> {
    /// A project with its agents and its open work.
    ///
    /// ```
    /// # use blackboard::{Board, project::RegisterProject};
    /// # let board = Board::memory();
    /// board.projects().register(&RegisterProject::new("pai", "PAI"))?;
    /// assert!(board.projects().status("pai")?.work_items.is_empty());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn status(&self, id: &str) -> Result<ProjectStatus> {
        let prefetch = [
            Prefetch::Row(Key::Project(id.to_owned())),
            Prefetch::Range(Range::live_agents()),
            Prefetch::Range(Range::work_of_project(id)),
        ];
        let mut status = self.board.read_list(&prefetch, |tx| {
            let project = known(tx, id)?;
            let mut active_agents = tx.rows::<Agent>(&Range::live_agents())?;
            active_agents.retain(|agent| agent.project.as_deref() == Some(id));
            active_agents.sort_by_key(|agent| agent.started_at);
            let mut work_items = tx.rows::<WorkItem>(&Range::work_of_project(id))?;
            work_items.retain(|item| item.status != Status::Completed);
            work_items.sort_by_key(|item| (item.priority, item.created_at));
            let active_agents = active_agents.into_iter().map(ListedAgent::unchecked).collect();
            Ok(ProjectStatus { project, active_agents, work_items: with_blockers(tx, work_items)? })
        })?;
        self.board.agents().check_processes(&mut status.active_agents);
        Ok(status)
    }
}
