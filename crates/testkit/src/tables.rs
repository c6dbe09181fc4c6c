//! A board as tables in memory, for tests that look at a board with SQL. The tables of a board in a file are its own.

use blackboard::entry::{Entry, EntryVersion};
use blackboard::event::Event;
use blackboard::file::Edit;
use blackboard::store::{Cursor, Key, Page, Prefetch, Range, Row, Store, TABLES, Tx};
use blackboard::work::Dependency;
use blackboard::{Result, Revision};
use rusqlite::types::Value as Cell;
use rusqlite::{Connection, params, params_from_iter};
use serde_json::Value;

/// The columns of versions, and those of events, in the order in which they are stored.
pub(crate) const VERSION: &str = "revision, previous, scope, key, version, value, created_at, created_by, updated_at, updated_by, \
                       expires_at, tags, metadata, session_id, fence";
pub(crate) const EVENT: &str =
    "id, timestamp, event_type, actor_id, target_id, target_type, summary, metadata, commit_id";

/// Everything that is copied, from one state of the board.
#[derive(Default)]
struct Copy {
    rows: Vec<Row>,
    versions: Vec<EntryVersion>,
    events: Vec<Event>,
}

/// The tables of a board in memory, without its bookkeeping.
pub(crate) fn tables_of(store: &dyn Store) -> Result<Connection> {
    let mut copy = Copy::default();
    store.read(&[], &mut |tx| {
        copy = copy_of(tx)?;
        Ok(())
    })?;
    Ok(connection(&copy).unwrap())
}

fn copy_of(tx: &dyn Tx) -> Result<Copy> {
    let tables = [
        Range::agents(),
        Range::projects(),
        Range::work_items(),
        Range::all(Dependency::ALL),
        Range::operations(),
        Range::all_entries(),
        Range::all(Edit::OLDEST),
    ];
    let page = Page::after(Revision::ZERO, usize::MAX);
    let heads = Prefetch::VersionHeads(Revision::ZERO, Revision::MAX);
    let first = tables.iter().cloned().map(Prefetch::Range).chain([Prefetch::Events(page), heads]);
    tx.prefetch(&first.collect::<Vec<_>>())?;
    let mut rows = Vec::new();
    for table in &tables {
        rows.extend(readable(tx, table)?);
    }
    let events = tx.events(&page)?;
    let heads = tx.version_heads(Revision::ZERO, Revision::MAX)?;

    let sessions: Vec<String> = rows.iter().filter_map(session_of).collect();
    let mut of_sessions: Vec<Range> =
        sessions.iter().flat_map(|id| [Range::heartbeats_of(id), Range::cursors_of(id)]).collect();
    of_sessions.push(Range::cursors_of(Cursor::OWNERLESS));
    let mut tombstones: Vec<Key> = heads
        .iter()
        .filter_map(|head| head.removed.clone())
        .map(|(scope, key)| Key::Tombstone(scope, key))
        .collect();
    tombstones.sort();
    tombstones.dedup();
    let second = of_sessions.iter().cloned().map(Prefetch::Range);
    let second = second.chain(tombstones.iter().cloned().map(Prefetch::Row));
    // The event of an entry may have been pruned. Its version is kept.
    let mut versions: Vec<Revision> = heads.iter().map(|head| head.revision).collect();
    versions.extend(rows.iter().filter_map(|row| match row {
        Row::Entry(entry) => Some(entry.revision),
        _ => None,
    }));
    versions.sort_unstable();
    versions.dedup();
    let second = second.chain(versions.iter().copied().map(Prefetch::Version));
    tx.prefetch(&second.collect::<Vec<_>>())?;
    for range in &of_sessions {
        rows.extend(readable(tx, range)?);
    }
    for key in &tombstones {
        rows.extend(tx.get(key)?);
    }
    // A version that cannot be read is left out, too.
    let copied = versions.into_iter().filter_map(|revision| tx.version(revision).ok().flatten()).collect();
    Ok(Copy { rows, versions: copied, events })
}

/// The rows of a range without those that cannot be read.
fn readable(tx: &dyn Tx, range: &Range) -> Result<Vec<Row>> {
    let rows = tx.range(range);
    if rows.is_ok() {
        return rows;
    }
    tx.prefetch(&[Prefetch::Keys(range.clone(), usize::MAX)])?;
    let keys: Vec<Key> = tx.keys(range, usize::MAX)?.into_iter().flatten().collect();
    tx.prefetch(&keys.iter().cloned().map(Prefetch::Row).collect::<Vec<_>>())?;
    Ok(keys.iter().filter_map(|key| tx.get(key).ok().flatten()).collect())
}

fn session_of(row: &Row) -> Option<String> {
    if let Row::Agent(agent) = row { Some(agent.session_id.clone()) } else { None }
}

fn connection(copy: &Copy) -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    for table in TABLES {
        create(&connection, table.name, &table.columns.join(", "))?;
    }
    create(&connection, "entry_tags", "scope, key, tag")?;
    create(&connection, "entry_versions", VERSION)?;
    create(&connection, "events", EVENT)?;
    for row in &copy.rows {
        insert(&connection, row.table().name, &row.to_stored())?;
        if let Row::Entry(entry) = row {
            insert_tags(&connection, entry)?;
        }
    }
    for version in &copy.versions {
        insert(&connection, "entry_versions", &version.to_stored())?;
    }
    for event in &copy.events {
        insert(&connection, "events", &event.to_stored())?;
    }
    Ok(connection)
}

fn create(connection: &Connection, table: &str, columns: &str) -> rusqlite::Result<()> {
    connection.execute(&format!("CREATE TABLE {table} ({columns})"), []).map(drop)
}

/// Inserts a row in its stored form: an array of the version of the form, the table, and the values.
fn insert(connection: &Connection, table: &str, stored: &str) -> rusqlite::Result<()> {
    let values: Vec<Value> = serde_json::from_str(stored).unwrap();
    let columns = connection.prepare_cached(&format!("SELECT * FROM {table}"))?.column_count();
    let mut cells: Vec<Cell> = values[2..].iter().map(cell).collect();
    cells.resize(columns, Cell::Null);
    let places = vec!["?"; columns].join(", ");
    let mut statement = connection.prepare_cached(&format!("INSERT INTO {table} VALUES ({places})"))?;
    statement.execute(params_from_iter(cells)).map(drop)
}

fn insert_tags(connection: &Connection, entry: &Entry) -> rusqlite::Result<()> {
    for tag in &entry.tags {
        connection
            .execute("INSERT INTO entry_tags VALUES (?, ?, ?)", params![entry.scope, entry.key, tag])?;
    }
    Ok(())
}

fn cell(value: &Value) -> Cell {
    match value {
        Value::Null => Cell::Null,
        Value::Bool(flag) => Cell::Integer(i64::from(*flag)),
        Value::Number(number) => number.as_i64().map_or(Cell::Null, Cell::Integer),
        Value::String(text) => Cell::Text(text.clone()),
        other => Cell::Text(other.to_string()),
    }
}
