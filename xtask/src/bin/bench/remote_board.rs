//! Boards on a Redis server, and how often their commits run.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use blackboard::agent::Register;
use blackboard::store::redis::{Redis, RedisOptions};
use blackboard::store::{Changes, Commit, Committed, Prefetch, Store, Tx};
use blackboard::work::Create;
use blackboard::{Board, Revision};

use crate::Result;

/// Opens the board at a URL on a connection of its own. It is created if it does not exist.
pub fn open(url: &str) -> Result<Board> {
    let store = Redis::open(url.parse()?, &RedisOptions::default())?;
    let clock = store.clock();
    Ok(Board::on(Arc::new(Counted(store)), clock))
}

/// The same for the calls of many processes: each commit begins with a read, although this process has seen the rows.
pub fn open_for_many(url: &str) -> Result<Board> {
    let store = Redis::open(url.parse()?, &RedisOptions::default())?.reading_first();
    let clock = store.clock();
    Ok(Board::on(Arc::new(Counted(store)), clock))
}

/// Registers agents without a process, and returns their sessions.
pub fn register(board: &Board, count: usize) -> Result<Vec<String>> {
    let register = |number: usize| Register::named(&format!("Agent {number}"));
    (0..count).map(|number| Ok(board.agents().register(&register(number))?.agent.session_id)).collect()
}

/// Creates available items `item-0`, `item-1` and so on.
pub fn add_items(board: &Board, count: usize) -> Result {
    for number in 0..count {
        let (id, title) = (format!("item-{number}"), format!("Design SQL schema {number}"));
        board.work().create(&Create::new(&id, &title))?;
    }
    Ok(())
}

thread_local! {
    static RUNS: Cell<u32> = const { Cell::new(0) };
}

/// How often the commits of this thread ran since the last call.
pub fn take_runs() -> u32 {
    RUNS.take()
}

/// A store that counts the runs of commits.
struct Counted(Redis);

impl Store for Counted {
    fn read(
        &self,
        prefetch: &[Prefetch<'_>],
        f: &mut dyn FnMut(&dyn Tx) -> blackboard::Result<()>,
    ) -> blackboard::Result<()> {
        self.0.read(prefetch, f)
    }

    fn commit(
        &self,
        commit: &Commit<'_>,
        f: &mut dyn FnMut(&dyn Tx) -> blackboard::Result<Changes>,
    ) -> blackboard::Result<Committed> {
        self.0.commit(commit, &mut |tx| {
            RUNS.set(RUNS.get() + 1);
            f(tx)
        })
    }

    fn wait(&self, after: Revision, timeout: Duration) -> blackboard::Result<Revision> {
        self.0.wait(after, timeout)
    }

    fn wait_for_events(
        &self,
        after: Revision,
        timeout: Duration,
        prefetch: &[Prefetch<'_>],
        f: &mut dyn FnMut(&dyn Tx) -> blackboard::Result<()>,
    ) -> blackboard::Result<Revision> {
        self.0.wait_for_events(after, timeout, prefetch, f)
    }

    fn check_still_there(&self) -> blackboard::Result<()> {
        self.0.check_still_there()
    }

    fn size(&self) -> blackboard::Result<u64> {
        self.0.size()
    }
}
