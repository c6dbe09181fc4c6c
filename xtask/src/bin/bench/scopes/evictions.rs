//! Evictions from a small and from a large scope: the number of entries should not matter.

use blackboard::entry::{Value, Write};
use blackboard::scope::{CreateScope, Policies};
use rusqlite::params;

use crate::boards::Scratch;
use crate::entries::sizes::{SCOPE, each_takes, filled};
use crate::report::{Bar, Line, Unit};
use crate::statistics::{median, ratios};
use crate::{Result, Scale};

/// Writes of new keys, each of which evicts an entry.
pub fn evicting(scale: &Scale) -> Result<Vec<Line>> {
    let sizes = [1_000, scale.of(1_000_000, 10_000)];
    let boards = sizes.map(full).into_iter().collect::<Result<Vec<_>>>()?;
    let value = Value::of(&[1, 2, 3])?;
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..scale.rounds {
        for (times, board) in times.iter_mut().zip(&boards) {
            let board = board.open()?;
            let scope = board.scope(SCOPE);
            times.push(each_takes(scale.of(2_000, 50), |number| {
                let written = scope.write(&Write::new(&format!("new:{round}:{number}"), value.clone()))?;
                written.evicted.map(drop).ok_or_else(|| "nothing was evicted".into())
            })?);
            board.maintain();
        }
    }
    let [few, many] = &times;
    let detail = format!("{:.1} µs, {:.1} µs", median(many), median(few));
    let what = "an eviction among 10⁶ entries against one among 10³";
    Ok(vec![Line::new(what, Bar::AtMost(1.3), Unit::Ratio, &ratios(many, few), detail)])
}

/// A board with a scope that has as many entries as it may have.
fn full(size: usize) -> Result<Scratch> {
    let scratch = filled(size)?;
    // More entries than one commit counts.
    scratch.open()?.scopes().create(&CreateScope::new(SCOPE, Policies::default()))?;
    let policies = Policies { max_entries: Some(size as u64), ..Policies::default() };
    let policies = serde_json::to_string(&policies)?;
    let changed = scratch.connect()?.execute(
        "UPDATE scopes SET policies = ?1, entries = ?2 WHERE scope = ?3",
        params![policies, i64::try_from(size)?, SCOPE],
    )?;
    if changed != 1 {
        return Err("the scope has no row".into());
    }
    scratch.fold()?;
    Ok(scratch)
}
