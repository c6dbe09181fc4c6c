//! The changes of a verb.

use super::rows::{Key, Row};
use crate::event::NewEvent;
use crate::metadata::Metadata;
use crate::revision::{Pending, Revision};

/// The changes of one commit: rows and events.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Rows to insert or replace. Their keys were read in the same run, or their table is [appended](super::record::Table::appended).
    pub put: Vec<Row>,
    /// Rows to remove. Their keys were read in the same run, or their table is [appended](super::record::Table::appended).
    /// A row is put or removed once.
    pub remove: Vec<Key>,
    /// Events, in their order.
    pub events: Vec<NewEvent>,
    /// Content of earlier events that is to be erased.
    pub erase: Vec<Erasure>,
    /// Retention: removes the event log up to and including this revision. The newest event has to stay, because ids
    /// continue after it.
    pub trim_events: Option<Revision>,
    /// Retention: removes these versions of entries, which only the removed part of the event log needed.
    pub remove_versions: Vec<Revision>,
}

/// The rest of an erased event: its id, time, type, actor and target, with another text. The version of its entry is
/// removed. If the event was pruned, only the version is removed.
#[derive(Clone, Debug, PartialEq)]
pub struct Erasure {
    /// The event.
    pub event: Revision,
    /// Its new summary.
    pub summary: String,
    /// Its new metadata.
    pub metadata: Option<Metadata>,
}

impl Changes {
    /// No changes.
    pub fn new() -> Changes {
        Changes::default()
    }

    /// Adds an event and returns the revision it will have.
    pub fn event(&mut self, event: NewEvent) -> Revision {
        self.events.push(event);
        Revision::of_event(self.events.len() - 1)
    }

    /// Inserts or replaces a row.
    pub fn put(&mut self, row: impl Into<Row>) {
        self.put.push(row.into());
    }

    /// Inserts or replaces a row, in place of an earlier put with the same key.
    pub fn put_again(&mut self, row: impl Into<Row>) {
        let row = row.into();
        if !self.put.is_empty() {
            let key = row.key();
            self.put.retain(|before| before.key() != key);
        }
        self.put.push(row);
    }

    /// Removes a row.
    pub fn remove(&mut self, key: Key) {
        self.remove.push(key);
    }

    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.put.is_empty()
            && self.remove.is_empty()
            && self.events.is_empty()
            && self.erase.is_empty()
            && self.trim_events.is_none()
            && self.remove_versions.is_empty()
    }
}

impl Pending for Changes {
    fn resolve(&mut self, first: Revision) {
        self.put.resolve(first);
        for version in self.events.iter_mut().filter_map(|event| event.version.as_mut()) {
            version.resolve(first);
        }
    }
}
