//! The baseline: the cost of a command that only runs its statements.
//!
//! It has the same SQLite build, the same statements, and the same way of opening and closing as the product, but no
//! argument parser, no rules, and no checks of the file. The benchmark runs it beside the product and reports the
//! ratio. When the product's statements change, this program must change too.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, DEFAULT_NAME, OpenFlags, params};

/// Later than every timestamp of a measured board, so that a row changes, and earlier than no threshold.
const NOW: &str = "2099-01-01T00:00:00.000Z";

/// Earlier than every timestamp: the sweep finds no agent.
const LONG_AGO: &str = "2000-01-01T00:00:00.000Z";

const AGENT: &str = "SELECT session_id, agent_name, pid, parent_id, project, current_work, status, started_at, \
                     last_seen_at, metadata, last_beat_at, ended_at, progress, process, shares_process, \
                     joined_revision, revision FROM agents";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        ["nothing"] => Ok(()),
        ["claim", database, session, item] => claim(Path::new(database), session, item),
        ["heartbeat", database, session] => heartbeat(Path::new(database), session),
        ["hook", database, session] => hook(Path::new(database), session),
        ["list", database] => list(Path::new(database)),
        ["scan", database] => scan(Path::new(database)),
        _ => {
            eprintln!(
                "usage: baseline nothing | claim DB SESSION ITEM | heartbeat DB SESSION | hook DB SESSION | \
                 list DB | scan DB"
            );
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("baseline: {error}");
            ExitCode::FAILURE
        }
    }
}

fn claim(database: &Path, session: &str, item: &str) -> rusqlite::Result<()> {
    const ITEM: &str = "SELECT item_id, project_id, title, description, source, source_ref, status, priority, \
                        claimed_by, claimed_at, completed_at, blocked_by, created_at, metadata, \
                        claimed_by_name, fence, revision FROM work_items WHERE item_id = ?";
    const TAKE: &str = "UPDATE work_items SET status = ?, claimed_by = ?, claimed_at = ?, claimed_by_name = ?, \
                        fence = ?, revision = ? WHERE item_id = ?";
    const TELL: &str = "INSERT INTO events (id, timestamp, event_type, actor_id, target_id, target_type, \
                        summary, metadata, commit_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let (connection, frames) = open(database)?;
    read_all(&connection, &format!("{AGENT} WHERE session_id = ?"), &[session])?;
    probe_for_the_dead(&connection)?;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    version(&connection)?;
    read_all(&connection, &format!("{AGENT} WHERE session_id = ?"), &[session])?;
    read_all(&connection, ITEM, &[item])?;
    let last: i64 =
        connection
            .query_row("SELECT id, timestamp FROM events ORDER BY id DESC LIMIT 1", [], |row| row.get(0))?;
    let taken = params!["claimed", session, NOW, "Agent 0", last + 1, last + 1, item];
    connection.execute(TAKE, taken)?;
    connection.execute("UPDATE agents SET current_work = ? WHERE session_id = ?", params![item, session])?;
    let summary = format!("Agent \"Agent 0\" claimed \"{item}\"");
    let none: Option<&str> = None;
    let event = params![last + 1, NOW, "work_claimed", session, item, "work_item", summary, none, last + 1];
    connection.execute(TELL, event)?;
    connection.execute_batch("COMMIT")?;
    answer(&format!("{{\"ok\":true,\"item_id\":\"{item}\",\"fence\":{}}}", last + 1));
    maintain(&connection, &frames)?;
    leave_open(connection);
    Ok(())
}

fn heartbeat(database: &Path, session: &str) -> rusqlite::Result<()> {
    const BEAT: &str = "UPDATE agents SET last_seen_at = ?, last_beat_at = ? WHERE session_id = ?";
    const NOTE: &str = "INSERT OR REPLACE INTO heartbeats (session_id, timestamp, progress, work_item_id) VALUES (?1, ?2, ?3, ?4)";
    let (connection, frames) = open(database)?;
    read_all(&connection, &format!("{AGENT} WHERE session_id = ?"), &[session])?;
    probe_for_the_dead(&connection)?;
    connection.execute_batch("BEGIN IMMEDIATE")?;
    version(&connection)?;
    read_all(&connection, &format!("{AGENT} WHERE session_id = ?"), &[session])?;
    connection.query_row("SELECT id, timestamp FROM events ORDER BY id DESC LIMIT 1", [], |_| Ok(()))?;
    connection.execute(BEAT, params![NOW, NOW, session])?;
    let none: Option<&str> = None;
    connection.execute(NOTE, params![session, NOW, none, none])?;
    connection.execute_batch("COMMIT")?;
    answer("{\"ok\":true}");
    maintain(&connection, &frames)?;
    leave_open(connection);
    Ok(())
}

/// A tool call that has nothing to write.
fn hook(database: &Path, session: &str) -> rusqlite::Result<()> {
    const CURSOR: &str =
        "SELECT owner, reader, revision, updated_at FROM cursors WHERE owner = ? AND reader = ?";
    let mut input = String::new();
    // Input that is not UTF-8 is ignored.
    let _ = std::io::stdin().read_to_string(&mut input);
    let (connection, _) = open(database)?;
    connection.execute_batch("BEGIN")?;
    read_all(&connection, &format!("{AGENT} WHERE session_id = ?"), &[session])?;
    read_all(&connection, CURSOR, &[session, "hook"])?;
    read_all(&connection, "SELECT id, timestamp FROM events ORDER BY id DESC LIMIT 1", &[])?;
    connection.execute_batch("COMMIT")?;
    leave_open(connection);
    Ok(())
}

fn list(database: &Path) -> rusqlite::Result<()> {
    let (connection, _) = open(database)?;
    probe_for_the_dead(&connection)?;
    let sql =
        format!("{AGENT} WHERE status IN ('active', 'idle') AND last_seen_at >= ?1 ORDER BY last_seen_at");
    let mut statement = connection.prepare(&sql)?;
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut rows = statement.query([LONG_AGO])?;
    let mut text = String::from("{\"ok\":true,\"items\":[");
    while let Some(row) = rows.next()? {
        text.push('{');
        for (column, name) in names.iter().enumerate() {
            // Writing to a `String` cannot fail.
            let _ = match row.get_ref(column)? {
                ValueRef::Integer(number) => write!(text, "\"{name}\":{number},"),
                ValueRef::Text(bytes) => write!(text, "\"{name}\":\"{}\",", String::from_utf8_lossy(bytes)),
                _ => write!(text, "\"{name}\":null,"),
            };
        }
        text.push_str("},");
    }
    text.push_str("]}");
    answer(&text);
    drop(rows);
    drop(statement);
    leave_open(connection);
    Ok(())
}

/// Reads every column of every event.
fn scan(database: &Path) -> rusqlite::Result<()> {
    const EVENTS: &str = "SELECT id, timestamp, event_type, actor_id, target_id, target_type, summary, metadata, \
                          commit_id FROM events ORDER BY id";
    let (connection, _) = open(database)?;
    read_all(&connection, EVENTS, &[])
}

fn open(database: &Path) -> rusqlite::Result<(Connection, Arc<AtomicU32>)> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut connection = Connection::open_with_flags(database, flags)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    for (setting, value) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true),
        (DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true),
    ] {
        connection.set_db_config(setting, value)?;
    }
    connection.execute_batch("PRAGMA synchronous = NORMAL")?;
    version(&connection)?;
    read_all(&connection, "SELECT name, sql FROM sqlite_schema", &[])?;
    let frames = Arc::new(AtomicU32::new(0));
    let count = frames.clone();
    connection.wal_hook(Some(move |_: &mut _, length| {
        count.store(u32::try_from(length).unwrap_or(0), Ordering::Relaxed);
        Ok(())
    }))?;
    Ok((connection, frames))
}

/// What the product does after its output: check whether pruning is due and the WAL is long.
fn maintain(connection: &Connection, frames: &AtomicU32) -> rusqlite::Result<()> {
    read_all(connection, "SELECT name, value FROM marks WHERE name = ?", &["prune"])?;
    if frames.load(Ordering::Relaxed) > 100 {
        connection.wal_checkpoint_v2(DEFAULT_NAME, CheckpointMode::PASSIVE)?;
        connection.wal_checkpoint_v2(DEFAULT_NAME, CheckpointMode::TRUNCATE)?;
    }
    Ok(())
}

/// The product leaves closing to the end of the process.
fn leave_open(connection: Connection) {
    std::mem::forget(connection);
}

fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.prepare_cached("PRAGMA user_version")?.query_row([], |row| row.get(0))
}

fn probe_for_the_dead(connection: &Connection) -> rusqlite::Result<()> {
    const ANY: &str = "SELECT 1 FROM agents WHERE status IN ('active', 'idle') \
                       AND last_seen_at >= ?1 AND last_seen_at < ?2 LIMIT 1";
    read_all(connection, ANY, &["", LONG_AGO])
}

fn read_all(connection: &Connection, sql: &str, parameters: &[&str]) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(sql)?;
    let columns = statement.column_count();
    let mut rows = statement.query(rusqlite::params_from_iter(parameters))?;
    while let Some(row) = rows.next()? {
        for column in 0..columns {
            std::hint::black_box(row.get_ref(column)?);
        }
    }
    Ok(())
}

fn answer(text: &str) {
    // A failure cannot be reported here.
    let _ = std::io::stdout().write_all(text.as_bytes());
}
