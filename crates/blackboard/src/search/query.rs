//! [`Query`]: what to look for, and the terms of the index that this means.

use rusqlite::Connection;

use super::document::Kind;
use super::fold::CatchUp;
use super::index::term_id;
use super::words::{each_word, is_asking};
use crate::clock::Timestamp;
use crate::error::{Error, Result};

/// How long the words of a query may be.
const MOST_BYTES: usize = 4096;

/// How many different words a query looks for; the rest is ignored.
const MOST_WORDS: usize = 48;

/// The shortest word that also finds longer words which begin with it.
const SHORTEST_BEGINNING: usize = 4;

/// How many longer words are looked at.
const MOST_COMPLETIONS: u32 = 1000;

/// How much the beginning of a word counts, compared with the word.
const BEGINNING: f32 = 0.4;

/// What to look for. Every condition has to hold, and at least one of the words.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// The words. Those of a question that say nothing about its subject are ignored. `auth*` finds words that begin with it.
    pub words: String,
    /// Only entries of these scopes; everything if `None`.
    pub scopes: Option<Vec<String>>,
    /// Only these kinds; all if empty.
    pub kinds: Vec<Kind>,
    /// It has all of these tags, or labels of a work item.
    pub tags: Vec<String>,
    /// This author wrote the entry last, or this agent holds or completed the work item.
    pub author: Option<String>,
    /// It was written at this moment or later.
    pub since: Option<Timestamp>,
    /// The most results.
    pub limit: usize,
    /// Whether results have their complete text, and not only a snippet.
    pub with_text: bool,
    /// How much the search does to bring its index up to date.
    pub catch_up: CatchUp,
}

impl Query {
    /// How many results a search has by default.
    pub const DEFAULT_LIMIT: usize = 10;

    /// The most results of a search.
    pub const MAX_LIMIT: usize = 1000;

    /// A search for words, with the default limits and without conditions.
    pub fn new(words: &str) -> Query {
        Query {
            words: words.to_owned(),
            scopes: None,
            kinds: Vec::new(),
            tags: Vec::new(),
            author: None,
            since: None,
            limit: Query::DEFAULT_LIMIT,
            with_text: false,
            catch_up: CatchUp::default(),
        }
    }

    /// The words to look for. Refuses a query without any.
    pub(super) fn terms(&self) -> Result<Vec<QueryTerm>> {
        if self.words.len() > MOST_BYTES {
            let message = format!("the words have {} bytes; {MOST_BYTES} are allowed", self.words.len());
            return Err(Error::invalid(message));
        }
        let mut terms: Vec<QueryTerm> = Vec::new();
        each_word(&self.words, &mut |word| {
            if !terms.iter().any(|known| known.term == word.term) {
                let is_beginning = self.words[word.end..].starts_with('*');
                terms.push(QueryTerm {
                    term: word.term.to_owned(),
                    surface: word.surface.to_owned(),
                    is_whole_identifier: word.is_whole_identifier,
                    is_beginning,
                });
            }
        });
        if terms.iter().any(|term| !is_asking(&term.surface)) {
            terms.retain(|term| !is_asking(&term.surface));
        }
        terms.truncate(MOST_WORDS);
        if terms.is_empty() {
            return Err(Error::invalid("the query has no word to look for"));
        }
        Ok(terms)
    }
}

/// A word of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QueryTerm {
    pub(super) term: String,
    pub(super) surface: String,
    pub(super) is_whole_identifier: bool,
    /// Whether the user asked for all words that begin with it.
    is_beginning: bool,
}

impl QueryTerm {
    /// The terms of the index that this word finds, each with how much it counts.
    pub(super) fn in_index(&self, connection: &Connection) -> rusqlite::Result<Vec<(u32, f32)>> {
        const COMPLETIONS: &str =
            "SELECT id, term FROM terms WHERE term > ?1 AND term < ?2 ORDER BY length(term), term LIMIT ?3";
        let mut found = Vec::new();
        found.extend(term_id(connection, &self.term)?.map(|id| (id, 1.0)));
        if self.is_whole_identifier || (self.surface.len() < SHORTEST_BEGINNING && !self.is_beginning) {
            return Ok(found);
        }
        let weight = if self.is_beginning { 1.0 } else { BEGINNING };
        let end = format!("{}\u{10ffff}", self.surface);
        let mut statement = connection.prepare_cached(COMPLETIONS)?;
        let mut rows = statement.query((&self.surface, end, MOST_COMPLETIONS))?;
        while let Some(row) = rows.next()? {
            let (id, term): (u32, String) = (row.get(0)?, row.get(1)?);
            if term != self.term {
                found.push((id, weight));
            }
        }
        Ok(found)
    }

    /// Whether a text has this word, or one that begins with it.
    pub(super) fn is_found_as(&self, term: &str, surface: &str) -> bool {
        term == self.term
            || (!self.is_whole_identifier
                && (self.is_beginning || self.surface.len() >= SHORTEST_BEGINNING)
                && surface.starts_with(&self.surface))
    }
}
