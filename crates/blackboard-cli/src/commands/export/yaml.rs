//! `blackboard export --format yaml`: the files that agents of one operator share, `agents.yaml`, `tasks.yaml` and
//! `progress.yaml`, and the token quota as `quota.yaml` (`quota.rs`).
//!
//! Token counts are not in them: the board does not know any. `work import --from tasks` reads the tasks.

use std::collections::HashMap;

use blackboard::agent::Agent;
use blackboard::clock::Timestamp;
use blackboard::event::{Event, EventType, Since};
use blackboard::export::Exported;
use blackboard::work::WorkItem;
use blackboard::{Board, Code, Fault, Metadata, Result, Revision};
use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::yaml;

/// Which of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum File {
    /// Agents and their current work
    Agents,
    /// Work items
    Tasks,
    /// Progress notes, claims and completions
    Progress,
    /// Token quota
    Quota,
}

/// How many events are read together.
const BATCH: usize = 1000;

/// The text of a file.
pub fn render(board: &Board, state: &Exported, file: File) -> Result<String> {
    let text = match file {
        File::Agents => yaml::write(&Agents::of(state)),
        File::Tasks => yaml::write(&Tasks::of(state)),
        File::Progress => yaml::write(&Progress { entries: entries(board, state.revision)? }),
        // It is in no board: `export_quota` writes it.
        File::Quota => Ok(String::new()),
    };
    text.map_err(|error| {
        Fault::new(Code::Internal, "the board cannot be written as YAML").because(error).into()
    })
}

#[derive(Serialize)]
struct Agents<'a> {
    agents: Vec<AgentOfFile<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AgentOfFile<'a> {
    id: &'a str,
    name: &'a str,
    started: Timestamp,
    last_heartbeat: Timestamp,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_work: Option<CurrentWork<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CurrentWork<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<&'a str>,
    task: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    issue_ref: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    claimed_at: Option<Timestamp>,
}

impl Agents<'_> {
    fn of(state: &Exported) -> Agents<'_> {
        let mut agents: Vec<&Agent> = state.agents.iter().collect();
        agents.sort_by_key(|agent| (agent.started_at, &agent.session_id));
        let agents = agents.into_iter().map(|agent| AgentOfFile {
            id: &agent.session_id,
            name: &agent.agent_name,
            started: agent.started_at,
            last_heartbeat: agent.last_seen_at,
            status: agent.status.as_str(),
            progress: agent.progress.as_deref(),
            current_work: current_work(agent, state),
        });
        Agents { agents: agents.collect() }
    }
}

/// What an agent works on: the item with that title that it holds, or only what it reported.
fn current_work<'a>(agent: &'a Agent, state: &'a Exported) -> Option<CurrentWork<'a>> {
    let task = agent.current_work.as_deref()?;
    let held = |item: &&WorkItem| item.is_held_by(&agent.session_id) && item.title == task;
    let item = state.work_items.iter().find(held);
    Some(CurrentWork {
        project: item.and_then(|item| item.project_id.as_deref()).or(agent.project.as_deref()),
        task,
        issue_ref: item.and_then(|item| item.source_ref.as_deref()),
        claimed_at: item.and_then(|item| item.claimed_at),
    })
}

#[derive(Serialize)]
struct Tasks<'a> {
    tasks: Vec<Task<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Task<'a> {
    id: &'a str,
    source: String,
    title: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<&'a str>,
    priority: &'static str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    claimed_by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked_by: Option<OneOrMore<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_tokens: Option<u64>,
}

/// One text, or a list if there are more.
#[derive(Serialize)]
#[serde(untagged)]
enum OneOrMore<'a> {
    One(&'a str),
    More(Vec<&'a str>),
}

impl Tasks<'_> {
    fn of(state: &Exported) -> Tasks<'_> {
        let mut blockers: HashMap<&str, Vec<&str>> = HashMap::new();
        for dependency in &state.work_dependencies {
            blockers.entry(&dependency.item_id).or_default().push(&dependency.blocked_by);
        }
        let tasks = state.work_items.iter().map(|item| Task {
            id: &item.item_id,
            source: match (&*item.source, &item.source_ref) {
                ("github", Some(reference)) => format!("github:{reference}"),
                (source, _) => source.to_owned(),
            },
            title: &item.title,
            description: item.description.as_deref(),
            project: item.project_id.as_deref(),
            priority: item.priority.as_str(),
            status: item.status.as_str(),
            claimed_by: item.claimed_by.as_deref(),
            blocked_by: match blockers.get(&*item.item_id).map(|blockers| &blockers[..]) {
                None | Some([]) => None,
                Some([one]) => Some(OneOrMore::One(one)),
                Some(more) => Some(OneOrMore::More(more.to_vec())),
            },
            labels: item.labels(),
            estimated_tokens: item.estimate(),
        });
        Tasks { tasks: tasks.collect() }
    }
}

#[derive(Serialize)]
struct Progress {
    entries: Vec<ProgressEntry>,
}

#[derive(Serialize)]
struct ProgressEntry {
    agent: String,
    timestamp: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    event: &'static str,
    detail: String,
}

/// The notes, claims, releases and completions of the event log, the oldest first.
fn entries(board: &Board, until: Revision) -> Result<Vec<ProgressEntry>> {
    let types = [
        EventType::HeartbeatReceived,
        EventType::WorkClaimed,
        EventType::WorkReleased,
        EventType::WorkCompleted,
    ];
    let events = board.events();
    let mut observation = events.observe(&Since::Revision(Revision::ZERO), &types)?;
    observation.until = until;
    let mut after = observation.after;
    let mut entries = Vec::new();
    while let Some(batch) = events.next(&observation, after, BATCH)? {
        entries.extend(batch.events.iter().filter_map(entry));
        after = batch.last;
    }
    Ok(entries)
}

fn entry(event: &Event) -> Option<ProgressEntry> {
    let details = event.metadata.as_ref().map(Metadata::to_map).unwrap_or_default();
    let text = |name: &str| text(&details, name);
    let (kind, task, detail) = match event.event_type {
        EventType::HeartbeatReceived => {
            let is_milestone = details.get("milestone") == Some(&Value::Bool(true));
            let kind = if is_milestone { "milestone" } else { "progress" };
            (kind, text("work_item_id"), text("progress"))
        }
        EventType::WorkClaimed => ("claimed", event.target_id.clone(), None),
        EventType::WorkReleased => ("released", event.target_id.clone(), None),
        EventType::WorkCompleted => ("completed", event.target_id.clone(), text("summary")),
        _ => return None,
    };
    Some(ProgressEntry {
        agent: event.actor_id.clone()?,
        timestamp: event.timestamp,
        task,
        event: kind,
        detail: detail.unwrap_or_else(|| event.summary.clone()),
    })
}

fn text(details: &Map<String, Value>, name: &str) -> Option<String> {
    details.get(name)?.as_str().map(str::to_owned)
}
