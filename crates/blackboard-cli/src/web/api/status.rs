//! `/api/status`: the counts of seed 000.

use blackboard::status::StatusCount;
use blackboard::{Result, Revision};
use serde::Serialize;

use crate::web::reply::{Reply, bare};
use crate::web::route::ApiRequest;

#[derive(Serialize)]
struct Count {
    count: u64,
}

#[derive(Serialize)]
struct Status {
    agents: Vec<StatusCount>,
    work: Vec<StatusCount>,
    projects: Count,
    events_24h: Count,
    revision: Revision,
}

/// `{agents: [{status, count}], work: [{status, count}], projects: {count}, events_24h: {count}, revision}`
pub fn counts(asked: &ApiRequest<'_>) -> Result<Reply> {
    asked.query(&[])?;
    let counts = asked.board.counts()?;
    let status = Status {
        agents: counts.agents,
        work: counts.work,
        projects: Count { count: counts.projects },
        events_24h: Count { count: counts.events_24h },
        revision: counts.revision,
    };
    Ok(bare(&status, counts.revision))
}
