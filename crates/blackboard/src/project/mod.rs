//! Projects: registered places of work.

mod activity;
mod at_path;
mod list;
mod register;
mod remove;
mod status;

use serde::Serialize;

pub use self::activity::{Activity, ProgressNote, ProjectIdentity, ProjectSelection};
pub use self::list::{ListedProject, ProjectWork};
pub use self::register::{RegisterProject, RegisteredProject};
pub use self::remove::RemovedProject;
pub use self::status::ProjectStatus;
use crate::board::Board;
use crate::clock::Timestamp;
use crate::error::{Code, Error, Refusal, Result};
use crate::hint::Hint;
use crate::metadata::Metadata;
use crate::revision::Revision;
use crate::store::record::record;
use crate::store::{Key, Range, Tx};

/// The projects of a board: `board.projects()`.
#[derive(Clone, Copy)]
pub struct Projects<'a> {
    pub(crate) board: &'a Board,
}

/// A registered place of work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Project {
    /// Its id, a short word.
    pub project_id: String,
    /// Its display name.
    pub display_name: String,
    /// Its path on disk.
    pub local_path: Option<String>,
    /// Its repository, for example `owner/repo`.
    pub remote_repo: Option<String>,
    /// When it was registered.
    pub registered_at: Timestamp,
    /// Its metadata.
    #[serde(serialize_with = "crate::metadata::or_empty")]
    pub metadata: Option<Metadata>,
    /// The event that changed it last.
    pub revision: Revision,
}

record! {
    Project in "projects", generation 0 {
        key { project_id }
        columns { display_name, local_path, remote_repo, registered_at, metadata, revision }
    }
    indexes {
        /// All projects, by id.
        ALL: by (project_id);
    }
}

impl Range {
    /// All projects.
    pub fn projects() -> Range {
        Range::all(Project::ALL)
    }
}

/// The project, or a refusal that hints at the list of projects.
pub(crate) fn known(tx: &dyn Tx, project: &str) -> Result<Project> {
    tx.row::<Project>(&Key::Project(project.to_owned()))?.ok_or_else(|| {
        Refusal::new(Code::ProjectNotFound, format!("project {project} not found"))
            .hint(Hint::ListProjects)
            .into()
    })
}

/// The project, or a refusal that hints at its registration.
pub(crate) fn existing(tx: &dyn Tx, project: &str) -> Result<Project> {
    tx.row::<Project>(&Key::Project(project.to_owned()))?.ok_or_else(|| not_found(project))
}

pub(crate) fn not_found(project: &str) -> Error {
    Refusal::new(Code::ProjectNotFound, format!("project {project} not found"))
        .hint(Hint::RegisterProject(project.to_owned()))
        .into()
}
