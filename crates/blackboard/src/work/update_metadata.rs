//! `work update-metadata`: adds members to the metadata of an item.

use serde::Serialize;

use super::{Work, WorkItem, details, existing};
use crate::agent::prefetch_agent;
use crate::error::Result;
use crate::event::{EventType, NewEvent, TargetType};
use crate::metadata::Metadata;
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Prefetch};

/// The members to add or replace.
#[derive(Clone, Debug)]
pub struct UpdateMetadata {
    /// The item.
    pub id: String,
    /// The members. Others stay as they are. Those that the board writes, `outside` and `blackboard`, are refused.
    pub metadata: Metadata,
    /// The session that does it; none if an operator does.
    pub session: Option<String>,
}

/// An item with its metadata.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UpdatedMetadata {
    /// The item.
    #[serde(flatten)]
    pub item: WorkItem,
    /// Whether this call changed something.
    pub updated: bool,
    /// The members that it added or changed.
    pub changed: Vec<String>,
}

impl Pending for UpdatedMetadata {
    fn resolve(&mut self, first: Revision) {
        self.item.resolve(first);
    }
}

impl Work<'_> {
    /// Adds members to the metadata of an item, or replaces them. The others stay as they are.
    ///
    /// ```
    /// # use blackboard::{Board, Metadata, work::{Create, UpdateMetadata}};
    /// # let board = Board::memory();
    /// # board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// let metadata = Metadata::parse(r#"{"branch": "main"}"#)?;
    /// let update = UpdateMetadata { id: "fix-tests".to_owned(), metadata, session: None };
    /// assert_eq!(board.work().update_metadata(&update)?.changed, ["branch"]);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn update_metadata(&self, update: &UpdateMetadata) -> Result<UpdatedMetadata> {
        self.board.settings().text.check_json([update.metadata.as_str()])?;
        details::check_given(&update.metadata)?;
        let session = update.session.as_deref();
        let mut prefetch = vec![Prefetch::Row(Key::WorkItem(update.id.clone()))];
        prefetch.extend(prefetch_agent(session));
        self.board.commit_as(session.as_slice(), "work update-metadata", &prefetch, |tx| {
            let (mut changes, updated) = decide(update, existing(tx, &update.id)?)?;
            self.board.agents().record_activity_of(tx, session, &mut changes)?;
            Ok((changes, updated))
        })
    }
}

fn decide(update: &UpdateMetadata, mut item: WorkItem) -> Result<(Changes, UpdatedMetadata)> {
    let mut changes = Changes::new();
    let stored = item.metadata.as_ref().map(Metadata::to_map).unwrap_or_default();
    let given = update.metadata.to_map();
    let differing = given.iter().filter(|(name, value)| stored.get(*name) != Some(*value));
    let names: Vec<String> = differing.map(|(name, _)| name.clone()).collect();
    if names.is_empty() {
        return Ok((changes, UpdatedMetadata { item, updated: false, changed: names }));
    }
    item.metadata = Some(match &item.metadata {
        Some(stored) => stored.merged_with(&update.metadata)?,
        None => update.metadata.clone(),
    });
    let summary = format!("Metadata of \"{}\" updated: {}", item.title, names.join(", "));
    let event = NewEvent::new(EventType::MetadataUpdated, TargetType::WorkItem, &item.item_id, summary);
    let event = event.by(update.session.as_deref()).with("keys_updated", names.clone());
    item.revision = changes.event(event);
    changes.put(item.clone());
    Ok((changes, UpdatedMetadata { item, updated: true, changed: names }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::an_item;

    #[test]
    fn members_are_merged_and_only_changes_have_an_event() {
        for (stored, given, expected, events) in [
            (None, r#"{"a":1}"#, r#"{"a":1}"#, 1),
            (Some(r#"{"a":1,"b":1.0}"#), r#"{"a":2}"#, r#"{"a":2,"b":1.0}"#, 1),
            (Some(r#"{"a":1}"#), r#"{"c":null}"#, r#"{"a":1,"c":null}"#, 1),
            (Some(r#"{"a":1}"#), r#"{"a":1}"#, r#"{"a":1}"#, 0),
            (Some(r#"{"a":1}"#), "{}", r#"{"a":1}"#, 0),
        ] {
            let metadata = |text| Metadata::parse(text).unwrap();
            let item = WorkItem { metadata: stored.map(metadata), ..an_item("x") };
            let update = UpdateMetadata { id: "x".to_owned(), metadata: metadata(given), session: None };
            let (changes, updated) = decide(&update, item).unwrap();
            assert_eq!(updated.item.metadata.unwrap().as_str(), expected);
            assert_eq!((changes.events.len(), updated.updated), (events, events == 1), "{given}");
        }
    }
}
