//! `blackboard page list`

use blackboard::Result;

use super::store_pages;
use crate::commands::Run;
use crate::commands::arguments::{ReadAs, at_least_one};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::page::PageList;
use crate::output::{ListPage, row_limit};

/// List the pages of mapped scopes
///
/// Lists each page with its scope, its group of entries and its size, as of now. With --json, each has its complete name.
/// If too many entries changed for one call, prints how many are not in the pages yet.
///
/// Examples:
///   blackboard page list
///   blackboard page list default --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct List {
    /// Name of a scope [default: all mapped scopes]
    #[arg(value_name = "SCOPE")]
    scope: Option<String>,

    /// Maximum number of results [default: 50 on a terminal, else all]
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one)]
    limit: Option<usize>,

    #[command(flatten)]
    reader: ReadAs,
}

impl Run for List {
    fn run(self, context: &Context) -> Result<Outcome> {
        let board = self.reader.apply(context.open(Access::read())?)?;
        let listed = board.pages().list(self.scope.as_deref())?;
        let (behind, revision) = (listed.behind(), listed.revision);
        let scopes: Vec<_> = listed.scopes.iter().map(|mapped| mapped.scope.clone()).collect();
        let pages = ListPage::first(listed.pages, row_limit(self.limit, context.json()));
        let answer = PageList { pages, scopes: listed.scopes, behind, revision };
        Ok(Outcome::new(answer).after_flush(move || store_pages(&board, &scopes)))
    }
}
