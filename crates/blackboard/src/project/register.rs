//! `project register`: registers a project, or updates it.

use serde::Serialize;

use super::{Project, Projects};
use crate::agent::prefetch_agent;
use crate::clock::Timestamp;
use crate::error::{Code, Error, Refusal, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::hint::Hint;
use crate::metadata::Metadata;
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Prefetch};
use crate::text::{Cleaner, Kind, TextChanges, check_id};

/// A project to register.
#[derive(Clone, Debug, Default)]
pub struct RegisterProject {
    /// Its id.
    pub id: String,
    /// Its display name. An update may omit it.
    pub name: Option<String>,
    /// Its path on disk.
    pub path: Option<String>,
    /// Its repository.
    pub repo: Option<String>,
    /// Its metadata.
    pub metadata: Option<Metadata>,
    /// The session that registers it.
    pub session: Option<String>,
}

impl RegisterProject {
    /// A project with this id and name only.
    pub fn new(id: &str, name: &str) -> RegisterProject {
        RegisterProject { id: id.to_owned(), name: Some(name.to_owned()), ..RegisterProject::default() }
    }
}

/// The result of a registration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RegisteredProject {
    /// The project.
    #[serde(flatten)]
    pub project: Project,
    /// Whether this call registered it.
    pub created: bool,
    /// Whether this call changed it.
    pub updated: bool,
    /// The changes to its name.
    #[serde(flatten)]
    pub text: TextChanges,
}

impl Pending for RegisteredProject {
    fn resolve(&mut self, first: Revision) {
        self.project.resolve(first);
    }
}

impl Projects<'_> {
    /// Registers a project, or updates the given fields of an existing one.
    ///
    /// ```
    /// # use blackboard::{Board, project::RegisterProject};
    /// # let board = Board::memory();
    /// assert!(board.projects().register(&RegisterProject::new("pai", "PAI"))?.created);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn register(&self, request: &RegisterProject) -> Result<RegisteredProject> {
        let rules = &self.board.settings().text;
        rules.check_listed_id("project", &request.id)?;
        let mut cleaner = Cleaner::new(rules);
        let name = cleaner.maybe("name", Kind::Field, request.name.as_ref())?;
        let text = cleaner.changes();
        if name.as_deref() == Some("") {
            return Err(Error::invalid("the name of a project cannot be empty"));
        }
        for (what, text) in [("path", &request.path), ("repository", &request.repo)] {
            if text.as_ref().is_some_and(|text| text.is_empty() || text.len() > 4096) {
                return Err(Error::invalid(format!("the {what} of a project has 1 to 4096 bytes")));
            }
        }
        let addresses = request.path.iter().chain(&request.repo).map(String::as_str);
        rules.check_unaltered(addresses)?;
        rules.check_json(request.metadata.iter().map(Metadata::as_str))?;
        let request = RegisterProject { name, ..request.clone() };
        let key = Key::Project(request.id.clone());
        let mut prefetch = vec![Prefetch::Row(key.clone())];
        prefetch.extend(prefetch_agent(request.session.as_deref()));
        self.board.commit("project register", &prefetch, |tx| {
            let (mut changes, mut registered) = decide(&request, tx.row(&key)?, tx.now())?;
            registered.text.clone_from(&text);
            self.board.agents().record_activity_of(tx, request.session.as_deref(), &mut changes)?;
            Ok((changes, registered))
        })
    }
}

fn decide(
    request: &RegisterProject,
    before: Option<Project>,
    now: Timestamp,
) -> Result<(Changes, RegisteredProject)> {
    let mut project = match (&before, &request.name) {
        (Some(project), _) => project.clone(),
        (None, Some(name)) => {
            check_id("project", &request.id)?;
            Project {
                project_id: request.id.clone(),
                display_name: name.clone(),
                local_path: None,
                remote_repo: None,
                registered_at: now,
                metadata: None,
                revision: Revision::ZERO,
            }
        }
        (None, None) => {
            let refusal = Refusal::new(Code::InvalidValue, "a new project needs a name");
            return Err(refusal.hint(Hint::PassName).into());
        }
    };
    project.display_name = request.name.clone().unwrap_or(project.display_name);
    project.local_path = request.path.clone().or(project.local_path);
    project.remote_repo = request.repo.clone().or(project.remote_repo);
    project.metadata = request.metadata.clone().or(project.metadata);

    let mut changes = Changes::new();
    let created = before.is_none();
    let updated = before.is_some_and(|before| before != project);
    if created || updated {
        let (event_type, done) = if created {
            (EventType::ProjectRegistered, "registered")
        } else {
            (EventType::ProjectUpdated, "updated")
        };
        let summary = format!("Project \"{}\" {done}", project.display_name);
        project.revision = changes.event(
            NewEvent::new(event_type, TargetType::Project, &request.id, summary)
                .by(request.session.as_deref()),
        );
        changes.put(project.clone());
    }
    Ok((changes, RegisteredProject { project, created, updated, text: TextChanges::default() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_registered_once_and_updated_only_if_something_is_new() {
        let register = |request: &RegisterProject, before| decide(request, before, Timestamp::EPOCH);
        let pai = RegisterProject::new("pai", "PAI");
        let known = register(&pai, None).unwrap().1.project;
        let nameless = RegisterProject { name: None, ..pai.clone() };
        let with_path = RegisterProject { path: Some("/pai".to_owned()), ..nameless.clone() };
        for (request, before, expected) in [
            (&pai, None, Some((true, false))),
            (&pai, Some(&known), Some((false, false))),
            (&nameless, Some(&known), Some((false, false))),
            (&with_path, Some(&known), Some((false, true))),
            (&RegisterProject::new("pai", "Pi"), Some(&known), Some((false, true))),
            (&nameless, None, None),
        ] {
            let outcome = register(request, before.cloned()).ok().map(|(changes, registered)| {
                assert_eq!(changes.events.len(), changes.put.len());
                (registered.created, registered.updated)
            });
            assert_eq!(outcome, expected, "{request:?}, before: {before:?}");
        }
    }
}
