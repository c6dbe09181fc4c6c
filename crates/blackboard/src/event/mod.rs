//! Events: the event log of the board.
//!
//! Every change of shared state commits together with its events. An event's id is the revision of the board at which
//! it happened. `observe` reads the event log from a cursor; `subscribe` follows it, by a
//! [`Follower`](crate::follow::Follower).
//!
//! | File | What it is about |
//! |---|---|
//! | `observe.rs` | events since a cursor or moment |
//! | `page.rs` | pages of the event log, without the values of entries |
//! | `subscribe.rs`, `subscriber.rs` | the events of a follower one at a time: as an iterator, on a thread, through a channel |
//! | `filter.rs` | conditions for events |
//! | `severity.rs` | how urgent an event is |
//! | `quota_warning.rs` | the event of the token quota |
//! | `scan.rs`, `change.rs` | reading the event log in complete commits, with entry changes |

mod change;
mod filter;
mod observe;
mod page;
mod quota_warning;
mod scan;
mod severity;
mod subscribe;
mod subscriber;
mod summary;

use std::fmt;

use serde::Serialize;

pub use self::change::EntryChange;
pub(crate) use self::change::{FIRST_VALUES, Versions};
pub(crate) use self::filter::Filters;
pub use self::filter::{Custom, EventKind, Filter};
pub use self::observe::{Events, Observation, Since};
pub use self::page::{Lines, LogPage, LogView};
pub(crate) use self::quota_warning::NOTIFIED;
pub use self::quota_warning::QuotaWarning;
pub use self::scan::Batch;
pub(crate) use self::scan::{ENOUGH_BYTES, Scan, Scanned};
pub use self::severity::Severity;
pub use self::subscribe::Subscription;
pub use self::subscriber::{Receiver, Subscriber};
use crate::clock::Timestamp;
use crate::entry::{EntryVersion, FILES, LOCKS};
use crate::metadata::Metadata;
use crate::revision::Revision;
use crate::store::record::{Cell, Column, StoredCell, StoredRow};

macro_rules! event_types {
    ($($(#[doc = $doc:literal])+ $variant:ident = $text:literal;)+) => {
        /// The types of events. Each is listed once.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum EventType {
            $($(#[doc = $doc])+ $variant,)+
            /// A type that this version does not know.
            Other(Box<str>),
        }

        impl EventType {
            /// Every type that this version writes.
            pub const ALL: &'static [EventType] = &[$(EventType::$variant,)+];

            /// The name in the event log.
            pub fn as_str(&self) -> &str {
                match self {
                    $(EventType::$variant => $text,)+
                    EventType::Other(name) => name,
                }
            }

            /// The type with this name in the event log.
            pub fn from_name(name: &str) -> EventType {
                match name {
                    $($text => EventType::$variant,)+
                    other => EventType::Other(other.into()),
                }
            }
        }
    };
}

event_types! {
    /// A session registered, or an ended one registered again.
    AgentRegistered = "agent_registered";
    /// A session ended normally.
    AgentDeregistered = "agent_deregistered";
    /// A session was marked stale.
    AgentStale = "agent_stale";
    /// A stale session is active again.
    AgentRecovered = "agent_recovered";
    /// A session changed its work, status or other visible fields.
    AgentUpdated = "agent_updated";
    /// A work item was created.
    WorkCreated = "work_created";
    /// A session claimed a work item.
    WorkClaimed = "work_claimed";
    /// A session released a work item.
    WorkReleased = "work_released";
    /// A session completed a work item.
    WorkCompleted = "work_completed";
    /// A work item is blocked by another one.
    WorkBlocked = "work_blocked";
    /// A work item is no longer blocked.
    WorkUnblocked = "work_unblocked";
    /// A work item was reset.
    WorkReset = "work_reset";
    /// The title, description or another field of a work item was changed.
    WorkUpdated = "work_updated";
    /// A work item was deleted.
    WorkDeleted = "work_deleted";
    /// Metadata of a work item was changed.
    MetadataUpdated = "metadata_updated";
    /// A project was registered.
    ProjectRegistered = "project_registered";
    /// A project was changed.
    ProjectUpdated = "project_updated";
    /// A project was removed.
    ProjectRemoved = "project_removed";
    /// A protocol was defined.
    ProtocolDefined = "protocol_defined";
    /// A protocol was removed.
    ProtocolRemoved = "protocol_removed";
    /// A session reported progress.
    HeartbeatReceived = "heartbeat_received";
    /// The work items of a stale session were released.
    StaleLocksReleased = "stale_locks_released";
    /// An entry was created or changed.
    EntryWritten = "entry_written";
    /// An entry was deleted.
    EntryDeleted = "entry_deleted";
    /// An entry expired.
    EntryExpired = "entry_expired";
    /// An entry was removed because its scope was full.
    EntryEvicted = "entry_evicted";
    /// A key was erased with its history.
    EntryPurged = "entry_purged";
    /// Every entry that matches a pattern was deleted.
    EntriesCleared = "entries_cleared";
    /// A scope got policies.
    ScopeCreated = "scope_created";
    /// Policies of a scope were changed.
    ScopeUpdated = "scope_updated";
    /// The policies of a scope were deleted, perhaps with its entries.
    ScopeDeleted = "scope_deleted";
    /// A scope was mapped into pages.
    ScopeMapped = "scope_mapped";
    /// The pages of a scope were removed.
    ScopeUnmapped = "scope_unmapped";
    /// A page of a mapped scope was added.
    PageAdded = "page_added";
    /// A page of a mapped scope was replaced, because its entries changed.
    PageReplaced = "page_replaced";
    /// A page of a mapped scope was removed, because no entry is left in it.
    PageInvalidated = "page_invalidated";
    /// A window or a session passed a threshold of the token quota.
    QuotaWarning = "quota_warning";
}

impl EventType {
    /// The type of an event whose stored values cannot be read. No event is stored with it.
    pub const UNREADABLE: &'static str = "unreadable";
}

impl fmt::Display for EventType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl Serialize for EventType {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetType {
    /// A session.
    Agent,
    /// A work item.
    WorkItem,
    /// A project.
    Project,
    /// A protocol.
    Protocol,
    /// An entry; its scope is in the event's metadata.
    Entry,
    /// A scope.
    Scope,
}

impl TargetType {
    const ALL: [TargetType; 6] = [
        TargetType::Agent,
        TargetType::WorkItem,
        TargetType::Project,
        TargetType::Protocol,
        TargetType::Entry,
        TargetType::Scope,
    ];

    /// The name in the event log.
    pub fn as_str(self) -> &'static str {
        match self {
            TargetType::Agent => "agent",
            TargetType::WorkItem => "work_item",
            TargetType::Project => "project",
            TargetType::Protocol => "protocol",
            TargetType::Entry => "entry",
            TargetType::Scope => "scope",
        }
    }

    /// The type with this name in the event log.
    pub fn from_name(name: &str) -> Option<TargetType> {
        TargetType::ALL.into_iter().find(|target_type| target_type.as_str() == name)
    }
}

impl Column for EventType {
    fn cell(&self) -> Cell<'_> {
        Cell::Text(self.as_str())
    }

    fn read(cell: &StoredCell<'_>) -> crate::Result<EventType> {
        cell.text().map(EventType::from_name)
    }
}

/// A type that this program does not know becomes `None`.
impl Column for Option<TargetType> {
    fn cell(&self) -> Cell<'_> {
        self.map_or(Cell::Null, |target_type| Cell::Text(target_type.as_str()))
    }

    fn read(cell: &StoredCell<'_>) -> crate::Result<Option<TargetType>> {
        Ok(if cell.is_null() { None } else { TargetType::from_name(cell.text()?) })
    }
}

/// The names in human output of events that are stored under other types.
mod names {
    pub(super) const LOCK_ACQUIRED: &str = "lock_acquired";
    pub(super) const LOCK_RELEASED: &str = "lock_released";
    pub(super) const FILES_RESERVED: &str = "files_reserved";
    pub(super) const FILES_RELEASED: &str = "files_released";
    pub(super) const PROGRESS: &str = "progress";
}

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// Its revision.
    pub id: Revision,
    /// When it happened.
    pub timestamp: Timestamp,
    /// Its type.
    pub event_type: EventType,
    /// The session that caused it.
    pub actor_id: Option<String>,
    /// The id of its target.
    pub target_id: Option<String>,
    /// The type of its target.
    pub target_type: Option<TargetType>,
    /// One line for human output.
    pub summary: String,
    /// Details for JSON output.
    #[serde(serialize_with = "crate::metadata::or_empty")]
    pub metadata: Option<Metadata>,
    /// The first event of the same commit.
    pub commit_id: Revision,
    /// The entry change, if it is about an entry. Readers of the event log get it; engines do not store it here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<Box<EntryChange>>,
}

impl Event {
    /// Its columns, in the order of [`Event::cells`] and of the schema.
    pub(crate) const COLUMNS: &'static str =
        "id, timestamp, event_type, actor_id, target_id, target_type, summary, metadata, commit_id";

    /// Whether this session caused it itself. The actor of a claim did not if another session assigned the item to
    /// it.
    pub fn is_by(&self, session: &str) -> bool {
        self.actor_id.as_deref() == Some(session) && !self.is_assignment_to(session)
    }

    /// Whether another session claimed a work item for this one.
    pub(crate) fn is_assignment_to(&self, session: &str) -> bool {
        self.event_type == EventType::WorkClaimed
            && self.actor_id.as_deref() == Some(session)
            && self.named_session("assigned_by").is_some_and(|by| by != session)
    }

    /// The session that a field of the metadata names.
    pub(crate) fn named_session(&self, field: &str) -> Option<String> {
        let session = self.metadata.as_ref().map(Metadata::to_map)?.remove(field)?;
        session.as_str().map(str::to_owned)
    }

    /// The name of its type in human output: locks and file reservations are stored as entries, and progress notes as
    /// heartbeats. A filter accepts it.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register, event::Since, lock::Acquire};
    /// # let board = Board::memory();
    /// # let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// board.locks().acquire(&Acquire::of("deploy", &ivy))?;
    /// let newest = board.events().observe(&Since::Last(1), &[])?;
    /// let batch = board.events().next(&newest, newest.after, 1)?.expect("one event");
    /// assert_eq!(batch.events[0].shown_type(), "lock_acquired");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn shown_type(&self) -> &str {
        let is_write = match &self.event_type {
            EventType::HeartbeatReceived => return names::PROGRESS,
            EventType::EntryWritten => true,
            EventType::EntryDeleted | EventType::EntryExpired => false,
            EventType::AgentRegistered
            | EventType::AgentDeregistered
            | EventType::AgentStale
            | EventType::AgentRecovered
            | EventType::AgentUpdated
            | EventType::WorkCreated
            | EventType::WorkClaimed
            | EventType::WorkReleased
            | EventType::WorkCompleted
            | EventType::WorkBlocked
            | EventType::WorkUnblocked
            | EventType::WorkReset
            | EventType::WorkUpdated
            | EventType::WorkDeleted
            | EventType::MetadataUpdated
            | EventType::ProjectRegistered
            | EventType::ProjectUpdated
            | EventType::ProjectRemoved
            | EventType::ProtocolDefined
            | EventType::ProtocolRemoved
            | EventType::StaleLocksReleased
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
            | EventType::QuotaWarning
            | EventType::Other(_) => return self.event_type.as_str(),
        };
        let in_metadata = || self.metadata.as_ref()?.to_map().remove("scope")?.as_str().map(str::to_owned);
        let scope = self.entry.as_ref().map(|change| change.scope.clone()).or_else(in_metadata);
        match (scope.as_deref(), is_write) {
            (Some(LOCKS), true) => names::LOCK_ACQUIRED,
            (Some(LOCKS), false) => names::LOCK_RELEASED,
            (Some(FILES), true) => names::FILES_RESERVED,
            (Some(FILES), false) => names::FILES_RELEASED,
            _ => self.event_type.as_str(),
        }
    }

    /// The work items that a session lost when it was marked stale; none if the event is about something else.
    pub(crate) fn released_items(&self) -> Vec<String> {
        if self.event_type != EventType::StaleLocksReleased {
            return Vec::new();
        }
        let items = self.metadata.as_ref().map(Metadata::to_map).and_then(|mut map| map.remove("items"));
        let items = items.as_ref().and_then(serde_json::Value::as_array).into_iter().flatten();
        items.filter_map(|item| Some(item.get("item_id")?.as_str()?.to_owned())).collect()
    }

    /// The values of its columns.
    pub(crate) fn cells(&self) -> [Cell<'_>; 9] {
        [
            self.id.cell(),
            self.timestamp.cell(),
            self.event_type.cell(),
            self.actor_id.cell(),
            self.target_id.cell(),
            self.target_type.cell(),
            self.summary.cell(),
            self.metadata.cell(),
            self.commit_id.cell(),
        ]
    }

    /// An event from its stored values. One that another program has made unreadable has the type
    /// [`EventType::UNREADABLE`]: otherwise no reader could continue after it.
    pub(crate) fn read(row: &mut StoredRow<'_>) -> crate::Result<Event> {
        let id = row.take()?;
        let timestamp = row.take();
        // The epoch replaces a time that cannot be read.
        let readable_time = *timestamp.as_ref().unwrap_or(&Timestamp::EPOCH);
        match timestamp.and_then(|timestamp| Event::read_after_time(id, timestamp, row)) {
            Err(error) if error.is_unreadable_row() => Ok(Event::unreadable(id, readable_time, &error)),
            event => event,
        }
    }

    pub(crate) fn unreadable(id: Revision, timestamp: Timestamp, error: &crate::Error) -> Event {
        let reason = error.damaged_value().map_or_else(|| error.to_string(), ToString::to_string);
        Event {
            id,
            timestamp,
            event_type: EventType::Other(EventType::UNREADABLE.into()),
            actor_id: None,
            target_id: None,
            target_type: None,
            summary: format!("This event cannot be read: {reason}"),
            metadata: None,
            commit_id: id,
            entry: None,
        }
    }

    fn read_after_time(id: Revision, timestamp: Timestamp, row: &mut StoredRow<'_>) -> crate::Result<Event> {
        Ok(Event {
            id,
            timestamp,
            event_type: row.take()?,
            actor_id: row.take()?,
            target_id: row.take()?,
            target_type: row.take()?,
            summary: row.take()?,
            metadata: row.take()?,
            commit_id: row.take()?,
            entry: None,
        })
    }
}

/// An event that has no id and no time yet.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    pub(crate) event_type: EventType,
    pub(crate) actor_id: Option<String>,
    pub(crate) target_id: Option<String>,
    pub(crate) target_type: Option<TargetType>,
    pub(crate) summary: String,
    pub(crate) metadata: Option<Metadata>,
    /// The version of its entry.
    pub version: Option<Box<EntryVersion>>,
}

impl NewEvent {
    /// An event about `target`, without an actor.
    pub(crate) fn new(
        event_type: EventType,
        target_type: TargetType,
        target: &str,
        summary: impl Into<String>,
    ) -> NewEvent {
        NewEvent {
            event_type,
            actor_id: None,
            target_id: Some(target.to_owned()),
            target_type: Some(target_type),
            summary: summary.into(),
            metadata: None,
            version: None,
        }
    }

    /// An event that a session caused.
    #[must_use]
    pub(crate) fn by(mut self, session: Option<&str>) -> NewEvent {
        self.actor_id = session.map(str::to_owned);
        self
    }

    /// Adds a detail.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Into<serde_json::Value>) -> NewEvent {
        let mut map = self.metadata.take().map(|metadata| metadata.to_map()).unwrap_or_default();
        map.insert(name.to_owned(), value.into());
        self.metadata = Some(map.into());
        self
    }

    /// Sets all details.
    #[must_use]
    pub(crate) fn with_all(mut self, metadata: serde_json::Map<String, serde_json::Value>) -> NewEvent {
        self.metadata = Some(metadata.into());
        self
    }

    /// Adds the version of its entry.
    #[must_use]
    pub(crate) fn of_version(mut self, version: EntryVersion) -> NewEvent {
        self.version = Some(Box::new(version));
        self
    }

    /// The event with the id and time of its commit.
    pub fn at(self, id: Revision, commit_id: Revision, timestamp: Timestamp) -> Event {
        let NewEvent { event_type, actor_id, target_id, target_type, summary, metadata, .. } = self;
        Event {
            id,
            timestamp,
            event_type,
            actor_id,
            target_id,
            target_type,
            summary,
            metadata,
            commit_id,
            entry: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_event_of_a_stale_session_names_lost_items() {
        let items = serde_json::json!([{"item_id": "x", "fence": 1}, {"item_id": 7}, "y", {"item_id": "z"}]);
        for event_type in EventType::ALL {
            let told =
                |event: NewEvent| event.at(Revision::ZERO, Revision::ZERO, Timestamp::EPOCH).released_items();
            let event = || NewEvent::new(event_type.clone(), TargetType::Agent, "me", "");
            let is_loss = *event_type == EventType::StaleLocksReleased;
            let expected: &[&str] = if is_loss { &["x", "z"] } else { &[] };
            assert_eq!(told(event().with("items", items.clone())), expected, "{event_type}");
            assert!(told(event()).is_empty(), "{event_type}");
        }
    }

    #[test]
    fn every_event_type_is_found_by_its_name() {
        for event_type in EventType::ALL {
            assert_eq!(&EventType::from_name(event_type.as_str()), event_type);
        }
        assert_eq!(EventType::from_name("moon_landed").as_str(), "moon_landed");
    }
}
