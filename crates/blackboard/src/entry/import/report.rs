//! What became of the entries of a file.

use serde::{Serialize, Serializer};

use crate::clock::Timestamp;
use crate::error::{Code, Result};

/// What became of the entries of a file, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// The entries.
    pub entries: Vec<ImportedEntry>,
}

/// What became of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedEntry {
    /// Its scope.
    pub scope: String,
    /// Its key on the board.
    pub key: String,
    /// Its key in the file, if it was escaped.
    pub key_in_file: Option<String>,
    /// Its line in the file.
    pub line: usize,
    /// What became of it.
    pub outcome: ImportOutcome,
    /// The key of the entry that its full scope evicted for it. It may be an earlier entry of the file.
    pub evicted: Option<String>,
    /// Its time in the file, if that is in the future. It is left out.
    pub future_time: Option<Timestamp>,
}

/// What becomes of an entry of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportOutcome {
    /// The board did not have it.
    Created,
    /// The board had another one.
    Updated,
    /// The board has the same.
    Unchanged,
    /// The board has another one, which stays.
    Kept,
    /// It is not imported.
    Skipped(SkipReason),
    /// The board refuses it.
    Refused {
        /// The code of the refusal.
        code: Code,
        /// Why.
        reason: String,
    },
}

/// Why an entry is not imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// It is a lock of this name, in the form of other programs. A lock of a board is not an entry that agents write.
    Lock(String),
    /// It expired at this moment.
    Expired(Timestamp),
    /// A session held it. Holdings belong to a session of their board.
    Leased,
    /// Another session holds the entry of the board.
    Held,
    /// The file has a newer entry of the same key.
    Repeated,
}

impl ImportOutcome {
    /// Its name in JSON output.
    pub fn as_str(&self) -> &'static str {
        match self {
            ImportOutcome::Created => "created",
            ImportOutcome::Updated => "updated",
            ImportOutcome::Unchanged => "unchanged",
            ImportOutcome::Kept => "kept",
            ImportOutcome::Skipped(_) => "skipped",
            ImportOutcome::Refused { .. } => "refused",
        }
    }

    /// Why it is not imported.
    pub fn reason(&self) -> Option<String> {
        match self {
            ImportOutcome::Skipped(SkipReason::Lock(_)) => Some("it is a lock, not an entry".to_owned()),
            ImportOutcome::Skipped(SkipReason::Expired(at)) => Some(format!("it expired at {at}")),
            ImportOutcome::Skipped(SkipReason::Leased) => {
                Some("a session held it; holdings are not imported".to_owned())
            }
            ImportOutcome::Skipped(SkipReason::Held) => Some("another session holds the entry".to_owned()),
            ImportOutcome::Skipped(SkipReason::Repeated) => {
                Some("the file has a newer entry of this key".to_owned())
            }
            ImportOutcome::Refused { reason, .. } => Some(reason.clone()),
            ImportOutcome::Created
            | ImportOutcome::Updated
            | ImportOutcome::Unchanged
            | ImportOutcome::Kept => None,
        }
    }
}

impl Serialize for ImportedEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields<'a> {
            scope: &'a str,
            key: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            key_in_file: Option<&'a str>,
            line: usize,
            outcome: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            code: Option<&'static str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            reason: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            evicted: Option<&'a str>,
        }
        let code = match &self.outcome {
            ImportOutcome::Refused { code, .. } => Some(code.as_str()),
            _ => None,
        };
        Fields {
            scope: &self.scope,
            key: &self.key,
            key_in_file: self.key_in_file.as_deref(),
            line: self.line,
            outcome: self.outcome.as_str(),
            code,
            reason: self.outcome.reason(),
            evicted: self.evicted.as_deref(),
        }
        .serialize(serializer)
    }
}

impl ImportReport {
    /// How many entries have this outcome.
    pub fn count(&self, outcome: &str) -> usize {
        self.entries.iter().filter(|entry| entry.outcome.as_str() == outcome).count()
    }

    /// How many entries were evicted for others.
    pub fn evicted(&self) -> usize {
        self.entries.iter().filter(|entry| entry.evicted.is_some()).count()
    }
}
