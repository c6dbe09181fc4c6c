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
/// Removes the registration; its work items stay, without a project. Refused (exit 4) while it has open work items,
/// unless --force is given.
///
/// Examples:
///   blackboard project remove pai-collab
///   blackboard project remove pai-collab --force
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Remove {
    #[command(flatten)]
    project: Project,

    /// Remove it even if it has open work items
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
