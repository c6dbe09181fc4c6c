//! `project list`: lists projects.

use std::collections::HashMap;

use serde::Serialize;

use super::{Project, Projects};
use crate::agent::{Agent, ListedAgent};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::store::{Prefetch, Range};
use crate::work::{Status, WorkItem};

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
    /// How many work items it has of each status.
    #[serde(flatten)]
    pub work: ProjectWork,
    /// When one of its live agents was seen last, or one of its items was created, claimed or completed.
    pub last_activity: Option<Timestamp>,
}

/// The number of a project's work items of each status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProjectWork {
    /// Available ones.
    pub work_available: usize,
    /// Claimed ones.
    pub work_claimed: usize,
    /// Blocked ones.
    pub work_blocked: usize,
    /// Completed ones.
    pub work_completed: usize,
}

impl ProjectWork {
    fn count(&mut self, status: Status) {
        *match status {
            Status::Available => &mut self.work_available,
            Status::Claimed => &mut self.work_claimed,
            Status::Blocked => &mut self.work_blocked,
            Status::Completed => &mut self.work_completed,
        } += 1;
    }
}

/// What is known about a project from other rows.
#[derive(Clone, Copy, Default)]
struct ProjectFacts {
    active_agents: usize,
    gone_agents: usize,
    work: ProjectWork,
    last_activity: Option<Timestamp>,
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
        let ranges = [Range::projects(), Range::live_agents(), Range::work_items()];
        let prefetch = ranges.map(Prefetch::Range);
        let (projects, agents, items) = self.board.read_list(&prefetch, |tx| {
            let agents = tx.rows::<Agent>(&Range::live_agents())?;
            Ok((tx.rows::<Project>(&Range::projects())?, agents, tx.rows::<WorkItem>(&Range::work_items())?))
        })?;
        let mut agents: Vec<_> = agents.into_iter().map(ListedAgent::unchecked).collect();
        agents.retain(|listed| listed.agent.project.is_some());
        self.board.agents().check_processes(&mut agents);
        let mut facts: HashMap<&str, ProjectFacts> = HashMap::new();
        for listed in &agents {
            let fact = facts.entry(listed.agent.project.as_deref().unwrap_or_default()).or_default();
            fact.active_agents += 1;
            fact.gone_agents += usize::from(listed.is_gone());
            fact.last_activity = fact.last_activity.max(Some(listed.agent.last_seen_at));
        }
        for item in &items {
            let Some(project) = item.project_id.as_deref() else { continue };
            let fact = facts.entry(project).or_default();
            fact.work.count(item.status);
            let last = Some(item.created_at).max(item.claimed_at).max(item.completed_at);
            fact.last_activity = fact.last_activity.max(last);
        }
        let listed = projects.into_iter().map(|project| {
            let ProjectFacts { active_agents, gone_agents, work, last_activity } =
                facts.get(project.project_id.as_str()).copied().unwrap_or_default();
            ListedProject { project, active_agents, gone_agents, work, last_activity }
        });
        Ok(listed.collect())
    }
}
