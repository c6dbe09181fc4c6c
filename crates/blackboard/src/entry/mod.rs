//! Entries: data that agents share, each a [`Value`] under a key of a scope.
//!
//! An entry has a version, which counts its writes, and a revision, the event that wrote it last. Compare-and-swap
//! uses the revision. It may have tags, metadata, a time to live, and a lease. A leased entry is deleted when its
//! session ends, and no other session can change it. Locks and file reservations are leased entries in scopes of
//! their own.
//!
//! | File | What it is about |
//! |---|---|
//! | `write.rs`, `read.rs`, `delete.rs`, `clear.rs`, `purge.rs`, `append.rs`, `increment.rs` | the verbs on keys |
//! | `query.rs`, `list.rs`, `scopes.rs`, `history.rs` | finding entries and their history |
//! | `import.rs` | writing the entries of a file |
//! | `wait.rs` | waiting for a key |
//! | `transaction.rs`, `txn.rs` | several keys atomically |
//! | `rules.rs` | the rules of entries: actor, leases, fence tokens, expiry, versions |
//! | `editor.rs` | applies every change of a commit to entries; `editor/` has access and evictions |
//! | `leases.rs` | the leased entries of a session |
//! | `version.rs` | the row of an entry's history |
//! | `wording.rs` | the text of events and refusals |
//! | `expire.rs` | how the sweep finds expired entries |
//! | `fence.rs`, `key.rs`, `glob.rs`, `value.rs` | the values that all of them check |

mod append;
mod clear;
mod delete;
mod editor;
mod expire;
mod fence;
mod glob;
mod history;
mod import;
mod increment;
mod key;
mod leases;
mod list;
mod purge;
mod query;
mod read;
mod rules;
mod scopes;
mod transaction;
mod txn;
mod value;
mod version;
mod wait;
mod wording;
mod write;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use self::clear::{ClearPlan, Cleared};
pub use self::delete::Deleted;
pub(crate) use self::editor::{EntryEditor, RepeatedAnswer};
pub use self::expire::SkippedEntry;
pub use self::fence::FenceToken;
pub use self::glob::Glob;
pub use self::history::History;
pub(crate) use self::history::compacted;
pub use self::import::{
    ComparedEntry, DefinitionKind, Difference, Import, ImportOutcome, ImportReport, ImportedDefinition,
    ImportedEntry, Keep, SkipReason,
};
use self::key::known_tag_set;
pub(crate) use self::key::{ABSOLUTE_PREFIX, check_known_key, check_known_scope, check_known_tag};
pub use self::key::{
    MAX_KEY_BYTES, MAX_SCOPE_BYTES, MAX_TAG_BYTES, MAX_TAGS, check_key, check_pattern, check_scope,
    check_tag, tag_set,
};
pub use self::leases::Lease;
pub(crate) use self::leases::{Leases, release_leases};
pub use self::list::{CountedKeys, ListedKey, Snapshot};
pub use self::purge::{PurgePlan, Purged};
pub use self::query::{CountedEntries, DEFAULT_LIMIT, Order, Query, QueryPage};
pub(crate) use self::rules::{check_not_a_lock, check_not_reserved, check_own_fence, check_ttl, visible};
pub use self::scopes::{EveryScope, EveryScopePage, ScopeSize};
pub(crate) use self::scopes::{first_scope_from, scopes_from};
pub use self::transaction::{Transaction, TransactionScope};
pub use self::txn::{Comparison, Expected, Operation, OperationResult, Txn, TxnResult};
pub use self::value::Value;
pub use self::version::EntryVersion;
pub use self::wait::WaitFor;
pub(crate) use self::wording::{EventWording, held, held_since};
pub use self::write::{Write, Written};
use crate::agent::prefetch_agent;
use crate::board::Board;
use crate::clock::Timestamp;
use crate::metadata::{Metadata, OrEmpty};
use crate::revision::{Pending, Revision};
use crate::store::record::{Cell, Column, Each, Record, StoredRow, Table, indexes, record, table};
use crate::store::{Key, Prefetch, Range, Row};

/// The scope if the caller names none.
pub const DEFAULT_SCOPE: &str = "default";

/// The scope of locks. Only the lock verbs write it.
pub const LOCKS: &str = "locks";

/// How keys of other programs begin that mean a lock. No entry has such a key: two kinds of lock would not exclude each
/// other.
pub(crate) const LOCK_PREFIX: &str = "lock:";

/// The scope of file reservations. Only the file verbs write it.
pub const FILES: &str = "files";

/// The field of the metadata by which a scope evicts the least frequently used entry.
pub const ACCESS_COUNT: &str = "access_count";

/// How many entries one commit may write or delete.
pub const MAX_OPERATIONS: usize = 10_000;

/// The entries of one scope: `board.scope("team-1")`.
#[derive(Clone)]
pub struct Scope<'a> {
    pub(crate) board: &'a Board,
    pub(crate) name: String,
    pub(crate) actor: Actor,
}

/// For whom entries are changed, and under which condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actor {
    /// The author's name. By default it is the name of the session's agent, or `cli` without a session.
    pub author: Option<String>,
    /// The session that acts.
    pub session: Option<String>,
    /// The locks and work items that have to be held, at exactly these revisions.
    pub fences: Vec<FenceToken>,
    /// The idempotency key of one call, so that a repeated call counts once. The next call needs another key: with
    /// the same key, only the same request is accepted.
    pub operation: Option<String>,
}

impl Actor {
    /// On behalf of a session.
    pub fn session(session: &str) -> Actor {
        Actor { session: Some(session.to_owned()), ..Actor::default() }
    }

    /// For an author without a session.
    pub fn author(author: &str) -> Actor {
        Actor { author: Some(author.to_owned()), ..Actor::default() }
    }

    /// What every change of an entry reads: the row of the acting session, and the rows of the fence tokens.
    pub(crate) fn prefetch(&self) -> impl Iterator<Item = Prefetch<'_>> {
        prefetch_agent(self.session.as_deref())
            .into_iter()
            .chain(self.fences.iter().map(FenceToken::prefetch))
    }
}

impl<'a> Scope<'a> {
    /// The same scope, acting for `actor`.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Actor, Value, Write}};
    /// # let board = Board::memory();
    /// let scope = board.scope("team-1").acting_as(Actor::author("analyst"));
    /// scope.write(&Write::new("result:q4", Value::of(&42)?))?;
    /// assert_eq!(scope.entry("result:q4")?.unwrap().updated_by, "analyst");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    #[must_use]
    pub fn acting_as(mut self, actor: Actor) -> Scope<'a> {
        self.actor = actor;
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The board of its actor: what follows its events gets only those that the actor may read.
    pub(crate) fn board_of_actor(&self) -> Board {
        let Actor { author, session, .. } = self.actor.clone();
        match (&author, &session) {
            (None, None) => self.board.clone(),
            _ => self.board.with_caller(Actor { author, session, ..Actor::default() }),
        }
    }
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The scope that the key is relative to.
    pub scope: String,
    /// The key.
    pub key: String,
    /// The value, unchanged.
    pub value: Value,
    /// How often the key was written. The count continues after a removal, as long as the tombstone is kept.
    pub version: u64,
    /// The event that wrote it.
    pub revision: Revision,
    /// When it was created.
    pub created_at: Timestamp,
    /// The author who created it.
    pub created_by: String,
    /// When it was last written.
    pub updated_at: Timestamp,
    /// The author of the last write.
    pub updated_by: String,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// Its tags, sorted.
    pub tags: Vec<String>,
    /// Its metadata.
    pub metadata: Option<Metadata>,
    /// The session that leases it. The entry is deleted when the session ends, and only this session may change it.
    pub session_id: Option<String>,
    /// The revision at which that session acquired it.
    pub fence: Option<Revision>,
}

/// Whether an entry with this expiry has expired.
fn is_over(expires_at: Option<Timestamp>, now: Timestamp) -> bool {
    expires_at.is_some_and(|expires| expires <= now)
}

impl Entry {
    /// Whether it has expired.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        is_over(self.expires_at, now)
    }

    /// How many bytes its value and its metadata have.
    pub(crate) fn bytes(&self) -> usize {
        self.value.as_str().len() + self.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len())
    }

    /// How often it was used, according to `access_count` in its metadata, which the callers keep. `None` if it has no count,
    /// or a lease: then it cannot be evicted.
    pub(crate) fn access_count(&self) -> Option<i64> {
        let metadata = self.metadata.as_ref().filter(|_| self.session_id.is_none())?;
        // Most metadata has no count, and need not be parsed.
        if !metadata.as_str().contains(ACCESS_COUNT) {
            return None;
        }
        metadata.to_map().get(ACCESS_COUNT)?.as_i64().filter(|count| *count >= 0)
    }

    /// Its time to live at the last write, in seconds.
    pub fn ttl(&self) -> Option<f64> {
        self.expires_at.map(|expires| expires.since(self.updated_at).as_secs_f64())
    }
}

/// The fields of the seed formats come first: `key, value, source_agent, timestamp, ttl`.
impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields<'a> {
            key: &'a str,
            value: &'a Value,
            source_agent: &'a str,
            timestamp: Timestamp,
            ttl: Option<Seconds>,
            scope: &'a str,
            version: u64,
            revision: Revision,
            created_at: Timestamp,
            created_by: &'a str,
            updated_at: Timestamp,
            updated_by: &'a str,
            expires_at: Option<Timestamp>,
            tags: &'a [String],
            metadata: OrEmpty<'a>,
            #[serde(skip_serializing_if = "Option::is_none")]
            session_id: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            fence: Option<Revision>,
        }
        Fields {
            key: &self.key,
            value: &self.value,
            source_agent: &self.updated_by,
            timestamp: self.updated_at,
            ttl: self.ttl().map(Seconds),
            scope: &self.scope,
            version: self.version,
            revision: self.revision,
            created_at: self.created_at,
            created_by: &self.created_by,
            updated_at: self.updated_at,
            updated_by: &self.updated_by,
            expires_at: self.expires_at,
            tags: &self.tags,
            metadata: OrEmpty(self.metadata.as_ref()),
            session_id: self.session_id.as_deref(),
            fence: self.fence,
        }
        .serialize(serializer)
    }
}

/// Parses the serialized form of an [`Entry`].
impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Entry, D::Error> {
        #[derive(Deserialize)]
        struct Fields {
            key: String,
            value: Value,
            scope: String,
            version: u64,
            revision: Revision,
            created_at: Timestamp,
            created_by: String,
            updated_at: Timestamp,
            updated_by: String,
            expires_at: Option<Timestamp>,
            tags: Vec<String>,
            metadata: Option<Metadata>,
            session_id: Option<String>,
            fence: Option<Revision>,
        }
        let fields = Fields::deserialize(deserializer)?;
        Ok(Entry {
            scope: fields.scope,
            key: fields.key,
            value: fields.value,
            version: fields.version,
            revision: fields.revision,
            created_at: fields.created_at,
            created_by: fields.created_by,
            updated_at: fields.updated_at,
            updated_by: fields.updated_by,
            expires_at: fields.expires_at,
            tags: fields.tags,
            metadata: fields.metadata.filter(|metadata| metadata.as_str() != "{}"),
            session_id: fields.session_id,
            fence: fields.fence,
        })
    }
}

/// Seconds, as an integer if they are whole.
pub(crate) struct Seconds(pub(crate) f64);

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[expect(clippy::cast_possible_truncation, reason = "a time to live is far below 2^63 seconds")]
        match self.0 {
            whole if whole.fract() == 0.0 => serializer.serialize_i64(whole as i64),
            part => serializer.serialize_f64(part),
        }
    }
}

/// The row of an entry names its current version, and repeats the columns that its indexes need.
impl Record for Entry {
    // An outer join: an entry whose version is missing is damaged, not absent.
    const TABLE: &'static Table = &table!(
        Entry in "entries", generation 0;
        [scope, key] [revision, expires_at, session_id] [access_count],
        joined " LEFT JOIN entry_versions USING (revision)", columns "entry_versions.*"
    );

    fn key(&self) -> Key {
        Key::Entry(self.scope.clone(), self.key.clone())
    }

    fn cells(&self) -> Vec<Cell<'_>> {
        vec![
            self.scope.cell(),
            self.key.cell(),
            self.revision.cell(),
            self.expires_at.cell(),
            self.session_id.cell(),
            self.access_count().map_or(Cell::Null, Cell::Integer),
        ]
    }

    fn read(row: &mut StoredRow<'_>) -> crate::Result<Entry> {
        let version = EntryVersion::read(row)?;
        if version.removed {
            return Err(row.damaged("an entry points at a version without a value"));
        }
        Ok(version.entry)
    }
}

impl Pending for Entry {
    fn resolve(&mut self, first: Revision) {
        Pending::resolve(&mut self.revision, first);
        Pending::resolve(&mut self.fence, first);
    }
}

indexes! {
    Entry in "entries" {
        /// All entries, by scope and key.
        ALL: by (scope, key);
        /// The entries of a scope, by key.
        IN_SCOPE: by (key) of (scope);
        /// The entries of a scope, the newest first.
        NEWEST: backwards_by (revision) of (scope);
        /// The entries of a scope that have a tag, by key.
        TAGGED: by (key) of (scope, tag), each Each { table: "entry_tags", elements: tags_of };
        /// The entries of a scope that can be evicted and count their uses, the least used first.
        LEAST_USED: by (access_count, revision) of (scope) where "entries.access_count IS NOT NULL";
        /// Entries that expire, by when.
        EXPIRING: by (expires_at, scope, key) where "entries.expires_at IS NOT NULL";
        /// The leased entries of a session, by scope and key.
        LEASED: by (scope, key) of (session_id);
    }
}

fn tags_of(row: &Row) -> &[String] {
    if let Row::Entry(entry) = row { &entry.tags } else { &[] }
}

impl Range {
    /// All entries, by scope and key.
    pub fn all_entries() -> Range {
        Range::all(Entry::ALL)
    }

    /// The entries of every scope whose name sorts after this one, by scope and key.
    pub(crate) fn entries_of_scopes_after(scope: &str) -> Range {
        Range::all_entries().after(scope)
    }

    /// Entries of a scope whose keys start with `prefix`, by key.
    pub fn entries(scope: &str, prefix: &str) -> Range {
        Range::of(Entry::IN_SCOPE, [scope]).starting_with(prefix)
    }

    /// Entries of a scope that have a tag and whose keys start with `prefix`, by key.
    pub fn entries_tagged(scope: &str, tag: &str, prefix: &str) -> Range {
        Range::of(Entry::TAGGED, [scope, tag]).starting_with(prefix)
    }

    /// Entries of a scope that were last written before `revision`, the newest first.
    pub fn newest_entries(scope: &str, before: Option<Revision>) -> Range {
        let all = Range::of(Entry::NEWEST, [scope]);
        match before {
            Some(before) => all.before(before),
            None => all,
        }
    }

    /// Entries of a scope, the oldest first: the one that was written last comes last.
    pub fn oldest_entries(scope: &str) -> Range {
        Range::newest_entries(scope, None).reversed()
    }

    /// Entries of a scope with an access count and without a lease, the least used first.
    pub(crate) fn least_used_entries(scope: &str) -> Range {
        Range::of(Entry::LEAST_USED, [scope])
    }

    /// Entries that expire, by the time of expiry.
    pub fn expiring_entries() -> Range {
        Range::all(Entry::EXPIRING)
    }

    /// Entries that have expired at `moment`.
    pub fn entries_expired_at(moment: Timestamp) -> Range {
        Range::expiring_entries().up_to(moment)
    }

    /// The leased entries of a session.
    pub fn leased_by(session: &str) -> Range {
        Range::of(Entry::LEASED, [session])
    }
}

/// An entry without its value: enough to find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryHead {
    /// The scope.
    pub scope: String,
    /// The key.
    pub key: String,
    /// The event that wrote it.
    pub revision: Revision,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
}

impl EntryHead {
    /// The head of an entry.
    pub fn of(entry: &Entry) -> EntryHead {
        EntryHead {
            scope: entry.scope.clone(),
            key: entry.key.clone(),
            revision: entry.revision,
            expires_at: entry.expires_at,
        }
    }

    /// Whether it has expired.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        is_over(self.expires_at, now)
    }
}

/// The rest of a removed entry: its versions continue if the key is written again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// The scope.
    pub scope: String,
    /// The key.
    pub key: String,
    /// The last version that it had.
    pub version: u64,
    /// The event that removed it.
    pub revision: Revision,
}

record! {
    Tombstone in "entry_tombstones", generation 0 {
        key { scope, key }
        columns { version, revision }
    }
    indexes {
        /// All tombstones, by scope and key.
        ALL: by (scope, key);
    }
}

impl Range {
    /// Tombstones by scope and key, from this scope on.
    pub(crate) fn tombstones_from(scope: &str) -> Range {
        Range::all(Tombstone::ALL).from(scope)
    }
}
