//! One transaction: reads rows and the event log, and applies changes.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use rusqlite::types::Value;
use rusqlite::{CachedStatement, Connection, ErrorCode, OptionalExtension, params, params_from_iter};

use super::cells::{self, EVENT_COLUMNS};
use super::ranges::{Select, parameters, sort_ties, statement};
use super::{faults, schema};
use crate::clock::Timestamp;
use crate::entry::{EntryHead, EntryVersion};
use crate::error::{Code, Error, Fault, Result};
use crate::event::Event;
use crate::metadata::Metadata;
use crate::revision::{Pending, Revision};
use crate::store::record::{Cell as Column, Index, Table, checked_revision};
use crate::store::transfer::Hold;
use crate::store::{
    Changes, Committed, Erasure, Key, Page, Range, Row, Tx, VersionHead, check_changes, count_older,
    event_time, skip_revisions,
};

const REMOVE_VERSION: &str = "DELETE FROM entry_versions WHERE revision = ?1";

/// A transaction that has begun. Dropping it rolls back.
pub(super) struct SqliteTx<'a> {
    pub(super) connection: &'a Connection,
    pub(super) path: &'a Path,
    now: Timestamp,
    /// Every row that a writer has read by its key or in a range: an update writes only the columns that differ,
    /// which spares the indexes of the others.
    read: RefCell<HashMap<Key, Option<Row>>>,
    /// The unreadable rows that a writer requested by their key. It replaces or removes them completely.
    unreadable: RefCell<Vec<Key>>,
    writes: bool,
    last_event: OnceCell<(Revision, Option<Timestamp>)>,
    /// Whether a scope has policies. Most boards have none, and a writer learns it with the last event, which it needs
    /// anyway: a statement of its own for the policies of a scope costs a short command 2 %.
    has_policies: OnceCell<bool>,
    pub(super) floor: OnceCell<Revision>,
    pub(super) has_gaps: OnceCell<bool>,
    open: bool,
    /// For a reader that announced one row: how many it has read. One statement sees one state of the board without a
    /// transaction, and two more statements to begin and end one would double the cost.
    single: Option<Cell<Single>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Single {
    NotYet,
    Read,
    /// It read more than one row.
    WantedMore,
}

impl<'a> SqliteTx<'a> {
    /// Begins to read.
    pub(super) fn read(connection: &'a Connection, path: &'a Path, now: Timestamp) -> Result<SqliteTx<'a>> {
        connection
            .prepare_cached("BEGIN")
            .and_then(|mut statement| statement.execute([]))
            .map_err(|error| faults::translate(path, error))?;
        Ok(SqliteTx::begun(connection, path, now, false))
    }

    /// For a reader that announced one row. If it reads more, nothing is returned and [`SqliteTx::wanted_more`] is
    /// true.
    pub(super) fn read_one(connection: &'a Connection, path: &'a Path, now: Timestamp) -> SqliteTx<'a> {
        let mut transaction = SqliteTx::begun(connection, path, now, false);
        transaction.single = Some(Cell::new(Single::NotYet));
        transaction
    }

    /// Whether a reader that announced one row read more, and has to begin again in a transaction.
    pub(super) fn wanted_more(&self) -> bool {
        self.single.as_ref().is_some_and(|single| single.get() == Single::WantedMore)
    }

    /// Continues a write transaction that the queue has begun, on a board that can be used.
    pub(super) fn write(connection: &'a Connection, path: &'a Path, now: Timestamp) -> Result<SqliteTx<'a>> {
        SqliteTx::write_on(Hold::None, connection, path, now)
    }

    /// The same, on a board that is held in this way.
    pub(super) fn write_on(
        expected: Hold,
        connection: &'a Connection,
        path: &'a Path,
        now: Timestamp,
    ) -> Result<SqliteTx<'a>> {
        let transaction = SqliteTx::begun(connection, path, now, true);
        match schema::age(connection, path)? {
            (schema::SchemaState::Current, hold) if hold == expected => Ok(transaction),
            (schema::SchemaState::Current, Hold::Sealed) => Err(schema::sealed(connection, path)),
            (schema::SchemaState::Current, Hold::Loading) => Err(schema::being_copied(path)),
            (schema::SchemaState::Current, Hold::None) => Err(super::trust::replaced(path)),
            (schema::SchemaState::Older, _) => {
                Err(faults::corrupt(path, "its schema became older while it was open"))
            }
        }
    }

    fn begun(connection: &'a Connection, path: &'a Path, now: Timestamp, writes: bool) -> SqliteTx<'a> {
        SqliteTx {
            connection,
            path,
            now,
            read: RefCell::default(),
            unreadable: RefCell::default(),
            writes,
            last_event: OnceCell::new(),
            has_policies: OnceCell::new(),
            floor: OnceCell::new(),
            has_gaps: OnceCell::new(),
            open: true,
            single: None,
        }
    }

    /// Writes the changes and commits. Only tests skip revisions.
    pub(super) fn apply(self, mut changes: Changes, skips_revisions: bool) -> Result<Committed> {
        let (last, last_time) = self.last_event()?;
        let first = if skips_revisions { skip_revisions(last) } else { last.next() };
        let committed = Committed { first, held: Duration::ZERO };
        if changes.is_empty() {
            return Ok(committed);
        }
        changes.resolve(first);
        check_changes(&changes, first)?;
        // Rows that others refer to are put first and removed last, in whatever order the verb listed them.
        changes.put.sort_by_key(|row| row.table().generation);
        changes.remove.sort_by_key(|key| std::cmp::Reverse(key.table().generation));
        for row in &changes.put {
            self.put(row)?;
        }
        for key in &changes.remove {
            self.remove(key)?;
        }
        self.erase(&changes.erase)?;
        if !changes.events.is_empty() {
            self.store_gap(last, first)?;
        }
        self.append_events(changes.events, first, event_time(self.now, last_time))?;
        for revision in &changes.remove_versions {
            self.execute(REMOVE_VERSION, params![revision.get()])?;
        }
        // Another commit may have removed the same part, or more.
        if let Some(until) = changes.trim_events
            && until > self.floor()?
        {
            self.execute("DELETE FROM events WHERE id <= ?1", params![until.get()])?;
            self.store_floor(until)?;
        }
        self.finish()?;
        Ok(committed)
    }

    /// Commits what was executed so far.
    pub(super) fn finish(mut self) -> Result<()> {
        self.execute("COMMIT", [])?;
        self.open = false;
        Ok(())
    }

    fn put(&self, row: &Row) -> Result<()> {
        let key = row.key();
        let read = self.read.borrow();
        let (table, cells) = (row.table(), row.cells());
        let before = match read.get(&key) {
            Some(before) => before.as_ref(),
            None if table.appended => None,
            None if self.is_unreadable(&key) => {
                self.remove(&key)?;
                None
            }
            None => {
                let message = format!("{key:?} is written without being read");
                return Err(Fault::new(Code::Internal, message).into());
            }
        };
        match before {
            Some(before) => self.update(table, &before.cells(), &cells)?,
            None => self.execute(table.sql.insert, params_from_iter(cells)).map(drop)?,
        }
        self.update_elements(table.indexes, before, Some(row))
    }

    fn update(&self, table: &Table, before: &[Column<'_>], after: &[Column<'_>]) -> Result<()> {
        let changed: Vec<usize> =
            (0..after.len()).filter(|&column| before[column] != after[column]).collect();
        if changed.is_empty() {
            return Ok(());
        }
        let set: Vec<_> = changed.iter().map(|&column| format!("{} = ?", table.columns[column])).collect();
        let sql = format!("UPDATE {} SET {} WHERE {}", table.name, set.join(", "), table.sql.by_key);
        let cells = changed.iter().map(|&column| &after[column]).chain(&after[..table.key_columns]);
        self.execute(&sql, params_from_iter(cells)).map(drop)
    }

    fn remove(&self, key: &Key) -> Result<()> {
        let is_unreadable = self.is_unreadable(key);
        if !key.table().appended && !is_unreadable && !self.read.borrow().contains_key(key) {
            return Err(Fault::new(Code::Internal, format!("{key:?} is removed without being read")).into());
        }
        self.execute(key.table().sql.delete, params_from_iter(key.cells()))?;
        if is_unreadable {
            return self.drop_elements(key);
        }
        let read = self.read.borrow();
        let before = read.get(key).and_then(Option::as_ref);
        self.update_elements(key.table().indexes, before, None)
    }

    /// Whether this writer requested a row that cannot be read.
    fn is_unreadable(&self, key: &Key) -> bool {
        self.unreadable.borrow().contains(key)
    }

    /// Removes all elements of a row that cannot be read.
    fn drop_elements(&self, key: &Key) -> Result<()> {
        let table = key.table();
        let columns = table.columns[..table.key_columns].join(" = ? AND ");
        for each in table.indexes.iter().filter_map(|index| index.each.as_ref()) {
            let sql = format!("DELETE FROM {} WHERE {columns} = ?", each.table);
            self.execute(&sql, params_from_iter(key.cells()))?;
        }
        Ok(())
    }

    /// Updates the tables of elements from the old row to the new one.
    pub(super) fn update_elements(
        &self,
        indexes: &[&'static Index],
        before: Option<&Row>,
        after: Option<&Row>,
    ) -> Result<()> {
        for index in indexes {
            let Some(each) = &index.each else { continue };
            let keys_of = |row: Option<&Row>| {
                let mut keys = Vec::new();
                if let Some(row) = row.filter(|row| !(each.elements)(row).is_empty()) {
                    index.keys_of(row, &row.cells(), &mut keys);
                }
                keys
            };
            let (before, after) = (keys_of(before), keys_of(after));
            let columns: Vec<&str> = index.partition.iter().chain(index.order).copied().collect();
            for key in before.iter().filter(|key| !after.contains(key)) {
                let sql = format!("DELETE FROM {} WHERE {} = ?", each.table, columns.join(" = ? AND "));
                self.execute(&sql, params_from_iter(key.partition.iter().chain(&key.sort)))?;
            }
            for key in after.iter().filter(|key| !before.contains(key)) {
                let (names, marks) = (columns.join(", "), vec!["?"; columns.len()].join(", "));
                let sql = format!("INSERT INTO {} ({names}) VALUES ({marks})", each.table);
                self.execute(&sql, params_from_iter(key.partition.iter().chain(&key.sort)))?;
            }
        }
        Ok(())
    }

    fn append_events(
        &self,
        events: Vec<crate::event::NewEvent>,
        first: Revision,
        timestamp: Timestamp,
    ) -> Result<()> {
        for (id, mut event) in (first.get()..).zip(events) {
            let version = event.version.take();
            let event = event.at(Revision::new(id), first, timestamp);
            self.execute(cells::INSERT_EVENT, params_from_iter(event.cells()))?;
            if let Some(version) = &version {
                self.append_version(version)?;
            }
        }
        Ok(())
    }

    fn erase(&self, erasures: &[Erasure]) -> Result<()> {
        const EVENT: &str = "UPDATE events SET summary = ?2, metadata = ?3 WHERE id = ?1";
        for Erasure { event, summary, metadata } in erasures {
            self.execute(REMOVE_VERSION, params![event.get()])?;
            self.execute(EVENT, params![event.get(), summary, metadata.as_ref().map(Metadata::as_str)])?;
        }
        Ok(())
    }

    pub(super) fn append_version(&self, version: &EntryVersion) -> Result<()> {
        self.execute(cells::INSERT_VERSION, params_from_iter(version.cells())).map(drop)
    }

    /// The id of the last event, and its time.
    fn last_event(&self) -> Result<(Revision, Option<Timestamp>)> {
        const LAST_EVENT: &str = "SELECT id, timestamp FROM events ORDER BY id DESC LIMIT 1";
        if let Some(&known) = self.last_event.get() {
            return Ok(known);
        }
        let found = self.query_one(LAST_EVENT, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        self.keep_last_event(found)
    }

    /// Keeps the id and the time of the last event, as they are stored.
    fn keep_last_event(&self, found: Option<(i64, String)>) -> Result<(Revision, Option<Timestamp>)> {
        let last = match found {
            Some((id, time)) => {
                let id = checked_revision(id).ok_or_else(|| {
                    faults::corrupt(self.path, "the last event has an id that no board can have")
                })?;
                // An unreadable time of another program does not prevent further events.
                (id, time.parse().ok())
            }
            None => (self.floor_revision()?, None),
        };
        Ok(*self.last_event.get_or_init(|| last))
    }

    /// Whether a scope has policies. Reads the last event in the same statement.
    fn has_policies(&self) -> Result<bool> {
        const BOTH: &str =
            "SELECT id, timestamp, EXISTS (SELECT 1 FROM scopes) FROM events ORDER BY id DESC LIMIT 1";
        if let Some(&known) = self.has_policies.get() {
            return Ok(known);
        }
        let found: Option<(i64, String, bool)> =
            self.query_one(BOTH, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        // Without an event there is no row: then every row is looked up.
        let has_policies = found.as_ref().is_none_or(|(.., has_policies)| *has_policies);
        self.keep_last_event(found.map(|(id, time, _)| (id, time)))?;
        Ok(*self.has_policies.get_or_init(|| has_policies))
    }

    fn select(&self, key: &Key) -> Result<Option<Row>> {
        if self.writes && matches!(key, Key::ScopePolicies(_)) && !self.has_policies()? {
            return Ok(None);
        }
        let table = key.table();
        let mut statement = self.prepare(table.sql.select)?;
        let mut rows = statement.query(params_from_iter(key.cells())).map_err(|error| self.fault(error))?;
        match rows.next().map_err(|error| self.fault(error))? {
            Some(row) => cells::row_from(table, row).map(Some),
            None => Ok(None),
        }
    }

    fn rows_of(&self, range: &Range, limit: Option<i64>) -> Result<Vec<Row>> {
        let table = (range.index.table)();
        let select = if limit.is_some() { Select::Rows } else { Select::AllRows };
        let mut statement = self.prepare(&statement(select, range))?;
        let mut rows = statement.query(parameters(range, limit)).map_err(|error| self.fault(error))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(|error| self.fault(error))? {
            found.push(cells::row_from(table, row)?);
        }
        if limit.is_none() {
            sort_ties(range, &mut found);
        }
        Ok(found)
    }

    pub(super) fn prepare(&self, sql: &str) -> Result<CachedStatement<'_>> {
        if let Some(single) = &self.single {
            let is_first = single.get() == Single::NotYet;
            single.set(if is_first { Single::Read } else { Single::WantedMore });
            if !is_first {
                return Err(Fault::new(Code::Internal, "more than one row is read").into());
            }
        }
        self.connection.prepare_cached(sql).map_err(|error| self.fault(error))
    }

    pub(super) fn execute(&self, sql: &str, parameters: impl rusqlite::Params) -> Result<usize> {
        self.prepare(sql)?.execute(parameters).map_err(|error| self.fault(error))
    }

    pub(super) fn query_one<T>(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
        f: impl FnOnce(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        self.prepare(sql)?.query_row(parameters, f).optional().map_err(|error| self.fault(error))
    }

    pub(super) fn fault(&self, error: rusqlite::Error) -> Error {
        // The reads decided what a commit writes, so a constraint fails only if the table contradicts itself.
        if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) && !self.is_whole() {
            return faults::corrupt(self.path, error);
        }
        faults::translate(self.path, error)
    }

    /// Whether SQLite finds no error in the file. It reads the complete file.
    fn is_whole(&self) -> bool {
        let verdict =
            self.connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0));
        verdict.is_ok_and(|verdict| verdict == "ok")
    }
}

impl Drop for SqliteTx<'_> {
    fn drop(&mut self) {
        if self.open && !self.connection.is_autocommit() {
            let _ = self.execute("ROLLBACK", []);
        }
    }
}

impl Tx for SqliteTx<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn revision(&self) -> Result<Revision> {
        Ok(self.last_event()?.0)
    }

    fn get(&self, key: &Key) -> Result<Option<Row>> {
        if let Some(row) = self.read.borrow().get(key) {
            return Ok(row.clone());
        }
        let row = self.select(key);
        if self.writes {
            match &row {
                Ok(row) => drop(self.read.borrow_mut().insert(key.clone(), row.clone())),
                Err(error) if error.is_unreadable_row() => self.unreadable.borrow_mut().push(key.clone()),
                Err(_) => {}
            }
        }
        row
    }

    fn peek(&self, key: &Key) -> Result<Option<Row>> {
        match self.read.borrow().get(key) {
            Some(row) => Ok(row.clone()),
            None => self.select(key),
        }
    }

    fn range(&self, range: &Range) -> Result<Vec<Row>> {
        let rows = self.rows_of(range, None)?;
        if self.writes {
            let rows = rows.iter().map(|row| (row.key(), Some(row.clone())));
            self.read.borrow_mut().extend(rows);
        }
        Ok(rows)
    }

    fn candidates(&self, range: &Range, limit: usize) -> Result<Vec<Row>> {
        self.rows_of(range, Some(i64::try_from(limit).unwrap_or(-1)))
    }

    fn heads(&self, range: &Range, limit: usize) -> Result<Vec<EntryHead>> {
        let mut statement = self.prepare(&statement(Select::Heads, range))?;
        let limit = i64::try_from(limit).unwrap_or(-1);
        let mut rows = statement.query(parameters(range, Some(limit))).map_err(|error| self.fault(error))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(|error| self.fault(error))? {
            found.push(cells::head_from(row)?);
        }
        Ok(found)
    }

    fn any(&self, range: &Range) -> Result<bool> {
        Ok(self.query_one(&statement(Select::Any, range), parameters(range, None), |_| Ok(()))?.is_some())
    }

    fn keys(&self, range: &Range, limit: usize) -> Result<Vec<Result<Key>>> {
        let table = (range.index.table)();
        let mut statement = self.prepare(&statement(Select::Keys, range))?;
        let limit = i64::try_from(limit).unwrap_or(-1);
        let mut rows = statement.query(parameters(range, Some(limit))).map_err(|error| self.fault(error))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(|error| self.fault(error))? {
            found.push(cells::key_from(table, row));
        }
        Ok(found)
    }

    fn count(&self, range: &Range) -> Result<u64> {
        let sql = statement(Select::Count, range);
        let count: Option<i64> = self.query_one(&sql, parameters(range, None), |row| row.get(0))?;
        Ok(count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0))
    }

    fn events(&self, page: &Page<'_>) -> Result<Vec<Event>> {
        let of_types = match page.types.len() {
            0 => String::new(),
            count => format!(" AND event_type IN ({})", vec!["?"; count].join(", ")),
        };
        let sql =
            format!("SELECT {EVENT_COLUMNS} FROM events WHERE id > ? AND id <= ?{of_types} ORDER BY id");
        let mut statement = self.prepare(&sql)?;
        let parameters = [Value::Integer(page.after.get()), Value::Integer(page.until.get())]
            .into_iter()
            .chain(page.types.iter().map(|event_type| Value::Text(event_type.as_str().to_owned())));
        let mut rows = statement.query(params_from_iter(parameters)).map_err(|error| self.fault(error))?;
        let mut found: Vec<Event> = Vec::new();
        while let Some(row) = rows.next().map_err(|error| self.fault(error))? {
            let event = cells::event_from(row)?;
            let full = found.len() >= page.limit;
            if full && found.last().is_none_or(|last| last.commit_id != event.commit_id) {
                break;
            }
            found.push(event);
        }
        Ok(found)
    }

    fn version(&self, revision: Revision) -> Result<Option<EntryVersion>> {
        let mut statement = self.prepare(cells::VERSION_QUERY)?;
        let mut rows = statement.query(params![revision.get()]).map_err(|error| self.fault(error))?;
        match rows.next().map_err(|error| self.fault(error))? {
            Some(row) => cells::version_from(row).map(Some),
            None => Ok(None),
        }
    }

    fn version_heads(&self, after: Revision, until: Revision) -> Result<Vec<VersionHead>> {
        const HEADS: &str = "SELECT revision, previous, CASE WHEN value IS NULL THEN scope END, \
            CASE WHEN value IS NULL THEN key END FROM entry_versions \
            WHERE revision > ?1 AND revision <= ?2 ORDER BY revision";
        let mut statement = self.prepare(HEADS)?;
        let bounds = params![after.get(), until.get()];
        let mut rows = statement.query(bounds).map_err(|error| self.fault(error))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(|error| self.fault(error))? {
            let previous: Option<i64> = row.get(1).ok().flatten();
            // A name that cannot be read has no readable tombstone.
            let removed = row.get(2).ok().flatten().zip(row.get(3).ok().flatten());
            found.push(VersionHead {
                revision: Revision::new(row.get(0).map_err(|error| self.fault(error))?),
                previous: previous.and_then(checked_revision),
                removed,
            });
        }
        Ok(found)
    }

    fn count_events(&self, after: Revision, until: Revision) -> Result<u64> {
        let (after, until) = (after.max(self.floor()?), until.min(self.revision()?));
        self.count_between(after, until)
    }

    fn revision_back(&self, until: Revision, count: u64) -> Result<Revision> {
        let kept = self.count_events(Revision::ZERO, until)?;
        self.revision_after_kept(kept.saturating_sub(count))
    }

    fn revision_before(&self, moment: Timestamp) -> Result<Revision> {
        // Another program may have removed the event.
        const IS_OLDER: &str = "SELECT timestamp < ?2 FROM events WHERE id >= ?1 ORDER BY id LIMIT 1";
        let (kept, moment) = (self.count_between(self.floor()?, self.revision()?)?, moment.to_string());
        let older = count_older(kept, |position| {
            let id = self.revision_after_kept(position + 1)?;
            let older = self.query_one(IS_OLDER, params![id.get(), moment], |row| row.get(0))?;
            Ok(older.unwrap_or(false))
        })?;
        self.revision_after_kept(older)
    }

    fn floor(&self) -> Result<Revision> {
        self.floor_revision()
    }
}
