//! A home directory with a quota and a ledger.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use blackboard::clock::{Clock, FixedClock, SystemClock, Timestamp};
use blackboard::quota::{Config, Ledger, Record, Usage};
use blackboard::store::sqlite::SqliteOptions;
use tempfile::TempDir;

use crate::Result;

/// How many agents use tokens at the same time.
const AGENTS: usize = 20;

const QUOTA: &str = r#"{
    "models": {"claude-*": "anthropic"},
    "providers": {"anthropic": {
        "windows": {"5h": {"budget": 5000000000}, "7d": {"budget": 50000000000}},
        "reservation": {"operator": 200000, "agents": {"maxConcurrent": 50, "maxPerAgent": 50000000000}}
    }}
}"#;

/// A home directory, deleted at the end. Only its user can read it, as the program requires.
pub struct Home {
    directory: TempDir,
}

impl Home {
    /// A home whose configuration has a quota.
    pub fn new() -> Result<Home> {
        let directory = tempfile::tempdir()?;
        fs::write(directory.path().join("config.json"), format!(r#"{{"quota": {QUOTA}}}"#))?;
        Ok(Home { directory })
    }

    /// The value of `BLACKBOARD_HOME`.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The file of the ledger.
    pub fn ledger(&self) -> PathBuf {
        self.path().join("quota.db")
    }

    /// Records `count` messages that are spread evenly over the time until now, as 20 agents would have done it: each has a
    /// new session and 3 work items a day.
    pub fn record(&self, board: &Path, count: usize, length: Duration) -> Result {
        const AT_ONCE: usize = 500;
        let begin = SystemClock.now().minus(length);
        let clock = Arc::new(FixedClock::at(&begin.to_string())?);
        let config = Config::parse(QUOTA)?;
        let ledger = Ledger::open_with(&self.ledger(), &config, clock.clone(), &SqliteOptions::default())?;
        let board = board.to_string_lossy().into_owned();
        let at = |number: usize| begin.plus(length.mul_f64(number as f64 / count as f64));
        for first in (0..count).step_by(AT_ONCE) {
            let next = (first + AT_ONCE).min(count);
            let records: Vec<_> =
                (first..next).map(|number| message(&board, number, at(number), begin)).collect();
            clock.set(at(next));
            ledger.record(&records)?;
        }
        Ok(())
    }
}

fn message(board: &str, number: usize, at: Timestamp, begin: Timestamp) -> Record {
    let (agent, seconds) = (number % AGENTS, at.since(begin).as_secs());
    let (day, part) = (seconds / 86_400, seconds / 28_800);
    Record {
        model: "claude-opus-4-8".to_owned(),
        board: Some(board.to_owned()),
        session: Some(format!("84a674b5-1c94-4e3f-b4a8-{day:04}0000{agent:04}")),
        agent: Some(format!("claude-{agent:04}")),
        item: Some(format!("task-{part}-{agent}")),
        ..Record::new(
            format!("msg_{number}"),
            "anthropic",
            at,
            Usage { input: 1_234, cache_write: 9_876, cache_read: 123_456, output: 777, reasoning: 55 },
        )
    }
}
