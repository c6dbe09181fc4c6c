//! `blackboard protocol remove`

use blackboard::Result;

use crate::commands::Run;
use crate::commands::arguments::Session;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::protocol::RemovedProtocol;

/// Remove a protocol from the board
///
/// Removes a protocol that was defined with `protocol define`. Its entries stay. Built-in protocols cannot be removed.
///
/// Examples:
///   blackboard protocol remove review
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Remove {
    /// Name of the protocol
    #[arg(value_name = "NAME")]
    name: String,

    #[command(flatten)]
    session: Session,
}

impl Run for Remove {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (board, session) = context.open(Access::change(self.session.named()))?;
        Ok(Outcome::new(RemovedProtocol(board.protocols().remove(&self.name, session.as_deref())?)))
    }
}
