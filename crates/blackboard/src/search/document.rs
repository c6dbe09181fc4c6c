//! [`Document`]: what of the board can be found, and under which words.

use serde::Serialize;

use super::words::text_of_json;
use crate::clock::Timestamp;
use crate::entry::{Entry, FILES, LOCKS};
use crate::event::{Event, EventType, TargetType};
use crate::metadata::Metadata;
use crate::names::impl_names;
use crate::revision::Revision;
use crate::work::WorkItem;

/// How much of a text is indexed and searched. Nobody looks for a word in the middle of megabytes of data.
const MOST_TEXT: usize = 256 * 1024;

/// What a result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An entry.
    Entry,
    /// A work item.
    Work,
    /// An event, for example a progress note.
    Event,
}

impl Kind {
    /// All of them.
    pub const ALL: &'static [Kind] = &[Kind::Entry, Kind::Work, Kind::Event];

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Entry => "entry",
            Kind::Work => "work",
            Kind::Event => "event",
        }
    }

    pub(super) fn number(self) -> u32 {
        match self {
            Kind::Entry => 0,
            Kind::Work => 1,
            Kind::Event => 2,
        }
    }

    pub(super) fn of_number(number: u32) -> Option<Kind> {
        Kind::ALL.iter().copied().find(|kind| kind.number() == number)
    }
}

impl_names!(Kind, "kind of result");

/// What identifies a document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Name {
    pub(super) kind: Kind,
    /// The scope of an entry, otherwise empty.
    pub(super) scope: String,
    /// The key of an entry, the id of a work item, or the revision of an event.
    pub(super) id: String,
}

impl Name {
    pub(super) fn entry(scope: &str, key: &str) -> Name {
        Name { kind: Kind::Entry, scope: scope.to_owned(), id: key.to_owned() }
    }

    pub(super) fn work(id: &str) -> Name {
        Name { kind: Kind::Work, scope: String::new(), id: id.to_owned() }
    }

    pub(super) fn event(revision: Revision) -> Name {
        Name { kind: Kind::Event, scope: String::new(), id: revision.to_string() }
    }

    /// The same for equal names, on every machine (FNV-1a).
    pub(super) fn hash(&self) -> u32 {
        let bytes = [self.kind.as_str().as_bytes(), self.scope.as_bytes(), b"\0", self.id.as_bytes()];
        bytes
            .iter()
            .flat_map(|part| part.iter())
            .fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
    }
}

/// What of the board can be found: an entry, a work item or an event, in its current state.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Document {
    pub(super) name: Name,
    pub(super) revision: Revision,
    /// When it was written last.
    pub(super) time: Timestamp,
    pub(super) author: String,
    pub(super) tags: Vec<String>,
    /// Its texts, each with how much more a word counts there.
    pub(super) texts: Vec<(u32, String)>,
}

/// How much a word counts in a key or a title, in tags, and in the rest.
const IN_TITLE: u32 = 3;
const IN_TAGS: u32 = 2;
const IN_TEXT: u32 = 1;

/// Whether the entries of a scope can be found. Locks and file reservations have lists of their own, and change with every edit.
pub(super) fn has_searched_entries(scope: &str) -> bool {
    !matches!(scope, LOCKS | FILES)
}

impl Document {
    pub(super) fn of_entry(entry: &Entry) -> Document {
        Document {
            name: Name::entry(&entry.scope, &entry.key),
            revision: entry.revision,
            time: entry.updated_at,
            author: entry.updated_by.clone(),
            tags: entry.tags.clone(),
            texts: vec![
                (IN_TITLE, entry.key.clone()),
                (IN_TAGS, entry.tags.join(" ")),
                (IN_TEXT, text_of_json(bounded(entry.value.as_str())).into_owned()),
            ],
        }
    }

    pub(super) fn of_item(item: &WorkItem) -> Document {
        let times = [Some(item.created_at), item.claimed_at, item.completed_at];
        let time = times.into_iter().flatten().max().unwrap_or(item.created_at);
        let metadata = item.metadata.as_ref().map(|metadata| text_of_json(metadata.as_str()).into_owned());
        let texts = [
            (IN_TITLE, Some(item.item_id.clone())),
            (IN_TITLE, Some(item.title.clone())),
            (IN_TAGS, item.project_id.clone()),
            (IN_TEXT, item.description.as_deref().map(|text| bounded(text).to_owned())),
            (IN_TEXT, item.summary.clone()),
            (IN_TEXT, item.source_ref.clone()),
            (IN_TEXT, metadata),
        ];
        Document {
            name: Name::work(&item.item_id),
            revision: item.revision,
            time,
            author: item.claimed_by_name.clone().unwrap_or_default(),
            tags: item.labels(),
            texts: texts.into_iter().filter_map(|(weight, text)| Some((weight, text?))).collect(),
        }
    }

    /// The document of an event; `None` for events about entries and scopes. What was written is found as an entry, and
    /// what was removed is not found.
    pub(super) fn of_event(event: &Event) -> Option<Document> {
        if !is_searched(event) {
            return None;
        }
        let details = event.metadata.as_ref().map(details).unwrap_or_default();
        // A summary has the beginning of a longer text.
        let summary = if details.is_empty() { event.summary.clone() } else { without_text(event) };
        let texts = std::iter::once(summary).chain(details).map(|text| (IN_TEXT, text));
        Some(Document {
            name: Name::event(event.id),
            revision: event.id,
            time: event.timestamp,
            author: String::new(),
            tags: Vec::new(),
            texts: texts.collect(),
        })
    }

    /// Its text, as it is shown.
    pub(super) fn shown(&self) -> String {
        let shown: Vec<&str> = self
            .texts
            .iter()
            .skip(if self.name.kind == Kind::Entry { 2 } else { usize::from(self.name.kind == Kind::Work) })
            .map(|(_, text)| text.as_str())
            .filter(|text| !text.is_empty())
            .collect();
        shown.join("\n")
    }
}

/// The types of events that are found: everything but entries and scopes, whose entries are found themselves.
pub(super) fn is_searched(event: &Event) -> bool {
    match event.target_type {
        Some(TargetType::Entry | TargetType::Scope) => false,
        Some(TargetType::Agent | TargetType::WorkItem | TargetType::Project | TargetType::Protocol) => true,
        None => matches!(event.event_type, EventType::QuotaWarning),
    }
}

/// The complete texts of an event, of which its summary may have the beginning.
fn details(metadata: &Metadata) -> Vec<String> {
    let members = metadata.to_map();
    let texts = ["progress", "summary", "reason", "message"].into_iter();
    texts.filter_map(|name| members.get(name)?.as_str().map(str::to_owned)).collect()
}

/// The summary of an event up to the text that its metadata has.
fn without_text(event: &Event) -> String {
    match event.event_type {
        EventType::HeartbeatReceived => {
            event.summary.split_once(": ").map_or_else(String::new, |(agent, _)| format!("{agent}:"))
        }
        _ => event.summary.clone(),
    }
}

/// The beginning of a text, as much as is searched.
fn bounded(text: &str) -> &str {
    &text[..text.floor_char_boundary(MOST_TEXT)]
}
