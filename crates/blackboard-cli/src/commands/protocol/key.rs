//! `blackboard protocol key`

use blackboard::Result;

use super::MessageValues;
use crate::commands::Run;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::protocol::KeyOfProtocol;

/// Build the key of a message
///
/// Prints the key for these values. What a key cannot contain is escaped as in a URL: a colon is %3A, and an empty
/// value is %. A key that is too long is refused.
///
/// Examples:
///   blackboard protocol key AgentRun.request ns=compliance id=req_abc123
///   blackboard read "$(blackboard protocol key Task id=q4)"
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Key {
    #[command(flatten)]
    message: MessageValues,
}

impl Run for Key {
    fn run(self, context: &Context) -> Result<Outcome> {
        let values = self.message.values()?;
        let board = context.open(Access::read())?;
        Ok(Outcome::new(KeyOfProtocol(board.protocols().key(&self.message.message, &values)?)))
    }
}
