//! A process that claims concurrently with others: `bench worker …`, started by [`super::contention`].
//!
//! It uses the library as a command does, with the queue or with SQLite's own busy handler, and reports the duration of
//! each write.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blackboard::Board;
use blackboard::clock::{Clock, SystemClock, Timestamp};
use blackboard::store::sqlite::{Sqlite, SqliteOptions, Waiting};
use blackboard::work::{Claim, Release};
use serde_json::json;

use crate::Result;
use crate::programs::milliseconds;

/// The work of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Opens the board and claims one item, as a command does.
    Once,
    /// Claims `ITEM-0`, `ITEM-1` and so on at a steady pace.
    Paced,
    /// Claims and releases one item as fast as it can.
    Loop,
}

impl Mode {
    pub const ALL: [Mode; 3] = [Mode::Once, Mode::Paced, Mode::Loop];

    pub fn name(self) -> &'static str {
        match self {
            Mode::Once => "once",
            Mode::Paced => "paced",
            Mode::Loop => "loop",
        }
    }
}

/// The name of a waiting method.
pub fn waiting_name(waiting: Waiting) -> &'static str {
    match waiting {
        Waiting::Queue => "queue",
        Waiting::QueueWithDeadline => "queue-no-longer",
        Waiting::BusyHandler => "busy-handler",
    }
}

/// Works according to its arguments, and prints one JSON object.
pub fn run(arguments: &[String]) -> Result {
    let [mode, waiting, database, session, item, start, rate, seconds] = arguments else {
        return Err("usage: worker MODE WAITING DB SESSION ITEM START_MILLIS RATE SECONDS".into());
    };
    let mode = Mode::ALL.into_iter().find(|known| known.name() == mode).ok_or("an unknown mode")?;
    let all = [Waiting::Queue, Waiting::QueueWithDeadline, Waiting::BusyHandler];
    let waiting =
        all.into_iter().find(|known| waiting_name(*known) == waiting).ok_or("an unknown way to wait")?;
    let mut worker = Worker {
        database: Path::new(database),
        session,
        item,
        options: SqliteOptions { waiting, ..SqliteOptions::default() },
        waits: Vec::new(),
        failures: Vec::new(),
    };
    let start = Timestamp::from_millis(start.parse()?);
    match mode {
        Mode::Once => worker.once(start),
        Mode::Paced => worker.paced(start, rate.parse()?, seconds.parse()?)?,
        Mode::Loop => worker.closed_loop(start, seconds.parse()?)?,
    }
    let answer = json!({"waits": worker.waits, "failures": worker.failures});
    writeln!(std::io::stdout(), "{answer}")?;
    Ok(())
}

struct Worker<'a> {
    database: &'a Path,
    session: &'a str,
    item: &'a str,
    options: SqliteOptions,
    /// Milliseconds.
    waits: Vec<f64>,
    failures: Vec<String>,
}

impl Worker<'_> {
    fn once(&mut self, start: Timestamp) {
        let claim = Claim::of(self.item, self.session);
        sleep_until(start);
        let began = Instant::now();
        let outcome = self.open().and_then(|board| {
            board.work().claim(&claim)?;
            board.maintain();
            Ok(())
        });
        self.note(began, outcome);
    }

    fn paced(&mut self, start: Timestamp, rate: f64, seconds: f64) -> Result {
        let board = self.open()?;
        // Each starts at its own, fixed offset in the period.
        let phase = f64::from(std::process::id() % 97) / 97.0;
        for number in 0..(rate * seconds) as u32 {
            let claim = Claim::of(&format!("{}-{number}", self.item), self.session);
            sleep_until(start.plus(Duration::from_secs_f64((f64::from(number) + phase) / rate)));
            let began = Instant::now();
            let outcome = board.work().claim(&claim).map(drop);
            self.note(began, outcome);
            board.maintain();
        }
        Ok(())
    }

    fn closed_loop(&mut self, start: Timestamp, seconds: f64) -> Result {
        let board = self.open()?;
        let (claim, release) = (Claim::of(self.item, self.session), Release::of(self.item, self.session));
        sleep_until(start);
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        while Instant::now() < end {
            let began = Instant::now();
            let outcome = board.work().claim(&claim).map(drop);
            self.note(began, outcome);
            let began = Instant::now();
            let outcome = board.work().release(&release).map(drop);
            self.note(began, outcome);
            board.maintain();
        }
        Ok(())
    }

    fn open(&self) -> blackboard::Result<Board> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let store = Sqlite::open(self.database, clock.clone(), &self.options)?;
        Ok(Board::on(Arc::new(store), clock))
    }

    fn note(&mut self, began: Instant, outcome: blackboard::Result<()>) {
        match outcome {
            Ok(()) => self.waits.push(milliseconds(began.elapsed())),
            Err(error) => self.failures.push(error.to_string()),
        }
    }
}

fn sleep_until(moment: Timestamp) {
    std::thread::sleep(moment.since(SystemClock.now()));
}
