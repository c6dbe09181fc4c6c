//! The brief: what a hook shows to a session when it starts.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::agent::{Agent, ListedAgent, READER, existing};
use crate::board::Board;
use crate::entry::{Entry, LOCKS};
use crate::error::Result;
use crate::event::EventType;
use crate::file::{
    ActiveReservation, FileConflict, MAX_EDITS, Reservation, conflicts_of_session, every_reservation,
};
use crate::lock::Lock;
use crate::memory::MemoryBrief;
use crate::project::Project;
use crate::revision::Revision;
use crate::store::{Changes, Cursor, Key, Page, Prefetch, Range, Tx};
use crate::unreadable::if_readable;
use crate::updates::Updates;
use crate::work::{Status, WorkItem};

/// How far back recent events are included.
const LATELY: Duration = Duration::from_hours(1);

/// The reader whose cursor records when a session was shown a brief.
const BRIEF_READER: &str = "brief";

/// How many items of one kind are read. An agent does not read more when it starts.
const LOOKED_AT: usize = 200;

/// For how many of its own items the brief says which session assigned them.
const MAX_OWN_ITEMS: usize = 5;

/// What a session is shown when it starts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Brief {
    /// The session.
    pub agent: Agent,
    /// The name of its parent, if it is a delegate.
    pub parent_name: Option<String>,
    /// Whether its project is registered. A session may work in a directory of which the board has no project.
    pub has_registered_project: bool,
    /// What other sessions reserved or just edited among the files that it edited, was denied or has reserved.
    pub conflicts: Vec<FileConflict>,
    /// The sessions that assigned items to it, by the id of the item.
    pub assigned_by: BTreeMap<String, Assigner>,
    /// The other agents: those of its project first, then by when they were last seen.
    pub agents: Vec<ListedAgent>,
    /// The available items of its project or without a project, in the order of priority.
    pub available: Vec<WorkItem>,
    /// Whether there may be more available items: the first 200 of the board are read.
    pub more_available: bool,
    /// The claimed items of its project or without a project.
    pub claimed: Vec<WorkItem>,
    /// Whether there may be more claimed items.
    pub more_claimed: bool,
    /// The held locks.
    pub locks: Vec<Lock>,
    /// The reserved files.
    pub files: Vec<Reservation>,
    /// The relevant events of the last hour.
    #[serde(rename = "lately")]
    pub recent: Updates,
    /// What is remembered, if the caller has asked for that (`Memories::for_brief`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryBrief>,
    /// The board's revision: updates start after it.
    pub revision: Revision,
}

/// A session that assigned a work item to another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Assigner {
    /// The session.
    pub session_id: String,
    /// The name of its agent.
    pub agent_name: String,
}

impl Board {
    /// The brief of a session.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register, work::Create};
    /// # let board = Board::memory();
    /// let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// board.agents().register(&Register::named("Oak"))?;
    /// board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// let brief = board.brief(&ivy)?;
    /// assert_eq!((&*brief.agents[0].agent.agent_name, &*brief.available[0].item_id), ("Oak", "fix-tests"));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn brief(&self, session: &str) -> Result<Brief> {
        let queues = [Status::Available, Status::Claimed].map(Range::work_queue);
        let candidates = queues.into_iter().chain([Range::entries(LOCKS, "")]);
        let mut prefetch = vec![
            Prefetch::Row(Key::Agent(session.to_owned())),
            Prefetch::Range(Range::live_agents()),
            Prefetch::Range(every_reservation()),
            Prefetch::Candidates(Range::edits_of_session(session), MAX_EDITS),
            Prefetch::RevisionAged(LATELY),
            Prefetch::Revision,
        ];
        prefetch.extend(candidates.map(|range| Prefetch::Candidates(range, LOOKED_AT)));
        let mut brief = self.read_list(&prefetch, |tx| {
            let agent = existing(tx, session)?;
            let parent = agent.parent_id.clone().map(Key::Agent);
            let project = agent.project.clone().map(Key::Project);
            let rows: Vec<_> = parent.iter().chain(&project).cloned().map(Prefetch::Row).collect();
            if !rows.is_empty() {
                tx.prefetch(&rows)?;
            }
            let parent = match &parent {
                Some(parent) => tx.peek_row::<Agent>(parent)?,
                None => None,
            };
            let has_registered_project = match &project {
                Some(project) => tx.peek_row::<Project>(project)?.is_some(),
                None => false,
            };
            let mut agents = tx.rows::<Agent>(&Range::live_agents())?;
            agents.retain(|other| other.session_id != agent.session_id);
            agents
                .sort_by_key(|other| (other.project != agent.project, std::cmp::Reverse(other.last_seen_at)));
            let items = |status| -> Result<(Vec<WorkItem>, bool)> {
                let mut items = tx.candidate_rows::<WorkItem>(&Range::work_queue(status), LOOKED_AT)?;
                let may_be_more = items.len() == LOOKED_AT;
                items.retain(|item| item.project_id.is_none() || item.project_id == agent.project);
                Ok((items, may_be_more))
            };
            let mut locks = Vec::new();
            for entry in tx.candidate_rows::<Entry>(&Range::entries(LOCKS, ""), LOOKED_AT)? {
                if !entry.is_expired(tx.now()) {
                    locks.push(Lock::of(tx, &entry)?.with_name_of_today(tx)?);
                }
            }
            let reservations = ActiveReservation::all(tx)?;
            let conflicts = conflicts_of_session(tx, &agent, &reservations)?;
            let (claimed, more_claimed) = items(Status::Claimed)?;
            let (available, more_available) = items(Status::Available)?;
            let mut files = Vec::new();
            for standing in reservations {
                files.push(standing.reservation.with_name_of_today(tx)?);
            }
            let revision = tx.revision()?;
            let an_hour_ago = tx.revision_before(tx.now().minus(LATELY))?;
            Ok(Brief {
                parent_name: parent.map(|parent| parent.agent_name),
                has_registered_project,
                available,
                more_available,
                conflicts,
                assigned_by: assigners(tx, &agent, &claimed)?,
                claimed,
                more_claimed,
                recent: Updates::between(self, tx, &agent, an_hour_ago, revision)?,
                agents: agents.into_iter().map(ListedAgent::unchecked).collect(),
                locks,
                files,
                memory: None,
                revision,
                agent,
            })
        })?;
        self.agents().check_processes(&mut brief.agents);
        Ok(brief)
    }

    /// Records that a session is shown this brief, so that updates start after it. Returns `false` if it was shown
    /// one less than `pause` ago, since it joined. Of several callers at once, one gets `true`.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use blackboard::{Board, agent::Register};
    /// # let board = Board::memory();
    /// let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// let brief = board.brief(&ivy)?;
    /// assert!(board.record_brief(&brief, Duration::from_secs(10))?);
    /// assert!(!board.record_brief(&brief, Duration::from_secs(10))?);
    /// assert!(board.record_brief(&brief, Duration::ZERO)?);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn record_brief(&self, brief: &Brief, pause: Duration) -> Result<bool> {
        let session = &brief.agent.session_id;
        let key = |reader: &str| Key::Cursor(session.clone(), reader.to_owned());
        let prefetch = [BRIEF_READER, READER].map(|reader| Prefetch::Row(key(reader)));
        self.commit("agent brief", &prefetch, |tx| {
            let mut changes = Changes::new();
            let shown = tx.row::<Cursor>(&key(BRIEF_READER))?;
            let was_just_shown = shown.is_some_and(|shown| {
                shown.revision >= brief.agent.joined && tx.now().since(shown.updated_at) < pause
            });
            if was_just_shown {
                return Ok((changes, false));
            }
            for reader in [BRIEF_READER, READER] {
                let read = tx.row::<Cursor>(&key(reader))?.map(|cursor| cursor.revision);
                changes.put(Cursor {
                    owner: session.clone(),
                    reader: reader.to_owned(),
                    // A cursor never goes back.
                    revision: read.map_or(brief.revision, |read| read.max(brief.revision)),
                    updated_at: tx.now(),
                });
            }
            Ok((changes, true))
        })
    }
}

/// Which sessions assigned the items that this session holds. The event of the claim has the fence token as its revision.
fn assigners(tx: &dyn Tx, agent: &Agent, claimed: &[WorkItem]) -> Result<BTreeMap<String, Assigner>> {
    let mut assigners = BTreeMap::new();
    let own = claimed.iter().filter(|item| item.is_held_by(&agent.session_id));
    let own: Vec<_> = own.filter_map(|item| Some((item, item.fence?))).take(MAX_OWN_ITEMS).collect();
    if own.is_empty() {
        return Ok(assigners);
    }
    let types = [EventType::WorkClaimed];
    let pages: Vec<_> = own
        .iter()
        .map(|(_, fence)| Page {
            after: Revision::new(fence.get() - 1),
            until: *fence,
            types: &types,
            limit: 1,
        })
        .collect();
    tx.prefetch(&pages.iter().map(|page| Prefetch::Events(*page)).collect::<Vec<_>>())?;
    let mut sessions = Vec::new();
    for ((item, _), page) in own.iter().zip(&pages) {
        for event in tx.events(page)? {
            let by = event.named_session("assigned_by");
            let by = by.filter(|_| event.is_assignment_to(&agent.session_id));
            sessions.extend(by.map(|by| (item.item_id.clone(), by)));
        }
    }
    let rows: Vec<_> = sessions.iter().map(|(_, by)| Prefetch::Row(Key::Agent(by.clone()))).collect();
    if !rows.is_empty() {
        tx.prefetch(&rows)?;
    }
    for (item, session_id) in sessions {
        if let Some(by) = if_readable(tx.peek_row::<Agent>(&Key::Agent(session_id.clone())))? {
            assigners.insert(item, Assigner { session_id, agent_name: by.agent_name });
        }
    }
    Ok(assigners)
}
