//! [`EntryChange`]: what an event of an entry tells about the entry.
//!
//! The log stores a value once, with its version. So an event gets what it carries when somebody reads it, and only if
//! the reader wants this event at all.

use serde::Serialize;

use super::{Event, TargetType};
use crate::clock::Timestamp;
use crate::entry::{EntryVersion, Value};
use crate::error::Result;
use crate::metadata::Metadata;
use crate::revision::Revision;
use crate::store::{Prefetch, Tx};

/// What happened to an entry.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EntryChange {
    /// The scope that the key is relative to.
    pub scope: String,
    /// The key.
    pub key: String,
    /// The value that was written; none if the entry was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The value before; none if there was no entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_value: Option<Value>,
    /// The version that was written or removed.
    pub version: u64,
    /// The event itself: from here on the entry is what it tells.
    pub revision: Revision,
    /// Who did it; of an entry that expired, who wrote it last.
    pub author: String,
    /// Its tags, sorted.
    pub tags: Vec<String>,
    /// What its author stored with it.
    #[serde(serialize_with = "crate::metadata::or_empty")]
    pub metadata: Option<Metadata>,
    /// From when on it is, or was, invisible.
    pub expires_at: Option<Timestamp>,
    /// The session with which it dies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The revision at which that session took it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fence: Option<Revision>,
}

impl EntryChange {
    /// What an event tells about its entry; `None` if it tells of something else.
    pub(crate) fn of(event: &Event, tx: &dyn Tx) -> Result<Option<EntryChange>> {
        if event.target_type != Some(TargetType::Entry) {
            return Ok(None);
        }
        let Some(version) = tx.version(event.id)? else { return Ok(None) };
        let before = match version.previous {
            // What was removed before, retention may have forgotten.
            Some(previous) => {
                tx.prefetch(&[Prefetch::Version(previous)])?;
                tx.version(previous)?
            }
            None => None,
        };
        Ok(Some(EntryChange::between(before, version)))
    }

    fn between(before: Option<EntryVersion>, after: EntryVersion) -> EntryChange {
        let EntryVersion { entry, removed, .. } = after;
        EntryChange {
            scope: entry.scope,
            key: entry.key,
            value: (!removed).then_some(entry.value),
            old_value: before.filter(|before| !before.removed).map(|before| before.entry.value),
            version: entry.version,
            revision: entry.revision,
            author: entry.updated_by,
            tags: entry.tags,
            metadata: entry.metadata,
            expires_at: entry.expires_at,
            session_id: entry.session_id,
            fence: entry.fence,
        }
    }

    /// How many bytes of values it has: what makes a batch large.
    pub(super) fn bytes(&self) -> usize {
        [&self.value, &self.old_value].into_iter().flatten().map(|value| value.as_str().len()).sum()
    }
}
