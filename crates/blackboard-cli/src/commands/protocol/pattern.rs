//! `blackboard protocol pattern`

use blackboard::Result;

use super::MessageValues;
use crate::commands::Run;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::protocol::PatternOfProtocol;

/// Build the pattern of a message's keys
///
/// Prints a pattern for `query` and `observe`, with * for each value that is not given. * also matches colons, so a
/// pattern may match other keys, too: `protocol parse` decides.
///
/// Examples:
///   blackboard protocol pattern AgentRun.request ns=compliance
///   blackboard query "$(blackboard protocol pattern WorkAssignment.result)"
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Pattern {
    #[command(flatten)]
    message: MessageValues,
}

impl Run for Pattern {
    fn run(self, context: &Context) -> Result<Outcome> {
        let values = self.message.values()?;
        let board = context.open(Access::read())?;
        Ok(Outcome::new(PatternOfProtocol(board.protocols().pattern(&self.message.message, &values)?)))
    }
}
