//! `blackboard project status`

use blackboard::Result;

use crate::commands::Run;
use crate::commands::arguments::Project;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::project::ProjectDetails;

/// Show who works on a project, and on what
///
/// Examples:
///   blackboard project status pai-collab
///   blackboard project status --id pai-collab --json
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
