//! [`Severity`]: how urgent an event is.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::EventType;

/// How urgent an event is for the person who operates the board.
///
/// ```
/// use blackboard::event::{EventType, Severity};
///
/// assert_eq!(EventType::AgentStale.severity(), Severity::Warning);
/// assert!(EventType::WorkCompleted.severity() < Severity::Warning);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Normal work.
    #[default]
    Info,
    /// Something was lost or is about to be.
    Warning,
    /// Something failed. No event has it yet.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}

impl EventType {
    /// How urgent events of this type are.
    pub fn severity(&self) -> Severity {
        match self {
            EventType::AgentStale
            | EventType::StaleLocksReleased
            | EventType::EntryEvicted
            | EventType::QuotaWarning => Severity::Warning,
            EventType::AgentRegistered
            | EventType::AgentDeregistered
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
            | EventType::HeartbeatReceived
            | EventType::EntryWritten
            | EventType::EntryDeleted
            | EventType::EntryExpired
            | EventType::EntryPurged
            | EventType::EntriesCleared
            | EventType::ScopeCreated
            | EventType::ScopeUpdated
            | EventType::ScopeDeleted
            | EventType::ScopeMapped
            | EventType::ScopeUnmapped
            | EventType::PageAdded
            | EventType::PageReplaced
            | EventType::PageInvalidated
            | EventType::Other(_) => Severity::Info,
        }
    }
}
