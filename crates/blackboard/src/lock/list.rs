//! `lock list`: lists locks and their holders.

use super::{Lock, Locks};
use crate::entry::{Entry, LOCKS};
use crate::error::Result;
use crate::store::{Prefetch, Range};

impl Locks<'_> {
    /// Every held lock, by name.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register, lock::Acquire};
    /// # let board = Board::memory();
    /// # let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// board.locks().acquire(&Acquire::of("deploy", &ivy))?;
    /// let locks = board.locks().list()?;
    /// assert_eq!((&locks[0].name[..], &locks[0].agent_name[..]), ("deploy", "Ivy"));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn list(&self) -> Result<Vec<Lock>> {
        let range = Range::entries(LOCKS, "");
        self.board.read_list(&[Prefetch::Range(range.clone())], |tx| {
            let entries = tx.rows::<Entry>(&range)?;
            let live = entries.iter().filter(|entry| !entry.is_expired(tx.now()));
            live.map(|entry| Lock::of(tx, entry)?.with_name_of_today(tx)).collect()
        })
    }
}
