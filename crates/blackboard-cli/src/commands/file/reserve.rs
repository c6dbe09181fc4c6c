//! `blackboard file reserve`

use std::time::Duration;

use blackboard::Result;
use blackboard::file::Reserve as Reserving;

use crate::commands::Run;
use crate::commands::arguments::Session;
use crate::commands::lock::length;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::file::ReservedFiles;

/// Reserve files, so that others leave them alone
///
/// A pattern is relative to the working directory: * and ? stand for anything in one name, ** for any directories, and a
/// directory for everything in it. Quote patterns, or the shell replaces them. Two sessions can't reserve
/// overlapping patterns in one worktree, unless both use --shared; whoever is too late is told who has them (exit 4).
/// All patterns are reserved, or none. Reservations in other worktrees of the repository are shown and are not in
/// the way. They end when they are released, when the session ends or is found dead, or when their time is over.
/// Reserving the same again renews --note, --ttl and --shared.
///
/// Examples:
///   blackboard file reserve 'src/store/**' --note "rewriting the engine"
///   blackboard file reserve src/lib.rs 'tests/*.rs' --ttl 30m
///   blackboard file reserve docs/ --shared
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Reserve {
    /// The files
    #[arg(value_name = "PATTERN", required = true)]
    patterns: Vec<String>,

    /// Others may reserve them too, if they share them as well
    #[arg(long)]
    shared: bool,

    /// What they are reserved for, for others to read
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    note: Option<String>,

    /// For this long at most, as in 30s or 10m [default: as long as the session lives]
    #[arg(long, value_name = "DURATION", value_parser = length, allow_hyphen_values = true)]
    ttl: Option<Duration>,

    #[command(flatten)]
    session: Session,
}

impl Run for Reserve {
    fn run(self, context: &Context) -> Result<Outcome> {
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
            ttl: self.ttl,
        })?;
        context.note_text(&reserved.text);
        Ok(Outcome::new(ReservedFiles(reserved)))
    }
}
