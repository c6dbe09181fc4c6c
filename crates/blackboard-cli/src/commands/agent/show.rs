//! `blackboard agent show`

use blackboard::Result;

use crate::commands::Run;
use crate::commands::arguments::NamedSession;
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
    #[command(flatten)]
    session: NamedSession,
}

impl Run for Show {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (board, session) = context.open(Access::read_own(self.session.named()))?;
        let board = context.for_caller(&board);
        Ok(Outcome::new(AgentDetails(board.agents().show(&session)?)))
    }
}
