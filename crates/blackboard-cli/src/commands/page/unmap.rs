//! `blackboard page unmap`

use blackboard::Result;

use crate::commands::Run;
use crate::commands::arguments::Session;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::page::UnmappedScope;

/// Remove the pages of a mapped scope
///
/// Removes the pages of a scope; its entries stay. A scope that is not mapped is not an error.
///
/// Examples:
///   blackboard page unmap default
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Unmap {
    /// Name of the scope
    #[arg(value_name = "SCOPE")]
    scope: String,

    #[command(flatten)]
    session: Session,
}

impl Run for Unmap {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (board, session) = context.open(Access::change(self.session.named()))?;
        Ok(Outcome::new(UnmappedScope(board.pages().unmap(&self.scope, session.as_deref())?)))
    }
}
