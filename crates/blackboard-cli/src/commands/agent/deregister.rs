//! `blackboard agent deregister`

use blackboard::Result;

use crate::commands::Run;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::agent::DeregisteredAgent;

/// End a session, and release what it holds
///
/// Its claims, locks, file reservations and leased entries are released, and its delegates in the same process end with
/// it, all in one step.
///
/// Examples:
///   blackboard agent deregister
///   blackboard agent deregister --session 3f2504e0
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Deregister {
    /// The session: its id, or the first 6 characters or more [default: one's own]
    #[arg(value_name = "SESSION", conflicts_with = "session")]
    agent: Option<String>,

    /// The session, as an option
    #[arg(long, value_name = "ID", alias = "id")]
    session: Option<String>,
}

impl Run for Deregister {
    fn run(self, context: &Context) -> Result<Outcome> {
        let named = self.agent.or(self.session);
        let (board, session) = context.open(Access::end(named.as_deref()))?;
        Ok(Outcome::new(DeregisteredAgent(board.agents().deregister(&session)?)))
    }
}
