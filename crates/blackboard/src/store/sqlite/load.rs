//! A board that is being loaded: rows and events come as they are, with their revisions.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, params, params_from_iter};

use super::tx::SqliteTx;
use super::{Sqlite, SqliteOptions, cells, faults, open, schema, trust};
use crate::clock::Clock;
use crate::error::{Code, Error, Refusal, Result};
use crate::event::Event;
use crate::revision::Revision;
use crate::store::OnBusy;
use crate::store::transfer::{Extent, Hold, LoadingBoard, Part, Recipient};

/// A board in a file that is being loaded. From its first byte it is marked as such, so no other process has it open.
pub struct LoadingFile {
    store: Sqlite,
    connection: Connection,
    file: trust::Identity,
    /// The last event, and its number among all events that the board ever had.
    last: (Revision, i64),
}

impl Sqlite {
    /// Creates a board at `path` that is to be loaded. Refuses if there is one, unless it is one whose loading was interrupted
    /// and it is to be replaced.
    pub fn create_to_load(
        path: &Path,
        clock: Arc<dyn Clock>,
        options: &SqliteOptions,
        replaces: bool,
    ) -> Result<LoadingFile> {
        let store = Sqlite::at(path, clock, options);
        trust::check_directory(path)?;
        if trust::plain_file(path)?.is_some() {
            match open::connect_loading(path, options)? {
                Some(_) if replaces => open::remove_with_companions(path)
                    .map_err(|error| open::io_fault(path, "replaced", error))?,
                Some(_) => return Err(schema::being_copied(path)),
                None => return Err(exists(path)),
            }
        }
        if !open::create(path, &store.queue, options, store.clock.now(), Hold::Loading)? {
            return Err(exists(path));
        }
        let connected = open::connect_loading(path, options)?.ok_or_else(|| trust::replaced(path))?;
        let open::Connected { connection, file, .. } = connected;
        Ok(LoadingFile { store, connection, file, last: (Revision::ZERO, 0) })
    }

    /// Changes whether the board can be used, together with a change of its rows. Returns the hold before.
    pub(super) fn set_hold(
        &self,
        next: Hold,
        change: impl FnOnce(&SqliteTx<'_>) -> Result<()>,
    ) -> Result<Hold> {
        if self.reads_only {
            return Err(open::reads_only(&self.path));
        }
        let connection = self.take()?;
        let (_, before) = schema::age(&connection, &self.path)?;
        if before == Hold::Loading {
            return Err(schema::being_copied(&self.path));
        }
        self.queue.begin(&connection, OnBusy::Wait)?;
        let transaction = SqliteTx::write_on(before, &connection, &self.path, self.clock.now())?;
        change(&transaction)?;
        schema::set_hold(&connection, next).map_err(|error| faults::translate(&self.path, error))?;
        transaction.finish()?;
        self.put_back(connection);
        Ok(before)
    }
}

fn exists(path: &Path) -> Error {
    Refusal::new(Code::InUse, format!("cannot copy to {}: there is a board", path.display()))
        .hint("name a location without a board, or move that board away first")
        .into()
}

impl LoadingFile {
    fn path(&self) -> &Path {
        &self.store.path
    }

    fn write(&self, apply: impl FnOnce(&SqliteTx<'_>) -> Result<()>) -> Result<()> {
        self.store.queue.begin(&self.connection, OnBusy::Wait)?;
        let now = self.store.clock.now();
        let transaction = SqliteTx::write_on(Hold::Loading, &self.connection, self.path(), now)?;
        apply(&transaction)?;
        transaction.finish()
    }

    /// A row that refers to another one has it on every engine. SQLite is the only one that can check it at once.
    fn check_references(&self) -> Result<()> {
        let fault = |error| faults::translate(self.path(), error);
        let mut statement = self.connection.prepare("PRAGMA foreign_key_check").map_err(fault)?;
        let mut found = statement.query([]).map_err(fault)?;
        let Some(row) = found.next().map_err(fault)? else { return Ok(()) };
        let (table, parent): (String, String) = (row.get(0).map_err(fault)?, row.get(2).map_err(fault)?);
        Err(faults::corrupt(self.path(), format!("a row of {table} refers to a missing one of {parent}")))
    }
}

impl LoadingBoard for LoadingFile {
    fn begin(&mut self, extent: &Extent) -> Result<()> {
        self.last = (extent.floor, extent.floor.get());
        if extent.floor == Revision::ZERO {
            return Ok(());
        }
        self.write(|tx| tx.store_floor(extent.floor))
    }

    fn load(&mut self, parts: Vec<Part>) -> Result<()> {
        let mut last = self.last;
        self.write(|tx| {
            for part in parts {
                match part {
                    Part::Row(row) => {
                        let table = row.table();
                        tx.execute(table.sql.insert, params_from_iter(row.cells()))?;
                        tx.update_elements(table.indexes, None, Some(&row))?;
                    }
                    Part::Version(version) => tx.append_version(&version)?,
                    Part::Event(event, version) => {
                        last = append(tx, last, &event)?;
                        version.map_or(Ok(()), |version| tx.append_version(&version))?;
                    }
                }
            }
            Ok(())
        })?;
        self.last = last;
        Ok(())
    }

    fn dump(&self, to: &mut dyn Recipient) -> Result<()> {
        SqliteTx::read(&self.connection, self.path(), self.store.clock.now())?.dump(to)
    }

    fn open(&mut self) -> Result<()> {
        self.check_references()?;
        let fault = |error| faults::translate(&self.store.path, error);
        self.write(|_| schema::set_hold(&self.connection, Hold::None).map_err(fault))?;
        trust::check_still_there(self.path(), &self.file)?;
        // The copy is on the disk before it is reported.
        self.connection.busy_timeout(Duration::from_secs(1)).map_err(fault)?;
        self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(fault)
    }
}

/// Adds an event, and the gap before it if there is one.
fn append(tx: &SqliteTx<'_>, (last, ordinal): (Revision, i64), event: &Event) -> Result<(Revision, i64)> {
    const GAP: &str = "INSERT INTO event_gaps (first_id, ordinal) VALUES (?1, ?2)";
    let ordinal = ordinal.saturating_add(1);
    if event.id != last.next() {
        tx.execute(GAP, params![event.id.get(), ordinal])?;
    }
    tx.execute(cells::INSERT_EVENT, params_from_iter(event.cells()))?;
    Ok((event.id, ordinal))
}
