//! Updates: events of other sessions that are relevant to a session.
//!
//! Agents share one event log, and most events are not relevant to a given session. One rule, `is_relevant`, selects
//! them; hooks show them once.

use std::collections::{HashMap, VecDeque};

use serde::Serialize;
use serde_json::Value as Json;

use crate::agent::{Agent, SHORT_ID};
use crate::board::Board;
use crate::entry::{Actor, FILES, LOCKS};
use crate::error::Result;
use crate::event::{ENOUGH_BYTES, EntryChange, Event, EventType, NOTIFIED, TargetType, Versions};
use crate::file::{ActiveReservation, Edit, PathPattern};
use crate::metadata::Metadata;
use crate::revision::Revision;
use crate::scope::Guard;
use crate::store::{Key, Page, Prefetch, Range, Tx};
use crate::unreadable::if_readable;
use crate::work::WorkItem;

/// The most events of one call: the newest.
const LIMIT: usize = 10;

/// How many events are read. A session that was away for longer starts with these.
const LOOKED_AT: usize = 1000;

/// The prefixes of entries that are addressed to a session.
const ADDRESSED: [&str; 2] = ["signal:", "task:"];

/// The updates of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Updates {
    /// The events, oldest first, with their entry changes.
    pub events: Vec<Event>,
    /// How many earlier events were omitted.
    pub left_out: u64,
    /// How many events were read.
    pub looked_at: u64,
}

impl Updates {
    /// Whether there are no updates.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The relevant events of a part of the event log.
    pub(crate) fn between(
        board: &Board,
        tx: &dyn Tx,
        agent: &Agent,
        after: Revision,
        until: Revision,
    ) -> Result<Updates> {
        // A page of this many events has all of them, unless there are more.
        let types: Vec<_> =
            EventType::ALL.iter().filter(|event_type| subject(event_type).is_some()).cloned().collect();
        let mut page = Page { after, until, types: &types, limit: LOOKED_AT };
        tx.prefetch(&[Prefetch::CountEvents(after, until), Prefetch::Events(page)])?;
        let looked_at = tx.count_events(after, until)?;
        if looked_at > LOOKED_AT as u64 {
            tx.prefetch(&[Prefetch::RevisionBack(until, LOOKED_AT as u64)])?;
            page.after = after.max(tx.revision_back(until, LOOKED_AT as u64)?);
            tx.prefetch(&[Prefetch::Events(page)])?;
        }
        let mut updates = Updates { events: Vec::new(), left_out: 0, looked_at };
        let mut recipient = Recipient::new(agent);
        // Older ones are dropped at once: their values may be large.
        let mut kept = VecDeque::new();
        let mut events = tx.events(&page)?;
        events.retain(|event| !event.is_by(&agent.session_id) && recipient.could_concern(event));
        let guard = Guard::new(board, tx, &Actor::session(&agent.session_id));
        guard.know(Some(agent));
        guard.retain_readable(&mut events)?;
        if events.is_empty() {
            return Ok(updates);
        }
        let mut rows = events.iter().flat_map(EventContext::prefetch).collect();
        let mut versions = Versions::default();
        let mut events = events.into_iter();
        while let Some(next) = events.as_slice().first() {
            if !versions.include(next) {
                let rows = std::mem::take(&mut rows);
                versions = Versions::of(tx, events.as_slice().iter(), rows, ENOUGH_BYTES)?;
            }
            let Some(mut event) = events.next() else { break };
            let about = EventContext::of(tx, &event, &mut versions, &mut recipient)?;
            if is_relevant(&event, &about, &recipient) {
                event.entry = about.change.map(Box::new);
                if kept.len() == LIMIT {
                    kept.pop_front();
                    updates.left_out += 1;
                }
                kept.push_back(event);
            }
        }
        updates.events = kept.into();
        Ok(updates)
    }
}

/// The session that gets the updates.
struct Recipient<'a> {
    agent: &'a Agent,
    /// The files that it edited or was denied, once they were read.
    files: Option<Vec<Edit>>,
    /// Its file reservations, once they were read.
    reserved: Option<Vec<ActiveReservation>>,
    agents: HashMap<String, Option<Agent>>,
    projects: HashMap<String, Option<WorkItem>>,
}

/// What the rule needs to know about an event besides the event itself.
#[derive(Default)]
struct EventContext {
    /// The projects of the event's work item or agent; `None` for one without a project.
    projects: Vec<Option<String>>,
    /// Whether the event's agent is the parent, a delegate or a sibling of the recipient.
    family: bool,
    scope: Option<String>,
    change: Option<EntryChange>,
    /// The worktree and the pattern of the files that it is about.
    files: Option<(String, PathPattern)>,
}

impl<'a> Recipient<'a> {
    fn new(agent: &'a Agent) -> Recipient<'a> {
        Recipient { agent, files: None, reserved: None, agents: HashMap::new(), projects: HashMap::new() }
    }

    /// Whether the event alone may be relevant: most entries are addressed to no session, and most sessions claim for
    /// themselves.
    fn could_concern(&self, event: &Event) -> bool {
        match event.event_type {
            EventType::WorkClaimed => return event.is_assignment_to(&self.agent.session_id),
            EventType::WorkUpdated => return is_about_item_of(event, &self.agent.session_id),
            _ => {}
        }
        match event.target_type {
            Some(TargetType::Entry) => {
                matches!(scope_of(event).as_deref(), Some(LOCKS | FILES))
                    || (event.event_type == EventType::EntryWritten && is_addressed_to(event, self.agent))
            }
            Some(
                TargetType::Agent
                | TargetType::WorkItem
                | TargetType::Project
                | TargetType::Protocol
                | TargetType::Scope,
            )
            | None => true,
        }
    }

    /// Reads what the rule needs for events about files.
    fn look_at_files(&mut self, tx: &dyn Tx) -> Result<()> {
        if self.files.is_none() {
            let session = &self.agent.session_id;
            let edits = Range::edits_of_session(session);
            tx.prefetch(&[
                Prefetch::Candidates(edits.clone(), usize::MAX),
                Prefetch::Candidates(Range::entries(FILES, ""), usize::MAX),
            ])?;
            self.files = Some(tx.candidate_rows(&edits, usize::MAX)?);
            let mut standing = ActiveReservation::peek_all(tx)?;
            standing.retain(|one| one.reservation.session_id == *session);
            self.reserved = Some(standing);
        }
        Ok(())
    }

    /// Whether files that match a pattern concern it: it edited them, was denied them, or has reserved them.
    fn has_to_do_with(&self, worktree: &str, pattern: &PathPattern) -> bool {
        let edits = self.files.iter().flatten();
        let reserved = self.reserved.iter().flatten();
        edits.into_iter().any(|edit| edit.worktree == worktree && pattern.covers(&edit.path))
            || reserved
                .into_iter()
                .any(|one| one.reservation.worktree == worktree && one.pattern.conflicts_with(pattern))
    }
}

impl EventContext {
    /// The rows that [`EventContext::of`] reads, except for those that depend on the version of an entry.
    fn prefetch(event: &Event) -> Vec<Prefetch<'static>> {
        let item = |id: &str| Prefetch::Row(Key::WorkItem(id.to_owned()));
        match (event.target_type, &event.target_id) {
            (Some(TargetType::WorkItem), Some(target)) => vec![item(target)],
            (Some(TargetType::Agent), Some(target)) => {
                let released = event.released_items();
                let released = released.iter().map(|id| item(id));
                released.chain([Prefetch::Row(Key::Agent(target.clone()))]).collect()
            }
            (
                Some(TargetType::Entry | TargetType::Project | TargetType::Protocol | TargetType::Scope)
                | None,
                _,
            )
            | (_, None) => Vec::new(),
        }
    }

    fn of(
        tx: &dyn Tx,
        event: &Event,
        versions: &mut Versions,
        recipient: &mut Recipient<'_>,
    ) -> Result<EventContext> {
        let mut about = EventContext::default();
        let Some(target) = &event.target_id else { return Ok(about) };
        match event.target_type {
            Some(TargetType::WorkItem) => about.add_project_of(tx, target, recipient)?,
            Some(TargetType::Agent) => {
                if !recipient.agents.contains_key(target) {
                    // A row that cannot be read has no project, as one that is gone.
                    let agent = if_readable(tx.peek_row::<Agent>(&Key::Agent(target.clone())))?;
                    recipient.agents.insert(target.clone(), agent);
                }
                if event.event_type == EventType::StaleLocksReleased {
                    for item in event.released_items() {
                        about.add_project_of(tx, &item, recipient)?;
                    }
                } else if let Some(Some(agent)) = recipient.agents.get(target) {
                    about.projects.push(agent.project.clone());
                    about.family =
                        agent.is_related_to(recipient.agent) || agent.is_sibling_of(recipient.agent);
                }
            }
            Some(TargetType::Entry) => {
                about.scope = scope_of(event);
                about.change = versions.take(event);
                if about.scope.as_deref() == Some(FILES) {
                    recipient.look_at_files(tx)?;
                    let change = about.change.as_ref();
                    let stored =
                        change.and_then(|change| change.value.as_ref().or(change.old_value.as_ref()));
                    about.files = stored.and_then(|value| {
                        let json = value.to::<Json>().ok()?;
                        let pattern = PathPattern::parse_stored(json.get("pattern")?.as_str()?).ok()?;
                        Some((json.get("worktree")?.as_str()?.to_owned(), pattern))
                    });
                }
            }
            Some(TargetType::Project | TargetType::Protocol | TargetType::Scope) | None => {}
        }
        Ok(about)
    }

    fn add_project_of(&mut self, tx: &dyn Tx, item: &str, recipient: &mut Recipient<'_>) -> Result<()> {
        if !recipient.projects.contains_key(item) {
            let row = if_readable(tx.peek_row::<WorkItem>(&Key::WorkItem(item.to_owned())))?;
            recipient.projects.insert(item.to_owned(), row);
        }
        if let Some(Some(item)) = recipient.projects.get(item) {
            self.projects.push(item.project_id.clone());
        }
        Ok(())
    }
}

/// The rule. Relevant are: work that another session assigned to the listener; edits of the items that it holds; changes of
/// work in its project or without one; agents that join, leave or become stale there; locks and files that it holds, was denied or has
/// edited; `signal:` and `task:` entries that are addressed to it; windows of the token quota that passed a threshold. Its own
/// events are never relevant.
fn is_relevant(event: &Event, about: &EventContext, recipient: &Recipient<'_>) -> bool {
    let me = &recipient.agent.session_id;
    if event.is_by(me) {
        return false;
    }
    let concerns_me = event.target_id.as_ref() == Some(me);
    let is_here =
        || about.projects.iter().any(|project| project.is_none() || *project == recipient.agent.project);
    let was_mine = || about.change.as_ref().is_some_and(|change| change.session_id.as_ref() == Some(me));
    match subject(&event.event_type) {
        Some(Subject::Assignment) => event.is_assignment_to(me),
        Some(Subject::OwnItem) => is_about_item_of(event, me),
        // An item that was handed over to the listener is reported as an assignment.
        Some(Subject::Work) => is_here() && event.named_session("to").as_ref() != Some(me),
        Some(Subject::Loss) => concerns_me || is_here(),
        Some(Subject::Presence) => is_here() && !about.family,
        Some(Subject::Entry) => match about.scope.as_deref() {
            Some(LOCKS) => was_mine(),
            Some(FILES) => {
                let files = about.files.as_ref();
                was_mine()
                    || files.is_some_and(|(worktree, pattern)| recipient.has_to_do_with(worktree, pattern))
            }
            Some(_) => event.event_type == EventType::EntryWritten && is_addressed_to(event, recipient.agent),
            None => false,
        },
        Some(Subject::Quota) => is_quota_news_for(event, me),
        None => false,
    }
}

/// Whether a session gets an update about a warning of the quota: it is about a window, and the session is not notified
/// otherwise.
fn is_quota_news_for(event: &Event, session: &str) -> bool {
    let metadata = event.metadata.as_ref().map(Metadata::to_map).unwrap_or_default();
    let notified = metadata.get(NOTIFIED).and_then(Json::as_array).into_iter().flatten();
    event.target_id.is_none() && !notified.into_iter().any(|notified| notified.as_str() == Some(session))
}

/// The subject of an update.
enum Subject {
    /// A work item that was assigned to a session.
    Assignment,
    /// The text or another field of an item that a session holds.
    OwnItem,
    /// A work item of a project.
    Work,
    /// A session that was marked stale, or its holdings.
    Loss,
    /// A session that began or ended.
    Presence,
    /// An entry, a lock or reserved files.
    Entry,
    /// A window of the token quota.
    Quota,
}

/// The subject of events of this type; `None` if sessions get no updates about them.
fn subject(event_type: &EventType) -> Option<Subject> {
    match event_type {
        EventType::WorkClaimed => Some(Subject::Assignment),
        EventType::WorkUpdated => Some(Subject::OwnItem),
        EventType::WorkCreated
        | EventType::WorkReleased
        | EventType::WorkCompleted
        | EventType::WorkBlocked
        | EventType::WorkUnblocked => Some(Subject::Work),
        EventType::StaleLocksReleased | EventType::AgentStale => Some(Subject::Loss),
        EventType::AgentRegistered | EventType::AgentRecovered | EventType::AgentDeregistered => {
            Some(Subject::Presence)
        }
        EventType::EntryWritten | EventType::EntryDeleted | EventType::EntryExpired => Some(Subject::Entry),
        EventType::QuotaWarning => Some(Subject::Quota),
        EventType::AgentUpdated
        | EventType::WorkReset
        | EventType::WorkDeleted
        | EventType::MetadataUpdated
        | EventType::ProjectRegistered
        | EventType::ProjectUpdated
        | EventType::ProjectRemoved
        | EventType::ProtocolDefined
        | EventType::ProtocolRemoved
        | EventType::HeartbeatReceived
        | EventType::EntryPurged
        | EventType::EntryEvicted
        | EventType::EntriesCleared
        | EventType::ScopeCreated
        | EventType::ScopeUpdated
        | EventType::ScopeDeleted
        | EventType::ScopeMapped
        | EventType::ScopeUnmapped
        | EventType::PageAdded
        | EventType::PageReplaced
        | EventType::PageInvalidated
        | EventType::Other(_) => None,
    }
}

/// Whether this session held the item of the event.
fn is_about_item_of(event: &Event, session: &str) -> bool {
    event.named_session("held_by").as_deref() == Some(session)
}

/// Whether the key of an entry contains the agent's name or session.
fn is_addressed_to(event: &Event, agent: &Agent) -> bool {
    let Some(key) = &event.target_id else { return false };
    ADDRESSED.iter().any(|prefix| key.starts_with(prefix))
        && key.split(':').skip(1).any(|part| {
            // Other agents see the short id.
            let is_its_id = part.len() >= SHORT_ID && agent.session_id.starts_with(part);
            part == agent.agent_name || part == agent.session_id || is_its_id
        })
}

fn field(event: &Event, name: &str) -> Option<Json> {
    event.metadata.as_ref().map(Metadata::to_map)?.remove(name)
}

fn scope_of(event: &Event) -> Option<String> {
    if event.target_type != Some(TargetType::Entry) {
        return None;
    }
    match field(event, "scope")? {
        Json::String(scope) => Some(scope),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::entry::Value;
    use crate::file::{Mode, Reservation};
    use crate::store::conformance::an_agent;

    fn event(event_type: EventType, target_type: TargetType, target: &str) -> Event {
        Event {
            id: Revision::new(7),
            timestamp: Timestamp::EPOCH,
            event_type,
            actor_id: Some("oak".to_owned()),
            target_id: Some(target.to_owned()),
            target_type: Some(target_type),
            summary: String::new(),
            metadata: None,
            commit_id: Revision::new(7),
            entry: None,
        }
    }

    fn me() -> Agent {
        Agent { project: Some("pai".to_owned()), agent_name: "Ivy".to_owned(), ..an_agent("me") }
    }

    fn in_projects(projects: &[Option<&str>]) -> EventContext {
        let projects = projects.iter().map(|project| project.map(str::to_owned)).collect();
        EventContext { projects, ..EventContext::default() }
    }

    #[test]
    fn windows_of_the_quota_are_updates_for_sessions_that_are_not_notified_otherwise() {
        let agent = me();
        let recipient = Recipient::new(&agent);
        for (target, metadata, expected) in [
            (None, r#"{"provider": "a"}"#, true),
            (None, r#"{"notified": ["oak"]}"#, true),
            (None, r#"{"notified": ["oak", "me"]}"#, false),
            (Some("oak"), "{}", false),
            (Some("me"), "{}", false),
        ] {
            let event = Event {
                target_id: target.map(str::to_owned),
                metadata: Some(Metadata::parse(metadata).unwrap()),
                ..event(EventType::QuotaWarning, TargetType::Agent, "x")
            };
            let relevant = is_relevant(&event, &EventContext::default(), &recipient);
            assert_eq!(relevant, expected, "{target:?} {metadata}");
        }
    }

    #[test]
    fn short_id_is_enough_to_address_a_session() {
        let agent = an_agent("3a815381-96cc-48d9-8f28-05b81429eb63");
        for (key, expected) in [
            ("task:3a815381:review", true),
            ("task:3a815381-96cc-48d9-8f28-05b81429eb63", true),
            ("task:3a81538:review", false),
            ("task:3a815382:review", false),
            ("note:3a815381", false),
        ] {
            let event = event(EventType::EntryWritten, TargetType::Entry, key);
            assert_eq!(is_addressed_to(&event, &agent), expected, "{key}");
        }
    }

    #[test]
    fn updates_cover_work_and_agents_of_the_project_or_without_one() {
        use EventType::{
            AgentDeregistered, AgentRecovered, AgentRegistered, AgentStale, AgentUpdated, HeartbeatReceived,
            ProjectRegistered, StaleLocksReleased, WorkBlocked, WorkClaimed, WorkCompleted, WorkCreated,
            WorkDeleted, WorkReleased, WorkReset, WorkUnblocked,
        };
        let agent = me();
        let recipient = Recipient::new(&agent);
        for (event_type, kept) in [
            (WorkCreated, true),
            (WorkReleased, true),
            (WorkCompleted, true),
            (WorkBlocked, true),
            (WorkUnblocked, true),
            (StaleLocksReleased, true),
            (AgentRegistered, true),
            (AgentRecovered, true),
            (AgentDeregistered, true),
            (AgentStale, true),
            (WorkClaimed, false),
            (WorkReset, false),
            (WorkDeleted, false),
            (AgentUpdated, false),
            (HeartbeatReceived, false),
            (ProjectRegistered, false),
        ] {
            let target = if event_type.as_str().starts_with("work") {
                TargetType::WorkItem
            } else {
                TargetType::Agent
            };
            let event = event(event_type, target, "x");
            for (projects, here) in [
                (&[Some("pai")][..], true),
                (&[None], true),
                (&[Some("other")], false),
                (&[Some("other"), Some("pai")], true),
                (&[], false),
            ] {
                let relevant = is_relevant(&event, &in_projects(projects), &recipient);
                assert_eq!(relevant, kept && here, "{} in {projects:?}", event.event_type);
            }
            let own = Event { actor_id: Some("me".to_owned()), ..event };
            assert!(!is_relevant(&own, &in_projects(&[None]), &recipient), "its own {}", own.event_type);
        }
    }

    #[test]
    fn updates_report_assignments_and_edits_of_held_items_and_not_own_claims() {
        let agent = me();
        let recipient = Recipient::new(&agent);
        for (event_type, actor, field, session, expected) in [
            (EventType::WorkClaimed, "me", "assigned_by", "oak", true),
            (EventType::WorkClaimed, "me", "assigned_by", "me", false),
            (EventType::WorkClaimed, "me", "other", "oak", false),
            (EventType::WorkClaimed, "elm", "assigned_by", "oak", false),
            (EventType::WorkReleased, "oak", "to", "me", false),
            (EventType::WorkReleased, "oak", "to", "elm", true),
            (EventType::WorkReleased, "me", "to", "elm", false),
            (EventType::WorkUpdated, "oak", "held_by", "me", true),
            (EventType::WorkUpdated, "oak", "held_by", "elm", false),
            (EventType::WorkUpdated, "me", "held_by", "me", false),
        ] {
            let fields = serde_json::json!({ field: session }).to_string();
            let event = Event {
                actor_id: Some(actor.to_owned()),
                metadata: Some(Metadata::parse(&fields).unwrap()),
                ..event(event_type, TargetType::WorkItem, "x")
            };
            let relevant = is_relevant(&event, &in_projects(&[None]), &recipient);
            assert_eq!(relevant, expected, "{} by {actor}: {fields}", event.event_type);
        }
    }

    #[test]
    fn updates_omit_delegates_that_start_or_end_but_not_stale_ones() {
        let agent = me();
        let recipient = Recipient::new(&agent);
        let family = || EventContext { family: true, ..in_projects(&[Some("pai")]) };
        for (event_type, expected) in [
            (EventType::AgentRegistered, false),
            (EventType::AgentDeregistered, false),
            (EventType::AgentStale, true),
        ] {
            let event = event(event_type, TargetType::Agent, "x");
            assert_eq!(is_relevant(&event, &family(), &recipient), expected, "{}", event.event_type);
        }
        let found_dead = Event { actor_id: None, ..event(EventType::AgentStale, TargetType::Agent, "me") };
        assert!(is_relevant(&found_dead, &in_projects(&[Some("elsewhere")]), &recipient));
    }

    fn change(scope: &str, session: Option<&str>) -> EntryChange {
        EntryChange {
            scope: scope.to_owned(),
            key: "k".to_owned(),
            value: Some(Value::null()),
            old_value: None,
            revision: Revision::new(1),
            fence: None,
            version: 1,
            author: "Oak".to_owned(),
            tags: Vec::new(),
            metadata: None,
            expires_at: None,
            session_id: session.map(str::to_owned),
        }
    }

    #[test]
    fn lost_locks_are_reported_to_their_holder() {
        let agent = me();
        let recipient = Recipient::new(&agent);
        for (holder, expected) in [(Some("me"), true), (Some("oak"), false), (None, false)] {
            let about = EventContext {
                scope: Some(LOCKS.to_owned()),
                change: Some(change(LOCKS, holder)),
                ..EventContext::default()
            };
            let event = event(EventType::EntryExpired, TargetType::Entry, "deploy");
            assert_eq!(is_relevant(&event, &about, &recipient), expected, "{holder:?}");
        }
    }

    #[test]
    fn file_events_are_reported_to_affected_sessions() {
        let agent = me();
        let mut recipient = Recipient::new(&agent);
        recipient.files = Some(vec![Edit {
            worktree: "/w".to_owned(),
            path: "src/lib.rs".to_owned(),
            session_id: "me".to_owned(),
            tool: None,
            edited_at: None,
            denied_at: Some(Timestamp::EPOCH),
        }]);
        recipient.reserved = Some(vec![ActiveReservation {
            pattern: PathPattern::parse("docs/**").unwrap(),
            reservation: Reservation {
                pattern: "docs/**".to_owned(),
                mode: Mode::Shared,
                note: None,
                repository: "/w".to_owned(),
                worktree: "/w".to_owned(),
                session_id: "me".to_owned(),
                agent_name: "Ivy".to_owned(),
                since: Timestamp::EPOCH,
                expires_at: None,
                fence: Revision::new(1),
            },
        }]);
        for (worktree, pattern, holder, expected) in [
            ("/w", "src/**", "oak", true),
            ("/w", "docs/cli.md", "oak", true),
            ("/w", "tests/**", "oak", false),
            ("/v", "src/**", "oak", false),
            ("/v", "tests/**", "me", true),
        ] {
            let about = EventContext {
                scope: Some(FILES.to_owned()),
                change: Some(change(FILES, Some(holder))),
                files: Some((worktree.to_owned(), PathPattern::parse(pattern).unwrap())),
                ..EventContext::default()
            };
            let event = event(EventType::EntryDeleted, TargetType::Entry, "k");
            assert_eq!(is_relevant(&event, &about, &recipient), expected, "{pattern} in {worktree}");
        }
    }

    #[test]
    fn addressed_entries_are_reported_to_their_recipient() {
        let agent = me();
        let recipient = Recipient::new(&agent);
        for (key, expected) in [
            ("signal:Ivy:stop", true),
            ("signal:build:Ivy", true),
            ("task:me", true),
            ("task:review:me:7", true),
            ("signal:Oak:stop", false),
            ("signal:Ivys", false),
            ("signal:", false),
            ("result:Ivy", false),
            ("Ivy:signal:x", false),
        ] {
            let event = event(EventType::EntryWritten, TargetType::Entry, key);
            let about = EventContext { scope: Some("default".to_owned()), ..EventContext::default() };
            assert_eq!(is_relevant(&event, &about, &recipient), expected, "{key}");
            let removed = Event { event_type: EventType::EntryDeleted, ..event };
            assert!(!is_relevant(&removed, &about, &recipient), "{key} was removed");
        }
    }
}
