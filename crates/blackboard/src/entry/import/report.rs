//! What became of the entries of a file.

use serde::{Serialize, Serializer};

use crate::clock::Timestamp;
use crate::entry::Value;
use crate::error::{Code, Result};
use crate::text::excerpt;

/// What became of the content of a file, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// The protocols and the policies of scopes.
    pub definitions: Vec<ImportedDefinition>,
    /// The entries.
    pub entries: Vec<ImportedEntry>,
}

/// What became of a protocol, or of the policies of a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedDefinition {
    /// What it is.
    pub kind: DefinitionKind,
    /// Its name.
    pub name: String,
    /// What became of it.
    pub outcome: ImportOutcome,
}

/// What an export defines besides entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DefinitionKind {
    /// A protocol.
    Protocol,
    /// The policies of a scope.
    Scope,
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
    /// How the entries of the board and of the file differ, if it is updated or kept. Only the first 10,000 have it.
    pub difference: Option<Difference>,
    /// Its time in the file, if that is in the future. It is left out.
    pub future_time: Option<Timestamp>,
}

/// How the entries of the board and of the file differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What differs: `value`, `author`, `expires_at`, `tags` and `metadata`.
    #[serde(rename = "differs")]
    pub fields: Vec<&'static str>,
    /// The entry of the board.
    pub ours: ComparedEntry,
    /// The entry of the file.
    pub theirs: ComparedEntry,
}

/// An entry beside another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ComparedEntry {
    /// Its value. Of more than 1,000 bytes it is a text: the beginning of the JSON.
    pub value: Value,
    /// Whether the value is such a beginning.
    pub shortened: bool,
    /// Its author.
    pub author: String,
    /// When it was written, if that is known.
    pub timestamp: Option<Timestamp>,
}

impl ComparedEntry {
    pub(super) fn new(value: &Value, author: &str, timestamp: Option<Timestamp>) -> ComparedEntry {
        const COMPLETE_BYTES: usize = 1000;
        const SHOWN: usize = 200;
        let shortened = value.as_str().len() > COMPLETE_BYTES;
        let beginning = || Value::of(&*excerpt(value.as_str(), SHOWN)).unwrap_or_else(|_| Value::null());
        let value = if shortened { beginning() } else { value.clone() };
        ComparedEntry { value, shortened, author: author.to_owned(), timestamp }
    }
}

/// What becomes of an entry, a protocol or policies of a file.
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
    /// Its scope ends with a session or a work item, which the board of the import does not have.
    ScopeEnds,
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

    /// The code of a refusal.
    pub fn code(&self) -> Option<Code> {
        match self {
            ImportOutcome::Refused { code, .. } => Some(*code),
            _ => None,
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
            ImportOutcome::Skipped(SkipReason::ScopeEnds) => {
                Some("the scope ends with a session or a work item of its board".to_owned())
            }
            ImportOutcome::Refused { reason, .. } => Some(reason.clone()),
            ImportOutcome::Created
            | ImportOutcome::Updated
            | ImportOutcome::Unchanged
            | ImportOutcome::Kept => None,
        }
    }
}

impl Serialize for ImportedDefinition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields<'a> {
            kind: DefinitionKind,
            name: &'a str,
            outcome: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            code: Option<&'static str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            reason: Option<String>,
        }
        Fields {
            kind: self.kind,
            name: &self.name,
            outcome: self.outcome.as_str(),
            code: self.outcome.code().map(Code::as_str),
            reason: self.outcome.reason(),
        }
        .serialize(serializer)
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
            #[serde(flatten)]
            difference: Option<&'a Difference>,
        }
        Fields {
            scope: &self.scope,
            key: &self.key,
            key_in_file: self.key_in_file.as_deref(),
            line: self.line,
            outcome: self.outcome.as_str(),
            code: self.outcome.code().map(Code::as_str),
            reason: self.outcome.reason(),
            evicted: self.evicted.as_deref(),
            difference: self.difference.as_ref(),
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
