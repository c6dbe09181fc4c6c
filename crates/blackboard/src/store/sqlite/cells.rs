//! Conversion between values of rows and values of SQLite.

use rusqlite::types::{ToSql, ToSqlOutput, Value, ValueRef};

use crate::entry::{EntryHead, EntryVersion};
use crate::error::Result;
use crate::event::Event;
use crate::store::record::Table;
use crate::store::record::{Cell, IndexValue, Stored, StoredCells, StoredRow};
use crate::store::rows::{Key, Row};

impl ToSql for Cell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Cell::Null | Cell::List([]) => ToSqlOutput::Borrowed(ValueRef::Null),
            Cell::Integer(number) => ToSqlOutput::Borrowed(ValueRef::Integer(*number)),
            Cell::Revision(revision) => ToSqlOutput::Borrowed(ValueRef::Integer(revision.get())),
            Cell::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Cell::Time(time) => ToSqlOutput::Owned(Value::Text(time.to_string())),
            Cell::Policies(policies) => ToSqlOutput::Owned(Value::Text(policies.to_json())),
            Cell::Process(mark) => ToSqlOutput::Owned(Value::Text(mark.to_string())),
            Cell::List(list) => {
                let json = serde_json::to_string(list);
                let json = json.map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
                ToSqlOutput::Owned(Value::Text(json))
            }
        })
    }
}

impl ToSql for IndexValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            IndexValue::Integer(number) => ToSqlOutput::Borrowed(ValueRef::Integer(*number)),
            IndexValue::Revision(revision) => ToSqlOutput::Borrowed(ValueRef::Integer(revision.get())),
            IndexValue::Time(time) => ToSqlOutput::Owned(Value::Text(time.to_string())),
            IndexValue::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        })
    }
}

impl StoredCells for rusqlite::Row<'_> {
    fn stored(&self, column: usize) -> Result<Stored<'_>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(match self.get_ref(column)? {
            ValueRef::Null => Stored::Null,
            ValueRef::Integer(number) => Stored::Integer(number),
            ValueRef::Text(text) => Stored::Text(std::str::from_utf8(text)?),
            ValueRef::Real(_) => return Err("a real number".into()),
            ValueRef::Blob(_) => return Err("a blob".into()),
        })
    }
}

/// A row of a table.
pub(super) fn row_from(table: &Table, row: &rusqlite::Row<'_>) -> Result<Row> {
    (table.read)(&mut StoredRow::new(table.name, row))
}

/// The key of a row of a table.
pub(super) fn key_from(table: &Table, row: &rusqlite::Row<'_>) -> Result<Key> {
    (table.read_key)(&mut StoredRow::new(table.name, row))
}

/// The statement that adds an event. It does not name the columns, which costs a short command fewer instructions. A test
/// compares their order in the schema with [`Event::COLUMNS`].
pub(super) const INSERT_EVENT: &str = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// The statement that adds a version, without the names of its columns.
pub(super) const INSERT_VERSION: &str =
    "INSERT INTO entry_versions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// The statement that reads a version by its revision. It does not name the columns: the statement is looked up by
/// its text, and a longer text would cost more than reading all columns. A test compares their order in the schema with
/// [`EntryVersion::COLUMNS`].
pub(super) const VERSION_QUERY: &str = "SELECT * FROM entry_versions WHERE revision = ?";

/// A version, from the columns of [`VERSION_QUERY`].
pub(super) fn version_from(row: &rusqlite::Row<'_>) -> Result<EntryVersion> {
    EntryVersion::read(&mut StoredRow::new("entry_versions", row))
}

/// The columns of an entry's head, in the order of [`head_from`].
pub(super) const HEAD_COLUMNS: &str = "entries.scope, entries.key, entries.revision, entries.expires_at";

/// An entry's head, from [`HEAD_COLUMNS`].
pub(super) fn head_from(row: &rusqlite::Row<'_>) -> Result<EntryHead> {
    let mut row = StoredRow::new("entries", row);
    Ok(EntryHead { scope: row.take()?, key: row.take()?, revision: row.take()?, expires_at: row.take()? })
}

/// The columns of an event, in the order of [`Event::read`].
pub(super) const EVENT_COLUMNS: &str = Event::COLUMNS;

/// An event, from [`EVENT_COLUMNS`].
pub(super) fn event_from(row: &rusqlite::Row<'_>) -> Result<Event> {
    Event::read(&mut StoredRow::new("events", row))
}
