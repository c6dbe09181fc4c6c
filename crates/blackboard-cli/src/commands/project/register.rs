//! `blackboard project register`

use std::path::{Component, Path, PathBuf};

use blackboard::Result;
use blackboard::project::RegisterProject;

use crate::commands::Run;
use crate::commands::arguments::{Project, Session, metadata};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::project::RegisteredProject;

/// Register or update a project
///
/// Registers a project that work items can belong to. Registering it again updates the given fields and keeps the
/// rest.
///
/// Examples:
///   blackboard project register pai-collab --name "PAI Collab" --path "$PWD"
///   blackboard project register pai-collab --repo owner/pai-collab
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Register {
    #[command(flatten)]
    project: Project,

    /// Name; required for a new project
    #[arg(long, allow_hyphen_values = true, value_name = "NAME")]
    name: Option<String>,

    /// Directory of the project
    #[arg(long, value_name = "PATH")]
    path: Option<String>,

    /// Repository, for example owner/repo
    #[arg(long, value_name = "REPO")]
    repo: Option<String>,

    /// Additional data, as a JSON object
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,

    #[command(flatten)]
    session: Session,
}

impl Run for Register {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (board, session) = context.open(Access::write(self.session.named()))?;
        let path = self.path.map(|path| absolute(&context.request().current_dir, &path));
        let missing = path.as_ref().filter(|path| !Path::new(path).exists()).cloned();
        let registered = board.projects().register(&RegisterProject {
            id: self.project.id(),
            name: self.name,
            path,
            repo: self.repo,
            metadata: metadata(self.metadata.as_deref())?,
            session,
        })?;
        context.note_text(&registered.text);
        if let Some(path) = missing {
            context.note(&format!("the path {path} does not exist"));
        }
        Ok(Outcome::new(RegisteredProject(registered)))
    }
}

/// The path as seen from the working directory. Links are kept: the path is shown to other agents, as the user wrote it.
fn absolute(current: &Path, path: &str) -> String {
    let mut absolute = PathBuf::new();
    for component in current.join(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                absolute.pop();
            }
            other => absolute.push(other),
        }
    }
    // A working directory that is not text has no place on the board.
    absolute.to_str().map_or_else(|| path.to_owned(), str::to_owned)
}
