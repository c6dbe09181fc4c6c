//! [`Batch`]: the items of one commit, with their events.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::json;

use super::merge::{Merged, StatusChange, TrackedItem, merge};
use super::view::{View, Wanted};
use super::{ImportItems, ImportedAs, ImportedItem};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::scope::EndsWith;
use crate::store::{Changes, Key, Tx};
use crate::work::change::{FieldChange, names_of, updated_event, with_new_title};
use crate::work::closed::complete_closed;
use crate::work::dependencies::{follow_blockers, follow_with_event};
use crate::work::{Dependency, Status, WorkItem};

/// What became of items, each with its position in the import.
type Report = Vec<(usize, ImportedItem)>;

pub(super) struct Batch<'a> {
    import: &'a ImportItems,
    /// The items that are closed at their source.
    closed: &'a HashSet<String>,
    unknown_projects: BTreeSet<String>,
    now: Timestamp,
    pub(super) view: View<'a>,
    changes: Changes,
    /// The items and agents to write. They are written once, in their last state.
    changed_items: BTreeSet<String>,
    changed_agents: BTreeSet<String>,
    /// Whether a dependency is added (`true`) or removed.
    dependencies: BTreeMap<(String, String), bool>,
    /// Items that were completed or opened again, so that what they block changes.
    status_changed: BTreeSet<String>,
    pub(super) report: Vec<(usize, ImportedItem)>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(
        import: &'a ImportItems,
        closed: &'a HashSet<String>,
        unknown_projects: BTreeSet<String>,
        view: View<'a>,
        now: Timestamp,
    ) -> Batch<'a> {
        Batch {
            import,
            closed,
            unknown_projects,
            now,
            view,
            changes: Changes::new(),
            changed_items: BTreeSet::new(),
            changed_agents: BTreeSet::new(),
            dependencies: BTreeMap::new(),
            status_changed: BTreeSet::new(),
            report: Vec::new(),
        }
    }

    /// Reads what these items need: in one step, unless dependencies or the closed state of some changed.
    pub(super) fn load(&mut self, tx: &dyn Tx, items: &[TrackedItem]) -> Result<()> {
        let ids: BTreeSet<String> = items.iter().map(|item| item.id.clone()).collect();
        self.view.load(tx, Wanted { items: ids.clone(), blockers: ids, ..Wanted::default() })?;
        let mut wanted = Wanted::default();
        let mut chains = BTreeSet::new();
        for tracked in items {
            let id = &tracked.id;
            let before = self.view.item(id);
            let seen = before.map(WorkItem::outside).unwrap_or_default();
            let named = tracked.blocked_by.as_ref();
            let changes_blockers = named.is_some_and(|named| *named != seen.blocked_by);
            let changes_status = tracked.is_closed != seen.is_closed;
            if changes_status {
                wanted.dependents.insert(id.clone());
            }
            if changes_blockers {
                let new = named.into_iter().flatten().filter(|blocker| !seen.blocked_by.contains(blocker));
                for blocker in new {
                    wanted.dependents.extend([id.clone(), blocker.clone()]);
                    wanted.added.push((id.clone(), blocker.clone()));
                    wanted.items.insert(blocker.clone());
                    chains.insert(blocker.clone());
                }
                let old = seen
                    .blocked_by
                    .iter()
                    .filter(|blocker| self.view.blockers(id).contains(&blocker.as_str()));
                wanted.dependents.extend(old.cloned());
            }
            if changes_blockers || changes_status || tracked.changes_hold(&seen) {
                wanted.items.extend(self.view.blockers(id).into_iter().map(str::to_owned));
            }
            let new_title = tracked.fields.title.as_ref();
            if let Some(before) = before.filter(|before| new_title != Some(&before.title)) {
                wanted.agents.extend(before.claimed_by.clone().filter(|session| before.is_held_by(session)));
            }
        }
        self.view.load(tx, wanted)?;
        self.view.load_chains(tx, chains)?;
        self.load_dependents(tx, items)
    }

    /// Reads the items that those with a new closed state block, and what else blocks these.
    fn load_dependents(&mut self, tx: &dyn Tx, items: &[TrackedItem]) -> Result<()> {
        let is_changed = |tracked: &&TrackedItem| {
            let seen = self.view.item(&tracked.id).map(WorkItem::outside).unwrap_or_default();
            tracked.is_closed != seen.is_closed
        };
        let changed = items.iter().filter(is_changed);
        let dependents: BTreeSet<String> = changed.flat_map(|item| self.view.dependents(&item.id)).collect();
        let wanted = Wanted { items: dependents.clone(), blockers: dependents.clone(), ..Wanted::default() };
        self.view.load(tx, wanted)?;
        let blockers = dependents.iter().flat_map(|id| self.view.blockers(id)).map(str::to_owned).collect();
        self.view.load(tx, Wanted { items: blockers, ..Wanted::default() })
    }

    /// Imports one item. If it is refused, it changes nothing.
    pub(super) fn import(&mut self, tracked: &TrackedItem) -> Result<()> {
        let outside = &self.import.items[tracked.at];
        let mut tracked = tracked.clone();
        let mut notes = Vec::new();
        if let Some(project) =
            tracked.fields.project.take_if(|project| self.unknown_projects.contains(project))
        {
            notes.push(format!("project {project} is not registered; it is left out"));
        }
        if tracked.blocks_itself {
            notes.push("it is not blocked by itself: a dependency cycle".to_owned());
        }
        self.leave_out_blockers(&mut tracked, &mut notes);
        let before = self.view.item(&tracked.id);
        if before.is_none() && tracked.is_closed && !self.import.with_closed {
            let skipped = ImportedItem::skipped(outside, "it is closed, and not on the board");
            self.report.push((tracked.at, skipped));
            return Ok(());
        }
        let blockers = self.view.blockers(&tracked.id);
        let imported = match merge(before, &blockers, &tracked, self.import, self.now) {
            Ok(merged) => {
                let before = before.cloned();
                let (outcome, changes, held_by) = self.apply(before.as_ref(), merged);
                let title = tracked.fields.title.clone().unwrap_or_default();
                let imported = ImportedItem::of(outside, outcome);
                ImportedItem { title, changes, held_by, notes, ..imported }
            }
            Err(Error::Refusal(refusal)) => ImportedItem::refused(outside, refusal.code, refusal.message),
            Err(fault) => return Err(fault),
        };
        self.report.push((tracked.at, imported));
        Ok(())
    }

    /// Leaves out blockers that are closed and not on the board, and those that would close a cycle.
    fn leave_out_blockers(&self, tracked: &mut TrackedItem, notes: &mut Vec<String>) {
        let id = &tracked.id;
        let Some(blockers) = &mut tracked.blocked_by else { return };
        let stored = self.view.blockers(id);
        let seen = self.view.item(id).map(WorkItem::outside).unwrap_or_default();
        blockers.retain(|blocker| {
            let is_known = stored.contains(&blocker.as_str()) || seen.blocked_by.contains(blocker);
            let is_absent = self.view.item(blocker).is_none();
            if !is_known && is_absent && self.closed.contains(blocker) && !self.import.with_closed {
                return false;
            }
            if !is_known && self.view.closes_cycle(id, blocker) {
                notes.push(format!(
                    "it is not blocked by {blocker}, which is blocked by it: a dependency cycle"
                ));
                return false;
            }
            true
        });
    }

    fn apply(
        &mut self,
        before: Option<&WorkItem>,
        merged: Merged,
    ) -> (ImportedAs, Vec<FieldChange>, Option<String>) {
        if before.is_some() && merged.is_unchanged() {
            return (ImportedAs::Unchanged, Vec::new(), None);
        }
        let Merged { mut item, changed, status, add, remove } = merged;
        let session = self.import.session.as_deref();
        let id = item.item_id.clone();
        let mut reported = changed.clone();
        let changes_dependencies = !add.is_empty() || !remove.is_empty();
        if changes_dependencies && before.is_some() && !changed.iter().any(|one| one.field == "blocked_by") {
            let old = json!(self.view.blockers(&id));
            self.change_dependencies(&id, add, &remove);
            reported.push(FieldChange::new("blocked_by", &old, &json!(self.view.blockers(&id))));
        } else {
            self.change_dependencies(&id, add, &remove);
        }
        let changes_hold = match before {
            Some(_) => changed.iter().any(|one| one.field == "on_hold"),
            None => item.is_on_hold(),
        };
        let mut outcome = ImportedAs::Updated;
        let mut held_by = None;
        match before {
            None => {
                outcome = ImportedAs::Created;
                reported.clear();
                item.revision = self.changes.event(self.creation(&item));
            }
            Some(before) => {
                if status == StatusChange::CompletesOnRelease || !changed.is_empty() {
                    let event = self.update(&item, changed, status).by(session);
                    item.revision = self.changes.event(event);
                }
                self.rename_current_work(before, &item);
            }
        }
        match status {
            StatusChange::Stays | StatusChange::CompletesOnRelease => {
                if (changes_dependencies || changes_hold) && item.status != Status::Completed {
                    let open = self.view.open_blockers(&id);
                    if before.is_some() && changes_dependencies {
                        follow_with_event(&mut item, &open, session, &mut self.changes);
                    } else {
                        follow_blockers(&mut item, &open, session, &mut self.changes);
                    }
                }
                if status == StatusChange::CompletesOnRelease {
                    outcome = ImportedAs::Closing;
                    held_by = item.holder_label();
                }
            }
            StatusChange::Completes => {
                if before.is_some() {
                    outcome = ImportedAs::Completed;
                }
                let event = complete_closed(&mut item, session, self.now);
                // An item that was closed before the board had it is only created: nothing happened here.
                if before.is_some() {
                    item.revision = self.changes.event(event);
                }
                self.status_changed.insert(id.clone());
            }
            StatusChange::Reopens => {
                outcome = ImportedAs::Reopened;
                self.reopen(&mut item);
                self.status_changed.insert(id.clone());
            }
        }
        // Rows are put at the end, in their last state.
        self.changes.put.clear();
        self.changed_items.insert(id);
        self.view.set_item(item);
        (outcome, reported, held_by)
    }

    fn creation(&self, item: &WorkItem) -> NewEvent {
        let from = &self.import.from;
        let state = if item.outside().is_closed { ", closed" } else { "" };
        let summary = format!("Work item \"{}\" created (imported from {from}{state})", item.title);
        NewEvent::new(EventType::WorkCreated, TargetType::WorkItem, &item.item_id, summary)
            .by(self.import.session.as_deref())
            .with("imported_from", from.as_str())
    }

    fn update(&self, item: &WorkItem, mut changed: Vec<FieldChange>, status: StatusChange) -> NewEvent {
        let from = &self.import.from;
        let summary = if status == StatusChange::CompletesOnRelease {
            changed.push(FieldChange::new("closed_outside", &json!(false), &json!(true)));
            format!("\"{}\" is closed at its source ({from}): its release completes it", item.title)
        } else {
            format!("\"{}\" was updated from {from}: {}", item.title, names_of(&changed))
        };
        updated_event(item, &changed, summary).with("imported_from", from.as_str())
    }

    fn reopen(&mut self, item: &mut WorkItem) {
        item.set_free();
        item.completed_at = None;
        item.summary = None;
        let open = self.view.open_blockers(&item.item_id);
        item.status = Status::Available;
        // What put it on hold is true of it again.
        if !open.is_empty() || item.is_on_hold() {
            item.status = Status::Blocked;
        }
        item.blocked_by = open.first().cloned();
        let summary = format!("\"{}\" was reset: it is open again at its source", item.title);
        let event = NewEvent::new(EventType::WorkReset, TargetType::WorkItem, &item.item_id, summary)
            .by(self.import.session.as_deref());
        item.revision = self.changes.event(event);
    }

    /// The holder of an item with a new title works on that one.
    fn rename_current_work(&mut self, before: &WorkItem, item: &WorkItem) {
        let holder = item.claimed_by.as_deref().and_then(|session| self.view.agent(session));
        if let Some(agent) = holder.and_then(|holder| with_new_title(holder, before, item)) {
            self.changed_agents.insert(agent.session_id.clone());
            self.view.set_agent(agent);
        }
    }

    fn change_dependencies(&mut self, id: &str, add: Vec<String>, remove: &[String]) {
        for blocker in add {
            self.dependencies.insert((id.to_owned(), blocker.clone()), true);
            self.view.add(Dependency { item_id: id.to_owned(), blocked_by: blocker, created_at: self.now });
        }
        for blocker in remove {
            self.dependencies.insert((id.to_owned(), blocker.clone()), false);
            self.view.remove(id, blocker);
        }
    }

    /// Updates the items that completed and reopened ones block.
    pub(super) fn update_dependents(&mut self) {
        let dependents: BTreeSet<String> =
            self.status_changed.iter().flat_map(|id| self.view.dependents(id)).collect();
        for id in dependents {
            let Some(item) = self.view.item(&id).filter(|item| item.status != Status::Completed) else {
                continue;
            };
            let mut item = item.clone();
            let open = self.view.open_blockers(&id);
            follow_blockers(&mut item, &open, self.import.session.as_deref(), &mut self.changes);
            if !self.changes.put.is_empty() {
                self.changes.put.clear();
                self.changed_items.insert(id);
                self.view.set_item(item);
            }
        }
    }

    /// The changes of the batch, the report, and whether scopes end with its items.
    pub(super) fn finish(self, tx: &dyn Tx) -> Result<(Changes, Report, bool)> {
        let mut changes = self.changes;
        for item in self.changed_items.iter().filter_map(|id| self.view.item(id)) {
            changes.put(item.clone());
        }
        for agent in self.changed_agents.iter().filter_map(|session| self.view.agent(session)) {
            changes.put(agent.clone());
        }
        for ((item_id, blocked_by), is_added) in self.dependencies {
            if is_added {
                changes.put(Dependency { item_id, blocked_by, created_at: self.now });
            } else {
                changes.remove(Key::Dependency(item_id, blocked_by));
            }
        }
        let is_completed =
            |id: &&String| self.view.item(id).is_some_and(|item| item.status == Status::Completed);
        let completed: Vec<&String> = self.status_changed.iter().filter(is_completed).collect();
        let mut ends_scopes = false;
        if !completed.is_empty() {
            tx.prefetch(&completed.iter().map(|id| EndsWith::Item(id).prefetch()).collect::<Vec<_>>())?;
        }
        for id in completed {
            ends_scopes |= EndsWith::Item(id).end(tx, &mut changes)?;
        }
        Ok((changes, self.report, ends_scopes))
    }
}
