//! Scopes: the policies of a namespace of entries, stored on the board.
//!
//! A scope needs no declaration: a scope without policies is global and unlimited, and exists as long as it has entries. Policies
//! are one row for each scope that has some. Every commit that writes an entry reads the row of its scope and validates it,
//! so that a policy applies to every process from the commit on that sets it.
//!
//! | File | What it is about |
//! |---|---|
//! | `create.rs`, `set.rs`, `delete.rs`, `show.rs`, `list.rs` | the verbs |
//! | `planned.rs` | what `create` would do, for the dry run of an import |
//! | `custom.rs` | policies of a program that embeds the library, which are not stored |
//! | `restrict.rs` | who may begin to restrict the callers of a scope |
//! | `rules.rs` | the rules of policies, each a pure function |
//! | `access.rs` | access rules and members: who may read, write and delete which entries |
//! | `caller.rs`, `guard.rs` | who calls; what every path asks before it shows or changes an entry |
//! | `end.rs`, `past.rs` | scopes that end with a session or with a work item; what hides their history |
//! | `size.rs` | the number of entries of a scope with a limit, and which entry is evicted |
//! | `value_rules.rs`, `value_type.rs` | which values are allowed under which keys |
//!
//! `entry/editor.rs` applies the policies to the changes of a commit. `guard.rs` applies access rules to everything that is read.

mod access;
mod caller;
mod create;
mod custom;
mod delete;
mod end;
mod guard;
mod list;
mod past;
mod planned;
mod restrict;
mod rules;
mod set;
mod show;
mod size;
mod value_rules;
mod value_type;

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub use self::access::{AccessOperation, AccessRule, AccessRules, Effect, MAX_ACCESS_RULES, MAX_MEMBERS};
pub(crate) use self::caller::CallerSource;
pub(crate) use self::create::described;
pub use self::create::{CreateScope, CreatedScope};
pub(crate) use self::custom::SharedPolicies;
pub use self::custom::{
    AccessPolicy, Caller, CustomPolicies, EVICTION_CANDIDATES, EvictionOrder, EvictionPolicy,
    LfuEvictionPolicy, LruEvictionPolicy, MAX_CUSTOM_ENTRIES, NoOpAccessPolicy, NoOpValidationPolicy,
    TypeValidationPolicy, ValidationPolicy,
};
pub use self::delete::{DeleteScope, DeletedScope};
pub use self::end::SkippedScope;
pub(crate) use self::end::{EndsWith, ended_lists};
pub(crate) use self::guard::Guard;
pub use self::past::ScopeStatus;
pub(crate) use self::past::{past_scopes, prefetch_past, prune_past};
pub(crate) use self::planned::Planned;
pub use self::rules::{MAX_RULE_SCHEMA_BYTES, MAX_VALUE_RULES};
pub(crate) use self::rules::{check_counted, check_value, scope_full};
pub use self::set::{ScopeUpdated, SetScope};
pub use self::size::MAX_COUNTED;
pub(crate) use self::size::{
    EvictionQueue, add_to_size, eviction_order, policies_of, prefetch_all_policies, prefetch_policies,
};
pub(crate) use self::value_rules::RuleProtocols;
pub use self::value_rules::{AllowedValues, ValueRule, ValueRules};
pub use self::value_type::ValueType;
use crate::board::Board;
use crate::clock::Timestamp;
use crate::entry::{Entry, Seconds};
use crate::error::{Code, Error, Refusal};
use crate::hint::Hint;
use crate::memory::LevelRules;
use crate::names::impl_names;
use crate::revision::Revision;
use crate::store::Range;
use crate::store::record::{Cell, Column, StoredCell, record};

/// The scopes of a board and their policies: `board.scopes()`. The entries of one scope are `board.scope(name)`.
#[derive(Clone, Copy)]
pub struct Scopes<'a> {
    pub(crate) board: &'a Board,
}

/// Who may use the entries of a scope, and how long they are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Visibility {
    /// Every caller.
    #[default]
    Global,
    /// Every caller. Entries have no default time to live, and are never evicted.
    Persistent,
    /// The members, and the session that created the scope.
    Shared,
    /// The session that created the scope. It is deleted when the session ends.
    Local,
}

impl Visibility {
    /// All of them.
    pub const ALL: &'static [Visibility] =
        &[Visibility::Global, Visibility::Persistent, Visibility::Shared, Visibility::Local];

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Visibility::Global => "global",
            Visibility::Persistent => "persistent",
            Visibility::Shared => "shared",
            Visibility::Local => "local",
        }
    }
}

impl_names!(Visibility, "visibility");

/// What happens to a write that would exceed the limit of a scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Eviction {
    /// The entry whose last write is the oldest is evicted.
    #[default]
    Lru,
    /// The entry with the smallest `access_count` in its metadata is evicted.
    Lfu,
    /// The write is refused.
    Refuse,
}

impl Eviction {
    /// All of them.
    pub const ALL: &'static [Eviction] = &[Eviction::Lru, Eviction::Lfu, Eviction::Refuse];

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Eviction::Lru => "lru",
            Eviction::Lfu => "lfu",
            Eviction::Refuse => "refuse",
        }
    }
}

impl_names!(Eviction, "eviction");

/// The policies of a scope. The default ones are those of a scope without policies.
///
/// A stored policy that this version does not know makes the row unreadable: to ignore it would break a promise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policies {
    /// Who may use the entries, and how long they are kept.
    pub visibility: Visibility,
    /// The agents that a shared scope is for: names of agents, authors, or session ids.
    pub members: Vec<String>,
    /// The session that created a scope which restricts its callers. It may change the policies. Creating and setting
    /// policies stores the session that acts, whatever a caller has here.
    pub owner: Option<String>,
    /// The work item with which the scope ends: it is deleted when the item is completed or deleted.
    pub work_item: Option<String>,
    /// Who may read, write and delete which keys.
    pub access: AccessRules,
    /// The time to live of an entry that is written without one, in seconds.
    #[serde(serialize_with = "as_seconds", deserialize_with = "from_seconds")]
    pub ttl: Option<Duration>,
    /// The most entries that the scope may have, including expired ones that no sweep has removed yet.
    pub max_entries: Option<u64>,
    /// What happens to a write that would exceed it.
    pub eviction: Eviction,
    /// Which values are allowed under which keys.
    pub validation: ValueRules,
    /// The rules that make the scope a level of memory. Only [`Memory::define`](crate::memory::Memories::define) changes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<LevelRules>,
    /// Whether the scope exists. The board sets it, whatever a caller has here.
    #[serde(skip_serializing_if = "ScopeStatus::is_live")]
    pub status: ScopeStatus,
    /// Only the operator sees what happened up to this revision: an earlier scope with this name restricted its callers. The
    /// board sets it, whatever a caller has here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden_until: Option<Revision>,
}

#[expect(clippy::ref_option, reason = "serde calls it with a reference to the field")]
pub(crate) fn as_seconds<S: Serializer>(ttl: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    ttl.map(|ttl| Seconds(ttl.as_secs_f64())).serialize(serializer)
}

pub(crate) fn from_seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let seconds = Option::<f64>::deserialize(deserializer)?;
    // Whole milliseconds are stored.
    let milliseconds = seconds.map(|seconds| Duration::try_from_secs_f64(seconds + 0.0005)).transpose();
    milliseconds.map(|ttl| ttl.map(whole_milliseconds)).map_err(de::Error::custom)
}

/// A time to live without what is shorter than a millisecond.
fn whole_milliseconds(ttl: Duration) -> Duration {
    Duration::from_millis(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX))
}

/// The stored policies of a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopePolicies {
    /// The scope.
    pub scope: String,
    /// Its policies, in one column: every command parses the schema, and a policy more costs it nothing.
    pub policies: Policies,
    /// How many entries the scope has, if it has a limit: every commit that adds or removes one changes it.
    pub entries: Option<u64>,
    /// When the policies were created.
    pub created_at: Timestamp,
    /// Their author.
    pub created_by: String,
    /// When they were last changed.
    pub updated_at: Timestamp,
    /// The author of the last change.
    pub updated_by: String,
    /// The event that changed them last. A change of the number of entries has the events of the entries.
    pub revision: Revision,
    /// The event since which the scope has its kind of eviction.
    pub evicting_since: Revision,
}

record! {
    ScopePolicies in "scopes", generation 0 {
        key { scope }
        columns {
            policies, entries, created_at, created_by, updated_at, updated_by, revision, evicting_since
        }
    }
    indexes {
        /// All scopes that have policies, by name.
        ALL: by (scope);
    }
}

impl Range {
    /// The policies of all scopes that have some.
    pub fn scope_policies() -> Range {
        Range::all(ScopePolicies::ALL)
    }
}

impl Policies {
    /// The stored form.
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Column for Policies {
    fn cell(&self) -> Cell<'_> {
        Cell::Policies(self)
    }

    fn read(cell: &StoredCell<'_>) -> crate::Result<Policies> {
        serde_json::from_str(cell.text()?).map_err(|error| cell.damaged(error))
    }
}

/// A scope, with what is known about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ScopeDetails {
    /// Its name.
    pub scope: String,
    /// How many entries it has, including expired ones that no sweep has removed yet.
    pub entries: u64,
    /// Its policies.
    #[serde(flatten)]
    pub policies: Policies,
    /// When the policies were created. A scope without policies has none of the fields from here on.
    pub created_at: Option<Timestamp>,
    /// Their author.
    pub created_by: Option<String>,
    /// When they were last changed.
    pub updated_at: Option<Timestamp>,
    /// The author of the last change.
    pub updated_by: Option<String>,
    /// The event that changed them last.
    pub revision: Option<Revision>,
}

impl ScopeDetails {
    fn of(scope: String, entries: u64, row: Option<&ScopePolicies>) -> ScopeDetails {
        let policies = row.map(|row| row.policies.clone()).unwrap_or_default();
        ScopeDetails {
            scope,
            entries,
            policies,
            created_at: row.map(|row| row.created_at),
            created_by: row.map(|row| row.created_by.clone()),
            updated_at: row.map(|row| row.updated_at),
            updated_by: row.map(|row| row.updated_by.clone()),
            revision: row.map(|row| row.revision),
        }
    }
}

impl ScopeDetails {
    /// A scope with policies, whose entries are among these.
    pub(crate) fn among(entries: &[Entry], row: &ScopePolicies) -> ScopeDetails {
        let stored = || entries.iter().filter(|entry| entry.scope == row.scope).count() as u64;
        let entries = row.entries.unwrap_or_else(stored);
        ScopeDetails::of(row.scope.clone(), entries, Some(row))
    }
}

/// The refusal of a scope that has neither policies nor entries.
pub(crate) fn not_found(scope: &str) -> Error {
    Refusal::new(Code::ScopeNotFound, format!("scope {scope} has neither policies nor entries"))
        .hint(Hint::ListScopes)
        .into()
}

/// The refusal to change policies that do not exist.
fn no_policies(scope: &str) -> Error {
    Refusal::new(Code::ScopeNotFound, format!("scope {scope} has no policies"))
        .hint(Hint::CreateScope(scope.to_owned()))
        .into()
}
