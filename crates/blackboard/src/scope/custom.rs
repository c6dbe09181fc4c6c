//! Policies of a program that embeds the library, on its own [`Board`] value.
//!
//! They are code, so they are not stored: other processes do not see and do not obey them. Stored [`Policies`] apply to
//! every process as well. [`Board::set_policies`] replaces them at any time.
//!
//! [`CallerPolicies`] are the policies for one caller, or none. A [`Guard`](super::Guard) asks them before the stored policies, and both have to allow;
//! the editor (`entry/editor.rs`) asks them about new values and evictions.

use std::sync::{Arc, PoisonError, RwLock};

use super::rules::check_value_of;
use super::{AccessOperation, ValueRules};
#[cfg(doc)]
use super::{Eviction, Policies};
use crate::board::Board;
use crate::entry::{Actor, Entry, FILES, LOCKS, Value};
use crate::error::{Code, Error, Refusal, Result};
use crate::metadata::Metadata;
use crate::store::Range;
use crate::text::shown;

/// The largest [`CustomPolicies::max_entries`]: each new key reads as many keys of its scope.
pub const MAX_CUSTOM_ENTRIES: u64 = 10_000;

/// How many entries an [`EvictionPolicy`] chooses from.
pub const EVICTION_CANDIDATES: usize = 32;

/// The identity that a caller states: the names of the [`Actor`] of a scope or a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller<'a> {
    /// The author's name, if the caller gave one.
    pub author: Option<&'a str>,
    /// The session that acts.
    pub session: Option<&'a str>,
}

/// Decides which entries a caller may read, write and delete.
///
/// A policy is called in a commit, perhaps several times for one call. It has to be fast, and must not use the board.
pub trait AccessPolicy: Send + Sync {
    /// Whether the caller may read a key. A read of this key is refused; queries and lists leave it out.
    fn can_read(&self, caller: Caller<'_>, scope: &str, key: &str) -> bool;

    /// Whether the caller may write this value.
    fn can_write(&self, caller: Caller<'_>, scope: &str, key: &str, value: &Value) -> bool;

    /// Whether the caller may delete a key.
    fn can_delete(&self, caller: Caller<'_>, scope: &str, key: &str) -> bool;
}

/// Chooses which entries of a full scope are evicted. It applies to a scope that is full according to its stored limit,
/// unless that refuses writes, and to [`CustomPolicies::max_entries`].
pub trait EvictionPolicy: Send + Sync {
    /// Which entries it chooses from.
    fn order(&self) -> EvictionOrder {
        EvictionOrder::OldestWrite
    }

    /// The keys to evict, at most `count`, the first one first. `entries` are the first [`EVICTION_CANDIDATES`] in the order
    /// of [`EvictionPolicy::order`], without leased ones and those that the same commit wrote. If no key of them is
    /// returned, the write is refused.
    fn candidates(&self, entries: &[Entry], count: usize) -> Vec<String>;
}

/// An index from which the candidates of an eviction come: a scope is never read completely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EvictionOrder {
    /// By the last write, the oldest first.
    #[default]
    OldestWrite,
    /// Entries with `access_count` in their metadata, the least used first; then all, the oldest first.
    LeastUsed,
}

impl EvictionOrder {
    pub(crate) fn ranges(self, scope: &str) -> Vec<Range> {
        match self {
            EvictionOrder::OldestWrite => vec![Range::oldest_entries(scope)],
            EvictionOrder::LeastUsed => vec![Range::least_used_entries(scope), Range::oldest_entries(scope)],
        }
    }
}

/// Refuses values.
///
/// A policy is called in a commit, perhaps several times for one call. It has to be fast, and must not use the board.
pub trait ValidationPolicy: Send + Sync {
    /// Returns the error of a write that is not allowed, for example [`Error::invalid`].
    fn validate(&self, scope: &str, key: &str, value: &Value, metadata: Option<&Metadata>) -> Result<()>;
}

/// Allows everything: the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoOpAccessPolicy;

impl AccessPolicy for NoOpAccessPolicy {
    fn can_read(&self, _caller: Caller<'_>, _scope: &str, _key: &str) -> bool {
        true
    }

    fn can_write(&self, _caller: Caller<'_>, _scope: &str, _key: &str, _value: &Value) -> bool {
        true
    }

    fn can_delete(&self, _caller: Caller<'_>, _scope: &str, _key: &str) -> bool {
        true
    }
}

/// Evicts the entry whose last write is the oldest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LruEvictionPolicy;

impl EvictionPolicy for LruEvictionPolicy {
    fn candidates(&self, entries: &[Entry], count: usize) -> Vec<String> {
        first_keys(entries, count, |entry| entry.revision)
    }
}

/// Evicts the entry with the smallest `access_count` in its metadata. One without a count counts as not used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LfuEvictionPolicy;

impl EvictionPolicy for LfuEvictionPolicy {
    fn order(&self) -> EvictionOrder {
        EvictionOrder::LeastUsed
    }

    fn candidates(&self, entries: &[Entry], count: usize) -> Vec<String> {
        first_keys(entries, count, |entry| (entry.access_count().unwrap_or_default(), entry.revision))
    }
}

fn first_keys<K: Ord>(entries: &[Entry], count: usize, by: impl Fn(&Entry) -> K) -> Vec<String> {
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_by_key(|entry| by(entry));
    entries.into_iter().take(count).map(|entry| entry.key.clone()).collect()
}

/// Allows all values: the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoOpValidationPolicy;

impl ValidationPolicy for NoOpValidationPolicy {
    fn validate(&self, _: &str, _: &str, _: &Value, _: Option<&Metadata>) -> Result<()> {
        Ok(())
    }
}

/// Allows values by the types and schemas of rules, in every scope. A rule that names a protocol needs a stored policy: this
/// one knows the built-in protocols only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeValidationPolicy {
    /// The rules.
    pub rules: ValueRules,
}

impl TypeValidationPolicy {
    /// Values by patterns of keys.
    ///
    /// ```
    /// # use blackboard::scope::TypeValidationPolicy;
    /// let policy = TypeValidationPolicy::new(["config.*=dict", "count.*=int"])?;
    /// assert_eq!(policy.rules.as_slice().len(), 2);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn new<'r>(rules: impl IntoIterator<Item = &'r str>) -> Result<TypeValidationPolicy> {
        let rules = rules.into_iter().map(str::parse).collect::<Result<_>>()?;
        Ok(TypeValidationPolicy { rules: ValueRules::new(rules) })
    }
}

impl ValidationPolicy for TypeValidationPolicy {
    fn validate(&self, scope: &str, key: &str, value: &Value, _: Option<&Metadata>) -> Result<()> {
        check_value_of(scope, &self.rules, &self.rules.built_in_protocols(), key, value)
    }
}

/// The policies of a program for its own board value; see [`Board::set_policies`]. The default ones allow everything.
#[derive(Clone)]
pub struct CustomPolicies {
    /// Which entries a caller may read, write and delete.
    pub access: Arc<dyn AccessPolicy>,
    /// Which values are allowed.
    pub validation: Arc<dyn ValidationPolicy>,
    /// Which entries are evicted, in place of the stored [`Eviction`] of a scope.
    pub eviction: Option<Arc<dyn EvictionPolicy>>,
    /// The most entries of a scope without a stored limit, at most [`MAX_CUSTOM_ENTRIES`]. If other processes wrote more, a
    /// new key evicts one entry.
    pub max_entries: Option<u64>,
}

impl Default for CustomPolicies {
    fn default() -> CustomPolicies {
        CustomPolicies {
            access: Arc::new(NoOpAccessPolicy),
            validation: Arc::new(NoOpValidationPolicy),
            eviction: None,
            max_entries: None,
        }
    }
}

/// The policies that all clones of a board share.
#[derive(Default)]
pub(crate) struct SharedPolicies(RwLock<Option<Arc<CustomPolicies>>>);

impl Board {
    /// Sets the policies of this program for this board value and its clones, from the next call on, in place of those that
    /// were set before. They are not stored: other processes do not see them. They apply wherever
    /// stored access rules do, to events and exports too; not to locks and file reservations.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use blackboard::entry::{Actor, Query, Value, Write};
    /// use blackboard::scope::{AccessPolicy, Caller, CustomPolicies, TypeValidationPolicy};
    /// use blackboard::{Board, Code};
    ///
    /// /// Every agent reads and writes below its own name, and reads what others publish.
    /// struct OwnKeys;
    ///
    /// impl AccessPolicy for OwnKeys {
    ///     fn can_read(&self, caller: Caller<'_>, scope: &str, key: &str) -> bool {
    ///         key.starts_with("public:") || self.can_delete(caller, scope, key)
    ///     }
    ///     fn can_write(&self, caller: Caller<'_>, scope: &str, key: &str, _value: &Value) -> bool {
    ///         key.starts_with("public:") || self.can_delete(caller, scope, key)
    ///     }
    ///     fn can_delete(&self, caller: Caller<'_>, _scope: &str, key: &str) -> bool {
    ///         caller.author.is_some_and(|author| key.split(':').next() == Some(author))
    ///     }
    /// }
    ///
    /// let board = Board::memory();
    /// board.set_policies(CustomPolicies {
    ///     access: Arc::new(OwnKeys),
    ///     validation: Arc::new(TypeValidationPolicy::new(["*:count=int"])?),
    ///     ..CustomPolicies::default()
    /// })?;
    /// let of = |author: &str| board.scope("team").acting_as(Actor::author(author));
    /// of("ivy").write(&Write::new("ivy:count", Value::of(&1)?))?;
    /// assert_eq!(of("oak").read("ivy:count").unwrap_err().code(), Code::NotAllowed);
    /// assert!(of("oak").query(&Query::default())?.entries.is_empty());
    /// let text = Write::new("ivy:count", Value::of("many")?);
    /// assert_eq!(of("ivy").write(&text).unwrap_err().code(), Code::InvalidValue);
    ///
    /// // Without policies.
    /// board.set_policies(CustomPolicies::default())?;
    /// assert!(of("oak").read("ivy:count")?.is_some());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn set_policies(&self, policies: CustomPolicies) -> Result<()> {
        if policies.max_entries.is_some_and(|limit| limit == 0 || limit > MAX_CUSTOM_ENTRIES) {
            let message = format!("the limit of entries has to be from 1 to {MAX_CUSTOM_ENTRIES}");
            return Err(Refusal::new(Code::InvalidValue, message)
                .hint("set a larger limit in the policies of the scope")
                .into());
        }
        let mut shared = self.shared_policies().0.write().unwrap_or_else(PoisonError::into_inner);
        *shared = Some(Arc::new(policies));
        Ok(())
    }

    /// The policies for a caller.
    pub(crate) fn policies_for(&self, actor: &Actor) -> CallerPolicies {
        let shared = self.shared_policies().0.read().unwrap_or_else(PoisonError::into_inner);
        CallerPolicies(shared.as_ref().map(|policies| {
            let (author, session) = (actor.author.clone(), actor.session.clone());
            Box::new(Applied { policies: Arc::clone(policies), author, session })
        }))
    }
}

/// The custom policies of a board for one caller; without any, everything is allowed.
#[derive(Clone, Default)]
pub(crate) struct CallerPolicies(Option<Box<Applied>>);

#[derive(Clone)]
struct Applied {
    policies: Arc<CustomPolicies>,
    author: Option<String>,
    session: Option<String>,
}

impl CallerPolicies {
    /// Whether there are some.
    pub(crate) fn is_any(&self) -> bool {
        self.0.is_some()
    }

    /// Those that apply to a scope: locks and file reservations have rules of their own.
    fn of(&self, scope: &str) -> Option<(&CustomPolicies, Caller<'_>)> {
        let applied = self.0.as_deref().filter(|_| !matches!(scope, LOCKS | FILES))?;
        let caller = Caller { author: applied.author.as_deref(), session: applied.session.as_deref() };
        Some((&applied.policies, caller))
    }

    /// Why the caller may not read or delete a key, if it may not. A write is checked with its value.
    pub(super) fn refusal(&self, operation: AccessOperation, scope: &str, key: &str) -> Option<Error> {
        let (policies, caller) = self.of(scope)?;
        let is_allowed = match operation {
            AccessOperation::Read => policies.access.can_read(caller, scope, key),
            AccessOperation::Delete => policies.access.can_delete(caller, scope, key),
            AccessOperation::Write => true,
        };
        (!is_allowed).then(|| denied(scope, operation, key))
    }

    /// Refuses an entry that the caller may not write, or whose value is not allowed.
    pub(crate) fn check_write(&self, entry: &Entry) -> Result<()> {
        let Entry { scope, key, value, metadata, .. } = entry;
        let Some((policies, caller)) = self.of(scope) else { return Ok(()) };
        if !policies.access.can_write(caller, scope, key, value) {
            return Err(denied(scope, AccessOperation::Write, key));
        }
        policies.validation.validate(scope, key, value, metadata.as_ref())
    }

    /// The limit of a scope without a stored one.
    pub(crate) fn max_entries(&self, scope: &str) -> Option<u64> {
        self.of(scope)?.0.max_entries
    }

    /// What chooses the entries to evict; the stored policy of the scope if it is `None`.
    pub(crate) fn eviction(&self, scope: &str) -> Option<Arc<dyn EvictionPolicy>> {
        let (policies, _) = self.of(scope)?;
        let default = || policies.max_entries.map(|_| Arc::new(LruEvictionPolicy) as Arc<dyn EvictionPolicy>);
        policies.eviction.clone().or_else(default)
    }
}

fn denied(scope: &str, operation: AccessOperation, key: &str) -> Error {
    let message = format!("the access policy of the program denies {operation} access to {}", shown(key));
    Refusal::new(Code::NotAllowed, message).detail("scope", scope).detail("key", key).into()
}
