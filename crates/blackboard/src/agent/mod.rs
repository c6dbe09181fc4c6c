//! Agents and their sessions.
//!
//! A running agent is a session, and its holdings belong to the session. When the session deregisters or is swept,
//! they are released in the same commit.

mod check_in;
mod delegation;
mod deregister;
mod heartbeat;
mod list;
mod overview;
mod register;
mod short_id;
mod show;
mod watch;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::check_in::{CheckIn, CheckedIn, READER};
pub(crate) use self::delegation::refuse_name_of_tasks;
pub use self::deregister::Deregistered;
pub use self::heartbeat::{Heartbeat, HeartbeatRecorded};
pub use self::list::{AgentFilter, ListedAgent};
pub use self::overview::{Overview, SeenAgent};
#[cfg(any(test, feature = "conformance"))]
pub(crate) use self::register::newcomer;
pub use self::register::{Register, Registered};
pub(crate) use self::short_id::SHORT_ID;
pub use self::short_id::{ShortIds, label, short_id};
pub use self::show::{ResolvedBy, ShownAgent};
use crate::board::Board;
use crate::clock::Timestamp;
use crate::error::{Code, Error, Refusal, Result};
use crate::hint::Hint;
use crate::metadata::Metadata;
use crate::process::{Liveness, ProcessIdentity};
use crate::revision::Revision;
use crate::store::record::record;
use crate::store::{Changes, Key, Prefetch, Range, Row, Tx};
use crate::sweep::QUIET;
use crate::work::WorkItem;

/// The agents of a board: `board.agents()`.
#[derive(Clone, Copy)]
pub struct Agents<'a> {
    pub(crate) board: &'a Board,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agent {
    /// Its id: a UUID, either random or derived from the session hint.
    pub session_id: String,
    /// The name of the agent.
    pub agent_name: String,
    /// The long-lived process that it runs in.
    pub pid: Option<u32>,
    /// The parent session, if it is a delegate.
    pub parent_id: Option<String>,
    /// Its project.
    pub project: Option<String>,
    /// Its current work: the title of the item that it claimed last, or the work that it reported.
    pub current_work: Option<String>,
    /// The work that it reported itself.
    #[serde(skip)]
    pub own_work: Option<String>,
    /// Its status.
    pub status: AgentStatus,
    /// When it registered.
    pub started_at: Timestamp,
    /// When the session was last known to be alive.
    pub last_seen_at: Timestamp,
    /// When the session itself last called the board.
    pub last_beat_at: Timestamp,
    /// When it ended or was marked stale.
    pub ended_at: Option<Timestamp>,
    /// Its last progress note.
    pub progress: Option<String>,
    /// Its metadata.
    #[serde(serialize_with = "crate::metadata::or_empty")]
    pub metadata: Option<Metadata>,
    /// The event that changed it last.
    pub revision: Revision,
    /// The event of its registration: its first `observe` starts after it.
    #[serde(skip)]
    pub joined: Revision,
    /// What identifies the process of the PID, because the system reuses PIDs.
    #[serde(skip)]
    pub process: Option<ProcessIdentity>,
    /// Whether its process hosts other sessions too. Then a running process does not prove that this session is
    /// alive.
    #[serde(skip)]
    pub shares_process: bool,
}

/// The status of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentStatus {
    /// The agent works.
    Active,
    /// The agent waits.
    Idle,
    /// The session ended normally.
    Completed,
    /// The session was marked stale.
    Stale,
}

impl AgentStatus {
    /// Every status.
    pub const ALL: &'static [AgentStatus] =
        &[AgentStatus::Active, AgentStatus::Idle, AgentStatus::Completed, AgentStatus::Stale];

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            AgentStatus::Active => "active",
            AgentStatus::Idle => "idle",
            AgentStatus::Completed => "completed",
            AgentStatus::Stale => "stale",
        }
    }

    /// Whether the session may hold work.
    pub fn is_live(self) -> bool {
        matches!(self, AgentStatus::Active | AgentStatus::Idle)
    }
}

crate::names::impl_names!(AgentStatus, "status");

/// A heartbeat of a session. It is not shared state and has no event. Of two in one millisecond the later one is
/// kept.
#[derive(Clone, Debug, PartialEq)]
pub struct HeartbeatRow {
    /// The session.
    pub session_id: String,
    /// When the session sent it.
    pub timestamp: Timestamp,
    /// What it reported.
    pub progress: Option<String>,
    /// What it worked on.
    pub work_item_id: Option<String>,
}

impl Agent {
    /// The agent as messages name it: `Ivy (84a674b5)`.
    pub fn label(&self) -> String {
        label(&self.agent_name, &self.session_id)
    }

    /// The holder of something, and this agent, as messages to this agent name them: `Ivy (84a674b5)` and `you (Ivy,
    /// 7749a8e8)`.
    pub(crate) fn beside_holder(&self, name: &str, session: &str) -> (String, String) {
        let ids = ShortIds::of([session, &self.session_id]);
        let you = format!("you ({}, {})", self.agent_name, ids.shorten(&self.session_id));
        (ids.label(name, session), you)
    }

    /// Whether the other session runs in this session's own process. This session then acts for all sessions that run
    /// there: for the delegates of an agent, or as the common server of the sessions of one host.
    fn shares_process_with(&self, other: &Agent) -> bool {
        !self.shares_process
            && other.shares_process
            && self.pid.is_some()
            && self.pid == other.pid
            && self.process == other.process
    }

    /// Refuses if the session may not claim work.
    pub(crate) fn must_be_live(&self) -> Result<()> {
        match self.status {
            AgentStatus::Active | AgentStatus::Idle => Ok(()),
            AgentStatus::Stale => Err(Refusal::new(
                Code::SessionStale,
                format!("session {} is stale; what it held was released", self.label()),
            )
            .hint(Hint::Reactivate)
            .into()),
            AgentStatus::Completed => Err(self.has_ended()),
        }
    }

    /// Refuses if the session is stale. It no longer holds anything, and the caller has to learn that.
    pub(crate) fn must_not_be_stale(&self) -> Result<()> {
        if self.status == AgentStatus::Stale { self.must_be_live() } else { Ok(()) }
    }

    /// Whether an item is its current work.
    pub(crate) fn works_on(&self, item: &WorkItem) -> bool {
        self.current_work.as_ref() == Some(&item.title)
    }

    /// The session after it stopped working on an item, if that item was its current work. The current work becomes
    /// the last claimed item that it still holds, or the work that it reported.
    pub(crate) fn without_current_work(&self, item: &WorkItem, held: &[WorkItem]) -> Option<Agent> {
        if !self.works_on(item) {
            return None;
        }
        let mut agent = Agent { revision: item.revision, ..self.clone() };
        agent.stop_working_on(std::slice::from_ref(&item.title));
        let others =
            held.iter().filter(|other| other.item_id != item.item_id && other.is_held_by(&self.session_id));
        let last = others.max_by_key(|other| other.fence).map(|other| other.title.clone());
        agent.current_work = last.or(agent.current_work);
        Some(agent)
    }

    /// Falls back to the work that it reported, if its current work is one of these titles.
    pub(crate) fn stop_working_on(&mut self, titles: &[String]) {
        if self.current_work.as_ref().is_some_and(|work| titles.contains(work)) {
            self.own_work = self.own_work.take().filter(|work| !titles.contains(work));
            self.current_work.clone_from(&self.own_work);
        }
    }

    /// Whether one of two sessions is the parent of the other.
    pub(crate) fn is_related_to(&self, other: &Agent) -> bool {
        self.parent_id.as_ref() == Some(&other.session_id)
            || other.parent_id.as_ref() == Some(&self.session_id)
            || self.shares_process_with(other)
            || other.shares_process_with(self)
    }

    /// Whether two sessions have the same parent.
    pub(crate) fn is_sibling_of(&self, other: &Agent) -> bool {
        self.parent_id.is_some() && self.parent_id == other.parent_id
    }

    pub(crate) fn has_ended(&self) -> Error {
        Refusal::new(Code::SessionEnded, format!("session {} has ended", self.label()))
            .hint(Hint::RegisterAgain)
            .into()
    }
}

record! {
    Agent in "agents", generation 0 {
        key { session_id }
        columns {
            agent_name, pid, parent_id, project, current_work, status, started_at, last_seen_at, metadata,
            last_beat_at, ended_at, progress, process, shares_process, joined = "joined_revision", revision,
            own_work,
        }
    }
    indexes {
        /// All agents, by session id.
        ALL: by (session_id);
        /// Active and idle agents, the one seen longest ago first.
        LIVE: by (last_seen_at, session_id)
            where "agents.status IN ('active', 'idle')" = |agent| agent.status.is_live();
        /// Agents that have ended, by the time of their end.
        ENDED: by (ended_at, session_id) where "agents.ended_at IS NOT NULL";
        /// The delegates of a session.
        DELEGATES: by (session_id) of (parent_id);
    }
}

record! {
    HeartbeatRow in "heartbeats", generation 2, appended {
        key { session_id, timestamp }
        columns { progress, work_item_id }
    }
    indexes {
        /// The heartbeats of a session, oldest first.
        OF_SESSION: by (timestamp) of (session_id);
        /// The heartbeats that are about a work item, oldest first.
        OF_WORK_ITEM: by (timestamp, session_id) of (work_item_id);
    }
}

impl Range {
    /// The heartbeats of a session.
    pub fn heartbeats_of(session: &str) -> Range {
        Range::of(HeartbeatRow::OF_SESSION, [session])
    }

    /// The heartbeats that are about a work item.
    pub fn heartbeats_about(item: &str) -> Range {
        Range::of(HeartbeatRow::OF_WORK_ITEM, [item])
    }

    /// All agents.
    pub fn agents() -> Range {
        Range::all(Agent::ALL)
    }

    /// Agents whose session id starts with `prefix`.
    pub fn agents_with_prefix(prefix: &str) -> Range {
        Range::agents().starting_with(prefix)
    }

    /// Active and idle agents.
    pub fn live_agents() -> Range {
        Range::all(Agent::LIVE)
    }

    /// Active and idle agents that were last seen at `moment` or before it.
    pub fn live_agents_seen_until(moment: Timestamp) -> Range {
        Range::live_agents().up_to(moment)
    }

    /// Agents that ended before `moment`.
    pub fn agents_ended_before(moment: Timestamp) -> Range {
        Range::all(Agent::ENDED).before(moment)
    }

    /// Agents that ended at `moment` or later.
    pub fn agents_ended_since(moment: Timestamp) -> Range {
        Range::all(Agent::ENDED).from(moment)
    }

    /// The delegates of a session.
    pub fn delegates_of(session: &str) -> Range {
        Range::of(Agent::DELEGATES, [session])
    }
}

/// Announces the row of the acting session, if there is one.
pub(crate) fn prefetch_agent(session: Option<&str>) -> Option<Prefetch<'static>> {
    session.map(|session| Prefetch::Row(Key::Agent(session.to_owned())))
}

/// The session, or a refusal that says it does not exist.
pub(crate) fn existing(tx: &dyn Tx, session: &str) -> Result<Agent> {
    tx.row::<Agent>(&Key::Agent(session.to_owned()))?.ok_or_else(|| not_found(session))
}

pub(crate) fn not_found(session: &str) -> Error {
    Refusal::new(Code::AgentNotFound, format!("no session matches \"{session}\""))
        .hint(Hint::NameSession)
        .into()
}

impl Agents<'_> {
    /// Whether the process of a session runs. Every view of a session uses this function.
    pub(crate) fn process_of(self, agent: &Agent) -> Liveness {
        let (Some(pid), processes) = (agent.pid, self.board.processes()) else { return Liveness::Unknown };
        // Machines can have the same id, for example copies of one image. Their boots differ.
        let is_of_this_boot =
            |process: &ProcessIdentity| !process.boot.is_empty() && process.boot == processes.boot();
        if self.board.store().is_shared_by_machines() && !agent.process.as_ref().is_some_and(is_of_this_boot)
        {
            return Liveness::Unknown;
        }
        processes.liveness(pid, agent.process.as_ref())
    }

    /// How long a working session may go without a new `last_beat_at`. It is well below the threshold of the sweep,
    /// and below the time after which a refused call sweeps a session whose process is gone.
    pub(crate) fn activity_interval(self) -> Duration {
        self.board.settings().sign_of_life_interval().min(QUIET / 2)
    }

    /// Adds to a verb's changes that the session acted, unless that was recorded a moment ago. Only calls of the
    /// session itself count: other sessions refresh `last_seen_at` too.
    pub(crate) fn record_activity(self, agent: &Agent, now: Timestamp, changes: &mut Changes) {
        // A heartbeat ahead of the clock proves nothing.
        let is_recent = agent.last_beat_at <= now && now.since(agent.last_beat_at) < self.activity_interval();
        if !agent.status.is_live() || is_recent {
            return;
        }
        if let Some(row) = changed_row(changes, &agent.session_id) {
            (row.last_seen_at, row.last_beat_at) = (now, now);
        } else {
            changes.put(Agent { last_seen_at: now, last_beat_at: now, ..agent.clone() });
        }
    }

    /// The same for a session that acts in a verb which does not read its row otherwise.
    pub(crate) fn record_activity_of(
        self,
        tx: &dyn Tx,
        session: Option<&str>,
        changes: &mut Changes,
    ) -> Result<()> {
        if let Some(session) = session {
            self.record_activity(&existing(tx, session)?, tx.now(), changes);
        }
        Ok(())
    }
}

/// The row of a session among these changes.
fn changed_row<'a>(changes: &'a mut Changes, session: &str) -> Option<&'a mut Agent> {
    changes.put.iter_mut().find_map(|row| match row {
        Row::Agent(row) if row.session_id == session => Some(row),
        _ => None,
    })
}
