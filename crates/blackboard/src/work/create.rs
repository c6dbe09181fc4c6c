//! `work create`: there is something to do.

use serde::Serialize;

use super::{Dependency, Priority, Status, Work, WorkItem, block, open_blockers};
use crate::clock::Timestamp;
use crate::error::{Code, Error, Refusal, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::metadata::Metadata;
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Tx, Wanted};
use crate::text::{TextRules, check_id};

/// A new work item.
#[derive(Clone, Debug, Default)]
pub struct Create {
    /// Its id.
    pub id: String,
    /// What is to be done.
    pub title: String,
    /// The same at length.
    pub description: Option<String>,
    /// The registered project that it belongs to.
    pub project: Option<String>,
    /// Where it came from; `local` if nobody says.
    pub source: Option<String>,
    /// What it is called there.
    pub source_ref: Option<String>,
    /// How soon it should be done; P2 if nobody says.
    pub priority: Option<Priority>,
    /// What it waits for.
    pub blocked_by: Vec<String>,
    /// What its user wants to store with it.
    pub metadata: Option<Metadata>,
    /// The session that creates it.
    pub session: Option<String>,
}

impl Create {
    /// An item with this id and title and nothing else.
    pub fn new(id: &str, title: &str) -> Create {
        Create { id: id.to_owned(), title: title.to_owned(), ..Create::default() }
    }
}

/// An item that exists now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Created {
    /// The item.
    #[serde(flatten)]
    pub item: WorkItem,
    /// Whether it was created by this call. It was not if the same item existed already.
    pub created: bool,
    /// Everything that it waits for.
    pub open_blockers: Vec<String>,
    /// What it waits for that does not exist yet.
    pub missing_blockers: Vec<String>,
}

impl Pending for Created {
    fn resolve(&mut self, first: Revision) {
        self.item.resolve(first);
    }
}

impl Work<'_> {
    /// Creates a work item. Creating the same one again changes nothing.
    ///
    /// ```
    /// # use blackboard::{Board, work::Create};
    /// # let board = Board::memory();
    /// assert!(board.work().create(&Create::new("fix-tests", "Fix the tests"))?.created);
    /// assert!(!board.work().create(&Create::new("fix-tests", "Fix the tests"))?.created);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn create(&self, create: &Create) -> Result<Created> {
        let create = create.cleaned(&self.board.settings().text)?;
        self.board.commit("work create", &create.wanted(), |tx| {
            if let Some(item) = tx.row::<WorkItem>(&Key::WorkItem(create.id.clone()))? {
                let open_blockers = open_blockers(tx, &item.item_id)?;
                return already_there(&create, item, open_blockers).map(|created| (Changes::new(), created));
            }
            let mut changes = Changes::new();
            let NewItem { item, open_blockers, missing_blockers } = new_item(tx, &create, &mut changes)?;
            changes.put(item.clone());
            self.board.agents().saw_session(tx, create.session.as_deref(), &mut changes)?;
            Ok((changes, Created { item, created: true, open_blockers, missing_blockers }))
        })
    }
}

impl Create {
    /// What creating it will read.
    pub(super) fn wanted(&self) -> Vec<Wanted> {
        let mut wanted = vec![Wanted::Row(Key::WorkItem(self.id.clone()))];
        wanted.extend(self.project.iter().map(|project| Wanted::Row(Key::Project(project.clone()))));
        wanted.extend(self.blocked_by.iter().map(|blocker| Wanted::Row(Key::WorkItem(blocker.clone()))));
        wanted
    }

    /// The same with its text filtered and its ids checked.
    pub(super) fn cleaned(&self, rules: &TextRules) -> Result<Create> {
        check_id("work item", &self.id)?;
        for blocker in &self.blocked_by {
            check_id("blocking work item", blocker)?;
        }
        rules.check_unaltered(self.metadata.iter().map(Metadata::as_str))?;
        let mut cleaned = self.clone();
        cleaned.title = rules.field(&self.title)?;
        if cleaned.title.is_empty() {
            return Err(Error::invalid("the title of a work item can't be empty"));
        }
        cleaned.description = self.description.as_deref().map(|text| rules.description(text)).transpose()?;
        cleaned.source_ref = self.source_ref.as_deref().map(|text| rules.field(text)).transpose()?;
        if let Some(source) = &self.source {
            check_id("source", source)?;
        }
        Ok(cleaned)
    }
}

/// An item that is about to be created.
pub(super) struct NewItem {
    pub(super) item: WorkItem,
    open_blockers: Vec<String>,
    missing_blockers: Vec<String>,
}

/// The item that a cleaned request asks for, with the events and dependencies that come with it. The caller puts it.
pub(super) fn new_item(tx: &dyn Tx, create: &Create, changes: &mut Changes) -> Result<NewItem> {
    if let Some(project) = &create.project {
        crate::project::existing(tx, project)?;
    }
    let now = tx.now();
    let mut item = blank(create, now);
    let summary = format!("Work item \"{}\" created", item.title);
    item.revision = changes.event(
        NewEvent::new(EventType::WorkCreated, TargetType::WorkItem, &item.item_id, summary)
            .by(create.session.as_deref()),
    );
    let mut missing = Vec::new();
    let mut open = Vec::new();
    for blocker in &create.blocked_by {
        if open.contains(blocker) {
            continue;
        }
        block::refuse_cycle(tx, &item.item_id, blocker)?;
        match tx.row::<WorkItem>(&Key::WorkItem(blocker.clone()))? {
            Some(blocker) if blocker.status == Status::Completed => continue,
            Some(_) => {}
            None => missing.push(blocker.clone()),
        }
        tx.get(&Key::Dependency(item.item_id.clone(), blocker.clone()))?;
        changes.put(Dependency {
            item_id: item.item_id.clone(),
            blocked_by: blocker.clone(),
            created_at: now,
        });
        open.push(blocker.clone());
    }
    // As the index will have them, so that the first one stays the first.
    open.sort();
    if let Some(first) = open.first() {
        item.status = Status::Blocked;
        item.blocked_by = Some(first.clone());
        item.revision = changes.event(block::blocked_event(&item, &open, None, create.session.as_deref()));
    }
    Ok(NewItem { item, open_blockers: open, missing_blockers: missing })
}

fn blank(create: &Create, now: Timestamp) -> WorkItem {
    WorkItem {
        item_id: create.id.clone(),
        project_id: create.project.clone(),
        title: create.title.clone(),
        description: create.description.clone(),
        source: create.source.clone().unwrap_or_else(|| "local".to_owned()),
        source_ref: create.source_ref.clone(),
        status: Status::Available,
        priority: create.priority.unwrap_or_default(),
        claimed_by: None,
        claimed_by_name: None,
        claimed_at: None,
        fence: None,
        completed_at: None,
        blocked_by: None,
        created_at: now,
        metadata: create.metadata.clone(),
        revision: Revision::ZERO,
    }
}

/// The answer to a request for an item that exists: fine if it is the same one.
fn already_there(create: &Create, item: WorkItem, open_blockers: Vec<String>) -> Result<Created> {
    let asked = blank(create, item.created_at);
    let what_differs = [
        ("title", item.title != asked.title),
        ("description", item.description != asked.description),
        ("project", item.project_id != asked.project_id),
        ("source", item.source != asked.source),
        ("source_ref", item.source_ref != asked.source_ref),
        ("priority", item.priority != asked.priority),
        ("metadata", item.metadata != asked.metadata),
    ];
    let differing: Vec<_> =
        what_differs.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect();
    if differing.is_empty() {
        return Ok(Created { item, created: false, open_blockers, missing_blockers: Vec::new() });
    }
    Err(Refusal::new(
        Code::AlreadyExists,
        format!("work item {} exists already, with another {}", item.item_id, differing.join(", ")),
    )
    .hint(format!("look at it: blackboard work status {}", item.item_id))
    .detail("differs", differing)
    .into())
}
