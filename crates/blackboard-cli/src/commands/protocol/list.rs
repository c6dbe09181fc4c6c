//! `blackboard protocol list`

use blackboard::Result;

use crate::commands::Run;
use crate::commands::arguments::at_least_one;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::protocol::ProtocolList;
use crate::output::{ListPage, row_limit};

/// List protocols: agreements on what keys mean
///
/// Lists the built-in protocols, then those that were defined on the board. With --json, each has its messages with
/// their templates.
///
/// Examples:
///   blackboard protocol list
///   blackboard protocol list --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct List {
    /// Maximum number of results [default: 50 on a terminal, else all]
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one)]
    limit: Option<usize>,
}

impl Run for List {
    fn run(self, context: &Context) -> Result<Outcome> {
        let rows = context.open(Access::read())?.protocols().list()?;
        Ok(Outcome::new(ProtocolList(ListPage::first(rows, row_limit(self.limit, context.json())))))
    }
}
