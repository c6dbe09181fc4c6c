//! A board on a real Redis server that fails: it is killed, full, emptied, replaced, or behind a connection that
//! breaks.
//!
//! The conformance suite, `agreement` and `threads` test what the engine does on a server that works.

#![cfg(all(unix, feature = "redis"))]
#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

mod clocks;
mod cluster;
mod crash;
mod followers;
mod large;
mod mistakes;
mod proxy;
mod refusals;
mod scrub;
mod sentinel;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use blackboard::entry::{Value, Write};
use blackboard::event::{Event, Since};
use blackboard::store::redis::{Redis, RedisOptions};
use blackboard::{Board, Result, Revision};

/// Options for a machine with other work.
fn patient() -> RedisOptions {
    RedisOptions { patience: Duration::from_mins(1), ..RedisOptions::default() }
}

/// Options of a caller that gives up soon, but not before a busy machine has answered.
fn impatient() -> RedisOptions {
    let soon = testkit::patience() / 10;
    RedisOptions { patience: soon, reply_limit: soon, ..RedisOptions::default() }
}

fn try_open(url: &str, options: &RedisOptions) -> Result<Board> {
    let store = Redis::open(url.parse()?, options)?;
    let clock = store.clock();
    Ok(Board::on(Arc::new(store), clock))
}

fn open(url: &str) -> Board {
    try_open(url, &patient()).unwrap()
}

fn write(board: &Board, key: &str, value: i64) -> Result<Revision> {
    board.scope("team").write(&Write::new(key, Value::of(&value).unwrap())).map(|written| written.revision)
}

fn value(board: &Board, key: &str) -> Option<i64> {
    let value = board.scope("team").read(key).unwrap()?;
    value.as_str().parse().ok()
}

/// The complete event log.
fn log(board: &Board) -> Vec<Event> {
    let observation = board.events().observe(&Since::Revision(Revision::ZERO), &[]).unwrap();
    let batch = board.events().next(&observation, observation.after, usize::MAX).unwrap();
    batch.map(|batch| batch.events).unwrap_or_default()
}
