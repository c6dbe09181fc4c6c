//! `blackboard file check`

use blackboard::Result;
use blackboard::file::Check as Checking;

use crate::commands::Run;
use crate::commands::arguments::Session;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::file::CheckedFiles;

/// Ask whether somebody else has reserved files
///
/// Exit 4 and the name of whoever has one of them, whether shared or not; exit 0 if nobody else has. What the session
/// itself has reserved does not count. A directory stands for everything in it. What is reserved in another
/// worktree of the repository is told, and is not in the way.
///
/// Examples:
///   blackboard file check src/lib.rs && $EDITOR src/lib.rs
///   blackboard file check src/ docs/cli.md --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Check {
    /// The files
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<String>,

    #[command(flatten)]
    session: Session,
}

impl Run for Check {
    fn run(self, context: &Context) -> Result<Outcome> {
        let tree = context.tree()?;
        let paths = self.paths.iter().map(|text| tree.path(text)).collect::<Result<_>>()?;
        let (board, session) = context.open(Access::read_with(self.session.named()))?;
        let checked = board.files().check(&Checking {
            session,
            repository: tree.repository,
            worktree: tree.worktree,
            paths,
        })?;
        Ok(Outcome::new(CheckedFiles(checked.must_be_free()?)))
    }
}
