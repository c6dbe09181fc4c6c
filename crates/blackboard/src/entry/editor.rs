//! [`EntryEditor`]: what one commit does to entries, and the rules of entries. Every change of an entry is made here, whichever
//! verb asks for it.
//!
//! - **Actor.** The session that acts has to exist. The author is the name that the caller gives, or the name of the session's
//!   agent, or `cli`.
//! - **Fence tokens.** A commit that names a lock or a work item is refused unless that is held at exactly this revision.
//! - **Leases.** An entry with a lease can be changed by its session alone, and is removed in the commit that ends the session.
//!   Its fence token is the revision of the write that took the lease.
//! - **Expiry.** An entry whose time to live is over is invisible. It is removed, with its own event, before anything else
//!   happens to its key.
//! - **Versions.** The version counts the writes of a key. It continues after a removal for as long as the tombstone is kept.
//!
//! [`decide`] is the rule of a write: the entry before and the circumstances in, the entry after or a refusal out. The editor
//! reads each key once, sees its own changes (a commit may write, read and delete the same key), adds an event for each
//! change, and puts each key once. The text of events and refusals is in `wording.rs`.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::purge::Decision;
use super::wording::{
    EventWording, Removal, about, conflict, exists, held, named, no_session_for_lease, reserved_scope,
    stale_fence,
};
use super::{
    By, Deleted, Entry, EntryVersion, FILES, Fence, LOCKS, Lease, Scope, Tombstone, Value, Write, Written,
    check_key, check_known_scope, check_scope, known_tag_set,
};
use crate::agent::{Agent, AgentStatus, existing as existing_agent};
use crate::board::Board;
use crate::clock::Timestamp;
use crate::error::{Code, Error, Refusal, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::fingerprint::Fingerprint;
use crate::metadata::Metadata;
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Prefetch, Range, Row, Tx};
use crate::text::Cleaner;
use crate::work::{Status, WorkItem};

/// The author without a name and without a session.
const NO_AUTHOR: &str = "cli";

/// What one commit does to entries.
pub(crate) struct EntryEditor<'a> {
    board: &'a Board,
    pub(super) tx: &'a dyn Tx,
    pub(crate) changes: Changes,
    pub(super) author: String,
    agent: Option<Agent>,
    /// Where in `states` each key is.
    keys: BTreeMap<(String, String), usize>,
    states: Vec<KeyState>,
    /// The size of all values that the commit found under its keys, writes and returns.
    bytes: usize,
    /// How many operations on keys there were.
    operations: usize,
}

/// One key: as it is stored, and as the commit leaves it.
struct KeyState {
    is_stored: bool,
    has_tombstone: bool,
    current: Option<Entry>,
    last: LastVersion,
    changed: bool,
}

/// What a new version of a key continues from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LastVersion {
    version: u64,
    revision: Option<Revision>,
}

/// The circumstances of a write, beside the entry before it.
pub(super) struct Circumstances<'a> {
    pub(super) scope: &'a str,
    pub(super) author: &'a str,
    /// The session that acts.
    pub(super) session: Option<&'a str>,
    /// The version and the revision that the entry gets.
    pub(super) version: u64,
    pub(super) revision: Revision,
    pub(super) now: Timestamp,
}

/// What a key becomes by a write.
pub(super) fn decide(
    write: &Write,
    before: Option<&Entry>,
    circumstances: &Circumstances<'_>,
) -> Result<Entry> {
    let Circumstances { scope, author, session, version, revision, now } = *circumstances;
    check_ttl(write.ttl)?;
    check_conditions(write, before, scope)?;
    let leased = before.and_then(|before| before.session_id.clone());
    let (session_id, fence) = match leased {
        Some(holder) => (Some(holder), before.and_then(|before| before.fence)),
        None => match session.filter(|_| write.lease) {
            Some(session) => (Some(session.to_owned()), Some(revision)),
            None => (None, None),
        },
    };
    let (mut tags, mut metadata) = (write.tags.clone(), write.metadata.clone());
    let mut expires_at = write.ttl.map(|ttl| now.plus(ttl));
    if let Some(before) = before.filter(|_| write.merge) {
        tags = known_tag_set(tags.into_iter().chain(before.tags.iter().cloned()).collect())?;
        metadata = merged(before.metadata.as_ref(), metadata)?;
        expires_at = expires_at.or(before.expires_at);
    }
    Ok(Entry {
        scope: scope.to_owned(),
        key: write.key.clone(),
        value: write.value.clone(),
        version,
        revision,
        created_at: before.map_or(now, |before| before.created_at),
        created_by: before.map_or(author, |before| &before.created_by).to_owned(),
        updated_at: now,
        updated_by: author.to_owned(),
        expires_at,
        tags,
        metadata,
        session_id,
        fence,
    })
}

fn check_conditions(write: &Write, before: Option<&Entry>, scope: &str) -> Result<()> {
    if let Some(before) = before.filter(|_| write.if_absent) {
        return Err(exists(scope, before));
    }
    match write.if_revision {
        Some(expected) if expected != before.map_or(Revision::ZERO, |before| before.revision) => {
            Err(conflict(scope, &write.key, expected, before))
        }
        _ => Ok(()),
    }
}

fn merged(before: Option<&Metadata>, after: Option<Metadata>) -> Result<Option<Metadata>> {
    match (before, after) {
        (Some(before), Some(after)) => before.merged_with(&after).map(Some),
        (before, after) => Ok(after.or_else(|| before.cloned())),
    }
}

/// Whether the session that acts may change an entry that is leased by `holder`.
fn may_change(holder: Option<&str>, session: Option<&str>) -> bool {
    holder.is_none() || holder == session
}

/// Refuses a time to live in which no reader could see the entry.
pub(crate) fn check_ttl(ttl: Option<Duration>) -> Result<()> {
    match ttl {
        Some(ttl) if ttl.as_millis() == 0 => {
            Err(Error::invalid("what lives for less than a millisecond would never be seen"))
        }
        _ => Ok(()),
    }
}

/// Refuses an ordinary change in a scope that has verbs of its own.
pub(super) fn check_not_reserved(scope: &str) -> Result<()> {
    if [LOCKS, FILES].contains(&scope) { Err(reserved_scope(scope)) } else { Ok(()) }
}

/// The entry with this key, unless it has expired.
pub(crate) fn visible(tx: &dyn Tx, key: &Key) -> Result<Option<Entry>> {
    Ok(tx.row::<Entry>(key)?.filter(|entry| !entry.is_expired(tx.now())))
}

/// Refuses a fence token that is stale: the lock or work item is not held at this revision any more.
fn check_fence(tx: &dyn Tx, fence: &Fence) -> Result<()> {
    let (current, expected) = match fence {
        Fence::Lock { name, fence } => {
            let lock = visible(tx, &Key::Entry(LOCKS.to_owned(), name.clone()))?;
            (lock.and_then(|lock| lock.fence), fence)
        }
        Fence::Work { id, fence } => {
            let item = tx.row::<WorkItem>(&Key::WorkItem(id.clone()))?;
            let claimed = item.filter(|item| item.claimed_by.is_some() && item.status != Status::Completed);
            (claimed.and_then(|item| item.fence), fence)
        }
    };
    if current == Some(*expected) { Ok(()) } else { Err(stale_fence(fence, current)) }
}

/// Refuses to end a holding with another fence token than it has: it was lost and acquired again in between.
pub(crate) fn check_own_fence(
    kind: &str,
    name: &str,
    current: Option<Revision>,
    given: Option<Revision>,
    hint: &str,
) -> Result<()> {
    let Some((current, given)) = current.zip(given).filter(|(current, given)| current != given) else {
        return Ok(());
    };
    let message = format!("{kind} {name} is held at fence {current}; fence {given} is not valid any more");
    Err(Refusal::new(Code::StaleFence, message).hint(hint).detail("fence", current.get()).into())
}

/// Refuses the key of a new entry that has invisible characters, and a new scope that has some. Earlier versions accepted
/// more of them, and their scopes and keys stay usable.
fn check_new_name(tx: &dyn Tx, scope: &str, key: &str) -> Result<()> {
    check_key(scope, key)?;
    match check_scope(scope) {
        Ok(()) => Ok(()),
        Err(refused) => {
            let scope = Range::entries(scope, "");
            tx.prefetch(&[Prefetch::Any(scope.clone())])?;
            if tx.any(&scope)? { Ok(()) } else { Err(refused) }
        }
    }
}

impl Board {
    /// The actor, if the name of the author is allowed.
    pub(super) fn checked_by(&self, by: &By) -> Result<By> {
        let mut cleaner = Cleaner::new(&self.settings().text);
        let author = by.author.as_ref().map(|author| cleaner.agent_name(author)).transpose()?;
        if !cleaner.changes().is_empty() {
            return Err(Error::invalid("the name of the author contains markup or is too long"));
        }
        if author.as_ref().is_some_and(String::is_empty) {
            return Err(Error::invalid("the name of the author is empty"));
        }
        Ok(By { author, ..by.clone() })
    }
}

impl Scope<'_> {
    /// Commits what `f` does to entries on behalf of the scope's actor. `asked` adds the request to a fingerprint, by which a
    /// repeated call is recognized.
    pub(super) fn commit<T: Pending + Serialize + DeserializeOwned>(
        &self,
        name: &'static str,
        asked: impl FnOnce(Fingerprint) -> Fingerprint,
        prefetch: &[Prefetch<'_>],
        mut f: impl FnMut(&mut EntryEditor<'_>) -> Result<T>,
    ) -> Result<T> {
        check_known_scope(&self.name)?;
        let by = self.board.checked_by(&self.by)?;
        let asked = || asked(Fingerprint::new().text(&self.name));
        let prefetch: Vec<_> = prefetch.iter().cloned().chain(by.prefetch()).collect();
        let (operation, session) = (by.operation.as_deref(), by.session.as_deref());
        self.board.commit_once(operation, session, name, asked, &prefetch, |tx| {
            let mut editor = EntryEditor::new(self.board, tx, &by)?;
            let answer = f(&mut editor)?;
            Ok((editor.finish()?, answer))
        })
    }
}

impl<'a> EntryEditor<'a> {
    /// Begins, if the session that acts exists and the fence tokens are valid.
    pub(crate) fn new(board: &'a Board, tx: &'a dyn Tx, by: &By) -> Result<EntryEditor<'a>> {
        by.fences.iter().try_for_each(|fence| check_fence(tx, fence))?;
        let agent = by.session.as_deref().map(|session| existing_agent(tx, session)).transpose()?;
        let author = match (&by.author, &agent) {
            (Some(author), _) => author.clone(),
            (None, Some(agent)) => agent.agent_name.clone(),
            (None, None) => NO_AUTHOR.to_owned(),
        };
        Ok(EntryEditor::with(board, tx, author, agent, Changes::new()))
    }

    /// Begins for a session that the same commit registers, with the changes that register it.
    pub(crate) fn after_registration(
        board: &'a Board,
        tx: &'a dyn Tx,
        agent: Agent,
        changes: Changes,
    ) -> EntryEditor<'a> {
        EntryEditor::with(board, tx, agent.agent_name.clone(), Some(agent), changes)
    }

    fn with(
        board: &'a Board,
        tx: &'a dyn Tx,
        author: String,
        agent: Option<Agent>,
        changes: Changes,
    ) -> EntryEditor<'a> {
        let (keys, states) = (BTreeMap::new(), Vec::new());
        EntryEditor { board, tx, changes, author, agent, keys, states, bytes: 0, operations: 0 }
    }

    /// The visible entry, with the changes of this commit.
    pub(crate) fn entry(&mut self, scope: &str, key: &str) -> Result<Option<Entry>> {
        let at = self.open(scope, key)?;
        self.check_budget()?;
        Ok(self.visible_at(at).cloned())
    }

    /// The same for an answer, whose size counts as well.
    pub(super) fn read(&mut self, scope: &str, key: &str) -> Result<Option<Entry>> {
        self.operations += 1;
        let entry = self.entry(scope, key)?;
        self.bytes += entry.as_ref().map_or(0, |entry| entry.value.as_str().len());
        self.check_budget()?;
        Ok(entry)
    }

    /// Writes an entry.
    pub(crate) fn write(&mut self, scope: &str, write: &Write, wording: EventWording) -> Result<Written> {
        self.operations += 1;
        self.bytes += write.value.as_str().len();
        let at = self.open(scope, &write.key)?;
        self.expire_at(at);
        self.check_budget()?;
        self.check_holder(at)?;
        if write.lease {
            self.agent.as_ref().ok_or_else(no_session_for_lease)?.must_be_live()?;
        }
        let KeyState { current, last, .. } = &self.states[at];
        if *last == LastVersion::default() && scope != FILES {
            check_new_name(self.tx, scope, &write.key)?;
        }
        let circumstances = Circumstances {
            scope,
            author: &self.author,
            session: self.session_id(),
            version: last.version + 1,
            revision: Revision::of_event(self.changes.events.len()),
            now: self.tx.now(),
        };
        let entry = decide(write, current.as_ref(), &circumstances)?;
        let created = current.is_none();
        let summary = match wording {
            EventWording::AsEntry => format!("Agent \"{}\" wrote {}", self.author, named(scope, &write.key)),
            EventWording::InWords(words) => words,
        };
        let op = if created { "create" } else { "update" };
        let event = NewEvent::new(EventType::EntryWritten, TargetType::Entry, &write.key, summary)
            .by(self.session_id())
            .with_all(about(scope, op))
            .of_version(EntryVersion { entry: entry.clone(), previous: last.revision, removed: false });
        let written = Written {
            scope: entry.scope.clone(),
            key: entry.key.clone(),
            version: entry.version,
            revision: entry.revision,
            created,
            expires_at: entry.expires_at,
            fence: entry.fence,
        };
        self.changes.event(event);
        let state = &mut self.states[at];
        state.last = LastVersion { version: entry.version, revision: Some(entry.revision) };
        state.current = Some(entry);
        state.changed = true;
        Ok(written)
    }

    /// Deletes an entry; `None` if no entry is visible.
    pub(crate) fn delete(
        &mut self,
        scope: &str,
        key: &str,
        wording: EventWording,
    ) -> Result<Option<Deleted>> {
        self.operations += 1;
        let at = self.open(scope, key)?;
        self.check_budget()?;
        if self.visible_at(at).is_none() {
            return Ok(None);
        }
        self.check_holder(at)?;
        Ok(self.remove_at(at, Removal::Deleted, wording))
    }

    /// Removes an entry that has expired; returns whether it did.
    pub(super) fn expire(&mut self, scope: &str, key: &str) -> Result<bool> {
        let at = self.open(scope, key)?;
        Ok(self.expire_at(at))
    }

    /// Erases a key with its history. The version of its event begins the history again.
    pub(super) fn purge(&mut self, decision: Decision) -> Result<()> {
        let Decision { event, erase, remembered, .. } = decision;
        if let Some(EntryVersion { entry, .. }) = event.version.as_deref() {
            let at = self.open(&entry.scope, &entry.key)?;
            let state = &mut self.states[at];
            state.current = None;
            state.last = LastVersion { version: entry.version, revision: Some(entry.revision) };
            state.changed = true;
        }
        let event = event.by(self.session_id());
        self.changes.event(event);
        self.changes.erase.extend(erase);
        self.changes.put.extend(remembered.into_iter().map(Row::from));
        Ok(())
    }

    /// Refuses if the entry is leased by another session than the one that acts.
    pub(super) fn refuse_if_held(&mut self, scope: &str, key: &str) -> Result<()> {
        let at = self.open(scope, key)?;
        self.check_budget()?;
        self.check_holder(at)
    }

    /// The changes of the commit, with every key in its last state.
    pub(crate) fn finish(mut self) -> Result<Changes> {
        for ((scope, key), at) in std::mem::take(&mut self.keys) {
            let state = &mut self.states[at];
            if !state.changed {
                continue;
            }
            let tombstone = Key::Tombstone(scope.clone(), key.clone());
            if let Some(entry) = state.current.take() {
                if state.has_tombstone {
                    self.changes.remove(tombstone);
                }
                self.changes.put(entry);
                continue;
            }
            // A key that this commit itself created was never stored.
            if state.is_stored {
                self.changes.remove(Key::Entry(scope.clone(), key.clone()));
            }
            // What is written has to have been read.
            self.tx.get(&tombstone)?;
            let LastVersion { version, revision } = state.last;
            self.changes.put(Tombstone { scope, key, version, revision: revision.unwrap_or_default() });
        }
        if let Some(agent) = &self.agent {
            self.board.agents().note_activity(agent, self.tx.now(), &mut self.changes);
        }
        Ok(self.changes)
    }

    /// Reads a key, unless that was done before, and returns its place in `states`.
    fn open(&mut self, scope: &str, key: &str) -> Result<usize> {
        let name = (scope.to_owned(), key.to_owned());
        if let Some(at) = self.keys.get(&name) {
            return Ok(*at);
        }
        let state = KeyState::read(self.tx, &name)?;
        self.bytes += state.current.as_ref().map_or(0, |entry| entry.value.as_str().len());
        self.states.push(state);
        let at = self.states.len() - 1;
        self.keys.insert(name, at);
        Ok(at)
    }

    fn visible_at(&self, at: usize) -> Option<&Entry> {
        self.states[at].current.as_ref().filter(|entry| !entry.is_expired(self.tx.now()))
    }

    fn check_holder(&self, at: usize) -> Result<()> {
        match self.visible_at(at) {
            Some(entry) if !may_change(entry.session_id.as_deref(), self.session_id()) => {
                Err(held(self.tx, entry)?)
            }
            _ => Ok(()),
        }
    }

    /// An expired entry that no sweep has removed yet goes before anything else happens to its key.
    fn expire_at(&mut self, at: usize) -> bool {
        let has_expired =
            self.states[at].current.as_ref().is_some_and(|entry| entry.is_expired(self.tx.now()));
        has_expired && self.remove_at(at, Removal::Expired, EventWording::AsEntry).is_some()
    }

    fn remove_at(&mut self, at: usize, removal: Removal, wording: EventWording) -> Option<Deleted> {
        let place = self.changes.events.len();
        let revision = Revision::of_event(place);
        let state = &mut self.states[at];
        let entry = state.current.take()?;
        let previous = state.last.revision.replace(revision);
        state.changed = true;
        let (scope, key, version) = (entry.scope.clone(), entry.key.clone(), entry.version);
        let entry = Entry { revision: previous.unwrap_or(entry.revision), ..entry };
        let session = self.session_id().filter(|_| removal != Removal::Expired);
        let mut event = removal_event(entry, removal, &self.author, session, place);
        if let EventWording::InWords(words) = wording {
            event.summary = words;
        }
        self.changes.event(event);
        Some(Deleted { scope, key, version, revision })
    }

    /// Whether the commit has as many values as one may have: readers of the event log get a commit as a whole, with the
    /// old value of each of its keys.
    pub(super) fn is_full(&self) -> bool {
        self.bytes > self.board.settings().max_commit_bytes
    }

    /// Refuses to continue if the commit is too large. One operation on one key is allowed whatever its size.
    fn check_budget(&self) -> Result<()> {
        if !self.is_full() || (self.keys.len() <= 1 && self.operations <= 1) {
            return Ok(());
        }
        let limit = self.board.settings().max_commit_bytes;
        let message = format!(
            "one commit can't take more than {limit} bytes of values, with those that it replaces, removes and reads"
        );
        Err(Refusal::new(Code::InvalidValue, message)
            .hint("split it over several calls, or narrow the pattern")
            .into())
    }

    fn session_id(&self) -> Option<&str> {
        self.agent.as_ref().map(|agent| agent.session_id.as_str())
    }
}

impl KeyState {
    fn read(tx: &dyn Tx, (scope, key): &(String, String)) -> Result<KeyState> {
        let current = tx.row::<Entry>(&Key::Entry(scope.clone(), key.clone()))?;
        let tombstone = match current {
            Some(_) => None,
            None => tx.row::<Tombstone>(&Key::Tombstone(scope.clone(), key.clone()))?,
        };
        let last = match (&current, &tombstone) {
            (Some(entry), _) => LastVersion { version: entry.version, revision: Some(entry.revision) },
            (None, Some(left)) => LastVersion { version: left.version, revision: Some(left.revision) },
            (None, None) => LastVersion::default(),
        };
        let (is_stored, has_tombstone) = (current.is_some(), tombstone.is_some());
        Ok(KeyState { is_stored, has_tombstone, current, last, changed: false })
    }
}

/// The entries that a session leases.
pub(crate) fn leases_of(tx: &dyn Tx, session: &str) -> Result<Vec<Entry>> {
    let entries = tx.rows::<Entry>(&Range::leased_by(session))?;
    if entries.is_empty() {
        return Ok(entries);
    }
    let next: Vec<_> = entries.iter().map(|entry| Prefetch::Entry(&entry.scope, &entry.key)).collect();
    tx.prefetch(&next)?;
    for entry in &entries {
        // Each leaves a tombstone, and what is written has to have been read.
        tx.get(&Key::Tombstone(entry.scope.clone(), entry.key.clone()))?;
    }
    Ok(entries)
}

/// Removes the leased entries of a session that ends, with an event and a tombstone each, in a commit that does nothing else to
/// their keys. An entry that had expired before was not held any more, and is reported as expired.
pub(crate) fn release_leases(
    agent: &Agent,
    becomes: AgentStatus,
    entries: Vec<Entry>,
    now: Timestamp,
    changes: &mut Changes,
) -> Vec<Lease> {
    let mut released = Vec::new();
    for entry in entries {
        let removal = match becomes {
            _ if entry.is_expired(now) => Removal::Expired,
            AgentStatus::Stale => Removal::SessionStale,
            AgentStatus::Active | AgentStatus::Idle | AgentStatus::Completed => Removal::SessionEnded,
        };
        if removal != Removal::Expired {
            released.push(Lease::of(&entry));
        }
        let session = (removal == Removal::SessionEnded).then_some(agent.session_id.as_str());
        let (scope, key, version) = (entry.scope.clone(), entry.key.clone(), entry.version);
        let event = removal_event(entry, removal, &agent.agent_name, session, changes.events.len());
        let revision = changes.event(event);
        changes.remove(Key::Entry(scope.clone(), key.clone()));
        changes.put(Tombstone { scope, key, version, revision });
    }
    released
}

/// The event of a removal, at this place of its commit.
fn removal_event(
    entry: Entry,
    removal: Removal,
    author: &str,
    session: Option<&str>,
    place: usize,
) -> NewEvent {
    let summary = removal.summary(author, &entry);
    // No actor removes what expires: the author of the last write stays.
    let remover = if removal == Removal::Expired { entry.updated_by.clone() } else { author.to_owned() };
    let (previous, revision) = (Some(entry.revision), Revision::of_event(place));
    NewEvent::new(removal.event_type(), TargetType::Entry, &entry.key, summary)
        .by(session)
        .with_all(about(&entry.scope, removal.op()))
        .of_version(EntryVersion {
            entry: Entry { revision, updated_by: remover, value: Value::null(), ..entry },
            previous,
            removed: true,
        })
}

/// What verbs ask beside entries.
impl EntryEditor<'_> {
    /// The time of the commit.
    pub(crate) fn now(&self) -> Timestamp {
        self.tx.now()
    }

    /// The session that acts, for what needs one.
    pub(crate) fn session(&self) -> Result<Agent> {
        self.agent.clone().ok_or_else(no_session_for_lease)
    }

    /// Announces entries whose keys are known only now.
    pub(crate) fn prefetch_entries<'k>(
        &self,
        scope: &str,
        keys: impl Iterator<Item = &'k String>,
    ) -> Result<()> {
        self.tx.prefetch(&keys.map(|key| Prefetch::Entry(scope, key)).collect::<Vec<_>>())
    }

    /// The place that its next event will have in the commit.
    pub(super) fn next_event(&self) -> usize {
        self.changes.events.len()
    }

    /// The newest version of a key, also of a removed one.
    pub(super) fn newest_version(&mut self, scope: &str, key: &str) -> Result<Option<Revision>> {
        let at = self.open(scope, key)?;
        Ok(self.states[at].last.revision)
    }

    /// Adds an event about more than one entry, made from the author and its session.
    pub(super) fn add_event(&mut self, event: impl FnOnce(&str, Option<&str>) -> NewEvent) -> Revision {
        let event = event(&self.author, self.session_id());
        self.changes.event(event)
    }
}
