//! `blackboard agent show`

use blackboard::Result;

use crate::commands::Run;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::agent::AgentDetails;

/// Show one agent in detail
///
/// Shows status, process, current work, progress, delegates and everything the session holds.
///
/// Examples:
///   blackboard agent show
///   blackboard agent show Ivy
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Show {
    /// Session: id, prefix of 6 or more, or agent name [default: your own]
    #[arg(value_name = "SESSION", conflicts_with = "session")]
    agent: Option<String>,

    /// Same as the SESSION argument
    #[arg(short = 's', long, value_name = "ID", alias = "id")]
    session: Option<String>,
}

impl Run for Show {
    fn run(self, context: &Context) -> Result<Outcome> {
        let named = self.agent.or(self.session);
        let (board, session) = context.open(Access::read_own(named.as_deref()))?;
        Ok(Outcome::new(AgentDetails(board.agents().show(&session)?)))
    }
}
