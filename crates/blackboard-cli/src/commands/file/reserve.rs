//! `blackboard file reserve`

use blackboard::Result;
use blackboard::file::Reserve as Reserving;

use crate::commands::Run;
use crate::commands::arguments::{Session, length};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::file::ReservedFiles;

/// Reserve files so that other agents do not edit them
///
/// Reserves paths or patterns relative to the current directory; quote patterns. A pattern that overlaps another
/// session's reservation is refused (exit 4) unless both use --shared. All patterns are reserved, or none.
///
/// Examples:
///   blackboard file reserve 'src/store/**' --note "New engine"
///   blackboard file reserve src/lib.rs 'tests/*.rs' --ttl 30m
///   blackboard file reserve docs/ --shared
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Reserve {
    /// Paths or patterns: * and ? match within one name, ** any directories; a directory means everything in it,
    /// also one that does not exist yet
    #[arg(value_name = "PATTERN", required = true)]
    patterns: Vec<String>,

    /// Allow other sessions to reserve the files with --shared too
    #[arg(long)]
    shared: bool,

    /// Reason, shown to other agents
    #[arg(short = 'm', long, value_name = "TEXT", allow_hyphen_values = true)]
    note: Option<String>,

    /// Time to live: 90s, 15m, 1h, 2d; a bare number is seconds [default: until the session ends]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    ttl: Option<String>,

    #[command(flatten)]
    session: Session,
}

impl Run for Reserve {
    fn run(self, context: &Context) -> Result<Outcome> {
        let ttl = length(self.ttl.as_deref())?;
        let tree = context.tree()?;
        let patterns = self.patterns.iter().map(|text| tree.pattern(text)).collect::<Result<_>>()?;
        let (board, session) = context.open(Access::act(self.session.named()))?;
        let reserved = board.files().reserve(&Reserving {
            session,
            repository: tree.repository,
            worktree: tree.worktree,
            patterns,
            shared: self.shared,
            note: self.note,
            ttl,
        })?;
        context.note_text(&reserved.text);
        Ok(Outcome::new(ReservedFiles(reserved)))
    }
}
