//! [`EntryEditor`]: the changes of one commit to entries. Every verb changes entries here.
//!
//! The rules are in `rules.rs`. The editor reads each key once, adds an event for each change, and puts each key
//! once. It sees its own changes: a commit may write, read and delete the same key. It applies the policies of each scope
//! that it writes: the default time to live, the rules for values, and the limit. The text of events and refusals
//! is in `wording.rs`.

mod access;
mod evict;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::purge::Decision;
use super::rules::{Circumstances, LastVersion, author_of, check_fence, check_holder, decide_write};
use super::wording::{EventWording, Removal, about, named, no_session_for_lease};
use super::{
    Actor, Deleted, Entry, EntryHead, EntryVersion, Scope, Tombstone, Value, Write, Written,
    check_known_scope,
};
use crate::agent::{Agent, existing as existing_agent};
use crate::board::Board;
use crate::clock::Timestamp;
use crate::error::{Code, Error, Refusal, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::fingerprint::Fingerprint;
use crate::revision::{Pending, Revision};
use crate::scope::{
    AccessOperation, EvictionQueue, Guard, RuleProtocols, ScopePolicies, add_to_size, check_counted,
    check_value, policies_of, prefetch_policies,
};
use crate::store::{Changes, Key, Prefetch, Range, Row, Tx};
use crate::text::Cleaner;

/// The changes of one commit to entries.
pub(crate) struct EntryEditor<'a> {
    board: &'a Board,
    pub(super) tx: &'a dyn Tx,
    pub(crate) changes: Changes,
    pub(crate) author: String,
    agent: Option<Agent>,
    /// What the caller may do.
    guard: Guard<'a>,
    /// Where in `states` each key is.
    keys: BTreeMap<(String, String), usize>,
    states: Vec<KeyState>,
    /// The scopes in which it writes or removes entries.
    scopes: BTreeMap<String, ScopeState>,
    /// The size of all values that the commit found under its keys, writes and returns.
    bytes: usize,
    /// How many operations on keys there were.
    operations: usize,
    /// How many keys were read only to be evicted.
    evictions: usize,
}

/// One scope: its policies, and how many more entries it has than before.
#[derive(Default)]
struct ScopeState {
    /// Read by the first write.
    policies: OnceCell<Option<Rc<ScopePolicies>>>,
    /// The protocols that they name.
    protocols: RuleProtocols,
    added: i64,
    evictable: EvictionQueue,
    /// Keys of `evictable` that a policy of the program did not choose.
    offered: Vec<usize>,
    /// How many entries it had before, if only the program limits it.
    counted: Option<u64>,
}

/// One key: as it is stored, and as the commit leaves it.
struct KeyState {
    is_stored: bool,
    has_tombstone: bool,
    current: Option<Entry>,
    last: LastVersion,
    changed: bool,
}

/// An answer that is remembered, and repeated for a call with the same idempotency key.
pub(crate) trait RepeatedAnswer {
    /// The keys that it names besides those of the request, which the caller may have no right to read.
    fn shown_keys(&self) -> Vec<&str> {
        Vec::new()
    }
}

impl RepeatedAnswer for Deleted {}

impl RepeatedAnswer for Written {
    fn shown_keys(&self) -> Vec<&str> {
        self.evicted.iter().map(String::as_str).collect()
    }
}

impl RepeatedAnswer for Vec<Written> {
    fn shown_keys(&self) -> Vec<&str> {
        self.iter().flat_map(Written::shown_keys).collect()
    }
}

impl Board {
    /// The actor, if the author's name is allowed.
    pub(super) fn checked_actor(&self, actor: &Actor) -> Result<Actor> {
        let mut cleaner = Cleaner::new(&self.settings().text);
        let author = actor.author.as_ref().map(|author| cleaner.agent_name(author)).transpose()?;
        if !cleaner.changes().is_empty() {
            return Err(Error::invalid("the name of the author contains markup or is too long"));
        }
        if author.as_ref().is_some_and(String::is_empty) {
            return Err(Error::invalid("the name of the author is empty"));
        }
        Ok(Actor { author, ..actor.clone() })
    }
}

impl Scope<'_> {
    /// Commits what `f` does to entries on behalf of the scope's actor. `asked` adds the request to a fingerprint, by which a
    /// repeated call is recognized.
    pub(crate) fn commit<T: Pending + RepeatedAnswer + Serialize + DeserializeOwned>(
        &self,
        name: &'static str,
        asked: impl FnOnce(Fingerprint) -> Fingerprint,
        prefetch: &[Prefetch<'_>],
        mut f: impl FnMut(&mut EntryEditor<'_>) -> Result<T>,
    ) -> Result<T> {
        check_known_scope(&self.name)?;
        let actor = self.board.checked_actor(&self.actor)?;
        let asked = || asked(Fingerprint::new().text(&self.name));
        let prefetch = prefetch.iter().cloned().chain(actor.prefetch());
        let prefetch: Vec<_> = prefetch.chain(prefetch_policies(&self.name)).collect();
        let (operation, session) = (actor.operation.as_deref(), actor.session.as_deref());
        let allowed = |tx: &dyn Tx, answer: &T| {
            let guard = Guard::new(self.board, tx, &actor);
            guard.check_scope(&self.name)?;
            let mut shown = answer.shown_keys().into_iter();
            shown.try_for_each(|key| guard.check(AccessOperation::Read, &self.name, key))
        };
        self.board.commit_once_if(allowed, operation, session, name, asked, &prefetch, |tx| {
            let mut editor = EntryEditor::new(self.board, tx, &actor)?;
            let answer = f(&mut editor)?;
            Ok((editor.finish()?, answer))
        })
    }
}

impl<'a> EntryEditor<'a> {
    /// Begins, if the session that acts exists and the fence tokens are valid.
    pub(crate) fn new(board: &'a Board, tx: &'a dyn Tx, actor: &Actor) -> Result<EntryEditor<'a>> {
        actor.fences.iter().try_for_each(|fence| check_fence(tx, fence))?;
        let agent = actor.session.as_deref().map(|session| existing_agent(tx, session)).transpose()?;
        let author = author_of(actor, agent.as_ref());
        Ok(EntryEditor::with(board, tx, author, agent, Guard::new(board, tx, actor), Changes::new()))
    }

    /// Begins for a session that the same commit registers, with the changes that register it.
    pub(crate) fn after_registration(
        board: &'a Board,
        tx: &'a dyn Tx,
        agent: Agent,
        changes: Changes,
    ) -> EntryEditor<'a> {
        let guard = Guard::new(board, tx, &Actor::session(&agent.session_id));
        EntryEditor::with(board, tx, agent.agent_name.clone(), Some(agent), guard, changes)
    }

    fn with(
        board: &'a Board,
        tx: &'a dyn Tx,
        author: String,
        agent: Option<Agent>,
        guard: Guard<'a>,
        changes: Changes,
    ) -> EntryEditor<'a> {
        EntryEditor {
            board,
            tx,
            changes,
            author,
            agent,
            guard,
            keys: BTreeMap::new(),
            states: Vec::new(),
            scopes: BTreeMap::new(),
            bytes: 0,
            operations: 0,
            evictions: 0,
        }
    }

    /// The state of the board in which the commit runs.
    pub(crate) fn tx(&self) -> &'a dyn Tx {
        self.tx
    }

    /// The visible entry, with the changes of this commit.
    pub(crate) fn entry(&mut self, scope: &str, key: &str) -> Result<Option<Entry>> {
        let at = self.open(scope, key)?;
        self.check_budget()?;
        Ok(self.visible_at(at).cloned())
    }

    /// The same for an answer, whose size counts as well.
    pub(crate) fn read(&mut self, scope: &str, key: &str) -> Result<Option<Entry>> {
        self.operations += 1;
        self.check_access(AccessOperation::Read, scope, key)?;
        let entry = self.entry(scope, key)?;
        self.bytes += entry.as_ref().map_or(0, |entry| entry.value.as_str().len());
        self.check_budget()?;
        Ok(entry)
    }

    /// Writes an entry.
    pub(crate) fn write(&mut self, scope: &str, write: &Write, wording: EventWording) -> Result<Written> {
        self.operations += 1;
        self.bytes += write.value.as_str().len();
        let policies = self.policies(scope)?;
        if let Some(policies) = &policies {
            self.check_row(policies, AccessOperation::Write, &write.key)?;
            policies.check_not_ended()?;
        }
        let at = self.open(scope, &write.key)?;
        self.expire_at(at);
        self.check_budget()?;
        let mut entry = self.decide_at(at, scope, write, policies.as_deref())?;
        let (created, place) = (self.states[at].current.is_none(), self.next_event());
        let evicted = if created { self.make_space(scope, policies.as_deref())? } else { None };
        if self.next_event() != place {
            // Its event comes after that of the removal.
            entry = self.decide_at(at, scope, write, policies.as_deref())?;
        }
        let last = self.states[at].last;
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
            evicted,
        };
        self.changes.event(event);
        let state = &mut self.states[at];
        state.last = LastVersion { version: entry.version, revision: Some(entry.revision) };
        state.current = Some(entry);
        state.changed = true;
        if created {
            self.scope_state(scope).added += 1;
        }
        Ok(written)
    }

    /// The entry after a write, if the rules of entries and the policies of the scope allow it.
    fn decide_at(
        &self,
        at: usize,
        scope: &str,
        write: &Write,
        policies: Option<&ScopePolicies>,
    ) -> Result<Entry> {
        let KeyState { current, last, .. } = &self.states[at];
        let circumstances = Circumstances {
            scope,
            author: &self.author,
            session: self.session_id(),
            last: *last,
            revision: Revision::of_event(self.changes.events.len()),
            now: self.tx.now(),
            default_ttl: policies.and_then(|row| row.policies.ttl),
        };
        let entry = decide_write(self.tx, write, current.as_ref(), self.agent.as_ref(), &circumstances)?;
        if let Some(policies) = policies {
            if let Some(ScopeState { protocols, .. }) = self.scopes.get(scope) {
                check_value(policies, protocols, &entry)?;
            }
            check_counted(policies, &entry)?;
        }
        self.guard.custom().check_write(&entry)?;
        Ok(entry)
    }

    /// The policies of a scope, which are read once.
    fn policies(&mut self, scope: &str) -> Result<Option<Rc<ScopePolicies>>> {
        let tx = self.tx;
        let state = self.scope_state(scope);
        if let Some(policies) = state.policies.get() {
            return Ok(policies.clone());
        }
        let policies = policies_of(tx, scope)?.map(Rc::new);
        if let Some(policies) = &policies {
            state.protocols = RuleProtocols::announced(tx, &policies.policies.validation)?;
        }
        Ok(state.policies.get_or_init(|| policies).clone())
    }

    fn scope_state(&mut self, scope: &str) -> &mut ScopeState {
        self.scopes.entry(scope.to_owned()).or_default()
    }

    /// Deletes an entry; `None` if no entry is visible.
    pub(crate) fn delete(
        &mut self,
        scope: &str,
        key: &str,
        wording: EventWording,
    ) -> Result<Option<Deleted>> {
        self.check_access(AccessOperation::Delete, scope, key)?;
        self.operations += 1;
        let at = self.open(scope, key)?;
        self.check_budget()?;
        if self.visible_at(at).is_none() {
            return Ok(None);
        }
        self.check_holder(at)?;
        Ok(self.remove_at(at, Removal::Deleted, wording))
    }

    /// Deletes an entry together with its scope, whose policies were checked. Returns whether it was visible. Its size is for
    /// the caller to check, which may delete the rest in another commit.
    pub(crate) fn delete_of_scope(&mut self, scope: &str, key: &str) -> Result<bool> {
        self.guard.check_custom(AccessOperation::Delete, scope, key)?;
        let at = self.open(scope, key)?;
        if self.visible_at(at).is_none() {
            return Ok(false);
        }
        self.check_holder(at)?;
        Ok(self.remove_at(at, Removal::Deleted, EventWording::AsEntry).is_some())
    }

    /// Calls `f` with these keys of a scope, until the commit is full. Reads a part of them at a time, so that it never has many
    /// more values than one commit may have.
    pub(crate) fn until_full(
        &mut self,
        scope: &str,
        keys: &[String],
        mut f: impl FnMut(&mut Self, &str) -> Result<()>,
    ) -> Result<()> {
        let settings = self.board.settings();
        let at_once = (settings.max_commit_bytes / settings.max_value_bytes.max(1)).max(1);
        for part in keys.chunks(at_once) {
            self.prefetch_entries(scope, part.iter())?;
            for key in part {
                if self.is_full() {
                    return Ok(());
                }
                f(self, key)?;
            }
        }
        Ok(())
    }

    /// Removes an entry because its scope ends. A lease does not keep it.
    pub(crate) fn remove_with_scope(&mut self, scope: &str, key: &str) -> Result<()> {
        let at = self.open(scope, key)?;
        if !self.expire_at(at) {
            self.remove_at(at, Removal::ScopeEnded, EventWording::AsEntry);
        }
        Ok(())
    }

    /// Removes an entry that has expired; returns whether it did.
    pub(crate) fn expire(&mut self, scope: &str, key: &str) -> Result<bool> {
        let at = self.open(scope, key)?;
        Ok(self.expire_at(at))
    }

    /// Erases a key with its history. The version of its event begins the history again.
    pub(super) fn purge(&mut self, decision: Decision) -> Result<()> {
        let Decision { event, erase, remembered, damaged_calls, .. } = decision;
        if let Some(EntryVersion { entry, .. }) = event.version.as_deref() {
            let at = self.open(&entry.scope, &entry.key)?;
            let state = &mut self.states[at];
            // An unreadable entry is stored, too.
            let removed = state.is_stored;
            state.current = None;
            state.last = LastVersion { version: entry.version, revision: Some(entry.revision) };
            state.changed = true;
            self.scope_state(&entry.scope).added -= i64::from(removed);
        }
        let event = event.by(self.session_id());
        self.changes.event(event);
        self.changes.erase.extend(erase);
        self.changes.put.extend(remembered.into_iter().map(Row::from));
        self.changes.remove.extend(damaged_calls);
        Ok(())
    }

    /// Reads a key that is going to be purged. The holder and the value of an unreadable entry are unknown.
    pub(super) fn open_to_purge(&mut self, scope: &str, key: &str) -> Result<()> {
        let error = match self.open(scope, key) {
            Err(error) if error.is_unreadable_row() => error,
            opened => return opened.map(drop),
        };
        let state = KeyState::unreadable(self.tx, scope, key)?.ok_or(error)?;
        self.states.push(state);
        self.keys.insert((scope.to_owned(), key.to_owned()), self.states.len() - 1);
        Ok(())
    }

    /// Whether there is a visible entry, or one that cannot be read.
    pub(super) fn has_visible(&mut self, scope: &str, key: &str) -> Result<bool> {
        let at = self.open(scope, key)?;
        self.check_budget()?;
        let state = &self.states[at];
        Ok(self.visible_at(at).is_some() || (state.is_stored && state.current.is_none()))
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
            // A row has to be read before it is written.
            self.tx.get(&tombstone)?;
            let LastVersion { version, revision } = state.last;
            self.changes.put(Tombstone { scope, key, version, revision: revision.unwrap_or_default() });
        }
        for (scope, ScopeState { policies, added, .. }) in std::mem::take(&mut self.scopes) {
            if added == 0 {
                continue;
            }
            let policies = match policies.into_inner() {
                Some(policies) => policies,
                // Only removals happened there.
                None => policies_of(self.tx, &scope)?.map(Rc::new),
            };
            if let Some(policies) = policies {
                add_to_size(&policies, added, &mut self.changes);
            }
        }
        if let Some(agent) = &self.agent {
            self.board.agents().record_activity(agent, self.tx.now(), &mut self.changes);
        }
        Ok(self.changes)
    }

    /// Reads a key, unless it was read before, and returns its index in `states`.
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
        check_holder(self.tx, self.visible_at(at), self.session_id())
    }

    /// Removes an expired entry that no sweep has removed yet, before anything else happens to its key.
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
        self.scope_state(&scope).added -= 1;
        let entry = Entry { revision: previous.unwrap_or(entry.revision), ..entry };
        let session = self.session_id().filter(|_| removal.has_actor());
        let mut event = removal_event(entry, removal, &self.author, session, place);
        if let EventWording::InWords(words) = wording {
            event.summary = words;
        }
        self.changes.event(event);
        Some(Deleted { scope, key, version, revision })
    }

    /// Whether the commit has as many values as one may have. Readers of the event log get a commit at once, with the
    /// old value of each of its keys.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes > self.board.settings().max_commit_bytes
    }

    /// Refuses to continue if the commit is too large. One operation on one key is allowed whatever its size.
    fn check_budget(&self) -> Result<()> {
        if !self.is_full() || (self.keys.len() <= 1 + self.evictions && self.operations <= 1) {
            return Ok(());
        }
        let limit = self.board.settings().max_commit_bytes;
        let message = format!("one commit may change and read at most {limit} bytes of values");
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

    /// An entry that is stored and cannot be read, if its revision can be.
    fn unreadable(tx: &dyn Tx, scope: &str, key: &str) -> Result<Option<KeyState>> {
        // No other key that starts with this one sorts before it.
        let range = Range::entries(scope, key);
        tx.prefetch(&[Prefetch::Heads(range.clone(), 1)])?;
        let head = tx.heads(&range, 1)?.pop().filter(|head| head.key == key);
        Ok(head.map(|head| KeyState {
            is_stored: true,
            has_tombstone: false,
            current: None,
            last: LastVersion { version: 0, revision: Some(head.revision) },
            changed: false,
        }))
    }
}

/// The event of a removal, at this position in its commit.
pub(super) fn removal_event(
    entry: Entry,
    removal: Removal,
    author: &str,
    session: Option<&str>,
    place: usize,
) -> NewEvent {
    let summary = removal.summary(author, &entry);
    // Without an actor, the author of the last write stays.
    let remover = if removal.has_actor() { author.to_owned() } else { entry.updated_by.clone() };
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

/// What verbs ask for besides entries.
impl EntryEditor<'_> {
    /// The time of the commit.
    pub(crate) fn now(&self) -> Timestamp {
        self.tx.now()
    }

    /// The agent of the session that acts, if there is one.
    pub(crate) fn agent(&self) -> Option<&Agent> {
        self.agent.as_ref()
    }

    /// How many bytes of values one commit may change and read.
    pub(crate) fn max_commit_bytes(&self) -> usize {
        self.board.settings().max_commit_bytes
    }

    /// The visible entry as it is stored, if the caller may read it. Not opened for a change, so its size does not count.
    pub(crate) fn peek_entry(&mut self, scope: &str, key: &str) -> Result<Option<Entry>> {
        if !self.may_read(scope, key)? {
            return Ok(None);
        }
        let entry = self.tx.row::<Entry>(&Key::Entry(scope.to_owned(), key.to_owned()))?;
        Ok(entry.filter(|entry| !entry.is_expired(self.tx.now())))
    }

    /// The visible entry, for a change that depends on it and shows it.
    pub(crate) fn readable_entry(&mut self, scope: &str, key: &str) -> Result<Option<Entry>> {
        self.check_access(AccessOperation::Write, scope, key)?;
        let entry = self.entry(scope, key)?;
        if entry.is_some() {
            self.check_access(AccessOperation::Read, scope, key)?;
        }
        Ok(entry)
    }

    /// Refuses a deletion that the policies of the scope or the lease of another session do not allow.
    pub(crate) fn check_delete(&mut self, scope: &str, key: &str) -> Result<()> {
        self.check_access(AccessOperation::Delete, scope, key)?;
        self.refuse_if_held(scope, key)
    }

    /// The session that acts, for verbs that need one.
    pub(crate) fn session(&self) -> Result<Agent> {
        self.agent.clone().ok_or_else(no_session_for_lease)
    }

    /// The first entries of a range without their values, as they are stored.
    pub(crate) fn heads(&self, range: &Range, limit: usize) -> Result<Vec<EntryHead>> {
        self.tx.heads(range, limit)
    }

    /// Announces entries whose keys are known only now.
    pub(crate) fn prefetch_entries<'k>(
        &self,
        scope: &str,
        keys: impl Iterator<Item = &'k String>,
    ) -> Result<()> {
        self.tx.prefetch(&keys.map(|key| Prefetch::Entry(scope, key)).collect::<Vec<_>>())
    }

    /// The position that its next event will have in the commit.
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
