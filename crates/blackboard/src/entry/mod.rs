//! Entries: facts that agents share, each a [`Value`] under a key of a scope.
//!
//! An entry has a version, which counts its writes, and a revision, the event that wrote it last: compare-and-swap is
//! on the revision. It may have tags, metadata, a time to live, and a lease: then it dies with its session and nobody
//! else can change it. Locks and file reservations are entries with a lease in scopes of their own.
//!
//! | File | What it is about |
//! |---|---|
//! | `write.rs`, `read.rs`, `delete.rs`, `clear.rs`, `purge.rs`, `append.rs`, `increment.rs` | the verbs on keys |
//! | `query.rs`, `list.rs`, `scopes.rs`, `history.rs` | finding entries, and what they were |
//! | `wait.rs` | waiting for one |
//! | `transaction.rs`, `compare.rs` | many keys at once |
//! | `draft.rs` | what one commit does to entries: every change of an entry is made there |
//! | `expire.rs`, `lease.rs` | entries whose time, or whose session, is over |
//! | `fence.rs` | proof that a lock or claim is still held |
//! | `key.rs`, `glob.rs`, `value.rs` | the values that all of them check |

mod append;
mod clear;
mod compare;
mod delete;
mod draft;
mod expire;
mod fence;
mod glob;
mod history;
mod increment;
mod key;
mod lease;
mod list;
mod purge;
mod query;
mod read;
mod scopes;
mod transaction;
mod value;
mod wait;
mod write;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use self::clear::Cleared;
pub use self::compare::{Compare, Compared, Condition, Operation, OperationResult, Test};
pub use self::delete::Deleted;
pub(crate) use self::draft::{Draft, Told, held, held_since};
pub use self::expire::SkippedEntry;
pub use self::fence::Fence;
pub use self::glob::Glob;
pub use self::history::History;
pub(crate) use self::history::compacted;
use self::key::known_tag_set;
pub use self::key::{
    MAX_KEY_BYTES, MAX_SCOPE_BYTES, MAX_TAG_BYTES, MAX_TAGS, check_key, check_pattern, check_scope,
    check_tag, tag_set,
};
pub(crate) use self::key::{check_known_key, check_known_scope, check_known_tag};
pub use self::lease::Lease;
pub(crate) use self::lease::{leases_of, release_leases};
pub use self::list::{ListedKey, Snapshot};
pub use self::purge::{PurgePlan, Purged};
pub use self::query::{DEFAULT_LIMIT, Order, Query, QueryPage};
pub use self::scopes::{EveryScope, EveryScopePage, ScopeSize};
pub use self::transaction::{Transaction, TransactionScope};
pub use self::value::Value;
pub use self::wait::WaitFor;
pub(crate) use self::write::check_ttl;
pub use self::write::{Write, Written};
use crate::agent::prefetch_agent;
use crate::board::Board;
use crate::clock::Timestamp;
use crate::metadata::{Metadata, OrEmpty};
use crate::revision::{Pending, Revision};
use crate::store::Prefetch;

/// The scope of whoever names none.
pub const DEFAULT_SCOPE: &str = "default";

/// The scope of locks, which only the verbs of locks write.
pub const LOCKS: &str = "locks";

/// The scope of file reservations, which only the verbs of files write.
pub const FILES: &str = "files";

/// How many entries one commit may write or delete.
pub const MAX_OPERATIONS: usize = 10_000;

/// The entries of one scope: `board.scope("team-1")`.
#[derive(Clone)]
pub struct Scope<'a> {
    pub(crate) board: &'a Board,
    pub(crate) name: String,
    pub(crate) by: By,
}

/// On whose behalf something is done to entries, and under which condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct By {
    /// Who is named as the author; the session's agent if it is not said, and `cli` without a session.
    pub author: Option<String>,
    /// The session that acts.
    pub session: Option<String>,
    /// What has to be held, at exactly these revisions.
    pub fences: Vec<Fence>,
    /// The caller's name for one call, so that a repeated one counts once. The next call needs another name: under the
    /// same one it is refused, unless it asks for the same.
    pub operation: Option<String>,
}

impl By {
    /// On behalf of a session.
    pub fn session(session: &str) -> By {
        By { session: Some(session.to_owned()), ..By::default() }
    }

    /// In the name of somebody who has no session.
    pub fn author(author: &str) -> By {
        By { author: Some(author.to_owned()), ..By::default() }
    }

    /// What every change of an entry reads: the row of the acting session, and what has to be held.
    pub(crate) fn prefetch(&self) -> impl Iterator<Item = Prefetch<'_>> {
        prefetch_agent(self.session.as_deref()).into_iter().chain(self.fences.iter().map(Fence::prefetch))
    }
}

impl<'a> Scope<'a> {
    /// The same scope, on behalf of somebody.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{By, Value, Write}};
    /// # let board = Board::memory();
    /// let scope = board.scope("team-1").by(By::author("analyst"));
    /// scope.write(&Write::new("result:q4", Value::of(&42)?))?;
    /// assert_eq!(scope.entry("result:q4")?.unwrap().updated_by, "analyst");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    #[must_use]
    pub fn by(mut self, by: By) -> Scope<'a> {
        self.by = by;
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The scope that the key is relative to.
    pub scope: String,
    /// The key.
    pub key: String,
    /// The value, as it came.
    pub value: Value,
    /// How often the key was written. It goes on after a removal, as long as the log remembers that.
    pub version: u64,
    /// The event that wrote it.
    pub revision: Revision,
    /// When it was created.
    pub created_at: Timestamp,
    /// Who created it.
    pub created_by: String,
    /// When it was last written.
    pub updated_at: Timestamp,
    /// Who did that.
    pub updated_by: String,
    /// From when on it is invisible.
    pub expires_at: Option<Timestamp>,
    /// Its tags, sorted.
    pub tags: Vec<String>,
    /// What its author stored with it.
    pub metadata: Option<Metadata>,
    /// The session with which it dies, and which alone may change it.
    pub session_id: Option<String>,
    /// The revision at which that session took it.
    pub fence: Option<Revision>,
}

/// Whether nobody sees any more what expires then.
fn is_over(expires_at: Option<Timestamp>, now: Timestamp) -> bool {
    expires_at.is_some_and(|expires| expires <= now)
}

impl Entry {
    /// Whether nobody sees it any more.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        is_over(self.expires_at, now)
    }

    /// How many bytes its value and its metadata have.
    pub(super) fn bytes(&self) -> usize {
        self.value.as_str().len() + self.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len())
    }

    /// How long it was to live from its last write on, in seconds.
    pub fn ttl(&self) -> Option<f64> {
        self.expires_at.map(|expires| expires.since(self.updated_at).as_secs_f64())
    }
}

/// The fields of seed formats come first: `key, value, source_agent, timestamp, ttl`.
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

/// Reads what [`Entry`] is written as.
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

/// Seconds, as an integer where they are whole.
struct Seconds(f64);

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[expect(clippy::cast_possible_truncation, reason = "a time to live is far below 2^63 seconds")]
        match self.0 {
            whole if whole.fract() == 0.0 => serializer.serialize_i64(whole as i64),
            part => serializer.serialize_f64(part),
        }
    }
}

impl Pending for Entry {
    fn resolve(&mut self, first: Revision) {
        self.revision.resolve(first);
        self.fence.resolve(first);
    }
}

/// What an entry was from one event on: written, or removed.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryVersion {
    /// The entry as that event left it, or as it was when the event removed it: then without its value, a null, which
    /// is in the version before, and `updated_by` is who removed it. Its revision is the event's.
    pub entry: Entry,
    /// The version before, of the same key.
    pub previous: Option<Revision>,
    /// Whether the event removed it.
    pub removed: bool,
}

impl EntryVersion {
    /// Whether the event purged the key: a removal with nothing before it. The history of the key begins again here.
    pub fn is_purge(&self) -> bool {
        self.removed && self.previous.is_none()
    }
}

impl Pending for EntryVersion {
    fn resolve(&mut self, first: Revision) {
        self.entry.resolve(first);
        self.previous.resolve(first);
    }
}

/// What is known of an entry without its value: enough to find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryHead {
    /// The scope.
    pub scope: String,
    /// The key.
    pub key: String,
    /// The event that wrote it.
    pub revision: Revision,
    /// From when on it is invisible.
    pub expires_at: Option<Timestamp>,
}

impl EntryHead {
    /// Whether nobody sees it any more.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        is_over(self.expires_at, now)
    }
}

/// What is left of a removed entry: its versions go on if the key is written again.
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
