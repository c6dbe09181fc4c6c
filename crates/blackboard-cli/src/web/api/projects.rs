//! `/api/projects`: registered projects.

use blackboard::Result;

use super::at_one_moment;
use crate::web::reply::{Reply, list as as_list};
use crate::web::route::ApiRequest;

/// The default and the maximum number of projects.
const MOST: usize = 1000;

/// `{ok, count, items, next?, revision, timestamp}`, by id. Parameters: `limit`, `after` (an id).
pub fn list(asked: &ApiRequest<'_>) -> Result<Reply> {
    let query = asked.query(&["limit", "after"])?;
    let limit = query.limit(MOST)?.unwrap_or(MOST);
    let (mut projects, revision) = at_one_moment(asked.board, || asked.board.projects().list())?;
    if let Some(after) = query.text("after") {
        projects.retain(|listed| listed.project.project_id.as_str() > after);
    }
    let more = projects.len() > limit;
    projects.truncate(limit);
    let next = projects.last().filter(|_| more).map(|listed| listed.project.project_id.clone());
    Ok(as_list(&projects, next.as_deref(), revision))
}
