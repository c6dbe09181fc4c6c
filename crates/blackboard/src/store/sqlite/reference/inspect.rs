//! Checks a database before anything is written: a refused upgrade leaves the file and its directory unchanged.

use std::fs::OpenOptions;
use std::io::Read;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::super::sidecars::beside;
use super::super::{SqliteOptions, faults, open, schema};
use super::{backup, convert, recognize};
use crate::clock::Timestamp;
use crate::error::Result;

/// A database that can be upgraded.
pub(super) struct Inspected {
    /// Whether a WAL is beside it.
    pub(super) has_wal: bool,
}

/// Refuses a database that cannot be upgraded. Returns `None` if it is a board of this program.
pub(super) fn inspect(path: &Path, options: &SqliteOptions, now: Timestamp) -> Result<Option<Inspected>> {
    let (uses_wal, has_wal) = (uses_wal(path)?, has_wal(path));
    // SQLite would create a WAL and its index.
    let is_alone = uses_wal && !has_wal;
    let found = match read(path, options, uses_wal, is_alone, now) {
        // A process began to write meanwhile.
        Err(_) if is_alone && self::has_wal(path) => read(path, options, uses_wal, false, now),
        found => found,
    };
    Ok(found?.map(|_| Inspected { has_wal }))
}

fn read(
    path: &Path,
    options: &SqliteOptions,
    uses_wal: bool,
    is_alone: bool,
    now: Timestamp,
) -> Result<Option<u32>> {
    let fault = |error| faults::translate(path, error);
    let opened = if is_alone { open::open_immutable(path) } else { open::open_file(path) };
    let connection = opened.map_err(fault)?;
    open::configure(&connection, options).map_err(fault)?;
    let transaction = connection.unchecked_transaction().map_err(fault)?;
    let version = recognize::version(&transaction, path)?;
    if let Some(version) = version.filter(|_| !uses_wal) {
        // The upgrade sets the journal mode in the file before its transaction. Rows that it would refuse are found here.
        backup::verify(&transaction, path)?;
        rehearse(&transaction, version, now).map_err(fault)?;
    }
    Ok(version)
}

/// Converts all rows, and keeps none.
fn rehearse(source: &Connection, version: u32, now: Timestamp) -> rusqlite::Result<()> {
    let target = Connection::open_in_memory()?;
    target.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false)?;
    let transaction = target.unchecked_transaction()?;
    schema::migrate(&transaction, now)?;
    convert::convert(source, &transaction, version, now).map(drop)
}

fn has_wal(path: &Path) -> bool {
    beside(path, "-wal").exists()
}

/// Whether the header of the database says that it has a WAL.
fn uses_wal(path: &Path) -> Result<bool> {
    const READ_VERSION: usize = 19;
    let mut options = OpenOptions::new();
    options.read(true);
    open::private(&mut options);
    let mut header = [0; READ_VERSION + 1];
    let read = options.open(path).and_then(|mut file| file.read_exact(&mut header));
    read.map_err(|error| open::io_fault(path, "read", error))?;
    Ok(header[READ_VERSION] == 2)
}
