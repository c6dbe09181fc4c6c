//! Recognizes a database of ivy-blackboard by its tables and its version.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use super::super::{SqliteOptions, faults, open, schema};
use crate::error::{Code, Error, Fault, Result};

/// Its tables. The last one exists since version 6.
pub(super) const TABLES: [&str; 7] =
    ["events", "heartbeats", "work_items", "agents", "projects", "schema_version", "specflow_features"];

/// The table that is missing before version 6.
const OPTIONAL: &str = "specflow_features";

/// The versions of its schema that can be upgraded.
const VERSIONS: std::ops::RangeInclusive<i64> = 1..=9;

/// The most objects that its schema may have: 7 tables and their indexes, with some of the user.
const MAX_OBJECTS: u32 = 100;

/// What a database is, without its WAL.
pub(super) enum Peeked {
    Version(u32),
    /// It has the tables, and this besides.
    Altered(String),
    Other,
}

/// Finds out what a database is, without its WAL and without touching anything.
pub(super) fn peek(path: &Path) -> Peeked {
    let peeked = || -> rusqlite::Result<Peeked> {
        let connection = open::open_immutable(path)?;
        open::configure(&connection, &SqliteOptions::default())?;
        Ok(match unexpected_object(&connection)? {
            Some(object) if has_all_tables(&connection)? => Peeked::Altered(object),
            Some(_) => Peeked::Other,
            None => {
                let version = stored_version(&connection)?.and_then(|version| u32::try_from(version).ok());
                version.map_or(Peeked::Other, Peeked::Version)
            }
        })
    };
    peeked().unwrap_or(Peeked::Other)
}

/// Whether it has every table that all versions have, and a version.
fn has_all_tables(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1";
    for table in TABLES.into_iter().filter(|table| *table != OPTIONAL) {
        if connection.query_row(sql, [table], |_| Ok(())).optional()?.is_none() {
            return Ok(false);
        }
    }
    Ok(stored_version(connection)?.is_some())
}

/// The version of the database that this connection has locked. `None` if it is a board of this program.
pub(super) fn version(connection: &Connection, path: &Path) -> Result<Option<u32>> {
    let fault = |error| faults::translate(path, error);
    let application: i32 =
        connection.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(fault)?;
    if application == schema::APPLICATION_ID {
        return Ok(None);
    }
    if let Some(object) = unexpected_object(connection).map_err(fault)? {
        return Err(cannot_upgrade(path, &object));
    }
    match stored_version(connection).map_err(fault)? {
        Some(version) if VERSIONS.contains(&version) => Ok(u32::try_from(version).ok()),
        Some(version) if version > *VERSIONS.end() => Err(newer(path, version)),
        _ => Err(cannot_upgrade(path, "it has no valid schema version")),
    }
}

fn stored_version(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    connection
        .query_row("SELECT max(version) FROM schema_version", [], |row| row.get(0))
        .optional()
        .map(Option::flatten)
}

/// What does not belong to such a database: a view, a trigger, a table of another program, or a missing table.
fn unexpected_object(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let mut missing: Vec<&str> = TABLES.into_iter().filter(|table| *table != OPTIONAL).collect();
    let mut statement = connection.prepare("SELECT type, name, tbl_name FROM sqlite_schema LIMIT ?1")?;
    let mut rows = statement.query([MAX_OBJECTS + 1])?;
    let mut objects = 0;
    while let Some(row) = rows.next()? {
        let (kind, name, table): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let belongs = match kind.as_str() {
            "table" => {
                missing.retain(|missing| *missing != name);
                name == "sqlite_sequence" || TABLES.contains(&name.as_str())
            }
            // They disappear with their tables.
            "index" => TABLES.contains(&table.as_str()),
            _ => false,
        };
        if !belongs {
            let name = crate::text::escape_for_terminal(&name).into_owned();
            return Ok(Some(format!("its schema has the {kind} \"{name}\"")));
        }
        objects += 1;
    }
    if objects > MAX_OBJECTS {
        return Ok(Some(format!("its schema has more than {MAX_OBJECTS} objects")));
    }
    Ok(missing.first().map(|table| format!("the table {table} is missing")))
}

pub(super) fn cannot_upgrade(path: &Path, why: &str) -> Error {
    let what = format!(
        "{} is a board of ivy-blackboard that cannot be upgraded: {why}; the file was not changed",
        path.display()
    );
    Fault::new(Code::ForeignDatabase, what)
        .hint("remove from it what is not part of ivy-blackboard, or move it away")
        .into()
}

fn newer(path: &Path, version: i64) -> Error {
    let known = VERSIONS.end();
    let what = format!(
        "{} cannot be upgraded: it has schema version {version} of ivy-blackboard, and this program knows {known}",
        path.display()
    );
    Fault::new(Code::NewerSchema, what).hint("update blackboard; the database was not changed").into()
}
