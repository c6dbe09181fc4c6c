//! `project remove`: nobody works there any more.

use serde::Serialize;

use super::{Project, Projects, known};
use crate::error::{Code, Refusal, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Range, Wanted};
use crate::work::{Status, WorkItem};

/// A project that is registered no more.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RemovedProject {
    /// The project.
    #[serde(flatten)]
    pub project: Project,
    /// The work items that belong to no project now.
    pub detached_items: Vec<String>,
}

impl Pending for RemovedProject {
    fn resolve(&mut self, _first: Revision) {}
}

impl Projects<'_> {
    /// Removes a project. Its work items stay, without a project; unless forced, none of them may be open.
    ///
    /// ```
    /// # use blackboard::{Board, project::RegisterProject};
    /// # let board = Board::memory();
    /// board.projects().register(&RegisterProject::new("pai", "PAI"))?;
    /// assert!(board.projects().remove("pai", false, None)?.detached_items.is_empty());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn remove(&self, id: &str, force: bool, session: Option<&str>) -> Result<RemovedProject> {
        let wanted = [Wanted::Row(Key::Project(id.to_owned())), Wanted::Range(Range::work_of_project(id))];
        self.board.commit("project remove", &wanted, |tx| {
            let project = known(tx, id)?;
            let items = tx.rows::<WorkItem>(&Range::work_of_project(id))?;
            let open = items.iter().filter(|item| item.status != Status::Completed).count();
            if open > 0 && !force {
                return Err(Refusal::new(Code::InUse, format!("project {id} has {open} open work item(s)"))
                    .hint(format!("to remove it all the same: blackboard project remove {id} --force"))
                    .detail("open_items", open)
                    .into());
            }
            let mut changes = Changes::new();
            self.board.agents().saw_session(tx, session, &mut changes)?;
            let summary = format!("Project \"{}\" removed", project.display_name);
            let revision = changes.event(
                NewEvent::new(EventType::ProjectRemoved, TargetType::Project, id, summary).by(session),
            );
            let mut detached_items = Vec::new();
            for mut item in items {
                detached_items.push(item.item_id.clone());
                item.project_id = None;
                item.revision = revision;
                changes.put(item);
            }
            changes.remove(Key::Project(id.to_owned()));
            Ok((changes, RemovedProject { project, detached_items }))
        })
    }
}
