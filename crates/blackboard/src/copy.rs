//! `copy`: a complete board, from one engine to another.
//!
//! Rows, the event log with its ids and gaps, versions, tombstones, heartbeats, cursors and remembered calls are stored on
//! the target as they are on the source. So revisions, fence tokens and cursors keep their meaning, and the next event
//! of the target has an id after those of the source.
//!
//! The clock readings of machines ([`Copied::left_out`]) are not copied: each relates the clock of the source to that of
//! a machine. Without one, a machine marks no agent stale by its silence until one threshold has passed.
//!
//! No other call can use the target until it was compared with the source. The comparison reads both completely, and
//! keeps only counts and digests.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::{Code, Fault, Result};
use crate::fingerprint::Fingerprint;
use crate::revision::Revision;
use crate::store::{Extent, LoadingBoard, Part, Recipient, Row, Store};
use crate::sweep::is_clock_reading;

/// How many parts, and about how many bytes, are stored at once.
const BATCH_PARTS: usize = 1000;
const BATCH_BYTES: usize = 4 << 20;

/// The tables of what is not a row.
const EVENTS: &str = "events";
const VERSIONS: &str = "entry_versions";

/// What was copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Copied {
    /// The revision of the source at which it was copied.
    pub revision: Revision,
    /// The last pruned revision.
    pub floor: Revision,
    /// How many rows of each table, events and versions of entries were copied.
    pub copied: BTreeMap<&'static str, u64>,
    /// How many rows were left out, because they have no meaning on the target.
    pub left_out: u64,
}

/// How far a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProgress {
    /// Whether the target is complete and is being compared.
    pub is_comparing: bool,
    /// How many rows and events were copied or compared.
    pub done: u64,
    /// How many there are.
    pub total: u64,
}

/// Copies the complete board of `source`, at one of its revisions, and compares both. Then the caller opens the target, by
/// [`LoadingBoard::open`]. `observe` gets the progress of each batch.
///
/// ```
/// # use std::sync::Arc;
/// use blackboard::clock::SystemClock;
/// use blackboard::Board;
/// use blackboard::store::LoadingBoard;
/// use blackboard::store::sqlite::{Sqlite, SqliteOptions};
/// # use blackboard::entry::{Value, Write};
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let (from, to) = (directory.path().join("a.db"), directory.path().join("b.db"));
/// # Board::open(&from)?.scope("default").write(&Write::new("key", Value::of(&7)?))?;
/// let (clock, options) = (Arc::new(SystemClock), SqliteOptions::default());
/// let source = Sqlite::open(&from, clock.clone(), &options)?;
/// let mut target = Sqlite::create_to_load(&to, clock, &options, false)?;
/// let copied = blackboard::copy::copy(&source, &mut target, &mut |_| {})?;
/// target.open()?;
/// assert_eq!(Board::open(&to)?.revision()?, copied.revision);
/// # Ok::<(), blackboard::Error>(())
/// ```
pub fn copy(
    source: &dyn Store,
    target: &mut dyn LoadingBoard,
    observe: &mut dyn FnMut(CopyProgress),
) -> Result<Copied> {
    let mut loader = Loader { target, batch: Vec::new(), bytes: 0, tally: Tally::new(false, observe) };
    source.dump(&mut loader)?;
    loader.store()?;
    let Tally { extent, parts, left_out, .. } = loader.tally;
    let mut found = Tally::new(true, observe);
    target.dump(&mut found)?;
    compare(&extent, &parts, &found)?;
    let copied = parts.iter().map(|(table, sum)| (*table, sum.count)).collect();
    Ok(Copied { revision: extent.revision, floor: extent.floor, copied, left_out })
}

fn compare(extent: &Extent, parts: &BTreeMap<&'static str, Sum>, found: &Tally<'_>) -> Result<()> {
    let differs = |what: &str| {
        let message = format!("the copy is not equal to its source: {what} differ; it was not opened");
        Err(Fault::new(Code::Internal, message).into())
    };
    if (extent.revision, extent.floor) != (found.extent.revision, found.extent.floor) {
        return differs("revisions");
    }
    let tables = parts.keys().chain(found.parts.keys());
    for table in tables {
        if parts.get(table) != found.parts.get(table) {
            return differs(table);
        }
    }
    Ok(())
}

/// The number of parts of a table, and a digest that does not depend on their order: the sum of the digests of the parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    count: u64,
    digest: u128,
}

/// Counts the parts of a board.
struct Tally<'a> {
    extent: Extent,
    parts: BTreeMap<&'static str, Sum>,
    left_out: u64,
    done: u64,
    is_comparing: bool,
    observe: &'a mut dyn FnMut(CopyProgress),
}

impl<'a> Tally<'a> {
    fn new(is_comparing: bool, observe: &'a mut dyn FnMut(CopyProgress)) -> Tally<'a> {
        let (extent, parts) = (Extent::default(), BTreeMap::new());
        Tally { extent, parts, left_out: 0, done: 0, is_comparing, observe }
    }

    fn add(&mut self, part: &Part) {
        match part {
            Part::Row(row) => self.sum(row.table().name, &row.to_stored()),
            Part::Version(version) => self.sum(VERSIONS, &version.to_stored()),
            Part::Event(event, version) => {
                self.sum(EVENTS, &event.to_stored());
                if let Some(version) = version {
                    self.sum(VERSIONS, &version.to_stored());
                }
            }
        }
        if !matches!(part, Part::Version(_)) {
            self.done += 1;
        }
        if self.done.is_multiple_of(BATCH_PARTS as u64) {
            self.report();
        }
    }

    fn sum(&mut self, table: &'static str, text: &str) {
        let sum = self.parts.entry(table).or_default();
        sum.count += 1;
        sum.digest = sum.digest.wrapping_add(Fingerprint::new().text(text).number());
    }

    fn report(&mut self) {
        let total = self.extent.rows + self.extent.events;
        (self.observe)(CopyProgress { is_comparing: self.is_comparing, done: self.done, total });
    }
}

impl Recipient for Tally<'_> {
    fn begin(&mut self, extent: &Extent) -> Result<()> {
        self.extent = *extent;
        self.report();
        Ok(())
    }

    fn part(&mut self, part: Part) -> Result<()> {
        self.add(&part);
        Ok(())
    }
}

/// Stores the parts of a dump in batches.
struct Loader<'a> {
    target: &'a mut dyn LoadingBoard,
    batch: Vec<Part>,
    bytes: usize,
    tally: Tally<'a>,
}

impl Loader<'_> {
    fn store(&mut self) -> Result<()> {
        self.bytes = 0;
        self.target.load(std::mem::take(&mut self.batch))
    }
}

impl Recipient for Loader<'_> {
    fn begin(&mut self, extent: &Extent) -> Result<()> {
        self.target.begin(extent)?;
        self.tally.begin(extent)
    }

    fn part(&mut self, part: Part) -> Result<()> {
        if matches!(&part, Part::Row(Row::BookkeepingRow(row)) if is_clock_reading(&row.name)) {
            self.tally.left_out += 1;
            return Ok(());
        }
        self.tally.add(&part);
        self.bytes += part.bytes();
        self.batch.push(part);
        if self.batch.len() >= BATCH_PARTS || self.bytes >= BATCH_BYTES {
            self.store()?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[cfg(all(unix, feature = "redis"))]
mod tests;
