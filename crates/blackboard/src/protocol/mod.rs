//! Protocols: agreements on the keys of entries, so that writers and readers of a scope use the same ones.
//!
//! A protocol has a name, a level and messages. A message has a [`Template`], from which keys and patterns are built and
//! values are read, and perhaps a [`Schema`] that describes the value of the entry. A protocol describes entries and
//! refuses none; a scope can require its schema ([`ValueRule`](crate::scope::ValueRule)).
//!
//! The built-in protocols are in one table ([`built_in`]). Agents define others on their board, with one template each
//! ([`Protocols::define`]). Every one can be used by its name: [`Protocols::key`], [`Protocols::pattern`] and
//! [`Protocols::parse`] take `AgentRun.request`, or only `Task`, which has one message.
//!
//! ```
//! use blackboard::entry::Query;
//! use blackboard::protocol::AgentRun;
//! use blackboard::{Board, entry::{Value, Write}};
//!
//! let board = Board::memory();
//! let scope = board.scope("colony");
//! let key = AgentRun::request_key("req_abc123", Some("compliance"))?;
//! scope.write(&Write::new(&key, Value::of("check the contract")?))?;
//!
//! let pattern = Some(AgentRun::request_pattern(Some("compliance"))?);
//! for entry in scope.query(&Query { pattern, ..Query::default() })?.entries {
//!     let Some(values) = AgentRun::parse_request_key(&entry.key) else { continue };
//!     scope.write(&Write::new(&AgentRun::result_key(&values["id"], Some("compliance"))?, Value::of("fine")?))?;
//! }
//! assert!(scope.read("result:run:compliance:req_abc123")?.is_some());
//! # Ok::<(), blackboard::Error>(())
//! ```
//!
//! # Keys are relative to their scope
//!
//! A key never contains the name of its scope. [`check_key`](crate::entry::check_key) and
//! [`check_pattern`](crate::entry::check_pattern) find common mistakes:
//!
//! ```
//! use blackboard::entry::{check_key, check_pattern};
//!
//! assert!(check_key("default", "request:run:req_abc").is_ok());
//! assert!(check_key("default", "polymathera:tenant:1").is_err()); // names a scope
//! assert!(check_key("default", "default:request:1").is_err()); // names its scope
//! assert!(check_key("default", "result:*").is_err()); // is a pattern
//! assert!(check_key("default", "").is_err());
//! assert!(check_pattern("default", "request:*").is_ok());
//! assert!(check_pattern("default", "polymathera:tenant:*").is_err());
//! ```
//!
//! | File | What it is about |
//! |---|---|
//! | `table.rs` | the built-in protocols |
//! | `template.rs`, `escape.rs` | templates of keys; any text as a part of a key |
//! | `schema.rs` | the JSON Schema of a value |
//! | `fields.rs` | keys that are made from names and values, without a template |
//! | `agent_run.rs`, `work_assignment.rs`, `lifecycle_signal.rs` | functions for three built-in protocols |
//! | `level.rs` | which agents share the entries of a protocol, and the names of their scopes |
//! | `custom.rs` | protocols that are stored on a board |
//! | `publish.rs` | data types that know their key |
//! | `call.rs` | a call of another agent: a request, events, and a result |
//! | `dispatcher.rs`, `handlers.rs` | answers calls, and handles other entries that agents write |
//! | `cycle.rs` | refuses handlers that would answer each other without end |

mod agent_run;
mod call;
mod check;
mod custom;
mod cycle;
mod define;
mod dispatcher;
mod escape;
mod fields;
mod handlers;
mod key;
mod level;
mod lifecycle_signal;
mod list;
mod parse;
mod pattern;
mod publish;
mod remove;
mod schema;
mod show;
mod table;
mod template;
mod work_assignment;

use serde::Serialize;

pub use self::agent_run::AgentRun;
pub use self::call::{Call, FAILED, Reply, RequestGone, Run, RunEvent};
pub use self::check::{CheckedKey, KeyMatch};
pub use self::custom::{CustomProtocol, MAX_PROTOCOLS};
pub use self::define::{DefineProtocol, DefinedProtocol};
pub use self::dispatcher::{Dispatch, Dispatcher};
pub use self::fields::{format_key, parse_key, pattern_key};
pub use self::handlers::{HandlerFailure, Handlers, Request};
pub use self::key::BuiltKey;
pub use self::level::Level;
pub use self::lifecycle_signal::LifecycleSignal;
pub use self::parse::ParsedKey;
pub use self::pattern::BuiltPattern;
pub use self::publish::{Publishable, Published};
pub use self::remove::RemovedProtocol;
pub use self::schema::{MAX_SCHEMA_BYTES, Mismatch, Schema};
pub(crate) use self::table::is_first_word;
pub use self::table::{built_in, built_in_protocols};
pub use self::template::{MAX_TEMPLATE_BYTES, Template, Values};
pub use self::work_assignment::WorkAssignment;
use crate::board::Board;
use crate::clock::Timestamp;
use crate::entry::Value;
use crate::error::{Code, Error, Refusal, Result};
use crate::hint::Hint;
use crate::revision::Revision;
use crate::store::{Key, Prefetch, Tx};
use crate::text::shown;

/// The protocols of a board: `board.protocols()`.
#[derive(Clone, Copy)]
pub struct Protocols<'a> {
    pub(crate) board: &'a Board,
}

/// An agreement on keys.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Protocol {
    /// Its name.
    pub name: String,
    /// Which agents share its entries.
    pub level: Level,
    /// The form of the names of its scopes: that of its level.
    pub scope_template: &'static str,
    /// What it is for.
    pub summary: String,
    /// Whether the program defines it, and not the board.
    pub built_in: bool,
    /// Its messages.
    pub messages: Vec<Message>,
    /// When it was defined on the board.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defined_at: Option<Timestamp>,
    /// The event that defined it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
}

/// One kind of entry of a protocol.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Message {
    /// Its name in the protocol.
    pub name: String,
    /// The form of its keys.
    pub template: Template,
    /// Describes its values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_schema: Option<Schema>,
    /// For how long its entries should live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recommended_ttl: Option<RecommendedTtl>,
}

/// A recommendation, which no call enforces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RecommendedTtl {
    /// The shortest recommended time, in seconds.
    pub min_seconds: u32,
    /// The longest one.
    pub max_seconds: u32,
}

/// The name of the message of a protocol that has only one.
const ONLY_MESSAGE: &str = "entry";

impl Protocol {
    /// The message with this name. A protocol with one message needs no name.
    fn message(&self, name: Option<&str>) -> Result<&Message> {
        if let (None, [only]) = (name, self.messages.as_slice()) {
            return Ok(only);
        }
        let found = self.messages.iter().find(|message| Some(message.name.as_str()) == name);
        found.ok_or_else(|| {
            let problem = match name {
                Some(name) => format!("protocol {} has no message {}", self.name, shown(name)),
                None => format!("protocol {} has {} messages", self.name, self.messages.len()),
            };
            let references: Vec<_> = self.messages.iter().map(|message| self.reference(message)).collect();
            Refusal::new(Code::InvalidValue, problem)
                .hint(format!("name one of {}", references.join(", ")))
                .into()
        })
    }

    /// The name that commands and calls take for a message: `AgentRun.request`, or `Task`.
    pub fn reference(&self, message: &Message) -> String {
        if self.messages.len() == 1 { self.name.clone() } else { format!("{}.{}", self.name, message.name) }
    }
}

impl Message {
    /// Refuses a value that does not match the schema of the message. Without a schema, every value matches.
    ///
    /// ```
    /// use blackboard::entry::Value;
    /// use blackboard::protocol::built_in;
    ///
    /// let signal = built_in("Signal")?;
    /// let value = r#"{"agent_id": "ivy", "status": "busy", "last_heartbeat": "2026-02-04T10:00:00Z"}"#;
    /// signal.check_value(&Value::parse(value, 1024)?)?;
    /// let error = signal.check_value(&Value::of(&1)?).unwrap_err();
    /// assert_eq!(error.to_string(), "the value does not match signal:{agent}:{name?}: expected object, found 1");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn check_value(&self, value: &Value) -> Result<()> {
        let Some(schema) = &self.value_schema else { return Ok(()) };
        let mismatches = schema.mismatches(value)?;
        let Some(first) = mismatches.first() else { return Ok(()) };
        let message = format!("the value does not match {}: {first}", self.template);
        Err(Refusal::new(Code::ProtocolMismatch, message)
            .detail("template", self.template.as_str())
            .detail("mismatches", as_details(&mismatches))
            .into())
    }
}

/// Mismatches as a detail of a refusal.
pub(crate) fn as_details(mismatches: &[Mismatch]) -> Vec<serde_json::Value> {
    let detail = |each: &Mismatch| serde_json::json!({"path": each.path, "problem": each.problem});
    mismatches.iter().map(detail).collect()
}

/// Announces the row of the protocol of a reference, if it is not a built-in one.
pub(crate) fn prefetch_protocol(reference: &str) -> Option<Prefetch<'static>> {
    let (name, _) = split_reference(reference);
    table::find(name).is_none().then(|| Prefetch::Row(Key::CustomProtocol(name.to_owned())))
}

/// The message of a reference; `None` if the protocol does not exist or has no such message.
pub(crate) fn message_of(tx: &dyn Tx, reference: &str) -> Result<Option<Message>> {
    let (name, message) = split_reference(reference);
    if let Some(protocol) = table::find(name) {
        return Ok(protocol.message(message).ok().cloned());
    }
    let stored = tx.row::<CustomProtocol>(&Key::CustomProtocol(name.to_owned()))?.map(Protocol::from);
    Ok(stored.and_then(|protocol| protocol.message(message).ok().cloned()))
}

/// The name of the protocol of a reference.
pub(crate) fn protocol_name(reference: &str) -> &str {
    split_reference(reference).0
}

/// The parts of a reference: the protocol, and a message of it.
fn split_reference(reference: &str) -> (&str, Option<&str>) {
    match reference.split_once('.') {
        Some((protocol, message)) => (protocol, Some(message)),
        None => (reference, None),
    }
}

pub(crate) fn not_found(name: &str) -> Error {
    Refusal::new(Code::ProtocolNotFound, format!("protocol {} not found", shown(name)))
        .hint(Hint::ListProtocols)
        .into()
}
