//! `/api/quota`: the token quota, if it is configured.

use std::time::Duration;

use blackboard::quota::Status;
use blackboard::{Result, Revision};
use serde::Serialize;

use crate::output::quota::UsageHistory;
use crate::quota::not_configured;
use crate::web::query::wrong;
use crate::web::reply::{Reply, written};
use crate::web::route::ApiRequest;

/// The default and the maximum length of the histories.
const HOURS: u64 = 24;
const MOST_HOURS: u64 = 24 * 90;

#[derive(Serialize)]
struct Quota {
    #[serde(flatten)]
    status: Option<Status>,
    histories: Vec<UsageHistory>,
    /// Why the ledger cannot be read. The board can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    revision: Revision,
}

/// `{ok, enforce, providers, histories, problem?, revision, timestamp}`: as `quota status --json`, but agents, work items and
/// reservations are those of this board, and `other_boards` is the sum of the rest. Parameter: `hours` of the histories.
pub fn status(asked: &ApiRequest<'_>) -> Result<Reply> {
    let query = asked.query(&["hours"])?;
    let reader = asked.quota.ok_or_else(not_configured)?;
    let hours = match query.text("hours") {
        Some(text) => text.parse::<u64>().ok().filter(|hours| (1..=MOST_HOURS).contains(hours)),
        None => Some(HOURS),
    };
    let hours = hours.ok_or_else(|| wrong("hours is a number from 1 to 2160"))?;
    let revision = asked.board.revision()?;
    let quota = match reader.status_and_histories(&asked.feed.name(), Duration::from_hours(hours)) {
        Ok((status, histories)) => Quota { status: Some(status), histories, problem: None, revision },
        // The page shows the reason in its place; the rest of the page is about the board.
        Err(error) => {
            Quota { status: None, histories: Vec::new(), problem: Some(error.to_string()), revision }
        }
    };
    Ok(written(revision, |answer| answer.object(&quota)))
}
