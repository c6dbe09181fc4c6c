//! `blackboard memory promote`

use blackboard::Result;
use blackboard::entry::Actor;
use blackboard::memory::Promote as Asked;

use crate::commands::Run;
use crate::commands::arguments::Session;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::memory::PromotedRecords;

/// Move records to another level
///
/// Moves all of them in one transaction, or none. The level takes them whatever their relevance and tags.
///
/// Examples:
///   blackboard memory promote build --to collective
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Promote {
    /// Keys of the records
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<String>,

    /// Level to which they move
    #[arg(long, value_name = "LEVEL")]
    to: String,

    /// Level of the records [default: the only one that has the key]
    #[arg(long, value_name = "LEVEL")]
    level: Option<String>,

    #[command(flatten)]
    session: Session,
}

impl Run for Promote {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (board, session) = context.open(Access::change(self.session.named()))?;
        let actor = Actor { session, ..Actor::default() };
        let promote = Asked { keys: self.keys, from: self.level, to: self.to, actor };
        Ok(Outcome::new(PromotedRecords(board.memories().promote(&promote)?)))
    }
}
