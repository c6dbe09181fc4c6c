//! Scopes that have ended, and what hides their past.
//!
//! The event log shows the entries of a scope that has ended. Whether a caller may see them depends on its policies, so their
//! row stays, with a status, as long as the log has events of the scope. If the name is given to a new scope, the row of the new
//! one says up to which revision the events are of a scope that restricted its callers. A bookkeeping row, named by the time,
//! lists each row that only hides a past, so that retention finds the oldest ones.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::end::EndsWith;
use super::{Policies, ScopePolicies, Visibility};
use crate::clock::Timestamp;
use crate::error::{Code, Error, Refusal, Result};
use crate::hint::Hint;
use crate::names::impl_names;
use crate::revision::Revision;
use crate::store::{BookkeepingRow, Changes, Key, Prefetch, Range, Tx};

/// How the names of rows begin that list policies which only hide a past.
const PAST: &str = "past-scopes:";

/// Whether policies are those of a scope that exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScopeStatus {
    /// It exists.
    #[default]
    Live,
    /// It has ended with its session or work item. Writes are refused, and its policies apply to its history.
    Ended,
    /// Its policies were deleted. It is open to every caller, except for the history of an earlier scope with its name.
    Deleted,
}

impl ScopeStatus {
    /// All of them.
    pub const ALL: &'static [ScopeStatus] = &[ScopeStatus::Live, ScopeStatus::Ended, ScopeStatus::Deleted];

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            ScopeStatus::Live => "live",
            ScopeStatus::Ended => "ended",
            ScopeStatus::Deleted => "deleted",
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference to the field")]
    pub(super) fn is_live(&self) -> bool {
        *self == ScopeStatus::Live
    }
}

impl_names!(ScopeStatus, "status of a scope");

impl ScopePolicies {
    /// Whether it is the row of a scope that exists.
    pub(crate) fn is_live(&self) -> bool {
        self.policies.status.is_live()
    }

    /// The same row for a scope that has ended: with what its history needs, and nothing else.
    pub(super) fn ended(self, now: Timestamp) -> ScopePolicies {
        let Policies { visibility, members, owner, work_item, access, hidden_until, .. } = self.policies;
        let policies = Policies {
            visibility,
            members,
            owner,
            work_item,
            access,
            hidden_until,
            status: ScopeStatus::Ended,
            ..Policies::default()
        };
        ScopePolicies { policies, entries: None, updated_at: now, ..self }
    }

    /// The same row for a scope whose policies are deleted, if it hides a past.
    pub(super) fn deleted(self, now: Timestamp, revision: Revision) -> Option<ScopePolicies> {
        let hidden_until = Some(self.policies.hidden_until?);
        let policies = Policies { hidden_until, status: ScopeStatus::Deleted, ..Policies::default() };
        Some(ScopePolicies { policies, entries: None, updated_at: now, revision, ..self })
    }

    /// Up to which revision a new scope with this name hides its past: up to now, if the row restricts who may see it.
    pub(super) fn hides_for_successor(&self, now: Revision) -> Option<Revision> {
        if self.is_restricted() { Some(now) } else { self.policies.hidden_until }
    }

    /// Refuses to write into a scope that has ended.
    pub(crate) fn check_not_ended(&self) -> Result<()> {
        if self.policies.status == ScopeStatus::Ended { Err(self.has_ended()) } else { Ok(()) }
    }

    /// The refusal of a scope that has ended.
    pub(super) fn has_ended(&self) -> Error {
        let ScopePolicies { scope, policies, .. } = self;
        let with = match &policies.work_item {
            Some(id) if policies.visibility != Visibility::Local => format!("work item {id}"),
            _ => "its session".to_owned(),
        };
        Refusal::new(Code::ScopeEnded, format!("scope {scope} has ended with {with}"))
            .hint(Hint::CreateScopeAgain(scope.clone()))
            .detail("scope", scope.clone())
            .into()
    }
}

impl EndsWith<'_> {
    /// Marks the rows of these scopes, which end with it. A row that cannot be read is left to the commit that deletes the scope.
    pub(super) fn mark(self, tx: &dyn Tx, scopes: &[String], changes: &mut Changes) -> Result<()> {
        let keys = || scopes.iter().map(|scope| Key::ScopePolicies(scope.clone()));
        tx.prefetch(&keys().map(Prefetch::Row).collect::<Vec<_>>())?;
        for key in keys() {
            let row = crate::unreadable::if_readable(tx.row::<ScopePolicies>(&key))?;
            if let Some(row) = row.filter(|row| self.ends(row) && row.is_live()) {
                put_once(row.ended(tx.now()), changes);
            }
        }
        Ok(())
    }
}

/// Puts a row in place of one that the same commit has put: a removal of entries changes their number.
pub(super) fn put_once(row: ScopePolicies, changes: &mut Changes) {
    let is_same = |put: &crate::store::Row| matches!(put, crate::store::Row::ScopePolicies(put) if put.scope == row.scope);
    changes.put.retain(|put| !is_same(put));
    changes.put(row);
}

/// Lists a row that only hides a past, so that retention finds it.
pub(super) fn list_past(tx: &dyn Tx, scope: &str, changes: &mut Changes) -> Result<()> {
    let name = format!("{PAST}{:020}:{scope}", tx.now().millis().max(0));
    let key = Key::BookkeepingRow(Cow::Owned(name.clone()));
    // A row has to be read before it is written.
    tx.prefetch(&[Prefetch::Row(key.clone())])?;
    tx.get(&key)?;
    changes.put(BookkeepingRow { name: Cow::Owned(name), value: String::from("{}") });
    Ok(())
}

/// The rows that [`list_past`] has put, the oldest first.
pub(crate) fn past_scopes() -> Range {
    Range::bookkeeping_rows(PAST)
}

/// What the check of a listed row reads.
pub(crate) fn prefetch_past(listed: &Key) -> Vec<Prefetch<'static>> {
    let Some(scope) = scope_of(listed) else { return Vec::new() };
    vec![
        Prefetch::Row(Key::ScopePolicies(scope.to_owned())),
        Prefetch::Keys(Range::tombstones_from(scope), 1),
    ]
}

/// Removes the row that is listed here if nothing is left for it to hide. Removes it from the list then, and if its name was
/// given to another scope. Returns whether it removed something.
pub(crate) fn prune_past(tx: &dyn Tx, listed: &Key, changes: &mut Changes) -> Result<bool> {
    let Some(scope) = scope_of(listed) else {
        changes.remove(listed.clone());
        return Ok(true);
    };
    let key = Key::ScopePolicies(scope.to_owned());
    let row = tx.row::<ScopePolicies>(&key)?.filter(|row| !row.is_live());
    if let Some(row) = row {
        let is_needed = match row.policies.status {
            // A purge removes a value from its history later.
            ScopeStatus::Ended => row.revision > tx.floor()? || has_tombstones(tx, scope)?,
            ScopeStatus::Live | ScopeStatus::Deleted => row.revision > tx.floor()?,
        };
        if is_needed {
            return Ok(false);
        }
        // Its name may be listed twice.
        if !changes.remove.contains(&key) {
            changes.remove(key);
        }
    }
    changes.remove(listed.clone());
    Ok(true)
}

fn has_tombstones(tx: &dyn Tx, scope: &str) -> Result<bool> {
    let first = tx.keys(&Range::tombstones_from(scope), 1)?.into_iter().next().transpose()?;
    Ok(matches!(first, Some(Key::Tombstone(of, _)) if of == scope))
}

/// The scope of a listed row.
fn scope_of(listed: &Key) -> Option<&str> {
    let Key::BookkeepingRow(name) = listed else { return None };
    name.strip_prefix(PAST)?.split_once(':').map(|(_, scope)| scope)
}
