//! A complete board, part by part, as [`copy`](crate::copy) moves it from one engine to another.
//!
//! [`Store::dump`] gives every part of one state of a board to a [`Recipient`]. A [`LoadingBoard`] stores the parts exactly as
//! they are, with their revisions. Until it is opened, no other call can use that board: reads and commits fail with
//! `being_copied`.

use super::record::{Index, Table};
use super::rows::Row;
use super::{Store, TABLES};
use crate::Result;
use crate::entry::EntryVersion;
use crate::event::Event;
use crate::revision::Revision;

/// One part of a board, as it is stored. No revision in it is pending.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one part is in memory at a time, and most of them are rows")]
pub enum Part {
    /// A row.
    Row(Row),
    /// The version of an entry whose event was pruned.
    Version(EntryVersion),
    /// An event, and the version of its entry if it has one that is kept.
    Event(Box<Event>, Option<Box<EntryVersion>>),
}

impl Part {
    /// About how many bytes it has.
    pub fn bytes(&self) -> usize {
        let version = |version: &EntryVersion| 200 + version.entry.bytes();
        match self {
            Part::Row(Row::Entry(entry)) => 200 + entry.bytes(),
            Part::Row(_) => 400,
            Part::Version(entry) => version(entry),
            Part::Event(event, entry) => 100 + event.summary.len() + entry.as_deref().map_or(0, version),
        }
    }
}

/// The size of the state that is dumped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Its revision.
    pub revision: Revision,
    /// The last pruned revision.
    pub floor: Revision,
    /// How many rows it has.
    pub rows: u64,
    /// How many events it has.
    pub events: u64,
}

/// What gets the parts of a dump.
pub trait Recipient {
    /// The dump begins.
    fn begin(&mut self, extent: &Extent) -> Result<()>;

    /// The next part. Events come in the order of their ids, everything else in any order.
    fn part(&mut self, part: Part) -> Result<()>;
}

/// A board that is being loaded. Dropping it leaves it as it is: it can be replaced, and not be used.
pub trait LoadingBoard {
    /// Stores the size of the board that comes. Called once, first.
    fn begin(&mut self, extent: &Extent) -> Result<()>;

    /// Stores these parts, in one step.
    fn load(&mut self, parts: Vec<Part>) -> Result<()>;

    /// Gives everything that is stored to a recipient, so that it can be compared.
    fn dump(&self, to: &mut dyn Recipient) -> Result<()>;

    /// Opens the board for every call.
    fn open(&mut self) -> Result<()>;
}

/// Whether a board can be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Hold {
    /// It can be read and written.
    #[default]
    None,
    /// It can only be read: it was sealed by [`Store::seal`].
    Sealed,
    /// It is being loaded, or its loading was interrupted.
    Loading,
}

impl Table {
    /// The index that has every row of the table, each once. An engine that has no other order reads all rows by it.
    pub fn complete_index(&self) -> Option<&'static Index> {
        let key = &self.columns[..self.key_columns];
        let columns = |index: &Index| index.partition.len() + index.order.len();
        let has_all = |index: &&&'static Index| {
            let is_whole = index.condition.is_none() && index.includes.is_none() && index.each.is_none();
            is_whole
                && key
                    .iter()
                    .all(|name| index.partition.iter().chain(index.order).any(|column| column == name))
        };
        self.indexes.iter().filter(has_all).min_by_key(|index| columns(index)).copied()
    }
}

/// The number of rows of all tables, by a function that counts those of one.
pub(super) fn count_rows(count: impl Fn(&'static Table) -> Result<u64>) -> Result<u64> {
    TABLES.iter().map(|table| count(table)).sum()
}

/// The text that says where a sealed board went.
pub(super) fn moved_to(location: Option<&str>) -> String {
    location.filter(|location| !location.is_empty()).map_or_else(
        || "it was copied to another board".to_owned(),
        |location| format!("it was copied to {location}"),
    )
}

/// The refusal of an engine whose boards cannot be copied.
pub(super) fn unsupported(_store: &(impl Store + ?Sized)) -> crate::Error {
    crate::error::Fault::new(crate::Code::Internal, "boards of this engine cannot be copied").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::commits::every_kind_of_row;

    #[test]
    fn every_table_has_an_index_with_each_of_its_rows_once() {
        testkit::limit_test();
        for table in TABLES {
            assert!(table.complete_index().is_some(), "{} has no complete index", table.name);
        }
        for row in every_kind_of_row() {
            let index = row.table().complete_index().unwrap();
            let places = row.index_keys().into_iter().filter(|place| place.index == index).count();
            assert_eq!(places, 1, "{row:?} in {index:?}");
        }
    }
}
