//! What was under a key.

use blackboard::Metadata;
use blackboard::Revision;
use blackboard::clock::Timestamp;
use blackboard::entry::{EntryVersion, Value};
use blackboard::event::{Event, EventType};
use serde::Serialize;

use super::glimpse;
use crate::envelope::Answer;
use crate::outcome::Render;
use crate::output::{Cell, Column, Result, Screen, Table, time};

/// The answer of `history`.
pub struct KeyHistory {
    /// The newest first.
    pub changes: Vec<Change>,
    /// Whether there are older ones that can be shown.
    pub more: bool,
    /// Whether there were older ones, which retention has removed.
    pub compacted: bool,
}

/// One change of a key.
pub struct Change {
    /// What it left, or removed.
    pub version: EntryVersion,
    /// The event of a removal, unless it was pruned.
    pub removal: Option<Event>,
}

#[derive(Serialize)]
struct HistoryRow<'a> {
    revision: Revision,
    version: u64,
    what: &'static str,
    timestamp: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a Value>,
    expires_at: Option<Timestamp>,
    tags: &'a [String],
    metadata: Option<&'a Metadata>,
    previous: Option<Revision>,
}

#[derive(Serialize)]
struct Rest {
    more: bool,
    compacted: bool,
}

impl Change {
    /// In one word.
    fn what(&self) -> &'static str {
        let releases = |event: &Event| {
            event
                .metadata
                .as_ref()
                .is_some_and(|metadata| metadata.to_map().get("op") == Some(&"release".into()))
        };
        match &self.removal {
            _ if !self.version.removed => "written",
            _ if self.version.is_purge() => "purged",
            Some(event) if event.event_type == EventType::EntryExpired => "expired",
            Some(event) if event.event_type == EventType::EntryEvicted => "evicted",
            Some(event) if releases(event) => "released",
            Some(_) => "deleted",
            None => "removed",
        }
    }

    fn shown(&self) -> HistoryRow<'_> {
        let EntryVersion { entry, previous, removed } = &self.version;
        HistoryRow {
            revision: entry.revision,
            version: entry.version,
            what: self.what(),
            timestamp: self.timestamp(),
            source_agent: self.author(),
            summary: self.removal.as_ref().map(|event| event.summary.as_str()),
            value: (!removed).then_some(&entry.value),
            expires_at: entry.expires_at,
            tags: &entry.tags,
            metadata: entry.metadata.as_ref(),
            previous: *previous,
        }
    }

    /// Who did it. An entry that expires has no author here.
    fn author(&self) -> Option<&str> {
        (self.what() != "expired").then_some(&self.version.entry.updated_by)
    }

    fn timestamp(&self) -> Option<Timestamp> {
        match &self.removal {
            Some(event) => Some(event.timestamp),
            None => (!self.version.removed).then_some(self.version.entry.updated_at),
        }
    }
}

impl Render for KeyHistory {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        let changes: Vec<_> = self.changes.iter().map(Change::shown).collect();
        answer.list_with(&changes, &Rest { more: self.more, compacted: self.compacted })
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        let mut table = Table::new([
            Column::typed("REVISION"),
            Column::fixed("VERSION").importance(1),
            Column::fixed("CHANGE").importance(4),
            Column::fixed("AGE").importance(3),
            Column::name("AUTHOR").importance(2),
            Column::text("VALUE").importance(5),
        ]);
        let now = screen.now();
        for change in &self.changes {
            let entry = &change.version.entry;
            let value = (!change.version.removed).then(|| glimpse(&entry.value, screen));
            table.row([
                Cell::new(entry.revision.to_string()),
                Cell::new(entry.version.to_string()),
                Cell::new(change.what()),
                Cell::optional(change.timestamp().map(|moment| time::age(now.since(moment)))),
                Cell::optional(change.author()),
                Cell::optional(value),
            ]);
        }
        screen.table(&table)?;
        if self.more {
            screen.line(format_args!("There are older versions. Use --limit N for more."))?;
        }
        if self.compacted {
            screen.line(format_args!("Older versions have been pruned."))?;
        }
        Ok(())
    }
}
