//! `work edit`: changes the text and other fields of an item.

use serde::Serialize;
use serde_json::{Value as Json, json};

use super::change::{FieldChange, NewFields, names_of, updated_event, with_new_title};
use super::details::{check_estimate, check_label_count, clean_labels};
use super::{Priority, Work, WorkItem, existing};
use crate::agent::{Agent, prefetch_agent};
use crate::error::{Error, Result};
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Prefetch, Tx};
use crate::text::{Cleaner, Kind, TextChanges};

/// The fields of an item to change, each if it is given.
#[derive(Clone, Debug, Default)]
pub struct Edit {
    /// The item.
    pub id: String,
    /// Its new title.
    pub title: Option<String>,
    /// Its new description; an empty one removes it.
    pub description: Option<String>,
    /// Its new priority.
    pub priority: Option<Priority>,
    /// The registered project that it belongs to from now on.
    pub project: Option<String>,
    /// Whether it belongs to no project from now on.
    pub remove_project: bool,
    /// Labels to add.
    pub add_labels: Vec<String>,
    /// Labels to remove.
    pub remove_labels: Vec<String>,
    /// The tokens that it is expected to need.
    pub estimate: Option<u64>,
    /// Whether it has no estimate from now on.
    pub remove_estimate: bool,
    /// The session that changes it.
    pub session: Option<String>,
}

impl Edit {
    /// A request that changes nothing of this item yet.
    pub fn of(id: &str) -> Edit {
        Edit { id: id.to_owned(), ..Edit::default() }
    }
}

/// The result of an edit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Edited {
    /// The item.
    #[serde(flatten)]
    pub item: WorkItem,
    /// The fields that this call changed. Empty if all of them had these values.
    pub changes: Vec<FieldChange>,
    /// The changes to the text.
    #[serde(flatten)]
    pub text: TextChanges,
}

impl Pending for Edited {
    fn resolve(&mut self, first: Revision) {
        self.item.resolve(first);
    }
}

impl Work<'_> {
    /// Changes fields of an item, with one event that states their old and new values. The status and the claim of the item
    /// stay, and its holder is notified.
    ///
    /// ```
    /// # use blackboard::{Board, work::{Create, Edit, Priority}};
    /// # let board = Board::memory();
    /// board.work().create(&Create::new("fix-tests", "Fix the tests"))?;
    /// let edit = Edit { priority: Some(Priority::P1), ..Edit::of("fix-tests") };
    /// assert_eq!(board.work().edit(&edit)?.changes[0].field, "priority");
    /// assert!(board.work().edit(&edit)?.changes.is_empty());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn edit(&self, edit: &Edit) -> Result<Edited> {
        let mut cleaner = Cleaner::new(&self.board.settings().text);
        let mut edit = edit.clone();
        edit.title = cleaner.maybe("title", Kind::Field, edit.title.as_ref())?;
        if edit.title.as_ref().is_some_and(String::is_empty) {
            return Err(Error::invalid("the title of a work item cannot be empty"));
        }
        edit.description = cleaner.maybe("description", Kind::Description, edit.description.as_ref())?;
        edit.add_labels = clean_labels(&mut cleaner, &edit.add_labels)?;
        check_estimate(edit.estimate)?;
        let text = cleaner.changes();
        let mut prefetch = vec![Prefetch::Row(Key::WorkItem(edit.id.clone()))];
        prefetch.extend(edit.project.iter().map(|project| Prefetch::Row(Key::Project(project.clone()))));
        prefetch.extend(prefetch_agent(edit.session.as_deref()));
        self.board.commit("work edit", &prefetch, |tx| {
            let item = existing(tx, &edit.id)?;
            if let Some(project) = &edit.project {
                crate::project::existing(tx, project)?;
            }
            let holder = renamed_holder(tx, &edit, &item)?;
            let (mut changes, mut edited) = decide(&edit, &item, holder.as_ref())?;
            if !edited.changes.is_empty() {
                edited.text.clone_from(&text);
            }
            self.board.agents().record_activity_of(tx, edit.session.as_deref(), &mut changes)?;
            Ok((changes, edited))
        })
    }
}

/// The holder of the item, if the item gets another title.
fn renamed_holder(tx: &dyn Tx, edit: &Edit, item: &WorkItem) -> Result<Option<Agent>> {
    let is_renamed = edit.title.as_ref().is_some_and(|title| *title != item.title);
    match item.claimed_by.as_ref().filter(|session| is_renamed && item.is_held_by(session)) {
        Some(session) => {
            let key = Key::Agent(session.clone());
            tx.prefetch(&[Prefetch::Row(key.clone())])?;
            tx.row(&key)
        }
        None => Ok(None),
    }
}

fn decide(edit: &Edit, before: &WorkItem, holder: Option<&Agent>) -> Result<(Changes, Edited)> {
    let mut labels = before.labels();
    labels.extend(edit.add_labels.iter().cloned());
    labels.retain(|label| !edit.remove_labels.contains(label));
    labels.sort();
    labels.dedup();
    let fields = NewFields {
        title: edit.title.clone(),
        description: edit.description.clone(),
        priority: edit.priority,
        project: edit.project.clone(),
        labels: (!edit.add_labels.is_empty() || !edit.remove_labels.is_empty()).then_some(labels),
        estimate: edit.estimate,
        ..NewFields::default()
    };
    check_label_count(fields.labels.as_ref().map_or(0, Vec::len))?;
    let mut item = before.clone();
    let mut updated = fields.apply(&mut item)?;
    if let Some(project) = item.project_id.take_if(|_| edit.remove_project) {
        updated.push(FieldChange::new("project", &json!(project), &Json::Null));
    }
    if let Some(estimate) = item.estimate().filter(|_| edit.remove_estimate) {
        item.set_estimate(None)?;
        updated.push(FieldChange::new("estimate", &json!(estimate), &Json::Null));
    }
    let mut changes = Changes::new();
    if !updated.is_empty() {
        let summary = format!("\"{}\" was updated: {}", item.title, names_of(&updated));
        let event = updated_event(&item, &updated, summary).by(edit.session.as_deref());
        item.revision = changes.event(event);
        changes.put(item.clone());
        if let Some(holder) = holder.and_then(|holder| with_new_title(holder, before, &item)) {
            changes.put(holder);
        }
    }
    Ok((changes, Edited { item, changes: updated, text: TextChanges::default() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::{an_agent, an_item};
    use crate::work::Status;

    fn labels(labels: &[&str]) -> Vec<String> {
        labels.iter().map(|&label| label.to_owned()).collect()
    }

    #[test]
    fn an_edit_has_one_event_if_a_value_differs() {
        let mut item = WorkItem { title: "X".to_owned(), project_id: Some("old".to_owned()), ..an_item("x") };
        item.set_labels(&labels(&["a", "b"])).unwrap();
        item.set_estimate(Some(5)).unwrap();
        let text = |text: &str| Some(text.to_owned());
        for (edit, expected) in [
            (Edit::default(), &[][..]),
            (Edit { title: text("X"), priority: Some(Priority::P2), ..Edit::default() }, &[]),
            (Edit { add_labels: labels(&["b"]), estimate: Some(5), ..Edit::default() }, &[]),
            (Edit { remove_labels: labels(&["c"]), description: text(""), ..Edit::default() }, &[]),
            (
                Edit { title: text("Y"), description: text("Long"), ..Edit::default() },
                &["title", "description"],
            ),
            (
                Edit { priority: Some(Priority::P1), project: text("pai"), ..Edit::default() },
                &["priority", "project"],
            ),
            (
                Edit { add_labels: labels(&["c"]), remove_labels: labels(&["a"]), ..Edit::default() },
                &["labels"],
            ),
            (Edit { estimate: Some(6), ..Edit::default() }, &["estimate"]),
            (
                Edit { remove_project: true, remove_estimate: true, ..Edit::default() },
                &["project", "estimate"],
            ),
        ] {
            let (changes, edited) = decide(&edit, &item, None).unwrap();
            let fields: Vec<_> = edited.changes.iter().map(|change| change.field).collect();
            assert_eq!(fields, expected, "{edit:?}");
            assert_eq!(changes.events.len(), usize::from(!expected.is_empty()), "{edit:?}");
            assert_eq!(edited.item == item, expected.is_empty(), "{edit:?}");
        }
        let removal = Edit { remove_project: true, remove_estimate: true, ..Edit::default() };
        let without = decide(&removal, &item, None).unwrap().1.item;
        assert_eq!((&without.project_id, without.estimate()), (&None, None));
        assert_eq!(decide(&removal, &without, None).unwrap().1.changes, []);
        let many = (0..=100).map(|number| number.to_string()).collect();
        assert!(decide(&Edit { add_labels: many, ..Edit::default() }, &item, None).is_err());
    }

    #[test]
    fn the_event_has_bounded_values_and_the_holder_whose_current_work_is_renamed() {
        testkit::limit_test();
        let held = WorkItem {
            title: "X".to_owned(),
            status: Status::Claimed,
            claimed_by: Some("ivy".to_owned()),
            fence: Some(Revision::new(7)),
            ..an_item("x")
        };
        let ivy = Agent { current_work: Some("X".to_owned()), ..an_agent("ivy") };
        let edit =
            Edit { title: Some("Y".to_owned()), description: Some("x".repeat(10_000)), ..Edit::of("x") };
        let (changes, edited) = decide(&edit, &held, Some(&ivy)).unwrap();
        let details = changes.events[0].metadata.as_ref().unwrap().to_map();
        assert_eq!(
            (&details["held_by"], &details["changes"]["title"]),
            (&json!("ivy"), &json!({"old": "X", "new": "Y"}))
        );
        assert_eq!(details["changes"]["description"]["new"].as_str().unwrap().chars().count(), 500);
        assert_eq!(changes.events[0].summary, "\"Y\" was updated: title, description");
        assert_eq!((&edited.item.claimed_by, edited.item.fence), (&held.claimed_by, held.fence));
        let renamed = changes.put.iter().find_map(|row| match row {
            crate::store::Row::Agent(agent) => agent.current_work.as_deref(),
            _ => None,
        });
        assert_eq!(renamed, Some("Y"));
    }
}
