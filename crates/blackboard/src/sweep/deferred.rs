//! The automatic sweep of a command. The check whether anything is due is part of the command's first read or commit,
//! so it costs no round trip of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{Sweep, Swept, latest_heartbeat};
use crate::board::Board;
use crate::scope::ended_lists;
use crate::store::{OnBusy, Prefetch, Range, Tx};

/// An automatic sweep that the next call begins with.
#[derive(Debug, Default)]
pub(crate) struct DeferredSweep {
    /// Checked before the lock: almost every call has none.
    is_waiting: AtomicBool,
    caller: Mutex<Option<String>>,
}

/// The reads that show whether an automatic sweep has anything to do. The engine's time decides: the caller's clock
/// may differ.
pub(crate) struct Probes {
    sweep: Sweep,
    /// After how long without a heartbeat an agent is a candidate.
    threshold: Duration,
    /// Whether a heartbeat ahead of the clock is also a reason. That needs one more read, which only calls that wait
    /// make: the others find such an agent with the next sweep, or when it refuses them.
    looks_ahead: bool,
    /// Whether a scope that has ended is also a reason. Commands do not ask: one of their other reasons, a call that waits or
    /// `sweep` comes soon.
    looks_for_ends: bool,
}

/// The due parts of an automatic sweep.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Due {
    agents: bool,
    entries: bool,
    scopes: bool,
}

impl Due {
    pub(crate) fn is_any(self) -> bool {
        self.agents || self.entries || self.scopes
    }
}

impl Probes {
    /// The reads of a call, with these probes.
    pub(crate) fn with<'a>(&self, prefetch: &[Prefetch<'a>]) -> Vec<Prefetch<'a>> {
        let probes = [
            Prefetch::AnyAged(Range::live_agents(), self.threshold),
            Prefetch::AnyAged(Range::expiring_entries(), Duration::ZERO),
        ];
        let ends = self.looks_for_ends.then(|| Prefetch::Any(ended_lists()));
        prefetch.iter().cloned().chain(probes).chain(ends).collect()
    }

    /// What is due. If that cannot be read, nothing is: no call fails because of its sweep.
    pub(crate) fn due(&self, tx: &dyn Tx) -> Due {
        let agents = Range::live_agents().aged(tx.now(), self.threshold);
        let entries = Range::entries_expired_at(tx.now());
        match (tx.any(&agents), tx.any(&entries)) {
            (Ok(agents), Ok(entries)) => {
                let agents = agents || self.any_ahead(tx);
                let ends = self.looks_for_ends && tx.any(&ended_lists()).unwrap_or(false);
                Due { agents, entries, scopes: agents || entries || ends }
            }
            _ => Due::default(),
        }
    }

    /// Whether an agent has a heartbeat ahead of the clock.
    fn any_ahead(&self, tx: &dyn Tx) -> bool {
        let ahead = Range::live_agents().after(latest_heartbeat(tx.now()));
        self.looks_ahead
            && tx.prefetch(&[Prefetch::Any(ahead.clone())]).and_then(|()| tx.any(&ahead)).unwrap_or(false)
    }

    /// The same probes, also for scopes that have ended.
    pub(crate) fn looking_for_ends(self) -> Probes {
        Probes { looks_for_ends: true, ..self }
    }

    /// The same probes, for a call that waits.
    pub(crate) fn looking_ahead(self) -> Probes {
        Probes { looks_ahead: true, ..self.looking_for_ends() }
    }
}

impl Board {
    /// As [`Board::try_sweep`], as part of the next call on this board or a clone of it. That call checks in its
    /// first read whether anything is due, and sweeps before it does anything else.
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

    /// Runs the sweep of [`Board::sweep_with_next_call`] if no call has begun with it: for a program that ends, or
    /// that was refused before its first read.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Value, Write}};
    /// # let board = Board::memory();
    /// board.sweep_with_next_call(None);
    /// // Locks have verbs of their own, so this reads nothing.
    /// assert!(board.scope("locks").write(&Write::new("deploy", Value::null())).is_err());
    /// board.sweep_if_deferred();
    /// ```
    pub fn sweep_if_deferred(&self) {
        if let Some(probes) = self.take_sweep_probes() {
            self.sweep_by(&probes);
        }
    }

    /// Checks whether anything is due, and sweeps it. Never waits, never fails.
    pub(crate) fn sweep_by(&self, probes: &Probes) -> Swept {
        let due = self.read(&probes.with(&[]), |tx| Ok(probes.due(tx)));
        self.sweep_due(probes, due.unwrap_or_default())
    }

    /// The same board for one call of a process that makes several at the same time. The call begins with an
    /// automatic sweep, as after [`Board::sweep_with_next_call`], which other calls do not share: a sweep never marks
    /// its own caller.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register};
    /// # let board = Board::memory();
    /// let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// let agents = board.for_call(Some(&ivy)).agents().list(&Default::default())?;
    /// # assert_eq!(agents.len(), 1);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    #[must_use]
    pub fn for_call(&self, caller: Option<&str>) -> Board {
        let board = self.clone().with_own_deferred_sweep();
        board.sweep_with_next_call(caller);
        board
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

    pub(crate) fn sweep_probes(&self, caller: Option<String>) -> Probes {
        let sweep = Sweep { caller, ..Sweep::default() };
        Probes { threshold: self.threshold_of(&sweep), sweep, looks_ahead: false, looks_for_ends: false }
    }

    /// Sweeps what is due, without waiting and without failing.
    pub(crate) fn sweep_due(&self, probes: &Probes, due: Due) -> Swept {
        let mut swept = Swept::default();
        if due.agents {
            swept = self.sweep_agents(&probes.sweep, OnBusy::Fail).unwrap_or_default();
        }
        if due.entries {
            let expired = self.expire_entries(OnBusy::Fail).unwrap_or_default();
            (swept.entries_expired, swept.skipped_entries) = (expired.count, expired.skipped);
        }
        if due.scopes {
            let ended = self.end_scopes(OnBusy::Fail).unwrap_or_default();
            (swept.deleted_scopes, swept.skipped_scopes) = (ended.deleted, ended.skipped);
        }
        self.report_sweep(&swept);
        swept
    }
}
