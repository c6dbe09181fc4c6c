//! `purge`: a key is erased with its history, for a secret that was written by mistake.
//!
//! Every version of the key goes, with its value, tags and metadata. The events of the key keep their ids, times, types and
//! authors, because readers count on them, and lose everything else. Remembered answers lose the value too. One event
//! reports the purge, and its version begins the history of the key again. After the commit the store erases what is left
//! of all that in its files.

use serde::{Deserialize, Serialize};

use super::rules::check_not_reserved;
use super::txn::forget_value;
use super::wording::{about, named};
use super::{Entry, EntryEditor, EntryVersion, Scope, Value, check_key};
use crate::error::{Code, Error, Fault, Refusal, Result};
use crate::event::{Event, EventType, NewEvent, TargetType};
use crate::hint::Hint;
use crate::metadata::Metadata;
use crate::revision::{Pending, Revision};
use crate::store::{Erasure, Operation, Page, Prefetch, Range};

/// What was purged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purged {
    /// The scope.
    pub scope: String,
    /// The key.
    pub key: String,
    /// How many versions were erased; none if an earlier purge has erased them.
    pub versions: usize,
    /// How many remembered answers lost the value.
    pub answers: usize,
    /// The event that reports the purge.
    pub revision: Revision,
    /// Whether the files of the board hold nothing of it any more. If not, a reader still uses an older state of the board:
    /// purge the key again when the reader has ended.
    pub scrubbed: bool,
}

impl Pending for Purged {
    fn resolve(&mut self, first: Revision) {
        self.revision.resolve(first);
    }
}

/// What a purge would erase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PurgePlan {
    /// The scope.
    pub scope: String,
    /// The key.
    pub key: String,
    /// How many versions.
    pub versions: usize,
    /// How many remembered answers hold a value of the key.
    pub answers: usize,
}

impl Scope<'_> {
    /// Erases a key with its history: the entry, its versions, what its events carry, and what the files of the board still
    /// hold of it. One event reports it, without the value. A key that was deleted can be purged as long as the event log
    /// knows it. If another session holds the entry, the purge is refused.
    ///
    /// A purge rewrites the files of the board, and writers wait for that. If a reader still uses an older state, the answer
    /// is not `scrubbed`; purging the key again then scrubs the files, and adds no event.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Value, Write}};
    /// # let board = Board::memory();
    /// let scope = board.scope("team-1");
    /// scope.write(&Write::new("token", Value::of("secret")?))?;
    /// scope.write(&Write::new("token", Value::of("also secret")?))?;
    /// let purged = scope.purge("token")?;
    /// assert_eq!((purged.versions, purged.scrubbed), (2, true));
    /// assert_eq!(scope.read("token")?, None);
    /// assert_eq!(scope.history("token", 10)?.versions.len(), 1);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn purge(&self, key: &str) -> Result<Purged> {
        let mut purged = self.commit(
            "purge",
            |asked| asked.text(key),
            &self.read_by_purge(key),
            |editor| {
                let found = Found::read(editor, &self.name, key)?;
                let (place, now) = (editor.next_event(), editor.now());
                let mut purged = Purged {
                    scope: self.name.clone(),
                    key: key.to_owned(),
                    versions: 0,
                    answers: 0,
                    revision: found.newest.entry.revision,
                    scrubbed: false,
                };
                if let Some(decision) = decide(found, &editor.author, place, now) {
                    purged.versions = decision.versions;
                    purged.answers = decision.remembered.len();
                    purged.revision = Revision::of_event(place);
                    editor.purge(decision)?;
                }
                Ok(purged)
            },
        )?;
        purged.scrubbed = match self.board.store().scrub() {
            Err(error) if error.code() == Code::Busy => false,
            scrubbed => scrubbed.map_err(|error| not_scrubbed(key, error))?,
        };
        Ok(purged)
    }

    /// What a purge of the key would erase. It is refused as the purge would be.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Value, Write}};
    /// # let board = Board::memory();
    /// let scope = board.scope("team-1");
    /// scope.write(&Write::new("token", Value::of("secret")?))?;
    /// assert_eq!(scope.plan_purge("token")?.versions, 1);
    /// assert!(scope.read("token")?.is_some());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn plan_purge(&self, key: &str) -> Result<PurgePlan> {
        let actor = self.board.checked_actor(&self.actor)?;
        let prefetch: Vec<_> = self.read_by_purge(key).into_iter().chain(actor.prefetch()).collect();
        self.board.read(&prefetch, |tx| {
            let mut editor = EntryEditor::new(self.board, tx, &actor)?;
            let found = Found::read(&mut editor, &self.name, key)?;
            let decision = decide(found, &editor.author, 0, editor.now());
            let (versions, answers) = decision.map_or((0, 0), |all| (all.versions, all.remembered.len()));
            Ok(PurgePlan { scope: self.name.clone(), key: key.to_owned(), versions, answers })
        })
    }

    fn read_by_purge<'a>(&'a self, key: &'a str) -> [Prefetch<'a>; 2] {
        [Prefetch::Entry(&self.name, key), Prefetch::Range(Range::operations())]
    }
}

/// What is known of a key.
struct Found {
    /// The newest version, without its value.
    newest: EntryVersion,
    /// Every version with a history before it, the newest first; no purge is one of them.
    versions: Vec<Erased>,
    /// Calls whose remembered answer holds a value of the key.
    remembered: Vec<Operation>,
}

/// A version that goes.
struct Erased {
    revision: Revision,
    /// Its event, unless that was pruned.
    event: Option<Event>,
}

impl Found {
    fn read(editor: &mut EntryEditor<'_>, scope: &str, key: &str) -> Result<Found> {
        editor.refuse_if_held(scope, key)?;
        if editor.entry(scope, key)?.is_some() {
            // A lock or a reservation ends by its own verb. What is left of it afterwards can be purged.
            check_not_reserved(scope)?;
        }
        let (mut newest, mut versions) = (None, Vec::new());
        let mut next = editor.newest_version(scope, key)?;
        while let Some(revision) = next {
            editor.tx.prefetch(&[Prefetch::Version(revision), Prefetch::Events(page_at(revision))])?;
            let Some(version) = editor.tx.version(revision)? else { break };
            next = version.previous;
            if !version.is_purge() {
                versions.push(Erased { revision, event: event_at(editor, revision)? });
            }
            // A history may be larger than the memory should be: values are not kept.
            let entry = Entry { value: Value::null(), ..version.entry };
            newest.get_or_insert(EntryVersion { entry, ..version });
        }
        let Some(newest) = newest else {
            check_key(scope, key)?;
            return Err(unknown(scope, key));
        };
        let calls = editor.tx.rows::<Operation>(&Range::operations())?;
        let remembered = calls.into_iter().filter_map(|call| forget_value(call, scope, key)).collect();
        Ok(Found { newest, versions, remembered })
    }
}

/// The event with this id, unless it was pruned.
fn event_at(editor: &EntryEditor<'_>, revision: Revision) -> Result<Option<Event>> {
    Ok(editor.tx.events(&page_at(revision))?.into_iter().find(|event| event.id == revision))
}

/// The page that has the event with this id alone.
fn page_at(revision: Revision) -> Page<'static> {
    Page { until: revision, ..Page::after(revision.previous(), 1) }
}

/// What a purge changes.
pub(super) struct Decision {
    pub(super) event: NewEvent,
    pub(super) erase: Vec<Erasure>,
    /// The calls, with answers that do not hold the value.
    pub(super) remembered: Vec<Operation>,
    versions: usize,
}

/// What is to change; nothing if an earlier purge has erased everything. The event of the purge is at this place of its
/// commit.
fn decide(found: Found, author: &str, place: usize, now: crate::clock::Timestamp) -> Option<Decision> {
    let Found { newest, versions, remembered } = found;
    if versions.is_empty() && remembered.is_empty() {
        return None;
    }
    let Entry { scope, key, version, created_at, created_by, .. } = newest.entry;
    let erase = versions.iter().map(|erased| erased.erasure(&scope, &key)).collect();
    let count = match versions.len() {
        1 => "1 version".to_owned(),
        count => format!("{count} versions"),
    };
    let summary = format!("Agent \"{author}\" purged {} ({count})", named(&scope, &key));
    let event = NewEvent::new(EventType::EntryPurged, TargetType::Entry, &key, summary)
        .with_all(about(&scope, "purge"))
        .with("versions", versions.len())
        .of_version(EntryVersion {
            entry: Entry {
                scope,
                key,
                value: Value::null(),
                version,
                revision: Revision::of_event(place),
                created_at,
                created_by,
                updated_at: now,
                updated_by: author.to_owned(),
                expires_at: None,
                tags: Vec::new(),
                metadata: None,
                session_id: None,
                fence: None,
            },
            previous: None,
            removed: true,
        });
    Some(Decision { event, erase, remembered, versions: versions.len() })
}

impl Erased {
    /// What its event becomes.
    fn erasure(&self, scope: &str, key: &str) -> Erasure {
        let metadata = self.event.as_ref().and_then(|event| event.metadata.as_ref());
        let mut kept = metadata.map(Metadata::to_map).unwrap_or_default();
        kept.retain(|name, _| ["op", "scope"].contains(&name.as_str()));
        kept.insert("purged".to_owned(), true.into());
        Erasure {
            event: self.revision,
            summary: format!("{} (purged)", named(scope, key)),
            metadata: Some(kept.into()),
        }
    }
}

fn unknown(scope: &str, key: &str) -> Error {
    let message = format!("key {key} has neither a value nor a history in scope {scope}");
    Refusal::new(Code::EntryNotFound, message).hint(Hint::ListKeys(scope.to_owned())).into()
}

/// The key is purged, and the files of the board could not be scrubbed.
fn not_scrubbed(key: &str, error: Error) -> Error {
    let message = format!("{key} is purged, but the files of the board may still hold its old values");
    Fault::new(error.code(), message).hint("remove the cause, then purge the key again").because(error).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::store::conformance::an_entry;

    fn version(revision: i64) -> EntryVersion {
        let entry = Entry { revision: Revision::new(revision), version: 3, ..an_entry("team", "token") };
        EntryVersion { entry, previous: Some(Revision::new(1)), removed: false }
    }

    fn erased(revision: i64, metadata: &str) -> Erased {
        let event = NewEvent::new(EventType::EntryWritten, TargetType::Entry, "token", "wrote s3cret");
        let mut event = event.at(Revision::new(revision), Revision::new(revision), Timestamp::EPOCH);
        event.metadata = Metadata::from_stored(metadata.to_owned()).ok();
        Erased { revision: Revision::new(revision), event: Some(event) }
    }

    #[test]
    fn a_purge_erases_every_version_and_reports_how_many() {
        let found = Found {
            newest: version(7),
            versions: vec![
                erased(7, r#"{"op":"update","scope":"team","note":"s3cret"}"#),
                Erased { revision: Revision::new(4), event: None },
            ],
            remembered: Vec::new(),
        };
        let decision = decide(found, "Ivy", 0, Timestamp::EPOCH).unwrap();
        assert_eq!(decision.event.summary, r#"Agent "Ivy" purged "token" in scope "team" (2 versions)"#);
        let purge = decision.event.version.unwrap();
        assert!(purge.is_purge());
        assert_eq!((purge.entry.version, purge.entry.updated_by.as_str()), (3, "Ivy"));
        let erased: Vec<_> = decision.erase.iter().map(|erasure| erasure.event.get()).collect();
        assert_eq!(erased, [7, 4]);
        assert_eq!(decision.erase[0].summary, r#""token" in scope "team" (purged)"#);
        let metadata = decision.erase[0].metadata.as_ref().unwrap().to_map();
        assert_eq!(
            serde_json::Value::from(metadata),
            serde_json::json!({"op": "update", "scope": "team", "purged": true})
        );
    }

    #[test]
    fn a_key_that_is_purged_already_changes_nothing() {
        let found = Found { newest: version(7), versions: Vec::new(), remembered: Vec::new() };
        assert!(decide(found, "Ivy", 0, Timestamp::EPOCH).is_none());
    }
}
