//! [`EntryChange`]: what an event of an entry tells about the entry.
//!
//! The log stores a value once, with its version. So an event gets what it carries when somebody reads it, and only if
//! the reader wants this event at all.

use std::collections::HashMap;

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

/// The versions that events brought, read together: an engine that is far away needs one round trip for them and one for
/// the versions before them, however many events there are.
#[derive(Default)]
pub(crate) struct Versions {
    read: HashMap<Revision, EntryVersion>,
    /// The last event whose version was read, if there is one.
    until: Option<Revision>,
}

impl Versions {
    /// Reads the versions that these events brought, together with what `also` announces. It ends with the commit whose values
    /// make it `enough_bytes`, so that a part of the event log with large values is not in memory at once.
    pub(crate) fn of<'e>(
        tx: &dyn Tx,
        events: impl Iterator<Item = &'e Event> + Clone,
        also: Vec<Prefetch<'_>>,
        enough_bytes: usize,
    ) -> Result<Versions> {
        let mut announced = also;
        announced.extend(
            events.clone().filter(|event| is_of_entry(event)).map(|event| Prefetch::Version(event.id)),
        );
        if announced.is_empty() {
            return Ok(Versions { until: events.last().map(|event| event.id), ..Versions::default() });
        }
        tx.prefetch(&announced)?;
        let mut versions = Versions::default();
        let (mut previous, mut bytes, mut commit) = (Vec::new(), 0_usize, None);
        for event in events {
            if bytes >= enough_bytes && commit != Some(event.commit_id) {
                break;
            }
            (versions.until, commit) = (Some(event.id), Some(event.commit_id));
            if is_of_entry(event)
                && let Some(version) = tx.version(event.id)?
            {
                bytes = bytes.saturating_add(version.entry.value.as_str().len());
                previous.extend(version.previous.map(Prefetch::Version));
                versions.read.insert(event.id, version);
            }
        }
        if !previous.is_empty() {
            tx.prefetch(&previous)?;
        }
        Ok(versions)
    }

    /// Whether the version of this event was read, if it brought one.
    pub(crate) fn include(&self, event: &Event) -> bool {
        self.until.is_some_and(|until| event.id <= until)
    }

    /// What an event tells about its entry; `None` if it tells of something else.
    pub(crate) fn take(&mut self, event: &Event, tx: &dyn Tx) -> Result<Option<EntryChange>> {
        let Some(version) = self.read.remove(&event.id) else { return Ok(None) };
        // What was removed before, retention may have forgotten.
        let before = version.previous.map(|previous| tx.version(previous)).transpose()?.flatten();
        Ok(Some(EntryChange::between(before, version)))
    }
}

fn is_of_entry(event: &Event) -> bool {
    event.target_type == Some(TargetType::Entry)
}

impl EntryChange {
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
