//! `write`: writes a key.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::rules::check_not_reserved;
use super::{EventWording, MAX_OPERATIONS, Scope, Value, check_known_key, tag_set};
use crate::clock::Timestamp;
use crate::error::{Code, Refusal, Result};
use crate::fingerprint::Fingerprint;
use crate::metadata::Metadata;
use crate::revision::{Pending, Revision};
use crate::settings::Settings;
use crate::store::Prefetch;

/// What to write, and under which conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The key.
    pub key: String,
    /// The value.
    pub value: Value,
    /// Its tags. A write replaces tags, metadata and time to live, unless it merges.
    pub tags: Vec<String>,
    /// Its time to live from now on.
    pub ttl: Option<Duration>,
    /// Its metadata.
    pub metadata: Option<Metadata>,
    /// Adds to the existing tags and metadata, and keeps the time to live if none is given.
    pub merge: bool,
    /// Only if the key does not exist.
    pub if_absent: bool,
    /// Only if the entry has this revision; zero means that the key does not exist.
    pub if_revision: Option<Revision>,
    /// Leases the entry: it is deleted when the session ends, and no other session can change it.
    pub lease: bool,
}

impl Write {
    /// A value with the defaults for everything else.
    pub fn new(key: &str, value: Value) -> Write {
        Write {
            key: key.to_owned(),
            value,
            tags: Vec::new(),
            ttl: None,
            metadata: None,
            merge: false,
            if_absent: false,
            if_revision: None,
            lease: false,
        }
    }
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The scope.
    pub scope: String,
    /// The key.
    pub key: String,
    /// How often it was written.
    pub version: u64,
    /// The event of this write, which `if_revision` compares with.
    pub revision: Revision,
    /// Whether the key did not exist before.
    pub created: bool,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// The revision at which its session acquired it, if it has a lease.
    pub fence: Option<Revision>,
    /// The key that was evicted, because the scope was full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evicted: Option<String>,
}

impl Pending for Written {
    fn resolve(&mut self, first: Revision) {
        self.revision.resolve(first);
        self.fence.resolve(first);
    }
}

impl Scope<'_> {
    /// Writes one entry.
    ///
    /// ```
    /// # use blackboard::{Board, Code, entry::{Value, Write}};
    /// # let board = Board::memory();
    /// let scope = board.scope("team-1");
    /// let first = scope.write(&Write::new("counter", Value::of(&1)?))?;
    /// let next = Write { if_revision: Some(first.revision), ..Write::new("counter", Value::of(&2)?) };
    /// assert_eq!(scope.write(&next)?.version, 2);
    /// // Another writer was faster: the same condition no longer holds.
    /// assert_eq!(scope.write(&next).unwrap_err().code(), Code::Conflict);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn write(&self, write: &Write) -> Result<Written> {
        let write = self.checked_write(write)?;
        let prefetch = [Prefetch::Entry(&self.name, &write.key)];
        self.commit(
            "write",
            |asked| write.asked(asked),
            &prefetch,
            |editor| editor.write(&self.name, &write, EventWording::AsEntry),
        )
    }

    /// Writes several entries atomically.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Value, Write}};
    /// # let board = Board::memory();
    /// let scope = board.scope("team-1");
    /// let good = Write::new("a", Value::of(&1)?);
    /// let bad = Write::new("not:a:*", Value::of(&2)?);
    /// assert!(scope.write_batch(&[good, bad]).is_err());
    /// assert!(scope.entry("a")?.is_none());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn write_batch(&self, writes: &[Write]) -> Result<Vec<Written>> {
        check_count(writes.len())?;
        let writes = writes.iter().map(|write| self.checked_write(write)).collect::<Result<Vec<_>>>()?;
        let prefetch: Vec<_> = writes.iter().map(|write| Prefetch::Entry(&self.name, &write.key)).collect();
        let asked = |asked: Fingerprint| asked.each(&writes, |asked, write| write.asked(asked));
        self.commit("write batch", asked, &prefetch, |editor| {
            writes.iter().map(|write| editor.write(&self.name, write, EventWording::AsEntry)).collect()
        })
    }

    fn checked_write(&self, write: &Write) -> Result<Write> {
        check_not_reserved(&self.name)?;
        write.checked(&self.name, self.board.settings())
    }
}

/// Refuses more operations than one commit may have.
pub(super) fn check_count(count: usize) -> Result<()> {
    if count <= MAX_OPERATIONS {
        return Ok(());
    }
    let message = format!("{count} operations are too many for one commit; {MAX_OPERATIONS} are allowed");
    Err(Refusal::new(Code::InvalidValue, message).hint("split them over several calls").into())
}

impl Write {
    /// Adds the request to a fingerprint.
    pub(super) fn asked(&self, asked: Fingerprint) -> Fingerprint {
        asked
            .text(&self.key)
            .text(self.value.as_str())
            .each(&self.tags, |asked, tag| asked.text(tag))
            .maybe(self.ttl.map(|ttl| ttl.as_nanos()))
            .maybe(self.metadata.as_ref().map(Metadata::as_str))
            .of(self.merge)
            .of(self.if_absent)
            .maybe(self.if_revision)
            .of(self.lease)
    }

    /// The same with sorted tags, if everything about it is allowed.
    pub(crate) fn checked(&self, scope: &str, settings: &Settings) -> Result<Write> {
        // Only the commit knows whether the key is new and has to pass `check_key`.
        check_known_key(scope, &self.key)?;
        self.value.check_size(settings.max_value_bytes)?;
        let tags = tag_set(self.tags.clone())?;
        let rules = &settings.text;
        rules.check_unaltered(tags.iter().map(String::as_str).chain([scope, &self.key]))?;
        rules.check_json(
            [self.value.as_str()].into_iter().chain(self.metadata.as_ref().map(Metadata::as_str)),
        )?;
        Ok(Write { tags, ..self.clone() })
    }
}
