//! `status`: an overview of the board.

use std::time::Duration;

use serde::Serialize;

use crate::agent::{Agent, AgentStatus, ListedAgent};
use crate::board::Board;
use crate::clock::Timestamp;
use crate::entry::{FILES, LOCKS};
use crate::error::Result;
use crate::revision::Revision;
use crate::store::{Prefetch, Range, Tx};
use crate::work::{ListedItem, Status, missing_blockers, prefetch_missing_blockers, with_blockers};

const DAY: Duration = Duration::from_hours(24);

/// How many missing blockers a status names.
const MISSING_BLOCKERS: usize = 100;

/// How many claimed work items a status has.
const CLAIMED_WORK: usize = 100;

/// The counts that are not zero, by name.
fn counted(counts: impl Iterator<Item = Result<(&'static str, u64)>>) -> Result<Vec<StatusCount>> {
    let mut counts = counts.collect::<Result<Vec<_>>>()?;
    counts.retain(|(_, count)| *count > 0);
    counts.sort_unstable();
    Ok(counts.into_iter().map(|(status, count)| StatusCount { status, count }).collect())
}

/// An overview of the board.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BoardStatus {
    /// The space that it uses.
    pub database_size_bytes: u64,
    /// How many agents there are.
    pub agents: AgentCounts,
    /// How many projects there are.
    pub projects: ProjectCounts,
    /// How many work items there are.
    pub work_items: WorkCounts,
    /// The claimed work items, P1 first, then oldest first; the first 100 of them. The counts have their number. It is not
    /// serialized.
    #[serde(skip)]
    pub claimed_work: Vec<ListedItem>,
    /// The missing blockers of open work items, by id; the first 100 of them.
    pub missing_blockers: Vec<String>,
    /// Whether there are more of them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub more_missing_blockers: bool,
    /// How many entries there are.
    pub entries: EntryCounts,
    /// How many events there were in the last 24 hours.
    pub events_24h: u64,
    /// How many events are kept.
    pub events_kept: u64,
    /// The live agents.
    pub active_agents: Vec<ListedAgent>,
    /// The board's revision.
    pub revision: Revision,
}

/// A part of a board and the space that it uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpaceUsage {
    /// The table, together with its indexes, or `unused`.
    pub what: String,
    /// How many bytes.
    pub bytes: u64,
}

/// How many agents there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AgentCounts {
    /// Active agents.
    pub active: u64,
    /// Idle agents.
    pub idle: u64,
    /// Stale agents.
    pub stale: u64,
    /// Sessions that ended today: since the start of the day that the caller named.
    pub completed_today: u64,
}

/// How many projects there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProjectCounts {
    /// Registered projects.
    pub registered: u64,
}

/// How many work items there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WorkCounts {
    /// Available items.
    pub available: u64,
    /// Claimed items.
    pub claimed: u64,
    /// Blocked items.
    pub blocked: u64,
    /// Items completed today: since the start of the day that the caller named.
    pub completed_today: u64,
}

impl WorkCounts {
    fn prefetch(today: Timestamp) -> [Prefetch<'static>; 4] {
        let [available, claimed, blocked] =
            [Status::Available, Status::Claimed, Status::Blocked].map(Range::work_queue);
        [available, claimed, blocked, Range::completed_since(today)].map(Prefetch::Count)
    }

    fn of(tx: &dyn Tx, today: Timestamp) -> Result<WorkCounts> {
        Ok(WorkCounts {
            available: tx.count(&Range::work_queue(Status::Available))?,
            claimed: tx.count(&Range::work_queue(Status::Claimed))?,
            blocked: tx.count(&Range::work_queue(Status::Blocked))?,
            completed_today: tx.count(&Range::completed_since(today))?,
        })
    }
}

/// How many entries there are, including expired ones that were not swept yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EntryCounts {
    /// Entries of ordinary scopes.
    pub shared: u64,
    /// Locks.
    pub locks: u64,
    /// File reservations.
    pub files: u64,
}

/// The count of each status, by name, without those that are zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StatusCount {
    /// The status.
    pub status: &'static str,
    /// How many.
    pub count: u64,
}

/// The counts of everything, at one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Agents, including ended ones.
    pub agents: Vec<StatusCount>,
    /// Work items, including completed ones.
    pub work: Vec<StatusCount>,
    /// Projects.
    pub projects: u64,
    /// Events of the last 24 hours.
    pub events_24h: u64,
    /// The board's revision.
    pub revision: Revision,
}

/// What both overviews read.
fn prefetch_counts() -> Vec<Prefetch<'static>> {
    vec![
        Prefetch::Range(Range::agents()),
        Prefetch::Count(Range::projects()),
        Prefetch::RevisionAged(DAY),
        Prefetch::Revision,
    ]
}

/// Announces the events of the last day, and returns the revision that they begin after.
fn prefetch_last_day(tx: &dyn Tx) -> Result<Revision> {
    let day_ago = tx.revision_before(tx.now().minus(DAY))?;
    tx.prefetch(&[Prefetch::CountEvents(day_ago, Revision::MAX)])?;
    Ok(day_ago)
}

impl Board {
    /// The counts of everything. Unlike [`Board::status`] it reads no items, and counts everything that is kept.
    ///
    /// ```
    /// # use blackboard::{Board, work::Create};
    /// # let board = Board::memory();
    /// board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// let counts = board.counts()?;
    /// assert_eq!((counts.work[0].status, counts.work[0].count, counts.events_24h), ("available", 1, 1));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn counts(&self) -> Result<Counts> {
        let mut prefetch = prefetch_counts();
        prefetch.extend(Status::ALL.iter().map(|&status| Prefetch::Count(Range::work_queue(status))));
        self.read_list(&prefetch, |tx| {
            let agents = tx.rows::<Agent>(&Range::agents())?;
            let agents = counted(AgentStatus::ALL.iter().map(|&status| {
                let count = agents.iter().filter(|agent| agent.status == status).count();
                Ok((status.as_str(), count as u64))
            }))?;
            let work = counted(
                Status::ALL
                    .iter()
                    .map(|&status| Ok((status.as_str(), tx.count(&Range::work_queue(status))?))),
            )?;
            let day_ago = prefetch_last_day(tx)?;
            Ok(Counts {
                agents,
                work,
                projects: tx.count(&Range::projects())?,
                events_24h: tx.count_events(day_ago, Revision::MAX)?,
                revision: tx.revision()?,
            })
        })
    }

    /// The parts of the board's file by size, the largest first. It reads the complete file, so it is for rare calls.
    /// Empty if the board has no file.
    ///
    /// ```
    /// # use blackboard::Board;
    /// # let directory = std::env::temp_dir().join(format!("blackboard-room-{}", std::process::id()));
    /// let board = Board::open(&directory.join("local.db"))?;
    /// assert!(board.space_usage()?.iter().any(|part| part.what == "events"));
    /// # std::fs::remove_dir_all(directory).unwrap();
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn space_usage(&self) -> Result<Vec<SpaceUsage>> {
        self.store().space_usage()
    }

    /// The location of the copy of a sealed board, which may be empty; `None` if the board is not sealed.
    pub fn sealed(&self) -> Result<Option<String>> {
        self.store().sealed()
    }

    /// How many work items there are, without the rest of [`Board::status_since`]. The counts of today begin at `today`.
    ///
    /// ```
    /// # use blackboard::{Board, work::Create};
    /// # let board = Board::memory();
    /// board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// let today = board.clock().now().midnight();
    /// assert_eq!(board.work_counts(today)?.available, 1);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn work_counts(&self, today: Timestamp) -> Result<WorkCounts> {
        self.read(&WorkCounts::prefetch(today), |tx| WorkCounts::of(tx, today))
    }

    /// An overview of the board. Its counts of today begin at 00:00 UTC by the caller's clock.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register};
    /// # let board = Board::memory();
    /// board.agents().register(&Register::named("Ivy"))?;
    /// assert_eq!(board.status()?.agents.active, 1);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn status(&self) -> Result<BoardStatus> {
        self.status_since(self.clock().now().midnight())
    }

    /// The same for a caller whose day begins at another moment, for example at local midnight. The caller determines it
    /// once: the engine's clock may be on another day, and only an announced range can be counted.
    pub fn status_since(&self, today: Timestamp) -> Result<BoardStatus> {
        let database_size_bytes = self.store().size()?;
        let mut prefetch = prefetch_counts();
        prefetch.extend([LOCKS, FILES].map(|scope| Prefetch::Count(Range::entries(scope, ""))));
        prefetch.push(Prefetch::Count(Range::all_entries()));
        prefetch.push(Prefetch::CountEvents(Revision::ZERO, Revision::MAX));
        prefetch.push(prefetch_missing_blockers());
        prefetch.extend(WorkCounts::prefetch(today));
        let claimed = Range::work_queue(Status::Claimed);
        prefetch.push(Prefetch::Candidates(claimed.clone(), CLAIMED_WORK));
        let mut status = self.read_list(&prefetch, |tx| {
            let mut agents = AgentCounts::default();
            let mut active_agents = Vec::new();
            for agent in tx.rows::<Agent>(&Range::agents())? {
                match agent.status {
                    AgentStatus::Active => agents.active += 1,
                    AgentStatus::Idle => agents.idle += 1,
                    AgentStatus::Stale => agents.stale += 1,
                    AgentStatus::Completed => {
                        agents.completed_today +=
                            u64::from(agent.ended_at.is_some_and(|ended| ended >= today));
                    }
                }
                if agent.status.is_live() {
                    active_agents.push(ListedAgent::unchecked(agent));
                }
            }
            active_agents.sort_by_key(|listed| listed.agent.started_at);
            let day_ago = prefetch_last_day(tx)?;
            let [locks, files] = [LOCKS, FILES].map(|scope| tx.count(&Range::entries(scope, "")));
            let (locks, files) = (locks?, files?);
            let mut missing_blockers = missing_blockers(tx, MISSING_BLOCKERS + 1)?;
            let more_missing_blockers = missing_blockers.len() > MISSING_BLOCKERS;
            missing_blockers.truncate(MISSING_BLOCKERS);
            Ok(BoardStatus {
                database_size_bytes,
                agents,
                projects: ProjectCounts { registered: tx.count(&Range::projects())? },
                work_items: WorkCounts::of(tx, today)?,
                claimed_work: with_blockers(tx, tx.candidate_rows(&claimed, CLAIMED_WORK)?)?,
                missing_blockers,
                more_missing_blockers,
                entries: EntryCounts {
                    shared: tx.count(&Range::all_entries())?.saturating_sub(locks + files),
                    locks,
                    files,
                },
                events_24h: tx.count_events(day_ago, Revision::MAX)?,
                events_kept: tx.count_events(Revision::ZERO, Revision::MAX)?,
                active_agents,
                revision: tx.revision()?,
            })
        })?;
        self.agents().check_processes(&mut status.active_agents);
        Ok(status)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::agent::Register;
    use crate::clock::{Clock, FixedClock};
    use crate::store::Memory;
    use crate::store::conformance::announced::Announced;
    use crate::work::{Claim, Complete, Create};

    #[test]
    fn today_is_the_day_of_the_callers_clock() {
        testkit::limit_test();
        let clock = |moment: &str| -> Arc<dyn Clock> { Arc::new(FixedClock::at(moment).unwrap()) };
        let engine = Arc::new(Memory::new(clock("2026-02-04T00:00:01Z")));
        let on_its_clock = Board::on(engine.clone(), clock("2026-02-04T00:00:01Z"));
        let ivy = on_its_clock.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
        on_its_clock.work().create(&Create::new("a", "A")).unwrap();
        on_its_clock.work().claim(&Claim::of("a", &ivy)).unwrap();
        on_its_clock.work().complete(&Complete::of("a", &ivy)).unwrap();
        on_its_clock.agents().deregister(&ivy).unwrap();
        // The engine refuses a range that is not announced: another day than that of the caller.
        for (moment, expected) in
            [("2026-02-03T23:59:59Z", 1), ("2026-02-04T00:00:02Z", 1), ("2026-02-05T00:00:00Z", 0)]
        {
            let board = Board::on(Arc::new(Announced::new(engine.clone())), clock(moment));
            let status = board.status().unwrap();
            assert_eq!(status.work_items.completed_today, expected, "{moment}");
            assert_eq!(status.agents.completed_today, expected, "{moment}");
            let today = board.clock().now().midnight();
            assert_eq!(board.work_counts(today).unwrap(), status.work_items, "{moment}");
            let local_midnight = "2026-02-04T00:00:02Z".parse().unwrap();
            let status = board.status_since(local_midnight).unwrap();
            assert_eq!(
                (status.work_items.completed_today, status.agents.completed_today),
                (0, 0),
                "{moment}"
            );
            assert_eq!(board.work_counts(local_midnight).unwrap(), status.work_items, "{moment}");
        }
    }
}
