//! Locks: names that one session holds at a time.
//!
//! A lock is a leased entry in the scope `locks`. Its key is the name, it is released when its session ends, and it
//! may have a time to live. Acquiring it returns a *fence token*, the revision of the acquisition. A write with that
//! fence token is refused once another session holds the lock, however late it comes. The order in which waiting
//! sessions get a lock is not promised.

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

/// The locks of a board: `board.locks()`.
#[derive(Clone, Copy)]
pub struct Locks<'a> {
    pub(crate) board: &'a Board,
}

/// A held lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lock {
    /// Its name.
    pub name: String,
    /// The revision at which it was acquired.
    pub fence: Revision,
    /// The session that holds it.
    pub session_id: String,
    /// The name of its agent.
    pub agent_name: String,
    /// When it was acquired.
    pub since: Timestamp,
    /// The note of its holder.
    pub note: Option<String>,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
}

/// The value of the entry of a lock.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    note: Option<String>,
}

impl Lock {
    /// The lock of an entry.
    pub(crate) fn of(tx: &dyn Tx, entry: &Entry) -> Result<Lock> {
        // Only the lock verbs write here. Whatever the value is, the lock is held.
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

    /// The same with the current name of its holder.
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
