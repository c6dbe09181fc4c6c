//! The declaration of a row type: once, beside its noun, with `record!`.
//!
//! The declaration names the table, the key, the columns and the indexes. It determines the columns and statements of
//! SQLite, and the index keys of engines that store rows directly. It also determines the stored form of a row, and
//! its pending revisions.
//!
//! Events and versions are not rows: no verb puts or removes one by its key, no index contains them, and the engine
//! assigns their ids. An event that cannot be read is replaced and not refused (`Event::read`), and a version contains
//! its entry and has no value if it is a removal (`EntryVersion::read`). `record!` would need an exception for each of
//! these, so both declare their columns themselves (`event/mod.rs`, `entry/mod.rs`). `store/stored.rs` gives them the
//! stored form of rows.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

pub use super::column::{Cell, Column, Stored, StoredCell, StoredCells, StoredRow};
pub(crate) use super::column::{DamagedValue, checked_revision};
use super::rows::{Key, Row};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::revision::{Pending, Revision};

/// A type whose values are rows.
pub trait Record: Pending + Sized {
    /// The table of its rows.
    const TABLE: &'static Table;

    /// The row's key.
    fn key(&self) -> Key;

    /// The values of its columns, in the order of the table.
    fn cells(&self) -> Vec<Cell<'_>>;

    /// A row from its stored values, in the order of the table's read columns.
    fn read(row: &mut StoredRow<'_>) -> Result<Self>;
}

/// The table of one row type.
pub struct Table {
    /// Its name, which never changes.
    pub name: &'static str,
    /// The columns, those of the key first.
    pub columns: &'static [&'static str],
    /// How many columns the key has.
    pub key_columns: usize,
    /// How many columns at the end are computed from others: they are written for an index, and never read.
    pub computed: usize,
    /// The distance from tables without foreign keys: foreign keys of a row refer to rows of lower generations.
    pub generation: u8,
    /// Whether rows are only added: a verb may put one that it has not read, which replaces the one with the same
    /// key. Retention may remove one that it has not read, or cannot read. So such a table has no index with `each`.
    pub appended: bool,
    /// The indexes of its rows.
    pub indexes: &'static [&'static Index],
    /// Reads a row.
    pub(crate) read: fn(&mut StoredRow<'_>) -> Result<Row>,
    /// Reads a key from the key columns.
    pub(crate) read_key: fn(&mut StoredRow<'_>) -> Result<Key>,
    pub(crate) sql: Sql,
}

/// The statements of a table, composed by the compiler.
pub(crate) struct Sql {
    pub(crate) select: &'static str,
    pub(crate) insert: &'static str,
    pub(crate) delete: &'static str,
    /// The condition that finds one row by its key.
    pub(crate) by_key: &'static str,
    pub(crate) key: &'static str,
    /// The columns that [`Record::read`] expects.
    pub(crate) columns: &'static str,
    /// The join that these columns need; empty if they need none.
    pub(crate) join: &'static str,
}

/// An order in which rows of one table can be read, split into partitions.
///
/// A row is in the index unless one of its values there is missing or the index excludes it.
pub struct Index {
    /// Its name, which never changes.
    pub name: &'static str,
    /// The table of its rows.
    pub table: fn() -> &'static Table,
    /// The columns that choose a partition.
    pub partition: &'static [&'static str],
    /// The columns that sort a partition.
    pub order: &'static [&'static str],
    /// Whether it is read from its end.
    pub backwards: bool,
    /// The condition on its rows as SQL, if it does not have all.
    pub(crate) condition: Option<&'static str>,
    /// The same as a function, if the SQL is more than a check for missing values.
    pub(crate) includes: Option<fn(&Row) -> bool>,
    /// If a row is in several partitions: the list of values of the last partition column.
    pub(crate) each: Option<Each>,
}

/// A list in a row. Each element puts the row into another partition.
pub(crate) struct Each {
    /// The table in which SQLite stores the elements. Its columns are those of the partition and the order, including
    /// the key of the row.
    pub(crate) table: &'static str,
    pub(crate) elements: fn(&Row) -> &[String],
}

impl PartialEq for Index {
    fn eq(&self, other: &Index) -> bool {
        self.name == other.name
    }
}

impl Eq for Index {}

impl Hash for Index {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl PartialOrd for Index {
    fn partial_cmp(&self, other: &Index) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Index {
    fn cmp(&self, other: &Index) -> Ordering {
        self.name.cmp(other.name)
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

/// The position of a row in an index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexKey {
    /// The index.
    pub index: &'static Index,
    /// The partition.
    pub partition: Vec<IndexValue>,
    /// The position in the partition.
    pub sort: Vec<IndexValue>,
}

impl Pending for IndexKey {
    fn resolve(&mut self, first: Revision) {
        Pending::resolve(&mut self.sort, first);
    }
}

/// One value of an index key. Values of one column have one type, and sort as that type does.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IndexValue {
    /// A number.
    Integer(i64),
    /// A revision, perhaps pending: an engine that sends index keys before the commit has ids resolves it.
    Revision(Revision),
    /// A moment.
    Time(Timestamp),
    /// A text, by its bytes.
    Text(String),
}

impl Pending for IndexValue {
    fn resolve(&mut self, first: Revision) {
        if let IndexValue::Revision(revision) = self {
            Pending::resolve(revision, first);
        }
    }
}

impl From<&str> for IndexValue {
    fn from(text: &str) -> IndexValue {
        IndexValue::Text(text.to_owned())
    }
}

impl From<Timestamp> for IndexValue {
    fn from(moment: Timestamp) -> IndexValue {
        IndexValue::Time(moment)
    }
}

impl From<Revision> for IndexValue {
    fn from(revision: Revision) -> IndexValue {
        IndexValue::Revision(revision)
    }
}

impl Index {
    /// The positions of a row in the index: one, none if the row is not in it, or several partitions.
    pub(super) fn keys_of(&'static self, row: &Row, cells: &[Cell<'_>], keys: &mut Vec<IndexKey>) {
        if self.includes.is_some_and(|includes| !includes(row)) {
            return;
        }
        let columns = (self.table)().columns;
        let values = |names: &[&str]| -> Option<Vec<IndexValue>> {
            let value = |name: &&str| {
                let column = columns.iter().position(|column| column == name)?;
                cells.get(column)?.index_value()
            };
            names.iter().map(value).collect()
        };
        let elements = self.each.as_ref().map(|each| (each.elements)(row));
        let stored = self.partition.len() - usize::from(elements.is_some());
        let (Some(partition), Some(sort)) = (values(&self.partition[..stored]), values(self.order)) else {
            return;
        };
        match elements {
            None => keys.push(IndexKey { index: self, partition, sort }),
            Some(elements) => keys.extend(elements.iter().map(|element| {
                let last = IndexValue::Text(element.clone());
                let partition = partition.iter().cloned().chain([last]).collect();
                IndexKey { index: self, partition, sort: sort.clone() }
            })),
        }
    }
}

impl Row {
    /// Every position of the row in its indexes.
    pub fn index_keys(&self) -> Vec<IndexKey> {
        let cells = self.cells();
        let mut keys = Vec::new();
        for index in self.table().indexes {
            index.keys_of(self, &cells, &mut keys);
        }
        keys
    }
}

/// Declares the rows of a type: the table, the key, the columns, and the indexes.
///
/// The columns of the key come first. A column has the name of its field, or the one after `=`. `computed` columns are written
/// and never read: they exist for an index. `generation` is [`Table::generation`], `appended` is [`Table::appended`].
///
/// An index is `NAME: by (order) of (partition)`, or `backwards_by` if it is read from its end, and `where "SQL"` if
/// it has only some rows. If the SQL is more than a check for missing values, `= |row| …` is the same condition on
/// the row.
macro_rules! record {
    (
        $name:ident in $table:literal, generation $generation:literal $(, $appended:ident)? {
            key { $($key:ident),+ }
            columns { $($column:ident $(= $column_name:literal)?),* $(,)? }
            $(computed { $($computed:ident),+ })?
        }
        indexes { $($indexes:tt)* }
    ) => {
        impl $crate::store::record::Record for $name {
            const TABLE: &'static $crate::store::record::Table = &$crate::store::record::table!(
                $name in $table, generation $generation $(, $appended)?;
                [$($key),+] [$($column $(= $column_name)?),*] [$($($computed),+)?],
                joined "", columns $crate::store::record::names!([$($key)+ $($column $(= $column_name)?)*])
            );

            fn key(&self) -> $crate::store::Key {
                $crate::store::Key::$name($(self.$key.clone()),+)
            }

            fn cells(&self) -> Vec<$crate::store::record::Cell<'_>> {
                vec![
                    $($crate::store::record::Column::cell(&self.$key),)+
                    $($crate::store::record::Column::cell(&self.$column),)*
                    $($($crate::store::record::Cell::from(self.$computed()),)+)?
                ]
            }

            fn read(row: &mut $crate::store::record::StoredRow<'_>) -> $crate::Result<Self> {
                Ok($name { $($key: row.take()?,)+ $($column: row.take()?,)* })
            }
        }

        impl $crate::revision::Pending for $name {
            fn resolve(&mut self, first: $crate::revision::Revision) {
                let _ = first;
                $($crate::store::record::Column::resolve(&mut self.$column, first);)*
            }
        }

        $crate::store::record::indexes!($name in $table { $($indexes)* });
    };
}
pub(crate) use record;

/// The table of a record.
macro_rules! table {
    (
        $name:ident in $table:literal, generation $generation:literal $(, $appended:ident)?;
        [$first:ident $(, $key:ident)*] [$($column:ident $(= $column_name:literal)?),*] [$($computed:ident),*],
        joined $join:literal, columns $read:expr
    ) => {
        $crate::store::record::Table {
            name: $table,
            columns: &[
                stringify!($first),
                $(stringify!($key),)*
                $($crate::store::record::name!($column $(= $column_name)?),)*
                $(stringify!($computed),)*
            ],
            key_columns: [stringify!($first) $(, stringify!($key))*].len(),
            computed: <[&str]>::len(&[$(stringify!($computed)),*]),
            generation: $generation,
            appended: $crate::store::record::is_appended!($($appended)?),
            indexes: $name::INDEXES,
            read: |row| <$name as $crate::store::record::Record>::read(row).map($crate::store::Row::$name),
            read_key: |row| {
                Ok($crate::store::Key::$name(
                    $crate::store::record::key_part!(row $first)
                    $(, $crate::store::record::key_part!(row $key))*
                ))
            },
            sql: $crate::store::record::Sql {
                select: concat!(
                    "SELECT ", $read, " FROM ", $table, $join, " WHERE ", $table, ".", stringify!($first), " = ?"
                    $(, " AND ", $table, ".", stringify!($key), " = ?")*
                ),
                insert: concat!(
                    $crate::store::record::insert!($($appended)?), $table, " (", stringify!($first)
                    $(, ", ", stringify!($key))*
                    $(, ", ", $crate::store::record::name!($column $(= $column_name)?))*
                    $(, ", ", stringify!($computed))*
                    , ") VALUES (?"
                    $(, $crate::store::record::parameter!($key))*
                    $(, $crate::store::record::parameter!($column))*
                    $(, $crate::store::record::parameter!($computed))*
                    , ")"
                ),
                delete: concat!(
                    "DELETE FROM ", $table, " WHERE ", $table, ".", stringify!($first), " = ?"
                    $(, " AND ", $table, ".", stringify!($key), " = ?")*
                ),
                by_key: concat!(
                    $table, ".", stringify!($first), " = ?" $(, " AND ", $table, ".", stringify!($key), " = ?")*
                ),
                key: concat!($table, ".", stringify!($first) $(, ", ", $table, ".", stringify!($key))*),
                columns: $read,
                join: $join,
            },
        }
    };
}
pub(crate) use table;

/// The indexes of a record, as constants of its type.
macro_rules! indexes {
    (
        $name:ident in $table:literal {
            $($(#[doc = $doc:literal])+ $index:ident: $direction:ident ($($order:ident),+)
                $(of ($($partition:ident),+))? $(where $condition:literal $(= $includes:expr)?)? $(, each $each:expr)?;)*
        }
    ) => {
        impl $name {
            const INDEXES: &'static [&'static $crate::store::Index] = &[$($name::$index),*];

            $($(#[doc = $doc])+
            pub const $index: &'static $crate::store::Index = &$crate::store::Index {
                name: concat!($table, ".", stringify!($index)),
                table: || <$name as $crate::store::record::Record>::TABLE,
                partition: &[$($(stringify!($partition)),+)?],
                order: &[$(stringify!($order)),+],
                backwards: $crate::store::record::is_backwards!($direction),
                condition: $crate::store::record::option!($($condition)?),
                includes: $crate::store::record::option!($($(|row| {
                    let includes: fn(&$name) -> bool = $includes;
                    if let $crate::store::Row::$name(row) = row { includes(row) } else { false }
                })?)?),
                each: $crate::store::record::option!($($each)?),
            };)*
        }
    };
}
pub(crate) use indexes;

macro_rules! name {
    ($column:ident) => {
        stringify!($column)
    };
    ($column:ident = $name:literal) => {
        $name
    };
}
pub(crate) use name;

macro_rules! names {
    ([$first:ident $($column:ident $(= $column_name:literal)?)*]) => {
        concat!(stringify!($first) $(, ", ", $crate::store::record::name!($column $(= $column_name)?))*)
    };
}
pub(crate) use names;

macro_rules! parameter {
    ($column:ident) => {
        ", ?"
    };
}
pub(crate) use parameter;

macro_rules! key_part {
    ($row:ident $column:ident) => {
        $row.take()?
    };
}
pub(crate) use key_part;

macro_rules! is_backwards {
    (by) => {
        false
    };
    (backwards_by) => {
        true
    };
}
pub(crate) use is_backwards;

macro_rules! option {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}
pub(crate) use option;

macro_rules! is_appended {
    () => {
        false
    };
    (appended) => {
        true
    };
}
pub(crate) use is_appended;

macro_rules! insert {
    () => {
        "INSERT INTO "
    };
    (appended) => {
        "INSERT OR REPLACE INTO "
    };
}
pub(crate) use insert;
