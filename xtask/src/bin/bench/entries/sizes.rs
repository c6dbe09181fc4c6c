//! How the number of entries affects the cost of finding and writing one: it should not.

use std::hint::black_box;
use std::time::Instant;

use blackboard::entry::{Order, Query, Value, Write};
use rusqlite::params;

use crate::boards::Scratch;
use crate::report::{Bar, Line, Unit};
use crate::statistics::{median, ratios};
use crate::{Result, Scale};

/// The scope that is filled.
pub const SCOPE: &str = "default";

/// Finding fifty entries among many.
pub fn finding(scale: &Scale) -> Result<Vec<Line>> {
    let sizes = [scale.of(100_000, 1_000), scale.of(1_000_000, 10_000)];
    let boards = sizes.map(filled).into_iter().collect::<Result<Vec<_>>>()?;
    let few = Query { prefix: Some("few:".to_owned()), limit: Some(50), ..Query::default() };
    let first =
        Query { prefix: Some("many:".to_owned()), limit: Some(50), order: Order::Key, ..Query::default() };
    let mut lines = Vec::new();
    for (what, query) in [("a prefix that matches 50", few), ("the first 50 of a large prefix by key", first)]
    {
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..scale.rounds {
            for (times, board) in times.iter_mut().zip(&boards) {
                let board = board.open()?;
                let scope = board.scope(SCOPE);
                times.push(each_takes(scale.of(500, 20), |_| {
                    let page = scope.query(&query)?;
                    if page.entries.len() != 50 {
                        return Err(format!("{} entries were found", page.entries.len()).into());
                    }
                    black_box(page);
                    Ok(())
                })?);
            }
        }
        lines.push(compared(&format!("{what}, among 10⁶ against among 10⁵ entries"), &times));
    }
    Ok(lines)
}

/// Writing into a small and into a large scope.
pub fn writing(scale: &Scale) -> Result<Vec<Line>> {
    let boards = [10, scale.of(100_000, 1_000)].map(filled).into_iter().collect::<Result<Vec<_>>>()?;
    let value = Value::of(&[1, 2, 3])?;
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..scale.rounds {
        for (times, board) in times.iter_mut().zip(&boards) {
            let board = board.open()?;
            let scope = board.scope(SCOPE);
            times.push(each_takes(scale.of(2_000, 50), |number| {
                scope.write(&Write::new(&format!("new:{round}:{number}"), value.clone()))?;
                Ok(())
            })?);
            board.maintain();
        }
    }
    Ok(vec![compared("a write into a scope with 10⁵ against one with 10 entries", &times)])
}

fn compared(what: &str, times: &[Vec<f64>; 2]) -> Line {
    let detail = format!("{:.1} µs, {:.1} µs", median(&times[1]), median(&times[0]));
    Line::new(what, Bar::AtMost(1.5), Unit::Ratio, &ratios(&times[1], &times[0]), detail)
}

/// Microseconds.
pub fn each_takes(count: usize, mut f: impl FnMut(usize) -> Result) -> Result<f64> {
    f(usize::MAX)?;
    let start = Instant::now();
    (0..count).try_for_each(&mut f)?;
    Ok(start.elapsed().as_secs_f64() * 1e6 / count as f64)
}

/// A board with this many entries, fifty of them with their own prefix, like those of real writes.
pub fn filled(size: usize) -> Result<Scratch> {
    const VERSION: &str = "INSERT INTO entry_versions (revision, scope, key, version, value, created_at, created_by, \
                           updated_at, updated_by) VALUES (?1, ?2, ?3, 1, ?4, ?5, 'cli', ?5, 'cli')";
    const ENTRY: &str = "INSERT INTO entries (scope, key, revision) VALUES (?1, ?2, ?3)";
    const EVENT: &str = "INSERT INTO events (id, timestamp, event_type, target_id, target_type, summary, commit_id) \
                         VALUES (?1, ?2, 'entry_written', ?3, 'entry', 'Agent \"cli\" wrote it', ?1)";
    let scratch = Scratch::new()?;
    drop(scratch.open()?);
    let mut connection = scratch.connect()?;
    let transaction = connection.transaction()?;
    let now = super::now();
    for number in 1..=size {
        let revision = i64::try_from(number)?;
        let key = match number % (size / 50).max(1) {
            0 => format!("few:{number:07}"),
            _ => format!("many:{number:07}"),
        };
        let value = format!(r#"{{"status":"pending","number":{number}}}"#);
        transaction.prepare_cached(VERSION)?.execute(params![revision, SCOPE, key, value, now])?;
        transaction.prepare_cached(ENTRY)?.execute(params![SCOPE, key, revision])?;
        transaction.prepare_cached(EVENT)?.execute(params![revision, now, key])?;
    }
    transaction.commit()?;
    drop(connection);
    scratch.fold()?;
    Ok(scratch)
}
