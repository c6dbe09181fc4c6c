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

/// How many values are announced at first, before their sizes are known. Each further group has twice as many, up to
/// [`MOST_VALUES`], so that many small values need few round trips.
pub(crate) const FIRST_VALUES: usize = 64;

/// How many values are announced together at most: an engine reads all of them, and large ones may follow many small ones.
const MOST_VALUES: usize = 512;

/// The versions of events, read together: a remote engine needs one round trip for a group of them and one for the
/// versions before them.
#[derive(Default)]
pub(crate) struct Versions {
    read: HashMap<Revision, EntryChange>,
    /// The last event whose version was read, if there is one.
    until: Option<Revision>,
}

impl Versions {
    /// Reads the versions of these events, together with what `also` announces. It ends with the commit whose values
    /// make it `enough_bytes`, so that large values do not fill the memory.
    pub(crate) fn of<'e>(
        tx: &dyn Tx,
        mut events: impl Iterator<Item = &'e Event>,
        mut also: Vec<Prefetch<'_>>,
        enough_bytes: usize,
    ) -> Result<Versions> {
        let mut versions = Versions::default();
        let mut budget = Budget { bytes: 0, enough: enough_bytes, commit: None };
        let mut at_once = FIRST_VALUES;
        loop {
            let group = next_group(&mut events, at_once);
            let of_entries = group.iter().filter(|event| is_of_entry(event));
            also.extend(of_entries.map(|event| Prefetch::Version(event.id)));
            if !also.is_empty() {
                tx.prefetch(&std::mem::take(&mut also))?;
            }
            if group.is_empty() || !versions.add(tx, group, &mut budget)? {
                return Ok(versions);
            }
            at_once = at_once.saturating_mul(2).min(MOST_VALUES);
        }
    }

    /// Reads the versions of a group that is announced. Returns whether there is space for more.
    fn add(&mut self, tx: &dyn Tx, group: Vec<&Event>, budget: &mut Budget) -> Result<bool> {
        let count = group.len();
        let (mut read, mut ahead) = (Vec::new(), budget.clone());
        for event in group {
            if !ahead.has_space_for(event) {
                break;
            }
            let version = if is_of_entry(event) { tx.version(event.id)? } else { None };
            ahead.bytes = ahead.bytes.saturating_add(version.as_ref().map_or(0, size_of));
            read.push((event, version));
        }
        let has_room = read.len() == count;
        let previous = read.iter().filter_map(|(_, version)| version.as_ref()?.previous);
        let previous: Vec<_> = previous.map(Prefetch::Version).collect();
        if !previous.is_empty() {
            tx.prefetch(&previous)?;
        }
        for (event, version) in read {
            if !budget.has_space_for(event) {
                return Ok(false);
            }
            self.until = Some(event.id);
            let Some(version) = version else { continue };
            // Retention may have pruned the version before.
            let before = version.previous.map(|previous| tx.version(previous)).transpose()?.flatten();
            let change = EntryChange::between(before, version);
            budget.bytes = budget.bytes.saturating_add(change.bytes());
            self.read.insert(event.id, change);
        }
        Ok(has_room)
    }

    /// Whether the version of this event was read, if it has one.
    pub(crate) fn include(&self, event: &Event) -> bool {
        self.until.is_some_and(|until| event.id <= until)
    }

    /// The entry change of an event; `None` if the event is not about an entry.
    pub(crate) fn take(&mut self, event: &Event) -> Option<EntryChange> {
        self.read.remove(&event.id)
    }
}

/// The next events, of which at most this many are about entries.
fn next_group<'e>(events: &mut impl Iterator<Item = &'e Event>, most: usize) -> Vec<&'e Event> {
    let (mut group, mut of_entries) = (Vec::new(), 0);
    while of_entries < most
        && let Some(event) = events.next()
    {
        of_entries += usize::from(is_of_entry(event));
        group.push(event);
    }
    group
}

/// How many bytes of values were read, and how many are enough.
#[derive(Clone)]
struct Budget {
    bytes: usize,
    enough: usize,
    /// The commit of the last event.
    commit: Option<Revision>,
}

impl Budget {
    /// Whether an event is read, too: a commit that was begun is read to its end.
    fn has_space_for(&mut self, event: &Event) -> bool {
        let has_room = self.bytes < self.enough || self.commit == Some(event.commit_id);
        self.commit = Some(event.commit_id);
        has_room
    }
}

fn size_of(version: &EntryVersion) -> usize {
    version.entry.value.as_str().len()
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::Board;
    use crate::entry::Write;
    use crate::store::{Page, TxView};

    /// Counts how many values each call announces.
    struct Counting<'a> {
        tx: &'a dyn Tx,
        announced: &'a RefCell<Vec<usize>>,
    }

    impl TxView for Counting<'_> {
        fn inner(&self) -> &dyn Tx {
            self.tx
        }

        fn prefetch(&self, next: &[Prefetch<'_>]) -> Result<()> {
            let values = next.iter().filter(|one| matches!(one, Prefetch::Version(_)));
            self.announced.borrow_mut().push(values.count());
            self.tx.prefetch(next)
        }
    }

    #[test]
    fn large_values_after_many_small_ones_are_announced_in_limited_groups() {
        const SMALL: usize = 1_000;
        const LARGE: usize = 1_100;
        testkit::limit_test();
        let board = Board::memory();
        let large = "x".repeat(1_000);
        for number in 0..SMALL + LARGE {
            let value = if number < SMALL { "" } else { large.as_str() };
            let write = Write::new(&format!("key-{number}"), Value::of(value).unwrap());
            board.scope("team").write(&write).unwrap();
        }
        let page = Page::after(Revision::ZERO, usize::MAX);
        let announced = RefCell::new(Vec::new());
        board
            .read(&[Prefetch::Events(page)], |tx| {
                announced.borrow_mut().clear();
                let events = tx.events(&page)?;
                assert_eq!(events.len(), SMALL + LARGE);
                let tx = Counting { tx, announced: &announced };
                Versions::of(&tx, events.iter(), Vec::new(), 10 * large.len())
            })
            .unwrap();
        let announced = announced.take();
        assert_eq!(announced[..5], [64, 128, 256, 512, 512], "{announced:?}");
        assert!(announced.iter().all(|&count| count <= MOST_VALUES), "{announced:?}");
        assert!(announced.iter().sum::<usize>() <= SMALL + MOST_VALUES, "{announced:?}");
    }
}
