//! `project remove`: removes a project.

use serde::Serialize;

use super::{Project, Projects, known};
use crate::agent::prefetch_agent;
use crate::error::{Code, Refusal, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::hint::Hint;
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Prefetch, Range};
use crate::work::{Status, WorkItem};

/// A removed project.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RemovedProject {
    /// The project.
    #[serde(flatten)]
    pub project: Project,
    /// The work items that now have no project.
    pub detached_items: Vec<String>,
}

impl Pending for RemovedProject {
    fn resolve(&mut self, _first: Revision) {}
}

impl Projects<'_> {
    /// Removes a project. Its work items stay, without a project. Unless forced, a project with open work items is
    /// refused.
    ///
    /// ```
    /// # use blackboard::{Board, project::RegisterProject};
    /// # let board = Board::memory();
    /// board.projects().register(&RegisterProject::new("pai", "PAI"))?;
    /// assert!(board.projects().remove("pai", false, None)?.detached_items.is_empty());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn remove(&self, id: &str, force: bool, session: Option<&str>) -> Result<RemovedProject> {
        let mut prefetch =
            vec![Prefetch::Row(Key::Project(id.to_owned())), Prefetch::Range(Range::work_of_project(id))];
        prefetch.extend(prefetch_agent(session));
        self.board.commit("project remove", &prefetch, |tx| {
            let project = known(tx, id)?;
            let items = tx.rows(&Range::work_of_project(id))?;
            let (mut changes, removed) = decide(project, items, force, session)?;
            self.board.agents().record_activity_of(tx, session, &mut changes)?;
            Ok((changes, removed))
        })
    }
}

fn decide(
    project: Project,
    items: Vec<WorkItem>,
    force: bool,
    session: Option<&str>,
) -> Result<(Changes, RemovedProject)> {
    let id = &project.project_id;
    let open = items.iter().filter(|item| item.status != Status::Completed).count();
    if open > 0 && !force {
        return Err(Refusal::new(
            Code::InUse,
            format!(
                "cannot remove project {id}: it has {open} open work item{}",
                if open == 1 { "" } else { "s" }
            ),
        )
        .hint(Hint::RemoveProjectAnyway(id.clone()))
        .detail("open_items", open)
        .into());
    }
    let mut changes = Changes::new();
    let summary = format!("Project \"{}\" removed", project.display_name);
    let revision =
        changes.event(NewEvent::new(EventType::ProjectRemoved, TargetType::Project, id, summary).by(session));
    let mut detached_items = Vec::new();
    for item in items {
        detached_items.push(item.item_id.clone());
        changes.put(WorkItem { project_id: None, revision, ..item });
    }
    changes.remove(Key::Project(id.clone()));
    Ok((changes, RemovedProject { project, detached_items }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::store::conformance::an_item;

    #[test]
    fn project_with_open_work_needs_force() {
        use Status::{Available, Blocked, Completed};
        for (items, force, expected) in [
            (&[][..], false, Ok(0)),
            (&[Completed, Completed], false, Ok(2)),
            (&[Completed, Available], false, Err(Code::InUse)),
            (&[Blocked], false, Err(Code::InUse)),
            (&[Completed, Available], true, Ok(2)),
        ] {
            let project = Project {
                project_id: "pai".to_owned(),
                display_name: "PAI".to_owned(),
                local_path: None,
                remote_repo: None,
                registered_at: Timestamp::EPOCH,
                metadata: None,
                revision: Revision::ZERO,
            };
            let of_project = items.iter().map(|&status| WorkItem { status, ..an_item("x") }).collect();
            let outcome = decide(project, of_project, force, None)
                .map(|(_, removed)| removed.detached_items.len())
                .map_err(|error| error.code());
            assert_eq!(outcome, expected, "{items:?}, force: {force}");
        }
    }
}
