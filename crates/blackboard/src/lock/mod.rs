//! Locks: names that one session holds at a time.
//!
//! A lock is an entry with a lease in the scope `locks`: its key is the name, it dies with the session that holds it,
//! and it may have a time to live. Taking it gives a *fence*, the revision at which it was taken. Whoever writes with
//! that fence is refused once somebody else holds the lock, however late the write comes. Who waits for a lock gets it
//! some time after it is free; in which order is not promised.

mod acquire;
mod list;
mod release;

use serde::{Deserialize, Serialize};

pub use self::acquire::{Acquire, Acquired, LockWait};
pub use self::release::{Release, Released};
use crate::agent::Agent;
use crate::board::Board;
use crate::clock::Timestamp;
use crate::entry::{Entry, held_since};
use crate::error::Result;
use crate::revision::{Pending, Revision};
use crate::store::{Key, Prefetch, Tx};

/// Who holds what: `board.locks()`.
#[derive(Clone, Copy)]
pub struct Locks<'a> {
    pub(crate) board: &'a Board,
}

/// A lock that somebody holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lock {
    /// Its name.
    pub name: String,
    /// The revision at which it was taken.
    pub fence: Revision,
    /// The session that holds it.
    pub session_id: String,
    /// What that session calls itself.
    pub agent_name: String,
    /// Since when.
    pub since: Timestamp,
    /// What for, as its holder says.
    pub note: Option<String>,
    /// When it is free at the latest.
    pub expires_at: Option<Timestamp>,
}

/// What the entry of a lock has as its value.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    note: Option<String>,
}

impl Lock {
    /// The lock that an entry stands for.
    pub(crate) fn of(tx: &dyn Tx, entry: &Entry) -> Result<Lock> {
        // Nothing but the verbs of locks writes here. Whatever else stands in the file, the lock is held.
        let stored = entry.value.to::<Stored>().ok();
        Ok(Lock {
            name: entry.key.clone(),
            fence: entry.fence.unwrap_or(entry.revision),
            session_id: entry.session_id.clone().unwrap_or_default(),
            agent_name: entry.created_by.clone(),
            since: held_since(tx, entry)?,
            note: stored.and_then(|stored| stored.note),
            expires_at: entry.expires_at,
        })
    }

    /// The same under the name that its holder has now.
    pub(crate) fn with_name_of_today(mut self, tx: &dyn Tx) -> Result<Lock> {
        let holder = Key::Agent(self.session_id.clone());
        tx.prefetch(&[Prefetch::Row(holder.clone())])?;
        if let Some(agent) = tx.peek_row::<Agent>(&holder)? {
            self.agent_name = agent.agent_name;
        }
        Ok(self)
    }
}

impl Pending for Lock {
    fn resolve(&mut self, first: Revision) {
        self.fence.resolve(first);
    }
}
