//! `blackboard file list`

use blackboard::Result;
use blackboard::file::FileFilter;

use crate::commands::Run;
use crate::commands::arguments::at_least_one;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::file::FileList;
use crate::output::{ListPage, row_limit};

/// List reserved files and their holders
///
/// Lists each reserved pattern with its holder, mode, age, note and worktree.
///
/// Examples:
///   blackboard file list
///   blackboard file list --json
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
        let rows = board.files().list(&FileFilter::default())?;
        Ok(Outcome::new(FileList(ListPage::first(rows, row_limit(self.limit, context.json())))))
    }
}
