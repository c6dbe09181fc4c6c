//! `memory pending`: records that need a summary. The board has no model, so it offers them as batches, and an agent writes the
//! summary (`compact.rs`).

use std::time::Duration;

use serde::Serialize;

use super::Memories;
use super::levels::Level;
use super::recall::{Recall, examine};
use super::record::{Record, tokens_of};
use crate::clock::Timestamp;
use crate::entry::Entry;
use crate::error::Result;
use crate::revision::Revision;
use crate::scope::Guard;
use crate::store::{Prefetch, Range};

/// From which part of its token budget on a level is offered.
const BUDGET_PART: u64 = 90;

/// Records that are newer than this stay as they are.
const RECENT: Duration = Duration::from_mins(5);

/// How many records and tokens a batch has at most: an agent reads it at once.
const MAX_RECORDS: usize = 50;
const MAX_TOKENS: u64 = 8_000;

/// Batches that need a summary.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pending {
    /// The batches, by level.
    pub batches: Vec<Batch>,
    /// The revision of the board at that moment: a summary that names it is refused if a record has changed since.
    pub revision: Revision,
}

/// Records that need one summary.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Batch {
    /// Their level.
    pub level: String,
    /// The level of the summary.
    pub into: String,
    /// Why it is needed.
    pub reason: BatchReason,
    /// How many tokens the records have together.
    pub tokens: u64,
    /// The records, the oldest first.
    pub records: Vec<BatchRecord>,
}

/// Why a summary is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BatchReason {
    /// The level has 90 % of its tokens.
    Tokens,
    /// The level has more records than it should.
    Entries,
    /// Another level takes summaries of these records.
    Next,
}

/// A record of a batch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BatchRecord {
    /// Its key.
    pub key: String,
    /// What it says.
    pub text: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// When it was remembered.
    pub remembered_at: Timestamp,
    /// The author who remembered it.
    pub remembered_by: String,
}

impl Memories<'_> {
    /// The batches that need a summary. Records that no agent has summarized stay as they are.
    ///
    /// ```
    /// # use blackboard::{Board, memory::{Define, LevelRules, Remember}};
    /// # let board = Board::memory();
    /// let rules = LevelRules { max_entries: Some(1), ..LevelRules::default() };
    /// board.memories().define(&Define { name: "notes".to_owned(), rules, session: None })?;
    /// let note = |text: &str| Remember { level: Some("notes".to_owned()), ..Remember::text(text) };
    /// board.memories().remember(&note("one"))?;
    /// board.memories().remember(&note("two"))?;
    /// assert_eq!(board.memories().pending(None)?.batches[0].records.len(), 2);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn pending(&self, level: Option<&str>) -> Result<Pending> {
        let prefetch = [Prefetch::Range(Range::scope_policies()), Prefetch::Revision];
        self.board.read_list(&prefetch, |tx| {
            let guard = Guard::of_board(self.board, tx);
            let levels = Level::visible(tx, &guard)?;
            if let Some(name) = level
                && !levels.iter().any(|level| level.name == name)
            {
                let level = Level::all(tx)?.into_iter().find(|level| level.name == name);
                let level = level.ok_or_else(|| super::levels::not_found(name))?;
                guard.check_scope(&level.scope)?;
            }
            let mut batches = Vec::new();
            for one in levels.iter().filter(|one| level.is_none_or(|name| one.name == name)) {
                let (entries, _) = examine(tx, &guard, one, &Recall::default())?;
                batches.extend(batches_of(one, &levels, &entries, tx.now()));
            }
            Ok(Pending { batches, revision: tx.revision()? })
        })
    }
}

/// The batches of a level that need a summary, from its records, the newest first.
pub(super) fn batches_of(level: &Level, levels: &[Level], entries: &[Entry], now: Timestamp) -> Vec<Batch> {
    let mut records: Vec<_> = entries.iter().map(Record::of).collect();
    records.sort_by_key(|record| (record.facts.remembered_at, record.entry_revision));
    let tokens: u64 = records.iter().map(|record| tokens_of(&record.text)).sum();
    let mut batches = Vec::new();
    for next in &level.rules.next {
        let target = levels.iter().find(|target| target.name == *next);
        let Some(target) = target.filter(|target| target.rules.by_summary) else { continue };
        let taken = records
            .iter()
            .filter(|record| target.rules.takes(&record.key, &record.tags, record.facts.relevance).is_ok());
        let taken: Vec<_> = taken.collect();
        let is_enough = target.rules.takes_at.is_some_and(|at| taken.len() as u64 >= at);
        let oldest = taken.first().map(|record| now.since(record.facts.remembered_at));
        let is_old = oldest.zip(target.rules.takes_after).is_some_and(|(age, after)| age >= after);
        // One record is its own summary.
        if is_enough || (is_old && taken.len() > 1) {
            batches.extend(batch(level, &target.name, BatchReason::Next, &taken));
        }
    }
    let old: Vec<_> =
        records.iter().filter(|record| now.since(record.facts.remembered_at) >= RECENT).collect();
    let is_over = |part: u64, limit: Option<u64>, percent: u64| {
        limit.is_some_and(|limit| part.saturating_mul(100) >= limit.saturating_mul(percent))
    };
    if is_over(tokens, level.rules.tokens, BUDGET_PART) {
        batches.extend(batch(level, &level.name, BatchReason::Tokens, &old));
    } else if level.rules.max_entries.is_some_and(|most| records.len() as u64 > most) {
        // All of them if all are new: a level that is too full now is so whatever their age.
        let all: Vec<_> = records.iter().collect();
        batches.extend(batch(
            level,
            &level.name,
            BatchReason::Entries,
            if old.len() > 1 { &old } else { &all },
        ));
    }
    batches
}

/// The first records, as many as a batch may have; none if they are not enough for a summary.
fn batch(level: &Level, into: &str, reason: BatchReason, records: &[&Record]) -> Option<Batch> {
    let (mut tokens, mut chosen) = (0, Vec::new());
    for record in records.iter().take(MAX_RECORDS) {
        let more = tokens_of(&record.text);
        if tokens + more > MAX_TOKENS && chosen.len() > 1 {
            break;
        }
        tokens += more;
        chosen.push(BatchRecord {
            key: record.key.clone(),
            text: record.text.clone(),
            tags: record.tags.clone(),
            remembered_at: record.facts.remembered_at,
            remembered_by: record.facts.remembered_by.clone(),
        });
    }
    (chosen.len() > 1).then(|| Batch {
        level: level.name.clone(),
        into: into.to_owned(),
        reason,
        tokens,
        records: chosen,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::LevelRules;
    use crate::store::conformance::an_entry;

    fn level(name: &str, rules: LevelRules) -> Level {
        Level { name: name.to_owned(), scope: format!("memory:{name}"), rules }
    }

    #[test]
    fn batches_are_offered_by_tokens_number_and_next_level() {
        use BatchReason::{Entries, Next, Tokens};

        testkit::limit_test();
        let text = |tokens: usize| crate::entry::Value::of(&"abc".repeat(tokens)).unwrap();
        let entries = |count: usize, tokens: usize, age: u64| {
            let entry = |number: usize| Entry {
                value: text(tokens),
                created_at: Timestamp::EPOCH,
                updated_at: Timestamp::EPOCH,
                ..an_entry("memory:a", &format!("k{number}"))
            };
            ((0..count).map(entry).collect::<Vec<_>>(), Timestamp::EPOCH.plus(Duration::from_secs(age)))
        };
        let rules = LevelRules::default;
        let skills = level(
            "skills",
            LevelRules {
                by_summary: true,
                takes_at: Some(3),
                takes_after: Some(Duration::from_mins(30)),
                ..rules()
            },
        );
        let feeding = || LevelRules { next: vec!["skills".to_owned()], ..rules() };
        for (rules, (entries, now), expected) in [
            (rules(), entries(10, 100, 9999), &[][..]),
            (LevelRules { tokens: Some(1000), ..rules() }, entries(9, 100, 299), &[]),
            (LevelRules { tokens: Some(1000), ..rules() }, entries(9, 100, 300), &[(Tokens, "a", 9)]),
            (LevelRules { tokens: Some(1001), ..rules() }, entries(9, 100, 300), &[]),
            (LevelRules { max_entries: Some(9), ..rules() }, entries(9, 1, 300), &[]),
            (LevelRules { max_entries: Some(8), ..rules() }, entries(9, 1, 300), &[(Entries, "a", 9)]),
            (LevelRules { max_entries: Some(8), ..rules() }, entries(9, 1, 0), &[(Entries, "a", 9)]),
            (LevelRules { max_entries: Some(8), ..rules() }, entries(99, 1, 300), &[(Entries, "a", 50)]),
            (feeding(), entries(2, 1, 1799), &[]),
            (feeding(), entries(2, 1, 1800), &[(Next, "skills", 2)]),
            (feeding(), entries(1, 1, 1800), &[]),
            (feeding(), entries(3, 1, 0), &[(Next, "skills", 3)]),
            (feeding(), entries(20, 1000, 0), &[(Next, "skills", 8)]),
        ] {
            let from = level("a", rules);
            let levels = [from.clone(), skills.clone()];
            let found = batches_of(&from, &levels, &entries, now);
            let found: Vec<_> =
                found.iter().map(|batch| (batch.reason, &*batch.into, batch.records.len())).collect();
            assert_eq!(found, expected, "{:?}, {} entries", from.rules, entries.len());
        }
    }
}
