//! `agent heartbeat`: reports that a session is alive, with optional progress.

use serde::{Deserialize, Serialize};

use super::{Agent, AgentStatus, Agents, HeartbeatRow, existing};
use crate::clock::Timestamp;
use crate::entry::{EntryVersion, FILES, LOCKS, Lease};
use crate::error::Result;
use crate::event::{Event, EventType, NewEvent, TargetType};
use crate::fingerprint::Fingerprint;
use crate::metadata::Metadata;
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Page, Prefetch, Tx};
use crate::text::{Cleaner, IN_A_SENTENCE, Kind, StoredText, TextChanges, excerpt};
use crate::work::WorkItem;

/// The content of a heartbeat.
#[derive(Clone, Debug, Default)]
pub struct Heartbeat {
    /// The session that sends it.
    pub session: String,
    /// A progress note. Only a heartbeat with a progress note has an event.
    pub progress: Option<String>,
    /// Whether that progress is a milestone.
    pub milestone: bool,
    /// The current work from now on. An empty text clears it.
    pub work: Option<String>,
    /// The work item that the progress note is about.
    pub work_item: Option<String>,
    /// The new status. Without it the session becomes active.
    pub status: Option<AgentStatus>,
    /// Metadata to store with the session.
    pub metadata: Option<Metadata>,
    /// The idempotency key: a repeated call with the same key counts once.
    pub operation: Option<String>,
}

impl Heartbeat {
    /// A plain heartbeat.
    pub fn of(session: &str) -> Heartbeat {
        Heartbeat { session: session.to_owned(), ..Heartbeat::default() }
    }

    fn asked(&self) -> Fingerprint {
        Fingerprint::new()
            .text(&self.session)
            .maybe(self.progress.as_ref())
            .of(self.milestone)
            .maybe(self.work.as_ref())
            .maybe(self.work_item.as_ref())
            .maybe(self.status)
            .maybe(self.metadata.as_ref().map(Metadata::as_str))
    }
}

/// A heartbeat that was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeartbeatRecorded {
    /// The session that sent it.
    pub session_id: String,
    /// The name of its agent.
    pub agent_name: String,
    /// Its status.
    pub status: AgentStatus,
    /// When the heartbeat was recorded.
    pub last_seen_at: Timestamp,
    /// Its current work.
    pub current_work: Option<String>,
    /// The progress note.
    pub progress: Option<String>,
    /// Whether the session was stale before.
    pub recovered: bool,
    /// The work items that it lost when it was marked stale.
    pub lost: Vec<String>,
    /// Its other holdings that it lost then: locks, file reservations, leased entries.
    #[serde(default)]
    pub lost_leases: Vec<Lease>,
    /// The last revision of the board that changed the session.
    pub revision: Revision,
    /// The changes to its text.
    #[serde(flatten)]
    pub text: TextChanges,
}

/// A heartbeat as it is remembered for a retry, with what its answer does not serialize.
#[derive(Serialize, Deserialize)]
struct RememberedHeartbeat {
    #[serde(flatten)]
    recorded: HeartbeatRecorded,
    /// Older programs did not remember it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stored: Vec<StoredText>,
}

impl Pending for RememberedHeartbeat {
    fn resolve(&mut self, first: Revision) {
        self.recorded.resolve(first);
    }
}

impl Pending for HeartbeatRecorded {
    fn resolve(&mut self, first: Revision) {
        self.revision.resolve(first);
    }
}

impl Agents<'_> {
    /// Records a heartbeat.
    ///
    /// ```
    /// # use blackboard::{Board, agent::{Heartbeat, Register}};
    /// # let board = Board::memory();
    /// let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// let beat = board.agents().heartbeat(&Heartbeat {
    ///     progress: Some("Schema done".to_owned()),
    ///     ..Heartbeat::of(&ivy)
    /// })?;
    /// assert!(!beat.recovered);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn heartbeat(&self, beat: &Heartbeat) -> Result<HeartbeatRecorded> {
        let (beat, text) = self.cleaned_beat(beat)?;
        let mut prefetch = vec![Prefetch::Row(Key::Agent(beat.session.clone()))];
        prefetch.extend(beat.work_item.iter().map(|item| Prefetch::Row(Key::WorkItem(item.clone()))));
        let asked = || beat.asked();
        let (operation, session) = (beat.operation.as_deref(), Some(&*beat.session));
        let remembered =
            self.board.commit_once(operation, session, "agent heartbeat", asked, &prefetch, |tx| {
                let agent = existing(tx, &beat.session)?;
                let (changes, recorded) = beat_of(tx, &beat, &agent)?;
                let (recorded, stored) =
                    (HeartbeatRecorded { text: text.clone(), ..recorded }, text.stored.clone());
                Ok((changes, RememberedHeartbeat { recorded, stored }))
            })?;
        let RememberedHeartbeat { mut recorded, stored } = remembered;
        recorded.text.stored = stored;
        Ok(recorded)
    }

    fn cleaned_beat(self, beat: &Heartbeat) -> Result<(Heartbeat, TextChanges)> {
        let rules = &self.board.settings().text;
        let mut cleaner = Cleaner::new(rules);
        rules.check_json(beat.metadata.iter().map(Metadata::as_str))?;
        let progress = cleaner.maybe("progress", Kind::Summary, beat.progress.as_ref())?;
        let progress = progress.filter(|text| !text.is_empty());
        let work = cleaner.maybe("work", Kind::Field, beat.work.as_ref())?;
        // A text that contains only markup is ignored. Only an empty text clears the current work.
        let says_something =
            |work: &String| !work.is_empty() || beat.work.as_ref().is_some_and(String::is_empty);
        let beat = Heartbeat { progress, work: work.filter(says_something), ..beat.clone() };
        Ok((beat, cleaner.changes()))
    }
}

/// The changes for a heartbeat whose text was cleaned.
pub(super) fn beat_of(tx: &dyn Tx, beat: &Heartbeat, agent: &Agent) -> Result<(Changes, HeartbeatRecorded)> {
    let item = beat.work_item.as_deref().map(|item| crate::work::existing(tx, item)).transpose()?;
    let lost = match agent.status {
        AgentStatus::Stale => Lost::at(tx, agent.revision)?,
        AgentStatus::Active | AgentStatus::Idle | AgentStatus::Completed => Lost::default(),
    };
    decide(beat, agent, item.as_ref(), lost, tx.now())
}

fn decide(
    beat: &Heartbeat,
    before: &Agent,
    item: Option<&WorkItem>,
    lost: Lost,
    now: Timestamp,
) -> Result<(Changes, HeartbeatRecorded)> {
    if before.status == AgentStatus::Completed {
        return Err(before.has_ended());
    }
    let recovered = before.status == AgentStatus::Stale;
    let mut agent = before.clone();
    agent.status = beat.status.filter(|status| status.is_live()).unwrap_or(AgentStatus::Active);
    agent.last_seen_at = now;
    agent.last_beat_at = now;
    agent.ended_at = None;
    agent.current_work = beat.work.clone().or(agent.current_work).filter(|work| !work.is_empty());
    // The title of a claimed item is not new information. The work that the agent reported before stays.
    if beat.work != before.current_work {
        agent.own_work = beat.work.clone().or(agent.own_work).filter(|work| !work.is_empty());
    }
    agent.progress = beat.progress.clone().or(agent.progress);
    agent.metadata = beat.metadata.clone().or(agent.metadata);

    let mut changes = Changes::new();
    let name = &agent.agent_name;
    let event = |event_type, summary| {
        NewEvent::new(event_type, TargetType::Agent, &agent.session_id, summary).by(Some(&agent.session_id))
    };
    let mut revision = agent.revision;
    if recovered {
        let recovered =
            event(EventType::AgentRecovered, format!("Agent \"{name}\" recovered{}", lost.summary()))
                .with("lost", lost.items.clone());
        revision = changes.event(recovered);
    } else if (before.status, &before.current_work, &before.metadata)
        != (agent.status, &agent.current_work, &agent.metadata)
    {
        let summary = match (&agent.current_work, before.current_work == agent.current_work) {
            (Some(work), false) => format!("Agent \"{name}\" is working on \"{work}\""),
            (None, false) => format!("Agent \"{name}\" has no current work"),
            _ => format!("Agent \"{name}\" is {}", agent.status),
        };
        revision =
            changes.event(event(EventType::AgentUpdated, summary).with("status", agent.status.as_str()));
    }
    if let Some(progress) = &beat.progress {
        let summary = format!("Agent \"{name}\": {}", excerpt(progress, IN_A_SENTENCE));
        let mut reported = event(EventType::HeartbeatReceived, summary).with("progress", progress.as_str());
        if beat.milestone {
            reported = reported.with("milestone", true);
        }
        if let Some(item) = item {
            reported = reported.with("work_item_id", item.item_id.as_str());
        }
        revision = changes.event(reported);
    }
    agent.revision = revision;
    changes.put(HeartbeatRow {
        session_id: agent.session_id.clone(),
        timestamp: now,
        progress: beat.progress.clone(),
        work_item_id: item.map(|item| item.item_id.clone()),
    });
    let answer = HeartbeatRecorded {
        session_id: agent.session_id.clone(),
        agent_name: agent.agent_name.clone(),
        status: agent.status,
        last_seen_at: now,
        current_work: agent.current_work.clone(),
        progress: beat.progress.clone(),
        recovered,
        lost: lost.items,
        lost_leases: lost.leases,
        revision,
        text: TextChanges::default(),
    };
    changes.put(agent);
    Ok((changes, answer))
}

/// What a session lost when it was marked stale. Empty if that commit was pruned.
#[derive(Default)]
struct Lost {
    items: Vec<String>,
    leases: Vec<Lease>,
}

impl Lost {
    /// The holdings that the commit at `revision` released.
    fn at(tx: &dyn Tx, revision: Revision) -> Result<Lost> {
        let mut lost = Lost::default();
        let page = Page::after(revision.previous(), 1);
        tx.prefetch(&[Prefetch::Events(page)])?;
        let mut events = tx.events(&page)?;
        events.retain(|event| event.commit_id == revision);
        lost.items.extend(events.iter().flat_map(Event::released_items));
        events.retain(|event| event.event_type == EventType::EntryDeleted);
        tx.prefetch(&events.iter().map(|event| Prefetch::Version(event.id)).collect::<Vec<_>>())?;
        let removals =
            events.iter().map(|event| tx.version(event.id)).collect::<Result<Vec<Option<EntryVersion>>>>()?;
        let previous = removals.iter().flatten().filter_map(|removal| removal.previous);
        tx.prefetch(&previous.map(Prefetch::Version).collect::<Vec<_>>())?;
        for removal in removals {
            // The removed entry's value is in the version before, unless retention has pruned it.
            let before = match removal.as_ref().and_then(|removal| removal.previous) {
                Some(previous) => tx.version(previous)?,
                None => None,
            };
            lost.leases.extend(before.or(removal).map(|version| Lease::of(&version.entry)));
        }
        Ok(lost)
    }

    /// The end of a sentence that lists the lost holdings.
    fn summary(&self) -> String {
        let of = |scope: &str| self.leases.iter().filter(|lease| lease.scope == scope).count();
        let (locks, files) = (of(LOCKS), of(FILES));
        let parts = [
            (self.items.len(), "work item", "work items"),
            (locks, "lock", "locks"),
            (files, "file reservation", "file reservations"),
            (self.leases.len() - locks - files, "leased entry", "leased entries"),
        ];
        let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
        let parts =
            parts.map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }));
        let parts: Vec<String> = parts.collect();
        match &parts[..] {
            [] => String::new(),
            [only] => format!("; it lost {only}"),
            [first @ .., last] => format!("; it lost {} and {last}", first.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::an_agent;

    #[test]
    fn lost_holdings_are_listed_by_kind() {
        let lease = |scope: &str| Lease { scope: scope.to_owned(), key: "a".to_owned(), pattern: None };
        for (items, scopes, expected) in [
            (0, &[][..], ""),
            (1, &[], "; it lost 1 work item"),
            (0, &["files"], "; it lost 1 file reservation"),
            (1, &["locks", "team"], "; it lost 1 work item, 1 lock and 1 leased entry"),
        ] {
            let leases = scopes.iter().map(|scope| lease(scope)).collect();
            assert_eq!(Lost { items: vec!["x".to_owned(); items], leases }.summary(), expected);
        }
    }

    #[test]
    fn heartbeat_changes_current_work_only_if_it_has_work() {
        for (before, said, after, event_count) in [
            (None, None, None, 0),
            (None, Some("Lunch"), Some("Lunch"), 1),
            (Some("Lunch"), None, Some("Lunch"), 0),
            (Some("Lunch"), Some("Lunch"), Some("Lunch"), 0),
            (Some("Lunch"), Some("Tea"), Some("Tea"), 1),
            (Some("Lunch"), Some(""), None, 1),
            (None, Some(""), None, 0),
        ] {
            let agent = Agent { current_work: before.map(str::to_owned), ..an_agent("me") };
            let beat = Heartbeat { work: said.map(str::to_owned), ..Heartbeat::of("me") };
            let (changes, answer) = decide(&beat, &agent, None, Lost::default(), Timestamp::EPOCH).unwrap();
            let context = format!("{before:?}, then {said:?}");
            assert_eq!(answer.current_work.as_deref(), after, "{context}");
            assert_eq!(changes.events.len(), event_count, "{context}");
        }
    }
}
