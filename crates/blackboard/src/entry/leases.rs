//! The leased entries of a session, which end with it.

use serde::{Deserialize, Serialize};

use super::editor::removal_event;
use super::wording::Removal;
use super::{Entry, FILES, Tombstone};
use crate::agent::{Agent, AgentStatus};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::scope::{ScopePolicies, add_to_size, policies_of, prefetch_policies};
use crate::store::{Changes, Key, Prefetch, Range, Tx};

/// A leased entry that a session held: a lock, a file reservation, or another entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The scope: `locks` for a lock, `files` for a file reservation.
    pub scope: String,
    /// The key.
    pub key: String,
    /// The pattern of a file reservation, whose key is a digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

impl Lease {
    /// The holding that an entry represents.
    pub(crate) fn of(entry: &Entry) -> Lease {
        let pattern = (entry.scope == FILES).then(|| pattern_of(entry)).flatten();
        Lease { scope: entry.scope.clone(), key: entry.key.clone(), pattern }
    }
}

/// The pattern of a file reservation, which is in its value.
pub(super) fn pattern_of(entry: &Entry) -> Option<String> {
    #[derive(Deserialize)]
    struct Pattern {
        pattern: String,
    }
    entry.value.to::<Pattern>().ok().map(|value| value.pattern)
}

/// The entries that a session leases, and the policies of their scopes.
#[derive(Default)]
pub(crate) struct Leases {
    entries: Vec<Entry>,
    policies: Vec<ScopePolicies>,
}

impl Leases {
    pub(crate) fn of(tx: &dyn Tx, session: &str) -> Result<Leases> {
        let entries = tx.rows::<Entry>(&Range::leased_by(session))?;
        if entries.is_empty() {
            return Ok(Leases::default());
        }
        // Entries are sorted by their scope.
        let mut scopes: Vec<_> = entries.iter().map(|entry| entry.scope.as_str()).collect();
        scopes.dedup();
        let next = entries.iter().map(|entry| Prefetch::Entry(&entry.scope, &entry.key));
        let next: Vec<_> = next.chain(scopes.iter().filter_map(|scope| prefetch_policies(scope))).collect();
        tx.prefetch(&next)?;
        for entry in &entries {
            // Each leaves a tombstone, and a row has to be read before it is written.
            tx.get(&Key::Tombstone(entry.scope.clone(), entry.key.clone()))?;
        }
        let policies = scopes.into_iter().map(|scope| policies_of(tx, scope));
        let policies = policies.filter_map(Result::transpose).collect::<Result<_>>()?;
        Ok(Leases { entries, policies })
    }
}

/// Removes the leased entries of a session that ends, with an event and a tombstone each. The commit does nothing
/// else to their keys. An entry that had expired before is reported as expired.
pub(crate) fn release_leases(
    agent: &Agent,
    becomes: AgentStatus,
    Leases { entries, policies }: Leases,
    now: Timestamp,
    changes: &mut Changes,
) -> Vec<Lease> {
    let mut released = Vec::new();
    for row in &policies {
        let removed = entries.iter().filter(|entry| entry.scope == row.scope).count();
        add_to_size(row, -i64::try_from(removed).unwrap_or(i64::MAX), changes);
    }
    for entry in entries {
        let removal = match becomes {
            _ if entry.is_expired(now) => Removal::Expired,
            AgentStatus::Stale => Removal::SessionStale,
            AgentStatus::Active | AgentStatus::Idle | AgentStatus::Completed => Removal::SessionEnded,
        };
        if removal != Removal::Expired {
            released.push(Lease::of(&entry));
        }
        let session = (removal == Removal::SessionEnded).then_some(agent.session_id.as_str());
        let (scope, key, version) = (entry.scope.clone(), entry.key.clone(), entry.version);
        let event = removal_event(entry, removal, &agent.agent_name, session, changes.events.len());
        let revision = changes.event(event);
        changes.remove(Key::Entry(scope.clone(), key.clone()));
        changes.put(Tombstone { scope, key, version, revision });
    }
    released
}
