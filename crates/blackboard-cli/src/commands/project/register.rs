//! `blackboard project register`

use blackboard::Result;
use blackboard::project::RegisterProject;

use crate::commands::Run;
use crate::commands::arguments::{Project, Session, metadata};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::project::RegisteredProject;

/// Register a project, or update it
///
/// Work items can belong to registered projects. Registering again changes what is given and keeps the rest.
///
/// Examples:
///   blackboard project register pai-collab --name "PAI Collab" --path "$PWD" --repo owner/pai-collab
///   blackboard project register --id pai-collab --repo owner/pai-collab
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Register {
    #[command(flatten)]
    project: Project,

    /// Its name for people; a new project needs one
    #[arg(long, allow_hyphen_values = true)]
    name: Option<String>,

    /// Where it lies on disk
    #[arg(long)]
    path: Option<String>,

    /// Where it comes from, such as owner/repo
    #[arg(long)]
    repo: Option<String>,

    /// A JSON object to store with it
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,

    #[command(flatten)]
    session: Session,
}

impl Run for Register {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (board, session) = context.open(Access::write(self.session.named()))?;
        let registered = board.projects().register(&RegisterProject {
            id: self.project.id(),
            name: self.name,
            path: self.path,
            repo: self.repo,
            metadata: metadata(self.metadata.as_deref())?,
            session,
        })?;
        context.note_text(&registered.text);
        Ok(Outcome::new(RegisteredProject(registered)))
    }
}
