//! The text of changes of entries: the summaries of events, and refusals.

use serde_json::{Map, json};

use super::leases::pattern_of;
use super::{DEFAULT_SCOPE, Entry, FILES, FenceToken, LOCKS};
use crate::agent::{Agent, label, short_id};
use crate::clock::Timestamp;
use crate::error::{AgeKind, Code, Error, Refusal, Result};
use crate::event::EventType;
use crate::hint::Hint;
use crate::revision::Revision;
use crate::store::{Key, Prefetch, Tx};

/// The summary of a change: the text for an entry, or for the lock or reservation that it represents.
pub(crate) enum EventWording {
    AsEntry,
    InWords(String),
}

/// Why an entry is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    /// A call deletes it.
    Deleted,
    /// It expired.
    Expired,
    /// Its scope has a limit, and another entry needs its place.
    Evicted,
    /// Its session ended.
    SessionEnded,
    /// Its session was marked stale.
    SessionStale,
    /// Its scope ends.
    ScopeEnded,
}

impl Removal {
    pub(super) fn event_type(self) -> EventType {
        match self {
            Removal::Expired => EventType::EntryExpired,
            Removal::Evicted => EventType::EntryEvicted,
            Removal::Deleted | Removal::SessionEnded | Removal::SessionStale | Removal::ScopeEnded => {
                EventType::EntryDeleted
            }
        }
    }

    /// Whether a caller or a session removes it. An entry expires, and ends with its scope, by itself.
    pub(super) fn has_actor(self) -> bool {
        !matches!(self, Removal::Expired | Removal::ScopeEnded)
    }

    pub(super) fn op(self) -> &'static str {
        match self {
            Removal::Deleted | Removal::ScopeEnded => "delete",
            Removal::Expired => "expire",
            Removal::Evicted => "evict",
            Removal::SessionEnded | Removal::SessionStale => "release",
        }
    }

    pub(super) fn summary(self, author: &str, entry: &Entry) -> String {
        let Entry { scope, key, .. } = entry;
        let what = named(scope, key);
        let why = match self {
            Removal::Deleted => return format!("Agent \"{author}\" deleted {what}"),
            Removal::Expired => {
                return match scope.as_str() {
                    LOCKS => format!("Lock \"{key}\" expired"),
                    FILES => format!("File reservation {} expired", reserved(entry)),
                    _ => format!("{what} expired"),
                };
            }
            Removal::Evicted => return format!("{what} evicted: the scope is full"),
            Removal::ScopeEnded => return format!("{what} removed (the scope ended)"),
            Removal::SessionEnded => "session ended",
            Removal::SessionStale => "marked stale",
        };
        // The event has no actor if the session was marked stale, and agents may have the same name.
        let session = entry.session_id.as_deref().map(|session| format!(" ({})", short_id(session)));
        let agent = format!("\"{author}\"{}", session.unwrap_or_default());
        match scope.as_str() {
            LOCKS => format!("Lock \"{key}\" of agent {agent} released ({why})"),
            FILES => format!("File reservation {} of agent {agent} released ({why})", reserved(entry)),
            _ => format!("{what} of agent {agent} removed ({why})"),
        }
    }
}

/// A reservation by its pattern.
fn reserved(entry: &Entry) -> String {
    format!("\"{}\"", pattern_of(entry).unwrap_or_else(|| entry.key.clone()))
}

/// A key, with its scope unless that is the default one.
pub(super) fn named(scope: &str, key: &str) -> String {
    match scope {
        DEFAULT_SCOPE => format!("\"{key}\""),
        scope => format!("\"{key}\" in scope \"{scope}\""),
    }
}

/// The metadata of the event of an entry.
pub(super) fn about(scope: &str, op: &str) -> Map<String, serde_json::Value> {
    let mut map = Map::new();
    map.insert("op".to_owned(), json!(op));
    map.insert("scope".to_owned(), json!(scope));
    map
}

/// When the lease of an entry began.
pub(crate) fn held_since(tx: &dyn Tx, entry: &Entry) -> Result<Timestamp> {
    match entry.fence {
        Some(fence) if fence == entry.revision => Ok(entry.updated_at),
        // Retention may have pruned the version in which its session acquired it.
        Some(fence) => {
            tx.prefetch(&[Prefetch::Version(fence)])?;
            Ok(tx.version(fence)?.map_or(entry.created_at, |taken| taken.entry.updated_at))
        }
        None => Ok(entry.created_at),
    }
}

/// The refusal to change an entry that another session leases.
pub(crate) fn held(tx: &dyn Tx, entry: &Entry) -> Result<Error> {
    let session = entry.session_id.clone().unwrap_or_default();
    let holder = Key::Agent(session.clone());
    let fence = entry.fence.unwrap_or(entry.revision);
    tx.prefetch(&[Prefetch::Row(holder.clone()), Prefetch::Version(fence)])?;
    let holder = tx.peek_row::<Agent>(&holder)?;
    let name = holder.map_or_else(|| entry.created_by.clone(), |agent| agent.agent_name);
    let since = held_since(tx, entry)?;
    let (what, hint) = match entry.scope.as_str() {
        LOCKS => (format!("lock {}", entry.key), Hint::WaitForLock),
        FILES => (format!("the reservation of {}", reserved(entry)), Hint::WorkOnOtherFiles),
        _ => {
            (named(&entry.scope, &entry.key), Hint::from("wait until that session deletes the entry or ends"))
        }
    };
    let mut refusal = Refusal::new(Code::Held, format!("{what} is held by {}", label(&name, &session)))
        .age(AgeKind::Held, Some(since), "")
        .hint(hint)
        .held_by(session, name, Some(since))
        .detail("revision", entry.revision.get());
    if let Some(fence) = entry.fence {
        refusal = refusal.detail("fence", fence.get());
    }
    Ok(refusal.into())
}

/// The refusal of a fence token that is not the current one.
pub(super) fn stale_fence(fence: &FenceToken, current: Option<Revision>) -> Error {
    let now = match current {
        Some(current) => format!("the current token is {current}"),
        None => match fence {
            FenceToken::Lock { .. } => "the lock is not held".to_owned(),
            FenceToken::Work { .. } => "the work item is not claimed".to_owned(),
        },
    };
    Refusal::new(Code::StaleFence, format!("fence token {fence} is stale: {now}; nothing was changed"))
        .hint("another session may have held it since; check before you acquire it again")
        .detail("fence", current.map(Revision::get))
        .into()
}

pub(super) fn no_session_for_lease() -> Error {
    Refusal::new(Code::NoSession, "a leased entry requires a session").hint(Hint::PassSession).into()
}

/// The refusal of an ordinary change in the scope of locks or file reservations.
pub(super) fn reserved_scope(scope: &str) -> Error {
    let (what, hint) = match scope {
        LOCKS => ("locks", Hint::UseLocks),
        _ => ("file reservations", Hint::UseFiles),
    };
    Refusal::new(Code::InvalidValue, format!("scope \"{scope}\" is reserved for {what}")).hint(hint).into()
}

/// The refusal to write an entry with the key of a lock.
pub(super) fn lock_key(key: &str, name: &str) -> Error {
    Refusal::new(
        Code::InvalidValue,
        format!("key {key} means a lock, and an entry would exclude no other agent"),
    )
    .hint(Hint::AcquireLock(name.to_owned()))
    .into()
}

/// The refusal to create an entry that exists.
pub(super) fn exists(scope: &str, entry: &Entry) -> Error {
    let since = entry.created_at;
    let message = format!("key {} already exists (written by {}", entry.key, entry.created_by);
    Refusal::new(Code::AlreadyExists, message)
        .age(AgeKind::Written, Some(since), ")")
        .hint(Hint::ReadKey { scope: scope.to_owned(), key: entry.key.clone() })
        .held_by(entry.session_id.clone(), entry.created_by.clone(), Some(since))
        .detail("revision", entry.revision.get())
        .detail("version", entry.version)
        .into()
}

/// The refusal to change an entry that has another revision than the caller expects.
pub(super) fn conflict(scope: &str, key: &str, expected: Revision, found: Option<&Entry>) -> Error {
    let refusal = match found {
        Some(found) => Refusal::new(
            Code::Conflict,
            format!(
                "key {key} has changed: expected revision {expected}, found {} (written by {}",
                found.revision, found.updated_by
            ),
        )
        .age(AgeKind::Written, Some(found.updated_at), ")")
        .detail("version", found.version)
        .detail("updated_by", found.updated_by.clone())
        .detail("updated_at", found.updated_at.to_string()),
        None => {
            Refusal::new(Code::Conflict, format!("key {key} does not exist; expected revision {expected}"))
        }
    };
    refusal
        .hint(Hint::ReadAndRetry { scope: scope.to_owned(), key: key.to_owned() })
        .detail("scope", scope)
        .detail("key", key)
        .detail("expected", expected.get())
        .detail("revision", found.map_or(0, |found| found.revision.get()))
        .into()
}
