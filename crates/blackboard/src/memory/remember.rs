//! `memory remember`: writes a record into a level.

use serde::{Deserialize, Serialize};

use super::drain::{MovedBetween, is_missing_level};
use super::levels::{Level, scope_of};
use super::record::{Facts, MAX_RECORD_LENGTH, key_of, tags_of, text_of, tokens_of, with_session};
use super::rules::{Relevance, check_name};
use super::{Memories, SEED_LEVELS, SHORT_TERM, WORKING};
use crate::clock::Timestamp;
use crate::entry::{Actor, Entry, EventWording, RepeatedAnswer, Value, Write, tag_set};
use crate::error::{Code, Error, Refusal, Result};
use crate::fingerprint::Fingerprint;
use crate::revision::{Pending, Revision};
use crate::scope::EndsWith;
use crate::store::Prefetch;
use crate::text::{Cleaner, Kind, TextChanges, TextRules};

/// What a record says.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Text, which loses invisible characters and is shortened to [`MAX_RECORD_LENGTH`] characters.
    Text(String),
    /// JSON, which is stored unchanged.
    Json(Value),
}

/// A record to remember.
#[derive(Clone, Debug, PartialEq)]
pub struct Remember {
    /// What it says.
    pub content: Content,
    /// The level; by default [`WORKING`] with a session, and [`SHORT_TERM`] without one.
    pub level: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its key; by default one that depends on what it says, so that the same text is one record.
    pub key: Option<String>,
    /// How relevant it is; 0.5 by default.
    pub relevance: Option<Relevance>,
    /// On whose behalf.
    pub actor: Actor,
}

impl Remember {
    /// A text.
    pub fn text(text: &str) -> Remember {
        Remember {
            content: Content::Text(text.to_owned()),
            level: None,
            tags: Vec::new(),
            key: None,
            relevance: None,
            actor: Actor::default(),
        }
    }
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Remembered {
    /// The key of the record.
    pub key: String,
    /// Its level.
    pub level: String,
    /// Whether the key did not exist in the level before.
    pub created: bool,
    /// Whether this call wrote it. `false` if the level had the same record.
    pub written: bool,
    /// Its version.
    pub version: u64,
    /// The event that wrote it.
    pub revision: Revision,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// How relevant it is.
    pub relevance: Relevance,
    /// How many tokens it has.
    pub tokens: u64,
    /// What the call moved to other levels, because it was due. A repeated answer has none.
    #[serde(skip_deserializing)]
    pub moved: Vec<MovedBetween>,
    /// The levels that the call created first, because the board had none.
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub defined: Vec<String>,
    /// What was shortened or filtered.
    #[serde(flatten)]
    pub text: TextChanges,
}

impl Pending for Remembered {
    fn resolve(&mut self, first: Revision) {
        self.revision.resolve(first);
    }
}

impl RepeatedAnswer for Remembered {
    fn shown_keys(&self) -> Vec<&str> {
        vec![&self.key]
    }
}

/// A record whose parts were checked.
struct Checked {
    value: Value,
    key: String,
    tags: Vec<String>,
    relevance: Option<Relevance>,
    text: TextChanges,
}

impl Memories<'_> {
    /// Writes a record into a level. The same text in the same level is one record: a repeated call adds tags, keeps the larger
    /// relevance, and else changes nothing. What is due in any level then moves on. A board without levels gets those of
    /// [`SEED_LEVELS`] first.
    ///
    /// ```
    /// # use blackboard::{Board, memory::{Recall, Remember}, search::IndexLocation};
    /// # let board = Board::memory();
    /// let first = board.memories().remember(&Remember::text("Run the tests with --workspace"))?;
    /// assert!(!board.memories().remember(&Remember::text("Run the tests with --workspace"))?.written);
    /// let found = board.memories().recall(&Recall::default(), &IndexLocation::Memory)?;
    /// assert_eq!(found.records[0].key, first.key);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn remember(&self, request: &Remember) -> Result<Remembered> {
        let by_default = if request.actor.session.is_some() { WORKING } else { SHORT_TERM };
        let level = request.level.as_deref().unwrap_or(by_default);
        check_name(level)?;
        let checked = self.checked(level, request)?;
        let mut defined = Vec::new();
        let remembered = self.remember_in(level, &checked, request);
        let mut remembered = match remembered {
            Err(error) if is_missing_level(error.code()) && self.has_no_levels(level)? => {
                let created = self.define_seed(request.actor.session.as_deref())?;
                let created = created.levels.into_iter().filter(|level| level.changed);
                defined = created.map(|level| level.level.level).collect();
                self.remember_in(level, &checked, request)?
            }
            remembered => remembered?,
        };
        remembered.defined = defined;
        remembered.text = checked.text;
        remembered.moved = self.board.settle_memory();
        Ok(remembered)
    }

    /// Whether the board has no level at all, and this one would be among those that it gets.
    fn has_no_levels(self, level: &str) -> Result<bool> {
        if !SEED_LEVELS.contains(&level) {
            return Ok(false);
        }
        let range = crate::store::Range::scope_policies();
        self.board.read(&[Prefetch::Range(range)], |tx| Ok(Level::all(tx)?.is_empty()))
    }

    fn checked(self, level: &str, request: &Remember) -> Result<Checked> {
        let settings = self.board.settings();
        let (value, text) = match &request.content {
            Content::Text(text) => clean_text(&settings.text, "text", text)?,
            Content::Json(value) => (value.clone(), TextChanges::default()),
        };
        let key = request.key.clone().unwrap_or_else(|| key_of(&value));
        let tags = checked_tags(&request.tags)?;
        let write = Write { tags, ..Write::new(&key, value) };
        let Write { key, value, tags, .. } = write.checked(&scope_of(level), settings)?;
        Ok(Checked { value, key, tags, relevance: request.relevance, text })
    }

    fn remember_in(self, name: &str, checked: &Checked, request: &Remember) -> Result<Remembered> {
        let Checked { value, key, tags, relevance, .. } = checked;
        let scope = scope_of(name);
        let session = request.actor.session.as_deref();
        let mut prefetch = vec![Prefetch::Entry(&scope, key)];
        prefetch.extend(session.map(|session| EndsWith::Memory(session).prefetch()));
        let asked = |asked: Fingerprint| {
            asked
                .text(key)
                .text(value.as_str())
                .each(tags, |asked, tag| asked.text(tag))
                .maybe(relevance.map(Relevance::value))
        };
        let entries = self.board.scope(&scope).acting_as(request.actor.clone());
        entries.commit("memory remember", asked, &prefetch, |editor| {
            let level = Level::existing(editor.tx(), name)?;
            if !level.rules.has_key(key) {
                return Err(outside(name, key));
            }
            // Its values are compared, and its tags are merged.
            let before = editor.readable_entry(&scope, key)?;
            let agent = editor.agent().filter(|agent| agent.status.is_live());
            let session = agent.filter(|_| level.rules.session).map(|agent| agent.session_id.clone());
            let project = editor.agent().and_then(|agent| agent.project.clone());
            let given = Given { value, tags, relevance: *relevance, project, session: session.as_deref() };
            let now = editor.now();
            let tokens = tokens_of(&text_of(value));
            let answer = |written, created, version, revision, expires_at, relevance| Remembered {
                key: key.clone(),
                level: name.to_owned(),
                created,
                written,
                version,
                revision,
                expires_at,
                relevance,
                tokens,
                moved: Vec::new(),
                defined: Vec::new(),
                text: TextChanges::default(),
            };
            let Some((facts, tags)) = decide(before.as_ref(), &given, &editor.author, now) else {
                let Some(before) = before else { return Err(outside(name, key)) };
                let relevance = Facts::of(&before).relevance;
                let (version, revision) = (before.version, before.revision);
                return Ok(answer(false, false, version, revision, before.expires_at, relevance));
            };
            let words = format!("Agent \"{}\" remembered {key} in level {name}", editor.author);
            let write = Write { tags, metadata: Some(facts.to_metadata()), ..Write::new(key, value.clone()) };
            let written = editor.write(&scope, &write, EventWording::InWords(words))?;
            if let Some(session) = &session {
                EndsWith::Memory(session).add(editor.tx(), &scope, &mut editor.changes)?;
            }
            let (version, revision) = (written.version, written.revision);
            Ok(answer(true, written.created, version, revision, written.expires_at, facts.relevance))
        })
    }
}

/// What a call says about a record.
struct Given<'a> {
    value: &'a Value,
    tags: &'a [String],
    relevance: Option<Relevance>,
    project: Option<String>,
    session: Option<&'a str>,
}

/// What to write; `None` if the level has the same record.
fn decide(
    before: Option<&Entry>,
    given: &Given<'_>,
    author: &str,
    now: Timestamp,
) -> Option<(Facts, Vec<String>)> {
    let new = Facts {
        relevance: given.relevance.unwrap_or(Relevance::DEFAULT),
        usefulness: Relevance::DEFAULT,
        ratings: 0,
        remembered_at: now,
        remembered_by: author.to_owned(),
        project: given.project.clone(),
        summary_of: Vec::new(),
    };
    let Some(before) = before.filter(|before| before.value == *given.value) else {
        return Some((new, with_session(given.tags.to_vec(), given.session)));
    };
    let facts = Facts::of(before);
    let old_tags = tags_of(before);
    let tags = super::record::joined_tags(&old_tags, given.tags);
    let relevance = given.relevance.map_or(facts.relevance, |given| given.max(facts.relevance));
    if relevance == facts.relevance && tags == old_tags {
        return None;
    }
    // It still belongs to the session that remembered it first.
    let session = before.tags.iter().find(|tag| super::ended::is_tag_of_session(tag)).cloned();
    let facts = Facts { relevance, ..new.merged(&facts) };
    let mut tags: Vec<_> = tags.into_iter().chain(session).collect();
    tags.sort_unstable();
    Some((facts, tags))
}

/// The value of a text, cleaned and cut.
pub(super) fn clean_text(rules: &TextRules, field: &str, text: &str) -> Result<(Value, TextChanges)> {
    let rules = TextRules { max_description_length: MAX_RECORD_LENGTH, ..rules.clone() };
    let mut cleaner = Cleaner::new(&rules);
    let text = cleaner.clean(field, Kind::Description, text)?;
    if text.trim().is_empty() {
        return Err(Error::invalid(format!("the {field} is empty")));
    }
    Ok((Value::of(text.trim())?, cleaner.changes()))
}

/// The tags of a call. A tag that means a session belongs to the board.
pub(super) fn checked_tags(tags: &[String]) -> Result<Vec<String>> {
    let tags = tag_set(tags.to_vec())?;
    if let Some(tag) = tags.iter().find(|tag| super::ended::is_tag_of_session(tag)) {
        let message = format!("tag {tag} says to which session a record belongs: choose another one");
        return Err(Error::invalid(message));
    }
    if tags.len() == crate::entry::MAX_TAGS {
        return Err(Error::invalid("a memory record has at most 63 tags"));
    }
    Ok(tags)
}

fn outside(level: &str, key: &str) -> Error {
    let message = format!("the patterns of memory level {level} do not match the key {key}");
    Refusal::new(Code::InvalidValue, message).hint("leave out the key, or choose another level").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::an_entry;

    #[test]
    fn a_repeated_record_gains_tags_and_relevance_and_nothing_else() {
        let value = Value::of("text").unwrap();
        let now = Timestamp::from_millis(5_000);
        let owned = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
        let given = |tags: &[&str], relevance: Option<f64>| (owned(tags), relevance.map(Relevance::nearest));
        let facts = Facts {
            relevance: Relevance::nearest(0.5),
            usefulness: Relevance::nearest(0.8),
            ratings: 2,
            remembered_at: Timestamp::from_millis(1_000),
            remembered_by: "Oak".to_owned(),
            project: None,
            summary_of: Vec::new(),
        };
        let before = Entry {
            value: value.clone(),
            tags: owned(&["a", "session:s1"]),
            metadata: Some(facts.to_metadata()),
            ..an_entry("memory:working", "k")
        };
        for ((tags, relevance), expected) in [
            (given(&[], None), None),
            (given(&["a"], Some(0.5)), None),
            (given(&["a"], Some(0.1)), None),
            (given(&["b"], None), Some((0.5, owned(&["a", "b", "session:s1"])))),
            (given(&[], Some(0.9)), Some((0.9, owned(&["a", "session:s1"])))),
        ] {
            let given = Given { value: &value, tags: &tags, relevance, project: None, session: Some("s2") };
            let decided = decide(Some(&before), &given, "Ivy", now);
            if let Some((facts, _)) = &decided {
                assert_eq!((facts.ratings, facts.remembered_by.as_str()), (2, "Oak"));
            }
            let decided = decided.map(|(facts, tags)| (facts.relevance.value(), tags));
            assert_eq!(decided, expected, "{tags:?}, {relevance:?}");
        }
        // Another text under the same key is another record.
        let other = Value::of("other").unwrap();
        let given = Given { value: &other, tags: &[], relevance: None, project: None, session: Some("s2") };
        let (facts, tags) = decide(Some(&before), &given, "Ivy", now).unwrap();
        assert_eq!((facts.remembered_by.as_str(), facts.ratings, tags), ("Ivy", 0, owned(&["session:s2"])));
    }

    #[test]
    fn tags_of_sessions_belong_to_the_board() {
        let owned = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
        assert_eq!(checked_tags(&owned(&["b", "a"])).unwrap(), ["a", "b"]);
        assert_eq!(checked_tags(&owned(&["session:x"])).unwrap_err().code(), Code::InvalidValue);
    }
}
