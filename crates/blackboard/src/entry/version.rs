//! [`EntryVersion`]: an entry as one event left it, and its columns.

use super::{Entry, Value};
use crate::revision::{Pending, Revision};
use crate::store::record::{Cell, Column, StoredRow};

/// An entry from one event on: written, or removed.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryVersion {
    /// The entry after that event. If the event removed it, the value is null (the version before has it) and
    /// `updated_by` is the remover. Its revision is the event's.
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

impl EntryVersion {
    /// The columns, in the order in which the schema makes them.
    pub(crate) const COLUMNS: &'static str = "revision, previous, scope, key, version, value, created_at, created_by, \
        updated_at, updated_by, expires_at, tags, metadata, session_id, fence";

    /// The values of the columns. A removal has no value.
    pub(crate) fn cells(&self) -> [Cell<'_>; 15] {
        let entry = &self.entry;
        [
            entry.revision.cell(),
            self.previous.cell(),
            entry.scope.cell(),
            entry.key.cell(),
            entry.version.cell(),
            if self.removed { Cell::Null } else { Cell::Text(entry.value.as_str()) },
            entry.created_at.cell(),
            entry.created_by.cell(),
            entry.updated_at.cell(),
            entry.updated_by.cell(),
            entry.expires_at.cell(),
            entry.tags.cell(),
            entry.metadata.cell(),
            entry.session_id.cell(),
            entry.fence.cell(),
        ]
    }

    pub(crate) fn read(row: &mut StoredRow<'_>) -> crate::Result<EntryVersion> {
        row.continue_in("entry_versions");
        let (revision, previous): (Revision, Option<Revision>) = (row.take()?, row.take()?);
        // A reader that follows such links would never end. An engine checks it again when it resolves a pending revision.
        if revision.event().is_none() && previous.is_some_and(|previous| previous >= revision) {
            return Err(row.damaged("the version before is not older"));
        }
        let (scope, key, version) = (row.take()?, row.take()?, row.take()?);
        let value: Option<String> = row.take()?;
        let removed = value.is_none();
        let value = value.map_or_else(|| Ok(Value::null()), Value::from_stored);
        let value = value.map_err(|_| row.damaged("it is not JSON"))?;
        let entry = Entry {
            scope,
            key,
            value,
            version,
            revision,
            created_at: row.take()?,
            created_by: row.take()?,
            updated_at: row.take()?,
            updated_by: row.take()?,
            expires_at: row.take()?,
            tags: row.take()?,
            metadata: row.take()?,
            session_id: row.take()?,
            fence: row.take()?,
        };
        Ok(EntryVersion { entry, previous, removed })
    }
}

impl Pending for EntryVersion {
    fn resolve(&mut self, first: Revision) {
        self.entry.resolve(first);
        Pending::resolve(&mut self.previous, first);
    }
}
