//! Writing entries in process, against a bare script.

use std::time::Instant;

use blackboard::Board;
use blackboard::entry::{Value, Write};

use super::floor::BareScript;
use crate::redis_server::Server;
use crate::remote_board::open;
use crate::report::Line;
use crate::{Result, Scale};

/// About as long as the row of the bare script.
const TEXT: usize = 350;

/// Writes per second: of keys that the process has not seen, and of keys that it wrote before.
pub fn writing(scale: &Scale) -> Result<Vec<Line>> {
    let writes = scale.of(3_000, 50);
    let server = Server::start()?;
    let mut bare = BareScript::on(&server)?;
    let (mut new, mut known, mut floor) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..scale.rounds {
        let url = server.url(&format!("writes-{round}"));
        // The keys exist, so that both kinds of writes do the same.
        write_all(&open(&url)?, writes)?;
        let board = open(&url)?;
        new.push(per_second(writes, || write_all(&board, writes))?);
        floor.push(per_second(writes, || {
            (0..writes).try_for_each(|number| bare.run(&format!("task:{number}")))
        })?);
        known.push(per_second(writes, || write_all(&board, writes))?);
    }
    let what = "`write` in process against a bare `EVALSHA` that sets a field and adds to a stream";
    let same = "the same in a long-lived process that wrote the keys before";
    Ok(vec![
        Line::rate(what, 0.24, "writes", &new, ("script", &floor)),
        Line::rate(same, 0.35, "writes", &known, ("script", &floor)),
    ])
}

fn write_all(board: &Board, writes: usize) -> Result {
    let scope = board.scope("default");
    let value = Value::of(&"x".repeat(TEXT))?;
    for number in 0..writes {
        scope.write(&Write::new(&format!("task:{number}"), value.clone()))?;
    }
    Ok(())
}

fn per_second(count: usize, f: impl FnOnce() -> Result) -> Result<f64> {
    let start = Instant::now();
    f()?;
    Ok(count as f64 / start.elapsed().as_secs_f64())
}
