//! The stored form of a record: an entry whose metadata says how relevant it is, and who remembered it when.
//!
//! Another program may have written an entry of a level. What its metadata does not say, or says wrongly, has a default.

use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use super::ended::{is_tag_of_session, tag_of_session};
use super::rules::Relevance;
use crate::clock::Timestamp;
use crate::entry::{Entry, MAX_TAGS, Value};
use crate::fingerprint::Fingerprint;
use crate::metadata::Metadata;
use crate::revision::Revision;
use crate::search::estimate_tokens;

/// How many characters the text of a record has at most. More is a document, which belongs into a file.
pub const MAX_RECORD_LENGTH: usize = 4_000;

/// How keys of records begin that a caller did not choose.
pub(super) const KEY_PREFIX: &str = "memory_record:";

/// How much one rating changes the usefulness.
const RATING_WEIGHT: f64 = 0.1;

/// How much of a summarized record's key list is stored.
const MAX_SOURCES: usize = 200;

/// What the metadata of a record says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Facts {
    pub(super) relevance: Relevance,
    /// A moving average of the ratings.
    pub(super) usefulness: Relevance,
    /// How many ratings there were.
    pub(super) ratings: u64,
    pub(super) remembered_at: Timestamp,
    pub(super) remembered_by: String,
    pub(super) project: Option<String>,
    /// The keys of the records that it summarizes.
    pub(super) summary_of: Vec<String>,
}

impl Facts {
    /// What an entry says.
    pub(super) fn of(entry: &Entry) -> Facts {
        let known = entry.metadata.as_ref().map(Metadata::to_map).unwrap_or_default();
        let number = |name: &str| known.get(name).and_then(Json::as_f64).map(Relevance::nearest);
        let text = |name: &str| known.get(name).and_then(Json::as_str).map(str::to_owned);
        let moment = text("remembered_at").and_then(|text| text.parse::<Timestamp>().ok());
        let sources = known.get("summary_of").and_then(Json::as_array).into_iter().flatten();
        Facts {
            relevance: number("relevance").unwrap_or(Relevance::DEFAULT),
            usefulness: number("usefulness").unwrap_or(Relevance::DEFAULT),
            ratings: known.get("ratings").and_then(Json::as_u64).unwrap_or_default(),
            // A record cannot be older than it says, or newer than its entry.
            remembered_at: moment.unwrap_or(entry.created_at).min(entry.updated_at),
            remembered_by: text("remembered_by").unwrap_or_else(|| entry.created_by.clone()),
            project: text("project"),
            summary_of: sources.filter_map(|key| key.as_str().map(str::to_owned)).take(MAX_SOURCES).collect(),
        }
    }

    /// The stored form.
    pub(super) fn to_metadata(&self) -> Metadata {
        let mut members = Map::new();
        members.insert("relevance".to_owned(), json!(self.relevance));
        members.insert("usefulness".to_owned(), json!(self.usefulness));
        members.insert("ratings".to_owned(), json!(self.ratings));
        members.insert("remembered_at".to_owned(), json!(self.remembered_at));
        members.insert("remembered_by".to_owned(), json!(self.remembered_by));
        if let Some(project) = &self.project {
            members.insert("project".to_owned(), json!(project));
        }
        if !self.summary_of.is_empty() {
            members.insert("summary_of".to_owned(), json!(self.summary_of));
        }
        Metadata::from(members)
    }

    /// After one rating.
    pub(super) fn rated(mut self, is_useful: bool) -> Facts {
        let rating = if is_useful { 1.0 } else { 0.0 };
        let average = (1.0 - RATING_WEIGHT) * self.usefulness.value() + RATING_WEIGHT * rating;
        self.usefulness = Relevance::nearest(average);
        self.ratings = self.ratings.saturating_add(1);
        self
    }

    /// Of two records with the same text.
    pub(super) fn merged(self, other: &Facts) -> Facts {
        let (older, newer) =
            if self.remembered_at <= other.remembered_at { (&self, other) } else { (other, &self) };
        let rated = if self.ratings >= other.ratings { &self } else { other };
        Facts {
            relevance: self.relevance.max(other.relevance),
            usefulness: rated.usefulness,
            ratings: rated.ratings,
            // It is as fresh as the last time that it was remembered, by the agent that did so first.
            remembered_at: newer.remembered_at,
            remembered_by: older.remembered_by.clone(),
            project: older.project.clone().or_else(|| newer.project.clone()),
            summary_of: if self.summary_of.is_empty() {
                other.summary_of.clone()
            } else {
                self.summary_of.clone()
            },
        }
    }
}

/// The key of a record without a key of its own: the same text has the same key, so a repeated call changes nothing.
pub(super) fn key_of(value: &Value) -> String {
    format!("{KEY_PREFIX}{}", Fingerprint::new().text(value.as_str()))
}

/// The text of a record: of a string without its quotation marks, else JSON.
pub(super) fn text_of(value: &Value) -> String {
    serde_json::from_str::<String>(value.as_str()).unwrap_or_else(|_| value.as_str().to_owned())
}

/// About how many tokens a text has: rather too many than too few.
pub(super) fn tokens_of(text: &str) -> u64 {
    estimate_tokens(text) as u64
}

/// The tags of a record without the one that says to which session it belongs.
pub(super) fn tags_of(entry: &Entry) -> Vec<String> {
    entry.tags.iter().filter(|tag| !is_tag_of_session(tag)).cloned().collect()
}

/// The tags of two records together, as many as an entry may have.
pub(super) fn joined_tags(first: &[String], second: &[String]) -> Vec<String> {
    let mut tags = first.to_vec();
    for tag in second {
        // One place is for the tag of a session.
        if tags.len() < MAX_TAGS - 1 && !tags.contains(tag) {
            tags.push(tag.clone());
        }
    }
    tags.sort_unstable();
    tags
}

/// The same tags with the one of the session, if it has one.
pub(super) fn with_session(mut tags: Vec<String>, session: Option<&str>) -> Vec<String> {
    tags.extend(session.map(tag_of_session));
    tags.sort_unstable();
    tags
}

/// A record, as `list` and batches show it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Record {
    pub(super) entry_revision: Revision,
    pub(super) key: String,
    pub(super) text: String,
    pub(super) tags: Vec<String>,
    #[serde(skip)]
    pub(super) facts: Facts,
}

impl Record {
    pub(super) fn of(entry: &Entry) -> Record {
        Record {
            entry_revision: entry.revision,
            key: entry.key.clone(),
            text: text_of(&entry.value),
            tags: tags_of(entry),
            facts: Facts::of(entry),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(relevance: f64, usefulness: f64, seconds: i64) -> Facts {
        Facts {
            relevance: Relevance::nearest(relevance),
            usefulness: Relevance::nearest(usefulness),
            ratings: 0,
            remembered_at: Timestamp::from_millis(seconds * 1000),
            remembered_by: format!("at {seconds}"),
            project: None,
            summary_of: Vec::new(),
        }
    }

    #[test]
    fn usefulness_is_a_moving_average() {
        for (before, is_useful, after) in
            [(0.5, true, 0.55), (0.5, false, 0.45), (1.0, true, 1.0), (0.0, false, 0.0), (0.9, false, 0.81)]
        {
            let rated = facts(0.5, before, 0).rated(is_useful);
            assert_eq!((rated.usefulness.value(), rated.ratings), (after, 1), "{before}, {is_useful}");
        }
    }

    #[test]
    fn equal_records_become_one_that_keeps_the_better_facts() {
        let merged = facts(0.9, 0.5, 10).merged(&facts(0.4, 0.5, 20).rated(true));
        assert_eq!((merged.relevance.value(), merged.usefulness.value(), merged.ratings), (0.9, 0.55, 1));
        assert_eq!((merged.remembered_by.as_str(), merged.remembered_at.millis()), ("at 10", 20_000));
    }

    #[test]
    fn the_same_text_has_the_same_key() {
        let value = |text: &str| Value::of(text).unwrap();
        assert_eq!(key_of(&value("a")), key_of(&value("a")));
        assert_ne!(key_of(&value("a")), key_of(&value("b")));
        assert!(key_of(&value("a")).starts_with("memory_record:"));
    }
}
