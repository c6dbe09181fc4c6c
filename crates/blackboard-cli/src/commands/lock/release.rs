//! `blackboard lock release`

use blackboard::Result;
use blackboard::lock::Release as Releasing;
use clap::builder::NonEmptyStringValueParser;

use crate::commands::Run;
use crate::commands::arguments::{FenceArgument, Session, fence};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::lock::ReleasedLock;

/// Release a lock
///
/// Releasing a lock that is not held is not an error. With --fence, only the lock with that fence token is released.
///
/// Examples:
///   blackboard lock release deploy
///   fence=$(blackboard lock acquire deploy --json | jq .fence)
///   blackboard lock release deploy --fence "$fence"
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Release {
    /// Name of the lock
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    name: String,

    /// Fence token printed by `lock acquire`
    #[arg(long, value_name = "N", value_parser = fence)]
    fence: Option<FenceArgument>,

    #[command(flatten)]
    session: Session,
}

impl Run for Release {
    fn run(self, context: &Context) -> Result<Outcome> {
        let fence = self.fence.map(|fence| fence.of_lock(&self.name)).transpose()?;
        let (board, session) = context.open(Access::act(self.session.named()))?;
        let release = Releasing { name: self.name, session, fence };
        Ok(Outcome::new(ReleasedLock(board.locks().release(&release)?)))
    }
}
