//! `blackboard page show`

use blackboard::Result;

use super::store_pages;
use crate::commands::Run;
use crate::commands::arguments::ReadAs;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::page::ShownPage;

/// Show a page with its entries
///
/// Prints the scope, the group and the size of a page, and its entries with author and age. A page whose entries change
/// gets another name: the old one is not found (exit 3).
///
/// Examples:
///   blackboard page show bb:default:other
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Show {
    /// Name of the page, its last part alone, or bb:SCOPE:GROUP for the only page of a group
    #[arg(value_name = "PAGE")]
    page: String,

    #[command(flatten)]
    reader: ReadAs,
}

impl Run for Show {
    fn run(self, context: &Context) -> Result<Outcome> {
        let board = self.reader.apply(context.open(Access::read())?)?;
        let page = board.pages().show(&self.page)?;
        let scopes = [page.scope.clone()];
        Ok(Outcome::new(ShownPage(page)).after_flush(move || store_pages(&board, &scopes)))
    }
}
