//! `blackboard file list`

use blackboard::Result;
use blackboard::file::FileFilter;

use crate::commands::Run;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::file::FileList;

/// List reserved files and their holders
///
/// Lists each reserved pattern with its holder, mode, age, note and worktree.
///
/// Examples:
///   blackboard file list
///   blackboard file list --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct List {}

impl Run for List {
    fn run(self, context: &Context) -> Result<Outcome> {
        let board = context.open(Access::read())?;
        Ok(Outcome::new(FileList(board.files().list(&FileFilter::default())?)))
    }
}
