//! `/api/entries`, `/api/entries/history` and `/api/scopes`: what agents share.

use blackboard::Result;
use blackboard::entry::{DEFAULT_SCOPE, EveryScope, Order, Query as EntryQuery};

use super::at_one_moment;
use crate::commands::entry::history;
use crate::outcome::Render;
use crate::web::query::wrong;
use crate::web::reply::{Reply, list as as_list, written};
use crate::web::route::Asked;

/// How many are shown if nobody says, and at most.
const SHOWN: usize = 100;
const MOST: usize = 1000;

/// How many versions of a key are shown if nobody says, and at most.
const VERSIONS: usize = 20;
const MOST_VERSIONS: usize = 200;

/// What separates scope and key where a page ended: neither has it.
const SEPARATOR: char = '\n';

/// `{ok, count, items, next?, revision, timestamp}`, by scope and key; without `scope` of every scope but those of locks and
/// files. `scope`, `prefix`, `limit`, `after`
pub fn list(asked: &Asked<'_>) -> Result<Reply> {
    let query = asked.query(&["scope", "prefix", "limit", "after"])?;
    let prefix = query.text("prefix").map(str::to_owned);
    let limit = Some(query.limit(MOST)?.unwrap_or(SHOWN));
    if let Some(scope) = query.text("scope") {
        let after = query.text("after").map(str::to_owned);
        let wanted = EntryQuery { prefix, limit, after, order: Order::Key, ..EntryQuery::default() };
        let page = asked.board.scope(scope).query(&wanted)?;
        return Ok(as_list(&page.entries, page.next.as_deref(), page.revision));
    }
    let after = match query.text("after").map(|after| after.split_once(SEPARATOR)) {
        None => None,
        Some(Some((scope, key))) => Some((scope.to_owned(), key.to_owned())),
        Some(None) => return Err(wrong("a page of entries goes on after the `next` of the one before")),
    };
    let page = asked.board.entries(&EveryScope { prefix, after, limit })?;
    let last = page.entries.last().filter(|_| page.more);
    let next = last.map(|entry| format!("{}{SEPARATOR}{}", entry.scope, entry.key));
    Ok(as_list(&page.entries, next.as_deref(), page.revision))
}

/// As `history KEY --json`, the newest first. `scope`, `key`, `limit`
pub fn history(asked: &Asked<'_>) -> Result<Reply> {
    let query = asked.query(&["scope", "key", "limit"])?;
    let key = query.text("key").ok_or_else(|| wrong("key is missing"))?;
    let scope = query.text("scope").unwrap_or(DEFAULT_SCOPE);
    let limit = query.limit(MOST_VERSIONS)?.unwrap_or(VERSIONS);
    let (found, revision) = at_one_moment(asked.board, || history::of(asked.board, scope, key, limit))?;
    Ok(written(revision, |answer| found.json(answer)))
}

/// `{ok, count, items: [{scope, entries}], revision, timestamp}`: which scopes have entries.
pub fn scopes(asked: &Asked<'_>) -> Result<Reply> {
    asked.query(&[])?;
    let (scopes, revision) = at_one_moment(asked.board, || asked.board.scopes())?;
    Ok(as_list(&scopes, None, revision))
}
