//! `/api/entries`, `/api/entries/history` and `/api/scopes`: what agents share.

use blackboard::Result;
use blackboard::entry::{DEFAULT_SCOPE, Entry, EveryScope, Order, Query as EntryQuery, Value};
use serde::Serialize;

use super::at_one_moment;
use crate::commands::entry::history;
use crate::outcome::Render;
use crate::web::query::wrong;
use crate::web::reply::{Reply, list as as_list, written};
use crate::web::route::Asked;

/// How many are shown if nobody says, and at most.
const SHOWN: usize = 100;
const MOST: usize = 1000;

/// How many bytes of entries, or versions, are read for one answer: it ends with the one that makes it so many.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// How many bytes of a value stand in a list; the history of its key has all of it.
const VALUE_BYTES: usize = 4 * 1024;

/// How many versions of a key are shown if nobody says, and at most.
const VERSIONS: usize = 20;
const MOST_VERSIONS: usize = 200;

/// What separates scope and key where a page ended: neither has it.
const SEPARATOR: char = '\n';

/// An entry in a list.
#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    entry: Entry,
    /// Whether `value` is only the beginning, as a text: of the text that it is, or of its JSON.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

impl Listed {
    fn of(mut entry: Entry) -> Result<Listed> {
        let json = entry.value.as_str();
        if json.len() <= VALUE_BYTES {
            return Ok(Listed { entry, truncated: false });
        }
        let text = serde_json::from_str::<String>(json);
        let text = text.as_deref().unwrap_or(json);
        entry.value = Value::of(&text[..text.floor_char_boundary(VALUE_BYTES)])?;
        Ok(Listed { entry, truncated: true })
    }
}

/// `{ok, count, items, next?, revision, timestamp}`, by scope and key; without `scope` of every scope but those of
/// locks and files. A long value is shortened, with `truncated: true`. `scope`, `prefix`, `limit`, `after`
pub fn list(asked: &Asked<'_>) -> Result<Reply> {
    let query = asked.query(&["scope", "prefix", "limit", "after"])?;
    let prefix = query.text("prefix").map(str::to_owned);
    let limit = Some(query.limit(MOST)?.unwrap_or(SHOWN));
    let most_bytes = Some(PAGE_BYTES);
    let listed = |entries: Vec<Entry>| entries.into_iter().map(Listed::of).collect::<Result<Vec<_>>>();
    if let Some(scope) = query.text("scope") {
        let after = query.text("after").map(str::to_owned);
        let wanted =
            EntryQuery { prefix, limit, most_bytes, after, order: Order::Key, ..EntryQuery::default() };
        let page = asked.board.scope(scope).query(&wanted)?;
        return Ok(as_list(&listed(page.entries)?, page.next.as_deref(), page.revision));
    }
    let after = match query.text("after").map(|after| after.split_once(SEPARATOR)) {
        None => None,
        Some(Some((scope, key))) => Some((scope.to_owned(), key.to_owned())),
        Some(None) => return Err(wrong("a page of entries goes on after the `next` of the one before")),
    };
    let page = asked.board.entries(&EveryScope { prefix, after, limit, most_bytes })?;
    let last = page.entries.last().filter(|_| page.more);
    let next = last.map(|entry| format!("{}{SEPARATOR}{}", entry.scope, entry.key));
    Ok(as_list(&listed(page.entries)?, next.as_deref(), page.revision))
}

/// As `history KEY --json`, the newest first, with whole values; it ends also by its bytes. `scope`, `key`, `limit`
pub fn history(asked: &Asked<'_>) -> Result<Reply> {
    let query = asked.query(&["scope", "key", "limit"])?;
    let key = query.needed("key")?;
    let scope = query.text("scope").unwrap_or(DEFAULT_SCOPE);
    let limit = query.limit(MOST_VERSIONS)?.unwrap_or(VERSIONS);
    let read = || history::of(asked.board, scope, key, limit, PAGE_BYTES);
    let (found, revision) = at_one_moment(asked.board, read)?;
    Ok(written(revision, |answer| found.json(answer)))
}

/// `{ok, count, items: [{scope, entries}], revision, timestamp}`: which scopes have entries.
pub fn scopes(asked: &Asked<'_>) -> Result<Reply> {
    asked.query(&[])?;
    let (scopes, revision) = at_one_moment(asked.board, || asked.board.scopes())?;
    Ok(as_list(&scopes, None, revision))
}
