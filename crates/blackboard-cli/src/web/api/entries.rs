//! `/api/entries`, `/api/entries/history` and `/api/scopes`: entries and their history.

use blackboard::entry::{DEFAULT_SCOPE, Entry, EveryScope, Order, Query as EntryQuery, Value};
use blackboard::{Result, Revision};
use serde::Serialize;

use super::at_one_moment;
use crate::commands::entry::history;
use crate::outcome::Render;
use crate::web::query::wrong;
use crate::web::reply::{Reply, list as as_list, written};
use crate::web::route::ApiRequest;

/// The default and the maximum number of entries.
const SHOWN: usize = 100;
const MOST: usize = 1000;

/// The size limit of one response, in bytes of entries or versions. The entry that exceeds it is the last one.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// How many bytes of a value a list contains; the history of its key has the complete value.
const VALUE_BYTES: usize = 4 * 1024;

/// The default and the maximum number of versions of a key.
const VERSIONS: usize = 20;
const MOST_VERSIONS: usize = 200;

/// The number of entries per read of a search, the limits of one response in entries and bytes of values, and the
/// limits of the search text.
const SEARCH_CHUNK: usize = 500;
const MOST_SEARCHED: usize = 20_000;
const SEARCH_BYTES: usize = 32 * 1024 * 1024;
const MOST_WORDS: usize = 16;
const SEARCH_LENGTH: usize = 1000;

/// Separates scope and key in a page token: neither contains it.
const SEPARATOR: char = '\n';

/// An entry in a list.
#[derive(Serialize)]
struct ListedEntry {
    #[serde(flatten)]
    entry: Entry,
    /// Whether `value` is only the start, as text: of the string itself, or of its JSON.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

impl ListedEntry {
    fn of(mut entry: Entry) -> Result<ListedEntry> {
        let json = entry.value.as_str();
        if json.len() <= VALUE_BYTES {
            return Ok(ListedEntry { entry, truncated: false });
        }
        let text = serde_json::from_str::<String>(json);
        let text = text.as_deref().unwrap_or(json);
        entry.value = Value::of(&text[..text.floor_char_boundary(VALUE_BYTES)])?;
        Ok(ListedEntry { entry, truncated: true })
    }
}

/// `{ok, count, items, next?, revision, timestamp}`, by scope and key. Without `scope`, all scopes except those of
/// locks and files. A long value is shortened, with `truncated: true`. `search` selects the entries that contain all of
/// its words, and adds `searched`: how many entries this response has searched. Parameters: `scope`, `prefix`,
/// `search`, `limit`, `after`.
pub fn list(asked: &ApiRequest<'_>) -> Result<Reply> {
    let query = asked.query(&["scope", "prefix", "search", "limit", "after"])?;
    let limit = query.limit(MOST)?.unwrap_or(SHOWN);
    let wanted = EntryRange { scope: query.text("scope"), prefix: query.text("prefix") };
    let after = query.text("after").map(str::to_owned);
    if let Some(text) = query.text("search") {
        return search(asked, &wanted, &Words::parse(text)?, limit, after);
    }
    let page = wanted.page(asked, after, limit)?;
    let listed = page.entries.into_iter().map(ListedEntry::of).collect::<Result<Vec<_>>>()?;
    Ok(as_list(&listed, page.next.as_deref(), page.revision))
}

/// The entries that a request selects.
struct EntryRange<'a> {
    scope: Option<&'a str>,
    prefix: Option<&'a str>,
}

/// One page of them, by scope and key.
struct Page {
    entries: Vec<Entry>,
    next: Option<String>,
    revision: Revision,
}

impl EntryRange<'_> {
    /// The first page after `after`.
    fn page(&self, asked: &ApiRequest<'_>, after: Option<String>, limit: usize) -> Result<Page> {
        let prefix = self.prefix.map(str::to_owned);
        let (limit, most_bytes) = (Some(limit), Some(PAGE_BYTES));
        if let Some(scope) = self.scope {
            let wanted =
                EntryQuery { prefix, limit, most_bytes, after, order: Order::Key, ..EntryQuery::default() };
            let page = asked.board.scope(scope).query(&wanted)?;
            return Ok(Page { entries: page.entries, next: page.next, revision: page.revision });
        }
        let after = match after.as_deref().map(|after| after.split_once(SEPARATOR)) {
            None => None,
            Some(Some((scope, key))) => Some((scope.to_owned(), key.to_owned())),
            Some(None) => return Err(wrong("after is not the `next` of a page of entries")),
        };
        let page = asked.board.entries(&EveryScope { prefix, after, limit, most_bytes })?;
        let next = page.entries.last().filter(|_| page.more).map(|entry| self.place_of(entry));
        Ok(Page { entries: page.entries, next, revision: page.revision })
    }

    /// The page token after this entry.
    fn place_of(&self, entry: &Entry) -> String {
        match self.scope {
            Some(_) => entry.key.clone(),
            None => format!("{}{SEPARATOR}{}", entry.scope, entry.key),
        }
    }
}

#[derive(Serialize)]
struct SearchEnd {
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    searched: usize,
    revision: Revision,
}

/// Searches until it has found `limit` entries, or reaches the limits of one response. `next` is missing once all
/// entries were searched.
fn search(
    asked: &ApiRequest<'_>,
    wanted: &EntryRange<'_>,
    words: &Words,
    limit: usize,
    mut after: Option<String>,
) -> Result<Reply> {
    let (mut found, mut searched, mut bytes) = (Vec::new(), 0, 0);
    // Later pages may be newer: a client that follows the event log from the first revision misses nothing.
    let mut first = None;
    let next = loop {
        let page = wanted.page(asked, after, SEARCH_CHUNK)?;
        first.get_or_insert(page.revision);
        let last = page.entries.len().saturating_sub(1);
        let mut full = None;
        for (number, entry) in page.entries.into_iter().enumerate() {
            searched += 1;
            bytes += entry.value.as_str().len();
            if !words.are_in(&entry) {
                continue;
            }
            let place = wanted.place_of(&entry);
            found.push(ListedEntry::of(entry)?);
            if found.len() == limit {
                full = Some(if number == last { page.next.clone() } else { Some(place) });
                break;
            }
        }
        match full {
            Some(next) => break next,
            None if page.next.is_none() || searched >= MOST_SEARCHED || bytes >= SEARCH_BYTES => {
                break page.next;
            }
            None => after = page.next,
        }
    };
    let revision = first.unwrap_or(Revision::ZERO);
    let end = SearchEnd { next, searched, revision };
    Ok(written(revision, |answer| answer.list_with(&found, &end)))
}

/// The words of a search, in lower case.
struct Words(Vec<String>);

impl Words {
    fn parse(text: &str) -> Result<Words> {
        let words: Vec<_> = text.split_whitespace().map(str::to_lowercase).collect();
        if words.len() > MOST_WORDS || text.len() > SEARCH_LENGTH {
            return Err(wrong(&format!("search has at most {MOST_WORDS} words and {SEARCH_LENGTH} bytes")));
        }
        Ok(Words(words))
    }

    /// Whether an entry contains all of the words, in its key, value, tags or author.
    fn are_in(&self, entry: &Entry) -> bool {
        let json = entry.value.as_str();
        let mut text = format!("{}\n{}\n{}\n{json}", entry.key, entry.updated_by, entry.tags.join(" "));
        // The value as the page shows it: without spaces between its parts, and with escapes decoded.
        text.push('\n');
        push_plain(json, &mut text);
        let text = text.to_lowercase();
        self.0.iter().all(|word| text.contains(word.as_str()))
    }
}

/// Writes JSON without white space between its parts, and with escapes in strings decoded.
fn push_plain(json: &str, out: &mut String) {
    let mut inside = false;
    let mut rest = json.chars();
    while let Some(character) = rest.next() {
        match character {
            '"' => {
                inside = !inside;
                out.push('"');
            }
            '\\' if inside => match rest.next() {
                Some('u') => {
                    let number = |rest: &mut std::str::Chars<'_>| {
                        let digits = rest.as_str().get(..4)?;
                        let number = u16::from_str_radix(digits, 16).ok()?;
                        rest.nth(3);
                        Some(number)
                    };
                    let mut units: Vec<u16> = number(&mut rest).into_iter().collect();
                    let is_half = units.first().is_some_and(|unit| (0xd800..0xdc00).contains(unit));
                    if is_half && rest.as_str().starts_with("\\u") {
                        rest.nth(1);
                        units.extend(number(&mut rest));
                    }
                    out.push_str(&String::from_utf16_lossy(&units));
                }
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some(other) => out.push(other),
                None => {}
            },
            space if !inside && space.is_ascii_whitespace() => {}
            other => out.push(other),
        }
    }
}

/// The output of `history KEY --json`, newest first, with complete values, up to the size limit. Parameters: `scope`,
/// `key`, `limit`.
pub fn history(asked: &ApiRequest<'_>) -> Result<Reply> {
    let query = asked.query(&["scope", "key", "limit"])?;
    let key = query.needed("key")?;
    let scope = query.text("scope").unwrap_or(DEFAULT_SCOPE);
    let limit = query.limit(MOST_VERSIONS)?.unwrap_or(VERSIONS);
    let read = || history::of(asked.board, scope, key, limit, PAGE_BYTES);
    let (found, revision) = at_one_moment(asked.board, read)?;
    Ok(written(revision, |answer| found.json(answer)))
}

/// `{ok, count, items: [{scope, entries}], revision, timestamp}`: the scopes that have entries.
pub fn scopes(asked: &ApiRequest<'_>) -> Result<Reply> {
    asked.query(&[])?;
    let (scopes, revision) = at_one_moment(asked.board, || asked.board.scopes().sizes())?;
    Ok(as_list(&scopes, None, revision))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_searched_as_people_read_it() {
        testkit::limit_test();
        for (json, plain) in [
            (r#"{"a": 1,  "b c" : [ true ]}"#, r#"{"a":1,"b c":[true]}"#),
            (r#""say \"hi\" to \u00fc\ud83d\ude00\n\\ x""#, "\"say \"hi\" to ü😀\n\\ x\""),
            (r#""\ud800 \ud800\u0041""#, "\"\u{fffd} \u{fffd}A\""),
            ("12", "12"),
        ] {
            let mut out = String::new();
            push_plain(json, &mut out);
            assert_eq!(out, plain, "{json}");
        }
    }

    #[test]
    fn a_search_has_few_words() {
        testkit::limit_test();
        assert_eq!(Words::parse("  Two  words ").unwrap().0, ["two", "words"]);
        assert!(Words::parse(&"a ".repeat(17)).is_err());
        assert!(Words::parse(&"a".repeat(1001)).is_err());
    }
}
