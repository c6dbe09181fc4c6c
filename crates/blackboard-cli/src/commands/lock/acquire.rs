//! `blackboard lock acquire`

use blackboard::Result;
use blackboard::lock::Acquire as Acquiring;

use super::LockOptions;
use crate::commands::Run;
use crate::commands::arguments::Session;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::lock::AcquiredLock;

/// Take a lock: exactly one session gets it
///
/// Prints the fence of the lock, a number that only grows: `write`, `delete` and `txn` take it as --fence
/// lock:NAME=N and do nothing once somebody else has the lock. Whoever is too late is told who has it and since when
/// (exit 4, or 6 after waiting). The lock is free again when it is released, when its session ends or is found
/// dead, or when its time is over. Taking it again prints the same fence; with --ttl its time begins anew.
///
/// Examples:
///   blackboard lock acquire deploy
///   fence=$(blackboard lock acquire deploy --wait 30s --note "releasing 1.2")
///   blackboard lock acquire migrations --ttl 10m --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Acquire {
    #[command(flatten)]
    wish: LockOptions,

    #[command(flatten)]
    session: Session,
}

impl Run for Acquire {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (board, session) = context.open(Access::act(self.session.named()))?;
        let LockOptions { name, wait, ttl, note } = self.wish;
        let wish = Acquiring { name, session, ttl, note, ..Acquiring::default() };
        let acquired = match wait {
            Some(timeout) => board.locks().acquire_waiting(&wish, timeout)?,
            None => board.locks().acquire(&wish)?,
        };
        if acquired.already_held {
            context.note(&format!(
                "lock {} was held already, since {}",
                acquired.lock.name, acquired.lock.since
            ));
        }
        context.note_text(&acquired.text);
        Ok(Outcome::new(AcquiredLock(acquired)))
    }
}
