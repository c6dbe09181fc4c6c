//! The rules of entries, each a pure function.
//!
//! - **Actor.** The session that acts has to exist. The author is the name that the caller gives, or the name of the session's
//!   agent, or `cli`.
//! - **Fence tokens.** A commit that names a lock or a work item is refused unless it is held at exactly this
//!   revision.
//! - **Leases.** A leased entry can be changed only by its session, and is removed in the commit that ends the
//!   session. Its fence token is the revision of the write that acquired the lease.
//! - **Expiry.** An expired entry is invisible. It is removed, with its own event, before anything else happens to
//!   its key.
//! - **Versions.** The version counts the writes of a key. It continues after a removal for as long as the tombstone is kept.
//!
//! [`decide`] is the rule of a write. It takes the entry before and the circumstances, and returns the entry after or
//! a refusal. [`decide_write`] also makes the checks that read more than the entry. `editor.rs` applies the rules to the keys of a commit. The text of refusals is in `wording.rs`.

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::wording::{conflict, exists, held, lock_key, no_session_for_lease, reserved_scope, stale_fence};
use super::{
    Actor, Entry, FILES, FenceToken, LOCK_PREFIX, LOCKS, Write, check_key, check_scope, known_tag_set,
};
use crate::agent::Agent;
use crate::clock::Timestamp;
use crate::error::{Code, Error, Refusal, Result};
use crate::hint::Hint;
use crate::metadata::Metadata;
use crate::revision::Revision;
use crate::store::{Key, Prefetch, Range, Tx};
use crate::work::{Status, WorkItem};

/// The author without a name and without a session.
const NO_AUTHOR: &str = "cli";

/// The author of what a commit does.
pub(super) fn author_of(actor: &Actor, agent: Option<&Agent>) -> String {
    match (&actor.author, agent) {
        (Some(author), _) => author.clone(),
        (None, Some(agent)) => agent.agent_name.clone(),
        (None, None) => NO_AUTHOR.to_owned(),
    }
}

/// The circumstances of a write, beside the entry before it.
pub(super) struct Circumstances<'a> {
    pub(super) scope: &'a str,
    pub(super) author: &'a str,
    /// The session that acts.
    pub(super) session: Option<&'a str>,
    /// The last version of the key.
    pub(super) last: LastVersion,
    /// The revision that the entry gets.
    pub(super) revision: Revision,
    pub(super) now: Timestamp,
    /// The time to live of a write without one.
    pub(super) default_ttl: Option<Duration>,
}

/// The version that a new version of a key continues from, also if the key was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LastVersion {
    pub(super) version: u64,
    pub(super) revision: Option<Revision>,
}

/// The entry after a write by this agent.
pub(super) fn decide_write(
    tx: &dyn Tx,
    write: &Write,
    before: Option<&Entry>,
    agent: Option<&Agent>,
    circumstances: &Circumstances<'_>,
) -> Result<Entry> {
    check_not_a_lock(circumstances.scope, &write.key)?;
    check_holder(tx, before, circumstances.session)?;
    if write.lease {
        agent.ok_or_else(no_session_for_lease)?.must_be_live()?;
    }
    if circumstances.last == LastVersion::default() && circumstances.scope != FILES {
        check_new_name(tx, circumstances.scope, &write.key)?;
    }
    decide(write, before, circumstances)
}

/// The entry after a write.
pub(super) fn decide(
    write: &Write,
    before: Option<&Entry>,
    circumstances: &Circumstances<'_>,
) -> Result<Entry> {
    let Circumstances { scope, author, session, last, revision, now, default_ttl } = *circumstances;
    check_ttl(write.ttl)?;
    check_conditions(write, before, scope)?;
    let leased = before.and_then(|before| before.session_id.clone());
    let (session_id, fence) = match leased {
        Some(holder) => (Some(holder), before.and_then(|before| before.fence)),
        None => match session.filter(|_| write.lease) {
            Some(session) => (Some(session.to_owned()), Some(revision)),
            None => (None, None),
        },
    };
    let (mut tags, mut metadata) = (write.tags.clone(), write.metadata.clone());
    let mut expires_at = write.ttl.map(|ttl| now.plus(ttl));
    if let Some(before) = before.filter(|_| write.merge) {
        tags = known_tag_set(tags.into_iter().chain(before.tags.iter().cloned()).collect())?;
        metadata = merged(before.metadata.as_ref(), metadata)?;
        expires_at = expires_at.or(before.expires_at);
    }
    let expires_at = expires_at.or_else(|| default_ttl.map(|ttl| now.plus(ttl)));
    Ok(Entry {
        scope: scope.to_owned(),
        key: write.key.clone(),
        value: write.value.clone(),
        version: last.version + 1,
        revision,
        created_at: before.map_or(now, |before| before.created_at),
        created_by: before.map_or(author, |before| &before.created_by).to_owned(),
        updated_at: now,
        updated_by: author.to_owned(),
        expires_at,
        tags,
        metadata,
        session_id,
        fence,
    })
}

fn check_conditions(write: &Write, before: Option<&Entry>, scope: &str) -> Result<()> {
    if let Some(before) = before.filter(|_| write.if_absent) {
        return Err(exists(scope, before));
    }
    match write.if_revision {
        Some(expected) if expected != before.map_or(Revision::ZERO, |before| before.revision) => {
            Err(conflict(scope, &write.key, expected, before))
        }
        _ => Ok(()),
    }
}

fn merged(before: Option<&Metadata>, after: Option<Metadata>) -> Result<Option<Metadata>> {
    match (before, after) {
        (Some(before), Some(after)) => before.merged_with(&after).map(Some),
        (before, after) => Ok(after.or_else(|| before.cloned())),
    }
}

/// Whether the session that acts may change an entry that is leased by `holder`.
fn may_change(holder: Option<&str>, session: Option<&str>) -> bool {
    holder.is_none() || holder == session
}

/// Refuses to change an entry that another session leases.
pub(super) fn check_holder(tx: &dyn Tx, entry: Option<&Entry>, session: Option<&str>) -> Result<()> {
    match entry {
        Some(entry) if !may_change(entry.session_id.as_deref(), session) => Err(held(tx, entry)?),
        _ => Ok(()),
    }
}

/// Refuses a time to live so short that no reader could see the entry.
pub(crate) fn check_ttl(ttl: Option<Duration>) -> Result<()> {
    match ttl {
        Some(ttl) if ttl.as_millis() == 0 => Err(Error::invalid("the TTL is shorter than 1 ms")),
        _ => Ok(()),
    }
}

/// Refuses an ordinary change in a scope that has verbs of its own.
pub(crate) fn check_not_reserved(scope: &str) -> Result<()> {
    if [LOCKS, FILES].contains(&scope) { Err(reserved_scope(scope)) } else { Ok(()) }
}

/// Refuses to write an entry that looks like a lock, and would exclude no other agent. One of an earlier version can still
/// be read and deleted.
pub(crate) fn check_not_a_lock(scope: &str, key: &str) -> Result<()> {
    match key.strip_prefix(LOCK_PREFIX) {
        Some(name) if ![LOCKS, FILES].contains(&scope) => Err(lock_key(key, name)),
        _ => Ok(()),
    }
}

/// The entry with this key, unless it has expired. Whether the caller may read it is checked before.
pub(crate) fn visible(tx: &dyn Tx, key: &Key) -> Result<Option<Entry>> {
    Ok(tx.row::<Entry>(key)?.filter(|entry| !entry.is_expired(tx.now())))
}

/// Refuses a fence token that is stale: the lock or work item is not held at this revision any more.
pub(super) fn check_fence(tx: &dyn Tx, fence: &FenceToken) -> Result<()> {
    let (current, expected) = match fence {
        FenceToken::Lock { name, fence } => {
            let lock = visible(tx, &Key::Entry(LOCKS.to_owned(), name.clone()))?;
            (lock.and_then(|lock| lock.fence), fence)
        }
        FenceToken::Work { id, fence } => {
            let item = tx.row::<WorkItem>(&Key::WorkItem(id.clone()))?;
            let claimed = item.filter(|item| item.claimed_by.is_some() && item.status != Status::Completed);
            (claimed.and_then(|item| item.fence), fence)
        }
    };
    if current == Some(*expected) { Ok(()) } else { Err(stale_fence(fence, current)) }
}

/// Refuses to end a holding with another fence token than it has: it was lost and acquired again meanwhile.
pub(crate) fn check_own_fence(
    what: &str,
    current: Option<Revision>,
    given: Option<Revision>,
    hint: Hint,
) -> Result<()> {
    let Some((current, given)) = current.zip(given).filter(|(current, given)| current != given) else {
        return Ok(());
    };
    // Tokens only grow: one that is larger than the current one was never printed.
    let (message, hint) = if given > current {
        let message = format!("fence token {given} does not exist: {what} with token {current}");
        (message, Hint::from("use the token that was printed with the claim or lock"))
    } else {
        (format!("fence token {given} is stale: {what} again with token {current}"), hint)
    };
    Err(Refusal::new(Code::StaleFence, message).hint(hint).detail("fence", current.get()).into())
}

/// Refuses the key of a new entry that has invisible characters, and a new scope that has some. Earlier versions accepted
/// more of them, and their scopes and keys stay usable.
fn check_new_name(tx: &dyn Tx, scope: &str, key: &str) -> Result<()> {
    check_key(scope, key)?;
    match check_scope(scope) {
        Ok(()) => Ok(()),
        Err(refused) => {
            let scope = Range::entries(scope, "");
            tx.prefetch(&[Prefetch::Heads(scope.clone(), 1)])?;
            match tx.heads(&scope, 1) {
                Ok(heads) if heads.is_empty() => Err(refused),
                // An entry that cannot be read is an entry of this scope.
                Err(error) if !error.is_unreadable_row() => Err(error),
                _ => Ok(()),
            }
        }
    }
}
