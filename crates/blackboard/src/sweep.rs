//! Marks agents whose process is gone as stale and releases their holdings.
//!
//! A sweep finds candidates without a lock, checks their processes, and then marks one agent per transaction. The
//! transaction reads the agent again: a heartbeat that arrived meanwhile wins, and of two sweeps one marks. An agent
//! whose rows cannot be read is skipped and reported, and the others are still swept. Calls that wait keep sweeping
//! (`follow.rs`).
//!
//! A heartbeat ahead of the clock proves nothing (`latest_heartbeat`). If the process is gone, the agent is stale.
//! Otherwise the sweep sets the heartbeat to the current time, so that the threshold begins then.
//!
//! | File | What it is about |
//! |---|---|
//! | `deferred.rs` | the check whether anything is due, as part of the next call |
//! | `gone.rs` | a call refused because of a session whose process is gone |
//! | `schedule.rs` | when calls that wait sweep |
//! | `clock_reading.rs` | whether the clock can be trusted |

mod clock_reading;
mod deferred;
mod gone;
mod schedule;

use std::collections::HashSet;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;

pub(crate) use self::clock_reading::{ClockReading, is_clock_reading};
use self::clock_reading::{StoredReading, latest_heartbeat};
pub(crate) use self::deferred::{DeferredSweep, Due};
pub(crate) use self::gone::QUIET;
pub(crate) use self::schedule::SweepSchedule;
use crate::agent::{Agent, AgentStatus};
use crate::board::Board;
use crate::clock::Timestamp;
use crate::entry::{Lease, Leases, SkippedEntry, release_leases};
use crate::error::{Code, Error, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::hint::Hint;
use crate::process::Liveness;
use crate::revision::{Pending, Revision};
use crate::scope::{EndsWith, SkippedScope};
use crate::store::{Changes, Key, OnBusy, Prefetch, Range, Tx};
use crate::work::{ClosedItems, WorkItem};

/// How many agents an automatic sweep marks or refreshes.
const BATCH: usize = 100;

/// How many it checks for that: delegates without a heartbeat that have time left are sorted before others for a
/// while. Unreadable agents are not counted, because they stay before others forever.
const LOOKED_AT: usize = 10 * BATCH;

/// The options of a sweep.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// Another threshold than the settings'.
    pub threshold: Option<Duration>,
    /// Only reports what would happen.
    pub dry_run: bool,
    /// The session on whose behalf it runs: its call proves that it is alive.
    pub caller: Option<String>,
}

/// The result of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Swept {
    /// The agents that were marked stale.
    pub stale_agents: Vec<StaleAgent>,
    /// Sessions without a recent heartbeat whose process is alive.
    pub pids_verified: Vec<String>,
    /// How many old heartbeats were pruned.
    pub heartbeats_pruned: u64,
    /// How many expired entries were removed.
    pub entries_expired: u64,
    /// Agents that should be marked stale or pruned, but whose rows cannot be read.
    pub skipped_agents: Vec<SkippedAgent>,
    /// Expired entries that cannot be read.
    pub skipped_entries: Vec<SkippedEntry>,
    /// The scopes that were deleted because their session or work item has ended. A dry run has none.
    pub deleted_scopes: Vec<String>,
    /// Such scopes that cannot be deleted, because a row cannot be read. A dry run has none.
    pub skipped_scopes: Vec<SkippedScope>,
}

/// An agent that a sweep or retention skipped, because one of its rows or of its holdings cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SkippedAgent {
    /// The session; empty if that cannot be read either.
    pub session_id: String,
    /// Its name, if that can be read.
    pub agent_name: Option<String>,
    /// What cannot be read.
    pub error: String,
    /// How to correct it, if the row is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl SkippedAgent {
    pub(crate) fn new(session_id: &str, agent_name: Option<String>, error: &Error) -> SkippedAgent {
        let hint = error.hint().and_then(Hint::advice).map(str::to_owned);
        SkippedAgent { session_id: session_id.to_owned(), agent_name, error: error.to_string(), hint }
    }
}

/// An agent that was marked stale.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StaleAgent {
    /// The session.
    pub session_id: String,
    /// The name of its agent.
    pub agent_name: String,
    /// The work items that it held.
    pub released_items: Vec<String>,
    /// Its other holdings: locks, file reservations, leased entries.
    pub released_leases: Vec<Lease>,
    /// Its process.
    #[serde(skip)]
    pub pid: Option<u32>,
    /// What is known of its process here, for human output.
    #[serde(skip)]
    pub process: String,
}

impl Swept {
    /// Adds agents that were skipped, each once.
    fn skip(&mut self, skipped: Vec<SkippedAgent>) {
        for agent in skipped {
            if !self.skipped_agents.iter().any(|known| known.session_id == agent.session_id) {
                self.skipped_agents.push(agent);
            }
        }
    }
}

impl Pending for StaleAgent {
    fn resolve(&mut self, _first: Revision) {}
}

impl Board {
    /// Marks stale agents, releases their holdings, and removes old heartbeats, expired entries, and scopes whose session
    /// or work item has ended. Waits for other writers. A dry run reports the same, except for scopes, and changes nothing.
    ///
    /// ```
    /// # use blackboard::{Board, sweep::Sweep};
    /// let swept = Board::memory().sweep(&Sweep::default())?;
    /// assert!(swept.stale_agents.is_empty());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn sweep(&self, sweep: &Sweep) -> Result<Swept> {
        let mut swept = self.sweep_agents(sweep, OnBusy::Wait)?;
        let heartbeats =
            if sweep.dry_run { self.count_old_heartbeats()? } else { self.prune_old_heartbeats()? };
        swept.heartbeats_pruned = heartbeats.count;
        swept.skip(heartbeats.skipped);
        swept.skip(self.agents_that_cannot_be_pruned()?);
        if sweep.dry_run {
            let expired = self.count_expired_entries()?;
            (swept.entries_expired, swept.skipped_entries) = (expired.count, expired.skipped);
            return Ok(swept);
        }
        loop {
            let expired = self.expire_entries(OnBusy::Wait)?;
            swept.entries_expired += expired.count;
            if expired.count == 0 {
                // No other entries are before these: they are all of them.
                swept.skipped_entries = expired.skipped;
                break;
            }
        }
        let ended = self.end_scopes(OnBusy::Wait)?;
        (swept.deleted_scopes, swept.skipped_scopes) = (ended.deleted, ended.skipped);
        Ok(swept)
    }

    /// Marks the stale agents of a board that was just upgraded. No session of this program has used it yet, so none gets
    /// the time that sessions get on a machine that is new to the board.
    ///
    /// ```
    /// # use blackboard::Board;
    /// assert!(Board::memory().sweep_upgraded()?.stale_agents.is_empty());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn sweep_upgraded(&self) -> Result<Swept> {
        self.sweep_agents_with(&Sweep::default(), OnBusy::Wait, |_, _| Ok(true))
    }

    /// The automatic sweep of other commands. It never waits and never fails. It checks about 1,000 agents without a
    /// recent heartbeat, marks or refreshes at most 100 of them, and removes at most 100 expired entries. It makes at most
    /// one commit for scopes whose session or work item has ended, with at most 500 of their entries: later sweeps continue.
    /// The result also goes to the observer that [`Board::with_sweep_observer`] sets.
    pub fn try_sweep(&self, caller: Option<&str>) -> Swept {
        self.schedule().restart();
        // One read shows whether anything is due, which is rare.
        self.sweep_by(&self.sweep_probes(caller.map(str::to_owned)).looking_for_ends())
    }

    fn sweep_agents(&self, sweep: &Sweep, on_busy: OnBusy) -> Result<Swept> {
        self.sweep_agents_with(sweep, on_busy, |sweep, on_busy| self.clock_can_be_trusted(sweep, on_busy))
    }

    fn sweep_agents_with(
        &self,
        sweep: &Sweep,
        on_busy: OnBusy,
        clock_can_be_trusted: impl Fn(&Sweep, OnBusy) -> Result<bool>,
    ) -> Result<Swept> {
        let mut swept = Swept::default();
        let (most_done, most_looked_at) = match on_busy {
            OnBusy::Fail => (BATCH, LOOKED_AT),
            OnBusy::Wait => (usize::MAX, usize::MAX),
        };
        let mut looked_at = HashSet::new();
        loop {
            let limit = most_looked_at.saturating_add(swept.skipped_agents.len());
            let (candidates, now) = self.candidates(sweep, limit)?;
            let is_last_page = candidates.len() < limit;
            let skipped_before = swept.skipped_agents.len();
            if looked_at.is_empty() && (candidates.is_empty() || !clock_can_be_trusted(sweep, on_busy)?) {
                return Ok(swept);
            }
            for candidate in candidates {
                if swept.stale_agents.len() + swept.pids_verified.len() >= most_done {
                    return Ok(swept);
                }
                // The caller's own call proves that it is alive.
                if sweep.caller.as_ref() == Some(&candidate.session_id)
                    || !looked_at.insert(candidate.session_id.clone())
                {
                    continue;
                }
                match self.judge(&candidate, now, sweep, on_busy, &mut swept) {
                    // Another process writes, and this sweep does not wait: the next command continues here.
                    Err(error) if on_busy == OnBusy::Fail && error.code() == Code::Busy => {
                        return Ok(swept);
                    }
                    Err(error) if error.is_unreadable_row() => {
                        swept.skipped_agents.push(candidate.skipped(&error));
                    }
                    other => other?,
                }
            }
            // Skipped agents must not hide the ones behind them.
            if is_last_page || swept.skipped_agents.len() == skipped_before {
                return Ok(swept);
            }
        }
    }

    /// Decides about one candidate, by the state of its process.
    fn judge(
        &self,
        candidate: &Candidate,
        now: Timestamp,
        sweep: &Sweep,
        on_busy: OnBusy,
        swept: &mut Swept,
    ) -> Result<()> {
        let agent = match &candidate.row {
            Ok(agent) => agent,
            Err(error) => {
                swept.skipped_agents.push(candidate.skipped(error));
                return Ok(());
            }
        };
        let liveness = self.agents().process_of(agent);
        if liveness == Liveness::Alive && !agent.shares_process {
            if !sweep.dry_run {
                self.refresh(agent, on_busy)?;
            }
            swept.pids_verified.push(agent.session_id.clone());
            return Ok(());
        }
        let is_ahead = agent.last_seen_at > latest_heartbeat(now);
        let threshold = self.stale_threshold_for(agent, liveness, sweep);
        if now.since(agent.last_seen_at) >= threshold || (is_ahead && liveness == Liveness::Dead) {
            swept.stale_agents.extend(self.mark_stale(agent, liveness, sweep.dry_run, on_busy)?);
        } else if is_ahead && !sweep.dry_run {
            self.set_heartbeat_to_now(agent, on_busy)?;
        }
        Ok(())
    }

    /// How long an agent is without a heartbeat before it is a candidate.
    fn threshold_of(&self, sweep: &Sweep) -> Duration {
        sweep.threshold.unwrap_or(self.settings().stale_threshold)
    }

    /// The first candidates, each with its row if that can be read.
    fn candidates(&self, sweep: &Sweep, limit: usize) -> Result<(Vec<Candidate>, Timestamp)> {
        let threshold = self.threshold_of(sweep);
        self.read(&[], |tx| {
            let now = tx.now();
            if threshold.is_zero() {
                return Ok((Candidate::all(tx, &Range::live_agents(), limit)?, now));
            }
            let mut candidates = Candidate::all(tx, &Range::live_agents().aged(now, threshold), limit)?;
            let ahead = Range::live_agents().after(latest_heartbeat(now));
            candidates.extend(Candidate::all(tx, &ahead, limit - candidates.len())?);
            Ok((candidates, now))
        })
    }

    /// How long this agent may go without a heartbeat. A running process that hosts several sessions proves nothing
    /// about one of them: then only the time decides, with a longer threshold.
    fn stale_threshold_for(&self, agent: &Agent, liveness: Liveness, sweep: &Sweep) -> Duration {
        let threshold = self.threshold_of(sweep);
        match (liveness, agent.shares_process, sweep.threshold) {
            (Liveness::Dead, _, _) | (_, false, _) | (_, _, Some(_)) => threshold,
            (Liveness::Alive | Liveness::Unknown, true, None) => self.settings().delegate_stale_threshold,
        }
    }

    /// Records that an agent without a heartbeat was seen alive, so that it is not a candidate for a while.
    fn refresh(&self, silent: &Agent, on_busy: OnBusy) -> Result<()> {
        self.change_if_silent(silent, on_busy, |agent, now| agent.last_seen_at = now)
    }

    /// Replaces a heartbeat that is ahead of the clock.
    fn set_heartbeat_to_now(&self, silent: &Agent, on_busy: OnBusy) -> Result<()> {
        self.change_if_silent(silent, on_busy, |agent, now| {
            (agent.last_seen_at, agent.last_beat_at) = (now, now);
        })
    }

    /// Changes the heartbeat of an agent, unless another one arrived meanwhile.
    fn change_if_silent(
        &self,
        silent: &Agent,
        on_busy: OnBusy,
        change: impl Fn(&mut Agent, Timestamp),
    ) -> Result<()> {
        let key = Key::Agent(silent.session_id.clone());
        self.commit_with_on_busy(on_busy, "sweep refresh", &[Prefetch::Row(key.clone())], |tx| {
            let mut changes = Changes::new();
            if let Some(mut agent) = tx.row::<Agent>(&key)?
                && agent.status.is_live()
                && agent.last_seen_at == silent.last_seen_at
                && agent.last_beat_at == silent.last_beat_at
            {
                change(&mut agent, tx.now());
                changes.put(agent);
            }
            Ok((changes, ()))
        })
    }

    fn mark_stale(
        &self,
        silent: &Agent,
        liveness: Liveness,
        dry_run: bool,
        on_busy: OnBusy,
    ) -> Result<Option<StaleAgent>> {
        let session = &silent.session_id;
        let prefetch = [
            Prefetch::Row(Key::Agent(session.clone())),
            Prefetch::Range(Range::claimed_by(session)),
            Prefetch::Range(Range::leased_by(session)),
            EndsWith::Memory(session).prefetch(),
        ];
        // Without the write lock: rows that cannot be read would otherwise cost every other writer that lock, at every
        // sweep.
        let expected = self.read(&prefetch, |tx| {
            let held = Held::of(tx, session)?;
            Ok(Some(decide(silent.clone(), held, liveness, tx.now()).1))
        })?;
        if dry_run {
            return Ok(expected);
        }
        self.commit_with_on_busy(on_busy, "sweep", &prefetch, |tx| {
            let agent = tx.row::<Agent>(&Key::Agent(session.clone()))?;
            // A heartbeat that arrived meanwhile wins, and of two sweeps the first.
            let Some(agent) = agent.filter(|agent| {
                agent.status.is_live()
                    && agent.last_seen_at == silent.last_seen_at
                    && agent.last_beat_at == silent.last_beat_at
            }) else {
                return Ok((Changes::new(), None));
            };
            let held = Held::of(tx, session)?;
            let closed = ClosedItems::among(tx, &held.items)?;
            let (mut changes, stale) = decide(agent, held, liveness, tx.now());
            closed.complete(None, tx.now(), &mut changes);
            closed.end_scopes(tx, &mut changes)?;
            // Its local scopes stay: no other session waits for them, and it may recover.
            EndsWith::Memory(session).end(tx, &mut changes)?;
            Ok((changes, Some(stale)))
        })
    }

    /// Whether a missing heartbeat means anything. If the wall clock moved against the monotonic one, no session
    /// could send heartbeats in the time that seems to have passed. Then every session gets one threshold from now.
    /// A machine without a reading cannot see whether the clock moved, so it waits for one threshold too. A threshold
    /// of zero ignores the heartbeat, and so the clock.
    fn clock_can_be_trusted(&self, sweep: &Sweep, on_busy: OnBusy) -> Result<bool> {
        if self.threshold_of(sweep).is_zero() {
            return Ok(true);
        }
        let seen = ClockReading::reading(self);
        let prefetch = ClockReading::prefetch(self);
        let (known, now) = self.read(&prefetch, |tx| Ok((ClockReading::stored(self, tx)?, tx.now())))?;
        match known {
            StoredReading::Readable(known) if known.agrees_with(&seen) => {
                return Ok(known.grace_until.is_none_or(|until| now >= until));
            }
            // Another boot: processes of the one before are gone, whatever the clock says.
            StoredReading::Readable(known) if known.boot != seen.boot => return Ok(true),
            StoredReading::Unreadable => return Ok(true),
            StoredReading::Readable(_) | StoredReading::Missing => {}
        }
        if !sweep.dry_run {
            self.commit_with_on_busy(on_busy, "sweep clock", &prefetch, |tx| {
                let mut changes = Changes::new();
                ClockReading::note(self, tx, &mut changes)?;
                Ok((changes, ()))
            })?;
        }
        Ok(false)
    }
}

/// An agent of a range that a sweep or retention checks.
pub(crate) struct Candidate {
    /// Empty if that cannot be read either.
    pub(crate) session_id: String,
    /// Its row, or why that cannot be read.
    pub(crate) row: Result<Agent>,
}

impl Candidate {
    /// The first agents of a range, each with its row if that can be read.
    pub(crate) fn all(tx: &dyn Tx, range: &Range, limit: usize) -> Result<Vec<Candidate>> {
        tx.prefetch(&[Prefetch::Candidates(range.clone(), limit)])?;
        // One statement, unless a row cannot be read: then each is read on its own.
        match tx.candidate_rows::<Agent>(range, limit) {
            Ok(agents) => return Ok(agents.into_iter().map(Candidate::of).collect()),
            Err(error) if error.is_unreadable_row() => {}
            Err(error) => return Err(error),
        }
        tx.prefetch(&[Prefetch::Keys(range.clone(), limit)])?;
        let keys = tx.keys(range, limit)?;
        tx.prefetch(&keys.iter().flatten().cloned().map(Prefetch::Row).collect::<Vec<_>>())?;
        let mut candidates = Vec::new();
        for key in keys {
            candidates.push(match key {
                Ok(Key::Agent(session_id)) => {
                    let row = match tx.row::<Agent>(&Key::Agent(session_id.clone())) {
                        Ok(Some(agent)) => Ok(agent),
                        // The index has a row that does not exist.
                        Ok(None) => continue,
                        Err(error) if error.is_unreadable_row() => Err(error),
                        Err(error) => return Err(error),
                    };
                    Candidate { session_id, row }
                }
                Ok(_) => continue,
                Err(error) if error.is_unreadable_row() => {
                    Candidate { session_id: String::new(), row: Err(error) }
                }
                Err(error) => return Err(error),
            });
        }
        Ok(candidates)
    }

    fn of(agent: Agent) -> Candidate {
        Candidate { session_id: agent.session_id.clone(), row: Ok(agent) }
    }

    pub(crate) fn skipped(&self, error: &Error) -> SkippedAgent {
        let agent_name = self.row.as_ref().ok().map(|agent| agent.agent_name.clone());
        SkippedAgent::new(&self.session_id, agent_name, error)
    }
}

/// The holdings of a session.
#[derive(Default)]
struct Held {
    items: Vec<WorkItem>,
    leased: Leases,
}

impl Held {
    fn of(tx: &dyn Tx, session: &str) -> Result<Held> {
        let mut items = tx.rows::<WorkItem>(&Range::claimed_by(session))?;
        items.retain(|item| item.is_held_by(session));
        Ok(Held { items, leased: Leases::of(tx, session)? })
    }
}

/// The changes when an agent is marked stale.
fn decide(
    mut agent: Agent,
    Held { items: held, leased }: Held,
    liveness: Liveness,
    now: Timestamp,
) -> (Changes, StaleAgent) {
    let mut changes = Changes::new();
    let name = agent.agent_name.clone();
    let process = what_is_known_of(agent.pid, liveness);
    let summary =
        format!("Agent \"{name}\" marked stale (no heartbeat since {}, {process})", agent.last_seen_at);
    let event =
        |event_type, summary| NewEvent::new(event_type, TargetType::Agent, &agent.session_id, summary);
    let revision = changes.event(event(EventType::AgentStale, summary));
    let titles: Vec<_> = held.iter().map(|item| item.title.clone()).collect();
    if !held.is_empty() {
        let summary = format!(
            "Released {} work item(s) from stale agent \"{name}\": {}",
            held.len(),
            titles.join(", ")
        );
        let items: Vec<_> = held
            .iter()
            .map(|item| json!({"item_id": item.item_id, "fence": item.fence.map(Revision::get)}))
            .collect();
        let released = changes.event(event(EventType::StaleLocksReleased, summary).with("items", items));
        for mut item in held.iter().cloned() {
            item.set_free();
            item.revision = released;
            changes.put(item);
        }
    }
    let released_leases = release_leases(&agent, AgentStatus::Stale, leased, now, &mut changes);
    let stale = StaleAgent {
        session_id: agent.session_id.clone(),
        agent_name: name,
        released_items: held.into_iter().map(|item| item.item_id).collect(),
        released_leases,
        pid: agent.pid,
        process,
    };
    agent.status = AgentStatus::Stale;
    agent.stop_working_on(&titles);
    agent.ended_at = Some(now);
    agent.revision = revision;
    changes.put(agent);
    (changes, stale)
}

/// The text about the process of a stale agent. If an agent does not share its process, a running process proves that
/// it is alive. So a process that runs here is shared.
fn what_is_known_of(pid: Option<u32>, liveness: Liveness) -> String {
    match (pid, liveness) {
        (None, _) => "no PID".to_owned(),
        (Some(pid), Liveness::Dead) => format!("PID {pid} not found"),
        (Some(pid), Liveness::Unknown) => format!("PID {pid} cannot be verified here"),
        (Some(pid), Liveness::Alive) => format!("PID {pid} is shared with other sessions"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::{an_agent, an_item};

    fn holding(items: &[&str]) -> Held {
        Held { items: items.iter().map(|item| an_item(item)).collect(), leased: Leases::default() }
    }

    #[test]
    fn shared_process_that_may_run_has_a_longer_threshold() {
        use Liveness::{Alive, Dead, Unknown};
        testkit::limit_test();
        let board = Board::memory();
        for (liveness, shares_process, threshold, expected) in [
            (Dead, false, None, 300),
            (Unknown, false, None, 300),
            (Dead, true, None, 300),
            (Alive, true, None, 1800),
            (Unknown, true, None, 1800),
            (Dead, false, Some(10), 10),
            (Alive, true, Some(10), 10),
        ] {
            let sweep = Sweep { threshold: threshold.map(Duration::from_secs), ..Sweep::default() };
            let agent = Agent { shares_process, ..an_agent("a") };
            let on_busy = board.stale_threshold_for(&agent, liveness, &sweep);
            assert_eq!(on_busy.as_secs(), expected, "{liveness:?}, shared {shares_process}, {threshold:?}");
        }
    }

    #[test]
    fn stale_agent_has_one_event_and_one_more_for_released_work() {
        let agent = Agent { pid: Some(12), ..an_agent("a") };
        let (changes, stale) = decide(agent.clone(), Held::default(), Liveness::Dead, Timestamp::EPOCH);
        assert_eq!((changes.events.len(), changes.put.len(), stale.released_items.len()), (1, 1, 0));
        let (changes, stale) = decide(agent, holding(&["x", "y"]), Liveness::Dead, Timestamp::EPOCH);
        assert_eq!((changes.events.len(), changes.put.len()), (2, 3));
        assert_eq!(stale.released_items, ["x", "y"]);
    }

    #[test]
    fn only_a_gone_process_is_reported_as_not_found() {
        for (pid, liveness, expected) in [
            (None, Liveness::Unknown, "no PID"),
            (Some(12), Liveness::Dead, "PID 12 not found"),
            (Some(12), Liveness::Unknown, "PID 12 cannot be verified here"),
            (Some(12), Liveness::Alive, "PID 12 is shared with other sessions"),
        ] {
            let agent = Agent { pid, ..an_agent("a") };
            let (changes, stale) = decide(agent, Held::default(), liveness, Timestamp::EPOCH);
            assert_eq!(stale.process, expected);
            let summary = &changes.events[0].summary;
            assert!(summary.ends_with(&format!(", {expected})")), "{pid:?}, {liveness:?}: {summary}");
        }
    }

    #[test]
    fn stale_agent_loses_released_items_as_current_work() {
        for (current_work, expected) in [(an_item("x").title, None), ("Lunch".to_owned(), Some("Lunch"))] {
            let agent = Agent { current_work: Some(current_work), ..an_agent("a") };
            let (changes, _) = decide(agent, holding(&["x"]), Liveness::Dead, Timestamp::EPOCH);
            let Some(crate::store::Row::Agent(stale)) = changes.put.last() else { panic!("{changes:?}") };
            assert_eq!(stale.current_work.as_deref(), expected);
        }
    }
}
