//! `/api/work`, `/api/work/{id}` and `/api/lanes`: work items and their history.

use std::collections::BTreeMap;
use std::time::Duration;

use blackboard::clock::Timestamp;
use blackboard::work::{
    AgentActivity, LastCompleted, NewestWork, Priority, Status, WorkHistory, WorkItem, WorkPage,
};
use blackboard::{Result, Revision};
use serde::Serialize;

use super::at_one_moment;
use crate::web::event_view::NamedAgent;
use crate::web::query::wrong;
use crate::web::reply::{Reply, bare_page, written};
use crate::web::route::ApiRequest;

/// The maximum number of items if a limit is given.
const MOST: usize = 1000;

/// The default and the maximum of `hours`.
const HOURS: u64 = 6;
const MOST_HOURS: u64 = 24 * 7;

/// The columns of seed 000, followed by ours.
#[derive(Serialize)]
struct WorkRow<'a> {
    item_id: &'a str,
    title: &'a str,
    project_id: Option<&'a str>,
    source: &'a str,
    source_ref: Option<&'a str>,
    status: Status,
    priority: Priority,
    claimed_at: Option<Timestamp>,
    completed_at: Option<Timestamp>,
    blocked_by: Option<&'a str>,
    created_at: Timestamp,
    claimed_by_name: Option<&'a str>,
    claimed_by: Option<&'a str>,
    revision: Revision,
    /// All open blockers; `blocked_by` is the first of them.
    open_blockers: &'a [String],
    /// The blockers that do not exist yet.
    missing_blockers: &'a [String],
}

impl<'a> WorkRow<'a> {
    fn of(item: &'a WorkItem, page: &'a WorkPage) -> WorkRow<'a> {
        WorkRow {
            item_id: &item.item_id,
            title: &item.title,
            project_id: item.project_id.as_deref(),
            source: &item.source,
            source_ref: item.source_ref.as_deref(),
            status: item.status,
            priority: item.priority,
            claimed_at: item.claimed_at,
            completed_at: item.completed_at,
            blocked_by: item.blocked_by.as_deref(),
            created_at: item.created_at,
            claimed_by_name: item.claimed_by_name.as_deref(),
            claimed_by: item.claimed_by.as_deref(),
            revision: item.revision,
            open_blockers: page.open_blockers.get(&item.item_id).map_or(&[], Vec::as_slice),
            missing_blockers: page.missing_blockers.get(&item.item_id).map_or(&[], Vec::as_slice),
        }
    }
}

/// A bare array of open items (`all=1`: all items), P1 first, then the newest first. With
/// `status=completed&order=completed`: completed items, the last completed first. Parameters: `limit`, `after`,
/// `status` (one or several, separated by commas), `project`, `order`.
pub fn list(asked: &ApiRequest<'_>) -> Result<Reply> {
    let query = asked.query(&["limit", "after", "status", "project", "all", "order"])?;
    let (limit, after) = (query.limit(MOST)?, query.text("after").map(str::to_owned));
    let project = query.text("project").map(str::to_owned);
    let statuses: Vec<Status> = match query.text("status") {
        Some(names) => names.split(',').map(str::parse).collect::<Result<_>>()?,
        None if query.is_set("all")? => Status::ALL.to_vec(),
        None => Status::OPEN.to_vec(),
    };
    let page = match query.text("order") {
        None => asked.board.work().newest(&NewestWork { statuses, project, limit, after })?,
        Some("completed") if statuses == [Status::Completed] => {
            asked.board.work().last_completed(&LastCompleted { project, limit, after })?
        }
        Some(_) => return Err(wrong("order is `completed`, and goes with status=completed")),
    };
    let shown: Vec<_> = page.items.iter().map(|item| WorkRow::of(item, &page)).collect();
    Ok(bare_page(&shown, page.next.as_deref(), page.revision))
}

/// The output of `work status --json`, with the agents that its events name.
#[derive(Serialize)]
struct ItemView<'a> {
    #[serde(flatten)]
    item: &'a WorkHistory,
    /// By the id of the event.
    named_agents: BTreeMap<Revision, NamedAgent<'a>>,
}

/// The output of `work status --json`, with the agents that its events name.
pub fn show(asked: &ApiRequest<'_>) -> Result<Reply> {
    asked.query(&[])?;
    details(asked, asked.id)
}

/// The same with the id as a parameter, because browsers normalize a path that ends with `..`. Parameter: `id`.
pub fn named(asked: &ApiRequest<'_>) -> Result<Reply> {
    details(asked, asked.query(&["id"])?.needed("id")?)
}

fn details(asked: &ApiRequest<'_>, id: &str) -> Result<Reply> {
    let (item, revision) = at_one_moment(asked.board, || asked.board.work().status(id))?;
    let named_agents =
        item.history.iter().filter_map(|event| Some((event.id, NamedAgent::of(event)?))).collect();
    Ok(written(revision, |answer| answer.object(&ItemView { item: &item, named_agents })))
}

#[derive(Serialize)]
struct LanesEnd {
    since: Timestamp,
    revision: Revision,
}

/// `{ok, count, items: [{session_id, agent_name, project, spans: [{item_id, title, from, to, ended}]}], since,
/// revision, timestamp}`: which agent worked on which item in the last hours. Parameter: `hours`.
pub fn lanes(asked: &ApiRequest<'_>) -> Result<Reply> {
    let query = asked.query(&["hours"])?;
    let hours = match query.text("hours") {
        Some(text) => text.parse::<u64>().ok().filter(|hours| (1..=MOST_HOURS).contains(hours)),
        None => Some(HOURS),
    };
    let hours = hours.ok_or_else(|| wrong("hours is a number from 1 to 168"))?;
    let lanes = asked.board.work().lanes(Duration::from_hours(hours))?;
    let end = LanesEnd { since: lanes.since, revision: lanes.revision };
    Ok(written(lanes.revision, |answer| answer.list_with::<AgentActivity, _>(&lanes.lanes, &end)))
}
