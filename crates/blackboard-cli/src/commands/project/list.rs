//! `blackboard project list`

use blackboard::Result;

use crate::commands::Run;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::project::ProjectList;

/// List projects
///
/// Lists projects with their path, repository and number of active agents.
///
/// Examples:
///   blackboard project list
///   blackboard project list --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct List {}

impl Run for List {
    fn run(self, context: &Context) -> Result<Outcome> {
        Ok(Outcome::new(ProjectList(context.open(Access::read())?.projects().list()?)))
    }
}
