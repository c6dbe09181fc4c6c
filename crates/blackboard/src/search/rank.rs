//! Ranking: BM25 over the parts that the caller may read, with a bonus for what is new.
//!
//! All numbers of a score are about the readable parts only: a document that the caller may not read changes neither the
//! order nor the score of another one.

use std::collections::{BTreeMap, HashMap, HashSet};

use rusqlite::Connection;

use super::document::Kind;
use super::index::{AUTHOR, Part, SIZES, TAG, seconds, size_at, term_id};
use super::postings::{Posting, decode};
use super::query::{Query, QueryTerm};
use crate::clock::Timestamp;

/// How fast more occurrences of a word stop counting, and how much the length of a document matters.
const K1: f32 = 1.2;
const B: f32 = 0.6;

/// How much more something new counts, and after how many seconds half of that is left.
const NEWNESS: f32 = 0.25;
const HALF_LIFE: f32 = 14.0 * 86_400.0;

/// How much an event counts: what it is about is often found itself.
const EVENT: f32 = 0.6;

/// From how many postings on all sizes are read at once, and scores are in one array.
const MANY: usize = 4_000;

/// How many longer words one word finds.
const MOST_COMPLETIONS: usize = 48;

/// A document with its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ranked {
    pub(super) document: u32,
    /// By words only.
    pub(super) words: f32,
    /// With the bonus for what is new.
    pub(super) score: f32,
}

impl Ranked {
    /// For a document that was not ranked.
    pub(super) const NONE: Ranked = Ranked { document: 0, words: 0.0, score: 0.0 };
}

/// A part that the caller may read.
pub(super) struct ReadablePart {
    pub(super) part: Part,
    /// The documents that it may read; all if `None`.
    pub(super) only: Option<HashSet<u32>>,
}

/// What is searched.
pub(super) struct Ranking<'q> {
    pub(super) connection: &'q Connection,
    pub(super) query: &'q Query,
    pub(super) parts: &'q BTreeMap<u32, ReadablePart>,
    pub(super) now: Timestamp,
}

/// The best documents, and how many match.
pub(super) struct Best {
    pub(super) ranked: Vec<Ranked>,
    pub(super) total: usize,
}

impl Ranking<'_> {
    /// The best documents for these words, in order.
    pub(super) fn best(&self, terms: &[QueryTerm], limit: usize) -> rusqlite::Result<Best> {
        let mut lists = Vec::new();
        for term in terms {
            let mut found = 0;
            for (id, weight) in term.in_index(self.connection)? {
                let list = self.documents_of(id)?;
                // Words of documents that the caller may not read are not counted.
                found += usize::from(list.documents().next().is_some());
                lists.push((list, weight));
                if found > MOST_COMPLETIONS {
                    break;
                }
            }
        }
        let count = lists.iter().map(|(list, _)| list.others.len() + list.events.len()).sum();
        let mut sizes = Sizes::new(self.connection, count)?;
        let (documents, average) = self.totals(&mut sizes)?;
        let mut scores = Scores::new(count, lists.iter().filter_map(|(list, _)| list.last()).max());
        for (list, weight) in &lists {
            let found = (list.others.len() + list.events.len()) as f32;
            let rarity = (1.0 + (documents - found + 0.5).max(0.0) / (found + 0.5)).ln();
            let weight = weight * rarity * (K1 + 1.0);
            for (postings, weight) in [(&list.others, weight), (&list.events, weight * EVENT)] {
                for &(document, count) in postings {
                    let (words, _) = sizes.of(document)?;
                    let count = count as f32;
                    let length = 1.0 - B + B * words as f32 / average;
                    scores.add(document, weight * count / (count + K1 * length));
                }
            }
        }
        self.filtered(scores, &mut sizes, limit)
    }

    /// The documents of a term in readable parts.
    fn documents_of(&self, term: u32) -> rusqlite::Result<TermList> {
        const LISTS: &str = "SELECT first, data FROM postings WHERE term = ?1 AND part = ?2 ORDER BY first";
        let mut list = TermList::default();
        let mut statement = self.connection.prepare_cached(LISTS)?;
        for (id, readable) in self.parts {
            let is_event = readable.part.kind == Kind::Event;
            let documents = if is_event { &mut list.events } else { &mut list.others };
            let mut rows = statement.query((term, id))?;
            while let Some(row) = rows.next()? {
                let postings = decode(row.get(0)?, row.get_ref(1)?.as_blob()?);
                match &readable.only {
                    Some(only) => documents.extend(postings.filter(|(document, _)| only.contains(document))),
                    None => documents.extend(postings),
                }
            }
        }
        Ok(list)
    }

    /// How many documents there are, and how many words they have on average.
    fn totals(&self, sizes: &mut Sizes<'_>) -> rusqlite::Result<(f32, f32)> {
        let (mut documents, mut words) = (0_i64, 0_i64);
        for readable in self.parts.values() {
            match &readable.only {
                Some(only) => {
                    documents += only.len() as i64;
                    for document in only {
                        words += i64::from(sizes.of(*document)?.0);
                    }
                }
                None => {
                    documents += readable.part.documents;
                    words += readable.part.words;
                }
            }
        }
        Ok((documents as f32, (words as f32 / (documents as f32).max(1.0)).max(1.0)))
    }

    /// The best of the documents that the other conditions allow.
    fn filtered(&self, scores: Scores, sizes: &mut Sizes<'_>, limit: usize) -> rusqlite::Result<Best> {
        let allowed = self.allowed()?;
        let since = self.query.since.map(seconds);
        let now = seconds(self.now);
        let (mut best, mut total) = (Vec::new(), 0);
        let mut failed = None;
        scores.each(|document, words| {
            if allowed.as_ref().is_some_and(|allowed| !allowed.contains(&document)) {
                return;
            }
            let time = match sizes.of(document) {
                Ok((_, time)) => time,
                Err(error) => {
                    failed = Some(error);
                    return;
                }
            };
            if since.is_some_and(|since| time < since) {
                return;
            }
            total += 1;
            let age = now.saturating_sub(time) as f32;
            let score = words * (1.0 + NEWNESS * (-age / HALF_LIFE).exp2());
            best.push(Ranked { document, words, score });
        });
        if let Some(error) = failed {
            return Err(error);
        }
        // Documents with equal scores are in the order of their ids, whatever the order of scores was.
        let order = |a: &Ranked, b: &Ranked| b.score.total_cmp(&a.score).then(b.document.cmp(&a.document));
        if best.len() > limit {
            best.select_nth_unstable_by(limit, order);
            best.truncate(limit);
        }
        best.sort_unstable_by(order);
        Ok(Best { ranked: best, total })
    }

    /// The documents with the tags and the author; `None` if that is no condition.
    fn allowed(&self) -> rusqlite::Result<Option<HashSet<u32>>> {
        let tags = self.query.tags.iter().map(|tag| format!("{TAG}{tag}"));
        let author = self.query.author.iter().map(|author| format!("{AUTHOR}{author}"));
        let mut allowed: Option<HashSet<u32>> = None;
        for term in tags.chain(author) {
            let documents = match term_id(self.connection, &term)? {
                Some(term) => self.documents_of(term)?.documents().collect(),
                None => HashSet::new(),
            };
            allowed = Some(match allowed {
                Some(before) => before.intersection(&documents).copied().collect(),
                None => documents,
            });
        }
        Ok(allowed)
    }
}

/// The documents of a term.
#[derive(Default)]
struct TermList {
    events: Vec<Posting>,
    others: Vec<Posting>,
}

impl TermList {
    fn documents(&self) -> impl Iterator<Item = u32> {
        self.others.iter().chain(&self.events).map(|(document, _)| *document)
    }

    /// The highest id.
    fn last(&self) -> Option<u32> {
        self.documents().max()
    }
}

/// The sizes of documents, read when they are needed.
struct Sizes<'c> {
    connection: &'c Connection,
    blocks: HashMap<u32, Vec<u8>>,
    last: Option<(u32, Vec<u8>)>,
    is_complete: bool,
}

impl<'c> Sizes<'c> {
    fn new(connection: &'c Connection, needed: usize) -> rusqlite::Result<Sizes<'c>> {
        let mut sizes = Sizes { connection, blocks: HashMap::new(), last: None, is_complete: needed >= MANY };
        if sizes.is_complete {
            let mut statement = connection.prepare_cached("SELECT block, data FROM sizes")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                sizes.blocks.insert(row.get(0)?, row.get(1)?);
            }
        }
        Ok(sizes)
    }

    /// The words and the time of a document.
    fn of(&mut self, document: u32) -> rusqlite::Result<(u32, u32)> {
        let (block, place) = (document / SIZES, (document % SIZES) as usize);
        if self.last.as_ref().is_none_or(|(last, _)| *last != block) {
            if let Some((last, data)) = self.last.take() {
                self.blocks.insert(last, data);
            }
            let known = self.blocks.remove(&block);
            let data = match known {
                Some(data) => data,
                None if self.is_complete => Vec::new(),
                None => {
                    let mut statement =
                        self.connection.prepare_cached("SELECT data FROM sizes WHERE block = ?1")?;
                    let mut rows = statement.query([block])?;
                    rows.next()?.map(|row| row.get(0)).transpose()?.unwrap_or_default()
                }
            };
            self.last = Some((block, data));
        }
        Ok(self.last.as_ref().map_or((0, 0), |(_, data)| size_at(data, place)))
    }
}

/// The scores of documents.
enum Scores {
    Few(BTreeMap<u32, f32>),
    Many(Vec<f32>),
}

impl Scores {
    fn new(count: usize, last: Option<u32>) -> Scores {
        let last = last.unwrap_or(0);
        // Ids of a board that has replaced most of its rows have large gaps.
        if count < MANY || count < last as usize / 64 {
            Scores::Few(BTreeMap::new())
        } else {
            Scores::Many(vec![0.0; last as usize + 1])
        }
    }

    fn add(&mut self, document: u32, score: f32) {
        match self {
            Scores::Few(scores) => *scores.entry(document).or_insert(0.0) += score,
            Scores::Many(scores) => scores[document as usize] += score,
        }
    }

    fn each(self, mut f: impl FnMut(u32, f32)) {
        match self {
            Scores::Few(scores) => scores.into_iter().for_each(|(document, score)| f(document, score)),
            Scores::Many(scores) => {
                for (document, score) in (0..).zip(scores) {
                    if score > 0.0 {
                        f(document, score);
                    }
                }
            }
        }
    }
}
