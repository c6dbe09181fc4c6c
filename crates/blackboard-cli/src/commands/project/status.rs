//! `blackboard project status`

use blackboard::Result;

use crate::commands::Run;
use crate::commands::arguments::Project;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::project::ProjectDetails;

/// Show a project's agents and work items
///
/// Shows the project, its active agents, and its open work items with all blockers.
///
/// Examples:
///   blackboard project status pai-collab
///   blackboard project status pai-collab --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Status {
    #[command(flatten)]
    project: Project,
}

impl Run for Status {
    fn run(self, context: &Context) -> Result<Outcome> {
        let board = context.open(Access::read())?;
        Ok(Outcome::new(ProjectDetails(board.projects().status(&self.project.id())?)))
    }
}
