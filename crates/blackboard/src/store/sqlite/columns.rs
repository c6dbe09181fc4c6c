//! Rows as columns: the one place that knows the schema's columns.

use rusqlite::types::Value;

use crate::agent::Agent;
use crate::clock::Timestamp;
use crate::error::{Code, Error, Fault, Result};
use crate::event::{Event, EventType, TargetType};
use crate::metadata::Metadata;
use crate::project::Project;
use crate::revision::Revision;
use crate::store::rows::{Cursor, Index, Key, Mark, Operation, Range, Row};
use crate::work::{Dependency, WorkItem};

/// A table and its columns, the ones of the key first.
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: &'static [&'static str],
    pub(super) key_columns: usize,
}

static AGENTS: Table = Table {
    name: "agents",
    columns: &[
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
    ],
    key_columns: 1,
};
static PROJECTS: Table = Table {
    name: "projects",
    columns: &[
        "project_id",
        "display_name",
        "local_path",
        "remote_repo",
        "registered_at",
        "metadata",
        "revision",
    ],
    key_columns: 1,
};
static WORK_ITEMS: Table = Table {
    name: "work_items",
    columns: &[
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
    ],
    key_columns: 1,
};
static DEPENDENCIES: Table =
    Table { name: "work_dependencies", columns: &["item_id", "blocked_by", "created_at"], key_columns: 2 };
static CURSORS: Table =
    Table { name: "cursors", columns: &["owner", "reader", "revision", "updated_at"], key_columns: 2 };
static OPERATIONS: Table = Table {
    name: "operations",
    columns: &["operation_id", "verb", "answer", "revision", "created_at"],
    key_columns: 1,
};
static MARKS: Table = Table { name: "marks", columns: &["name", "value"], key_columns: 1 };

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
    }
}

/// How far a row is from those that refer to nothing: its foreign keys lead to rows of earlier generations.
pub(super) fn generation(key: &Key) -> u8 {
    match key {
        Key::Agent(_) | Key::Project(_) | Key::Cursor(..) | Key::Operation(_) | Key::Mark(_) => 0,
        Key::WorkItem(_) => 1,
        Key::Dependency(..) => 2,
    }
}

/// Where the rows of an index stand, and how they are found.
pub(super) struct Plan {
    pub(super) table: &'static Table,
    /// The condition; `?1` is the partition.
    pub(super) condition: &'static str,
    /// The column that `from` and `before` speak of.
    pub(super) bounded: Option<&'static str>,
    pub(super) order: &'static str,
}

pub(super) fn plan_of(range: &Range) -> Plan {
    let plan = |table, condition, bounded, order| Plan { table, condition, bounded, order };
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
        Index::ClaimedBy => plan(&WORK_ITEMS, "claimed_by = ?1", None, "item_id"),
        Index::WorkOfProject => plan(&WORK_ITEMS, "project_id = ?1", None, "item_id"),
        Index::CompletedWork => {
            plan(&WORK_ITEMS, "completed_at IS NOT NULL", Some("completed_at"), "completed_at, item_id")
        }
        Index::Blockers => plan(&DEPENDENCIES, "item_id = ?1", None, "created_at, blocked_by"),
        Index::Dependents => plan(&DEPENDENCIES, "blocked_by = ?1", None, "item_id"),
        Index::Operations => plan(&OPERATIONS, "1", Some("created_at"), "created_at, operation_id"),
        Index::Cursors => plan(&CURSORS, "owner = ?1", None, "reader"),
    }
}

/// The values of a row, in the order of its table's columns.
pub(super) fn values_of(row: &Row) -> (&'static Table, Vec<Value>) {
    match row {
        Row::Agent(agent) => (&AGENTS, agent_values(agent)),
        Row::Project(project) => (&PROJECTS, project_values(project)),
        Row::WorkItem(item) => (&WORK_ITEMS, work_item_values(item)),
        Row::Dependency(dependency) => (
            &DEPENDENCIES,
            vec![text(&dependency.item_id), text(&dependency.blocked_by), time(dependency.created_at)],
        ),
        Row::Cursor(cursor) => (
            &CURSORS,
            vec![
                text(&cursor.owner),
                text(&cursor.reader),
                revision(cursor.revision),
                time(cursor.updated_at),
            ],
        ),
        Row::Operation(operation) => (
            &OPERATIONS,
            vec![
                text(&operation.operation_id),
                text(&operation.verb),
                text(&operation.answer),
                revision(operation.revision),
                time(operation.created_at),
            ],
        ),
        Row::Mark(mark) => (&MARKS, vec![text(mark.name), text(&mark.value)]),
    }
}

fn agent_values(agent: &Agent) -> Vec<Value> {
    vec![
        text(&agent.session_id),
        text(&agent.agent_name),
        agent.pid.map_or(Value::Null, |pid| Value::Integer(i64::from(pid))),
        optional_text(agent.parent_id.as_deref()),
        optional_text(agent.project.as_deref()),
        optional_text(agent.current_work.as_deref()),
        text(agent.status.as_str()),
        time(agent.started_at),
        time(agent.last_seen_at),
        metadata(agent.metadata.as_ref()),
        time(agent.last_beat_at),
        optional_time(agent.ended_at),
        optional_text(agent.progress.as_deref()),
        agent.process.as_ref().map_or(Value::Null, |process| Value::Text(process.to_string())),
        Value::Integer(i64::from(agent.shares_process)),
        revision(agent.joined),
        revision(agent.revision),
    ]
}

fn project_values(project: &Project) -> Vec<Value> {
    vec![
        text(&project.project_id),
        text(&project.display_name),
        optional_text(project.local_path.as_deref()),
        optional_text(project.remote_repo.as_deref()),
        time(project.registered_at),
        metadata(project.metadata.as_ref()),
        revision(project.revision),
    ]
}

fn work_item_values(item: &WorkItem) -> Vec<Value> {
    vec![
        text(&item.item_id),
        optional_text(item.project_id.as_deref()),
        text(&item.title),
        optional_text(item.description.as_deref()),
        text(&item.source),
        optional_text(item.source_ref.as_deref()),
        text(item.status.as_str()),
        text(item.priority.as_str()),
        optional_text(item.claimed_by.as_deref()),
        optional_time(item.claimed_at),
        optional_time(item.completed_at),
        optional_text(item.blocked_by.as_deref()),
        time(item.created_at),
        metadata(item.metadata.as_ref()),
        optional_text(item.claimed_by_name.as_deref()),
        item.fence.map_or(Value::Null, revision),
        revision(item.revision),
    ]
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn optional_text(text: Option<&str>) -> Value {
    text.map_or(Value::Null, |text| Value::Text(text.to_owned()))
}

fn time(time: Timestamp) -> Value {
    Value::Text(time.to_string())
}

fn optional_time(value: Option<Timestamp>) -> Value {
    value.map_or(Value::Null, time)
}

fn metadata(metadata: Option<&Metadata>) -> Value {
    metadata.map_or(Value::Null, |metadata| text(metadata.as_str()))
}

fn revision(revision: Revision) -> Value {
    Value::Integer(revision.get())
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
            joined: Revision::new(cells.integer(15)?),
            revision: Revision::new(cells.integer(16)?),
        }),
        "projects" => Row::Project(Project {
            project_id: cells.text(0)?,
            display_name: cells.text(1)?,
            local_path: cells.optional_text(2)?,
            remote_repo: cells.optional_text(3)?,
            registered_at: cells.name(4)?,
            metadata: cells.metadata(5)?,
            revision: Revision::new(cells.integer(6)?),
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
            fence: cells.optional_integer(15)?.map(Revision::new),
            revision: Revision::new(cells.integer(16)?),
        }),
        "work_dependencies" => Row::Dependency(Dependency {
            item_id: cells.text(0)?,
            blocked_by: cells.text(1)?,
            created_at: cells.name(2)?,
        }),
        "cursors" => Row::Cursor(Cursor {
            owner: cells.text(0)?,
            reader: cells.text(1)?,
            revision: Revision::new(cells.integer(2)?),
            updated_at: cells.name(3)?,
        }),
        "operations" => Row::Operation(Operation {
            operation_id: cells.text(0)?,
            verb: cells.text(1)?,
            answer: cells.text(2)?,
            revision: Revision::new(cells.integer(3)?),
            created_at: cells.name(4)?,
        }),
        "marks" => Row::Mark(Mark { name: mark_name(&cells.text(0)?)?, value: cells.text(1)? }),
        other => return Err(Fault::new(Code::Internal, format!("no row type for table {other}")).into()),
    })
}

fn mark_name(name: &str) -> Result<&'static str> {
    crate::board::MARKS
        .iter()
        .copied()
        .find(|known| *known == name)
        .ok_or_else(|| Fault::new(Code::Corrupt, format!("unknown mark {name}")).into())
}

/// The columns of an event, in the order of [`event_from`].
pub(super) const EVENT_COLUMNS: &str =
    "id, timestamp, event_type, actor_id, target_id, target_type, summary, metadata, commit_id";

/// An event, from [`EVENT_COLUMNS`].
pub(super) fn event_from(row: &rusqlite::Row<'_>) -> Result<Event> {
    let cells = Cells { table: "events", row };
    Ok(Event {
        id: Revision::new(cells.integer(0)?),
        timestamp: cells.name(1)?,
        event_type: EventType::from_name(&cells.text(2)?),
        actor_id: cells.optional_text(3)?,
        target_id: cells.optional_text(4)?,
        target_type: cells.optional_text(5)?.and_then(|name| TargetType::from_name(&name)),
        summary: cells.text(6)?,
        metadata: cells.metadata(7)?,
        commit_id: Revision::new(cells.integer(8)?),
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

    fn name<T: std::str::FromStr<Err = Error>>(&self, index: usize) -> Result<T> {
        let text = self.row.get_ref(index).map_err(|error| self.damaged(index, error))?;
        let text = text.as_str().map_err(|error| self.damaged(index, error))?;
        text.parse().map_err(|error: Error| self.damaged(index, error))
    }

    fn optional_name<T: std::str::FromStr<Err = Error>>(&self, index: usize) -> Result<Option<T>> {
        match self.row.get_ref(index).map_err(|error| self.damaged(index, error))? {
            rusqlite::types::ValueRef::Null => Ok(None),
            _ => self.name(index).map(Some),
        }
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
