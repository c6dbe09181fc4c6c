//! The memory engine: the reference.
//!
//! It is optimistic on purpose. A commit runs without a lock, remembers what it read, and is validated at the end. On
//! a conflict it runs again. So the rules for a remote engine are tested here, where they are simple. `state.rs` has
//! the stored state, `view.rs` the views of a read and a commit.

mod state;
mod view;

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use self::state::State;
use self::view::{Reader, Recorder};
use super::{Changes, Commit, Committed, OnBusy, Prefetch, Store, Tx};
use crate::clock::Clock;
use crate::error::{Code, Refusal, Result};
use crate::revision::Revision;

/// How often a commit is tried before it fails with a conflict.
const MAX_RUNS: usize = 1000;

/// After how many lost runs other commits yield: a commit that reads much would otherwise lose to small ones forever.
const STARVING_RUNS: usize = 8;

/// How long each other commit yields at most.
const MOST_YIELD: Duration = Duration::from_millis(100);

/// A board in memory.
pub struct Memory {
    state: RwLock<State>,
    /// The revision of the state, for waiting threads. It changes while the state is locked.
    revision: Mutex<Revision>,
    grown: Condvar,
    clock: Arc<dyn Clock>,
    runs_twice: AtomicBool,
    skips_revisions: AtomicBool,
    is_shared: AtomicBool,
    /// How often the starving commits have lost, all together; zero if none is starving.
    starving: AtomicUsize,
}

impl Memory {
    /// An empty board.
    pub fn new(clock: Arc<dyn Clock>) -> Memory {
        Memory {
            state: RwLock::default(),
            revision: Mutex::default(),
            grown: Condvar::new(),
            clock,
            runs_twice: AtomicBool::new(false),
            skips_revisions: AtomicBool::new(false),
            is_shared: AtomicBool::new(false),
            starving: AtomicUsize::new(0),
        }
    }

    /// Yields to commits that keep losing, the longer the more often they have lost.
    fn yield_to_starving(&self) {
        let lost = self.starving.load(Ordering::Relaxed);
        if lost > 0 {
            std::thread::sleep(Duration::from_millis(lost as u64).min(MOST_YIELD));
        }
    }

    /// For tests: every commit loses its first run, as if another writer had been faster, and every read runs again, as if
    /// it had announced more.
    #[must_use]
    pub fn running_everything_twice(self) -> Memory {
        self.runs_twice.store(true, Ordering::Relaxed);
        self
    }

    /// For tests: the first event has a large id, and every commit skips a random number of ids. An engine that
    /// cannot know its last id does the same.
    #[must_use]
    pub fn skipping_revisions(self) -> Memory {
        self.skips_revisions.store(true, Ordering::Relaxed);
        self
    }

    /// For tests: sessions of several machines use the board, as one on a server.
    #[must_use]
    pub fn shared_by_machines(self) -> Memory {
        self.is_shared.store(true, Ordering::Relaxed);
        self
    }

    fn shared(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn exclusive(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes waiting threads, if there is a new event.
    fn tell(&self, revision: Revision) {
        let mut known = self.revision.lock().unwrap_or_else(PoisonError::into_inner);
        if *known < revision {
            *known = revision;
            self.grown.notify_all();
        }
    }
}

/// The part of one commit in [`Memory::starving`], which ends with it, also if it panics.
struct Starving<'a> {
    lost: usize,
    all: &'a AtomicUsize,
}

impl Starving<'_> {
    fn set_lost(&mut self, lost: usize) {
        self.all.fetch_add(lost - self.lost, Ordering::Relaxed);
        self.lost = lost;
    }
}

impl Drop for Starving<'_> {
    fn drop(&mut self) {
        self.all.fetch_sub(self.lost, Ordering::Relaxed);
    }
}

impl Store for Memory {
    fn is_shared_by_machines(&self) -> bool {
        self.is_shared.load(Ordering::Relaxed)
    }

    fn read(&self, _wanted: &[Prefetch<'_>], f: &mut dyn FnMut(&dyn Tx) -> Result<()>) -> Result<()> {
        // With this guard the complete read sees one state.
        let state = self.shared();
        let reader = Reader { state: &state, now: self.clock.now() };
        if self.runs_twice.load(Ordering::Relaxed) {
            // Only the last run counts, also if this one fails.
            let _ = f(&reader);
        }
        f(&reader)
    }

    fn commit(
        &self,
        commit: &Commit<'_>,
        f: &mut dyn FnMut(&dyn Tx) -> Result<Changes>,
    ) -> Result<Committed> {
        let waits = commit.on_busy == OnBusy::Wait;
        let mut starving = Starving { lost: 0, all: &self.starving };
        for run in 0..MAX_RUNS {
            if run >= STARVING_RUNS {
                starving.set_lost(run);
            } else if waits {
                self.yield_to_starving();
            }
            let view = Recorder { memory: self, now: self.clock.now(), seen: RefCell::default() };
            let outcome = f(&view);
            let seen = view.seen.into_inner();
            let mut state = self.exclusive();
            if run == 0 && self.runs_twice.load(Ordering::Relaxed) {
                continue;
            }
            if !seen.still_holds(&state) {
                if waits {
                    continue;
                }
                let message = format!("{} lost against another commit; nothing was changed", commit.name);
                return Err(Refusal::new(Code::Busy, message).hint("retry").into());
            }
            // A refusal is an answer too, and was just validated like any other.
            let changes = outcome?;
            let first = state.next_revision(self.skips_revisions.load(Ordering::Relaxed));
            let committed = state.apply(changes, &seen, first, self.clock.now())?;
            self.tell(state.revision());
            return Ok(committed);
        }
        Err(Refusal::new(Code::Conflict, format!("{} lost against others {MAX_RUNS} times", commit.name))
            .into())
    }

    fn wait(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        let known = self.revision.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, _) = self
            .grown
            .wait_timeout_while(known, timeout, |known| *known <= after)
            .unwrap_or_else(PoisonError::into_inner);
        Ok(*known)
    }

    fn size(&self) -> Result<u64> {
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::clock::FixedClock;
    use crate::store::Key;
    use crate::store::conformance::an_item;

    fn memory() -> Memory {
        testkit::limit_test();
        Memory::new(Arc::new(FixedClock::at("2026-02-03T15:30:00Z").unwrap()))
    }

    /// Commits a change of an item. It loses its first `losing` runs, and then calls `last`.
    fn change(memory: &Memory, id: &str, losing: usize, last: &dyn Fn()) {
        let commit = Commit { name: "test", prefetch: &[], on_busy: OnBusy::Wait, callers: &[] };
        let mut run = 0;
        let changed = memory.commit(&commit, &mut |tx| {
            tx.get(&Key::WorkItem(id.to_owned()))?;
            run += 1;
            if run <= losing {
                change(memory, id, 0, &|| {});
            } else {
                last();
            }
            Ok(Changes { put: vec![an_item(id).into()], ..Changes::new() })
        });
        changed.unwrap();
    }

    #[test]
    fn a_commit_that_panics_while_it_is_starving_is_not_starving_any_more() {
        let memory = memory();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            change(&memory, "x", STARVING_RUNS, &|| {
                assert_eq!(memory.starving.load(Ordering::Relaxed), STARVING_RUNS);
                panic!("in the last run");
            });
        }));
        assert!(panicked.is_err());
        assert_eq!(memory.starving.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_starving_commit_stays_starving_when_another_one_ends() {
        let memory = memory();
        change(&memory, "x", STARVING_RUNS, &|| {
            change(&memory, "y", STARVING_RUNS + 1, &|| {});
            assert_eq!(memory.starving.load(Ordering::Relaxed), STARVING_RUNS);
        });
        assert_eq!(memory.starving.load(Ordering::Relaxed), 0);
    }
}
