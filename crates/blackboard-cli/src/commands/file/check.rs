//! `blackboard file check`

use blackboard::Result;
use blackboard::file::Check as Checking;

use crate::commands::Run;
use crate::commands::arguments::Session;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::file::CheckedFiles;

/// Show whether, and by which agent, files are reserved
///
/// Exits with 0 if no other session has reserved any of the paths; otherwise exits with 4 and prints the holder. Your
/// own reservations are ignored.
///
/// Examples:
///   blackboard file check src/lib.rs
///   blackboard file check src/ docs/cli.md --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Check {
    /// Files or directories
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<String>,

    #[command(flatten)]
    session: Session,
}

impl Run for Check {
    fn run(self, context: &Context) -> Result<Outcome> {
        let tree = context.tree()?;
        let paths = self.paths.iter().map(|text| tree.path(text)).collect::<Result<_>>()?;
        let (board, session) = context.open(Access::peek(self.session.named()))?;
        let checked = board.files().check(&Checking {
            session,
            repository: tree.repository,
            worktree: tree.worktree,
            paths,
        })?;
        Ok(Outcome::new(CheckedFiles(checked.must_be_free()?)))
    }
}
