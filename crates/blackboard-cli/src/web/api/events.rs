//! `/api/events`: the event log, newest first. The stream is in `stream.rs`.

use blackboard::duration::parse_since;
use blackboard::event::{EventType, Lines};
use blackboard::{Code, Refusal, Result, Revision};
use hyper::header::HeaderValue;

use crate::web::event_view::{EventView, Names};
use crate::web::query::{Query, wrong};
use crate::web::reply::{EVENTS, OLDEST, POSITIONS, Reply, bare_page};
use crate::web::route::ApiRequest;

/// The default (from seed 000) and the maximum number of events.
const SHOWN: usize = 200;
const MOST: usize = 1000;

/// The default of `since`, from seed 000.
const SINCE: &str = "24h";

/// The size limit of one page, in bytes. The event that exceeds it is the last one.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// A bare array: the last 200 events of the last 24 hours, newest first. Parameters: `since` (`15m`, `24h`, `7d`, an
/// ISO time), `limit` (up to 1000), `before`, `until` and `after` (revisions) and `position` (up to this many of the
/// kept events). With one of these four, the default of `since` is the start of the event log. `types` (separated by
/// commas), `agent` (a session: its events, and those about it), `order=oldest`.
///
/// Headers contain the position of the response in the event log: [`EVENTS`], [`OLDEST`] and [`POSITIONS`]. Ids may
/// have gaps, so a client cannot compute it.
pub fn list(asked: &ApiRequest<'_>) -> Result<Reply> {
    let query = asked
        .query(&["since", "limit", "before", "until", "after", "position", "types", "agent", "order"])?;
    let (before, after, position) = (end(&query)?, query.revision("after")?, query.position("position")?);
    let since = match query.text("since") {
        Some(since) => Some(since),
        None if before.is_some() || after.is_some() || position.is_some() => None,
        None => Some(SINCE),
    };
    let wanted = Lines {
        after,
        before,
        position,
        since: since.map(|since| parse_since(since, asked.board.clock().now())).transpose()?,
        types: query.text("types").map_or_else(|| Ok(Vec::new()), types)?,
        session: query.text("agent").map(str::to_owned),
        limit: query.limit(MOST)?.unwrap_or(SHOWN),
        most_bytes: Some(PAGE_BYTES),
    };
    let events = asked.board.events();
    let page = match query.text("order") {
        None | Some("newest") => events.newest(&wanted)?,
        Some("oldest") => events.oldest(&wanted)?,
        Some(_) => return Err(wrong("order is newest or oldest")),
    };
    let names = Names::of_actors(asked.board, &page.events)?;
    let shown: Vec<_> = page.events.iter().map(|event| EventView::of(event, &names)).collect();
    let next = page.next.map(|next| next.to_string());
    let mut reply = bare_page(&shown, next.as_deref(), page.revision);
    let headers = reply.headers_mut();
    headers.insert(EVENTS, HeaderValue::from(page.kept));
    if let Some(oldest) = page.oldest {
        headers.insert(OLDEST, HeaderValue::from(oldest.get()));
    }
    if let Some((first, last)) = page.positions
        && let Ok(positions) = HeaderValue::try_from(format!("{first},{last}"))
    {
        headers.insert(POSITIONS, positions);
    }
    Ok(reply)
}

/// The revision before which the response ends.
fn end(query: &Query) -> Result<Option<Revision>> {
    match (query.revision("before")?, query.revision("until")?) {
        (Some(_), Some(_)) => Err(wrong("before and until exclude each other")),
        (before, until) => Ok(before.or(until.map(Revision::next))),
    }
}

/// The event types with these names. An unknown name is refused, because it would match nothing.
fn types(names: &str) -> Result<Vec<EventType>> {
    let known = |name| match EventType::from_name(name) {
        EventType::Other(_) => {
            let names: Vec<_> = EventType::ALL.iter().map(EventType::as_str).collect();
            Err(Refusal::new(Code::Usage, "unknown event type")
                .hint(format!("known are: {}", names.join(", ")))
                .into())
        }
        known => Ok(known),
    };
    names.split(',').map(known).collect()
}
