//! `blackboard quota release`

use blackboard::{Code, Refusal, Result};

use crate::commands::Run;
use crate::commands::arguments::Session;
use crate::context::Context;
use crate::outcome::Outcome;
use crate::output::quota::{Released, ReleasedTokens};
use crate::quota::{Caller, existing_ledger};

/// Release reserved tokens
///
/// Releases the reservation with this id, or all reservations of the session. Releasing what is not reserved is not an
/// error.
///
/// Examples:
///   blackboard quota release 1c9f0a4be2d7
///   blackboard quota release --session Ivy
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Release {
    /// Reservation that `quota check --reserve` has printed [default: all of the session]
    #[arg(value_name = "ID")]
    id: Option<String>,

    #[command(flatten)]
    session: Session,
}

impl Run for Release {
    fn run(self, context: &Context) -> Result<Outcome> {
        let caller = Caller::find(context, &self.session)?;
        let (_, ledger) = existing_ledger(context)?;
        let released = match (ledger, &self.id, caller.session) {
            (None, _, _) => 0,
            (Some(ledger), Some(id), _) => usize::from(ledger.release(id)?),
            (Some(ledger), None, Some(session)) => ledger.release_session(&caller.name, &session)?,
            (Some(_), None, None) => {
                return Err(Refusal::new(
                    Code::NoSession,
                    "no session given, and none found for this process",
                )
                .hint("pass --session ID, or the id of a reservation")
                .into());
            }
        };
        Ok(Outcome::new(Released(ReleasedTokens { released })))
    }
}
