//! The automatic sweep of a command: the check whether anything is due is part of the command's first read or commit, so
//! that it costs no round trip of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::{Sweep, Swept};
use crate::board::Board;
use crate::store::{Patience, Prefetch, Range, Tx};

/// An automatic sweep that the next call begins with.
#[derive(Debug, Default)]
pub(crate) struct DeferredSweep {
    /// Read before the lock: almost every call has none.
    is_waiting: AtomicBool,
    caller: Mutex<Option<String>>,
}

/// What tells whether an automatic sweep has anything to do.
pub(crate) struct Probes {
    sweep: Sweep,
    agents: Range,
    entries: Range,
}

/// What an automatic sweep has to do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Due {
    agents: bool,
    entries: bool,
}

impl Due {
    pub(crate) fn is_any(self) -> bool {
        self.agents || self.entries
    }
}

impl Probes {
    /// What a call reads, with these probes.
    pub(crate) fn with<'a>(&self, prefetch: &[Prefetch<'a>]) -> Vec<Prefetch<'a>> {
        let probes = [&self.agents, &self.entries].map(|range| Prefetch::Any(range.clone()));
        prefetch.iter().cloned().chain(probes).collect()
    }

    /// What is due. If that cannot be read, nothing is: no call fails because of its sweep.
    pub(crate) fn due(&self, tx: &dyn Tx) -> Due {
        match (tx.any(&self.agents), tx.any(&self.entries)) {
            (Ok(agents), Ok(entries)) => Due { agents, entries },
            _ => Due::default(),
        }
    }
}

impl Board {
    /// As [`Board::sweep_in_passing`], as part of the next call on this board or a clone of it: that call checks whether
    /// anything is due in the read that it makes anyway, and sweeps before it does anything else.
    ///
    /// ```
    /// # use blackboard::{Board, work::Create};
    /// # let board = Board::memory();
    /// board.sweep_with_next_call(None);
    /// board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn sweep_with_next_call(&self, caller: Option<&str>) {
        self.schedule().restart();
        let deferred = self.deferred_sweep();
        *deferred.caller.lock().unwrap_or_else(PoisonError::into_inner) = caller.map(str::to_owned);
        deferred.is_waiting.store(true, Ordering::Release);
    }

    /// The probes of a sweep that this call begins with.
    pub(crate) fn take_sweep_probes(&self) -> Option<Probes> {
        let deferred = self.deferred_sweep();
        if !deferred.is_waiting.load(Ordering::Acquire) || !deferred.is_waiting.swap(false, Ordering::AcqRel)
        {
            return None;
        }
        let caller = deferred.caller.lock().unwrap_or_else(PoisonError::into_inner).take();
        Some(self.sweep_probes(caller))
    }

    pub(super) fn sweep_probes(&self, caller: Option<String>) -> Probes {
        let (now, sweep) = (self.clock().now(), Sweep { caller, ..Sweep::default() });
        let agents = self.candidate_range(now, &sweep);
        Probes { sweep, agents, entries: Range::entries_expired_at(now) }
    }

    /// Sweeps what is due, without waiting and without failing.
    pub(crate) fn sweep_due(&self, probes: &Probes, due: Due) -> Swept {
        let mut swept = Swept::default();
        if due.agents {
            swept = self.sweep_agents(&probes.sweep, Patience::Never).unwrap_or_default();
        }
        if due.entries {
            let expired = self.expire_entries(Patience::Never).unwrap_or_default();
            (swept.entries_expired, swept.skipped_entries) = (expired.count, expired.skipped);
        }
        self.report_sweep(&swept);
        swept
    }
}
