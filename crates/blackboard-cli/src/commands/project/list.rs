//! `blackboard project list`

use blackboard::Result;

use crate::commands::Run;
use crate::commands::arguments::at_least_one;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::project::ProjectList;
use crate::output::{ListPage, row_limit};

/// List projects
///
/// Lists projects with their path, repository and number of active agents.
///
/// Examples:
///   blackboard project list
///   blackboard project list --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct List {
    /// Maximum number of results [default: 50 on a terminal, else all]
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one)]
    limit: Option<usize>,
}

impl Run for List {
    fn run(self, context: &Context) -> Result<Outcome> {
        let rows = context.open(Access::read())?.projects().list()?;
        Ok(Outcome::new(ProjectList(ListPage::first(rows, row_limit(self.limit, context.json())))))
    }
}
