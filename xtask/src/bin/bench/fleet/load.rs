//! The fleet at its pace: threads that take the next operation, wait until it is due, and time it from then on.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use blackboard::agent::Heartbeat;
use blackboard::entry::{Value, Write};
use blackboard::follow::{Follow, Start};
use blackboard::work::ClaimNext;
use blackboard::{Board, Revision};

use super::BOARD;
use super::progress::Progress;
use super::schedule::{Kind, Operation, Pace, Schedule};
use crate::Result;
use crate::programs::milliseconds;
use crate::redis_server::Server;
use crate::remote_board::{open, take_runs};
use crate::server_counters::Counters;

/// How many threads it begins with, and the most.
const FIRST_THREADS: usize = 2;
const MOST_THREADS: usize = 64;

/// How late an operation may start before another thread is needed.
const LATE: Duration = Duration::from_millis(5);

/// How late an operation may start at all. A later one fails: the fleet is too large for this machine.
const TOO_LATE: Duration = Duration::from_secs(10);

/// How many keys are written in turn.
const KEYS: usize = 1000;

/// The operations of one kind.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Milliseconds from the moment at which it was due.
    pub times: Vec<f64>,
    /// How often its commit ran.
    pub runs: Vec<f64>,
    pub failures: Vec<String>,
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct Load {
    pub samples: HashMap<Kind, Samples>,
    pub threads: usize,
    pub seconds: f64,
    pub counted: Counters,
    /// Milliseconds from the start of a call until the follower has its event.
    pub delays: Vec<f64>,
    /// How many events the follower did not see.
    pub missed: usize,
}

/// What the threads share.
struct Fleet<'a> {
    board: &'a Board,
    sessions: &'a [String],
    schedule: Mutex<Schedule>,
    start: Instant,
    samples: Mutex<HashMap<Kind, Samples>>,
    threads: AtomicUsize,
    done: AtomicUsize,
    events: Mutex<Events>,
}

/// When calls started and when the follower saw their events, whichever is known first.
#[derive(Default)]
struct Events {
    started: HashMap<Revision, Instant>,
    seen: HashMap<Revision, Instant>,
    delays: Vec<f64>,
}

impl Events {
    fn start(&mut self, revision: Revision, moment: Instant) {
        match self.seen.remove(&revision) {
            Some(seen) => self.delays.push(milliseconds(seen.duration_since(moment))),
            None => drop(self.started.insert(revision, moment)),
        }
    }

    fn see(&mut self, revision: Revision, moment: Instant) {
        match self.started.remove(&revision) {
            Some(started) => self.delays.push(milliseconds(moment.duration_since(started))),
            None => drop(self.seen.insert(revision, moment)),
        }
    }
}

impl Load {
    /// Runs a fleet to its end.
    pub fn run(
        server: &Server,
        board: &Board,
        sessions: &[String],
        pace: &Pace,
        progress: &Progress,
    ) -> Result<Load> {
        let seconds = pace.length.as_secs();
        progress.begin(&format!("{} agents work for {seconds} s", pace.agents));
        let mut client = server.connect()?;
        let following = open(&server.url(BOARD))?;
        let before = Counters::of(&mut client)?;
        let fleet = Fleet {
            board,
            sessions,
            schedule: Mutex::new(Schedule::new(*pace)),
            start: Instant::now(),
            samples: Mutex::default(),
            threads: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            events: Mutex::default(),
        };
        let begins = following.revision()?;
        let ended = AtomicBool::new(false);
        let all: usize = Kind::ALL.iter().map(|kind| pace.count(*kind)).sum();
        thread::scope(|scope| -> Result {
            let follower = scope.spawn(|| fleet.follow(&following, begins, &ended));
            for _ in 0..FIRST_THREADS {
                fleet.add_thread(scope);
            }
            while fleet.done.load(Ordering::Acquire) < all {
                thread::sleep(Duration::from_millis(20));
                progress.note(|| format!("{} of {all} operations", fleet.done.load(Ordering::Acquire)));
            }
            ended.store(true, Ordering::Release);
            follower.join().map_err(|_| "the follower failed")??;
            Ok(())
        })?;
        let elapsed = fleet.start.elapsed();
        let counted = Counters::of(&mut client)?.since(before);
        let events = fleet.events.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Load {
            samples: fleet.samples.into_inner().unwrap_or_else(PoisonError::into_inner),
            threads: fleet.threads.into_inner(),
            seconds: elapsed.as_secs_f64(),
            counted,
            missed: events.started.len(),
            delays: events.delays,
        })
    }
}

impl Fleet<'_> {
    /// Starts a thread, unless there are too many.
    fn add_thread<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        let is_allowed = |threads: usize| (threads < MOST_THREADS).then_some(threads + 1);
        if self.threads.fetch_update(Ordering::AcqRel, Ordering::Acquire, is_allowed).is_ok() {
            scope.spawn(move || self.work(scope));
        }
    }

    fn work<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        let mut samples: HashMap<Kind, Samples> = HashMap::new();
        while let Some(operation) = lock(&self.schedule).next() {
            let due = self.start + operation.due;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let late = due.elapsed();
            // This thread and the others were busy when it was due.
            if late > LATE {
                self.add_thread(scope);
            }
            let of_kind = samples.entry(operation.kind).or_default();
            take_runs();
            let outcome =
                if late > TOO_LATE { Err("it was never started".into()) } else { self.call(operation) };
            match outcome {
                Ok(()) => {
                    of_kind.times.push(milliseconds(due.elapsed()));
                    of_kind.runs.push(f64::from(take_runs()));
                }
                Err(error) => of_kind.failures.push(error.to_string()),
            }
            self.done.fetch_add(1, Ordering::AcqRel);
        }
        let mut all = lock(&self.samples);
        for (kind, samples) in samples {
            let of_kind = all.entry(kind).or_default();
            of_kind.times.extend(samples.times);
            of_kind.runs.extend(samples.runs);
            of_kind.failures.extend(samples.failures);
        }
    }

    /// One operation, with the probe of an automatic sweep, as every call of an agent makes it.
    fn call(&self, operation: Operation) -> Result {
        let session = &self.sessions[operation.number % self.sessions.len()];
        let board = self.board.for_call(Some(session));
        let began = Instant::now();
        match operation.kind {
            Kind::Heartbeat => {
                board.agents().heartbeat(&Heartbeat::of(session))?;
            }
            Kind::Claim => {
                let next = ClaimNext { session: session.clone(), ..ClaimNext::default() };
                let claimed = board.work().claim_next(&next)?;
                lock(&self.events).start(claimed.item.revision, began);
            }
            Kind::Write => {
                let write =
                    Write::new(&format!("load:{}", operation.number % KEYS), Value::of(&operation.number)?);
                let written = board.scope("default").write(&write)?;
                lock(&self.events).start(written.revision, began);
            }
        }
        Ok(())
    }

    /// Follows the board until the fleet has ended and all its events were seen.
    fn follow(&self, board: &Board, begins: Revision, ended: &AtomicBool) -> blackboard::Result<()> {
        let start = Start::Revision(begins);
        let mut follower = board.follow(&Follow { start, without_sweep: true, ..Follow::default() })?;
        loop {
            let has_ended = ended.load(Ordering::Acquire);
            let end = has_ended.then(|| self.board.revision()).transpose()?;
            if end.is_some_and(|end| follower.position() >= end) {
                return Ok(());
            }
            let batch = follower.next_batch(1000, Duration::from_millis(200))?;
            let (now, mut events) = (Instant::now(), lock(&self.events));
            for event in batch.into_iter().flat_map(|batch| batch.events) {
                events.see(event.id, now);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
