//! `blackboard agent show`

use blackboard::Result;

use crate::commands::Run;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::agent::AgentDetails;

/// Show everything about one agent
///
/// Examples:
///   blackboard agent show
///   blackboard agent show 3f2504e0
///   blackboard agent show --session 3f2504e0 --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Show {
    /// The session: its id, or the first 6 characters or more [default: one's own]
    #[arg(value_name = "SESSION", conflicts_with = "session")]
    agent: Option<String>,

    /// The session, as an option
    #[arg(long, value_name = "ID", alias = "id")]
    session: Option<String>,
}

impl Run for Show {
    fn run(self, context: &Context) -> Result<Outcome> {
        let named = self.agent.or(self.session);
        let (board, session) = context.open(Access::read_own(named.as_deref()))?;
        Ok(Outcome::new(AgentDetails(board.agents().show(&session)?)))
    }
}
