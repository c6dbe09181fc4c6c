//! `blackboard agent deregister`

use blackboard::Result;

use crate::commands::Run;
use crate::commands::arguments::NamedSession;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::agent::DeregisteredAgent;
use crate::quota::claims::{ItemQuota, release_sessions};

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
    #[command(flatten)]
    session: NamedSession,
}

impl Run for Deregister {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (board, session) = context.open(Access::end(self.session.named()))?;
        let deregistered = board.agents().deregister(&session)?;
        release_sessions(ItemQuota::of(context)?.as_ref(), [session.as_str()]);
        Ok(Outcome::new(DeregisteredAgent(deregistered)))
    }
}
