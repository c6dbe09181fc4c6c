//! Rows as columns: the one place that knows the schema's columns.

use std::sync::OnceLock;

use rusqlite::types::{ToSql, ToSqlOutput, Value, ValueRef};

use crate::agent::Agent;
use crate::clock::Timestamp;
use crate::entry::{Entry, EntryHead, EntryVersion, Tombstone, Value as EntryValue};
use crate::error::{Code, Error, Fault, Result};
use crate::event::{Event, EventType, TargetType};
use crate::file::Edit;
use crate::metadata::Metadata;
use crate::process::ProcessMark;
use crate::project::Project;
use crate::revision::Revision;
use crate::store::rows::{Cursor, Index, Key, Mark, Operation, Range, Row};
use crate::work::{Dependency, WorkItem};

/// A table and its columns, the ones of the key first.
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: &'static [&'static str],
    pub(super) key_columns: usize,
    /// Where its rows are read from, if not from the table alone, and the columns that are read there.
    joined: Option<(&'static str, &'static [&'static str])>,
    select: OnceLock<String>,
    insert: OnceLock<String>,
}

impl Table {
    const fn new(name: &'static str, columns: &'static [&'static str], key_columns: usize) -> Table {
        Table { name, columns, key_columns, joined: None, select: OnceLock::new(), insert: OnceLock::new() }
    }

    const fn joined(mut self, source: &'static str, columns: &'static [&'static str]) -> Table {
        self.joined = Some((source, columns));
        self
    }

    /// Where its rows are read from.
    pub(super) fn source(&self) -> &'static str {
        self.joined.map_or(self.name, |(source, _)| source)
    }

    /// The columns that are read, in the order of [`row_from`].
    pub(super) fn columns_read(&self) -> String {
        self.joined.map_or(self.columns, |(_, columns)| columns).join(", ")
    }

    /// The statement that reads one row by its key.
    pub(super) fn select(&self) -> &str {
        self.select.get_or_init(|| {
            format!("SELECT {} FROM {} WHERE {}", self.columns_read(), self.source(), self.key_condition())
        })
    }

    /// The statement that adds a row.
    pub(super) fn insert(&self) -> &str {
        self.insert.get_or_init(|| {
            let places = vec!["?"; self.columns.len()].join(", ");
            format!("INSERT INTO {} ({}) VALUES ({places})", self.name, self.columns.join(", "))
        })
    }

    /// The condition that finds one row by its key.
    pub(super) fn key_condition(&self) -> String {
        let columns: Vec<_> = self.columns[..self.key_columns]
            .iter()
            .map(|column| format!("{}.{column} = ?", self.name))
            .collect();
        columns.join(" AND ")
    }
}

/// A value on its way into a column, borrowed from its row: comparing two rows allocates nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cell<'row> {
    Null,
    Integer(i64),
    Text(&'row str),
    Time(Timestamp),
    Process(&'row ProcessMark),
}

impl ToSql for Cell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Cell::Null => ToSqlOutput::Borrowed(ValueRef::Null),
            Cell::Integer(number) => ToSqlOutput::Borrowed(ValueRef::Integer(*number)),
            Cell::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Cell::Time(time) => ToSqlOutput::Owned(Value::Text(time.to_string())),
            Cell::Process(mark) => ToSqlOutput::Owned(Value::Text(mark.to_string())),
        })
    }
}

static AGENTS: Table = Table::new(
    "agents",
    &[
        "session_id",
        "agent_name",
        "pid",
        "parent_id",
        "project",
        "current_work",
        "status",
        "started_at",
        "last_seen_at",
        "metadata",
        "last_beat_at",
        "ended_at",
        "progress",
        "process",
        "shares_process",
        "joined_revision",
        "revision",
        "own_work",
    ],
    1,
);
static PROJECTS: Table = Table::new(
    "projects",
    &["project_id", "display_name", "local_path", "remote_repo", "registered_at", "metadata", "revision"],
    1,
);
static WORK_ITEMS: Table = Table::new(
    "work_items",
    &[
        "item_id",
        "project_id",
        "title",
        "description",
        "source",
        "source_ref",
        "status",
        "priority",
        "claimed_by",
        "claimed_at",
        "completed_at",
        "blocked_by",
        "created_at",
        "metadata",
        "claimed_by_name",
        "fence",
        "revision",
        "summary",
    ],
    1,
);
static DEPENDENCIES: Table = Table::new("work_dependencies", &["item_id", "blocked_by", "created_at"], 2);
static CURSORS: Table = Table::new("cursors", &["owner", "reader", "revision", "updated_at"], 2);
static OPERATIONS: Table =
    Table::new("operations", &["operation_id", "verb", "answer", "revision", "created_at"], 1);
static MARKS: Table = Table::new("marks", &["name", "value"], 1);
// An outer join: an entry whose version is missing is damaged, and not absent.
static ENTRIES: Table = Table::new("entries", &["scope", "key", "revision", "expires_at", "session_id"], 2)
    .joined("entries LEFT JOIN entry_versions USING (revision)", VERSION_COLUMNS);
static TOMBSTONES: Table = Table::new("entry_tombstones", &["scope", "key", "version", "revision"], 2);
static EDITS: Table = Table::new(
    "file_edits",
    &["worktree", "path", "session_id", "tool", "noted_at", "edited_at", "denied_at"],
    3,
);

/// The columns of a version, in the order of [`version_from`]: the one in which the schema makes them. Their names would
/// cost more, each time a statement is looked up by its text, than reading them.
const VERSION_COLUMNS: &[&str] = &["entry_versions.*"];

const VERSION_COLUMN_COUNT: usize = 15;

/// The table of a key, and the values of its key columns.
pub(super) fn table_of(key: &Key) -> (&'static Table, Vec<&str>) {
    match key {
        Key::Agent(id) => (&AGENTS, vec![id]),
        Key::Project(id) => (&PROJECTS, vec![id]),
        Key::WorkItem(id) => (&WORK_ITEMS, vec![id]),
        Key::Dependency(item, blocked_by) => (&DEPENDENCIES, vec![item, blocked_by]),
        Key::Cursor(owner, reader) => (&CURSORS, vec![owner, reader]),
        Key::Operation(id) => (&OPERATIONS, vec![id]),
        Key::Mark(name) => (&MARKS, vec![name]),
        Key::Entry(scope, key) => (&ENTRIES, vec![scope, key]),
        Key::Tombstone(scope, key) => (&TOMBSTONES, vec![scope, key]),
        Key::Edit(worktree, path, session) => (&EDITS, vec![worktree, path, session]),
    }
}

/// How far a row is from those that refer to nothing: its foreign keys lead to rows of earlier generations.
pub(super) fn generation(key: &Key) -> u8 {
    match key {
        Key::Agent(_)
        | Key::Project(_)
        | Key::Cursor(..)
        | Key::Operation(_)
        | Key::Mark(_)
        | Key::Entry(..)
        | Key::Tombstone(..)
        | Key::Edit(..) => 0,
        Key::WorkItem(_) => 1,
        Key::Dependency(..) => 2,
    }
}

/// Where the rows of an index stand, and how they are found.
pub(super) struct Plan {
    pub(super) table: &'static Table,
    /// Where its rows are read from.
    pub(super) source: &'static str,
    /// The same for whoever wants nothing of what is joined to them.
    pub(super) bare_source: &'static str,
    /// The condition; `?1` is the partition, or its first part if it has two: then `?5` is the second.
    pub(super) condition: &'static str,
    /// The column that `from` and `before` speak of.
    pub(super) bounded: Option<&'static str>,
    pub(super) order: &'static str,
}

pub(super) fn plan_of(range: &Range) -> Plan {
    let plan = |table: &'static Table, condition, bounded, order| Plan {
        table,
        source: table.source(),
        bare_source: table.name,
        condition,
        bounded,
        order,
    };
    match range.index {
        Index::Agents => plan(&AGENTS, "1", Some("session_id"), "session_id"),
        Index::LiveAgents => {
            plan(&AGENTS, "status IN ('active', 'idle')", Some("last_seen_at"), "last_seen_at, session_id")
        }
        Index::EndedAgents => plan(&AGENTS, "ended_at IS NOT NULL", Some("ended_at"), "ended_at, session_id"),
        Index::Delegates => plan(&AGENTS, "parent_id = ?1", None, "session_id"),
        Index::Projects => plan(&PROJECTS, "1", Some("project_id"), "project_id"),
        Index::WorkItems => plan(&WORK_ITEMS, "1", Some("item_id"), "item_id"),
        Index::WorkQueue => plan(&WORK_ITEMS, "status = ?1", None, "priority, created_at, item_id"),
        Index::NewestWork => plan(
            &WORK_ITEMS,
            "status = ?1 AND priority = ?5",
            Some("created_at"),
            "created_at DESC, item_id DESC",
        ),
        Index::ClaimedBy => plan(&WORK_ITEMS, "claimed_by = ?1", None, "item_id"),
        Index::HeldBy => plan(&WORK_ITEMS, "claimed_by = ?1 AND status <> 'completed'", None, "item_id"),
        Index::WorkOfProject => plan(&WORK_ITEMS, "project_id = ?1", None, "item_id"),
        Index::CompletedWork => {
            plan(&WORK_ITEMS, "completed_at IS NOT NULL", Some("completed_at"), "completed_at, item_id")
        }
        Index::LastCompleted => plan(
            &WORK_ITEMS,
            "completed_at IS NOT NULL",
            Some("completed_at"),
            "completed_at DESC, item_id DESC",
        ),
        Index::Dependencies => plan(&DEPENDENCIES, "1", None, "item_id, blocked_by"),
        Index::Blockers => plan(&DEPENDENCIES, "item_id = ?1", None, "created_at, blocked_by"),
        Index::Dependents => plan(&DEPENDENCIES, "blocked_by = ?1", None, "item_id"),
        Index::Operations => plan(&OPERATIONS, "1", Some("created_at"), "created_at, operation_id"),
        Index::Cursors => plan(&CURSORS, "owner = ?1", None, "reader"),
        Index::AllEntries => plan(&ENTRIES, "1", Some("entries.scope"), "entries.scope, entries.key"),
        Index::Entries => plan(&ENTRIES, "entries.scope = ?1", Some("entries.key"), "entries.key"),
        Index::NewestEntries => {
            plan(&ENTRIES, "entries.scope = ?1", Some("entries.revision"), "entries.revision DESC")
        }
        Index::TaggedEntries => Plan {
            source: "entry_tags CROSS JOIN entries USING (scope, key) \
                     LEFT JOIN entry_versions USING (revision)",
            bare_source: "entry_tags CROSS JOIN entries USING (scope, key)",
            ..plan(
                &ENTRIES,
                "entry_tags.scope = ?1 AND entry_tags.tag = ?5",
                Some("entry_tags.key"),
                "entry_tags.key",
            )
        },
        Index::ExpiringEntries => plan(
            &ENTRIES,
            "entries.expires_at IS NOT NULL",
            Some("entries.expires_at"),
            "entries.expires_at, entries.scope, entries.key",
        ),
        Index::EditsOfFile => plan(&EDITS, "worktree = ?1 AND path = ?5", None, "session_id"),
        Index::EditsOfSession => plan(&EDITS, "session_id = ?1", None, "worktree, path"),
        Index::Edits => plan(&EDITS, "1", Some("noted_at"), "noted_at, worktree, path, session_id"),
        Index::LeasedEntries => plan(&ENTRIES, "entries.session_id = ?1", None, "entries.scope, entries.key"),
    }
}

/// The values of a row, in the order of its table's columns.
pub(super) fn cells_of(row: &Row) -> (&'static Table, Vec<Cell<'_>>) {
    match row {
        Row::Agent(agent) => (&AGENTS, agent_cells(agent)),
        Row::Project(project) => (&PROJECTS, project_cells(project)),
        Row::WorkItem(item) => (&WORK_ITEMS, work_item_cells(item)),
        Row::Dependency(dependency) => (
            &DEPENDENCIES,
            vec![
                Cell::Text(&dependency.item_id),
                Cell::Text(&dependency.blocked_by),
                Cell::Time(dependency.created_at),
            ],
        ),
        Row::Cursor(cursor) => (
            &CURSORS,
            vec![
                Cell::Text(&cursor.owner),
                Cell::Text(&cursor.reader),
                revision(cursor.revision),
                Cell::Time(cursor.updated_at),
            ],
        ),
        Row::Operation(operation) => (
            &OPERATIONS,
            vec![
                Cell::Text(&operation.operation_id),
                Cell::Text(&operation.verb),
                Cell::Text(&operation.answer),
                revision(operation.revision),
                Cell::Time(operation.created_at),
            ],
        ),
        Row::Mark(mark) => (&MARKS, vec![Cell::Text(mark.name), Cell::Text(&mark.value)]),
        Row::Entry(entry) => (
            &ENTRIES,
            vec![
                Cell::Text(&entry.scope),
                Cell::Text(&entry.key),
                revision(entry.revision),
                time(entry.expires_at),
                text(entry.session_id.as_ref()),
            ],
        ),
        Row::Tombstone(tombstone) => (
            &TOMBSTONES,
            vec![
                Cell::Text(&tombstone.scope),
                Cell::Text(&tombstone.key),
                Cell::Integer(counted(tombstone.version)),
                revision(tombstone.revision),
            ],
        ),
        Row::Edit(edit) => (
            &EDITS,
            vec![
                Cell::Text(&edit.worktree),
                Cell::Text(&edit.path),
                Cell::Text(&edit.session_id),
                text(edit.tool.as_ref()),
                Cell::Time(edit.noted_at()),
                time(edit.edited_at),
                time(edit.denied_at),
            ],
        ),
    }
}

/// The statement that adds a version; its parameters are [`version_cells`].
pub(super) const INSERT_VERSION: &str = "INSERT INTO entry_versions (revision, previous, scope, key, version, value, created_at, created_by, \
     updated_at, updated_by, expires_at, tags, metadata, session_id, fence) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// The values of a version; `tags` are its tags as JSON.
pub(super) fn version_cells<'row>(
    version: &'row EntryVersion,
    tags: Option<&'row str>,
) -> [Cell<'row>; VERSION_COLUMN_COUNT] {
    let entry = &version.entry;
    [
        revision(entry.revision),
        version.previous.map_or(Cell::Null, revision),
        Cell::Text(&entry.scope),
        Cell::Text(&entry.key),
        Cell::Integer(counted(entry.version)),
        if version.removed { Cell::Null } else { Cell::Text(entry.value.as_str()) },
        Cell::Time(entry.created_at),
        Cell::Text(&entry.created_by),
        Cell::Time(entry.updated_at),
        Cell::Text(&entry.updated_by),
        time(entry.expires_at),
        tags.map_or(Cell::Null, Cell::Text),
        metadata(entry.metadata.as_ref()),
        text(entry.session_id.as_ref()),
        entry.fence.map_or(Cell::Null, revision),
    ]
}

fn counted(version: u64) -> i64 {
    i64::try_from(version).unwrap_or(i64::MAX)
}

/// The statement that reads a version by its revision.
pub(super) const VERSION_QUERY: &str = "SELECT * FROM entry_versions WHERE revision = ?";

/// A version, from [`VERSION_COLUMNS`].
pub(super) fn version_from(row: &rusqlite::Row<'_>) -> Result<EntryVersion> {
    let cells = Cells { table: "entry_versions", row };
    let value = cells.optional_text(5)?;
    let removed = value.is_none();
    let tags = match cells.optional_str(11)? {
        Some(tags) => serde_json::from_str(tags).map_err(|error| cells.damaged(11, error))?,
        None => Vec::new(),
    };
    let entry = Entry {
        scope: cells.text(2)?,
        key: cells.text(3)?,
        value: value.map_or_else(|| Ok(EntryValue::null()), EntryValue::from_stored)?,
        version: u64::try_from(cells.integer(4)?).map_err(|error| cells.damaged(4, error))?,
        revision: cells.revision(0)?,
        created_at: cells.name(6)?,
        created_by: cells.text(7)?,
        updated_at: cells.name(8)?,
        updated_by: cells.text(9)?,
        expires_at: cells.optional_name(10)?,
        tags,
        metadata: cells.metadata(12)?,
        session_id: cells.optional_text(13)?,
        fence: cells.optional_revision(14)?,
    };
    Ok(EntryVersion { entry, previous: cells.optional_revision(1)?, removed })
}

fn agent_cells(agent: &Agent) -> Vec<Cell<'_>> {
    vec![
        Cell::Text(&agent.session_id),
        Cell::Text(&agent.agent_name),
        agent.pid.map_or(Cell::Null, |pid| Cell::Integer(i64::from(pid))),
        text(agent.parent_id.as_ref()),
        text(agent.project.as_ref()),
        text(agent.current_work.as_ref()),
        Cell::Text(agent.status.as_str()),
        Cell::Time(agent.started_at),
        Cell::Time(agent.last_seen_at),
        metadata(agent.metadata.as_ref()),
        Cell::Time(agent.last_beat_at),
        time(agent.ended_at),
        text(agent.progress.as_ref()),
        agent.process.as_ref().map_or(Cell::Null, Cell::Process),
        Cell::Integer(i64::from(agent.shares_process)),
        revision(agent.joined),
        revision(agent.revision),
        text(agent.own_work.as_ref()),
    ]
}

fn project_cells(project: &Project) -> Vec<Cell<'_>> {
    vec![
        Cell::Text(&project.project_id),
        Cell::Text(&project.display_name),
        text(project.local_path.as_ref()),
        text(project.remote_repo.as_ref()),
        Cell::Time(project.registered_at),
        metadata(project.metadata.as_ref()),
        revision(project.revision),
    ]
}

fn work_item_cells(item: &WorkItem) -> Vec<Cell<'_>> {
    vec![
        Cell::Text(&item.item_id),
        text(item.project_id.as_ref()),
        Cell::Text(&item.title),
        text(item.description.as_ref()),
        Cell::Text(&item.source),
        text(item.source_ref.as_ref()),
        Cell::Text(item.status.as_str()),
        Cell::Text(item.priority.as_str()),
        text(item.claimed_by.as_ref()),
        time(item.claimed_at),
        time(item.completed_at),
        text(item.blocked_by.as_ref()),
        Cell::Time(item.created_at),
        metadata(item.metadata.as_ref()),
        text(item.claimed_by_name.as_ref()),
        item.fence.map_or(Cell::Null, revision),
        revision(item.revision),
        text(item.summary.as_ref()),
    ]
}

fn text(text: Option<&String>) -> Cell<'_> {
    text.map_or(Cell::Null, |text| Cell::Text(text))
}

fn time(time: Option<Timestamp>) -> Cell<'static> {
    time.map_or(Cell::Null, Cell::Time)
}

fn metadata(metadata: Option<&Metadata>) -> Cell<'_> {
    metadata.map_or(Cell::Null, |metadata| Cell::Text(metadata.as_str()))
}

fn revision(revision: Revision) -> Cell<'static> {
    Cell::Integer(revision.get())
}

/// A row of `table`, from its columns in their order.
pub(super) fn row_from(table: &Table, row: &rusqlite::Row<'_>) -> Result<Row> {
    let cells = Cells { table: table.name, row };
    Ok(match table.name {
        "agents" => Row::Agent(Agent {
            session_id: cells.text(0)?,
            agent_name: cells.text(1)?,
            pid: cells.optional_integer(2)?.and_then(|pid| u32::try_from(pid).ok()),
            parent_id: cells.optional_text(3)?,
            project: cells.optional_text(4)?,
            current_work: cells.optional_text(5)?,
            status: cells.name(6)?,
            started_at: cells.name(7)?,
            last_seen_at: cells.name(8)?,
            metadata: cells.metadata(9)?,
            last_beat_at: cells.name(10)?,
            ended_at: cells.optional_name(11)?,
            progress: cells.optional_text(12)?,
            // A mark that can't be read is as good as none: the timer decides.
            process: cells.optional_text(13)?.and_then(|mark| mark.parse().ok()),
            shares_process: cells.integer(14)? != 0,
            joined: cells.revision(15)?,
            revision: cells.revision(16)?,
            own_work: cells.optional_text(17)?,
        }),
        "projects" => Row::Project(Project {
            project_id: cells.text(0)?,
            display_name: cells.text(1)?,
            local_path: cells.optional_text(2)?,
            remote_repo: cells.optional_text(3)?,
            registered_at: cells.name(4)?,
            metadata: cells.metadata(5)?,
            revision: cells.revision(6)?,
        }),
        "work_items" => Row::WorkItem(WorkItem {
            item_id: cells.text(0)?,
            project_id: cells.optional_text(1)?,
            title: cells.text(2)?,
            description: cells.optional_text(3)?,
            source: cells.text(4)?,
            source_ref: cells.optional_text(5)?,
            status: cells.name(6)?,
            priority: cells.name(7)?,
            claimed_by: cells.optional_text(8)?,
            claimed_at: cells.optional_name(9)?,
            completed_at: cells.optional_name(10)?,
            blocked_by: cells.optional_text(11)?,
            created_at: cells.name(12)?,
            metadata: cells.metadata(13)?,
            claimed_by_name: cells.optional_text(14)?,
            fence: cells.optional_revision(15)?,
            revision: cells.revision(16)?,
            summary: cells.optional_text(17)?,
        }),
        "work_dependencies" => Row::Dependency(Dependency {
            item_id: cells.text(0)?,
            blocked_by: cells.text(1)?,
            created_at: cells.name(2)?,
        }),
        "cursors" => Row::Cursor(Cursor {
            owner: cells.text(0)?,
            reader: cells.text(1)?,
            revision: cells.revision(2)?,
            updated_at: cells.name(3)?,
        }),
        "operations" => Row::Operation(Operation {
            operation_id: cells.text(0)?,
            verb: cells.text(1)?,
            answer: cells.text(2)?,
            revision: cells.revision(3)?,
            created_at: cells.name(4)?,
        }),
        "marks" => Row::Mark(Mark { name: mark_name(&cells.text(0)?)?, value: cells.text(1)? }),
        "entries" => {
            let version = version_from(row)?;
            if version.removed {
                return Err(cells.damaged(5, "an entry points at a version without a value"));
            }
            Row::Entry(version.entry)
        }
        "entry_tombstones" => Row::Tombstone(Tombstone {
            scope: cells.text(0)?,
            key: cells.text(1)?,
            version: u64::try_from(cells.integer(2)?).map_err(|error| cells.damaged(2, error))?,
            revision: cells.revision(3)?,
        }),
        "file_edits" => Row::Edit(Edit {
            worktree: cells.text(0)?,
            path: cells.text(1)?,
            session_id: cells.text(2)?,
            tool: cells.optional_text(3)?,
            edited_at: cells.optional_name(5)?,
            denied_at: cells.optional_name(6)?,
        }),
        other => return Err(Fault::new(Code::Internal, format!("no row type for table {other}")).into()),
    })
}

/// The key of a row of `table`, from its key columns.
pub(super) fn key_from(table: &Table, row: &rusqlite::Row<'_>) -> Result<Key> {
    let cells = Cells { table: table.name, row };
    Ok(match table.name {
        "agents" => Key::Agent(cells.text(0)?),
        "projects" => Key::Project(cells.text(0)?),
        "work_items" => Key::WorkItem(cells.text(0)?),
        "work_dependencies" => Key::Dependency(cells.text(0)?, cells.text(1)?),
        "cursors" => Key::Cursor(cells.text(0)?, cells.text(1)?),
        "operations" => Key::Operation(cells.text(0)?),
        "marks" => Key::Mark(mark_name(&cells.text(0)?)?),
        "entries" => Key::Entry(cells.text(0)?, cells.text(1)?),
        "entry_tombstones" => Key::Tombstone(cells.text(0)?, cells.text(1)?),
        "file_edits" => Key::Edit(cells.text(0)?, cells.text(1)?, cells.text(2)?),
        other => return Err(Fault::new(Code::Internal, format!("no key type for table {other}")).into()),
    })
}

fn mark_name(name: &str) -> Result<&'static str> {
    crate::board::MARKS
        .iter()
        .copied()
        .find(|known| *known == name)
        .ok_or_else(|| Fault::new(Code::Corrupt, format!("unknown mark {name}")).into())
}

/// A revision that a board can have. A file that came from somebody else may hold any number.
pub(super) fn checked_revision(id: i64) -> Option<Revision> {
    (0..=LAST_REVISION).contains(&id).then(|| Revision::new(id))
}

/// Far beyond what a board reaches, and far from where counting on would overflow.
const LAST_REVISION: i64 = 1 << 60;

/// The columns of an entry's head, in the order of [`head_from`].
pub(super) const HEAD_COLUMNS: &str = "entries.scope, entries.key, entries.revision, entries.expires_at";

/// An entry's head, from [`HEAD_COLUMNS`].
pub(super) fn head_from(row: &rusqlite::Row<'_>) -> Result<EntryHead> {
    let cells = Cells { table: "entries", row };
    Ok(EntryHead {
        scope: cells.text(0)?,
        key: cells.text(1)?,
        revision: cells.revision(2)?,
        expires_at: cells.optional_name(3)?,
    })
}

/// The columns of an event, in the order of [`event_from`].
pub(super) const EVENT_COLUMNS: &str =
    "id, timestamp, event_type, actor_id, target_id, target_type, summary, metadata, commit_id";

/// An event, from [`EVENT_COLUMNS`].
pub(super) fn event_from(row: &rusqlite::Row<'_>) -> Result<Event> {
    let cells = Cells { table: "events", row };
    Ok(Event {
        id: cells.revision(0)?,
        timestamp: cells.name(1)?,
        event_type: EventType::from_name(cells.str(2)?),
        actor_id: cells.optional_text(3)?,
        target_id: cells.optional_text(4)?,
        target_type: cells.optional_str(5)?.and_then(TargetType::from_name),
        summary: cells.text(6)?,
        metadata: cells.metadata(7)?,
        commit_id: cells.revision(8)?,
        entry: None,
    })
}

/// The cells of one row. What does not have the type that the schema gives it was written by somebody else, and
/// is a damaged row.
struct Cells<'a, 'stmt> {
    table: &'static str,
    row: &'a rusqlite::Row<'stmt>,
}

impl Cells<'_, '_> {
    fn get<T: rusqlite::types::FromSql>(&self, index: usize) -> Result<T> {
        self.row.get(index).map_err(|error| self.damaged(index, error))
    }

    fn text(&self, index: usize) -> Result<String> {
        self.get(index)
    }

    fn optional_text(&self, index: usize) -> Result<Option<String>> {
        self.get(index)
    }

    fn integer(&self, index: usize) -> Result<i64> {
        self.get(index)
    }

    fn optional_integer(&self, index: usize) -> Result<Option<i64>> {
        self.get(index)
    }

    fn revision(&self, index: usize) -> Result<Revision> {
        checked_revision(self.integer(index)?).ok_or_else(|| self.damaged(index, "no revision of a board"))
    }

    fn optional_revision(&self, index: usize) -> Result<Option<Revision>> {
        match self.optional_integer(index)? {
            Some(_) => self.revision(index).map(Some),
            None => Ok(None),
        }
    }

    /// The text where it is, for what becomes something else.
    fn str(&self, index: usize) -> Result<&str> {
        let cell = self.row.get_ref(index).map_err(|error| self.damaged(index, error))?;
        cell.as_str().map_err(|error| self.damaged(index, error))
    }

    fn optional_str(&self, index: usize) -> Result<Option<&str>> {
        match self.row.get_ref(index).map_err(|error| self.damaged(index, error))? {
            ValueRef::Null => Ok(None),
            _ => self.str(index).map(Some),
        }
    }

    fn name<T: std::str::FromStr<Err = Error>>(&self, index: usize) -> Result<T> {
        self.str(index)?.parse().map_err(|error: Error| self.damaged(index, error))
    }

    fn optional_name<T: std::str::FromStr<Err = Error>>(&self, index: usize) -> Result<Option<T>> {
        let Some(text) = self.optional_str(index)? else { return Ok(None) };
        text.parse().map(Some).map_err(|error: Error| self.damaged(index, error))
    }

    fn metadata(&self, index: usize) -> Result<Option<Metadata>> {
        self.optional_text(index)?.map(Metadata::from_stored).transpose()
    }

    fn damaged(&self, index: usize, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Fault::new(
            Code::Corrupt,
            format!("a row of {} has a value that can't be read (column {index})", self.table),
        )
        .because(error)
        .into()
    }
}
