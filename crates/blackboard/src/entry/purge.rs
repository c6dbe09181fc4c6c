//! `purge`: erases a key with its history, for a secret that was written by mistake.
//!
//! Every version of the key is erased, with its value, tags and metadata. The events of the key keep their ids,
//! times, types and authors, because readers depend on them, and lose everything else. Remembered answers lose the
//! value too. A row that another program has damaged is erased completely, because it may hold the value. One event
//! reports the purge, and its version begins the history of the key again. After the commit the store erases the
//! remains in its files.

use serde::{Deserialize, Serialize};

use super::rules::check_not_reserved;
use super::txn::forget_value;
use super::wording::{about, named};
use super::{Entry, EntryEditor, EntryVersion, RepeatedAnswer, Scope, Value, check_key};
use crate::error::{Code, Error, Fault, Refusal, Result};
use crate::event::{Event, EventType, NewEvent, TargetType};
use crate::hint::Hint;
use crate::metadata::Metadata;
use crate::revision::{Pending, Revision};
use crate::scope::{AccessOperation, prefetch_policies};
use crate::store::{Erasure, Key, Page, Prefetch, Range, RememberedCall};
use crate::unreadable::if_readable;

/// The result of a purge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purged {
    /// The scope.
    pub scope: String,
    /// The key.
    pub key: String,
    /// How many versions were erased; none if an earlier purge has erased them.
    pub versions: usize,
    /// How many remembered answers lost the value, or were removed because they cannot be read.
    pub answers: usize,
    /// The event that reports the purge.
    pub revision: Revision,
    /// Whether the files of the board no longer contain anything of it. If not, remove what `remains` names, and purge
    /// the key again.
    pub scrubbed: bool,
    /// Why the files may still contain something of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remains: Vec<String>,
}

impl Pending for Purged {
    fn resolve(&mut self, first: Revision) {
        self.revision.resolve(first);
    }
}

impl RepeatedAnswer for Purged {}

/// What a purge would erase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PurgePlan {
    /// The scope.
    pub scope: String,
    /// The key.
    pub key: String,
    /// How many versions.
    pub versions: usize,
    /// How many remembered answers hold a value of the key, or cannot be read.
    pub answers: usize,
}

impl Scope<'_> {
    /// Erases a key with its history: the entry, its versions, the content of its events, and the remains in the
    /// files of the board. One event reports it, without the value. A deleted key can be purged as long as the event
    /// log knows it. If another session holds the entry, the purge is refused.
    ///
    /// A purge rewrites the files of the board, and writers wait for that. If a reader still uses an older state, or the
    /// user may not rewrite the files of a server, the answer is not `scrubbed`. Purging the key again then scrubs the files and adds no event.
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
                let found = StoredKey::read(editor, &self.name, key)?;
                let (place, now) = (editor.next_event(), editor.now());
                let mut purged = Purged {
                    scope: self.name.clone(),
                    key: key.to_owned(),
                    versions: 0,
                    answers: 0,
                    revision: found.newest.entry.revision,
                    scrubbed: false,
                    remains: Vec::new(),
                };
                if let Some(decision) = decide(found, &editor.author, place, now) {
                    purged.versions = decision.versions;
                    purged.answers = decision.answers();
                    purged.revision = Revision::of_event(place);
                    editor.purge(decision)?;
                }
                Ok(purged)
            },
        )?;
        self.board.pages().forget_purged(&self.name)?;
        purged.remains = match self.board.store().scrub() {
            Err(error) if error.code() == Code::Busy => vec![error.to_string()],
            remains => remains.map_err(|error| not_scrubbed(key, error))?,
        };
        purged.scrubbed = purged.remains.is_empty();
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
        let prefetch = self.read_by_purge(key).into_iter().chain(actor.prefetch());
        let prefetch: Vec<_> = prefetch.chain(prefetch_policies(&self.name)).collect();
        self.board.read(&prefetch, |tx| {
            let mut editor = EntryEditor::new(self.board, tx, &actor)?;
            let found = StoredKey::read(&mut editor, &self.name, key)?;
            let decision = decide(found, &editor.author, 0, editor.now());
            let (versions, answers) = decision.map_or((0, 0), |all| (all.versions, all.answers()));
            Ok(PurgePlan { scope: self.name.clone(), key: key.to_owned(), versions, answers })
        })
    }

    fn read_by_purge<'a>(&'a self, key: &'a str) -> [Prefetch<'a>; 2] {
        [Prefetch::Entry(&self.name, key), Prefetch::Range(Range::operations())]
    }
}

/// What the board stores about a key.
struct StoredKey {
    /// The newest version, without its value.
    newest: EntryVersion,
    /// Every version with a history before it, the newest first; no purge is one of them.
    versions: Vec<Erased>,
    /// Calls whose remembered answer holds a value of the key.
    remembered: Vec<RememberedCall>,
    /// Calls whose remembered answer cannot be read and may hold a value of the key.
    damaged_calls: Vec<Key>,
}

/// A version that is erased.
struct Erased {
    revision: Revision,
    /// Its event, unless that was pruned.
    event: Option<Event>,
}

impl StoredKey {
    fn read(editor: &mut EntryEditor<'_>, scope: &str, key: &str) -> Result<StoredKey> {
        editor.check_access(AccessOperation::Delete, scope, key)?;
        editor.open_to_purge(scope, key)?;
        editor.refuse_if_held(scope, key)?;
        if editor.has_visible(scope, key)? {
            // A lock or a reservation ends by its own verb. Its history can be purged afterwards.
            check_not_reserved(scope)?;
        }
        let (mut newest, mut versions, mut unreadable) = (None, Vec::new(), 0);
        let last = editor.newest_version(scope, key)?;
        let mut next = last;
        while let Some(revision) = next {
            editor.tx.prefetch(&[Prefetch::Version(revision), Prefetch::Events(page_at(revision))])?;
            let version = match editor.tx.version(revision) {
                // It is erased like the others.
                Err(error) if error.is_unreadable_row() => None,
                Ok(None) => break,
                version => version?,
            };
            if version.as_ref().is_none_or(|version| !version.is_purge()) {
                versions.push(Erased { revision, event: event_at(editor, revision)? });
            }
            let Some(version) = version else {
                unreadable += 1;
                next = previous_of(editor, revision)?;
                if next.is_none() {
                    add_versions_of_log(editor, scope, key, &mut versions)?;
                }
                continue;
            };
            next = version.previous;
            // A history may be too large for memory, so values are not kept.
            newest.get_or_insert_with(|| {
                let entry = Entry { value: Value::null(), ..version.entry };
                // The unreadable versions after it count, too.
                let entry = Entry { version: entry.version + unreadable, ..entry };
                EntryVersion { entry, ..version }
            });
        }
        let newest = match (newest, last) {
            (Some(newest), _) => newest,
            (None, Some(revision)) if unreadable > 0 => {
                nothing_readable(editor, scope, key, revision, versions.len() as u64)
            }
            _ => {
                check_key(scope, key)?;
                return Err(unknown(scope, key));
            }
        };
        let (calls, damaged_calls) = remembered_calls(editor)?;
        let remembered = calls.into_iter().filter_map(|call| forget_value(call, scope, key)).collect();
        Ok(StoredKey { newest, versions, remembered, damaged_calls })
    }
}

/// The version before one that cannot be read.
fn previous_of(editor: &EntryEditor<'_>, revision: Revision) -> Result<Option<Revision>> {
    editor.tx.prefetch(&[Prefetch::VersionHeads(revision.previous(), revision)])?;
    let heads = editor.tx.version_heads(revision.previous(), revision)?;
    Ok(heads.first().and_then(|head| head.previous).filter(|previous| *previous < revision))
}

/// Adds the versions that no other version leads to, because the link to them cannot be read: the event log names their key.
fn add_versions_of_log(
    editor: &EntryEditor<'_>,
    scope: &str,
    key: &str,
    versions: &mut Vec<Erased>,
) -> Result<()> {
    const PAGE: usize = 1000;
    let is_of_key = |event: &Event| {
        let metadata = event.metadata.as_ref().map(Metadata::to_map).unwrap_or_default();
        event.event_type != EventType::EntryPurged
            && event.target_type == Some(TargetType::Entry)
            && event.target_id.as_deref() == Some(key)
            && metadata.get("scope").and_then(|scope| scope.as_str()) == Some(scope)
    };
    editor.tx.prefetch(&[Prefetch::Revision])?;
    let mut after = editor.tx.floor()?;
    loop {
        let page = Page::after(after, PAGE);
        editor.tx.prefetch(&[Prefetch::Events(page)])?;
        let mut events = editor.tx.events(&page)?;
        let Some(last) = events.last() else { return Ok(()) };
        after = last.id;
        events.retain(is_of_key);
        let heads = events.iter().map(|event| Prefetch::VersionHeads(event.id.previous(), event.id));
        editor.tx.prefetch(&heads.collect::<Vec<_>>())?;
        for event in events {
            let revision = event.id;
            let is_new = versions.iter().all(|version| version.revision != revision);
            if is_new && !editor.tx.version_heads(revision.previous(), revision)?.is_empty() {
                versions.push(Erased { revision, event: Some(event) });
            }
        }
    }
}

/// A replacement for the newest version of a key of which no version can be read.
fn nothing_readable(
    editor: &EntryEditor<'_>,
    scope: &str,
    key: &str,
    revision: Revision,
    versions: u64,
) -> EntryVersion {
    let entry = Entry {
        scope: scope.to_owned(),
        key: key.to_owned(),
        value: Value::null(),
        version: versions,
        revision,
        created_at: editor.now(),
        created_by: editor.author.clone(),
        updated_at: editor.now(),
        updated_by: editor.author.clone(),
        expires_at: None,
        tags: Vec::new(),
        metadata: None,
        session_id: None,
        fence: None,
    };
    EntryVersion { entry, previous: None, removed: false }
}

/// The calls whose answers are remembered, and the keys of those that cannot be read. All are read in one range, so
/// that none is added meanwhile; one by one only if that fails.
fn remembered_calls(editor: &EntryEditor<'_>) -> Result<(Vec<RememberedCall>, Vec<Key>)> {
    let (tx, range) = (editor.tx, Range::operations());
    match tx.rows::<RememberedCall>(&range) {
        Err(error) if error.is_unreadable_row() => {}
        calls => return Ok((calls?, Vec::new())),
    }
    tx.prefetch(&[Prefetch::Keys(range.clone(), usize::MAX)])?;
    let mut keys = Vec::new();
    for key in tx.keys(&range, usize::MAX)? {
        // A row whose key cannot be read cannot be removed.
        keys.extend(if_readable(key.map(Some))?);
    }
    tx.prefetch(&keys.iter().cloned().map(Prefetch::Row).collect::<Vec<_>>())?;
    let (mut calls, mut damaged) = (Vec::new(), Vec::new());
    for key in keys {
        match tx.row::<RememberedCall>(&key) {
            Err(error) if error.is_unreadable_row() => damaged.push(key),
            call => calls.extend(call?),
        }
    }
    Ok((calls, damaged))
}

/// The event with this id, unless it was pruned.
fn event_at(editor: &EntryEditor<'_>, revision: Revision) -> Result<Option<Event>> {
    Ok(editor.tx.events(&page_at(revision))?.into_iter().find(|event| event.id == revision))
}

/// The page with only this event.
fn page_at(revision: Revision) -> Page<'static> {
    Page { until: revision, ..Page::after(revision.previous(), 1) }
}

/// What a purge changes.
pub(super) struct Decision {
    pub(super) event: NewEvent,
    pub(super) erase: Vec<Erasure>,
    /// The calls, with answers that do not hold the value.
    pub(super) remembered: Vec<RememberedCall>,
    /// The calls that cannot be read: each is removed, because its answer may hold the value.
    pub(super) damaged_calls: Vec<Key>,
    versions: usize,
}

impl Decision {
    fn answers(&self) -> usize {
        self.remembered.len() + self.damaged_calls.len()
    }
}

/// The changes; none if an earlier purge has erased everything. The event of the purge is at this position in its
/// commit.
fn decide(found: StoredKey, author: &str, place: usize, now: crate::clock::Timestamp) -> Option<Decision> {
    let StoredKey { newest, versions, remembered, damaged_calls } = found;
    if versions.is_empty() && remembered.is_empty() && damaged_calls.is_empty() {
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
    Some(Decision { event, erase, remembered, damaged_calls, versions: versions.len() })
}

impl Erased {
    /// The new content of its event.
    fn erasure(&self, scope: &str, key: &str) -> Erasure {
        let metadata = self.event.as_ref().and_then(|event| event.metadata.as_ref());
        let mut kept = metadata.map(Metadata::to_map).unwrap_or_default();
        kept.retain(|name, _| ["op", "scope"].contains(&name.as_str()));
        // Also if the metadata cannot be read: readers ask for the scope.
        kept.insert("scope".to_owned(), scope.into());
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
        let found = StoredKey {
            newest: version(7),
            versions: vec![
                erased(7, r#"{"op":"update","scope":"team","note":"s3cret"}"#),
                Erased { revision: Revision::new(4), event: None },
            ],
            remembered: Vec::new(),
            damaged_calls: Vec::new(),
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
        let found = StoredKey {
            newest: version(7),
            versions: Vec::new(),
            remembered: Vec::new(),
            damaged_calls: Vec::new(),
        };
        assert!(decide(found, "Ivy", 0, Timestamp::EPOCH).is_none());
    }
}
