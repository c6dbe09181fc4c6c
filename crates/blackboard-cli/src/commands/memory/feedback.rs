//! `blackboard memory feedback`

use blackboard::Result;
use blackboard::entry::Actor;
use blackboard::memory::Usefulness;

use crate::commands::Run;
use crate::commands::arguments::Session;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::memory::RatedRecord;

/// Say whether a recalled record was useful
///
/// Useful records come earlier the next time. The usefulness is a moving average: 0.9 of the one before and 0.1 of this
/// rating. A repeated call counts twice.
///
/// Examples:
///   blackboard memory feedback build useful
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Feedback {
    /// Key of the record
    #[arg(value_name = "KEY")]
    key: String,

    /// Rating: useful or useless
    #[arg(value_name = "RATING")]
    rating: Usefulness,

    /// Level of the record [default: the only one that has the key]
    #[arg(long, value_name = "LEVEL")]
    level: Option<String>,

    #[command(flatten)]
    session: Session,
}

impl Run for Feedback {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (board, session) = context.open(Access::change(self.session.named()))?;
        let actor = Actor { session, ..Actor::default() };
        let rated = board.memories().feedback(&self.key, self.level.as_deref(), self.rating, &actor)?;
        Ok(Outcome::new(RatedRecord(rated)))
    }
}
