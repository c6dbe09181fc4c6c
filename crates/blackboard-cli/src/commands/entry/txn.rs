//! `blackboard txn`

use std::path::{Path, PathBuf};
use std::time::Duration;

use blackboard::entry::{self, Comparison, Expected, Operation, Value, Write};
use blackboard::{Code, Error, Metadata, Refusal, Result, Revision, duration};
use serde::{Deserialize, Deserializer, de};

use super::input::read_text;
use crate::commands::Run;
use crate::commands::arguments::{ScopeOption, WriteOptions};
use crate::context::Context;
use crate::hints;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::entry::ComparedEntries;
use crate::output::shortened;

/// How much is read: what one commit may write, and the words around it.
const MAX_BYTES: usize = 80 * 1024 * 1024;

/// Update several keys atomically, if conditions hold
///
/// Reads a JSON object with the lists "compare", "then" and "else" from standard input or --file. If every comparison
/// holds, runs "then"; otherwise runs "else", or exits with 4 if there is none. All operations are applied, or none.
///
/// A comparison has "key" and exactly one of "exists", "revision", "version" and "value". An operation is an object with
/// one of "write", "delete" and "read". Each of them has "key"; "write" also has "value", and optionally "tags", "ttl",
/// "metadata", "merge", "if_absent", "if_revision" and "lease". "scope" is optional everywhere.
///
/// For example, set counter to 9 if it is 8, and read it otherwise:
///
///   {"compare": [{"key": "counter", "value": 8}],
///    "then": [{"write": {"key": "counter", "value": 9, "ttl": "1h"}}],
///    "else": [{"read": {"key": "counter"}}]}
///
/// Examples:
///   echo '{"then":[{"write":{"key":"a","value":1}}]}' | blackboard txn
///   blackboard txn --file move.json --op move-7
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Txn {
    /// File to read the transaction from [default: standard input]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    #[command(flatten)]
    scope: ScopeOption,

    #[command(flatten)]
    acting: WriteOptions,
}

impl Run for Txn {
    fn run(self, context: &Context) -> Result<Outcome> {
        let scope = context.scope(&self.scope)?;
        let text = read_text(self.file.as_deref().unwrap_or(Path::new("-")), MAX_BYTES)?;
        let txn = parse(&text, &scope)?;
        // What was read may be large, and is no longer needed.
        drop(text);
        let (board, session) = context.open(Access::write(self.acting.session.named()))?;
        let by = self.acting.by(session)?;
        Ok(Outcome::new(ComparedEntries(board.txn(&txn, &by)?)))
    }
}

/// Reads a transaction whose parts are in `scope` where they do not say otherwise.
fn parse(text: &str, scope: &str) -> Result<entry::Txn> {
    if text.trim().is_empty() {
        return Err(Refusal::new(Code::Usage, "txn requires a transaction on standard input or in --file")
            .hint(hints::command("see: ", "txn --help"))
            .into());
    }
    let request: Request = serde_json::from_str(text).map_err(|error| {
        let message = format!("the transaction cannot be read: {}", shortened(&error.to_string(), 300));
        Refusal::new(Code::InvalidValue, message).hint(hints::command("see: ", "txn --help"))
    })?;
    let operations =
        |parts: Vec<Part>| parts.into_iter().map(|part| part.operation(scope)).collect::<Result<Vec<_>>>();
    Ok(entry::Txn {
        comparisons: request.compare.into_iter().map(|at| at.comparison(scope)).collect::<Result<_>>()?,
        then: operations(request.then)?,
        otherwise: request.otherwise.map(operations).transpose()?,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with \"compare\", \"then\" and \"else\"")]
struct Request {
    #[serde(default)]
    compare: Vec<ComparisonPart>,
    #[serde(default)]
    then: Vec<Part>,
    #[serde(rename = "else")]
    otherwise: Option<Vec<Part>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with \"key\" and what to compare")]
struct ComparisonPart {
    scope: Option<String>,
    key: String,
    exists: Option<bool>,
    revision: Option<i64>,
    version: Option<u64>,
    #[serde(default, deserialize_with = "present")]
    value: Option<Value>,
}

/// One operation: an object with exactly one of its fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with one of \"write\", \"delete\" and \"read\"")]
struct Part {
    write: Option<WritePart>,
    delete: Option<KeyRef>,
    read: Option<KeyRef>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with \"key\" and \"value\"")]
struct WritePart {
    scope: Option<String>,
    key: String,
    value: Value,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default, deserialize_with = "length")]
    ttl: Option<Duration>,
    metadata: Option<Value>,
    #[serde(default)]
    merge: bool,
    #[serde(default)]
    if_absent: bool,
    if_revision: Option<i64>,
    #[serde(default)]
    lease: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with \"key\"")]
struct KeyRef {
    scope: Option<String>,
    key: String,
}

/// A value that is there, also if it is null: an `Option` would take that for nothing.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// A length of time: seconds, or a text such as `1h`.
fn length<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "seconds, or a text such as \"1h\"")]
    enum Length {
        Seconds(f64),
        Text(String),
    }
    let Some(length) = Option::<Length>::deserialize(deserializer)? else { return Ok(None) };
    let length = match length {
        Length::Seconds(seconds) => Duration::try_from_secs_f64(seconds).map_err(de::Error::custom)?,
        Length::Text(text) => duration::parse(&text).map_err(de::Error::custom)?,
    };
    Ok(Some(length))
}

impl ComparisonPart {
    fn comparison(self, scope: &str) -> Result<Comparison> {
        if self.revision.is_some_and(|id| id < 0) {
            return Err(Error::invalid("a revision is a whole number of at least 0"));
        }
        let revision = self.revision.map(|id| Expected::Revision(Revision::new(id)));
        let tests = [
            self.exists.map(Expected::Exists),
            revision,
            self.version.map(Expected::Version),
            self.value.map(Expected::Value),
        ];
        let mut tests = tests.into_iter().flatten();
        match (tests.next(), tests.next()) {
            (Some(expected), None) => Ok(Comparison {
                scope: self.scope.unwrap_or_else(|| scope.to_owned()),
                key: self.key,
                expected,
            }),
            _ => Err(Error::invalid(format!(
                "the comparison of \"{}\" needs exactly one of exists, revision, version, value",
                shortened(&self.key, 100)
            ))),
        }
    }
}

impl Part {
    fn operation(self, scope: &str) -> Result<Operation> {
        let in_scope = |named: Option<String>| named.unwrap_or_else(|| scope.to_owned());
        Ok(match (self.write, self.delete, self.read) {
            (Some(part), None, None) => Operation::Write {
                write: Write {
                    tags: part.tags,
                    ttl: part.ttl,
                    metadata: part.metadata.map(|text| Metadata::parse(text.as_str())).transpose()?,
                    merge: part.merge,
                    if_absent: part.if_absent,
                    if_revision: part.if_revision.map(Revision::new),
                    lease: part.lease,
                    ..Write::new(&part.key, part.value)
                },
                scope: in_scope(part.scope),
            },
            (None, Some(KeyRef { scope, key }), None) => Operation::Delete { scope: in_scope(scope), key },
            (None, None, Some(KeyRef { scope, key })) => Operation::Read { scope: in_scope(scope), key },
            _ => return Err(Error::invalid("each operation needs exactly one of write, delete, read")),
        })
    }
}

#[cfg(test)]
mod tests;
