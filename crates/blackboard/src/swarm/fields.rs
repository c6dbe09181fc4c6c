//! The JSON of one entry: its members in every dialect, in a snapshot and in an export.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::document::without_position;
use super::{Dialect, FileEntry};
use crate::clock::Timestamp;
use crate::entry::{Entry, Value};
use crate::metadata::Metadata;
use crate::text::{escape_json_for_terminal, shown};

/// The member of an entry's metadata that says where an imported entry comes from.
pub(crate) const IMPORTED: &str = "imported";

/// Members that an export or a snapshot has, and that a board sets itself.
const OWN: [&str; 8] =
    ["revision", "created_at", "created_by", "updated_at", "updated_by", "expires_at", "fence", "session_id"];

/// What is known of an entry besides its JSON.
pub(crate) struct Known<'a> {
    /// Its key, from the heading or from the object around it.
    pub(crate) key: &'a str,
    /// Its line.
    pub(crate) line: usize,
    /// Whether JSON without the members of an entry is a value.
    pub(crate) may_be_value: bool,
}

/// An entry that was read, with what is unusual about it.
pub(crate) struct Read {
    pub(crate) entry: FileEntry,
    /// Whether the author is in `sourceAgent`.
    pub(crate) has_camel_case: bool,
    pub(crate) problems: Vec<String>,
}

/// Reads an entry from its JSON. In the Markdown, JSON that has no members of an entry is a value alone.
pub(crate) fn read_entry(json: &str, known: &Known<'_>) -> Result<Read, String> {
    let members: BTreeMap<String, &RawValue> = match serde_json::from_str(json) {
        Ok(members) => members,
        Err(error) if !json.starts_with('{') && known.may_be_value => {
            let value =
                value_of(json).map_err(|_| format!("it is not JSON ({})", without_position(&error)))?;
            return Ok(value_alone(value, known));
        }
        Err(_) if !json.starts_with('{') => return Err("it is not an entry".to_owned()),
        Err(error) => return Err(format!("it is not JSON ({})", without_position(&error))),
    };
    let is_entry = ["key", "source_agent", "sourceAgent", "timestamp"]
        .iter()
        .any(|member| members.contains_key(*member));
    let Some(value) = members.get("value").filter(|_| is_entry) else {
        if !known.may_be_value {
            return Err("it has no value and no author: it is not an entry".to_owned());
        }
        return Ok(value_alone(value_of(json)?, known));
    };
    let mut read = value_alone(value_of(value.get())?, known);
    read.problems.clear();
    let mut others = Vec::new();
    for (name, member) in &members {
        read.member(name, member, known, &mut others)?;
    }
    if read.entry.ttl.is_some() && read.entry.timestamp.is_none() {
        read.problems.push("it has a TTL and no time; the TTL starts with the import".to_owned());
    }
    let start = read.entry.timestamp.unwrap_or(Timestamp::EPOCH);
    if read.entry.ttl.is_some_and(|ttl| ttl > Timestamp::LAST.since(start)) {
        let last = Timestamp::LAST;
        read.problems
            .push(format!("its TTL is too long; it expires at {last}, the last time that can be stored"));
    }
    if !others.is_empty() {
        let text = format!("{{{}}}", others.join(","));
        match Metadata::parse(&text) {
            Ok(others) => read.entry.others = Some(others),
            Err(error) => read.problems.push(format!("its other members are left out: {error}")),
        }
    }
    Ok(read)
}

fn value_of(json: &str) -> Result<Value, String> {
    Value::parse(json, usize::MAX).map_err(|error| error.to_string())
}

fn value_alone(value: Value, known: &Known<'_>) -> Read {
    let entry = FileEntry { line: known.line, ..FileEntry::new(known.key, value) };
    let problem = "it has no author and no time; all of its JSON is the value".to_owned();
    Read { entry, has_camel_case: false, problems: vec![problem] }
}

impl Read {
    fn member(
        &mut self,
        name: &str,
        member: &RawValue,
        known: &Known<'_>,
        others: &mut Vec<String>,
    ) -> Result<(), String> {
        let entry = &mut self.entry;
        match name {
            "value" => {}
            "key" => {
                let key: String = text(member).ok_or("its key is not a text")?;
                if is_heading_of(known.key, &key) {
                    entry.key = key;
                } else {
                    let message = format!("its JSON has another key: \"{}\"", shown(&key));
                    self.problems.push(message);
                }
            }
            "source_agent" | "sourceAgent" => {
                self.has_camel_case |= name == "sourceAgent";
                let author = optional(member, "its author is not a text", &mut self.problems);
                entry.author = author.or(entry.author.take());
            }
            "timestamp" => {
                let time = text(member).and_then(|text| moment(&text));
                entry.timestamp = time.map(|(time, _)| time);
                match time {
                    Some((_, true)) => {}
                    Some((nearest, false)) => {
                        let range = "its time is not between 1970 and 9999-12-30";
                        self.problems.push(format!("{range}; it becomes {nearest}"));
                    }
                    None => self.problems.push(
                        "its time is not an ISO 8601 time before 9999-12-30; it is left out".to_owned(),
                    ),
                }
            }
            "ttl" => entry.ttl = ttl(member)?,
            "version" => {
                entry.version = optional(member, "its version is not a whole number", &mut self.problems);
            }
            "scope" => entry.scope = optional(member, "its scope is not a text", &mut self.problems),
            "tags" => {
                let tags = serde_json::from_str(member.get());
                entry.tags = Some(tags.map_err(|_| "its tags are not a list of texts")?);
            }
            "metadata" => {
                let metadata = match member.get() {
                    "null" => None,
                    json => Some(Metadata::parse(json).map_err(|error| error.to_string())?),
                };
                entry.metadata = metadata.filter(|metadata| metadata.as_str() != "{}");
            }
            "session_id" => entry.is_leased = member.get() != "null",
            name if OWN.contains(&name) => {}
            name => {
                let value = Value::parse(member.get(), usize::MAX).map_err(|error| error.to_string())?;
                others.push(format!("{}:{}", quoted(name), value.as_str()));
            }
        }
        Ok(())
    }
}

fn text(member: &RawValue) -> Option<String> {
    serde_json::from_str(member.get()).ok()
}

/// A member that may be null. One of another type is left out, with this problem.
fn optional<T: DeserializeOwned>(member: &RawValue, problem: &str, problems: &mut Vec<String>) -> Option<T> {
    serde_json::from_str(member.get()).unwrap_or_else(|_| {
        problems.push(format!("{problem}; it is left out"));
        None
    })
}

/// A time with or without a zone; without one it is UTC. And whether it can be stored: otherwise it is the nearest one that
/// can.
fn moment(text: &str) -> Option<(Timestamp, bool)> {
    let utc = format!("{text}Z");
    let (text, time) = match text.parse() {
        Ok(time) => (text, time),
        Err(_) => (&*utc, utc.parse().ok()?),
    };
    let is_at_end = [Timestamp::EPOCH, Timestamp::LAST].contains(&time);
    // Fractions of a millisecond are left out of every time.
    let is_same = |exact: jiff::Timestamp| exact.as_millisecond() == time.millis();
    Some((time, !is_at_end || text.parse().is_ok_and(is_same)))
}

/// A time to live in seconds. Zero means none, as in the programs that write these files.
fn ttl(member: &RawValue) -> Result<Option<Duration>, String> {
    let seconds: Option<f64> =
        serde_json::from_str(member.get()).map_err(|_| "its TTL is not a number of seconds")?;
    match seconds {
        None | Some(0.0) => Ok(None),
        Some(seconds) if seconds < 0.0 => Err("its TTL is negative".to_owned()),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is not negative, and a larger number means forever anyway"
        )]
        Some(seconds) => Ok(Some(Duration::from_millis((seconds * 1000.0).round() as u64))),
    }
}

/// Whether a heading is that of a key: it may have lost white space at its end in an editor.
fn is_heading_of(heading: &str, key: &str) -> bool {
    heading == key || heading.trim() == heading_of(key).trim()
}

/// The text of the heading of a key.
pub(super) fn heading_of(key: &str) -> String {
    let visible = crate::text::escape_for_terminal(key);
    match visible.strip_prefix('<') {
        // It could be a marker.
        Some(rest) => format!("&lt;{rest}"),
        None => visible.into_owned(),
    }
}

/// The entry in the words of a dialect, on one line.
pub(super) fn write_entry(entry: &FileEntry, dialect: Dialect, out: &mut String) {
    let author = entry.author.as_deref().unwrap_or_default();
    let source = if dialect == Dialect::B { "sourceAgent" } else { "source_agent" };
    let mut json = String::with_capacity(entry.value.as_str().len() + entry.key.len() + author.len() + 128);
    // Writing to a `String` cannot fail.
    let _ = write!(
        json,
        r#"{{"key":{},"value":{},"{source}":{},"timestamp":{},"ttl":"#,
        quoted(&entry.key),
        entry.value.as_str(),
        quoted(author),
        entry.timestamp.map_or_else(|| "null".to_owned(), |time| quoted(&written_time(time, dialect))),
    );
    let _ = match entry.ttl.map(|ttl| ttl.as_millis()) {
        None => write!(json, "null"),
        Some(millis) if millis % 1000 == 0 => write!(json, "{}", millis / 1000),
        Some(millis) => write!(json, "{}.{:03}", millis / 1000, millis % 1000),
    };
    if dialect == Dialect::C {
        let _ = write!(json, r#","version":{}"#, entry.version.unwrap_or(1));
    }
    json.push('}');
    out.push_str(&escape_json_for_terminal(&json));
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A time in the form of a dialect.
pub(super) fn written_time(time: Timestamp, dialect: Dialect) -> String {
    let text = time.to_string();
    match (dialect, text.strip_suffix('Z')) {
        (Dialect::A, Some(text)) => format!("{text}000+00:00"),
        _ => text,
    }
}

/// When an entry was written: an imported one that was not changed since keeps the time of its file.
pub(crate) fn time_of_entry(entry: &Entry) -> Timestamp {
    #[derive(Deserialize)]
    struct Marked {
        imported: Origin,
    }
    #[derive(Deserialize)]
    struct Origin {
        at: Timestamp,
        timestamp: Timestamp,
    }
    let metadata = entry.metadata.as_ref().filter(|metadata| metadata.as_str().contains(IMPORTED));
    let origin = metadata.and_then(|metadata| serde_json::from_str::<Marked>(metadata.as_str()).ok());
    match origin {
        Some(Marked { imported }) if imported.at == entry.updated_at => imported.timestamp,
        _ => entry.updated_at,
    }
}

impl FileEntry {
    /// An entry of a board as a file has it.
    pub fn of(entry: &Entry) -> FileEntry {
        let timestamp = time_of_entry(entry);
        FileEntry {
            scope: Some(entry.scope.clone()),
            author: Some(entry.updated_by.clone()),
            timestamp: Some(timestamp),
            ttl: entry.expires_at.map(|expires| expires.since(timestamp)),
            version: Some(entry.version),
            tags: Some(entry.tags.clone()),
            metadata: entry.metadata.clone(),
            is_leased: entry.session_id.is_some(),
            ..FileEntry::new(&entry.key, entry.value.clone())
        }
    }
}
