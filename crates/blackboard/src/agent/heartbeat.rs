//! `agent heartbeat`: a session says that it lives, and how far it is.

use serde::{Deserialize, Serialize};

use super::{Agent, AgentStatus, Agents, Heartbeat, existing};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::event::{Event, EventType, NewEvent, TargetType};
use crate::metadata::Metadata;
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Page, Tx, Wanted};
use crate::work::WorkItem;

/// What a heartbeat says.
#[derive(Clone, Debug, Default)]
pub struct Beat {
    /// Whose it is.
    pub session: String,
    /// How far it is. Only a heartbeat with progress has an event.
    pub progress: Option<String>,
    /// Whether that progress is a milestone.
    pub milestone: bool,
    /// What it works on from now.
    pub work: Option<String>,
    /// Which work item the progress is about.
    pub work_item: Option<String>,
    /// Whether it is at work; active if it does not say.
    pub status: Option<AgentStatus>,
    /// What its user wants to store with it.
    pub metadata: Option<Metadata>,
    /// The caller's name for this heartbeat, so that a repeated one counts once.
    pub operation: Option<String>,
}

impl Beat {
    /// A plain heartbeat.
    pub fn of(session: &str) -> Beat {
        Beat { session: session.to_owned(), ..Beat::default() }
    }
}

/// A heartbeat that was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Heartbeaten {
    /// Whose it is.
    pub session_id: String,
    /// What it calls itself.
    pub agent_name: String,
    /// Whether it is at work.
    pub status: AgentStatus,
    /// When it was heard.
    pub last_seen_at: Timestamp,
    /// What it works on.
    pub current_work: Option<String>,
    /// How far it is.
    pub progress: Option<String>,
    /// Whether it had been taken for dead.
    pub recovered: bool,
    /// The work items that it held then and lost.
    pub lost: Vec<String>,
    /// The last revision of the board that concerns it.
    pub revision: Revision,
}

impl Pending for Heartbeaten {
    fn resolve(&mut self, first: Revision) {
        self.revision.resolve(first);
    }
}

impl Agents<'_> {
    /// Records a heartbeat.
    ///
    /// ```
    /// # use blackboard::{Board, agent::{Beat, Register}};
    /// # let board = Board::memory();
    /// let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// let beat = board.agents().heartbeat(&Beat {
    ///     progress: Some("Schema done".to_owned()),
    ///     ..Beat::of(&ivy)
    /// })?;
    /// assert!(!beat.recovered);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn heartbeat(&self, beat: &Beat) -> Result<Heartbeaten> {
        let beat = self.cleaned_beat(beat)?;
        let mut wanted = vec![Wanted::Row(Key::Agent(beat.session.clone()))];
        wanted.extend(beat.work_item.iter().map(|item| Wanted::Row(Key::WorkItem(item.clone()))));
        self.board.commit_once(beat.operation.as_deref(), "agent heartbeat", &wanted, |tx| {
            let agent = existing(tx, &beat.session)?;
            let item = beat.work_item.as_deref().map(|item| crate::work::existing(tx, item)).transpose()?;
            let lost = match agent.status {
                AgentStatus::Stale => lost_at(tx, agent.revision)?,
                _ => Vec::new(),
            };
            decide(&beat, &agent, item.as_ref(), lost, tx.now())
        })
    }

    fn cleaned_beat(self, beat: &Beat) -> Result<Beat> {
        let rules = &self.board.settings().text;
        let field = |text: &Option<String>| -> Result<Option<String>> {
            Ok(text.as_deref().map(|text| rules.field(text)).transpose()?.filter(|text| !text.is_empty()))
        };
        rules.check_unaltered(beat.metadata.iter().map(Metadata::as_str))?;
        Ok(Beat { progress: field(&beat.progress)?, work: field(&beat.work)?, ..beat.clone() })
    }
}

fn decide(
    beat: &Beat,
    before: &Agent,
    item: Option<&WorkItem>,
    lost: Vec<String>,
    now: Timestamp,
) -> Result<(Changes, Heartbeaten)> {
    if before.status == AgentStatus::Completed {
        return Err(before.has_ended());
    }
    let recovered = before.status == AgentStatus::Stale;
    let mut agent = before.clone();
    agent.status = beat.status.filter(|status| status.is_live()).unwrap_or(AgentStatus::Active);
    agent.last_seen_at = now;
    agent.last_beat_at = now;
    agent.ended_at = None;
    agent.current_work = beat.work.clone().or(agent.current_work);
    agent.progress = beat.progress.clone().or(agent.progress);
    agent.metadata = beat.metadata.clone().or(agent.metadata);

    let mut changes = Changes::new();
    let name = &agent.agent_name;
    let event = |event_type, summary| {
        NewEvent::new(event_type, TargetType::Agent, &agent.session_id, summary).by(Some(&agent.session_id))
    };
    let mut revision = agent.revision;
    if recovered {
        let summary = match lost.len() {
            0 => format!("Agent \"{name}\" recovered"),
            count => format!("Agent \"{name}\" recovered; it had lost {count} work item(s)"),
        };
        revision = changes.event(event(EventType::AgentRecovered, summary).with("lost", lost.clone()));
    } else if (before.status, &before.current_work, &before.metadata)
        != (agent.status, &agent.current_work, &agent.metadata)
    {
        let summary = match (&agent.current_work, before.current_work == agent.current_work) {
            (Some(work), false) => format!("Agent \"{name}\" works on \"{work}\""),
            _ => format!("Agent \"{name}\" is {}", agent.status),
        };
        revision =
            changes.event(event(EventType::AgentUpdated, summary).with("status", agent.status.as_str()));
    }
    if let Some(progress) = &beat.progress {
        let mut told = event(EventType::HeartbeatReceived, format!("Agent \"{name}\": {progress}"));
        if beat.milestone {
            told = told.with("milestone", true);
        }
        if let Some(item) = item {
            told = told.with("work_item_id", item.item_id.as_str());
        }
        revision = changes.event(told);
    }
    agent.revision = revision;
    changes.heartbeats.push(Heartbeat {
        session_id: agent.session_id.clone(),
        timestamp: now,
        progress: beat.progress.clone(),
        work_item_id: item.map(|item| item.item_id.clone()),
    });
    let answer = Heartbeaten {
        session_id: agent.session_id.clone(),
        agent_name: agent.agent_name.clone(),
        status: agent.status,
        last_seen_at: now,
        current_work: agent.current_work.clone(),
        progress: beat.progress.clone(),
        recovered,
        lost,
        revision,
    };
    changes.put(agent);
    Ok((changes, answer))
}

/// The work items that the commit at `revision` set free: what a session lost when it was marked stale. Nothing is
/// known of them if that commit was pruned.
fn lost_at(tx: &dyn Tx, revision: Revision) -> Result<Vec<String>> {
    let commit = tx.events(&Page::after(revision.previous(), 1))?;
    Ok(commit
        .iter()
        .filter(|event| event.commit_id == revision && event.event_type == EventType::StaleLocksReleased)
        .flat_map(items_of)
        .collect())
}

fn items_of(event: &Event) -> Vec<String> {
    let metadata = event.metadata.as_ref().map(Metadata::to_map).unwrap_or_default();
    let items = metadata.get("items").and_then(|items| items.as_array()).cloned().unwrap_or_default();
    items.iter().filter_map(|item| item.get("item_id")?.as_str().map(str::to_owned)).collect()
}
