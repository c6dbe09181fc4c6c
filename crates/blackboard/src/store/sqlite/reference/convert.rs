//! Its rows as rows of a board, read from the verified copy.
//!
//! Every row is taken over. Ids, times and text stay as they are; times get one form. Event ids keep their values and
//! their gaps. What has no column here is kept by `leftovers.rs`.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, params};
use serde_json::{Map, Value, json};

use super::cycles::Dependencies;
use super::items::{self, BlockerState, StoredItem};
use super::leftovers::{KeptInMetadata, Leftovers, Tally};
use super::source::{SourceRow, for_each, has_table, parse_time};
use super::{LeftOutDependency, UpgradedRows};
use crate::agent::AgentStatus;
use crate::clock::Timestamp;
use crate::event::{EventType, TargetType};
use crate::store::record::checked_revision;
use crate::work::{Priority, Status};

/// The name of the bookkeeping row that says where the board comes from.
const MARK: &str = "ivy_blackboard";

/// What became of the rows.
pub(super) struct Converted {
    pub(super) rows: UpgradedRows,
    pub(super) kept_in_metadata: Vec<KeptInMetadata>,
    pub(super) left_out: Vec<LeftOutDependency>,
}

/// Converts all rows of `source` into the empty tables of `target`.
pub(super) fn convert(
    source: &Connection,
    target: &Connection,
    version: u32,
    now: Timestamp,
) -> rusqlite::Result<Converted> {
    let mut conversion = Conversion {
        source,
        target,
        ids: Ids::read(source)?,
        log: LogFacts::default(),
        beats: HashMap::new(),
        orphans: Vec::new(),
        tally: Tally::default(),
        rows: UpgradedRows::default(),
        left_out: Vec::new(),
        now,
    };
    conversion.events()?;
    conversion.projects()?;
    // First, because an agent has what its heartbeats leave over.
    conversion.heartbeats()?;
    conversion.agents()?;
    conversion.work_items()?;
    conversion.mark(version)?;
    Ok(Converted {
        rows: conversion.rows,
        kept_in_metadata: conversion.tally.into_list(),
        left_out: conversion.left_out,
    })
}

/// The ids that other rows refer to.
struct Ids {
    /// The names of agents, by session.
    agents: HashMap<String, String>,
    projects: HashSet<String>,
    /// Whether each work item is completed.
    items: HashMap<String, bool>,
}

impl Ids {
    fn read(source: &Connection) -> rusqlite::Result<Ids> {
        let mut ids = Ids { agents: HashMap::new(), projects: HashSet::new(), items: HashMap::new() };
        for_each(source, "SELECT session_id, agent_name FROM agents", &[], |row| {
            ids.agents.insert(row.required_text("session_id")?, row.required_text("agent_name")?);
            Ok(())
        })?;
        for_each(source, "SELECT project_id FROM projects", &[], |row| {
            ids.projects.insert(row.required_text("project_id")?);
            Ok(())
        })?;
        for_each(source, "SELECT item_id, status FROM work_items", &[], |row| {
            let is_completed = row.required_text("status")? == Status::Completed.as_str();
            ids.items.insert(row.required_text("item_id")?, is_completed);
            Ok(())
        })?;
        Ok(ids)
    }

    fn blocker_state(&self, item: &str) -> BlockerState {
        match self.items.get(item) {
            None => BlockerState::Missing,
            Some(false) => BlockerState::Open,
            Some(true) => BlockerState::Completed,
        }
    }
}

/// What the event log says about other rows.
#[derive(Default)]
struct LogFacts {
    /// The last event about each target, by its type.
    last_about: HashMap<&'static str, HashMap<String, i64>>,
    claimed: HashMap<String, i64>,
    joined: HashMap<String, i64>,
    ended_at: HashMap<String, Timestamp>,
    completed_at: HashMap<String, Timestamp>,
    last: i64,
}

impl LogFacts {
    fn note(&mut self, id: i64, at: Timestamp, event_type: &str, target: Option<(TargetType, &str)>) {
        self.last = id;
        let Some((target_type, target)) = target else { return };
        match EventType::from_name(event_type) {
            EventType::WorkClaimed => set(&mut self.claimed, target, id),
            EventType::AgentRegistered => set(&mut self.joined, target, id),
            EventType::AgentDeregistered | EventType::AgentStale => set(&mut self.ended_at, target, at),
            EventType::WorkCompleted => set(&mut self.completed_at, target, at),
            _ => {}
        }
        set(self.last_about.entry(target_type.as_str()).or_default(), target, id);
    }

    fn last_about(&self, target_type: TargetType, target: &str) -> i64 {
        self.last_about.get(target_type.as_str()).and_then(|of| of.get(target)).copied().unwrap_or(0)
    }
}

/// Sets a value, and allocates its key only once: most events are about the same targets.
fn set<T>(map: &mut HashMap<String, T>, key: &str, value: T) {
    match map.get_mut(key) {
        Some(known) => *known = value,
        None => drop(map.insert(key.to_owned(), value)),
    }
}

/// What the heartbeats of a session leave for its agent.
#[derive(Default)]
struct SessionBeats {
    progress: Option<String>,
    /// JSON objects.
    leftovers: Vec<String>,
    last: Option<i64>,
}

struct Conversion<'c> {
    source: &'c Connection,
    target: &'c Connection,
    ids: Ids,
    log: LogFacts,
    beats: HashMap<String, SessionBeats>,
    /// Heartbeats without an agent.
    orphans: Vec<Value>,
    tally: Tally,
    rows: UpgradedRows,
    left_out: Vec<LeftOutDependency>,
    now: Timestamp,
}

impl Conversion<'_> {
    fn events(&mut self) -> rusqlite::Result<()> {
        const INSERT: &str = "INSERT INTO events (id, timestamp, event_type, actor_id, target_id, target_type, \
            summary, metadata, commit_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?1)";
        const GAP: &str = "INSERT INTO event_gaps (first_id, ordinal) VALUES (?1, ?2)";
        const KNOWN: &[&str] =
            &["id", "timestamp", "event_type", "actor_id", "target_id", "target_type", "summary", "metadata"];
        let (log, tally, rows, target) = (&mut self.log, &mut self.tally, &mut self.rows, self.target);
        let (mut insert, mut insert_gap) = (target.prepare(INSERT)?, target.prepare(GAP)?);
        // The id of the event before, its number among all events that the board ever had, and its time.
        let mut before: Option<(i64, i64, Timestamp)> = None;
        let mut floor = 0;
        for_each(self.source, "SELECT * FROM events ORDER BY id", KNOWN, |row| {
            let id = row.integer("id")?.unwrap_or_default();
            if id < 1 || checked_revision(id).is_none() {
                return Err(rusqlite::Error::IntegralValueOutOfRange(0, id));
            }
            let mut leftovers = Leftovers::of("events", tally);
            let earlier = before.map_or(Timestamp::EPOCH, |(_, _, time)| time);
            let time = leftovers.time(row, "timestamp", earlier)?;
            let target_id = row.text("target_id")?;
            let target_type = match row.text("target_type")? {
                Some(text) => {
                    let known = TargetType::from_name(&text);
                    if known.is_none() {
                        leftovers.keep("target_type", text);
                    }
                    known
                }
                None => None,
            };
            leftovers.keep_unknown(row)?;
            let metadata = leftovers.into_metadata(row.text("metadata")?, None);
            let event_type = row.required_text("event_type")?;
            log.note(id, time, &event_type, target_type.zip(target_id.as_deref()));
            let (last, ordinal) = before.map_or((id - 1, id - 1), |(last, ordinal, _)| (last, ordinal));
            if before.is_none() {
                floor = id - 1;
            }
            if id != last + 1 {
                insert_gap.execute((id, ordinal + 1))?;
            }
            before = Some((id, ordinal + 1, time));
            let (actor, target_type) = (row.text("actor_id")?, target_type.map(TargetType::as_str));
            let summary = row.required_text("summary")?;
            rows.events += 1;
            insert
                .execute(params![
                    id,
                    time.to_string(),
                    event_type,
                    actor,
                    target_id,
                    target_type,
                    summary,
                    metadata
                ])
                .map(drop)
        })?;
        if before.is_none() {
            floor = last_assigned(self.source);
        }
        if floor > 0 {
            target.execute("INSERT INTO marks (name, value) VALUES ('floor', ?1)", [floor.to_string()])?;
        }
        Ok(())
    }

    fn projects(&mut self) -> rusqlite::Result<()> {
        const KNOWN: &[&str] =
            &["project_id", "display_name", "local_path", "remote_repo", "registered_at", "metadata"];
        let (mut features, mut tally) = (self.features()?, std::mem::take(&mut self.tally));
        for_each(self.source, "SELECT * FROM projects", KNOWN, |row| {
            let id = row.required_text("project_id")?;
            let mut leftovers = Leftovers::of("projects", &mut tally);
            let registered_at = leftovers.time(row, "registered_at", Timestamp::EPOCH)?;
            leftovers.keep_unknown(row)?;
            let more = features.remove(&id).map(Features::into_json);
            let more = more.as_deref().map(|json| (FEATURES, json));
            let metadata = leftovers.into_metadata(row.text("metadata")?, more);
            let (name, path) = (row.required_text("display_name")?, row.text("local_path")?);
            let (path, repo, metadata) = (path.as_deref(), row.text("remote_repo")?, metadata.as_deref());
            self.insert_project(&id, &name, path, repo.as_deref(), registered_at, metadata)
        })?;
        // A feature can belong to a project that was never registered. Its metadata needs one.
        let mut unregistered: Vec<_> = features.into_iter().collect();
        unregistered.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (id, features) in unregistered {
            tally.count("projects registered for features");
            let leftovers = Leftovers::of("projects", &mut tally);
            let since = features.since.unwrap_or(self.now);
            let metadata = leftovers.into_metadata(None, Some((FEATURES, &features.into_json())));
            self.insert_project(&id, &id, None, None, since, metadata.as_deref())?;
        }
        self.tally = tally;
        Ok(())
    }

    fn insert_project(
        &mut self,
        id: &str,
        name: &str,
        path: Option<&str>,
        repo: Option<&str>,
        registered_at: Timestamp,
        metadata: Option<&str>,
    ) -> rusqlite::Result<()> {
        const INSERT: &str = "INSERT INTO projects (project_id, display_name, local_path, remote_repo, \
            registered_at, metadata, revision) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let revision = self.log.last_about(TargetType::Project, id);
        self.ids.projects.insert(id.to_owned());
        self.rows.projects += 1;
        let registered_at = registered_at.to_string();
        let row = params![id, name, path, repo, registered_at, metadata, revision];
        self.target.prepare_cached(INSERT)?.execute(row).map(drop)
    }

    /// The rows of `specflow_features`, by project.
    fn features(&mut self) -> rusqlite::Result<HashMap<String, Features>> {
        let mut features: HashMap<String, Features> = HashMap::new();
        if !has_table(self.source, FEATURES)? {
            return Ok(features);
        }
        for_each(self.source, "SELECT * FROM specflow_features ORDER BY feature_id", &[], |row| {
            let of_project = features.entry(row.required_text("project_id")?).or_default();
            let created = row.text("created_at")?.as_deref().and_then(parse_time);
            of_project.since = of_project.since.into_iter().chain(created).min();
            of_project.rows.push(whole_row(row)?);
            self.tally.count(FEATURES);
            self.rows.specflow_features += 1;
            Ok(())
        })?;
        Ok(features)
    }

    fn heartbeats(&mut self) -> rusqlite::Result<()> {
        const INSERT: &str = "INSERT INTO heartbeats (id, session_id, timestamp, progress, work_item_id) \
            VALUES (?1, ?2, ?3, ?4, ?5)";
        const ALL: &str = "SELECT * FROM heartbeats ORDER BY session_id, timestamp, id";
        const KNOWN: &[&str] = &["id", "session_id", "timestamp", "progress", "work_item_id", "metadata"];
        let mut insert = self.target.prepare(INSERT)?;
        for_each(self.source, ALL, KNOWN, |row| {
            let (id, session) = (row.integer("id")?, row.required_text("session_id")?);
            if !self.ids.agents.contains_key(&session) {
                self.tally.count("heartbeats without an agent");
                self.orphans.push(whole_row(row)?);
                return Ok(());
            }
            let beats = self.beats.entry(session.clone()).or_default();
            let mut leftovers = Leftovers::of("heartbeats", &mut self.tally);
            let mut at = leftovers.time(row, "timestamp", Timestamp::EPOCH)?.millis();
            // A session has one heartbeat in a millisecond here: a second one is moved to the next, and keeps its time.
            if let Some(last) = beats.last.filter(|last| at <= *last) {
                at = last + 1;
                leftovers.keep("timestamp", row.required_text("timestamp")?);
            }
            beats.last = Some(at);
            let progress = row.text("progress")?;
            if progress.is_some() {
                beats.progress.clone_from(&progress);
            }
            let item = row.text("work_item_id")?;
            let (item, unknown) = match item {
                Some(item) if !self.ids.items.contains_key(&item) => (None, Some(item)),
                item => (item, None),
            };
            if let Some(unknown) = unknown {
                leftovers.keep("work_item_id", unknown);
            }
            leftovers.keep_unknown(row)?;
            let metadata = row.text("metadata")?;
            let as_json = metadata.as_deref().filter(|text| !leftovers.has("metadata") && is_nestable(text));
            match (&metadata, as_json) {
                (_, Some(_)) => leftovers.count("metadata"),
                (Some(text), None) => leftovers.keep("metadata", text.as_str()),
                (None, None) => {}
            }
            if let Some(object) = leftovers.into_object(as_json.map(|json| ("metadata", json))) {
                let head = format!("{{\"id\":{},", id.unwrap_or_default());
                beats.leftovers.push(object.replacen('{', &head, 1));
            }
            self.rows.heartbeats += 1;
            let at = Timestamp::from_millis(at).to_string();
            insert.execute(params![id, session, at, progress, item]).map(drop)
        })
    }

    fn agents(&mut self) -> rusqlite::Result<()> {
        const INSERT: &str = "INSERT INTO agents (session_id, agent_name, parent_id, project, current_work, \
            own_work, status, started_at, last_seen_at, last_beat_at, ended_at, progress, metadata, \
            joined_revision, revision) VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7, ?8, ?8, ?9, ?10, ?11, ?12, ?13)";
        const KNOWN: &[&str] = &[
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
        ];
        let mut insert = self.target.prepare(INSERT)?;
        for_each(self.source, "SELECT * FROM agents", KNOWN, |row| {
            let session = row.required_text("session_id")?;
            let beats = self.beats.remove(&session).unwrap_or_default();
            let mut leftovers = Leftovers::of("agents", &mut self.tally);
            // It is the PID of a command that has ended. Another process may have it now.
            let pid = row.json("pid")?;
            if !pid.is_null() {
                leftovers.keep("pid", pid);
            }
            let parent = row.text("parent_id")?;
            let (parent, unknown) = match parent {
                Some(parent) if !self.ids.agents.contains_key(&parent) => (None, Some(parent)),
                parent => (parent, None),
            };
            if let Some(unknown) = unknown {
                leftovers.keep("parent_id", unknown);
            }
            let stored = row.required_text("status")?;
            let status: AgentStatus = stored.parse().unwrap_or_else(|_| {
                leftovers.keep("status", stored);
                AgentStatus::Stale
            });
            let started_at = leftovers.time(row, "started_at", Timestamp::EPOCH)?;
            let last_seen_at = leftovers.time(row, "last_seen_at", started_at)?;
            leftovers.keep_unknown(row)?;
            let more = Some(beats.leftovers).filter(|leftovers| !leftovers.is_empty());
            let more = more.map(|leftovers| format!("[{}]", leftovers.join(",")));
            let more = more.as_deref().map(|json| ("heartbeats", json));
            let metadata = leftovers.into_metadata(row.text("metadata")?, more);
            let ended_at = match status {
                AgentStatus::Active | AgentStatus::Idle => None,
                AgentStatus::Completed | AgentStatus::Stale => {
                    Some(self.log.ended_at.get(&session).copied().unwrap_or(last_seen_at).to_string())
                }
            };
            let joined = self.log.joined.get(&session).copied().unwrap_or(0);
            let revision = self.log.last_about(TargetType::Agent, &session).max(joined);
            let (name, project) = (row.required_text("agent_name")?, row.text("project")?);
            let work = row.text("current_work")?;
            let times = (started_at.to_string(), last_seen_at.to_string());
            self.rows.agents += 1;
            insert
                .execute(params![
                    session,
                    name,
                    parent,
                    project,
                    work,
                    status.as_str(),
                    times.0,
                    times.1,
                    ended_at,
                    beats.progress,
                    metadata,
                    joined,
                    revision,
                ])
                .map(drop)
        })
    }

    fn work_items(&mut self) -> rusqlite::Result<()> {
        const INSERT: &str = "INSERT INTO work_items (item_id, project_id, title, description, source, \
            source_ref, status, priority, claimed_by, claimed_by_name, claimed_at, fence, completed_at, \
            blocked_by, created_at, metadata, revision) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";
        const DEPEND: &str =
            "INSERT OR IGNORE INTO work_dependencies (item_id, blocked_by, created_at) VALUES (?1, ?2, ?3)";
        let (mut insert, mut depend) = (self.target.prepare(INSERT)?, self.target.prepare(DEPEND)?);
        let mut dependencies = Dependencies::default();
        for_each(self.source, "SELECT * FROM work_items", items::KNOWN, |row| {
            let id = row.required_text("item_id")?;
            let mut leftovers = Leftovers::of("work_items", &mut self.tally);
            let project = row.text("project_id")?;
            let (project, unknown) = match project {
                Some(project) if !self.ids.projects.contains(&project) => (None, Some(project)),
                project => (project, None),
            };
            if let Some(unknown) = unknown {
                leftovers.keep("project_id", unknown);
            }
            let stored = StoredItem {
                status: row.required_text("status")?,
                claimed_by: row.text("claimed_by")?,
                has_holder: row
                    .text("claimed_by")?
                    .is_some_and(|holder| self.ids.agents.contains_key(&holder)),
                blocked_by: row.text("blocked_by")?,
                depends_on: row.text("depends_on")?,
                failure_count: leftovers.failure_count(row, "failure_count")?,
                failure_reason: row.text("failure_reason")?,
                failed_at: leftovers.optional_time(row, "failed_at")?,
            };
            let state = |blocker: &str| self.ids.blocker_state(blocker);
            let item = items::convert(&id, &stored, state, |blocker| dependencies.closes_cycle(&id, blocker));
            self.left_out.extend(LeftOutDependency::all(&id, item.left_out));
            for (column, value) in item.leftovers {
                leftovers.keep(column, value);
            }
            let priority = row.text("priority")?.unwrap_or_else(|| Priority::default().as_str().to_owned());
            let priority: Priority = priority.parse().unwrap_or_else(|_| {
                leftovers.keep("priority", priority);
                Priority::default()
            });
            let created_at = leftovers.time(row, "created_at", Timestamp::EPOCH)?;
            let claimed_at = leftovers.optional_time(row, "claimed_at")?;
            let completed_at = leftovers.optional_time(row, "completed_at")?;
            let completed_at = if item.status == Status::Completed {
                Some(completed_at.or(self.log.completed_at.get(&id).copied()).unwrap_or(created_at))
            } else {
                if let Some(completed_at) = completed_at {
                    leftovers.keep("completed_at", completed_at.to_string());
                }
                None
            };
            let holder = stored.claimed_by.filter(|_| item.keeps_holder);
            let claimed_at = match (claimed_at, &holder) {
                (Some(claimed_at), None) => {
                    leftovers.keep("claimed_at", claimed_at.to_string());
                    None
                }
                (claimed_at, Some(_)) => Some(claimed_at.unwrap_or(created_at)),
                (None, None) => None,
            };
            leftovers.keep_unknown(row)?;
            let own = item.own.map(|(name, value)| (name, value.to_string()));
            let own = own.as_ref().map(|(name, json)| (*name, json.as_str()));
            let metadata = leftovers.into_metadata(row.text("metadata")?, own);
            let name = holder.as_ref().and_then(|holder| self.ids.agents.get(holder));
            // A claim has the revision of its event as its fence token, or that of the last event if its own was deleted.
            let claim = self.log.claimed.get(&id).copied().unwrap_or(self.log.last);
            let fence = holder.as_ref().map(|_| claim).filter(|fence| *fence > 0);
            let revision = self.log.last_about(TargetType::WorkItem, &id).max(fence.unwrap_or(0));
            self.rows.work_items += 1;
            insert.execute(params![
                id,
                project,
                row.required_text("title")?,
                row.text("description")?,
                row.required_text("source")?,
                row.text("source_ref")?,
                item.status.as_str(),
                priority.as_str(),
                holder,
                name,
                claimed_at.map(|time| time.to_string()),
                fence,
                completed_at.map(|time| time.to_string()),
                item.blocked_by,
                created_at.to_string(),
                metadata,
                revision,
            ])?;
            for blocker in item.blockers {
                self.rows.dependencies += 1;
                depend.execute((&id, &blocker, created_at.to_string()))?;
                dependencies.add(&id, blocker);
            }
            Ok(())
        })
    }

    /// Stores where the board comes from, with what belongs to no row.
    fn mark(&self, version: u32) -> rusqlite::Result<()> {
        let mut versions = Vec::new();
        for_each(self.source, "SELECT * FROM schema_version ORDER BY version", &[], |row| {
            versions.push(whole_row(row)?);
            Ok(())
        })?;
        let mut mark = json!({
            "version": version,
            "upgraded_at": self.now.to_string(),
            "schema_version": versions,
        });
        if !self.orphans.is_empty() {
            mark["heartbeats"] = Value::Array(self.orphans.clone());
        }
        let sql = "INSERT INTO marks (name, value) VALUES (?1, ?2)";
        self.target.execute(sql, (MARK, mark.to_string())).map(drop)
    }
}

/// The table of features, and the member of a project's metadata that has them.
const FEATURES: &str = "specflow_features";

/// The features of one project.
#[derive(Default)]
struct Features {
    rows: Vec<Value>,
    since: Option<Timestamp>,
}

impl Features {
    fn into_json(self) -> String {
        Value::Array(self.rows).to_string()
    }
}

/// Whether a text is JSON that can be a value inside of metadata: readers of JSON limit its depth.
fn is_nestable(text: &str) -> bool {
    let is_json = |text: &str| serde_json::from_str::<Value>(text).is_ok();
    is_json(text) && is_json(&format!("[[[{text}]]]"))
}

/// All columns of a row.
fn whole_row(row: &SourceRow<'_>) -> rusqlite::Result<Value> {
    let columns = row.columns().map(|column| Ok((column.to_owned(), row.json(column)?)));
    columns.collect::<rusqlite::Result<Map<_, _>>>().map(Value::Object)
}

/// The last event id that was ever assigned.
fn last_assigned(source: &Connection) -> i64 {
    let last =
        source.query_row("SELECT seq FROM sqlite_sequence WHERE name = 'events'", [], |row| row.get(0));
    last.ok().filter(|last| checked_revision(*last).is_some()).unwrap_or(0)
}
