//! `blackboard lock list`

use blackboard::Result;

use crate::commands::Run;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::lock::LockList;

/// List locks and their holders
///
/// Lists each lock with its holder, fence token, age and note.
///
/// Examples:
///   blackboard lock list
///   blackboard lock list --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct List {}

impl Run for List {
    fn run(self, context: &Context) -> Result<Outcome> {
        let board = context.open(Access::read())?;
        Ok(Outcome::new(LockList(board.locks().list()?)))
    }
}
