//! What is stored: every kind of row, its key, and the indexes it stands in.
//!
//! A row type declares its key and its indexes here, once. Memory (and every engine that stores rows as they are)
//! is generic over that; SQLite maps both to the columns and indexes of its schema, because people query those.

use serde::{Deserialize, Serialize};

use crate::agent::Agent;
use crate::clock::Timestamp;
use crate::entry::{Entry, Tombstone};
use crate::file::Edit;
use crate::project::Project;
use crate::revision::{Pending, Revision};
use crate::work::{Dependency, Priority, Status, WorkItem};

/// What names a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// By session id.
    Agent(String),
    /// By project id.
    Project(String),
    /// By item id.
    WorkItem(String),
    /// The item that waits, and the item it waits for.
    Dependency(String, String),
    /// A session (or another name) and one of its readers.
    Cursor(String, String),
    /// By the id that the caller gave to its operation.
    Operation(String),
    /// By name.
    Mark(&'static str),
    /// A scope, and a key in it.
    Entry(String, String),
    /// A scope, and a key in it that was removed.
    Tombstone(String, String),
    /// A worktree, a path in it, and the session that edited it.
    Edit(String, String, String),
}

/// A stored row.
#[derive(Clone, Debug, PartialEq)]
pub enum Row {
    /// See [`Agent`].
    Agent(Agent),
    /// See [`Project`].
    Project(Project),
    /// See [`WorkItem`].
    WorkItem(WorkItem),
    /// See [`Dependency`].
    Dependency(Dependency),
    /// See [`Cursor`].
    Cursor(Cursor),
    /// See [`Operation`].
    Operation(Operation),
    /// See [`Mark`].
    Mark(Mark),
    /// See [`Entry`].
    Entry(Entry),
    /// See [`Tombstone`].
    Tombstone(Tombstone),
    /// See [`Edit`].
    Edit(Edit),
}

/// How far a reader has read the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Whose cursor it is: a session id, or [`Cursor::OWNERLESS`].
    pub owner: String,
    /// Which of its readers: `observe` and `hook` never share one. The name of a cursor that has no owner.
    pub reader: String,
    /// The last revision that was read.
    pub revision: Revision,
    /// When that was.
    pub updated_at: Timestamp,
}

impl Cursor {
    /// The owner of the cursors that have a name instead: no session can be called that.
    pub const OWNERLESS: &'static str = "";
}

/// The remembered answer of an operation that its caller named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// The caller's name for it.
    pub operation_id: String,
    /// The verb that ran.
    pub verb: String,
    /// Its answer, as JSON.
    pub answer: String,
    /// The first event of its commit: what is pending in the answer is resolved against it.
    pub revision: Revision,
    /// When it ran; remembered for 24 hours.
    pub created_at: Timestamp,
}

/// One fact about the board itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Which fact.
    pub name: &'static str,
    /// What is known, as JSON.
    pub value: String,
}

/// An order in which rows can be read, split into partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Index {
    /// All agents, by session id.
    Agents,
    /// Active and idle agents, the one seen longest ago first.
    LiveAgents,
    /// Agents that have ended, by when they did.
    EndedAgents,
    /// The delegates of a session.
    Delegates,
    /// All projects, by id.
    Projects,
    /// All work items, by id.
    WorkItems,
    /// Work items of one status, P1 first, then oldest first.
    WorkQueue,
    /// Work items of one status and priority, the newest first.
    NewestWork,
    /// Work items of every status that a session claimed.
    ClaimedBy,
    /// Work items that a session holds.
    HeldBy,
    /// Work items of a project.
    WorkOfProject,
    /// Completed work items, by when they were.
    CompletedWork,
    /// Completed work items, the one that was completed last first.
    LastCompleted,
    /// All dependencies, by the item that waits and the item it waits for.
    Dependencies,
    /// What an item waits for, in the order in which that was said.
    Blockers,
    /// Which items wait for an item.
    Dependents,
    /// Remembered operations, oldest first.
    Operations,
    /// The cursors of a session.
    Cursors,
    /// All entries, by scope and key.
    AllEntries,
    /// The entries of a scope, by key.
    Entries,
    /// The entries of a scope, the newest first.
    NewestEntries,
    /// The entries of a scope that have a tag, by key.
    TaggedEntries,
    /// Entries that expire, by when.
    ExpiringEntries,
    /// What hangs on a session, by scope and key.
    LeasedEntries,
    /// Who edited a file, by session.
    EditsOfFile,
    /// What a session edited, by worktree and path.
    EditsOfSession,
    /// All edits, oldest first.
    Edits,
}

/// A part of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// Which index.
    pub index: Index,
    /// Which partition of it.
    pub partition: String,
    /// Only what sorts at or after this.
    pub from: Option<String>,
    /// Only what sorts before this.
    pub before: Option<String>,
}

impl Range {
    fn whole(index: Index, partition: &str) -> Range {
        Range { index, partition: partition.to_owned(), from: None, before: None }
    }

    /// All agents.
    pub fn agents() -> Range {
        Range::whole(Index::Agents, "")
    }

    /// Agents whose session id starts with `prefix`.
    pub fn agents_with_prefix(prefix: &str) -> Range {
        // Session ids are ASCII, so the highest character ends every one that has the prefix.
        Range {
            from: Some(prefix.to_owned()),
            before: Some(format!("{prefix}\u{10ffff}")),
            ..Range::agents()
        }
    }

    /// Active and idle agents.
    pub fn live_agents() -> Range {
        Range::whole(Index::LiveAgents, "")
    }

    /// Active and idle agents that were last seen at `moment` or before it.
    pub fn live_agents_seen_until(moment: Timestamp) -> Range {
        Range { before: Some(after(moment)), ..Range::live_agents() }
    }

    /// Agents that ended before `moment`.
    pub fn agents_ended_before(moment: Timestamp) -> Range {
        Range { before: Some(moment.to_string()), ..Range::whole(Index::EndedAgents, "") }
    }

    /// Agents that ended at `moment` or later.
    pub fn agents_ended_since(moment: Timestamp) -> Range {
        Range { from: Some(moment.to_string()), ..Range::whole(Index::EndedAgents, "") }
    }

    /// The delegates of a session.
    pub fn delegates_of(session: &str) -> Range {
        Range::whole(Index::Delegates, session)
    }

    /// All projects.
    pub fn projects() -> Range {
        Range::whole(Index::Projects, "")
    }

    /// All work items.
    pub fn work_items() -> Range {
        Range::whole(Index::WorkItems, "")
    }

    /// Work items of one status, in the order in which they should be done.
    pub fn work_queue(status: Status) -> Range {
        Range::whole(Index::WorkQueue, status.as_str())
    }

    /// Work items of one status and priority, the newest first; of those that were created before `before`.
    pub fn newest_work(status: Status, priority: Priority, before: Option<Timestamp>) -> Range {
        Range {
            before: before.map(|before| before.to_string()),
            ..Range::whole(Index::NewestWork, &two(status.as_str(), priority.as_str()))
        }
    }

    /// Work items that a session claimed, also those that it completed.
    pub fn claimed_by(session: &str) -> Range {
        Range::whole(Index::ClaimedBy, session)
    }

    /// Work items that a session holds.
    pub fn held_by(session: &str) -> Range {
        Range::whole(Index::HeldBy, session)
    }

    /// Work items of a project.
    pub fn work_of_project(project: &str) -> Range {
        Range::whole(Index::WorkOfProject, project)
    }

    /// Work items that were completed at `moment` or later.
    pub fn completed_since(moment: Timestamp) -> Range {
        Range { from: Some(moment.to_string()), ..Range::whole(Index::CompletedWork, "") }
    }

    /// Completed work items, the last one first; of those that were completed before `before`.
    pub fn last_completed(before: Option<Timestamp>) -> Range {
        Range { before: before.map(|before| before.to_string()), ..Range::whole(Index::LastCompleted, "") }
    }

    /// All dependencies.
    pub fn dependencies() -> Range {
        Range::whole(Index::Dependencies, "")
    }

    /// What an item waits for.
    pub fn blockers_of(item: &str) -> Range {
        Range::whole(Index::Blockers, item)
    }

    /// Which items wait for an item.
    pub fn dependents_of(item: &str) -> Range {
        Range::whole(Index::Dependents, item)
    }

    /// All operations that are remembered.
    pub fn operations() -> Range {
        Range::whole(Index::Operations, "")
    }

    /// Operations that were remembered before `moment`.
    pub fn operations_before(moment: Timestamp) -> Range {
        Range { before: Some(moment.to_string()), ..Range::whole(Index::Operations, "") }
    }

    /// The cursors of a session, or those without an owner.
    pub fn cursors_of(session: &str) -> Range {
        Range::whole(Index::Cursors, session)
    }

    /// All entries, by scope and key.
    pub fn all_entries() -> Range {
        Range::whole(Index::AllEntries, "")
    }

    /// The entries of every scope whose name sorts behind this one, by scope and key.
    pub(crate) fn entries_of_scopes_after(scope: &str) -> Range {
        // Behind whatever separates the scope from its keys, which no name of a scope contains.
        Range { from: Some(format!("{scope}\u{b}")), ..Range::all_entries() }
    }

    /// Entries of a scope whose keys start with `prefix`, by key.
    pub fn entries(scope: &str, prefix: &str) -> Range {
        Range::whole(Index::Entries, scope).starting_with(prefix)
    }

    /// Entries of a scope that have a tag and whose keys start with `prefix`, by key.
    pub fn entries_tagged(scope: &str, tag: &str, prefix: &str) -> Range {
        Range::whole(Index::TaggedEntries, &two(scope, tag)).starting_with(prefix)
    }

    /// Entries of a scope that were last written before `revision`, the newest first.
    pub fn newest_entries(scope: &str, before: Option<Revision>) -> Range {
        Range {
            from: Some(number(Revision::ZERO)),
            before: before.map(number),
            ..Range::whole(Index::NewestEntries, scope)
        }
    }

    /// Entries that are invisible from `moment` on.
    pub fn entries_expired_at(moment: Timestamp) -> Range {
        Range { before: Some(after(moment)), ..Range::whole(Index::ExpiringEntries, "") }
    }

    /// What hangs on a session.
    pub fn leased_by(session: &str) -> Range {
        Range::whole(Index::LeasedEntries, session)
    }

    /// Who edited a file.
    pub fn edits_of_file(worktree: &str, path: &str) -> Range {
        Range::whole(Index::EditsOfFile, &two(worktree, path))
    }

    /// What a session edited.
    pub fn edits_of_session(session: &str) -> Range {
        Range::whole(Index::EditsOfSession, session)
    }

    /// Edits that were made before `moment`.
    pub fn edits_before(moment: Timestamp) -> Range {
        Range { before: Some(moment.to_string()), ..Range::whole(Index::Edits, "") }
    }

    /// The same order from this place on.
    #[must_use]
    pub(crate) fn after(mut self, sort: &str) -> Range {
        // No text lies between a text and itself with the lowest character behind it.
        let next = format!("{sort}\0");
        self.from = Some(self.from.filter(|from| *from > next).unwrap_or(next));
        self
    }

    fn starting_with(self, prefix: &str) -> Range {
        if prefix.is_empty() {
            return self;
        }
        Range { from: Some(prefix.to_owned()), before: end_of_prefix(prefix), ..self }
    }

    /// The parts of the partition. Only some indexes have two; an id of a crafted board may contain what separates them.
    pub(crate) fn parts(&self) -> (&str, Option<&str>) {
        let parts = match self.index {
            Index::NewestWork | Index::TaggedEntries | Index::EditsOfFile => self.partition.split_once('\n'),
            _ => None,
        };
        parts.map_or((self.partition.as_str(), None), |(first, second)| (first, Some(second)))
    }

    /// Whether the index is read from its end.
    pub(crate) fn is_backwards(&self) -> bool {
        matches!(self.index, Index::NewestEntries | Index::NewestWork | Index::LastCompleted)
    }
}

/// The end of a range that includes `moment`: bounds exclude their end.
fn after(moment: Timestamp) -> String {
    moment.plus(std::time::Duration::from_millis(1)).to_string()
}

/// The first text that sorts behind everything with this prefix; `None` if there is none.
fn end_of_prefix(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        let next = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            other => char::from_u32(u32::from(other) + 1),
        };
        if let Some(next) = next {
            end.push(next);
            return Some(end);
        }
    }
    None
}

/// Two names in one text that sorts as the pair does. Neither has a control character.
fn two(first: &str, second: &str) -> String {
    format!("{first}\n{second}")
}

/// A revision as a text that sorts as the number does.
fn number(revision: Revision) -> String {
    format!("{:020}", revision.get())
}

/// Where a row stands in an index.
pub(crate) struct Place {
    pub(crate) index: Index,
    pub(crate) partition: String,
    pub(crate) sort: String,
}

fn place(index: Index, partition: &str, sort: impl Into<String>) -> Place {
    Place { index, partition: partition.to_owned(), sort: sort.into() }
}

impl Row {
    /// The row's key.
    pub fn key(&self) -> Key {
        match self {
            Row::Agent(agent) => Key::Agent(agent.session_id.clone()),
            Row::Project(project) => Key::Project(project.project_id.clone()),
            Row::WorkItem(item) => Key::WorkItem(item.item_id.clone()),
            Row::Dependency(dependency) => {
                Key::Dependency(dependency.item_id.clone(), dependency.blocked_by.clone())
            }
            Row::Cursor(cursor) => Key::Cursor(cursor.owner.clone(), cursor.reader.clone()),
            Row::Operation(operation) => Key::Operation(operation.operation_id.clone()),
            Row::Mark(mark) => Key::Mark(mark.name),
            Row::Entry(entry) => Key::Entry(entry.scope.clone(), entry.key.clone()),
            Row::Tombstone(tombstone) => Key::Tombstone(tombstone.scope.clone(), tombstone.key.clone()),
            Row::Edit(edit) => Key::Edit(edit.worktree.clone(), edit.path.clone(), edit.session_id.clone()),
        }
    }

    /// Every place where the row stands in an index.
    pub(crate) fn places(&self) -> Vec<Place> {
        match self {
            Row::Agent(agent) => {
                let id = &agent.session_id;
                let mut places = vec![place(Index::Agents, "", id)];
                if agent.status.is_live() {
                    places.push(place(Index::LiveAgents, "", format!("{} {id}", agent.last_seen_at)));
                }
                if let Some(ended) = agent.ended_at {
                    places.push(place(Index::EndedAgents, "", format!("{ended} {id}")));
                }
                if let Some(parent) = &agent.parent_id {
                    places.push(place(Index::Delegates, parent, id));
                }
                places
            }
            Row::Project(project) => vec![place(Index::Projects, "", &project.project_id)],
            Row::WorkItem(item) => {
                let id = &item.item_id;
                let mut places = vec![place(Index::WorkItems, "", id)];
                places.push(place(
                    Index::WorkQueue,
                    item.status.as_str(),
                    format!("{} {} {id}", item.priority, item.created_at),
                ));
                places.push(place(
                    Index::NewestWork,
                    &two(item.status.as_str(), item.priority.as_str()),
                    format!("{} {id}", item.created_at),
                ));
                if let Some(session) = &item.claimed_by {
                    places.push(place(Index::ClaimedBy, session, id));
                    if item.status != Status::Completed {
                        places.push(place(Index::HeldBy, session, id));
                    }
                }
                if let Some(project) = &item.project_id {
                    places.push(place(Index::WorkOfProject, project, id));
                }
                if let Some(completed) = item.completed_at {
                    places.push(place(Index::CompletedWork, "", format!("{completed} {id}")));
                    places.push(place(Index::LastCompleted, "", format!("{completed} {id}")));
                }
                places
            }
            Row::Dependency(dependency) => vec![
                place(Index::Dependencies, "", two(&dependency.item_id, &dependency.blocked_by)),
                place(
                    Index::Blockers,
                    &dependency.item_id,
                    format!("{} {}", dependency.created_at, dependency.blocked_by),
                ),
                place(Index::Dependents, &dependency.blocked_by, &dependency.item_id),
            ],
            Row::Operation(operation) => vec![place(
                Index::Operations,
                "",
                format!("{} {}", operation.created_at, operation.operation_id),
            )],
            Row::Cursor(cursor) => vec![place(Index::Cursors, &cursor.owner, &cursor.reader)],
            Row::Entry(entry) => {
                let Entry { scope, key, .. } = entry;
                let mut places = vec![
                    place(Index::AllEntries, "", two(scope, key)),
                    place(Index::Entries, scope, key),
                    place(Index::NewestEntries, scope, number(entry.revision)),
                ];
                places
                    .extend(entry.tags.iter().map(|tag| place(Index::TaggedEntries, &two(scope, tag), key)));
                if let Some(expires) = entry.expires_at {
                    places.push(place(Index::ExpiringEntries, "", format!("{expires} {}", two(scope, key))));
                }
                if let Some(session) = &entry.session_id {
                    places.push(place(Index::LeasedEntries, session, two(scope, key)));
                }
                places
            }
            Row::Edit(edit) => {
                let Edit { worktree, path, session_id, .. } = edit;
                let file = two(worktree, path);
                vec![
                    place(Index::EditsOfFile, &file, session_id),
                    place(Index::EditsOfSession, session_id, file.as_str()),
                    place(Index::Edits, "", format!("{} {file}\n{session_id}", edit.noted_at())),
                ]
            }
            Row::Mark(_) | Row::Tombstone(_) => Vec::new(),
        }
    }
}

impl Pending for Row {
    fn resolve(&mut self, first: Revision) {
        match self {
            Row::Agent(agent) => agent.resolve(first),
            Row::Project(project) => project.resolve(first),
            Row::WorkItem(item) => item.resolve(first),
            Row::Operation(operation) => operation.revision.resolve(first),
            Row::Cursor(cursor) => cursor.revision.resolve(first),
            Row::Entry(entry) => entry.resolve(first),
            Row::Tombstone(tombstone) => tombstone.revision.resolve(first),
            Row::Dependency(_) | Row::Mark(_) | Row::Edit(_) => {}
        }
    }
}

macro_rules! row_conversions {
    ($($variant:ident),+) => {$(
        impl From<$variant> for Row {
            fn from(row: $variant) -> Row {
                Row::$variant(row)
            }
        }

        impl TryFrom<Row> for $variant {
            type Error = Row;

            fn try_from(row: Row) -> Result<$variant, Row> {
                match row {
                    Row::$variant(row) => Ok(row),
                    other => Err(other),
                }
            }
        }
    )+};
}

row_conversions!(Agent, Project, WorkItem, Dependency, Cursor, Operation, Mark, Entry, Tombstone, Edit);
