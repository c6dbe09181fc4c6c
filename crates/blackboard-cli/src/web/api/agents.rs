//! `/api/agents` and `/api/agents/{id}`: agents and their sessions.

use blackboard::agent::{AgentStatus, SeenAgent};
use blackboard::clock::Timestamp;
use blackboard::{Result, Revision};
use serde::Serialize;

use super::at_one_moment;
use crate::outcome::Render;
use crate::output::agent::AgentDetails;
use crate::web::query::wrong;
use crate::web::reply::{Reply, bare_page, written};
use crate::web::route::ApiRequest;

/// The maximum number of agents if a limit is given.
const MOST: usize = 1000;

/// The statuses of seed 000: all except `completed`.
const SHOWN: &[AgentStatus] = &[AgentStatus::Active, AgentStatus::Idle, AgentStatus::Stale];

/// The columns of seed 000, followed by ours.
#[derive(Serialize)]
struct AgentRow<'a> {
    session_id: &'a str,
    agent_name: &'a str,
    pid: Option<u32>,
    parent_id: Option<&'a str>,
    project: Option<&'a str>,
    current_work: Option<&'a str>,
    status: AgentStatus,
    started_at: Timestamp,
    last_seen_at: Timestamp,
    claimed_items: usize,
    parent_name: Option<&'a str>,
    overdue: bool,
    process: &'a str,
    progress: Option<&'a str>,
    ended_at: Option<Timestamp>,
    revision: Revision,
}

impl<'a> AgentRow<'a> {
    fn of(seen: &'a SeenAgent) -> AgentRow<'a> {
        let SeenAgent { agent, claimed_items, parent_name, overdue, process } = seen;
        AgentRow {
            session_id: &agent.session_id,
            agent_name: &agent.agent_name,
            pid: agent.pid,
            parent_id: agent.parent_id.as_deref(),
            project: agent.project.as_deref(),
            current_work: agent.current_work.as_deref(),
            status: agent.status,
            started_at: agent.started_at,
            last_seen_at: agent.last_seen_at,
            claimed_items: *claimed_items,
            parent_name: parent_name.as_deref(),
            overdue: *overdue,
            process,
            progress: agent.progress.as_deref(),
            ended_at: agent.ended_at,
            revision: agent.revision,
        }
    }
}

/// A bare array of active, idle and stale agents (`all=1`: also completed ones), the last started first. Parameters:
/// `limit`, `after`.
pub fn list(asked: &ApiRequest<'_>) -> Result<Reply> {
    let query = asked.query(&["limit", "after", "all"])?;
    let statuses = if query.is_set("all")? { AgentStatus::ALL } else { SHOWN };
    let after = query.text("after").map(mark).transpose()?;
    let limit = query.limit(MOST)?.unwrap_or(usize::MAX);
    let overview = asked.board.agents().overview(statuses)?;
    let mut agents = overview.agents;
    if let Some(after) = after {
        agents.retain(|seen| (seen.agent.started_at, seen.agent.session_id.as_str()) < after);
    }
    let more = agents.len() > limit;
    agents.truncate(limit);
    let last = agents.last().filter(|_| more);
    let next = last.map(|seen| format!("{} {}", seen.agent.started_at, seen.agent.session_id));
    let shown: Vec<_> = agents.iter().map(AgentRow::of).collect();
    Ok(bare_page(&shown, next.as_deref(), overview.revision))
}

/// The position at which a page ended.
fn mark(text: &str) -> Result<(Timestamp, &str)> {
    let unreadable = || wrong("after is not a Blackboard-Next value of a page of agents");
    let (started_at, session) = text.split_once(' ').ok_or_else(unreadable)?;
    Ok((started_at.parse().map_err(|_| unreadable())?, session))
}

/// The output of `agent show --json`.
pub fn show(asked: &ApiRequest<'_>) -> Result<Reply> {
    asked.query(&[])?;
    details(asked, asked.id)
}

/// The same with the id as a parameter, because browsers normalize a path that ends with `..`. Parameter: `id`.
pub fn named(asked: &ApiRequest<'_>) -> Result<Reply> {
    details(asked, asked.query(&["id"])?.needed("id")?)
}

fn details(asked: &ApiRequest<'_>, id: &str) -> Result<Reply> {
    let (shown, revision) = at_one_moment(asked.board, || {
        let (session, _) = asked.board.agents().resolve(id)?;
        asked.board.agents().show(&session)
    })?;
    Ok(written(revision, |answer| AgentDetails(shown).json(answer)))
}
