//! `/api/board`: the location and the state of the board.

use blackboard::{Result, Revision};
use serde::Serialize;

use crate::web::feed::Condition;
use crate::web::reply::{Reply, written};
use crate::web::route::ApiRequest;

#[derive(Serialize)]
struct About {
    database: String,
    #[serde(flatten)]
    condition: Condition,
    version: &'static str,
    stale_threshold_seconds: u64,
    revision: Revision,
}

/// `{ok, database, state: open|missing|unreadable, error?, hint?, version, stale_threshold_seconds, revision,
/// timestamp}`
pub fn about(asked: &ApiRequest<'_>) -> Result<Reply> {
    asked.query(&[])?;
    let revision = asked.board.revision()?;
    let about = About {
        database: asked.feed.name(),
        condition: asked.feed.condition(),
        version: env!("CARGO_PKG_VERSION"),
        stale_threshold_seconds: asked.board.settings().stale_threshold.as_secs(),
        revision,
    };
    Ok(written(revision, |answer| answer.object(&about)))
}
