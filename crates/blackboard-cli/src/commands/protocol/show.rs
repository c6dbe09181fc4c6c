//! `blackboard protocol show`

use blackboard::Result;

use crate::commands::Run;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::protocol::ProtocolDetails;

/// Show a protocol with its messages
///
/// Shows the template of each message, the recommended TTL of its entries, and the JSON Schema of their values.
///
/// Examples:
///   blackboard protocol show AgentRun
///   blackboard protocol show Task --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Show {
    /// Name of the protocol
    #[arg(value_name = "PROTOCOL")]
    protocol: String,
}

impl Run for Show {
    fn run(self, context: &Context) -> Result<Outcome> {
        let board = context.open(Access::read())?;
        Ok(Outcome::new(ProtocolDetails(board.protocols().show(&self.protocol)?)))
    }
}
