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

/// Give reserved files back
///
/// The patterns are those that were reserved. What the session has not reserved stays as it is.
///
/// Examples:
///   blackboard file release 'src/store/**'
///   blackboard file release --all
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
#[command(group = ArgGroup::new("which").required(true))]
pub struct Release {
    /// The patterns
    #[arg(value_name = "PATTERN", group = "which")]
    patterns: Vec<String>,

    /// Everything that the session has reserved, in every worktree
    #[arg(long, group = "which")]
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
