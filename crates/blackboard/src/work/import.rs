//! `work import`: items of another tracker, or of a file, become items of the board.
//!
//! [`merge`] is the rule: the item of the board and that of the tracker in, what happens out. It is read and decided in the
//! commit that writes (`apply.rs`), on a view of the rows that it needs (`view.rs`). A commit has at most 500 items, so that
//! other writers never wait long. An import that is interrupted can be repeated, because an item that is the same is not
//! written again.
//!
//! A claim is never touched: an item that was closed while a session holds it completes when it is released (`closed.rs`).

mod apply;
mod merge;
mod view;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::Serialize;

use self::apply::Batch;
use self::merge::TrackedItem;
use self::view::{Rows, View};
use super::change::{FieldChange, NewFields};
use super::create::check_source;
use super::details::{check_estimate, check_label_count, clean_labels};
use super::{Priority, Work};
use crate::agent::prefetch_agent;
use crate::error::{Code, Error, Result};
use crate::project::Project;
use crate::revision::{Pending, Revision};
use crate::store::{Key, OnBusy, Prefetch, Range, Tx};
use crate::text::{Cleaner, Kind, check_id};

/// How many items one commit writes.
const BATCH: usize = 500;

/// How many bytes of text one commit writes, unless one item is larger.
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// The most blockers of one item that are read.
const MOST_BLOCKERS: usize = 200;

/// An item of a tracker. A field without a value is not known there, and stays as it is on the board.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutsideItem {
    /// Its id on the board.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its description; an empty one removes that of the board.
    pub description: Option<String>,
    /// Its priority; a new item without one is P2. An item that has labels and no priority has none at its source: a
    /// priority of an earlier import becomes P2 again. A priority that was changed on the board stays.
    pub priority: Option<Priority>,
    /// The project that it belongs to. One that is not registered is left out.
    pub project: Option<String>,
    /// Its source, one of [`SOURCES`](super::SOURCES) or `word:…`; a new item without one is `local`.
    pub source: Option<String>,
    /// Its reference at the source.
    pub source_ref: Option<String>,
    /// All of its labels.
    pub labels: Option<Vec<String>>,
    /// The tokens that it is expected to need. An item that has labels and no estimate has none at its source.
    pub estimate: Option<u64>,
    /// Whether it is closed.
    pub is_closed: bool,
    /// All of its blockers, closed ones too.
    pub blocked_by: Option<Vec<String>>,
    /// Why it is on hold at its source; an empty one if it is not. It cannot be claimed until the source or `work unblock`
    /// ends that. An item that a session holds is not put on hold.
    pub on_hold: Option<String>,
}

/// Items to import.
#[derive(Clone, Debug, Default)]
pub struct ImportItems {
    /// The items. Of several with the same id, the last one counts.
    pub items: Vec<OutsideItem>,
    /// The form that they were read from, for example `github`: the mark of imported text.
    pub from: String,
    /// The registered project of all items.
    pub project: Option<String>,
    /// Also creates items that are closed.
    pub with_closed: bool,
    /// Also changes items that no import wrote, or one of another form. Later imports of this form own them.
    pub adopt: bool,
    /// Only reports what would happen.
    pub dry_run: bool,
    /// The session that imports.
    pub session: Option<String>,
}

/// What became of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ImportedAs {
    /// The board did not have it.
    Created,
    /// Fields or dependencies changed.
    Updated,
    /// It was closed at its source.
    Completed,
    /// It was closed at its source, and completes when its holder releases it.
    Closing,
    /// It was open again at its source, and so it is here.
    Reopened,
    /// The board has it.
    Unchanged,
    /// It is not imported: closed, and not on the board; or repeated.
    Skipped,
    /// The board refuses it.
    Refused,
}

impl ImportedAs {
    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            ImportedAs::Created => "created",
            ImportedAs::Updated => "updated",
            ImportedAs::Completed => "completed",
            ImportedAs::Closing => "closing",
            ImportedAs::Reopened => "reopened",
            ImportedAs::Unchanged => "unchanged",
            ImportedAs::Skipped => "skipped",
            ImportedAs::Refused => "refused",
        }
    }
}

/// One item of an import.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ImportedItem {
    /// Its id.
    pub item_id: String,
    /// Its title.
    pub title: String,
    /// What became of it.
    pub outcome: ImportedAs,
    /// The changed fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FieldChange>,
    /// The agent that holds it, if it is closing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
    /// The code of a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    /// Why it was skipped or refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What was left out of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl ImportedItem {
    fn of(item: &OutsideItem, outcome: ImportedAs) -> ImportedItem {
        ImportedItem {
            item_id: item.id.clone(),
            title: item.title.clone(),
            outcome,
            changes: Vec::new(),
            held_by: None,
            code: None,
            reason: None,
            notes: Vec::new(),
        }
    }

    fn refused(item: &OutsideItem, code: Code, reason: String) -> ImportedItem {
        let (code, reason) = (Some(code.as_str()), Some(reason));
        ImportedItem { code, reason, ..ImportedItem::of(item, ImportedAs::Refused) }
    }

    fn skipped(item: &OutsideItem, reason: &str) -> ImportedItem {
        ImportedItem { reason: Some(reason.to_owned()), ..ImportedItem::of(item, ImportedAs::Skipped) }
    }
}

/// The items of one commit.
struct Imported {
    items: Vec<(usize, ImportedItem)>,
    ends_scopes: bool,
}

impl Pending for Imported {
    fn resolve(&mut self, _: Revision) {}
}

impl Work<'_> {
    /// Creates, updates, completes and reopens items as those of another tracker. What becomes of each is returned, in their
    /// order: one that is refused does not stop the others. A repeated import changes nothing.
    ///
    /// ```
    /// # use blackboard::{Board, work::{ImportItems, ImportedAs, OutsideItem}};
    /// # let board = Board::memory();
    /// let item = OutsideItem { id: "gh:o/r#7".into(), title: "Fix the login".into(), ..OutsideItem::default() };
    /// let import = ImportItems { items: vec![item], from: "github".into(), ..ImportItems::default() };
    /// assert_eq!(board.work().import(&import)?[0].outcome, ImportedAs::Created);
    /// assert_eq!(board.work().import(&import)?[0].outcome, ImportedAs::Unchanged);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn import(&self, import: &ImportItems) -> Result<Vec<ImportedItem>> {
        check_id("import", &import.from)?;
        let mut report: Vec<ImportedItem> = Vec::with_capacity(import.items.len());
        let mut tracked: Vec<TrackedItem> = Vec::with_capacity(import.items.len());
        // Where in `tracked` each id is.
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, item) in import.items.iter().enumerate() {
            report.push(ImportedItem::of(item, ImportedAs::Unchanged));
            let cleaned = match self.cleaned(item, import, at) {
                Ok(cleaned) => cleaned,
                Err(Error::Refusal(refusal)) => {
                    report[at] = ImportedItem::refused(item, refusal.code, refusal.message);
                    continue;
                }
                Err(fault) => return Err(fault),
            };
            if let Some(&place) = places.get(item.id.as_str()) {
                let earlier = std::mem::replace(&mut tracked[place], cleaned).at;
                let reason = "the same id is in the import again, further down";
                report[earlier] = ImportedItem::skipped(&import.items[earlier], reason);
            } else {
                places.insert(&item.id, tracked.len());
                tracked.push(cleaned);
            }
        }
        let closed = tracked.iter().filter(|item| item.is_closed).map(|item| item.id.clone()).collect();
        let importer = Importer { work: self, import, closed };
        let mut plan = Rows::default();
        for batch in batches(&tracked) {
            let items =
                if import.dry_run { importer.plan(batch, &mut plan) } else { importer.commit(batch) }?;
            for (at, item) in items {
                report[at] = item;
            }
        }
        Ok(report)
    }

    /// The item with filtered text.
    fn cleaned(self, item: &OutsideItem, import: &ImportItems, at: usize) -> Result<TrackedItem> {
        let rules = &self.board.settings().text;
        rules.check_listed_id("work item", &item.id)?;
        check_id("work item", &item.id)?;
        let blocked_by = item.blocked_by.as_ref().map(|blockers| -> Result<Vec<String>> {
            if blockers.len() > MOST_BLOCKERS {
                let count = blockers.len();
                return Err(Error::invalid(format!("{count} blockers; at most {MOST_BLOCKERS} are allowed")));
            }
            let mut known = BTreeSet::new();
            let new = blockers.iter().filter(|id| **id != item.id && known.insert(id.as_str()));
            new.map(|id| {
                rules.check_listed_id("blocking work item", id)?;
                check_id("blocking work item", id)?;
                Ok(id.clone())
            })
            .collect()
        });
        if let Some(source) = &item.source {
            rules.check_unaltered([source.as_str()])?;
            check_id("source", source)?;
            check_source(source)?;
        }
        let mut texts = Cleaner::new(rules);
        let title = texts.clean("title", Kind::Field, &item.title)?;
        if title.is_empty() {
            return Err(Error::invalid("the title of a work item cannot be empty"));
        }
        let labels = item.labels.as_ref().map(|labels| clean_labels(&mut texts, labels)).transpose()?;
        check_label_count(labels.as_ref().map_or(0, Vec::len))?;
        check_estimate(item.estimate)?;
        let fields = NewFields {
            title: Some(title),
            description: texts.maybe("description", Kind::Description, item.description.as_ref())?,
            priority: item.priority,
            project: import.project.clone().or_else(|| item.project.clone()),
            source: item.source.clone(),
            source_ref: texts.maybe("source_ref", Kind::Field, item.source_ref.as_ref())?,
            labels,
            estimate: item.estimate,
        };
        Ok(TrackedItem {
            at,
            id: item.id.clone(),
            fields,
            is_closed: item.is_closed,
            blocked_by: blocked_by.transpose()?,
            blocks_itself: item.blocked_by.iter().flatten().any(|id| *id == item.id),
            on_hold: texts.maybe("on_hold", Kind::Field, item.on_hold.as_ref())?,
        })
    }
}

/// Parts of a list that one commit can write.
fn batches(items: &[TrackedItem]) -> impl Iterator<Item = &[TrackedItem]> {
    let mut rest = items;
    std::iter::from_fn(move || {
        let (mut count, mut bytes) = (0, 0);
        for item in rest.iter().take(BATCH) {
            bytes += item.fields.description.as_ref().map_or(0, String::len);
            if count > 0 && bytes > BATCH_BYTES {
                break;
            }
            count += 1;
        }
        let (batch, behind) = rest.split_at(count);
        rest = behind;
        (!batch.is_empty()).then_some(batch)
    })
}

struct Importer<'a> {
    work: &'a Work<'a>,
    import: &'a ImportItems,
    /// The items that are closed at their source.
    closed: HashSet<String>,
}

impl Importer<'_> {
    /// What a batch would change, after the batches before it.
    fn plan(&self, items: &[TrackedItem], plan: &mut Rows) -> Result<Vec<(usize, ImportedItem)>> {
        let (imported, rows) = self.work.board.read(&self.prefetch(items), |tx| {
            let batch = self.run(tx, items, plan)?;
            Ok((batch.report, batch.view.into_rows()))
        })?;
        plan.add(rows);
        Ok(imported)
    }

    fn commit(&self, items: &[TrackedItem]) -> Result<Vec<(usize, ImportedItem)>> {
        let board = self.work.board;
        let session = self.import.session.as_deref();
        let imported =
            board.commit_with_on_busy(OnBusy::Wait, "work import", &self.prefetch(items), |tx| {
                let none = Rows::default();
                let batch = self.run(tx, items, &none)?;
                let (mut changes, items, ends_scopes) = batch.finish(tx)?;
                board.agents().record_activity_of(tx, session, &mut changes)?;
                Ok((changes, Imported { items, ends_scopes }))
            })?;
        if imported.ends_scopes {
            // What fails here is left to the next sweep.
            let _ = board.end_scopes(OnBusy::Wait);
        }
        Ok(imported.items)
    }

    fn prefetch(&self, items: &[TrackedItem]) -> Vec<Prefetch<'static>> {
        let rows = items.iter().flat_map(|item| {
            [Prefetch::Row(Key::WorkItem(item.id.clone())), Prefetch::Range(Range::blockers_of(&item.id))]
        });
        let projects = projects_of(items).map(|project| Prefetch::Row(Key::Project(project.to_owned())));
        rows.chain(projects).chain(prefetch_agent(self.import.session.as_deref())).collect()
    }

    fn run<'t>(&'t self, tx: &dyn Tx, items: &[TrackedItem], earlier: &'t Rows) -> Result<Batch<'t>> {
        if let Some(project) = &self.import.project {
            crate::project::existing(tx, project)?;
        }
        let mut unknown_projects = BTreeSet::new();
        for project in projects_of(items) {
            if tx.row::<Project>(&Key::Project(project.to_owned()))?.is_none() {
                unknown_projects.insert(project.to_owned());
            }
        }
        let mut batch =
            Batch::new(self.import, &self.closed, unknown_projects, View::after(earlier), tx.now());
        batch.load(tx, items)?;
        for item in items {
            batch.import(item)?;
        }
        batch.update_dependents();
        Ok(batch)
    }
}

/// The projects that these items name, each once.
fn projects_of(items: &[TrackedItem]) -> impl Iterator<Item = &str> {
    items.iter().filter_map(|item| item.fields.project.as_deref()).collect::<BTreeSet<_>>().into_iter()
}
