//! `blackboard file release`

use blackboard::Result;
use blackboard::file::{Release as Releasing, Selection};
use clap::ArgGroup;

use crate::commands::Run;
use crate::commands::arguments::Session;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::file::ReleasedPatterns;

/// Release reserved files
///
/// Releases the given patterns, or with --all everything the session has reserved. Releasing a pattern that no session
/// has reserved is not an error. If another session has reserved it, nothing is released (exit 4).
///
/// Examples:
///   blackboard file release 'src/store/**'
///   blackboard file release --all
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
#[command(group = ArgGroup::new("which").required(true))]
pub struct Release {
    /// Patterns that were reserved
    #[arg(value_name = "PATTERN", group = "which")]
    patterns: Vec<String>,

    /// Release everything that the session has reserved, in every worktree
    #[arg(short = 'a', long, group = "which")]
    all: bool,

    #[command(flatten)]
    session: Session,
}

impl Run for Release {
    fn run(self, context: &Context) -> Result<Outcome> {
        let which = if self.all {
            Selection::All
        } else {
            let tree = context.tree()?;
            let patterns = self.patterns.iter().map(|text| tree.pattern(text)).collect::<Result<_>>()?;
            Selection::Patterns { worktree: tree.worktree, patterns }
        };
        let (board, session) = context.open(Access::act(self.session.named()))?;
        Ok(Outcome::new(ReleasedPatterns(board.files().release(&Releasing { session, which })?)))
    }
}
