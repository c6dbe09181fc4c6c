//! Tests of the ledger.

mod clocks;
mod files;
mod notices;
mod older;
mod recording;
mod reserving;
mod sharing;
mod windows;

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::clock::{Clock, FixedClock, Timestamp};
use crate::store::sqlite::SqliteOptions;

const START: &str = "2026-02-03T15:30:00Z";

/// A ledger in its own directory, and its clock.
struct Stage {
    directory: TempDir,
    clock: Arc<FixedClock>,
    ledger: Ledger,
}

impl Stage {
    fn new(config: &str) -> Stage {
        let directory = testkit::tempdir().unwrap();
        let clock = Arc::new(FixedClock::at(START).unwrap());
        let ledger = open(&directory, &clock, config);
        Stage { directory, clock, ledger }
    }

    /// One provider with these windows.
    fn with_windows(windows: &[(&str, u64)]) -> Stage {
        let windows: Vec<_> =
            windows.iter().map(|(name, budget)| format!(r#""{name}": {{"budget": {budget}}}"#)).collect();
        Stage::new(&format!(r#"{{"providers": {{"a": {{"windows": {{{}}}}}}}}}"#, windows.join(",")))
    }

    fn reopen(&mut self, config: &str) {
        self.ledger = open(&self.directory, &self.clock, config);
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn advance(&self, minutes: u64) {
        self.clock.advance(Duration::from_mins(minutes));
    }

    fn record(&self, id: &str, at: Timestamp, input: u64) -> Recorded {
        let usage = Usage { input, ..Usage::default() };
        self.ledger.record(&[Record::new(id, "a", at, usage)]).unwrap()
    }

    /// What is used of the window with this number.
    fn used(&self, window: usize) -> u64 {
        self.ledger.status().unwrap().providers[0].windows[window].used
    }

    fn rows(&self, query: &str) -> i64 {
        self.ledger.read(|connection| connection.query_row(query, [], |row| row.get(0))).unwrap()
    }
}

fn open(directory: &TempDir, clock: &Arc<FixedClock>, config: &str) -> Ledger {
    let config = Config::parse(config).unwrap();
    let file = directory.path().join("quota.db");
    Ledger::open_with(&file, &config, clock.clone(), &SqliteOptions::default()).unwrap()
}
