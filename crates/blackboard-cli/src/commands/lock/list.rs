//! `blackboard lock list`

use blackboard::Result;

use crate::commands::Run;
use crate::commands::arguments::at_least_one;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::lock::LockList;
use crate::output::{ListPage, row_limit};

/// List locks and their holders
///
/// Lists each lock with its holder, fence token, age and note.
///
/// Examples:
///   blackboard lock list
///   blackboard lock list --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct List {
    /// Maximum number of results [default: 50 on a terminal, else all]
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one)]
    limit: Option<usize>,
}

impl Run for List {
    fn run(self, context: &Context) -> Result<Outcome> {
        let board = context.open(Access::read())?;
        let rows = board.locks().list()?;
        Ok(Outcome::new(LockList(ListPage::first(rows, row_limit(self.limit, context.json())))))
    }
}
