//! The values of a row's columns: to storage and back.

use std::borrow::Cow;
use std::fmt;

use super::TABLES;
use super::record::IndexValue;
use crate::clock::Timestamp;
use crate::entry::EntryVersion;
use crate::error::{Code, Error, Fault, Result};
use crate::event::Event;
use crate::metadata::Metadata;
use crate::process::ProcessIdentity;
use crate::revision::{Pending, Revision};
use crate::scope::Policies;

/// A value of a row to store in a column, borrowed from the row: comparing two rows allocates nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'row> {
    /// No value.
    Null,
    /// A number.
    Integer(i64),
    /// A revision, perhaps pending.
    Revision(Revision),
    /// A text.
    Text(&'row str),
    /// A moment, stored as its text.
    Time(Timestamp),
    /// A process identity, stored as its text.
    Process(&'row ProcessIdentity),
    /// The policies of a scope, stored as JSON.
    Policies(&'row Policies),
    /// A list, stored as JSON; an empty one is stored as NULL.
    List(&'row [String]),
}

impl Cell<'_> {
    pub(super) fn index_value(&self) -> Option<IndexValue> {
        match *self {
            Cell::Null | Cell::Process(_) | Cell::Policies(_) | Cell::List(_) => None,
            Cell::Integer(number) => Some(IndexValue::Integer(number)),
            Cell::Revision(revision) => Some(IndexValue::Revision(revision)),
            Cell::Text(text) => Some(IndexValue::Text(text.to_owned())),
            Cell::Time(moment) => Some(IndexValue::Time(moment)),
        }
    }
}

impl From<Timestamp> for Cell<'_> {
    fn from(moment: Timestamp) -> Self {
        Cell::Time(moment)
    }
}

/// A stored value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stored<'a> {
    /// No value.
    Null,
    /// A number.
    Integer(i64),
    /// A revision that is still pending.
    Revision(Revision),
    /// A text.
    Text(&'a str),
}

/// The stored values of a row in an engine.
pub trait StoredCells {
    /// The value of a column, or why a row cannot have it.
    fn stored(&self, column: usize) -> Result<Stored<'_>, Box<dyn std::error::Error + Send + Sync>>;
}

/// The stored values of one row, read column by column.
pub struct StoredRow<'a> {
    table: &'static str,
    cells: &'a dyn StoredCells,
    column: usize,
}

impl<'a> StoredRow<'a> {
    /// A row of a table, from its first column on.
    pub fn new(table: &'static str, cells: &'a dyn StoredCells) -> StoredRow<'a> {
        StoredRow { table, cells, column: 0 }
    }

    /// The next column.
    pub(crate) fn take<C: Column>(&mut self) -> Result<C> {
        let cells = self.cells;
        let cell = match cells.stored(self.column) {
            Ok(stored) => StoredCell { table: self.table, column: self.column, stored },
            Err(error) => return Err(damaged(self.table, self.column, error)),
        };
        self.column += 1;
        C::read(&cell)
    }

    /// From here on it is a row of another table, which is joined.
    pub(crate) fn continue_in(&mut self, table: &'static str) {
        self.table = table;
    }

    /// An error for the column that was read last.
    pub(crate) fn damaged(&self, error: &'static str) -> Error {
        damaged(self.table, self.column.saturating_sub(1), error)
    }
}

fn damaged(
    table: &'static str,
    column: usize,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Error {
    let value = DamagedValue { table, column, source: error.into() };
    Fault::new(Code::Corrupt, format!("a row of {table} cannot be read")).because(value).into()
}

/// The source of the fault that a row cannot be read: which value, and why.
#[derive(Debug)]
pub(crate) struct DamagedValue {
    pub(crate) table: &'static str,
    column: usize,
    source: Box<dyn std::error::Error + Send + Sync>,
}

impl DamagedValue {
    /// The name of the column.
    pub(crate) fn column(&self) -> Cow<'static, str> {
        let columns = match self.table {
            "events" => Some(Event::COLUMNS),
            "entry_versions" => Some(EntryVersion::COLUMNS),
            name => TABLES.iter().find(|table| table.name == name).map(|table| table.sql.columns),
        };
        let name = columns.and_then(|columns| columns.split(", ").nth(self.column));
        name.map_or_else(
            || (self.column + 1).to_string().into(),
            |name| Cow::Borrowed(name.rsplit_once('.').map_or(name, |(_, name)| name)),
        )
    }
}

impl fmt::Display for DamagedValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "column {}: {}", self.column(), self.source)
    }
}

impl std::error::Error for DamagedValue {}

/// One stored value. A value that does not have the type of its column was written by another program: the row is
/// damaged.
pub struct StoredCell<'a> {
    table: &'static str,
    column: usize,
    stored: Stored<'a>,
}

impl<'a> StoredCell<'a> {
    pub(crate) fn is_null(&self) -> bool {
        self.stored == Stored::Null
    }

    pub(crate) fn text(&self) -> Result<&'a str> {
        match self.stored {
            Stored::Text(text) => Ok(text),
            Stored::Null | Stored::Integer(_) | Stored::Revision(_) => Err(self.damaged("no text")),
        }
    }

    fn integer(&self) -> Result<i64> {
        match self.stored {
            Stored::Integer(number) => Ok(number),
            Stored::Null | Stored::Revision(_) | Stored::Text(_) => Err(self.damaged("no number")),
        }
    }

    /// A value that is stored as its text.
    pub(crate) fn parse<T: std::str::FromStr<Err = Error>>(&self) -> Result<T> {
        self.text()?.parse().map_err(|error: Error| self.damaged(error))
    }

    pub(crate) fn damaged(&self, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        damaged(self.table, self.column, error)
    }
}

/// A type of a column.
pub trait Column: Sized {
    /// The value to store.
    fn cell(&self) -> Cell<'_>;

    /// The value that was stored.
    fn read(cell: &StoredCell<'_>) -> Result<Self>;

    /// Fills in pending revisions.
    fn resolve(&mut self, _first: Revision) {}
}

macro_rules! optional_columns {
    ($($type:ty),+) => {$(
        impl Column for Option<$type> {
            fn cell(&self) -> Cell<'_> {
                self.as_ref().map_or(Cell::Null, Column::cell)
            }

            fn read(cell: &StoredCell<'_>) -> Result<Self> {
                if cell.is_null() { Ok(None) } else { Column::read(cell).map(Some) }
            }

            fn resolve(&mut self, first: Revision) {
                if let Some(value) = self {
                    Column::resolve(value, first);
                }
            }
        }
    )+};
}

optional_columns!(String, Timestamp, Revision, Metadata, u64);

impl Column for String {
    fn cell(&self) -> Cell<'_> {
        Cell::Text(self)
    }

    fn read(cell: &StoredCell<'_>) -> Result<String> {
        cell.text().map(str::to_owned)
    }
}

impl Column for Cow<'static, str> {
    fn cell(&self) -> Cell<'_> {
        Cell::Text(self)
    }

    fn read(cell: &StoredCell<'_>) -> Result<Cow<'static, str>> {
        cell.text().map(|text| Cow::Owned(text.to_owned()))
    }
}

impl Column for Timestamp {
    fn cell(&self) -> Cell<'_> {
        Cell::Time(*self)
    }

    fn read(cell: &StoredCell<'_>) -> Result<Timestamp> {
        cell.parse()
    }
}

impl Column for Revision {
    fn cell(&self) -> Cell<'_> {
        Cell::Revision(*self)
    }

    fn read(cell: &StoredCell<'_>) -> Result<Revision> {
        if let Stored::Revision(pending) = cell.stored {
            return Ok(pending);
        }
        checked_revision(cell.integer()?).ok_or_else(|| cell.damaged("no revision of a board"))
    }

    fn resolve(&mut self, first: Revision) {
        Pending::resolve(self, first);
    }
}

impl Column for Metadata {
    fn cell(&self) -> Cell<'_> {
        Cell::Text(self.as_str())
    }

    fn read(cell: &StoredCell<'_>) -> Result<Metadata> {
        Metadata::from_stored(cell.text()?.to_owned()).map_err(|error| cell.damaged(error))
    }
}

impl Column for bool {
    fn cell(&self) -> Cell<'_> {
        Cell::Integer(i64::from(*self))
    }

    fn read(cell: &StoredCell<'_>) -> Result<bool> {
        Ok(cell.integer()? != 0)
    }
}

impl Column for u64 {
    fn cell(&self) -> Cell<'_> {
        Cell::Integer(i64::try_from(*self).unwrap_or(i64::MAX))
    }

    fn read(cell: &StoredCell<'_>) -> Result<u64> {
        u64::try_from(cell.integer()?).map_err(|error| cell.damaged(error))
    }
}

/// A PID that no process can have becomes `None`.
impl Column for Option<u32> {
    fn cell(&self) -> Cell<'_> {
        self.map_or(Cell::Null, |number| Cell::Integer(i64::from(number)))
    }

    fn read(cell: &StoredCell<'_>) -> Result<Option<u32>> {
        Ok(if cell.is_null() { None } else { u32::try_from(cell.integer()?).ok() })
    }
}

/// An identity that cannot be read becomes `None`: the time since the last heartbeat decides.
impl Column for Option<ProcessIdentity> {
    fn cell(&self) -> Cell<'_> {
        self.as_ref().map_or(Cell::Null, Cell::Process)
    }

    fn read(cell: &StoredCell<'_>) -> Result<Option<ProcessIdentity>> {
        Ok(if cell.is_null() { None } else { cell.text()?.parse().ok() })
    }
}

impl Column for Vec<String> {
    fn cell(&self) -> Cell<'_> {
        Cell::List(self)
    }

    fn read(cell: &StoredCell<'_>) -> Result<Vec<String>> {
        if cell.is_null() {
            return Ok(Vec::new());
        }
        serde_json::from_str(cell.text()?).map_err(|error| cell.damaged(error))
    }
}

/// A valid revision of a board. A file that another program wrote may contain any number.
pub(crate) fn checked_revision(id: i64) -> Option<Revision> {
    (0..=LAST_REVISION).contains(&id).then(|| Revision::new(id))
}

/// Far beyond what a board reaches, and far below an overflow.
const LAST_REVISION: i64 = 1 << 60;
