//! [`EntryChange`]: the change of an entry, as part of its event.
//!
//! The event log stores a value once, with its version. An event gets its entry change when it is read, and only if
//! the reader wants the event.

use std::collections::HashMap;

use serde::Serialize;

use super::{Event, TargetType};
use crate::clock::Timestamp;
use crate::entry::{EntryVersion, Value};
use crate::error::Result;
use crate::metadata::Metadata;
use crate::revision::Revision;
use crate::store::{Prefetch, Tx};

/// The change of an entry.
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
    /// The revision of the event.
    pub revision: Revision,
    /// The author of the change; of an expired entry, the author of its last write.
    pub author: String,
    /// Its tags, sorted.
    pub tags: Vec<String>,
    /// Its metadata.
    #[serde(serialize_with = "crate::metadata::or_empty")]
    pub metadata: Option<Metadata>,
    /// When it expires or expired.
    pub expires_at: Option<Timestamp>,
    /// The session that leases it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The revision at which that session acquired it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fence: Option<Revision>,
}

/// The versions of events, read together: a remote engine needs one round trip for them and one for the versions
/// before them, however many events there are.
#[derive(Default)]
pub(crate) struct Versions {
    read: HashMap<Revision, EntryVersion>,
    /// The last event whose version was read, if there is one.
    until: Option<Revision>,
}

impl Versions {
    /// Reads the versions of these events, together with what `also` announces. It ends with the commit whose values
    /// make it `enough_bytes`, so that large values do not fill the memory.
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

    /// Whether the version of this event was read, if it has one.
    pub(crate) fn include(&self, event: &Event) -> bool {
        self.until.is_some_and(|until| event.id <= until)
    }

    /// The entry change of an event; `None` if the event is not about an entry.
    pub(crate) fn take(&mut self, event: &Event, tx: &dyn Tx) -> Result<Option<EntryChange>> {
        let Some(version) = self.read.remove(&event.id) else { return Ok(None) };
        // Retention may have pruned the version before.
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

    /// The size of its values, which limits a batch.
    pub(super) fn bytes(&self) -> usize {
        [&self.value, &self.old_value].into_iter().flatten().map(|value| value.as_str().len()).sum()
    }
}
