//! `blackboard lock acquire`

use blackboard::Result;
use blackboard::clock::{Clock, SystemClock};
use blackboard::lock::Acquire as Acquiring;

use super::LockOptions;
use crate::commands::Run;
use crate::commands::arguments::{Session, length, limit};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::lock::AcquiredLock;
use crate::output::time;

/// Acquire a lock
///
/// Exactly one session holds a lock at a time; if another session holds it, exits with 4, or with 6 after --wait.
/// Prints the lock's fence token, which `write`, `delete` and `txn` accept as --fence lock:NAME=N. The lock ends with
/// `lock release`, with the session, or after --ttl.
///
/// Examples:
///   blackboard lock acquire deploy
///   fence=$(blackboard lock acquire deploy --wait 30s --note "Release 1.2")
///   blackboard lock acquire migrations --ttl 10m --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Acquire {
    #[command(flatten)]
    options: LockOptions,

    #[command(flatten)]
    session: Session,
}

impl Run for Acquire {
    fn run(self, context: &Context) -> Result<Outcome> {
        let LockOptions { name, wait, ttl, note } = self.options;
        let (wait, ttl) = (length(wait.as_deref())?, length(ttl.as_deref())?);
        let _limit = limit(wait);
        let (board, session) = context.open(Access::act(self.session.named()))?;
        let request = Acquiring { name, session, ttl, note, ..Acquiring::default() };
        let acquired = match wait {
            Some(timeout) => board.locks().acquire_waiting(&request, timeout)?,
            None => board.locks().acquire(&request)?,
        };
        if acquired.already_held {
            let age = time::age(SystemClock.now().since(acquired.lock.since));
            context.note(&format!("lock {} was already held (acquired {age} ago)", acquired.lock.name));
        } else {
            // Standard output has only the fence token, for a shell to keep.
            let (name, fence) = (&acquired.lock.name, acquired.lock.fence);
            context.confirm(&format!("Acquired lock: {name} (fence {fence})"));
        }
        context.note_text(&acquired.text);
        Ok(Outcome::new(AcquiredLock(acquired)))
    }
}
