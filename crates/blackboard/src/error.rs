//! The error type: a [`Refusal`] is an expected error, a [`Fault`] means that something is broken.
//!
//! [`Code`] lists every code once, with its exit code.

use std::fmt;

use serde_json::{Map, Value};

use crate::clock::Timestamp;
use crate::hint::Hint;
use crate::store::record::DamagedValue;

/// The result of every fallible function here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The board works and refuses the call.
    #[error(transparent)]
    Refusal(Box<Refusal>),
    /// Something is broken: a file, a disk, this program.
    #[error(transparent)]
    Fault(Box<Fault>),
}

/// An expected error: what failed, and the next step.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The code of the refusal.
    pub code: Code,
    /// What failed and why, for human output.
    pub message: String,
    /// The next step.
    pub hint: Option<Hint>,
    /// Details of the code for JSON output: `held_by`, `since`, `fence` and others.
    pub details: Map<String, Value>,
    /// The age that human output inserts into the message.
    pub age: Option<MessageAge>,
}

/// The age of what a refusal is about, and where in the message it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageAge {
    /// The byte offset in the message.
    pub at: usize,
    /// The moment that the age counts from.
    pub moment: Timestamp,
    /// What happened then.
    pub kind: AgeKind,
}

/// What happened at the moment that an age counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgeKind {
    /// A session began to hold something: `since 14:32 (5m ago)`.
    Held,
    /// An entry was written; the message names the author before it: `, 5m ago`.
    Written,
    /// A work item was completed: `(5m ago)`.
    Completed,
}

/// Something is broken.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// The code of the fault.
    pub code: Code,
    /// What failed, without terms of a lower layer that the reader does not know.
    pub message: String,
    /// The next step.
    pub hint: Option<Hint>,
    /// The error of the lower layer.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
    /// Details of the call for JSON output.
    pub details: Map<String, Value>,
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident, $text:literal, $exit:literal;)+) => {
        /// Every code with which a call can fail.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Code {
            /// All of them, in the order of their exit codes.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)+];

            /// The name in JSON output.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $text,)+ }
            }

            /// The exit code of a command that ends with it.
            pub const fn exit_code(self) -> u8 {
                match self { $(Code::$variant => $exit,)+ }
            }

            /// Its meaning, as in the documentation.
            pub const fn meaning(self) -> &'static str {
                match self { $(Code::$variant => concat!($($doc,)+).trim_ascii(),)+ }
            }
        }
    };
}

codes! {
    /// The operating system refused to read or write a file.
    Io, "io", 1;
    /// The file system is full; nothing was written.
    DiskFull, "disk_full", 1;
    /// The database file is damaged.
    Corrupt, "corrupt", 1;
    /// The file at the board's path belongs to another program.
    ForeignDatabase, "foreign_database", 1;
    /// The board was written by a newer version of this program.
    NewerSchema, "newer_schema", 1;
    /// The server of the board cannot be reached, or is not ready.
    ServerUnavailable, "server_unavailable", 1;
    /// The server is no Redis server of version 7 or later, or its settings are not suitable for a board.
    ServerUnsuitable, "server_unsuitable", 1;
    /// The memory of the server is full; nothing was written.
    ServerFull, "server_full", 1;
    /// The connection to the server was lost during a change, which may have been made or not.
    OutcomeUnknown, "outcome_unknown", 1;
    /// A bug of this program.
    Internal, "internal", 1;
    /// Usage error.
    Usage, "usage", 2;
    /// Invalid value.
    InvalidValue, "invalid_value", 2;
    /// No session was named, and none or more than one could be found.
    NoSession, "no_session", 2;
    /// More than one session matches the name or prefix.
    AmbiguousSession, "ambiguous_session", 2;
    /// Board not found.
    BoardNotFound, "board_not_found", 3;
    /// Agent not found.
    AgentNotFound, "agent_not_found", 3;
    /// Project not found.
    ProjectNotFound, "project_not_found", 3;
    /// Protocol not found.
    ProtocolNotFound, "protocol_not_found", 3;
    /// Work item not found.
    WorkNotFound, "work_not_found", 3;
    /// Entry not found.
    EntryNotFound, "entry_not_found", 3;
    /// The scope has no policies, or neither policies nor entries.
    ScopeNotFound, "scope_not_found", 3;
    /// The scope is not mapped into pages.
    NotMapped, "not_mapped", 3;
    /// The page does not exist, or was replaced.
    PageNotFound, "page_not_found", 3;
    /// No dashboard of this board is running.
    NotRunning, "not_running", 3;
    /// The token quota is not configured.
    QuotaNotConfigured, "quota_not_configured", 3;
    /// No work item is available.
    NothingAvailable, "nothing_available", 3;
    /// Another session holds the work item.
    AlreadyClaimed, "already_claimed", 4;
    /// The work item is completed.
    AlreadyCompleted, "already_completed", 4;
    /// The id exists with different fields.
    AlreadyExists, "already_exists", 4;
    /// The work item is blocked by others.
    WorkBlocked, "work_blocked", 4;
    /// The session does not hold the work item or lock.
    NotHolder, "not_holder", 4;
    /// Another session holds it, and it alone may change it.
    Held, "held", 4;
    /// The fence token is not the current one of the work item or lock.
    StaleFence, "stale_fence", 4;
    /// Dependency cycle.
    DependencyCycle, "dependency_cycle", 4;
    /// The session was marked stale and has to send a heartbeat first.
    SessionStale, "session_stale", 4;
    /// The session has ended.
    SessionEnded, "session_ended", 4;
    /// The key or the value does not match the protocol.
    ProtocolMismatch, "protocol_mismatch", 4;
    /// `REGISTRY.md` of a hub differs from its files `PROJECT.yaml`.
    RegistryMismatch, "registry_mismatch", 4;
    /// The agent that handled the call has reported an error.
    CallFailed, "call_failed", 4;
    /// The tokens do not fit into the quota.
    QuotaExceeded, "quota_exceeded", 4;
    /// Still in use.
    InUse, "in_use", 4;
    /// The scope has as many entries as it may have and none can be evicted, or more than a new limit.
    ScopeFull, "scope_full", 4;
    /// The scope has ended with its session or work item.
    ScopeEnded, "scope_ended", 4;
    /// This board already has a dashboard.
    AlreadyRunning, "already_running", 4;
    /// The port is in use.
    PortTaken, "port_taken", 4;
    /// The data kept changing while it was read.
    Conflict, "conflict", 4;
    /// The board is being copied to this location, or a copy to it was interrupted.
    BeingCopied, "being_copied", 4;
    /// The board was written by ivy-blackboard, and has to be upgraded first.
    UpgradeNeeded, "upgrade_needed", 4;
    /// The cursor or revision is ahead of the board.
    CursorAhead, "cursor_ahead", 4;
    /// Retention or a purge has removed what was asked for.
    Compacted, "compacted", 4;
    /// Other users can read or write the board or its configuration, git tracks the database, or it is not a plain file of
    /// this user.
    UnsafePermissions, "unsafe_permissions", 5;
    /// The board is on a network file system, where processes cannot share memory.
    NetworkFilesystem, "network_filesystem", 5;
    /// The file system does not let this user write here.
    ReadOnly, "read_only", 5;
    /// The board was copied to another location, and accepts no more changes.
    BoardSealed, "board_sealed", 5;
    /// The server denies this user access, or a command.
    AccessDenied, "access_denied", 5;
    /// The policies of the scope do not let this caller do it.
    NotAllowed, "not_allowed", 5;
    /// The text seems to contain a credential.
    SecretLooking, "secret_looking", 5;
    /// Another process held the write lock for longer than the time limit.
    Busy, "busy", 6;
    /// The time limit of a wait expired.
    TimedOut, "timed_out", 6;
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Refusal {
    /// A refusal without hint or details.
    pub fn new(code: Code, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into(), hint: None, details: Map::new(), age: None }
    }

    /// Adds the next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Hint>) -> Refusal {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a detail of the code.
    #[must_use]
    pub fn detail(mut self, name: &str, value: impl Into<Value>) -> Refusal {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// Ends the message with `rest`, and has human output insert the age of `moment` before it.
    #[must_use]
    pub fn age(mut self, kind: AgeKind, moment: Option<Timestamp>, rest: &str) -> Refusal {
        self.age = moment.map(|moment| MessageAge { at: self.message.len(), moment, kind });
        self.message.push_str(rest);
        self
    }

    /// Adds the holder and the time since when it holds.
    #[must_use]
    pub fn held_by(
        self,
        session: impl Into<Value>,
        name: impl Into<Value>,
        since: Option<Timestamp>,
    ) -> Refusal {
        let refusal = self.detail("held_by", session).detail("held_by_name", name);
        match since {
            Some(since) => refusal.detail("since", since.to_string()),
            None => refusal,
        }
    }
}

impl Fault {
    /// A fault without hint or source.
    pub fn new(code: Code, message: impl Into<String>) -> Fault {
        Fault { code, message: message.into(), hint: None, source: None, details: Map::new() }
    }

    /// Adds the next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Hint>) -> Fault {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the error of the lower layer.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Fault {
        self.source = Some(source.into());
        self
    }
}

/// The source of an error that is not about a single row: a part of the board is missing.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct DamagedBoard(pub(crate) &'static str);

impl Error {
    /// The code.
    pub fn code(&self) -> Code {
        match self {
            Error::Refusal(refusal) => refusal.code,
            Error::Fault(fault) => fault.code,
        }
    }

    /// Whether stored rows are the reason, rather than the call, the file system or another writer. Then other rows
    /// can still be processed.
    pub(crate) fn is_unreadable_row(&self) -> bool {
        matches!(self.code(), Code::Corrupt | Code::Internal) && !self.is_of_damaged_board()
    }

    /// Whether a part of the board is missing, so that no list of it is complete.
    fn is_of_damaged_board(&self) -> bool {
        match self {
            Error::Refusal(_) => false,
            Error::Fault(fault) => fault.source.as_ref().is_some_and(|source| source.is::<DamagedBoard>()),
        }
    }

    /// The stored value that could not be read, if that is the reason.
    pub(crate) fn damaged_value(&self) -> Option<&DamagedValue> {
        match self {
            Error::Refusal(_) => None,
            Error::Fault(fault) => fault.source.as_ref()?.downcast_ref(),
        }
    }

    /// The next step.
    pub fn hint(&self) -> Option<&Hint> {
        match self {
            Error::Refusal(refusal) => refusal.hint.as_ref(),
            Error::Fault(fault) => fault.hint.as_ref(),
        }
    }

    /// The same with another next step.
    #[must_use]
    pub(crate) fn with_hint(mut self, hint: Hint) -> Error {
        match &mut self {
            Error::Refusal(refusal) => refusal.hint = Some(hint),
            Error::Fault(fault) => fault.hint = Some(hint),
        }
        self
    }

    /// The same with this text after the message.
    #[must_use]
    pub(crate) fn followed_by(mut self, text: &str) -> Error {
        match &mut self {
            Error::Refusal(refusal) => refusal.message.push_str(text),
            Error::Fault(fault) => fault.message.push_str(text),
        }
        self
    }

    /// The age that human output inserts into the message.
    pub fn age(&self) -> Option<MessageAge> {
        match self {
            Error::Refusal(refusal) => refusal.age,
            Error::Fault(_) => None,
        }
    }

    /// The details for JSON output.
    pub fn details(&self) -> Option<&Map<String, Value>> {
        match self {
            Error::Refusal(refusal) => Some(&refusal.details),
            Error::Fault(fault) => Some(&fault.details).filter(|details| !details.is_empty()),
        }
    }

    /// The same with a detail, unless it has one of this name.
    #[must_use]
    pub(crate) fn with_detail(mut self, name: &str, value: impl Into<Value>) -> Error {
        let details = match &mut self {
            Error::Refusal(refusal) => &mut refusal.details,
            Error::Fault(fault) => &mut fault.details,
        };
        details.entry(name).or_insert_with(|| value.into());
        self
    }

    /// A refusal of a value that is not allowed.
    pub fn invalid(message: impl Into<String>) -> Error {
        Refusal::new(Code::InvalidValue, message).into()
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        Error::Refusal(Box::new(refusal))
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        Error::Fault(Box::new(fault))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_ordered_by_exit_code() {
        let mut names: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Code::ALL.len());
        assert!(Code::ALL.is_sorted_by_key(|code| code.exit_code()));
    }
}
