//! Writing and reading one entry in process, against the same statements in plain SQL.

use std::hint::black_box;
use std::time::Instant;

use blackboard::entry::{Value, Write};
use rusqlite::{Connection, params};

use crate::boards::Scratch;
use crate::redis_server::Server;
use crate::report::Line;
use crate::{Result, Scale};

const SCOPE: &str = "default";

/// A typical value: about a hundred bytes.
const VALUE: &str =
    r#"{"status":"in_progress","assigned_to":"data_analyst","started_at":"2026-02-04T10:00:00Z","step":17}"#;

/// How many keys are written in turn.
const KEYS: usize = 1000;

/// Writes per second.
pub fn writing(scale: &Scale) -> Result<Vec<Line>> {
    let writes = scale.of(10_000, 500);
    let (mut library, mut raw) = (Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        library.push(through_the_library(writes)?);
        raw.push(by_hand(writes)?);
    }
    let what = "writes per second in process against a raw loop of the same statements";
    Ok(vec![Line::rate(what, 0.7, "writes", &library, ("raw", &raw))])
}

fn key(number: usize) -> String {
    format!("task:{:04}", number % KEYS)
}

fn through_the_library(writes: usize) -> Result<f64> {
    let scratch = Scratch::new()?;
    let board = scratch.open()?;
    let scope = board.scope(SCOPE);
    let value = Value::parse(VALUE, 1024)?;
    let start = Instant::now();
    for number in 0..writes {
        scope.write(&Write::new(&key(number), value.clone()))?;
    }
    Ok(writes as f64 / start.elapsed().as_secs_f64())
}

fn by_hand(writes: usize) -> Result<f64> {
    const FIND: &str = "SELECT entry_versions.* FROM entries CROSS JOIN entry_versions USING (revision) \
                        WHERE entries.scope = ?1 AND entries.key = ?2";
    const GRAVE: &str = "SELECT version, revision FROM entry_tombstones WHERE scope = ?1 AND key = ?2";
    const LAST: &str = "SELECT id, timestamp FROM events ORDER BY id DESC LIMIT 1";
    const ADD: &str = "INSERT INTO entries (scope, key, revision) VALUES (?1, ?2, ?3)";
    const CHANGE: &str = "UPDATE entries SET revision = ?3 WHERE scope = ?1 AND key = ?2";
    const TELL: &str = "INSERT INTO events (id, timestamp, event_type, target_id, target_type, summary, \
                        metadata, commit_id) VALUES (?1, ?2, 'entry_written', ?3, 'entry', ?4, ?5, ?1)";
    const KEEP: &str = "INSERT INTO entry_versions (revision, previous, scope, key, version, value, created_at, \
                        created_by, updated_at, updated_by) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?8)";
    let scratch = Scratch::new()?;
    drop(scratch.open()?);
    let connection = scratch.connect()?;
    let start = Instant::now();
    for number in 0..writes {
        let (key, now) = (key(number), super::now());
        run(&connection, "BEGIN IMMEDIATE")?;
        connection.prepare_cached("PRAGMA user_version")?.query_row([], |_| Ok(()))?;
        let before: Option<(i64, i64, String)> = connection
            .prepare_cached(FIND)?
            .query_map(params![SCOPE, key], |row| Ok((row.get(0)?, row.get(4)?, row.get(6)?)))?
            .next()
            .transpose()?;
        if before.is_none() {
            connection.prepare_cached(GRAVE)?.exists(params![SCOPE, key])?;
        }
        let last: Option<i64> =
            connection.prepare_cached(LAST)?.query_map([], |row| row.get(0))?.next().transpose()?;
        let revision = last.unwrap_or(0) + 1;
        let change = if before.is_some() { CHANGE } else { ADD };
        connection.prepare_cached(change)?.execute(params![SCOPE, key, revision])?;
        let summary = format!("Agent \"cli\" wrote \"{key}\"");
        let about = r#"{"op":"update","scope":"default"}"#;
        connection.prepare_cached(TELL)?.execute(params![revision, now, key, summary, about])?;
        let (previous, version, created) = match &before {
            Some((revision, version, created)) => (Some(revision), version + 1, created),
            None => (None, 1, &now),
        };
        let version = params![revision, previous, SCOPE, key, version, VALUE, created, "cli", now];
        connection.prepare_cached(KEEP)?.execute(version)?;
        run(&connection, "COMMIT")?;
    }
    Ok(writes as f64 / start.elapsed().as_secs_f64())
}

fn run(connection: &Connection, sql: &str) -> Result {
    connection.prepare_cached(sql)?.execute([])?;
    Ok(())
}

/// Reads per second.
pub fn reading(scale: &Scale) -> Result<Vec<Line>> {
    const SELECT: &str = "SELECT entry_versions.* FROM entries CROSS JOIN entry_versions USING (revision) \
                          WHERE entries.scope = ?1 AND entries.key = ?2";
    let reads = scale.of(50_000, 1000);
    let scratch = Scratch::new()?;
    let board = scratch.open()?;
    let scope = board.scope(SCOPE);
    for number in 0..KEYS {
        scope.write(&Write::new(&key(number), Value::parse(VALUE, 1024)?))?;
    }
    board.maintain();
    let connection = scratch.connect()?;
    let server = Server::start()?;
    let mut redis = server.connect()?;
    for number in 0..KEYS {
        redis.call(&["SET", &key(number), VALUE])?;
    }
    let (mut library, mut raw, mut remote) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        library.push(per_second(reads, |number| {
            black_box(scope.read(&key(number))?);
            Ok(())
        })?);
        raw.push(per_second(reads, |number| {
            let mut statement = connection.prepare_cached(SELECT)?;
            let value: String = statement.query_row(params![SCOPE, key(number)], |row| row.get(5))?;
            black_box(value);
            Ok(())
        })?);
        remote.push(per_second(reads, |number| {
            black_box(redis.call(&["GET", &key(number)])?);
            Ok(())
        })?);
    }
    let what = "reads per second in process against a raw prepared SELECT";
    let same = "the same against a Redis GET on loopback";
    Ok(vec![
        Line::rate(what, 0.6, "reads", &library, ("raw", &raw)),
        Line::rate(same, 2.5, "reads", &library, ("Redis", &remote)),
    ])
}

fn per_second(count: usize, mut f: impl FnMut(usize) -> Result) -> Result<f64> {
    let start = Instant::now();
    (0..count).try_for_each(&mut f)?;
    Ok(count as f64 / start.elapsed().as_secs_f64())
}
