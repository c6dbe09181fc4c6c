//! Leases: what hangs on a session goes with it, in the same commit.

use serde::{Deserialize, Serialize};

use super::draft::{Removal, remove_stored};
use super::{Entry, FILES};
use crate::agent::{Agent, AgentStatus};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::store::{Changes, Key, Prefetch, Range, Tx};

/// An entry that hung on a session: a lock, a file reservation, or any other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The scope: `locks` for a lock, `files` for a reservation.
    pub scope: String,
    /// The key.
    pub key: String,
    /// What a reservation is about: its key only names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

impl Lease {
    /// What an entry stands for.
    pub(crate) fn of(entry: &Entry) -> Lease {
        let pattern = (entry.scope == FILES).then(|| pattern_of(entry)).flatten();
        Lease { scope: entry.scope.clone(), key: entry.key.clone(), pattern }
    }
}

/// The pattern of a reservation, which is in its value.
pub(super) fn pattern_of(entry: &Entry) -> Option<String> {
    #[derive(Deserialize)]
    struct Pattern {
        pattern: String,
    }
    entry.value.to::<Pattern>().ok().map(|value| value.pattern)
}

/// What hangs on a session.
pub(crate) fn leases_of(tx: &dyn Tx, session: &str) -> Result<Vec<Entry>> {
    let entries = tx.rows::<Entry>(&Range::leased_by(session))?;
    if entries.is_empty() {
        return Ok(entries);
    }
    let next: Vec<_> = entries.iter().map(|entry| Prefetch::Entry(&entry.scope, &entry.key)).collect();
    tx.prefetch(&next)?;
    for entry in &entries {
        // Each leaves a tombstone, and what is written has to have been read.
        tx.get(&Key::Tombstone(entry.scope.clone(), entry.key.clone()))?;
    }
    Ok(entries)
}

/// Removes what hung on a session that is over, with an event each. What had expired before was not held any more: it is
/// told of as every other entry whose time is over.
pub(crate) fn release_leases(
    agent: &Agent,
    becomes: AgentStatus,
    entries: Vec<Entry>,
    now: Timestamp,
    changes: &mut Changes,
) -> Vec<Lease> {
    let mut released = Vec::new();
    for entry in entries {
        let removal = match becomes {
            _ if entry.is_expired(now) => Removal::Expired,
            AgentStatus::Stale => Removal::SessionStale,
            _ => Removal::SessionEnded,
        };
        let lease = Lease::of(&entry);
        let session = (removal == Removal::SessionEnded).then_some(agent.session_id.as_str());
        remove_stored(entry, removal, &agent.agent_name, session, changes);
        if removal != Removal::Expired {
            released.push(lease);
        }
    }
    released
}
