//! Databases of this program that are not boards: a private file with the checks that the file of a board has.
//!
//! The caller describes the file with a [`TableFile`] and runs its own statements. A file that is not of this kind is
//! refused before a statement runs.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::queue::Queue;
use super::schema::FileKind;
use super::{SqliteOptions, SqliteSidecars, faults, open, schema, trust};
use crate::error::{Code, Result};
use crate::store::OnBusy;

/// How many pages the WAL may have before a commit checkpoints it.
const PAGES_IN_WAL: u32 = 250;

/// The most bytes that its file keeps.
const BYTES_OF_WAL: u32 = 1 << 20;

/// A file with other tables than a board.
pub(crate) struct TableFile {
    /// Marks a file as one of this kind.
    pub(crate) application_id: i32,
    /// The statements that create the tables, in SQLite's stored form. Each step only adds tables and indexes to those before it.
    /// The version of a file is the number of its steps.
    pub(crate) steps: &'static [&'static str],
}

impl TableFile {
    #[expect(clippy::cast_possible_truncation, reason = "there are few steps")]
    fn version(&self) -> u32 {
        self.steps.len() as u32
    }

    fn kind(&self) -> FileKind {
        FileKind { application_id: self.application_id, version: self.version() }
    }

    /// Adds the tables of all steps after the first ones.
    pub(crate) fn fill(&self, connection: &Connection, after: u32) -> rusqlite::Result<()> {
        for step in self.steps.iter().skip(after as usize) {
            connection.execute_batch(step)?;
        }
        connection.execute_batch(&format!("PRAGMA user_version = {}", self.version()))
    }
}

/// An open file.
pub(crate) struct PrivateFile {
    path: PathBuf,
    queue: Queue,
    connection: Connection,
    /// Whether its files cannot be written.
    is_immutable: bool,
}

impl PrivateFile {
    /// Opens the file, and creates it if it does not exist.
    pub(crate) fn open(path: &Path, expected: &TableFile, options: &SqliteOptions) -> Result<PrivateFile> {
        trust::check_directory(path)?;
        let queue = Queue::new(&SqliteSidecars::new(path), options.busy_timeout, options.waiting);
        if trust::plain_file(path)?.is_none() {
            let fill = |connection: &Connection| expected.fill(connection, 0);
            open::create_with(path, &queue, options, &fill, expected.application_id)?;
        }
        PrivateFile::connect(path, queue, expected, options)
    }

    /// Opens the file, or returns `None` if it does not exist.
    pub(crate) fn open_existing(
        path: &Path,
        expected: &TableFile,
        options: &SqliteOptions,
    ) -> Result<Option<PrivateFile>> {
        trust::check_directory(path)?;
        if trust::plain_file(path)?.is_none() {
            return Ok(None);
        }
        let queue = Queue::new(&SqliteSidecars::new(path), options.busy_timeout, options.waiting);
        PrivateFile::connect(path, queue, expected, options).map(Some)
    }

    fn connect(
        path: &Path,
        queue: Queue,
        expected: &TableFile,
        options: &SqliteOptions,
    ) -> Result<PrivateFile> {
        let connect = |open: fn(&Path) -> rusqlite::Result<Connection>| -> Result<(Connection, u32)> {
            let trust::Checked { file, .. } = trust::check_as(&expected.kind(), path, options)?;
            let fault = |error| faults::translate(path, error);
            let connection = open(path).map_err(fault)?;
            trust::check_same(path, &file)?;
            open::configure(&connection, options).map_err(fault)?;
            let version = check_schema(&connection, path, expected)?;
            Ok((connection, version))
        };
        let ((connection, version), is_immutable) = match connect(open::open_file) {
            Err(error) if error.code() == Code::ReadOnly && open::is_immutable(path) => {
                (connect(open::open_immutable)?, true)
            }
            connected => (connected?, false),
        };
        let limit_wal = || {
            connection.pragma_update(None, "wal_autocheckpoint", PAGES_IN_WAL)?;
            // It answers with the new limit. The next commit after a checkpoint makes a longer file as short as this.
            connection.query_row(&format!("PRAGMA journal_size_limit = {BYTES_OF_WAL}"), [], |_| Ok(()))
        };
        limit_wal().map_err(|error| faults::translate(path, error))?;
        let file = PrivateFile { path: path.to_owned(), queue, connection, is_immutable };
        if version < expected.version() {
            file.upgrade(expected)?;
        }
        Ok(file)
    }

    /// Adds the tables of later steps, unless another process has done that meanwhile.
    fn upgrade(&self, expected: &TableFile) -> Result<()> {
        self.write(|connection| {
            let version = version_of(connection)?;
            if version < expected.version() { expected.fill(connection, version) } else { Ok(()) }
        })
    }

    /// Reads in one transaction.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let run = || {
            let transaction = self.connection.unchecked_transaction()?;
            let outcome = read(&transaction)?;
            transaction.finish()?;
            Ok(outcome)
        };
        run().map_err(|error| faults::translate(&self.path, error))
    }

    /// Writes the WAL into the file and empties it, unless another process uses it.
    pub(crate) fn checkpoint(&self) {
        let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }

    /// Reads and writes in one transaction, which no other writer interrupts. An error of `write` changes nothing.
    pub(crate) fn write<T>(&self, write: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        if self.is_immutable {
            return Err(open::reads_only(&self.path));
        }
        self.queue.begin(&self.connection, OnBusy::Wait)?;
        let outcome = write(&self.connection).and_then(|outcome| {
            self.connection.execute_batch("COMMIT")?;
            Ok(outcome)
        });
        if outcome.is_err() {
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        outcome.map_err(|error| faults::translate(&self.path, error))
    }
}

/// Refuses tables that this program did not create. Returns the version of the file.
fn check_schema(connection: &Connection, path: &Path, expected: &TableFile) -> Result<u32> {
    let fault = |error| faults::translate(path, error);
    let transaction = connection.unchecked_transaction().map_err(fault)?;
    let version = version_of(&transaction).map_err(fault)?;
    if version > expected.version() {
        return Err(schema::newer(path, version, expected.version()));
    }
    if version == 0 {
        return Err(faults::corrupt(path, "its schema has the version 0, which none has".to_owned()));
    }
    let steps = expected.steps.iter().take(version as usize);
    let objects = steps.flat_map(|step| step.split(';')).map(str::trim).filter(|object| !object.is_empty());
    schema::compare_objects(&transaction, path, objects.map(Cow::Borrowed).collect(), |_| false)?;
    Ok(version)
}

fn version_of(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}
