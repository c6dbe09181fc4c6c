//! What is close, if nothing is found: words of the index that are spelled almost the same, the entries that have them, and
//! tags.
//!
//! Only words of documents that the caller may read are suggested. The index has stems: the complete words come from the
//! documents.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;
use serde::Serialize;

use super::document::{Document, Kind, Name};
use super::find::name_of;
use super::index::TAG;
use super::postings::decode;
use super::query::QueryTerm;
use super::rank::ReadablePart;
use super::words::each_word;

/// How many words, tags and keys are suggested.
const MOST: usize = 5;

/// How many terms are compared with a word.
const COMPARED: u32 = 50_000;

/// What is close to a query.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Suggestions {
    /// Words that are spelled almost the same.
    pub words: Vec<String>,
    /// Tags that are spelled almost the same, or begin with a word of the query.
    pub tags: Vec<String>,
    /// Keys of entries that have one of the words, or ids of work items.
    pub keys: Vec<String>,
}

impl Suggestions {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty() && self.tags.is_empty() && self.keys.is_empty()
    }
}

/// The terms that are close to the words of a query, and documents that have them.
pub(super) struct Nearest {
    terms: Vec<String>,
    tags: Vec<String>,
    pub(super) documents: Vec<Name>,
}

impl Nearest {
    /// The suggestions. Only what the current documents have is suggested.
    pub(super) fn suggestions(&self, documents: &[Document]) -> Suggestions {
        let (mut words, mut keys) = (BTreeMap::new(), Vec::new());
        for document in documents {
            for (_, text) in &document.texts {
                each_word(text, &mut |word| {
                    if self.terms.iter().any(|term| term == word.term) {
                        let shortest =
                            words.entry(word.term.to_owned()).or_insert_with(|| word.surface.to_owned());
                        if word.surface.len() < shortest.len() {
                            word.surface.clone_into(shortest);
                        }
                    }
                });
            }
            if document.name.kind != Kind::Event {
                keys.push(document.name.id.clone());
            }
        }
        let mut known = BTreeSet::new();
        keys.retain(|key| known.insert(key.clone()));
        keys.truncate(MOST);
        let words = self.terms.iter().filter_map(|term| words.get(term).cloned()).take(MOST).collect();
        Suggestions { words, tags: self.tags.clone(), keys }
    }
}

/// What of the readable parts is close to the words of a query.
pub(super) fn nearest(
    connection: &Connection,
    words: &[QueryTerm],
    parts: &BTreeMap<u32, ReadablePart>,
) -> rusqlite::Result<Nearest> {
    let mut close: Vec<(usize, u32, String)> = Vec::new();
    let mut statement = connection.prepare_cached("SELECT id, term FROM terms LIMIT ?1")?;
    let mut rows = statement.query([COMPARED])?;
    while let Some(row) = rows.next()? {
        let (id, term) = (row.get(0)?, row.get_ref(1)?.as_str().unwrap_or_default());
        let compared = term.strip_prefix(TAG).unwrap_or(term);
        let distance = words.iter().filter_map(|word| distance_of(word, compared)).min();
        if let Some(distance) = distance {
            close.push((distance, id, term.to_owned()));
        }
    }
    close.sort();
    let mut nearest = Nearest { terms: Vec::new(), tags: Vec::new(), documents: Vec::new() };
    for (_, id, term) in close {
        if nearest.terms.len() >= MOST && nearest.tags.len() >= MOST {
            break;
        }
        let documents = first_documents(connection, id, parts)?;
        if documents.is_empty() {
            continue;
        }
        match term.strip_prefix(TAG) {
            Some(tag) if nearest.tags.len() < MOST => nearest.tags.push(tag.to_owned()),
            None if nearest.terms.len() < MOST => {
                nearest.terms.push(term);
                nearest.documents.extend(documents);
            }
            _ => {}
        }
    }
    Ok(nearest)
}

/// How far a term is from a word, if it is close.
fn distance_of(word: &QueryTerm, term: &str) -> Option<usize> {
    if term.starts_with(|first: char| !first.is_alphanumeric()) {
        return None;
    }
    let most = match word.term.chars().count() {
        0..=3 => 0,
        4..=6 => 1,
        _ => 2,
    };
    if term.starts_with(&word.surface) {
        return Some(1);
    }
    [&word.term, &word.surface].into_iter().filter_map(|word| distance(word, term, most)).min()
}

/// In how many letters two words differ, up to `most`: one is missing, added, replaced, or exchanged with its neighbor.
fn distance(one: &str, other: &str, most: usize) -> Option<usize> {
    if one.len().abs_diff(other.len()) > most * 4 || most == 0 {
        return None;
    }
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    if one.len().abs_diff(other.len()) > most {
        return None;
    }
    let mut before_that: Vec<usize> = Vec::new();
    let mut before: Vec<usize> = (0..=other.len()).collect();
    for (row, letter) in one.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, other_letter) in other.iter().enumerate() {
            let replaced = before[column] + usize::from(letter != other_letter);
            let mut least = replaced.min(before[column + 1] + 1).min(current[column] + 1);
            if row > 0 && column > 0 && *letter == other[column - 1] && one[row - 1] == *other_letter {
                least = least.min(before_that[column - 1] + 1);
            }
            current.push(least);
        }
        if current.iter().all(|distance| *distance > most) {
            return None;
        }
        before_that = std::mem::replace(&mut before, current);
    }
    before.last().copied().filter(|distance| *distance <= most)
}

/// Some documents of a term that the caller may read.
fn first_documents(
    connection: &Connection,
    term: u32,
    parts: &BTreeMap<u32, ReadablePart>,
) -> rusqlite::Result<Vec<Name>> {
    const FIRST: &str = "SELECT first, data FROM postings WHERE term = ?1 AND part = ?2 ORDER BY first DESC";
    let mut statement = connection.prepare_cached(FIRST)?;
    let mut names = Vec::new();
    for (id, readable) in parts {
        let mut rows = statement.query((term, id))?;
        while let Some(row) = rows.next()? {
            for (document, _) in decode(row.get(0)?, row.get_ref(1)?.as_blob()?) {
                if readable.only.as_ref().is_some_and(|only| !only.contains(&document)) {
                    continue;
                }
                names.extend(name_of(connection, document)?);
                if names.len() >= 2 {
                    return Ok(names);
                }
            }
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_close_if_few_letters_differ() {
        for (one, other, most, expected) in [
            ("login", "login", 1, Some(0)),
            ("login", "logni", 1, Some(1)),
            ("login", "loging", 1, Some(1)),
            ("login", "lagon", 1, None),
            ("migration", "mirgatoin", 2, Some(2)),
            ("für", "fur", 1, Some(1)),
            ("abc", "abcdef", 2, None),
            ("a", "b", 0, None),
        ] {
            assert_eq!(distance(one, other, most), expected, "{one} {other}");
        }
    }
}
