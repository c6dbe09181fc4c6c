//! `blackboard project remove`

use blackboard::Result;

use crate::commands::Run;
use crate::commands::arguments::{Project, Session};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::project::RemovedProject;

/// Remove a project
///
/// Its work items stay, without a project. Without --force none of them may be open (exit 4).
///
/// Examples:
///   blackboard project remove pai-collab
///   blackboard project remove --id pai-collab --force
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Remove {
    #[command(flatten)]
    project: Project,

    /// Also if it has open work items
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    session: Session,
}

impl Run for Remove {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (board, session) = context.open(Access::change(self.session.named()))?;
        let removed = board.projects().remove(&self.project.id(), self.force, session.as_deref())?;
        Ok(Outcome::new(RemovedProject(removed)))
    }
}
