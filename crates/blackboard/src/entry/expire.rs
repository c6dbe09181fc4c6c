//! Entries whose time is over: the sweep removes them, with one event each.

use super::draft::Removal;
use super::{By, Draft, Told};
use crate::board::Board;
use crate::error::Result;
use crate::store::{Patience, Range};

/// How many go in one commit.
const BATCH: usize = 100;

impl Board {
    /// Removes entries whose time is over, at most one batch of them, and says how many.
    pub(crate) fn expire_entries(&self, patience: Patience) -> Result<u64> {
        let candidates = self.read(&[], |tx| tx.heads(&Range::entries_expired_at(tx.now()), BATCH))?;
        if candidates.is_empty() {
            return Ok(0);
        }
        self.commit_patiently(patience, "expire", &[], |tx| {
            let mut draft = Draft::new(self, tx, &By::default())?;
            let mut expired = 0;
            for candidate in &candidates {
                // What is left goes with the next sweep.
                if draft.is_full() {
                    break;
                }
                // Written anew in between, or removed by another sweep: then there is nothing to tell.
                if draft.is_expired(&candidate.scope, &candidate.key)? {
                    draft.remove(&candidate.scope, &candidate.key, Removal::Expired, Told::AsEntry)?;
                    expired += 1;
                }
            }
            Ok((draft.finish()?, expired))
        })
    }
}
