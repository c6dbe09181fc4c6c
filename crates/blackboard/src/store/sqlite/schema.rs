//! The schema and its migrations.
//!
//! Each migration is a numbered SQL file. `user_version` is the number of applied ones; all missing ones run in one
//! transaction. A board that is [held](Hold) has a much higher one: a program that does not know of holds takes it for a
//! newer version, and every write transaction reads it anyway.

use std::borrow::Cow;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::faults;
use crate::clock::Timestamp;
use crate::error::{Code, Error, Fault, Refusal, Result};
use crate::hint::Hint;
use crate::store::transfer::{self, Hold};

/// Marks a database file as a board: "blbd".
pub(super) const APPLICATION_ID: i32 = 0x626c_6264;

/// A kind of database files of this program.
pub(crate) struct FileKind {
    /// Marks a file as one of this kind.
    pub(crate) application_id: i32,
    /// The version of the schema that this program writes.
    pub(crate) version: u32,
}

/// The file of a board.
pub(super) const BOARD: FileKind = FileKind { application_id: APPLICATION_ID, version: VERSION };

struct Migration {
    description: &'static str,
    sql: &'static str,
}

const MIGRATIONS: &[Migration] = &[
    Migration { description: "the ledger", sql: include_str!("migrations/0001_ledger.sql") },
    Migration { description: "entries", sql: include_str!("migrations/0002_entries.sql") },
    Migration { description: "file edits", sql: include_str!("migrations/0003_file_edits.sql") },
    Migration { description: "own work, summaries", sql: include_str!("migrations/0004_text.sql") },
    Migration { description: "keys of heartbeats", sql: include_str!("migrations/0005_heartbeats.sql") },
    Migration { description: "gaps between events", sql: include_str!("migrations/0006_gaps.sql") },
    Migration { description: "protocols", sql: include_str!("migrations/0007_protocols.sql") },
    Migration { description: "policies of scopes", sql: include_str!("migrations/0008_scopes.sql") },
    Migration { description: "policies in one column", sql: include_str!("migrations/0009_policies.sql") },
    Migration { description: "pages of scopes", sql: include_str!("migrations/0010_pages.sql") },
];

/// The version of the schema that this program writes: the number of migrations.
#[expect(clippy::cast_possible_truncation, reason = "there are few migrations")]
pub const VERSION: u32 = MIGRATIONS.len() as u32;

impl Migration {
    /// The statements that create tables and indexes, in SQLite's stored form and order.
    fn objects(&self) -> impl Iterator<Item = &'static str> + use<> {
        let starts = self.sql.match_indices("\nCREATE ").map(|(start, _)| start + 1);
        let sql = self.sql;
        starts.filter_map(move |start| sql[start..].split(';').next())
    }

    /// The indexes of earlier migrations that it removes.
    fn dropped_indexes(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.sql.split("\nDROP INDEX ").skip(1).filter_map(|statement| statement.split(';').next())
    }

    /// The tables of earlier migrations that it replaces: it renames each, and drops it at the end.
    fn replaced_tables(&self) -> impl Iterator<Item = &'static str> + use<> {
        let statements = self.sql.split("\nALTER TABLE ").skip(1);
        statements.filter_map(|statement| Some(statement.split(';').next()?.split_once(" RENAME TO ")?.0))
    }

    /// The columns that it adds to tables of earlier migrations: the table, and the definition.
    fn added_columns(&self) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
        let statements = self.sql.split("\nALTER TABLE ").skip(1);
        statements.filter_map(|statement| statement.split(';').next()?.split_once(" ADD COLUMN "))
    }
}

/// What the migrations make of an empty database. Every command compares the board's schema with it, and to derive it
/// would take a tenth of a hook's instructions.
const CURRENT: &str = include_str!("schema.sql");

/// The statements of [`CURRENT`]. The compiler separates them, because every command would spend one percent of its
/// instructions on that.
const OBJECTS: [&str; count_objects()] = {
    let mut objects = [""; count_objects()];
    let (mut rest, mut place, mut length) = (CURRENT, 0, 0);
    while place < objects.len() {
        if rest.as_bytes()[length] == b';' {
            let (object, after) = rest.split_at(length);
            objects[place] = object.trim_ascii_start();
            (rest, place, length) = (after.split_at(1).1, place + 1, 0);
        } else {
            length += 1;
        }
    }
    objects
};

const fn count_objects() -> usize {
    let (mut place, mut count) = (0, 0);
    while place < CURRENT.len() {
        if CURRENT.as_bytes()[place] == b';' {
            count += 1;
        }
        place += 1;
    }
    count
}

/// The statements of all tables and indexes of a version, in SQLite's stored form.
fn objects(version: u32) -> Vec<Cow<'static, str>> {
    if version < VERSION { migrated_objects(version) } else { OBJECTS.map(Cow::Borrowed).into() }
}

/// The same, from the migrations. SQLite adds a column to the text of its table, after the last one.
fn migrated_objects(version: u32) -> Vec<Cow<'static, str>> {
    let mut objects: Vec<Cow<'static, str>> = Vec::new();
    let is = |object: &str, kind: &str, name: &str, next: &str| {
        let name_and_rest = object.strip_prefix(kind).and_then(|rest| rest.strip_prefix(name));
        name_and_rest.is_some_and(|rest| rest.starts_with(next))
    };
    for migration in MIGRATIONS.iter().take(version as usize) {
        for index in migration.dropped_indexes() {
            objects.retain(|object| !is(object, "CREATE INDEX ", index, " ON "));
        }
        for table in migration.replaced_tables() {
            objects.retain(|object| !is(object, "CREATE TABLE ", table, " ("));
        }
        objects.extend(migration.objects().map(Cow::Borrowed));
        for (table, column) in migration.added_columns() {
            if let Some(object) = objects.iter_mut().find(|object| is(object, "CREATE TABLE ", table, " (")) {
                // The constraints of a table follow its columns.
                let end = object.find(",\n    PRIMARY KEY").or_else(|| object.rfind(')'));
                let (columns, rest) = object.split_at(end.unwrap_or(object.len()));
                *object = Cow::Owned(format!("{columns}, {column}{rest}"));
            }
        }
    }
    objects
}

/// What the version of a sealed board and of one that is being loaded is higher by.
const SEALED: u32 = 1_000_000;
const LOADING: u32 = 2_000_000;

/// The number of applied migrations, and whether the board can be used.
pub(super) fn split_version(version: u32) -> (u32, Hold) {
    match version / SEALED {
        1 => (version - SEALED, Hold::Sealed),
        2 => (version - LOADING, Hold::Loading),
        _ => (version, Hold::None),
    }
}

fn join_version(version: u32, hold: Hold) -> u32 {
    match hold {
        Hold::None => version,
        Hold::Sealed => version + SEALED,
        Hold::Loading => version + LOADING,
    }
}

/// Sets whether the board can be used. The caller has begun a write transaction, and the schema is current.
pub(super) fn set_hold(connection: &Connection, hold: Hold) -> rusqlite::Result<()> {
    connection.execute_batch(&format!("PRAGMA user_version = {}", join_version(VERSION, hold)))
}

/// The board is being loaded, or that was interrupted.
pub(super) fn being_copied(path: &Path) -> Error {
    let what = format!("{} is being copied, or a copy to it was interrupted", path.display());
    Refusal::new(Code::BeingCopied, what).hint(Hint::ReplaceCopyAt(path.display().to_string())).into()
}

/// The location that a board was sealed with.
pub(super) fn moved_to(connection: &Connection) -> Option<String> {
    const MOVED_TO: &str = "SELECT value FROM marks WHERE name = 'sealed'";
    connection.query_row(MOVED_TO, [], |row| row.get(0)).ok()
}

/// The board was sealed.
pub(super) fn sealed(connection: &Connection, path: &Path) -> Error {
    let location = moved_to(connection);
    let reason = transfer::moved_to(location.as_deref());
    let refusal = Refusal::new(Code::BoardSealed, format!("{} is sealed: {reason}", path.display()))
        .hint(Hint::UseCopyOf(path.display().to_string()));
    location.into_iter().fold(refusal, |refusal, location| refusal.detail("moved_to", location)).into()
}

/// The version of the database, in relation to this program.
pub(super) enum SchemaState {
    Current,
    Older,
}

impl SchemaState {
    fn of(version: u32) -> SchemaState {
        if version < VERSION { SchemaState::Older } else { SchemaState::Current }
    }
}

/// Reads the version, and refuses a newer one. It costs one statement and runs in every write transaction, so that a
/// long-lived process of an older version never writes into a newer schema.
pub(super) fn age(connection: &Connection, path: &Path) -> Result<(SchemaState, Hold)> {
    version(connection, path).map(|(version, hold)| (SchemaState::of(version), hold))
}

fn version(connection: &Connection, path: &Path) -> Result<(u32, Hold)> {
    let version = connection
        .prepare_cached("PRAGMA user_version")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
        .map_err(|error| faults::translate(path, error))?;
    let (version, hold) = split_version(version);
    if version > VERSION { Err(newer(path, version, VERSION)) } else { Ok((version, hold)) }
}

/// The database has a version that this program does not know.
pub(super) fn newer(path: &Path, version: u32, known: u32) -> Error {
    Fault::new(
        Code::NewerSchema,
        format!(
            "{} was written by a newer version of blackboard (schema {version}, this one knows {known})",
            path.display()
        ),
    )
    .hint("update blackboard; the database was not changed")
    .into()
}

/// Runs the missing migrations. The caller has begun a write transaction.
pub(super) fn migrate(connection: &Connection, now: Timestamp) -> rusqlite::Result<()> {
    let version: u32 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let (version, hold) = split_version(version);
    for (number, migration) in (1..).zip(MIGRATIONS) {
        if number <= version {
            continue;
        }
        connection.execute_batch(migration.sql)?;
        connection.execute(
            "INSERT INTO schema_version (version, applied_at, description) VALUES (?1, ?2, ?3)",
            (number, now.to_string(), migration.description),
        )?;
        connection.execute_batch(&format!("PRAGMA user_version = {}", join_version(number, hold)))?;
    }
    Ok(())
}

/// Refuses a schema that this program did not create. A database may have come with a cloned repository. A trigger, a
/// view or another table in it could make this program run foreign statements. Returns also whether the board can be used.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<(SchemaState, Hold)> {
    // In one transaction, because another process may migrate just now.
    let transaction = connection.unchecked_transaction().map_err(|error| faults::translate(path, error))?;
    check_objects(&transaction, path)
}

/// The same inside a transaction.
pub(super) fn check_objects(connection: &Connection, path: &Path) -> Result<(SchemaState, Hold)> {
    let (version, hold) = version(connection, path)?;
    compare_objects(connection, path, objects(version), is_left_by_upgrade)?;
    Ok((SchemaState::of(version), hold))
}

/// Refuses a schema that has other objects than these, except those that `is_allowed` accepts.
pub(super) fn compare_objects(
    connection: &Connection,
    path: &Path,
    mut missing: Vec<Cow<'static, str>>,
    is_allowed: fn(&[u8]) -> bool,
) -> Result<()> {
    let fault = |error| faults::translate(path, error);
    let mut statement = connection.prepare("SELECT sql, name FROM sqlite_schema").map_err(fault)?;
    let mut rows = statement.query([]).map_err(fault)?;
    while let Some(row) = rows.next().map_err(fault)? {
        let name = || row.get_ref(1).map(|name| name.as_str().unwrap_or_default()).map_err(fault);
        // SQLite stores a statement as it was written. An automatic index has none.
        let belongs = match row.get_ref(0).map_err(fault)? {
            ValueRef::Null => name()?.starts_with("sqlite_autoindex_"),
            ValueRef::Text(sql) => {
                let place = missing.iter().position(|object| object.as_bytes() == sql);
                place.map(|place| missing.remove(place)).is_some() || is_allowed(sql)
            }
            ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => false,
        };
        if !belongs {
            let name = crate::text::escape_for_terminal(name()?).into_owned();
            return Err(faults::foreign(
                path,
                &format!("its schema has \"{name}\", which does not belong there"),
            ));
        }
    }
    match missing.first().and_then(|object| object.split(" (").next()) {
        Some(object) => {
            Err(faults::corrupt(path, format!("what was made by `{object}` is missing from its schema")))
        }
        None => Ok(()),
    }
}

/// Whether this is what the upgrade of a board of another program leaves: SQLite's own table of the largest ids, which
/// cannot be dropped, and triggers that never run here.
fn is_left_by_upgrade(sql: &[u8]) -> bool {
    const SEQUENCE: &[u8] = b"CREATE TABLE sqlite_sequence(name,seq)";
    sql == SEQUENCE || super::reference::is_guard(sql)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_of_a_held_board_has_its_hold_and_is_newer_for_other_programs() {
        for hold in [Hold::None, Hold::Sealed, Hold::Loading] {
            let joined = join_version(VERSION, hold);
            assert_eq!(split_version(joined), (VERSION, hold));
            assert_eq!(joined > VERSION, hold != Hold::None);
        }
        assert_eq!(split_version(7_000_000), (7_000_000, Hold::None));
    }

    #[test]
    fn the_schema_file_is_what_the_migrations_make() {
        testkit::limit_test();
        let mut expected = String::new();
        for object in migrated_objects(VERSION) {
            expected.push_str(&object);
            expected.push_str(";\n\n");
        }
        expected.push_str(
            "-- Written by BLACKBOARD_WRITE_SNAPSHOTS=1 cargo test -p blackboard --lib schema_file\n",
        );
        if std::env::var_os("BLACKBOARD_WRITE_SNAPSHOTS").is_some() {
            let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/store/sqlite/schema.sql");
            std::fs::write(file, &expected).unwrap();
            return;
        }
        assert!(CURRENT == expected, "schema.sql is not what the migrations make:\n{expected}");
        assert_eq!(objects(VERSION), migrated_objects(VERSION));
    }
}
