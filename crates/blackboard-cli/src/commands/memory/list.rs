//! `blackboard memory list`

use blackboard::Result;

use crate::commands::Run;
use crate::commands::arguments::{ReadAs, at_least_one};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::memory::LevelList;
use crate::output::{ListPage, row_limit};

/// List the levels of memory and their rules
///
/// `blackboard memory map` also shows what is in them.
///
/// Examples:
///   blackboard memory list
///   blackboard memory list --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct List {
    /// Maximum number of results [default: 50 on a terminal, else all]
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one)]
    limit: Option<usize>,

    #[command(flatten)]
    reader: ReadAs,
}

impl Run for List {
    fn run(self, context: &Context) -> Result<Outcome> {
        let board = self.reader.apply(context.open(Access::read())?)?;
        let page = ListPage::first(board.memories().levels()?, row_limit(self.limit, context.json()));
        Ok(Outcome::new(LevelList(page)))
    }
}
