//! The list of all row types that a board stores.
//!
//! A row type is declared beside its noun with `record!`. A line here defines its key and its variant of [`Row`].

use std::borrow::Cow;

use super::bookkeeping::{BookkeepingRow, Cursor, RememberedCall};
use super::record::{Cell, Column, Record, Table};
use crate::agent::{Agent, HeartbeatRow};
use crate::clock::Timestamp;
use crate::entry::{Entry, Tombstone};
use crate::file::Edit;
use crate::page::ContextPage;
use crate::project::Project;
use crate::protocol::CustomProtocol;
use crate::revision::{Pending, Revision};
use crate::scope::ScopePolicies;
use crate::work::{Dependency, WorkItem};

macro_rules! rows {
    ($($(#[doc = $doc:literal])+ $name:ident($($part:ident: $type:ty),+);)+) => {
        /// The key of a row.
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Key {$(
            $(#[doc = $doc])+
            $name($($type),+),
        )+}

        /// A stored row.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Row {$(
            #[doc = concat!("See [`", stringify!($name), "`].")]
            $name($name),
        )+}

        /// Every table that has rows.
        pub const TABLES: &[&Table] = &[$(<$name as Record>::TABLE),+];

        impl Key {
            /// The table of the row.
            pub fn table(&self) -> &'static Table {
                match self {$(Key::$name(..) => <$name as Record>::TABLE,)+}
            }

            /// The values of the key columns.
            pub fn cells(&self) -> Vec<Cell<'_>> {
                match self {$(Key::$name($($part),+) => vec![$($part.cell()),+],)+}
            }
        }

        impl Row {
            /// The row's key.
            pub fn key(&self) -> Key {
                match self {$(Row::$name(row) => row.key(),)+}
            }

            /// The table of the row.
            pub fn table(&self) -> &'static Table {
                match self {$(Row::$name(_) => <$name as Record>::TABLE,)+}
            }

            /// The values of the row, in the order of its table's columns.
            pub fn cells(&self) -> Vec<Cell<'_>> {
                match self {$(Row::$name(row) => row.cells(),)+}
            }
        }

        impl Pending for Row {
            fn resolve(&mut self, first: Revision) {
                match self {$(Row::$name(row) => row.resolve(first),)+}
            }
        }

        $(
            impl From<$name> for Row {
                fn from(row: $name) -> Row {
                    Row::$name(row)
                }
            }

            impl TryFrom<Row> for $name {
                type Error = Row;

                fn try_from(row: Row) -> Result<$name, Row> {
                    match row {
                        Row::$name(row) => Ok(row),
                        other => Err(other),
                    }
                }
            }
        )+
    };
}

rows! {
    /// By session id.
    Agent(session: String);
    /// A session, and when it sent the heartbeat.
    HeartbeatRow(session: String, timestamp: Timestamp);
    /// By project id.
    Project(id: String);
    /// By name.
    CustomProtocol(name: String);
    /// By item id.
    WorkItem(id: String);
    /// The blocked item, and its blocker.
    Dependency(item: String, blocked_by: String);
    /// A session (or another name) and one of its readers.
    Cursor(owner: String, reader: String);
    /// By idempotency key.
    RememberedCall(id: String);
    /// By name.
    BookkeepingRow(name: Cow<'static, str>);
    /// A scope, and a key in it.
    Entry(scope: String, key: String);
    /// A scope, and a removed key in it.
    Tombstone(scope: String, key: String);
    /// By scope.
    ScopePolicies(scope: String);
    /// A scope, a group of its entries, and the hash of a page.
    ContextPage(scope: String, locality: String, hash: String);
    /// A worktree, a path in it, and the session that edited it.
    Edit(worktree: String, path: String, session: String);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_indexes_have_unique_names_and_existing_columns() {
        let mut names = Vec::new();
        for table in TABLES {
            names.push(table.name);
            for index in table.indexes {
                names.push(index.name);
                assert_eq!((index.table)().name, table.name, "{index:?}");
                let elements = usize::from(index.each.is_some());
                assert!(elements == 0 || !table.appended, "{index:?} needs the row as it was");
                let stored = &index.partition[..index.partition.len() - elements];
                for column in stored.iter().chain(index.order) {
                    assert!(table.columns.contains(column), "{index:?} needs {column}");
                }
                for key in table.columns[..table.key_columns].iter().filter(|_| elements > 0) {
                    assert!(
                        stored.iter().chain(index.order).any(|column| column == key),
                        "{index:?} needs {key}"
                    );
                }
            }
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
