//! `memory recall`: finds records by words, tags, time and pattern.
//!
//! Every filter applies before the limit. The score is computed when it is read: nothing is written. Words are compared by the
//! search of the board and nowhere else (`search/`).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::levels::Level;
use super::record::{Facts, tags_of, text_of, tokens_of};
use super::rules::Relevance;
use super::score::ScoreParts;
use super::{Memories, SHORT_TERM, WORKING};
use crate::clock::Timestamp;
use crate::entry::{Entry, Glob, Query, Value, check_pattern, check_tag};
use crate::error::{Error, Result};
use crate::names::impl_names;
use crate::revision::Revision;
use crate::scope::Guard;
use crate::search::{Behind, CatchUp, IndexLocation, Kind, Query as SearchQuery, Suggestions};
use crate::store::{Key, Prefetch, Range, Tx};

/// How many records of a level one call examines at most: the newest ones. An answer reports if there are more.
pub const MAX_EXAMINED: usize = 10_000;

/// How many bytes of records of a level one call reads at most.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// How many results there are by default.
const DEFAULT_LIMIT: usize = 10;

/// The most characters of a question.
const MAX_WORDS: usize = 1_000;

/// A named selection of levels, time and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lens {
    /// What was remembered in the last hour in working and short-term memory: 10 records.
    Planning,
    /// Short-term and episodic memory: 20 records.
    Reflection,
    /// Procedural memory: 5 records.
    Skills,
}

impl Lens {
    /// All of them.
    pub const ALL: &'static [Lens] = &[Lens::Planning, Lens::Reflection, Lens::Skills];

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Lens::Planning => "planning",
            Lens::Reflection => "reflection",
            Lens::Skills => "skills",
        }
    }

    fn levels(self) -> &'static [&'static str] {
        match self {
            Lens::Planning => &[WORKING, SHORT_TERM],
            Lens::Reflection => &[SHORT_TERM, "episodic"],
            Lens::Skills => &["procedural"],
        }
    }

    fn limit(self) -> usize {
        match self {
            Lens::Planning => 10,
            Lens::Reflection => 20,
            Lens::Skills => 5,
        }
    }

    fn age(self) -> Option<Duration> {
        matches!(self, Lens::Planning).then(|| Duration::from_hours(1))
    }
}

impl_names!(Lens, "lens");

/// A question. Every condition has to hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recall {
    /// Words, of which a record has at least one.
    pub words: Option<String>,
    /// Only in these levels; in all if there are none.
    pub levels: Vec<String>,
    /// It has all of these tags.
    pub all_tags: Vec<String>,
    /// It has one of these tags, if there are any.
    pub any_tags: Vec<String>,
    /// It has none of these tags.
    pub no_tags: Vec<String>,
    /// It was remembered at this moment or later.
    pub since: Option<Timestamp>,
    /// It was remembered before this moment.
    pub until: Option<Timestamp>,
    /// Its key matches this pattern.
    pub pattern: Option<String>,
    /// The relevance that is left is at least this.
    pub min_relevance: Option<Relevance>,
    /// Levels, time and limit of a lens, where the call gives none.
    pub lens: Option<Lens>,
    /// The most results; those of the lens, or 10, by default.
    pub limit: Option<usize>,
    /// The most tokens that the texts of the results have together.
    pub tokens: Option<u64>,
    /// How much the search does to bring its index up to date.
    pub catch_up: Option<CatchUp>,
}

/// The records that a call has found, the best first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recalled {
    /// The records.
    pub records: Vec<RecalledRecord>,
    /// How many match, without the limits.
    pub total: usize,
    /// How many tokens the texts of the results have together.
    pub tokens: u64,
    /// The levels of which only the newest records were examined, or those that match the words best.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<String>,
    /// What the search index does not have yet, if the call has words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<Behind>,
    /// What is close to the words, if no record has one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestions: Option<Suggestions>,
    /// The revision of the board at that moment.
    pub revision: Revision,
}

/// A record, and why it was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecalledRecord {
    /// Its key.
    pub key: String,
    /// Its level.
    pub level: String,
    /// The score, from 0 to 1.
    pub score: f64,
    /// Its parts.
    pub parts: ScoreParts,
    /// What it says: the text of a string, else JSON.
    pub text: String,
    /// The stored value.
    pub value: Value,
    /// Its tags.
    pub tags: Vec<String>,
    /// When it was remembered.
    pub remembered_at: Timestamp,
    /// The author who remembered it.
    pub remembered_by: String,
    /// The project of the session that did.
    pub project: Option<String>,
    /// How many ratings it has.
    pub ratings: u64,
    /// The keys of the records that it summarizes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub summary_of: Vec<String>,
    /// How many tokens its text has.
    pub tokens: u64,
    /// The event that wrote it last.
    pub revision: Revision,
}

impl Memories<'_> {
    /// Finds records, the best first. Without words, those of the largest relevance and usefulness come first. A level that the
    /// caller may not use is left out, and refused if the call names it.
    ///
    /// ```
    /// # use blackboard::{Board, memory::{Recall, Remember}, search::IndexLocation};
    /// # let board = Board::memory();
    /// let memory = board.memories();
    /// memory.remember(&Remember { tags: vec!["trap".to_owned()], ..Remember::text("The login test needs Redis") })?;
    /// memory.remember(&Remember::text("Releases are tagged on Monday"))?;
    /// let recall = Recall { words: Some("logins".to_owned()), ..Recall::default() };
    /// let index = IndexLocation::Memory;
    /// assert_eq!(memory.recall(&recall, &index)?.records[0].text, "The login test needs Redis");
    /// let without = Recall { no_tags: vec!["trap".to_owned()], ..recall };
    /// assert!(memory.recall(&without, &index)?.records.is_empty());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn recall(&self, request: &Recall, index: &IndexLocation) -> Result<Recalled> {
        request.check()?;
        let matches = match &request.words {
            Some(words) => Some(self.matches(words, request, index)?),
            None => None,
        };
        let prefetch = [Prefetch::Range(Range::scope_policies()), Prefetch::Revision];
        self.board.read_list(&prefetch, |tx| {
            let guard = Guard::of_board(self.board, tx);
            recall_in(tx, &guard, request, matches.as_ref())
        })
    }

    /// The records that have one of the words.
    fn matches(self, words: &str, request: &Recall, index: &IndexLocation) -> Result<Matches> {
        let levels = self.board.read_list(&[Prefetch::Range(Range::scope_policies())], |tx| {
            request.chosen_levels(tx, &Guard::of_board(self.board, tx))
        })?;
        let query = SearchQuery {
            scopes: Some(levels.into_iter().map(|level| level.scope).collect()),
            kinds: vec![Kind::Entry],
            tags: request.all_tags.clone(),
            limit: SearchQuery::MAX_LIMIT,
            catch_up: request.catch_up.unwrap_or_default(),
            ..SearchQuery::new(words)
        };
        let found = self.board.search(&query, index)?;
        let mut scores: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
        // The total may count what the caller may not read.
        let is_cut = found.results.len() == SearchQuery::MAX_LIMIT;
        let suggestions = found.results.is_empty().then_some(found.suggestions);
        for result in found.results {
            let scope = result.scope.unwrap_or_default();
            scores.entry(scope).or_default().insert(result.id, result.words_score);
        }
        Ok(Matches { scores, is_cut, behind: found.behind, suggestions })
    }
}

/// What the search has found.
struct Matches {
    /// How well entries match, by scope and key.
    scores: BTreeMap<String, BTreeMap<String, f64>>,
    /// Whether there are more than one search returns.
    is_cut: bool,
    behind: Option<Behind>,
    suggestions: Option<Suggestions>,
}

/// The answer in one state of the board. The policies of all scopes and the revision are announced.
fn recall_in(
    tx: &dyn Tx,
    guard: &Guard<'_>,
    request: &Recall,
    matches: Option<&Matches>,
) -> Result<Recalled> {
    let now = tx.now();
    let since = request.earliest(now);
    let mut candidates = Vec::new();
    let mut incomplete = Vec::new();
    for level in request.chosen_levels(tx, guard)? {
        let (entries, is_cut) = match matches {
            Some(matches) => (matching(tx, guard, &level, request, matches)?, matches.is_cut),
            None => examine(tx, guard, &level, request)?,
        };
        if is_cut {
            incomplete.push(level.name.clone());
        }
        for entry in entries {
            let (facts, tags) = (Facts::of(&entry), tags_of(&entry));
            if request.fits(&tags, &facts, since) {
                let words =
                    matches.and_then(|matches| matches.scores.get(&entry.scope)?.get(&entry.key).copied());
                let text = text_of(&entry.value);
                candidates.push(Candidate { level: level.clone(), text, entry, facts, tags, words });
            }
        }
    }
    let found = rank(candidates, request, now);
    let total = found.len();
    let (records, tokens) = within(found, request.most(), request.tokens);
    let behind = matches.and_then(|matches| matches.behind);
    let suggestions = matches.and_then(|matches| matches.suggestions.clone()).filter(|_| total == 0);
    Ok(Recalled { records, total, tokens, incomplete, behind, suggestions, revision: tx.revision()? })
}

/// The records of a level that the search has found and that the caller may read.
fn matching(
    tx: &dyn Tx,
    guard: &Guard<'_>,
    level: &Level,
    request: &Recall,
    matches: &Matches,
) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let Some(scores) = matches.scores.get(&level.scope) else { return Ok(entries) };
    let pattern = request.pattern.as_deref().map(Glob::new);
    let fits = |key: &&String| {
        level.rules.has_key(key) && pattern.as_ref().is_none_or(|pattern| pattern.matches(key))
    };
    let keys: Vec<_> = scores.keys().filter(fits).collect();
    if !keys.is_empty() {
        tx.prefetch(&keys.iter().map(|key| Prefetch::Entry(&level.scope, key)).collect::<Vec<_>>())?;
    }
    for key in keys {
        let entry = tx.row::<Entry>(&Key::Entry(level.scope.clone(), key.clone()))?;
        if let Some(entry) = entry.filter(|entry| !entry.is_expired(tx.now()))
            && guard.may_read(&level.scope, key)?
        {
            entries.push(entry);
        }
    }
    Ok(entries)
}

/// The newest records of a level that the caller may read and that match the tags and the pattern, and whether there may be
/// others.
pub(super) fn examine(
    tx: &dyn Tx,
    guard: &Guard<'_>,
    level: &Level,
    request: &Recall,
) -> Result<(Vec<Entry>, bool)> {
    let query = Query {
        pattern: request.pattern.clone(),
        tags: request.all_tags.clone(),
        limit: Some(MAX_EXAMINED),
        most_bytes: Some(MAX_BYTES),
        ..Query::default()
    };
    let query = query.checked_in_stored_scope(&level.scope)?;
    tx.prefetch(&query.prefetch(&level.scope))?;
    let page = query.page(tx, guard, &level.scope)?;
    let mut entries = page.entries;
    entries.retain(|entry| level.rules.has_key(&entry.key));
    Ok((entries, page.next.is_some()))
}

struct Candidate {
    level: Level,
    entry: Entry,
    text: String,
    facts: Facts,
    tags: Vec<String>,
    /// How well it matches the words.
    words: Option<f64>,
}

/// The candidates with enough relevance, the best first.
fn rank(candidates: Vec<Candidate>, request: &Recall, now: Timestamp) -> Vec<RecalledRecord> {
    // The best match has 1.
    let best = candidates.iter().filter_map(|candidate| candidate.words).fold(0.0, f64::max);
    let mut found = Vec::new();
    for candidate in candidates {
        let words = candidate.words.map(|words| if best > 0.0 { words / best } else { 0.0 });
        let parts = ScoreParts::of(&candidate.facts, words, candidate.level.rules.half_life, now);
        if request.min_relevance.is_some_and(|least| parts.current_relevance() < least.value()) {
            continue;
        }
        found.push(candidate.found(parts));
    }
    found.sort_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then(Reverse(a.revision).cmp(&Reverse(b.revision)))
            .then(a.key.cmp(&b.key))
    });
    found
}

impl Candidate {
    fn found(self, parts: ScoreParts) -> RecalledRecord {
        let Candidate { level, entry, text, facts, tags, .. } = self;
        RecalledRecord {
            key: entry.key,
            level: level.name,
            score: parts.total(),
            parts,
            tokens: tokens_of(&text),
            text,
            value: entry.value,
            tags,
            remembered_at: facts.remembered_at,
            remembered_by: facts.remembered_by,
            project: facts.project,
            ratings: facts.ratings,
            summary_of: facts.summary_of,
            revision: entry.revision,
        }
    }
}

/// The best ones within the limits. A record that is too large for the rest of the budget leaves it to smaller ones.
fn within(found: Vec<RecalledRecord>, most: usize, budget: Option<u64>) -> (Vec<RecalledRecord>, u64) {
    let (mut kept, mut tokens) = (Vec::new(), 0_u64);
    for record in found {
        if kept.len() == most {
            break;
        }
        if budget.is_some_and(|budget| tokens.saturating_add(record.tokens) > budget) {
            continue;
        }
        tokens = tokens.saturating_add(record.tokens);
        kept.push(record);
    }
    (kept, tokens)
}

impl Recall {
    fn check(&self) -> Result<()> {
        let tags = self.all_tags.iter().chain(&self.any_tags).chain(&self.no_tags);
        tags.clone().try_for_each(|tag| check_tag(tag))?;
        if tags.count() > crate::entry::MAX_TAGS || self.levels.len() > super::MAX_LEVELS {
            return Err(Error::invalid("too many tags or levels: at most 64 tags and 50 levels are allowed"));
        }
        self.levels.iter().try_for_each(|level| super::rules::check_name(level))?;
        if let Some(pattern) = &self.pattern {
            check_pattern("", pattern)?;
            // Compiled here as well, so that a pattern that is too complex is refused at once.
            let _ = Glob::new(pattern);
        }
        if self.words.as_ref().is_some_and(|words| words.chars().count() > MAX_WORDS) {
            return Err(Error::invalid(format!("the words have more than {MAX_WORDS} characters")));
        }
        Ok(())
    }

    fn most(&self) -> usize {
        self.limit.unwrap_or_else(|| self.lens.map_or(DEFAULT_LIMIT, Lens::limit))
    }

    /// From when on records count.
    fn earliest(&self, now: Timestamp) -> Option<Timestamp> {
        self.since.or_else(|| self.lens.and_then(Lens::age).map(|age| now.minus(age)))
    }

    /// The levels of the call, each readable by the caller.
    fn chosen_levels(&self, tx: &dyn Tx, guard: &Guard<'_>) -> Result<Vec<Level>> {
        if self.levels.is_empty() {
            let names = self.lens.map(Lens::levels);
            let mut levels = Level::visible(tx, guard)?;
            levels.retain(|level| names.is_none_or(|names| names.contains(&level.name.as_str())));
            return Ok(levels);
        }
        let all = Level::all(tx)?;
        let mut chosen = Vec::new();
        for name in &self.levels {
            let level = all.iter().find(|level| level.name == *name);
            let level = level.ok_or_else(|| super::levels::not_found(name))?;
            guard.check_scope(&level.scope)?;
            if !chosen.iter().any(|known: &Level| known.name == *name) {
                chosen.push(level.clone());
            }
        }
        Ok(chosen)
    }

    fn fits(&self, tags: &[String], facts: &Facts, since: Option<Timestamp>) -> bool {
        let has = |tag: &String| tags.contains(tag);
        self.all_tags.iter().all(has)
            && (self.any_tags.is_empty() || self.any_tags.iter().any(has))
            && !self.no_tags.iter().any(has)
            && since.is_none_or(|since| facts.remembered_at >= since)
            && self.until.is_none_or(|until| facts.remembered_at < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::LevelRules;
    use crate::store::conformance::an_entry;

    fn facts(relevance: f64, seconds: i64) -> Facts {
        Facts {
            relevance: Relevance::nearest(relevance),
            usefulness: Relevance::DEFAULT,
            ratings: 0,
            remembered_at: Timestamp::from_millis(seconds * 1000),
            remembered_by: "Ivy".to_owned(),
            project: None,
            summary_of: Vec::new(),
        }
    }

    fn candidate(key: &str, words: Option<f64>, relevance: f64, half_life: Option<u64>) -> Candidate {
        let rules = LevelRules { half_life: half_life.map(Duration::from_secs), ..LevelRules::default() };
        Candidate {
            level: Level { name: "l".to_owned(), scope: "memory:l".to_owned(), rules },
            entry: an_entry("memory:l", key),
            text: String::new(),
            facts: facts(relevance, 0),
            tags: Vec::new(),
            words,
        }
    }

    #[test]
    fn tags_and_times_are_conditions() {
        let owned = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
        let at = |seconds: i64| Some(Timestamp::from_millis(seconds * 1000));
        let tags = owned(&["a", "b"]);
        for (all, any, none, since, until, expected) in [
            (&[][..], &[][..], &[][..], None, None, true),
            (&["a", "b"], &[], &[], None, None, true),
            (&["a", "c"], &[], &[], None, None, false),
            (&[], &["c", "b"], &[], None, None, true),
            (&[], &["c"], &[], None, None, false),
            (&[], &[], &["c"], None, None, true),
            (&["a"], &[], &["b"], None, None, false),
            (&[], &[], &[], at(10), None, true),
            (&[], &[], &[], at(11), None, false),
            (&[], &[], &[], None, at(11), true),
            (&[], &[], &[], None, at(10), false),
        ] {
            let recall = Recall {
                all_tags: owned(all),
                any_tags: owned(any),
                no_tags: owned(none),
                until,
                ..Recall::default()
            };
            assert_eq!(recall.fits(&tags, &facts(0.5, 10), since), expected, "{recall:?}");
        }
    }

    #[test]
    fn words_relevance_and_age_decide_the_order() {
        let now = Timestamp::from_millis(20_000);
        let keys = |words: [Option<f64>; 3], recall: &Recall| {
            let candidates = vec![
                candidate("old", words[0], 0.9, Some(10)),
                candidate("new", words[1], 0.9, None),
                candidate("other", words[2], 1.0, None),
            ];
            let found = rank(candidates, recall, now);
            found.into_iter().map(|found| found.key).collect::<Vec<_>>()
        };
        let plain = Recall::default();
        assert_eq!(keys([None; 3], &plain), ["other", "new", "old"]);
        assert_eq!(keys([Some(7.0), Some(7.0), Some(1.0)], &plain), ["new", "old", "other"]);
        let relevant = Recall { min_relevance: Some(Relevance::nearest(0.3)), ..plain };
        assert_eq!(keys([Some(7.0), Some(7.0), Some(1.0)], &relevant), ["new", "other"]);
    }

    #[test]
    fn results_stay_within_their_limits() {
        let found = |sizes: &[u64]| {
            let records = sizes.iter().map(|tokens| {
                let parts = ScoreParts::of(&facts(0.5, 0), None, None, Timestamp::EPOCH);
                RecalledRecord { tokens: *tokens, ..candidate("k", None, 0.5, None).found(parts) }
            });
            records.collect::<Vec<_>>()
        };
        for (sizes, most, budget, expected) in [
            (&[10, 10, 10][..], 2, None, &[10, 10][..]),
            (&[10, 10, 10], 9, Some(20), &[10, 10]),
            (&[10, 50, 5], 9, Some(20), &[10, 5]),
            (&[10], 9, Some(9), &[]),
        ] {
            let (kept, tokens) = within(found(sizes), most, budget);
            let kept: Vec<_> = kept.iter().map(|record| record.tokens).collect();
            assert_eq!((kept.as_slice(), tokens), (expected, expected.iter().sum()), "{sizes:?}");
        }
    }
}
