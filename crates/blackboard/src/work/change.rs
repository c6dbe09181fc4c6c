//! Changed fields of an item: what an event and a report state of them.

use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use super::WorkItem;
use crate::agent::Agent;
use crate::error::Result;
use crate::event::{EventType, NewEvent, TargetType};
use crate::text::{IN_A_SENTENCE, excerpt};

/// One field of an item that a call changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FieldChange {
    /// The field.
    pub field: &'static str,
    /// Its value before, a long text shortened.
    pub old: Json,
    /// Its value now, a long text shortened.
    pub new: Json,
}

impl FieldChange {
    pub(super) fn new(field: &'static str, old: &Json, new: &Json) -> FieldChange {
        FieldChange { field, old: bounded(old), new: bounded(new) }
    }
}

/// A value for an event: of a long text its beginning.
fn bounded(value: &Json) -> Json {
    match value {
        Json::String(text) => Json::from(excerpt(text, IN_A_SENTENCE)),
        other => other.clone(),
    }
}

/// Fields that a request sets, each if it is given.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NewFields {
    pub(super) title: Option<String>,
    /// An empty one removes it.
    pub(super) description: Option<String>,
    pub(super) priority: Option<super::Priority>,
    pub(super) project: Option<String>,
    pub(super) source: Option<String>,
    pub(super) source_ref: Option<String>,
    /// All labels.
    pub(super) labels: Option<Vec<String>>,
    pub(super) estimate: Option<u64>,
}

impl NewFields {
    /// Sets the fields of an item, and returns those that changed.
    pub(super) fn apply(&self, item: &mut WorkItem) -> Result<Vec<FieldChange>> {
        let mut changed = Vec::new();
        let mut note = |field, old: Json, new: Json| {
            let differs = old != new;
            if differs {
                changed.push(FieldChange::new(field, &old, &new));
            }
            differs
        };
        if let Some(title) = &self.title
            && note("title", json!(item.title), json!(title))
        {
            item.title.clone_from(title);
        }
        if let Some(description) = &self.description {
            let description = Some(description.clone()).filter(|text| !text.is_empty());
            if note("description", json!(item.description), json!(description)) {
                item.description = description;
            }
        }
        if let Some(priority) = self.priority
            && note("priority", json!(item.priority), json!(priority))
        {
            item.priority = priority;
        }
        for (field, new, stored) in [
            ("project", &self.project, &mut item.project_id),
            ("source_ref", &self.source_ref, &mut item.source_ref),
        ] {
            if new.is_some() && note(field, json!(stored), json!(new)) {
                stored.clone_from(new);
            }
        }
        if let Some(source) = &self.source
            && note("source", json!(item.source), json!(source))
        {
            item.source.clone_from(source);
        }
        if let Some(labels) = &self.labels
            && note("labels", json!(item.labels()), json!(labels))
        {
            item.set_labels(labels)?;
        }
        if self.estimate.is_some() && note("estimate", json!(item.estimate()), json!(self.estimate)) {
            item.set_estimate(self.estimate)?;
        }
        Ok(changed)
    }
}

/// The event of changed fields. It names the holder of the item, who is notified.
pub(super) fn updated_event(item: &WorkItem, changed: &[FieldChange], summary: String) -> NewEvent {
    let values = changed.iter().map(|change| {
        let values = json!({"old": change.old, "new": change.new});
        (change.field.to_owned(), values)
    });
    let mut details = Map::new();
    details.insert("changes".to_owned(), Json::Object(values.collect()));
    if let Some(holder) = item.claimed_by.as_ref().filter(|session| item.is_held_by(session)) {
        details.insert("held_by".to_owned(), json!(holder));
    }
    NewEvent::new(EventType::WorkUpdated, TargetType::WorkItem, &item.item_id, summary).with_all(details)
}

/// The names of changed fields in a sentence.
pub(super) fn names_of(changed: &[FieldChange]) -> String {
    changed.iter().map(|change| change.field.replace('_', " ")).collect::<Vec<_>>().join(", ")
}

/// The holder of an item with a new title, if the item is its current work.
pub(super) fn with_new_title(holder: &Agent, before: &WorkItem, item: &WorkItem) -> Option<Agent> {
    let is_current = before.title != item.title && holder.works_on(before);
    is_current.then(|| Agent {
        current_work: Some(item.title.clone()),
        revision: item.revision,
        ..holder.clone()
    })
}
