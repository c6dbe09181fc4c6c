//! `blackboard agent deregister`

use blackboard::Result;

use crate::commands::Run;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::agent::DeregisteredAgent;

/// End a session and release everything it holds
///
/// Releases the session's claims, locks, file reservations and leased entries in one transaction. Delegates in the
/// same process end with it. Ending a session twice is not an error.
///
/// Examples:
///   blackboard agent deregister
///   blackboard agent deregister Ivy
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Deregister {
    /// Session: id, prefix of 6 or more, or agent name [default: your own]
    #[arg(value_name = "SESSION", conflicts_with = "session")]
    agent: Option<String>,

    /// Same as the SESSION argument
    #[arg(short = 's', long, value_name = "ID", alias = "id")]
    session: Option<String>,
}

impl Run for Deregister {
    fn run(self, context: &Context) -> Result<Outcome> {
        let named = self.agent.or(self.session);
        let (board, session) = context.open(Access::end(named.as_deref()))?;
        Ok(Outcome::new(DeregisteredAgent(board.agents().deregister(&session)?)))
    }
}
