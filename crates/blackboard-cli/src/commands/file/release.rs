//! `blackboard file release`

use blackboard::file::{FileFilter, PathPattern, Release as Releasing, Selection};
use blackboard::{Board, Result};
use clap::ArgGroup;

use crate::commands::Run;
use crate::commands::arguments::Session;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::file::ReleasedPatterns;

/// Release reserved files
///
/// Releases the given patterns, or with --all everything the session has reserved. A pattern is relative to the current
/// directory, or as `file list` shows it. Releasing a pattern that no session has reserved is not an error. If another
/// session has reserved it, nothing is released (exit 4).
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

impl Release {
    /// The same patterns, or those that `file list` shows under the given text: it shows them relative to the root of the
    /// worktree, also in other directories.
    fn as_listed(&self, board: &Board, which: Selection) -> Result<Selection> {
        let Selection::Patterns { worktree, mut patterns } = which else { return Ok(which) };
        if patterns.iter().eq(&self.patterns) {
            return Ok(Selection::Patterns { worktree, patterns });
        }
        let reserved = board.files().list(&FileFilter::default())?;
        let is_reserved =
            |pattern: &str| reserved.iter().any(|one| one.worktree == worktree && one.pattern == pattern);
        for (pattern, given) in patterns.iter_mut().zip(&self.patterns) {
            let meant = PathPattern::parse(pattern).map(|pattern| pattern.as_str().to_owned());
            let is_meant = meant.is_ok_and(|meant| is_reserved(&meant));
            if !is_meant && is_reserved(given) {
                given.clone_into(pattern);
            }
        }
        Ok(Selection::Patterns { worktree, patterns })
    }
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
        let which = self.as_listed(&board, which)?;
        Ok(Outcome::new(ReleasedPatterns(board.files().release(&Releasing { session, which })?)))
    }
}
