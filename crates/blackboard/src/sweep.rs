//! The sweep: whoever died holds nothing any more.
//!
//! It looks for candidates without a lock, asks the operating system about their processes, and then marks one agent
//! at a time, in a transaction that looks again: a heartbeat that came in between wins, and of two sweeps one marks.

mod clock_mark;

use std::time::Duration;

use serde::Serialize;
use serde_json::json;

pub(crate) use self::clock_mark::ClockMark;
use crate::agent::{Agent, AgentStatus};
use crate::board::Board;
use crate::clock::Timestamp;
use crate::entry::{Entry, Lease, leases_of, release_leases};
use crate::error::{Code, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::process::Liveness;
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Patience, Range, Tx, Wanted};
use crate::work::WorkItem;

/// How many agents a sweep in passing marks or refreshes.
const BATCH: usize = 100;

/// How many it looks at for that: delegates that are silent but have time left are in front of others for a while.
const LOOKED_AT: usize = 10 * BATCH;

/// How a sweep is made.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// Another threshold than the settings'.
    pub threshold: Option<Duration>,
    /// Only says what would happen.
    pub dry_run: bool,
    /// The session on whose behalf it runs: its call is proof of its life.
    pub caller: Option<String>,
}

/// What a sweep did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Swept {
    /// Who was marked stale.
    pub stale_agents: Vec<StaleAgent>,
    /// Who was silent, but has a live process.
    pub pids_verified: Vec<String>,
    /// How many old heartbeats were removed.
    pub heartbeats_pruned: u64,
    /// How many entries were removed because their time was over.
    pub entries_expired: u64,
}

/// An agent that was found dead.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StaleAgent {
    /// The session.
    pub session_id: String,
    /// What it called itself.
    pub agent_name: String,
    /// The work items that it held.
    pub released_items: Vec<String>,
    /// What else hung on it: locks, file reservations, leased entries.
    pub released_leases: Vec<Lease>,
    /// Its process.
    #[serde(skip)]
    pub pid: Option<u32>,
}

impl Pending for StaleAgent {
    fn resolve(&mut self, _first: Revision) {}
}

impl Board {
    /// Marks dead agents and frees what they held. Waits for other writers.
    ///
    /// ```
    /// # use blackboard::{Board, sweep::Sweep};
    /// let swept = Board::memory().sweep(&Sweep::default())?;
    /// assert!(swept.stale_agents.is_empty());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn sweep(&self, sweep: &Sweep) -> Result<Swept> {
        let mut swept = self.sweep_agents(sweep, Patience::Wait)?;
        if !sweep.dry_run {
            swept.heartbeats_pruned = self.prune_heartbeats()?;
            loop {
                match self.expire_entries(Patience::Wait)? {
                    0 => break,
                    expired => swept.entries_expired += expired,
                }
            }
        }
        Ok(swept)
    }

    /// The sweep that rides along with other commands: never waits, never fails, looks at no more than 1,000 silent
    /// agents, marks or refreshes no more than 100 of them, and removes no more than 100 expired entries.
    pub fn sweep_in_passing(&self, caller: Option<&str>) -> Swept {
        let sweep = Sweep { caller: caller.map(str::to_owned), ..Sweep::default() };
        let mut swept = self.sweep_agents(&sweep, Patience::Never).unwrap_or_default();
        swept.entries_expired = self.expire_entries(Patience::Never).unwrap_or_default();
        swept
    }

    fn sweep_agents(&self, sweep: &Sweep, patience: Patience) -> Result<Swept> {
        let mut swept = Swept::default();
        let (candidates, now) = self.candidates(sweep, patience)?;
        if candidates.is_empty() || !self.clock_can_be_trusted(sweep, patience)? {
            return Ok(swept);
        }
        let limit = if patience == Patience::Never { BATCH } else { usize::MAX };
        for agent in candidates {
            if swept.stale_agents.len() + swept.pids_verified.len() >= limit {
                break;
            }
            match self.judge(&agent, now, sweep, patience, &mut swept) {
                // Somebody is writing, and nobody waits: the next command goes on from here.
                Err(error) if patience == Patience::Never && error.code() == Code::Busy => break,
                other => other?,
            }
        }
        Ok(swept)
    }

    /// Decides about one candidate, by what is known of its process.
    fn judge(
        &self,
        agent: &Agent,
        now: Timestamp,
        sweep: &Sweep,
        patience: Patience,
        swept: &mut Swept,
    ) -> Result<()> {
        let liveness = match agent.pid {
            Some(pid) => self.processes().liveness(pid, agent.process.as_ref()),
            None => Liveness::Unknown,
        };
        if liveness == Liveness::Alive && !agent.shares_process {
            if !sweep.dry_run {
                self.refresh(agent, patience)?;
            }
            swept.pids_verified.push(agent.session_id.clone());
        } else if now.since(agent.last_seen_at) >= self.patience_with(agent, liveness, sweep) {
            swept.stale_agents.extend(self.mark_stale(agent, liveness, sweep.dry_run, patience)?);
        }
        Ok(())
    }

    /// Live agents that have been silent for too long, by one look at an index.
    fn candidates(&self, sweep: &Sweep, patience: Patience) -> Result<(Vec<Agent>, Timestamp)> {
        let threshold = sweep.threshold.unwrap_or(self.settings().stale_threshold);
        let limit = if patience == Patience::Never { LOOKED_AT } else { usize::MAX };
        self.read(&[], |tx| {
            let range = Range::live_agents_seen_before(tx.now().minus(threshold));
            if !tx.any(&range)? {
                return Ok((Vec::new(), tx.now()));
            }
            let mut candidates = tx.hints::<Agent>(&range, limit)?;
            candidates.retain(|agent| sweep.caller.as_ref() != Some(&agent.session_id));
            Ok((candidates, tx.now()))
        })
    }

    /// How long this agent may be silent. A process that hosts many sessions proves nothing about one of them while
    /// it lives: then only the time decides, and takes longer.
    fn patience_with(&self, agent: &Agent, liveness: Liveness, sweep: &Sweep) -> Duration {
        let threshold = sweep.threshold.unwrap_or(self.settings().stale_threshold);
        match (liveness, agent.shares_process, sweep.threshold) {
            (Liveness::Dead, _, _) | (_, false, _) | (_, _, Some(_)) => threshold,
            _ => self.settings().delegate_stale_threshold,
        }
    }

    /// Silent, but alive: noted as seen, so that it is no candidate for a while.
    fn refresh(&self, silent: &Agent, patience: Patience) -> Result<()> {
        let key = Key::Agent(silent.session_id.clone());
        self.commit_patiently(patience, "sweep refresh", &[Wanted::Row(key.clone())], |tx| {
            let mut changes = Changes::new();
            if let Some(mut agent) = tx.row::<Agent>(&key)?
                && agent.status.is_live()
                && agent.last_seen_at == silent.last_seen_at
            {
                agent.last_seen_at = tx.now();
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
        patience: Patience,
    ) -> Result<Option<StaleAgent>> {
        let session = &silent.session_id;
        let wanted = [
            Wanted::Row(Key::Agent(session.clone())),
            Wanted::Range(Range::claimed_by(session)),
            Wanted::Range(Range::leased_by(session)),
        ];
        if dry_run {
            return self.read(&wanted, |tx| {
                let held = Held::of(tx, session)?;
                Ok(Some(decide(silent.clone(), held, liveness, tx.now()).1))
            });
        }
        self.commit_patiently(patience, "sweep", &wanted, |tx| {
            let agent = tx.row::<Agent>(&Key::Agent(session.clone()))?;
            // It has moved since it was looked at: somebody heard of it, or was faster.
            let Some(agent) =
                agent.filter(|agent| agent.status.is_live() && agent.last_seen_at == silent.last_seen_at)
            else {
                return Ok((Changes::new(), None));
            };
            let (changes, stale) = decide(agent, Held::of(tx, session)?, liveness, tx.now());
            Ok((changes, Some(stale)))
        })
    }

    /// Whether silence means anything. If the wall clock moved against the monotonic one, nobody had a chance to be
    /// heard in the time that seems to have passed: everybody has one threshold from now.
    fn clock_can_be_trusted(&self, sweep: &Sweep, patience: Patience) -> Result<bool> {
        let seen = ClockMark::reading(self);
        let known = self.read(&[Wanted::Row(ClockMark::KEY)], |tx| ClockMark::stored(tx))?;
        match known {
            Some(known) if known.agrees_with(&seen) => {
                Ok(known.grace_until.is_none_or(|until| self.clock().now() >= until))
            }
            // Another boot: processes of the one before are dead, whatever the clock says.
            Some(known) if known.boot != seen.boot => Ok(true),
            None => Ok(true),
            Some(_) if sweep.dry_run => Ok(false),
            Some(_) => {
                self.commit_patiently(patience, "sweep clock", &[Wanted::Row(ClockMark::KEY)], |tx| {
                    let mut changes = Changes::new();
                    ClockMark::note(self, tx, &mut changes)?;
                    Ok((changes, ()))
                })?;
                Ok(false)
            }
        }
    }
}

/// What a session holds.
#[derive(Default)]
struct Held {
    items: Vec<WorkItem>,
    leased: Vec<Entry>,
}

impl Held {
    fn of(tx: &dyn Tx, session: &str) -> Result<Held> {
        let mut items = tx.rows::<WorkItem>(&Range::claimed_by(session))?;
        items.retain(|item| item.is_held_by(session));
        Ok(Held { items, leased: leases_of(tx, session)? })
    }
}

/// What changes when an agent is found dead.
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
    };
    agent.status = AgentStatus::Stale;
    agent.stop_working_on(&titles);
    agent.ended_at = Some(now);
    agent.revision = revision;
    changes.put(agent);
    (changes, stale)
}

/// Why the process does not speak for the agent, in words. A live one that only this agent uses would have: so one that
/// lives is shared.
fn what_is_known_of(pid: Option<u32>, liveness: Liveness) -> String {
    match (pid, liveness) {
        (None, _) => "no PID".to_owned(),
        (Some(pid), Liveness::Dead) => format!("PID {pid} not found"),
        (Some(pid), Liveness::Unknown) => format!("PID {pid} can't be verified here"),
        (Some(pid), Liveness::Alive) => format!("PID {pid} is shared with other sessions"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::{an_agent, an_item};

    fn holding(items: &[&str]) -> Held {
        Held { items: items.iter().map(|item| an_item(item)).collect(), leased: Vec::new() }
    }

    #[test]
    fn a_shared_process_that_may_live_has_more_time() {
        use Liveness::{Alive, Dead, Unknown};
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
            let patience = board.patience_with(&agent, liveness, &sweep);
            assert_eq!(patience.as_secs(), expected, "{liveness:?}, shared {shares_process}, {threshold:?}");
        }
    }

    #[test]
    fn the_dead_are_told_of_once_and_their_work_only_if_they_had_any() {
        let agent = Agent { pid: Some(12), ..an_agent("a") };
        let (changes, stale) = decide(agent.clone(), Held::default(), Liveness::Dead, Timestamp::EPOCH);
        assert_eq!((changes.events.len(), changes.put.len(), stale.released_items.len()), (1, 1, 0));
        let (changes, stale) = decide(agent, holding(&["x", "y"]), Liveness::Dead, Timestamp::EPOCH);
        assert_eq!((changes.events.len(), changes.put.len()), (2, 3));
        assert_eq!(stale.released_items, ["x", "y"]);
    }

    #[test]
    fn only_a_process_that_is_gone_is_called_not_found() {
        for (pid, liveness, expected) in [
            (None, Liveness::Unknown, "no PID"),
            (Some(12), Liveness::Dead, "PID 12 not found"),
            (Some(12), Liveness::Unknown, "PID 12 can't be verified here"),
            (Some(12), Liveness::Alive, "PID 12 is shared with other sessions"),
        ] {
            let agent = Agent { pid, ..an_agent("a") };
            let (changes, _) = decide(agent, Held::default(), liveness, Timestamp::EPOCH);
            let summary = &changes.events[0].summary;
            assert!(summary.ends_with(&format!(", {expected})")), "{pid:?}, {liveness:?}: {summary}");
        }
    }

    #[test]
    fn the_dead_work_on_nothing_that_was_taken_from_them() {
        for (current_work, expected) in [(an_item("x").title, None), ("Lunch".to_owned(), Some("Lunch"))] {
            let agent = Agent { current_work: Some(current_work), ..an_agent("a") };
            let (changes, _) = decide(agent, holding(&["x"]), Liveness::Dead, Timestamp::EPOCH);
            let Some(crate::store::Row::Agent(stale)) = changes.put.last() else { panic!("{changes:?}") };
            assert_eq!(stale.current_work.as_deref(), expected);
        }
    }
}
