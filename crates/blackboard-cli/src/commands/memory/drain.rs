//! `blackboard memory drain`

use blackboard::Result;
use blackboard::entry::Actor;
use blackboard::memory::Drain as Asked;

use crate::commands::Run;
use crate::commands::arguments::Session;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::memory::DrainedLevels;

/// Move records to the next levels
///
/// With a level, moves all of its records that a next level takes. Without one, moves what is due in every level.
/// Continues until nothing is left to move. Each record is written to its new level and deleted from the old one in one
/// transaction.
///
/// Examples:
///   blackboard memory drain
///   blackboard memory drain short-term
///   blackboard memory drain notes --to semantic
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Drain {
    /// Level to drain [default: what is due in every level]
    #[arg(value_name = "LEVEL")]
    level: Option<String>,

    /// Level to which records move [default: the next ones]
    #[arg(long, value_name = "LEVEL", requires = "level")]
    to: Option<String>,

    #[command(flatten)]
    session: Session,
}

impl Run for Drain {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (board, session) = context.open(Access::change(self.session.named()))?;
        let actor = Actor { session, ..Actor::default() };
        let drained = board.memories().drain(&Asked { level: self.level, to: self.to, actor })?;
        Ok(Outcome::new(DrainedLevels(drained)))
    }
}
