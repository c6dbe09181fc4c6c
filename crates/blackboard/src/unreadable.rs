//! Rows that cannot be read, because another program wrote a value that no row can have.
//!
//! A list omits them and reports them to the board's observer. A board without an observer refuses the list, so that
//! no row is omitted silently. A row that a call names by its key is an error on every board.

use std::sync::Arc;

use serde::Serialize;

use crate::board::Board;
use crate::entry::{EntryHead, EntryVersion};
use crate::error::{Error, Fault, Result};
use crate::revision::Revision;
use crate::store::record::Cell;
use crate::store::{Key, Prefetch, Range, Row, Tx, TxView};

/// A row that a list omitted, because it cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct UnreadableRow {
    /// The table that it is in.
    pub table: &'static str,
    /// Its key, with slashes between the parts; `None` if that cannot be read either.
    pub id: Option<String>,
    /// Which value cannot be read, and why.
    pub reason: String,
}

/// The callback for each row that a list omitted.
pub(crate) type UnreadableObserver = Arc<dyn Fn(&UnreadableRow) + Send + Sync>;

impl Board {
    /// Reports a row that a verb skips because it cannot be read.
    pub(crate) fn report_unreadable(&self, key: &Key, error: &Error) {
        if let Some(observer) = self.unreadable_observer() {
            observer(&UnreadableRow::of(key, error));
        }
    }
}

impl UnreadableRow {
    fn of(key: &Key, error: &Error) -> UnreadableRow {
        UnreadableRow { table: key.table().name, id: Some(id_of(key)), reason: reason_of(error) }
    }
}

/// The key as text.
fn id_of(key: &Key) -> String {
    let parts = key.cells().into_iter().map(|cell| match cell {
        Cell::Text(text) => text.to_owned(),
        Cell::Time(moment) => moment.to_string(),
        Cell::Integer(number) => number.to_string(),
        Cell::Revision(revision) => revision.to_string(),
        Cell::Null | Cell::Process(_) | Cell::Policies(_) | Cell::List(_) => String::new(),
    });
    parts.collect::<Vec<_>>().join("/")
}

fn reason_of(error: &Error) -> String {
    error.damaged_value().map_or_else(|| error.to_string(), ToString::to_string)
}

/// The result, or `None` if it cannot be read: for a verb that treats both the same.
pub(crate) fn if_readable<T>(found: Result<Option<T>>) -> Result<Option<T>> {
    match found {
        Err(error) if error.is_unreadable_row() => Ok(None),
        found => found,
    }
}

/// The error of a row that was requested by its key, with the row and the next step.
pub(crate) fn naming_row(key: &Key, error: Error) -> Error {
    let Some(value) = error.damaged_value() else { return error };
    let (table, id) = (key.table().name, id_of(key));
    let columns = &key.table().columns[..key.table().key_columns];
    let condition: Vec<_> = columns
        .iter()
        .zip(key.cells())
        .map(|(column, cell)| match cell {
            Cell::Text(text) => format!("{column} = '{}'", text.replace('\'', "''")),
            Cell::Integer(number) => format!("{column} = {number}"),
            Cell::Revision(revision) => format!("{column} = {revision}"),
            Cell::Time(moment) => format!("{column} = '{moment}'"),
            Cell::Null | Cell::Process(_) | Cell::Policies(_) | Cell::List(_) => format!("{column} IS NULL"),
        })
        .collect();
    let mut condition = condition.join(" AND ");
    if value.table != table {
        // The value of an entry is in its version.
        condition = format!("revision = (SELECT revision FROM {table} WHERE {condition})");
    }
    let hint = format!(
        "another program wrote this value; correct it in the row on the server, or in the database file with sqlite3: \
         UPDATE {} SET {} = … WHERE {condition}",
        value.table,
        value.column(),
    );
    let code = error.code();
    let message = format!("row {id} of {table} cannot be read: {value}");
    Fault::new(code, message).hint(hint).into()
}

/// The error of a range, with the row and the next step. A range does not say which of its rows cannot be read, so each
/// is read by its key.
pub(crate) fn naming_row_in(tx: &dyn Tx, range: &Range, limit: usize, error: Error) -> Error {
    if error.damaged_value().is_none() {
        return error;
    }
    // An error here does not replace the first one.
    first_unreadable(tx, range, limit).ok().flatten().unwrap_or(error)
}

fn first_unreadable(tx: &dyn Tx, range: &Range, limit: usize) -> Result<Option<Error>> {
    tx.prefetch(&[Prefetch::Keys(range.clone(), limit)])?;
    let keys: Vec<Key> = tx.keys(range, limit)?.into_iter().flatten().collect();
    tx.prefetch(&keys.iter().cloned().map(Prefetch::Row).collect::<Vec<_>>())?;
    let unreadable = keys.iter().find_map(|key| tx.peek(key).err().map(|error| naming_row(key, error)));
    Ok(unreadable)
}

/// A view of the board without the rows that cannot be read.
pub(crate) struct ReadableTx<'a> {
    pub(crate) tx: &'a dyn Tx,
    /// Rows that the call requests by their key.
    pub(crate) named: &'a [&'a Key],
    pub(crate) observer: &'a UnreadableObserver,
}

impl ReadableTx<'_> {
    fn report(&self, row: &UnreadableRow) {
        (self.observer)(row);
    }

    /// The row, if it can be read.
    fn readable(&self, key: &Key, found: Result<Option<Row>>) -> Result<Option<Row>> {
        match found {
            // Policies that cannot be read must not count as none.
            Err(error)
                if error.is_unreadable_row()
                    && !self.named.contains(&key)
                    && !matches!(key, Key::ScopePolicies(_)) =>
            {
                self.report(&UnreadableRow::of(key, &error));
                Ok(None)
            }
            found => found,
        }
    }

    /// The first rows of a range that can be read.
    fn rows(&self, range: &Range, limit: usize) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        self.tx.prefetch(&[Prefetch::Keys(range.clone(), usize::MAX)])?;
        let keys = self.tx.keys(range, usize::MAX)?;
        self.tx.prefetch(&keys.iter().flatten().cloned().map(Prefetch::Row).collect::<Vec<_>>())?;
        for key in keys {
            if rows.len() == limit {
                break;
            }
            match key {
                Ok(key) => rows.extend(self.readable(&key, self.tx.peek(&key))?),
                Err(error) if error.is_unreadable_row() => {
                    let table = (range.index.table)().name;
                    self.report(&UnreadableRow { table, id: None, reason: reason_of(&error) });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(rows)
    }
}

impl TxView for ReadableTx<'_> {
    fn inner(&self) -> &dyn Tx {
        self.tx
    }

    fn get(&self, key: &Key) -> Result<Option<Row>> {
        self.readable(key, self.tx.get(key))
    }

    fn peek(&self, key: &Key) -> Result<Option<Row>> {
        self.readable(key, self.tx.peek(key))
    }

    fn range(&self, range: &Range) -> Result<Vec<Row>> {
        TxView::candidates(self, range, usize::MAX)
    }

    fn candidates(&self, range: &Range, limit: usize) -> Result<Vec<Row>> {
        match self.tx.candidates(range, limit) {
            Err(error) if error.is_unreadable_row() => self.rows(range, limit),
            rows => rows,
        }
    }

    fn heads(&self, range: &Range, limit: usize) -> Result<Vec<EntryHead>> {
        match self.tx.heads(range, limit) {
            Err(error) if error.is_unreadable_row() => {
                let rows = self.rows(range, limit)?.into_iter();
                Ok(rows.filter_map(|row| row.try_into().ok()).map(|entry| EntryHead::of(&entry)).collect())
            }
            heads => heads,
        }
    }

    fn version(&self, revision: Revision) -> Result<Option<EntryVersion>> {
        match self.tx.version(revision) {
            Err(error) if error.is_unreadable_row() => {
                let (table, id) = ("entry_versions", Some(revision.to_string()));
                self.report(&UnreadableRow { table, id, reason: reason_of(&error) });
                Ok(None)
            }
            version => version,
        }
    }
}
