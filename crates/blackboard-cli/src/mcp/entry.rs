//! Entries: read, write and query them.

use blackboard::clock::{Clock, SystemClock};
use blackboard::duration::{parse, parse_since};
use blackboard::entry::{Actor, Query as Asked, Value, Write as Writing};
use blackboard::{Result, Revision};
use rmcp::schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::reply::{ItemList, Reply, ShownEntry};
use super::tools::{Arguments, Call, Tool, wrong};

/// The default and the maximum number of entries in a list.
const LIMIT: usize = 20;
const MOST: usize = 100;

/// Read a shared entry. `found` is false if the key does not exist.
#[derive(Clone, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub struct Read {
    key: String,
    scope: Option<String>,
}

impl Arguments for Read {
    const NAME: &'static str = "entry_read";
    const READS: bool = true;
}

#[derive(Serialize)]
struct ReadReply {
    found: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<ShownEntry>,
}

impl Tool for Read {
    fn call(self, call: &Call) -> Result<Reply> {
        let (board, _) = call.reading()?;
        let entry = board.scope(&call.state.scope(self.scope)).entry(&self.key)?;
        Reply::new(&ReadReply { found: entry.is_some(), entry: entry.map(ShownEntry::alone) })
    }
}

/// Write or delete an entry that all agents can read. `if_absent` and `if_revision` prevent overwriting; `op` makes a retry
/// safe.
#[derive(Clone, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate argument")]
pub struct Write {
    key: String,
    #[serde(default, deserialize_with = "present")]
    #[schemars(schema_with = "any_json")]
    value: Option<serde_json::Value>,
    /// Delete instead of write
    #[serde(default)]
    delete: bool,
    scope: Option<String>,
    /// Only if the key does not exist
    #[serde(default)]
    if_absent: bool,
    /// Only if it has this revision
    if_revision: Option<i64>,
    /// Keep tags and TTL that are not given; the value is replaced
    #[serde(default)]
    merge: bool,
    /// Expires after, for example, 90s, 2h, 7d
    ttl: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    /// Delete when your session ends
    #[serde(default)]
    lease: bool,
    /// Only while you hold these: lock:NAME=N or work:ID=N
    #[serde(default)]
    fences: Vec<String>,
    /// Idempotency key: a repeated call changes nothing
    op: Option<String>,
}

/// `null` is a value too.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<serde_json::Value>, D::Error> {
    serde_json::Value::deserialize(deserializer).map(Some)
}

fn any_json(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"description": "Any JSON"})
}

impl Arguments for Write {
    const NAME: &'static str = "entry_write";
    const READS: bool = false;
    const DESTROYS: bool = true;
}

impl Tool for Write {
    fn call(self, call: &Call) -> Result<Reply> {
        let fences = self.fences.iter().map(|fence| fence.parse()).collect::<Result<_>>()?;
        let if_revision = self.if_revision.map(Revision::new);
        let scope_name = call.state.scope(self.scope);
        let is_bare =
            !self.if_absent && !self.merge && !self.lease && self.ttl.is_none() && self.tags.is_empty();
        let write = match (self.value, self.delete) {
            (None, true) if is_bare => None,
            (None, true) => {
                return Err(wrong(
                    "a deletion does not accept these arguments",
                    "pass only key, scope, if_revision, fences and op",
                ));
            }
            (Some(value), false) => Some(Writing {
                tags: self.tags,
                ttl: self.ttl.as_deref().map(parse).transpose()?,
                merge: self.merge,
                if_absent: self.if_absent,
                if_revision,
                lease: self.lease,
                ..Writing::new(&self.key, Value::of(&value)?)
            }),
            _ => {
                return Err(wrong("nothing to write or delete", "pass either value or delete: true"));
            }
        };
        let (board, session) = call.acting()?;
        let by = Actor { author: None, session: Some(session), fences, operation: self.op };
        let scope = board.scope(&scope_name).acting_as(by);
        match (write, if_revision) {
            (Some(write), _) => Reply::new(&scope.write(&write)?),
            (None, Some(revision)) => Reply::new(&scope.delete_if_revision(&self.key, revision)?),
            (None, None) => Reply::new(&scope.delete(&self.key)?),
        }
    }
}

/// Find shared entries, newest first.
#[derive(Clone, Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// Key pattern with * and ?
    pattern: Option<String>,
    prefix: Option<String>,
    /// Has all of these tags
    #[serde(default)]
    tags: Vec<String>,
    author: Option<String>,
    /// 15m, 2h or ISO 8601
    since: Option<String>,
    scope: Option<String>,
    /// At most 100; default 20
    limit: Option<usize>,
    /// `next` of the previous page
    after: Option<String>,
}

impl Arguments for Query {
    const NAME: &'static str = "entry_query";
    const READS: bool = true;
}

#[derive(Serialize)]
struct Page {
    #[serde(flatten)]
    entries: ItemList,
    next: Option<String>,
}

impl Tool for Query {
    fn call(self, call: &Call) -> Result<Reply> {
        let limit = self.limit.unwrap_or(LIMIT).clamp(1, MOST);
        let updated_since = self.since.map(|since| parse_since(&since, SystemClock.now())).transpose()?;
        let mut query = Asked {
            pattern: self.pattern,
            prefix: self.prefix,
            tags: self.tags,
            author: self.author,
            updated_since,
            limit: Some(limit),
            after: self.after,
            ..Asked::default()
        };
        let (board, _) = call.reading()?;
        let name = call.state.scope(self.scope);
        let scope = board.scope(&name);
        // If the page is too long, read a shorter one, so that the next page starts directly after it.
        loop {
            let page = scope.query(&query)?;
            let mut entries = ItemList::of(page.entries.into_iter().map(ShownEntry::among_others), limit)?;
            if !entries.more {
                entries.more = page.next.is_some();
                return Reply::new(&Page { entries, next: page.next });
            }
            query.limit = Some(entries.count);
        }
    }
}
