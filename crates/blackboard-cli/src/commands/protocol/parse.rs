//! `blackboard protocol parse`

use blackboard::Result;

use crate::commands::Run;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::protocol::ValuesOfKey;

/// Show the values in a key
///
/// Prints the values that the key was built from. Exits with 4 if it is not a key of the protocol, or of the message.
///
/// Examples:
///   blackboard protocol parse AgentRun request:run:compliance:req_abc123
///   blackboard protocol parse AgentRun.result result:run:7 --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Parse {
    /// Protocol, or one of its messages
    #[arg(value_name = "PROTOCOL[.MESSAGE]")]
    protocol: String,

    /// Key of an entry
    #[arg(value_name = "KEY")]
    key: String,
}

impl Run for Parse {
    fn run(self, context: &Context) -> Result<Outcome> {
        let board = context.open(Access::read())?;
        Ok(Outcome::new(ValuesOfKey(board.protocols().parse(&self.protocol, &self.key)?)))
    }
}
