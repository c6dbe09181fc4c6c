//! From a query to results: which parts of the index the caller may read, the ranking, and the current rows of the board.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use rusqlite::Connection;
use serde::Serialize;

use super::document::{Document, Kind, Name};
use super::fold::{Behind, Indexed, is_about_the_file};
use super::index::{Failure, Index, IndexLocation, Part, is_damaged, parts, remove};
use super::query::{Query, QueryTerm};
use super::rank::{Best, Ranked, Ranking, ReadablePart};
use super::snippet::{Excerpt, excerpt};
use super::suggest::Suggestions;
use crate::board::Board;
use crate::clock::Timestamp;
use crate::entry::{Entry, check_known_scope};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::revision::Revision;
use crate::scope::Guard;
use crate::store::{Key, Page, Prefetch, Tx};
use crate::unreadable::if_readable;
use crate::work::WorkItem;

/// How many more documents than the limit are read, because some may have changed meanwhile.
const SPARE: usize = 16;

/// How often more documents are read if too many have changed.
const ROUNDS: usize = 4;

/// The results of a search.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Found {
    /// The results, the best first.
    pub results: Vec<SearchResult>,
    /// How many documents match, if all of them could be read.
    pub total: usize,
    /// What the index does not have yet, if anything.
    pub behind: Option<Behind>,
    /// Why the index could not be stored, if so: then the board was read for this search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_stored: Option<String>,
    /// What is close, if nothing was found.
    #[serde(skip_serializing_if = "Suggestions::is_empty")]
    pub suggestions: Suggestions,
}

/// A result: a part of the board as it is now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchResult {
    /// What it is.
    pub kind: Kind,
    /// The key of an entry, the id of a work item, or the revision of an event.
    pub id: String,
    /// The scope of an entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The title of a work item, or the type of an event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The part of its text with the most words of the query.
    pub snippet: String,
    /// Its complete text, if the query asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The event that wrote it.
    pub revision: Revision,
    /// The author of the entry, the agent that holds or completed the work item, or the session that caused the event.
    pub author: Option<String>,
    /// When it was written.
    pub updated_at: Timestamp,
    /// Its tags, or the labels of a work item.
    pub tags: Vec<String>,
    /// Its score, by words and age. Scores of different queries cannot be compared.
    pub score: f64,
    /// Its score by words only.
    pub words_score: f64,
    /// How many different words of the query it has.
    pub words_found: usize,
}

impl Board {
    /// Searches the board. The index is brought up to date first, within the limits of the query.
    ///
    /// ```
    /// # use blackboard::{Board, search::{IndexLocation, Kind, Query}, work::Create};
    /// # let board = Board::memory();
    /// # let directory = tempfile::tempdir()?;
    /// let index = IndexLocation::File(directory.path().join("search"));
    /// board.work().create(&Create::new("fix-login", "Fix the retries of logins"))?;
    /// let query = Query { kinds: vec![Kind::Work], ..Query::new("login retry") };
    /// let found = board.search(&query, &index)?;
    /// assert_eq!((found.results[0].id.as_str(), found.behind), ("fix-login", None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn search(&self, query: &Query, index: &IndexLocation) -> Result<Found> {
        let search = Search::new(self, query)?;
        self.with_index(index, |index| {
            let Indexed { behind, .. } = index.update(self, query.catch_up)?;
            Ok(Found { behind, ..search.run(index)? })
        })
        .map(|(found, not_stored)| Found { not_stored, ..found })
    }

    /// Brings the index up to date without a search.
    ///
    /// ```
    /// # use blackboard::{Board, search::{CatchUp, IndexLocation}, work::Create};
    /// # let board = Board::memory();
    /// # let directory = tempfile::tempdir()?;
    /// # let index = IndexLocation::File(directory.path().join("search"));
    /// board.work().create(&Create::new("a", "A task"))?;
    /// assert_eq!(board.update_index(&index, CatchUp::COMPLETE)?.behind, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn update_index(&self, index: &IndexLocation, limits: super::CatchUp) -> Result<Indexed> {
        Index::open(index)?.update(self, limits)
    }

    /// Runs `f` with the index. One that turns out to be damaged is made again. If the file cannot be used at all, `f` gets an
    /// index in memory, and the reason is returned.
    fn with_index<T>(
        &self,
        location: &IndexLocation,
        f: impl Fn(&Index) -> Result<T>,
    ) -> Result<(T, Option<String>)> {
        let run = || Index::open(location).and_then(|index| f(&index));
        let outcome = match (run(), location) {
            (Err(error), IndexLocation::File(path)) if is_damaged(&error) && concerns(&error, path) => {
                remove(path).and_then(|()| run())
            }
            (outcome, _) => outcome,
        };
        match (outcome, location) {
            (Err(error), IndexLocation::File(path))
                if is_about_the_file(&error) && concerns(&error, path) =>
            {
                Ok((f(&Index::in_memory()?)?, Some(error.to_string())))
            }
            (outcome, _) => Ok((outcome?, None)),
        }
    }
}

/// Whether an error is about the file of the index, and not about the board.
fn concerns(error: &Error, path: &Path) -> bool {
    error.to_string().contains(&path.display().to_string())
}

/// One search.
struct Search<'a> {
    board: &'a Board,
    query: &'a Query,
    terms: Vec<QueryTerm>,
}

/// What the caller may read.
pub(super) struct Readable {
    pub(super) parts: BTreeMap<u32, ReadablePart>,
    now: Timestamp,
}

impl<'a> Search<'a> {
    fn new(board: &'a Board, query: &'a Query) -> Result<Search<'a>> {
        for scope in query.scopes.iter().flatten() {
            check_known_scope(scope)?;
        }
        if query.limit > Query::MAX_LIMIT {
            let message = format!("a search has at most {} results", Query::MAX_LIMIT);
            return Err(Error::invalid(message));
        }
        Ok(Search { board, query, terms: query.terms()? })
    }

    fn run(&self, index: &Index) -> Result<Found> {
        let readable = self.readable(index)?;
        let mut wanted = self.query.limit.saturating_add(SPARE);
        for _ in 0..ROUNDS {
            let best = index.read(|connection| {
                let ranking =
                    Ranking { connection, query: self.query, parts: &readable.parts, now: readable.now };
                let Best { ranked, total } = ranking.best(&self.terms, wanted)?;
                Ok((named(connection, &ranked)?, total))
            })?;
            let (ranked, total) = best;
            let has_all = ranked.len() >= total || ranked.len() < wanted;
            let mut results = self.results(&ranked)?;
            let dropped = ranked.len() - results.len();
            if results.len() >= self.query.limit || has_all {
                results.truncate(self.query.limit);
                let suggestions = if results.is_empty() {
                    index.read(|connection| self.suggestions(connection, &readable))?
                } else {
                    Suggestions::default()
                };
                let total = total.saturating_sub(dropped).max(results.len());
                return Ok(Found { results, total, suggestions, ..Found::default() });
            }
            wanted = wanted.saturating_mul(8);
        }
        Ok(Found::default())
    }

    /// The parts of the index that the query asks for and the caller may read.
    fn readable(&self, index: &Index) -> Result<Readable> {
        let wanted: Vec<Part> = index.read(|connection| Ok(parts(connection)?))?;
        let wanted: Vec<Part> = wanted.into_iter().filter(|part| self.wants(part)).collect();
        let scopes = || wanted.iter().filter(|part| part.kind == Kind::Entry).map(|part| part.scope.as_str());
        let prefetch = Guard::prefetch(self.board, &crate::entry::Actor::default(), scopes());
        self.board.read(&prefetch, |tx| {
            let guard = Guard::of_board(self.board, tx);
            tx.prefetch(&guard.prefetch_of(scopes()))?;
            let mut readable = BTreeMap::new();
            for part in &wanted {
                let reads_all = match part.kind {
                    Kind::Entry => guard.reads_all_of(&part.scope)?,
                    Kind::Work | Kind::Event => Some(true),
                };
                let only = match reads_all {
                    Some(false) => continue,
                    Some(true) => None,
                    None => Some(index.read(|connection| allowed_in(connection, &guard, part))?),
                };
                readable.insert(part.id, ReadablePart { part: part.clone(), only });
            }
            Ok(Readable { parts: readable, now: tx.now() })
        })
    }

    fn wants(&self, part: &Part) -> bool {
        let kind = self.query.kinds.is_empty() || self.query.kinds.contains(&part.kind);
        kind && match &self.query.scopes {
            None => true,
            Some(scopes) => part.kind == Kind::Entry && scopes.contains(&part.scope),
        }
    }

    /// The current state of documents, without those that were removed or do not match any more.
    fn results(&self, ranked: &[(Ranked, Name)]) -> Result<Vec<SearchResult>> {
        let prefetch = |scopes: Vec<Prefetch<'static>>| -> Vec<Prefetch<'_>> {
            ranked.iter().filter_map(|(_, name)| prefetch_of(name)).chain(scopes).collect()
        };
        let scopes = ranked.iter().map(|(_, name)| name.scope.as_str()).filter(|scope| !scope.is_empty());
        let policies = Guard::prefetch(self.board, &crate::entry::Actor::default(), scopes);
        self.board.read(&prefetch(policies), |tx| {
            let guard = Guard::of_board(self.board, tx);
            let mut results = Vec::new();
            for (ranked, name) in ranked {
                if let Some(found) = self.current(tx, &guard, name)?
                    && let Some(result) = self.result(found, *ranked)
                {
                    results.push(result);
                }
            }
            Ok(results)
        })
    }

    /// The current state of a document.
    fn current(&self, tx: &dyn Tx, guard: &Guard<'_>, name: &Name) -> Result<Option<Current>> {
        match name.kind {
            Kind::Entry => {
                let key = Key::Entry(name.scope.clone(), name.id.clone());
                let entry = if_readable(tx.row::<Entry>(&key))?.filter(|entry| !entry.is_expired(tx.now()));
                let entries = guard.readable(entry.into_iter().collect())?;
                Ok(entries.into_iter().next().map(|entry| Current {
                    document: Document::of_entry(&entry),
                    author: Some(entry.updated_by),
                    title: None,
                }))
            }
            Kind::Work => {
                let item = if_readable(tx.row::<WorkItem>(&Key::WorkItem(name.id.clone())))?;
                Ok(item.map(|item| Current {
                    document: Document::of_item(&item),
                    author: item.claimed_by_name,
                    title: Some(item.title),
                }))
            }
            Kind::Event => {
                let Some(page) = page_of(name) else { return Ok(None) };
                let event: Option<Event> = tx.events(&page)?.into_iter().find(|event| event.id == page.until);
                Ok(event.and_then(|event| {
                    Some(Current {
                        document: Document::of_event(&event)?,
                        title: Some(event.shown_type().to_owned()),
                        author: event.actor_id,
                    })
                }))
            }
        }
    }

    fn result(&self, current: Current, ranked: Ranked) -> Option<SearchResult> {
        let Current { document, author, title } = current;
        let query = self.query;
        let has_tags = query.tags.iter().all(|tag| document.tags.contains(tag));
        let has_author = query.author.as_ref().is_none_or(|author| document.author == *author);
        if !has_tags || !has_author || query.since.is_some_and(|since| document.time < since) {
            return None;
        }
        let text = document.shown();
        let Excerpt { snippet, .. } = excerpt(&text, &self.terms);
        let all: Vec<&str> = document.texts.iter().map(|(_, text)| text.as_str()).collect();
        let Excerpt { found, .. } = excerpt(&all.join("\n"), &self.terms);
        (found > 0).then(|| SearchResult {
            kind: document.name.kind,
            scope: (document.name.kind == Kind::Entry).then_some(document.name.scope),
            id: document.name.id,
            title,
            snippet,
            text: query.with_text.then_some(text),
            revision: document.revision,
            author,
            updated_at: document.time,
            tags: document.tags,
            score: f64::from(ranked.score),
            words_score: f64::from(ranked.words),
            words_found: found,
        })
    }

    fn suggestions(&self, connection: &Connection, readable: &Readable) -> Result<Suggestions, Failure> {
        let nearest = super::suggest::nearest(connection, &self.terms, &readable.parts)?;
        let names: Vec<_> = nearest.documents.iter().map(|name| (Ranked::NONE, name.clone())).collect();
        let prefetch: Vec<_> = names.iter().filter_map(|(_, name)| prefetch_of(name)).collect();
        let documents = self.board.read(&prefetch, |tx| {
            let guard = Guard::of_board(self.board, tx);
            tx.prefetch(&guard.prefetch_of(nearest.documents.iter().map(|name| name.scope.as_str())))?;
            let mut documents = Vec::new();
            for name in &nearest.documents {
                documents.extend(self.current(tx, &guard, name)?.map(|current| current.document));
            }
            Ok(documents)
        })?;
        Ok(nearest.suggestions(&documents))
    }
}

/// The current state of a document.
struct Current {
    document: Document,
    author: Option<String>,
    title: Option<String>,
}

/// The documents of a part that the caller may read. Its rules depend on the keys.
fn allowed_in(connection: &Connection, guard: &Guard<'_>, part: &Part) -> Result<HashSet<u32>, Failure> {
    let mut allowed = HashSet::new();
    let mut statement = connection.prepare_cached("SELECT id, name FROM documents WHERE part = ?1")?;
    let mut rows = statement.query([part.id])?;
    while let Some(row) = rows.next()? {
        if guard.may_read(&part.scope, row.get_ref(1)?.as_str().unwrap_or_default())? {
            allowed.insert(row.get(0)?);
        }
    }
    Ok(allowed)
}

/// The names of documents.
fn named(connection: &Connection, ranked: &[Ranked]) -> rusqlite::Result<Vec<(Ranked, Name)>> {
    let mut named = Vec::with_capacity(ranked.len());
    for ranked in ranked {
        named.extend(name_of(connection, ranked.document)?.map(|name| (*ranked, name)));
    }
    Ok(named)
}

/// The name of a document.
pub(super) fn name_of(connection: &Connection, document: u32) -> rusqlite::Result<Option<Name>> {
    const NAME: &str = "SELECT kind, scope, name FROM documents JOIN parts ON parts.id = part
        WHERE documents.id = ?1";
    let mut statement = connection.prepare_cached(NAME)?;
    let mut rows = statement.query([document])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let Some(kind) = Kind::of_number(row.get(0)?) else { return Ok(None) };
    Ok(Some(Name { kind, scope: row.get(1)?, id: row.get(2)? }))
}

fn page_of(name: &Name) -> Option<Page<'static>> {
    let revision = Revision::new(name.id.parse().ok()?);
    Some(Page { after: revision.previous(), until: revision, types: &[], limit: 1 })
}

fn prefetch_of(name: &Name) -> Option<Prefetch<'_>> {
    match name.kind {
        Kind::Entry => Some(Prefetch::Entry(&name.scope, &name.id)),
        Kind::Work => Some(Prefetch::Row(Key::WorkItem(name.id.clone()))),
        Kind::Event => page_of(name).map(Prefetch::Events),
    }
}
