//! `/api/events`: what happened, the newest first. The stream is in `stream.rs`.

use blackboard::duration::parse_since;
use blackboard::event::{EventType, Lines};
use blackboard::{Code, Refusal, Result};

use crate::web::event_view::{EventView, Names};
use crate::web::reply::{Reply, bare_page};
use crate::web::route::Asked;

/// How many are shown if nobody says, as the seed has it, and at most.
const SHOWN: usize = 200;
const MOST: usize = 1000;

/// From when on, if nobody says: as the seed has it.
const SINCE: &str = "24h";

/// How many bytes of events are read for one page: it ends with the event that makes it so many.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// A bare array: the last 200 events of the last 24 hours, the newest first. `since` (`15m`, `24h`, `7d`, an ISO
/// time), `limit` (up to 1000), `before` and `after` (revisions; without `since` they reach back as far as the log
/// does), `types` (with commas), `agent` (a session: what it did, and what is about it)
pub fn list(asked: &Asked<'_>) -> Result<Reply> {
    let query = asked.query(&["since", "limit", "before", "after", "types", "agent"])?;
    let (before, after) = (query.revision("before")?, query.revision("after")?);
    let since = match query.text("since") {
        Some(since) => Some(since),
        None if before.is_some() || after.is_some() => None,
        None => Some(SINCE),
    };
    let page = asked.board.events().newest(&Lines {
        after,
        before,
        since: since.map(|since| parse_since(since, asked.board.clock().now())).transpose()?,
        types: query.text("types").map_or_else(|| Ok(Vec::new()), types)?,
        session: query.text("agent").map(str::to_owned),
        limit: query.limit(MOST)?.unwrap_or(SHOWN),
        most_bytes: Some(PAGE_BYTES),
    })?;
    let mut names = Names::new(asked.board);
    let shown =
        page.events.iter().map(|event| EventView::of(event, &mut names)).collect::<Result<Vec<_>>>()?;
    let next = page.next.map(|next| next.to_string());
    Ok(bare_page(&shown, next.as_deref(), page.revision))
}

/// The types of these names. One that nobody knows would be a filter through which nothing comes.
fn types(names: &str) -> Result<Vec<EventType>> {
    let known = |name| match EventType::from_name(name) {
        EventType::Other(_) => {
            let names: Vec<_> = EventType::ALL.iter().map(EventType::as_str).collect();
            Err(Refusal::new(Code::Usage, "there is no such type of event")
                .hint(format!("known are: {}", names.join(", ")))
                .into())
        }
        known => Ok(known),
    };
    names.split(',').map(known).collect()
}
