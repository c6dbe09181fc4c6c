//! `blackboard scope list`

use blackboard::Result;

use crate::commands::Run;
use crate::commands::arguments::at_least_one;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::scope::ScopeList;
use crate::output::{ListPage, row_limit};

/// List scopes
///
/// Lists the scopes that have policies or entries, with their number of entries.
///
/// Examples:
///   blackboard scope list
///   blackboard scope list --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct List {
    /// Maximum number of results [default: 50 on a terminal, else all]
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one)]
    limit: Option<usize>,
}

impl Run for List {
    fn run(self, context: &Context) -> Result<Outcome> {
        let rows = context.open(Access::read())?.scopes().list()?;
        Ok(Outcome::new(ScopeList(ListPage::first(rows, row_limit(self.limit, context.json())))))
    }
}
