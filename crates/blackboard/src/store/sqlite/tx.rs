//! One transaction: reading rows and the log, and applying changes.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use rusqlite::types::Value;
use rusqlite::{CachedStatement, Connection, ErrorCode, OptionalExtension, params, params_from_iter};

use super::cells::{self, EVENT_COLUMNS};
use super::ranges::{Select, parameters, statement};
use super::{faults, schema};
use crate::clock::Timestamp;
use crate::entry::{Entry, EntryHead, EntryVersion};
use crate::error::{Code, Error, Fault, Result};
use crate::event::Event;
use crate::metadata::Metadata;
use crate::revision::{Pending, Revision};
use crate::store::record::{Cell as Column, Table, checked_revision};
use crate::store::{
    Changes, Committed, Erasure, Key, Page, Range, Row, Tx, VersionHead, check_changes, count_older,
    event_time,
};

/// Reads blockers in the order of their index, and looks up each with the item that waits for it.
pub(super) const MISSING_BLOCKERS: &str = "SELECT DISTINCT blocked_by FROM work_dependencies AS dependency \
    WHERE NOT EXISTS (SELECT 1 FROM work_items WHERE item_id = dependency.blocked_by) \
    AND EXISTS (SELECT 1 FROM work_items WHERE item_id = dependency.item_id AND status = 'blocked') \
    ORDER BY blocked_by LIMIT ?1";

const REMOVE_VERSION: &str = "DELETE FROM entry_versions WHERE revision = ?1";

/// A transaction that has begun. Dropping it rolls back.
pub(super) struct SqliteTx<'a> {
    connection: &'a Connection,
    path: &'a Path,
    now: Timestamp,
    /// Every row that a writer has read by its key or in a range: an update writes only the columns that differ, so that
    /// it leaves alone the indexes of those that don't.
    read: RefCell<HashMap<Key, Option<Row>>>,
    /// The rows that a writer asked for by their key and that cannot be read. It replaces or removes them completely.
    unreadable: RefCell<Vec<Key>>,
    writes: bool,
    last_event: OnceCell<(Revision, Option<Timestamp>)>,
    floor: OnceCell<Revision>,
    open: bool,
    /// Of a reader who said that it wants one row: how many it got. One statement is one state of the board without a
    /// transaction, and two more statements for its beginning and end would cost as much again.
    single: Option<Cell<Single>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Single {
    NotYet,
    Read,
    /// It wanted more after all.
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

    /// For a reader who wants one row. If it turns out to want more, nothing is read and [`SqliteTx::wanted_more`]
    /// says so.
    pub(super) fn read_one(connection: &'a Connection, path: &'a Path, now: Timestamp) -> SqliteTx<'a> {
        let mut transaction = SqliteTx::begun(connection, path, now, false);
        transaction.single = Some(Cell::new(Single::NotYet));
        transaction
    }

    /// Whether somebody who said that it wants one row wanted more, and has to begin anew in a transaction.
    pub(super) fn wanted_more(&self) -> bool {
        self.single.as_ref().is_some_and(|single| single.get() == Single::WantedMore)
    }

    /// Takes over a write transaction that the queue has begun.
    pub(super) fn write(connection: &'a Connection, path: &'a Path, now: Timestamp) -> Result<SqliteTx<'a>> {
        let transaction = SqliteTx::begun(connection, path, now, true);
        match schema::age(connection, path)? {
            schema::SchemaState::Current => Ok(transaction),
            schema::SchemaState::Older => {
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
            floor: OnceCell::new(),
            open: true,
            single: None,
        }
    }

    /// Writes the changes and commits.
    pub(super) fn apply(mut self, mut changes: Changes) -> Result<Committed> {
        let (last, last_time) = self.last_event()?;
        let first = last.next();
        let committed = Committed { first, held: Duration::ZERO };
        if changes.is_empty() {
            return Ok(committed);
        }
        changes.resolve(first);
        check_changes(&changes, first)?;
        // Rows that others refer to come first and go last, in whatever order the verb named them.
        changes.put.sort_by_key(|row| row.table().generation);
        changes.remove.sort_by_key(|key| std::cmp::Reverse(key.table().generation));
        for row in &changes.put {
            self.put(row)?;
        }
        for key in &changes.remove {
            self.remove(key)?;
        }
        self.erase(&changes.erase)?;
        self.append_events(changes.events, first, event_time(self.now, last_time))?;
        for revision in &changes.remove_versions {
            self.execute(REMOVE_VERSION, params![revision.get()])?;
        }
        if let Some(until) = changes.trim_events {
            self.execute("DELETE FROM events WHERE id <= ?1", params![until.get()])?;
        }
        self.execute("COMMIT", [])?;
        self.open = false;
        Ok(committed)
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
        let Row::Entry(entry) = row else { return Ok(()) };
        let before = if let Some(Row::Entry(before)) = before { &before.tags[..] } else { &[] };
        self.set_tags(entry, before, &entry.tags)
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
        const DROP_TAGS: &str = "DELETE FROM entry_tags WHERE scope = ?1 AND key = ?2";
        let is_unreadable = self.is_unreadable(key);
        if !key.table().appended && !is_unreadable && !self.read.borrow().contains_key(key) {
            return Err(Fault::new(Code::Internal, format!("{key:?} is removed without being read")).into());
        }
        self.execute(key.table().sql.delete, params_from_iter(key.cells()))?;
        if let (Key::Entry(scope, key), true) = (key, is_unreadable) {
            self.execute(DROP_TAGS, params![scope, key])?;
        }
        if let Some(Some(Row::Entry(entry))) = self.read.borrow().get(key) {
            self.set_tags(entry, &entry.tags, &[])?;
        }
        Ok(())
    }

    /// Whether this writer asked for a row that cannot be read.
    fn is_unreadable(&self, key: &Key) -> bool {
        self.unreadable.borrow().contains(key)
    }

    /// Brings the table of tags from what an entry had to what it has.
    fn set_tags(&self, entry: &Entry, before: &[String], after: &[String]) -> Result<()> {
        const ADD: &str = "INSERT INTO entry_tags (scope, tag, key) VALUES (?1, ?2, ?3)";
        const DROP: &str = "DELETE FROM entry_tags WHERE scope = ?1 AND tag = ?2 AND key = ?3";
        for (sql, tags, others) in [(DROP, before, after), (ADD, after, before)] {
            for tag in tags.iter().filter(|tag| !others.contains(tag)) {
                self.execute(sql, params![entry.scope, tag, entry.key])?;
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
        const INSERT: &str = "INSERT INTO events (id, timestamp, event_type, actor_id, target_id, target_type, \
                              summary, metadata, commit_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        let timestamp = timestamp.to_string();
        for (id, event) in (first.get()..).zip(events) {
            let row = params![
                id,
                timestamp,
                event.event_type.as_str(),
                event.actor_id,
                event.target_id,
                event.target_type.map(crate::event::TargetType::as_str),
                event.summary,
                event.metadata.as_ref().map(Metadata::as_str),
                first.get(),
            ];
            self.execute(INSERT, row)?;
            if let Some(version) = &event.version {
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

    fn append_version(&self, version: &EntryVersion) -> Result<()> {
        self.execute(cells::INSERT_VERSION, params_from_iter(version.cells())).map(drop)
    }

    /// The id of the last event, and its time.
    fn last_event(&self) -> Result<(Revision, Option<Timestamp>)> {
        const LAST_EVENT: &str = "SELECT id, timestamp FROM events ORDER BY id DESC LIMIT 1";
        if let Some(&known) = self.last_event.get() {
            return Ok(known);
        }
        let found: Option<(i64, String)> =
            self.query_one(LAST_EVENT, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let last = match found {
            Some((id, time)) => {
                let id = checked_revision(id).ok_or_else(|| {
                    faults::corrupt(self.path, "the last event has an id that no board can have")
                })?;
                // A time that another program has made unreadable is no reason to accept no further event.
                (id, time.parse().ok())
            }
            None => (Revision::ZERO, None),
        };
        Ok(*self.last_event.get_or_init(|| last))
    }

    fn select(&self, key: &Key) -> Result<Option<Row>> {
        let table = key.table();
        let mut statement = self.prepare(table.sql.select)?;
        let mut rows = statement.query(params_from_iter(key.cells())).map_err(|error| self.fault(error))?;
        match rows.next().map_err(|error| self.fault(error))? {
            Some(row) => cells::row_from(table, row).map(Some),
            None => Ok(None),
        }
    }

    fn rows_of(&self, range: &Range, limit: i64) -> Result<Vec<Row>> {
        let table = (range.index.table)();
        let mut statement = self.prepare(&statement(Select::Rows, range))?;
        let mut rows = statement.query(parameters(range, Some(limit))).map_err(|error| self.fault(error))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(|error| self.fault(error))? {
            found.push(cells::row_from(table, row)?);
        }
        Ok(found)
    }

    fn prepare(&self, sql: &str) -> Result<CachedStatement<'_>> {
        if let Some(single) = &self.single {
            let is_first = single.get() == Single::NotYet;
            single.set(if is_first { Single::Read } else { Single::WantedMore });
            if !is_first {
                return Err(Fault::new(Code::Internal, "more than one row is read").into());
            }
        }
        self.connection.prepare_cached(sql).map_err(|error| self.fault(error))
    }

    fn execute(&self, sql: &str, parameters: impl rusqlite::Params) -> Result<usize> {
        self.prepare(sql)?.execute(parameters).map_err(|error| self.fault(error))
    }

    fn query_one<T>(
        &self,
        sql: &str,
        parameters: impl rusqlite::Params,
        f: impl FnOnce(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        self.prepare(sql)?.query_row(parameters, f).optional().map_err(|error| self.fault(error))
    }

    fn fault(&self, error: rusqlite::Error) -> Error {
        // What a commit writes was decided by what was read, so a table contradicts it only if it contradicts itself.
        if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) && !self.is_whole() {
            return faults::corrupt(self.path, error);
        }
        faults::translate(self.path, error)
    }

    /// Whether SQLite finds nothing wrong with the file. It reads all of it.
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

/// How many events this engine has between two revisions that are not outside of its log. It assigns ids without gaps and
/// removes events only from the beginning, so that here a difference is a number of events. See docs/decisions/0017.
fn count_between(after: Revision, until: Revision) -> u64 {
    u64::try_from(until.get() - after.get()).unwrap_or(0)
}

/// The revision so many events after another one, for the same reason.
fn revision_after(revision: Revision, events: u64) -> Revision {
    Revision::new(revision.get().saturating_add(i64::try_from(events).unwrap_or(i64::MAX)))
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
        let rows = self.rows_of(range, -1)?;
        if self.writes {
            let rows = rows.iter().map(|row| (row.key(), Some(row.clone())));
            self.read.borrow_mut().extend(rows);
        }
        Ok(rows)
    }

    fn candidates(&self, range: &Range, limit: usize) -> Result<Vec<Row>> {
        self.rows_of(range, i64::try_from(limit).unwrap_or(-1))
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
            // A name that cannot be read has no tombstone that could be.
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
        Ok(count_between(after, until))
    }

    fn revision_back(&self, until: Revision, count: u64) -> Result<Revision> {
        let until = until.min(self.revision()?);
        let floor = self.floor()?;
        Ok(revision_after(floor, count_between(floor, until).saturating_sub(count)))
    }

    fn revision_before(&self, moment: Timestamp) -> Result<Revision> {
        const IS_OLDER: &str = "SELECT timestamp < ?2 FROM events WHERE id = ?1";
        let (floor, moment) = (self.floor()?, moment.to_string());
        let older = count_older(count_between(floor, self.revision()?), |position| {
            let id = revision_after(floor, position + 1);
            let older = self.query_one(IS_OLDER, params![id.get(), moment], |row| row.get(0))?;
            Ok(older.unwrap_or(false))
        })?;
        Ok(revision_after(floor, older))
    }

    fn floor(&self) -> Result<Revision> {
        if let Some(&known) = self.floor.get() {
            return Ok(known);
        }
        let lowest: Option<Option<i64>> =
            self.query_one("SELECT min(id) FROM events", [], |row| row.get(0))?;
        let lowest = lowest.flatten().and_then(checked_revision);
        Ok(*self.floor.get_or_init(|| lowest.map_or(Revision::ZERO, Revision::previous)))
    }

    fn missing_blockers(&self, limit: usize) -> Result<Vec<String>> {
        let mut statement = self.prepare(MISSING_BLOCKERS)?;
        let limit = i64::try_from(limit).unwrap_or(-1);
        let mut rows = statement.query(params![limit]).map_err(|error| self.fault(error))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(|error| self.fault(error))? {
            found.push(row.get(0).map_err(|error| self.fault(error))?);
        }
        Ok(found)
    }
}
