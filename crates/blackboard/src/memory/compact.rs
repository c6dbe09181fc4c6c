//! `memory compact`: replaces records by a summary of them.

use serde::Serialize;

use super::Memories;
use super::levels::{Level, scope_of};
use super::promote::{check_keys, missing};
use super::record::{Facts, joined_tags, key_of, tags_of, tokens_of};
use super::remember::{checked_tags, clean_text};
use super::rules::Relevance;
use crate::entry::{Actor, Entry, EntryEditor, EventWording, Write};
use crate::error::{Code, Error, Refusal, Result};
use crate::revision::{Pending, Revision};
use crate::store::Prefetch;
use crate::text::TextChanges;

/// How many records one summary replaces at most.
const MAX_SUMMARIZED: usize = 200;

/// A summary and what it replaces.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compact {
    /// The level of the records.
    pub level: String,
    /// The level of the summary; by default that of the records.
    pub into: Option<String>,
    /// The summary.
    pub summary: String,
    /// The keys of the records.
    pub of: Vec<String>,
    /// Tags of the summary; by default those that all of the records have.
    pub tags: Vec<String>,
    /// The relevance of the summary; by default the largest one of the records.
    pub relevance: Option<Relevance>,
    /// The revision at which the records were read. It is refused if one of them was written since then.
    pub at: Option<Revision>,
    /// On whose behalf.
    pub actor: Actor,
}

/// The result of a summary.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compacted {
    /// The key of the summary.
    pub key: String,
    /// Its level.
    pub level: String,
    /// How many records it replaced.
    pub replaced: usize,
    /// How many tokens they had together.
    pub tokens_before: u64,
    /// How many the summary has.
    pub tokens: u64,
    /// Its event.
    pub revision: Revision,
    /// What was shortened or filtered.
    #[serde(flatten)]
    pub text: TextChanges,
}

impl Pending for Compacted {
    fn resolve(&mut self, first: Revision) {
        self.revision.resolve(first);
    }
}

impl Memories<'_> {
    /// Writes a summary and deletes the records that it replaces, in one commit. They stay in the history of their keys.
    ///
    /// ```
    /// # use blackboard::{Board, memory::{Compact, Remember}};
    /// # let board = Board::memory();
    /// let keys = ["a failed", "b failed"].map(|text| board.memories().remember(&Remember::text(text)).unwrap().key);
    /// let compact = Compact {
    ///     level: "short-term".to_owned(),
    ///     summary: "a and b failed".to_owned(),
    ///     of: keys.to_vec(),
    ///     ..Compact::default()
    /// };
    /// assert_eq!(board.memories().compact(&compact)?.replaced, 2);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn compact(&self, request: &Compact) -> Result<Compacted> {
        let Compact { level: from, into, summary, of, actor, .. } = request;
        check_keys(of)?;
        let mut keys = of.clone();
        keys.sort_unstable();
        keys.dedup();
        if keys.len() > MAX_SUMMARIZED {
            let count = keys.len();
            let message = format!("a summary of {count} records is too broad; {MAX_SUMMARIZED} are allowed");
            return Err(Error::invalid(message));
        }
        let into = into.as_deref().unwrap_or(from);
        let settings = self.board.settings();
        let (value, text) = clean_text(&settings.text, "summary", summary)?;
        let (source, target) = (scope_of(from), scope_of(into));
        let write = Write { tags: checked_tags(&request.tags)?, ..Write::new(&key_of(&value), value) };
        let write = write.checked(&target, settings)?;
        let mut prefetch: Vec<_> = Level::prefetch(from).into_iter().chain(Level::prefetch(into)).collect();
        prefetch.extend(keys.iter().map(|key| Prefetch::Entry(&source, key)));
        prefetch.push(Prefetch::Entry(&target, &write.key));
        prefetch.extend(actor.prefetch());
        let session = actor.session.as_deref();
        let mut compacted = self.board.commit_as(session.as_slice(), "memory compact", &prefetch, |tx| {
            let mut editor = EntryEditor::new(self.board, tx, actor)?;
            Level::existing(tx, from)?;
            let target = Level::existing(tx, into)?;
            if !target.rules.has_key(&write.key) {
                let message = format!("the patterns of memory level {into} do not match {}", write.key);
                return Err(Error::invalid(message));
            }
            let mut originals = Vec::with_capacity(keys.len());
            for key in &keys {
                originals.push(editor.read(&source, key)?.ok_or_else(|| missing(key))?);
            }
            check_unchanged(&originals, request.at)?;
            let (facts, tags) = decide(&originals, request, &write.tags, &editor.author, tx.now());
            let tokens_before =
                originals.iter().map(|entry| tokens_of(&super::record::text_of(&entry.value)));
            let tokens_before = tokens_before.sum();
            let write = Write { tags, metadata: Some(facts.to_metadata()), ..write.clone() };
            let count = originals.len();
            let words = format!(
                "Agent \"{}\" summarized {count} memory records of level {from} as {} in level {into}",
                editor.author, write.key
            );
            let written = editor.write(&target.scope, &write, EventWording::InWords(words))?;
            let mut replaced = 0;
            for entry in &originals {
                // A summary may have the text of a record.
                if source != target.scope || entry.key != write.key {
                    let words = format!("Memory record {} replaced by its summary {}", entry.key, write.key);
                    editor.delete(&source, &entry.key, EventWording::InWords(words))?;
                    replaced += 1;
                }
            }
            let compacted = Compacted {
                key: write.key.clone(),
                level: into.to_owned(),
                replaced,
                tokens_before,
                tokens: tokens_of(&super::record::text_of(&write.value)),
                revision: written.revision,
                text: TextChanges::default(),
            };
            Ok((editor.finish()?, compacted))
        })?;
        compacted.text = text;
        Ok(compacted)
    }
}

/// Refuses a summary of records that have changed since they were read.
fn check_unchanged(originals: &[Entry], at: Option<Revision>) -> Result<()> {
    let Some(at) = at else { return Ok(()) };
    let Some(changed) = originals.iter().find(|entry| entry.revision > at) else { return Ok(()) };
    let message = format!("memory record {} was written after revision {at}", changed.key);
    Err(Refusal::new(Code::Conflict, message)
        .hint("read the batch again, and summarize what it has now")
        .detail("key", changed.key.clone())
        .detail("revision", changed.revision.get())
        .into())
}

/// The facts and tags of a summary.
fn decide(
    originals: &[Entry],
    request: &Compact,
    tags: &[String],
    author: &str,
    now: crate::clock::Timestamp,
) -> (Facts, Vec<String>) {
    let known: Vec<_> = originals.iter().map(Facts::of).collect();
    let relevance = request.relevance.or_else(|| known.iter().map(|facts| facts.relevance).max());
    let projects: std::collections::BTreeSet<_> = known.iter().map(|facts| facts.project.clone()).collect();
    let project = if projects.len() == 1 { projects.into_iter().next().flatten() } else { None };
    let tags = match tags {
        [] => {
            let all: Vec<_> = originals.iter().map(tags_of).collect();
            let first = all.first().cloned().unwrap_or_default();
            first.into_iter().filter(|tag| all.iter().all(|tags| tags.contains(tag))).collect()
        }
        given => joined_tags(given, &[]),
    };
    let facts = Facts {
        relevance: relevance.unwrap_or(Relevance::DEFAULT),
        usefulness: Relevance::DEFAULT,
        ratings: 0,
        remembered_at: now,
        remembered_by: author.to_owned(),
        project,
        summary_of: originals.iter().map(|entry| entry.key.clone()).collect(),
    };
    (facts, tags)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::store::conformance::an_entry;

    fn original(key: &str, relevance: f64, tags: &[&str], revision: i64) -> Entry {
        let facts =
            Facts { relevance: Relevance::nearest(relevance), ..Facts::of(&an_entry("memory:a", key)) };
        Entry {
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            metadata: Some(facts.to_metadata()),
            revision: Revision::new(revision),
            ..an_entry("memory:a", key)
        }
    }

    #[test]
    fn a_summary_has_what_all_records_have_unless_the_call_says_more() {
        let originals = [original("a", 0.2, &["x", "y", "session:1"], 1), original("b", 0.8, &["y"], 2)];
        let plain = Compact::default();
        let (facts, tags) = decide(&originals, &plain, &[], "Ivy", Timestamp::EPOCH);
        assert_eq!((facts.relevance.value(), tags), (0.8, vec!["y".to_owned()]));
        assert_eq!(facts.summary_of, ["a", "b"]);
        let given = Compact { relevance: Some(Relevance::nearest(0.1)), ..plain };
        let (facts, tags) = decide(&originals, &given, &["z".to_owned()], "Ivy", Timestamp::EPOCH);
        assert_eq!((facts.relevance.value(), tags), (0.1, vec!["z".to_owned()]));
    }

    #[test]
    fn records_that_changed_since_they_were_read_are_not_summarized() {
        let originals = [original("a", 0.2, &[], 3), original("b", 0.8, &[], 7)];
        for (at, expected) in [(None, true), (Some(7), true), (Some(6), false), (Some(9), true)] {
            let checked = check_unchanged(&originals, at.map(Revision::new));
            assert_eq!(checked.is_ok(), expected, "{at:?}");
        }
    }
}
