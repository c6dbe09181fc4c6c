//! [`Draft`]: what one commit does to entries.
//!
//! Every change of an entry is made here, whichever verb asks for it: so a lease, a fence, an expired entry and
//! the numbering of versions are minded on every path. A draft knows its own changes (a key may be written and read
//! and deleted in one commit), tells of each in an event, and puts each key once. What goes with a session goes by
//! [`remove_stored`], because the commit that ends a session is about more than entries.

use std::collections::BTreeMap;

use serde_json::{Map, json};

use super::lease::pattern_of;
use super::purge::Decision;
use super::{
    By, DEFAULT_SCOPE, Deleted, Entry, EntryHead, EntryVersion, FILES, LOCKS, Tombstone, Value, Write,
    Written, check_key, check_scope,
};
use crate::agent::{Agent, existing as existing_agent};
use crate::board::Board;
use crate::clock::Timestamp;
use crate::error::{Code, Error, Refusal, Result};
use crate::event::{Event, EventType, NewEvent, TargetType};
use crate::revision::Revision;
use crate::store::{Changes, Key, Operation, Page, Prefetch, Range, Row, Tx};

/// The author without a name and without a session.
const NOBODY: &str = "cli";

/// What one commit does to entries.
pub(crate) struct Draft<'a> {
    board: &'a Board,
    tx: &'a dyn Tx,
    pub(crate) changes: Changes,
    pub(super) author: String,
    agent: Option<Agent>,
    keys: BTreeMap<(String, String), Slot>,
    /// The values that it holds: those that it found under its keys, wrote, and gave away.
    bytes: usize,
    /// How many things were done to keys.
    operations: usize,
}

/// One key: as it is stored, and as the draft leaves it.
struct Slot {
    stored: Option<Entry>,
    tombstone: Option<Tombstone>,
    current: Option<Entry>,
    last: Last,
    changed: bool,
}

/// What a new version of a key goes on from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Last {
    pub(super) version: u64,
    pub(super) revision: Option<Revision>,
}

/// How an entry was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    /// Somebody asked for it.
    Deleted,
    /// Its time was over.
    Expired,
    /// Its session ended.
    SessionEnded,
    /// Its session was found dead.
    SessionStale,
}

/// How a change is told: as one of an entry, or in the words of what the entry stands for.
pub(crate) enum Told {
    AsEntry,
    InWords(String),
}

impl<'a> Draft<'a> {
    /// Begins, if whoever acts exists and holds what it says it holds.
    pub(crate) fn new(board: &'a Board, tx: &'a dyn Tx, by: &By) -> Result<Draft<'a>> {
        for fence in &by.fences {
            fence.check(tx)?;
        }
        let agent = by.session.as_deref().map(|session| existing_agent(tx, session)).transpose()?;
        let author = match (&by.author, &agent) {
            (Some(author), _) => author.clone(),
            (None, Some(agent)) => agent.agent_name.clone(),
            (None, None) => NOBODY.to_owned(),
        };
        Ok(Draft {
            board,
            tx,
            changes: Changes::new(),
            author,
            agent,
            keys: BTreeMap::new(),
            bytes: 0,
            operations: 0,
        })
    }

    /// Begins for a session that the same commit registers, with the changes that register it.
    pub(crate) fn after_registration(
        board: &'a Board,
        tx: &'a dyn Tx,
        agent: Agent,
        changes: Changes,
    ) -> Draft<'a> {
        Draft {
            board,
            tx,
            changes,
            author: agent.agent_name.clone(),
            agent: Some(agent),
            keys: BTreeMap::new(),
            bytes: 0,
            operations: 0,
        }
    }

    /// The entry, as far as anybody can see it, with what the draft did to it.
    pub(crate) fn entry(&mut self, scope: &str, key: &str) -> Result<Option<Entry>> {
        let now = self.tx.now();
        let entry = self.slot(scope, key)?.current.clone().filter(|entry| !entry.is_expired(now));
        self.check_room()?;
        Ok(entry)
    }

    /// The same for an answer, which takes room as well.
    pub(super) fn read(&mut self, scope: &str, key: &str) -> Result<Option<Entry>> {
        self.operations += 1;
        let entry = self.entry(scope, key)?;
        self.bytes += entry.as_ref().map_or(0, |entry| entry.value.as_str().len());
        self.check_room()?;
        Ok(entry)
    }

    /// Writes an entry.
    pub(crate) fn write(&mut self, scope: &str, write: &Write, told: Told) -> Result<Written> {
        let now = self.tx.now();
        self.operations += 1;
        self.bytes += write.value.as_str().len();
        self.expire_if_due(scope, &write.key)?;
        self.check_room()?;
        let session = self.agent.as_ref().map(|agent| agent.session_id.clone());
        self.refuse_if_held(scope, &write.key)?;
        if write.lease {
            self.agent.as_ref().ok_or_else(no_session_for_lease)?.must_be_live()?;
        }
        let revision = Revision::of_event(self.changes.events.len());
        let slot = self.slot(scope, &write.key)?;
        if slot.last == Last::default() && scope != FILES {
            check_new_name(self.tx, scope, &write.key)?;
        }
        let slot = self.slot(scope, &write.key)?;
        let (before, last) = (slot.current.take(), slot.last);
        let made = write.decide(before.as_ref(), scope, last.version + 1, revision, session.as_deref(), now);
        let mut entry = match made {
            Ok(entry) => entry,
            Err(refused) => {
                slot.current = before;
                return Err(refused);
            }
        };
        let created = before.is_none();
        entry.updated_by.clone_from(&self.author);
        if created {
            entry.created_by.clone_from(&self.author);
        }
        let told = match told {
            Told::AsEntry => format!("Agent \"{}\" wrote {}", self.author, named(scope, &write.key)),
            Told::InWords(words) => words,
        };
        let op = if created { "create" } else { "update" };
        let event = NewEvent::new(EventType::EntryWritten, TargetType::Entry, &write.key, told)
            .by(session.as_deref())
            .with_all(about(scope, op))
            .of_version(EntryVersion { entry: entry.clone(), previous: last.revision, removed: false });
        self.changes.event(event);
        let written = Written::of(&entry, created);
        let slot = self.slot(scope, &write.key)?;
        slot.last = Last { version: entry.version, revision: Some(revision) };
        slot.current = Some(entry);
        slot.changed = true;
        Ok(written)
    }

    /// Deletes an entry; `None` if nobody can see one.
    pub(crate) fn delete(&mut self, scope: &str, key: &str, told: Told) -> Result<Option<Deleted>> {
        self.operations += 1;
        if self.entry(scope, key)?.is_none() {
            return Ok(None);
        }
        self.refuse_if_held(scope, key)?;
        self.remove(scope, key, Removal::Deleted, told)
    }

    /// Removes an entry, whoever holds it.
    pub(crate) fn remove(
        &mut self,
        scope: &str,
        key: &str,
        removal: Removal,
        told: Told,
    ) -> Result<Option<Deleted>> {
        let place = self.changes.events.len();
        let revision = Revision::of_event(place);
        let author = self.author.clone();
        let session = self.agent.as_ref().map(|agent| agent.session_id.clone());
        let slot = self.slot(scope, key)?;
        let Some(entry) = slot.current.take() else { return Ok(None) };
        let previous = slot.last.revision;
        slot.last.revision = Some(revision);
        slot.changed = true;
        let version = entry.version;
        let session = session.filter(|_| removal != Removal::Expired);
        let entry = Entry { revision: previous.unwrap_or(entry.revision), ..entry };
        let mut event = removal_of(entry, removal, &author, session.as_deref(), place);
        if let Told::InWords(words) = told {
            event.summary = words;
        }
        self.changes.event(event);
        Ok(Some(Deleted { scope: scope.to_owned(), key: key.to_owned(), version, revision }))
    }

    /// Erases a key with its history. Its event brings the version that begins the history again.
    pub(super) fn purge(&mut self, decision: Decision) -> Result<()> {
        let session = self.agent.as_ref().map(|agent| agent.session_id.clone());
        let Decision { event, erase, remembered, .. } = decision;
        if let Some(EntryVersion { entry, .. }) = event.version.as_deref() {
            let (revision, version) = (Some(entry.revision), entry.version);
            let slot = self.slot(&entry.scope, &entry.key)?;
            slot.current = None;
            slot.last = Last { version, revision };
            slot.changed = true;
        }
        self.changes.event(event.by(session.as_deref()));
        self.changes.erase.extend(erase);
        self.changes.put.extend(remembered.into_iter().map(Row::from));
        Ok(())
    }

    /// What the commit changes, once every key is put in its last state.
    pub(crate) fn finish(mut self) -> Result<Changes> {
        for ((scope, key), slot) in std::mem::take(&mut self.keys) {
            if !slot.changed {
                continue;
            }
            let grave = Key::Tombstone(scope.clone(), key.clone());
            if let Some(entry) = slot.current {
                if slot.tombstone.is_some() {
                    self.changes.remove(grave);
                }
                self.changes.put(entry);
                continue;
            }
            // A key that the draft itself created has never been anywhere.
            if slot.stored.is_some() {
                self.changes.remove(Key::Entry(scope.clone(), key.clone()));
            }
            // What is written has to have been read.
            self.tx.get(&grave)?;
            let Last { version, revision } = slot.last;
            self.changes.put(Tombstone { scope, key, version, revision: revision.unwrap_or_default() });
        }
        if let Some(agent) = &self.agent {
            self.board.agents().note_activity(agent, self.tx.now(), &mut self.changes);
        }
        Ok(self.changes)
    }

    /// An entry whose time is over and that no sweep has reached goes before anything else happens to its key.
    fn expire_if_due(&mut self, scope: &str, key: &str) -> Result<()> {
        let now = self.tx.now();
        if self.slot(scope, key)?.current.as_ref().is_some_and(|entry| entry.is_expired(now)) {
            self.remove(scope, key, Removal::Expired, Told::AsEntry)?;
        }
        Ok(())
    }

    /// Refuses if the entry hangs on another session than the one that acts.
    pub(super) fn refuse_if_held(&mut self, scope: &str, key: &str) -> Result<()> {
        let session = self.agent.as_ref().map(|agent| agent.session_id.clone());
        match self.entry(scope, key)? {
            Some(entry) if entry.session_id.is_some() && entry.session_id != session => {
                Err(held(self.tx, &entry)?)
            }
            _ => Ok(()),
        }
    }

    /// Whether it holds as much as one commit may: readers of the log get a commit as a whole, with what each of its
    /// values was before.
    pub(super) fn is_full(&self) -> bool {
        self.bytes > self.board.settings().max_commit_bytes
    }

    /// Refuses to go on if that is too much for one commit. One thing can be done to one key whatever its size.
    fn check_room(&self) -> Result<()> {
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

    fn slot(&mut self, scope: &str, key: &str) -> Result<&mut Slot> {
        use std::collections::btree_map::Entry as Place;
        Ok(match self.keys.entry((scope.to_owned(), key.to_owned())) {
            Place::Occupied(known) => known.into_mut(),
            Place::Vacant(vacant) => {
                let slot = Slot::read(self.tx, scope, key)?;
                self.bytes += slot.stored.as_ref().map_or(0, |entry| entry.value.as_str().len());
                vacant.insert(slot)
            }
        })
    }
}

/// Refuses the key of a new entry that has invisible characters, and a new scope that has some. Earlier versions accepted
/// more of them, and the scopes and keys of that time stay usable.
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

/// Removes an entry that is stored, in a commit that does nothing else to its key: with an event, and a tombstone where
/// its versions go on.
pub(super) fn remove_stored(
    entry: Entry,
    removal: Removal,
    author: &str,
    session: Option<&str>,
    changes: &mut Changes,
) {
    let (scope, key, version) = (entry.scope.clone(), entry.key.clone(), entry.version);
    let revision = changes.event(removal_of(entry, removal, author, session, changes.events.len()));
    changes.remove(Key::Entry(scope.clone(), key.clone()));
    changes.put(Tombstone { scope, key, version, revision });
}

/// The event, at this place of its commit, that tells of a removal.
fn removal_of(entry: Entry, removal: Removal, author: &str, session: Option<&str>, place: usize) -> NewEvent {
    let summary = removal.told(author, &entry);
    // Nobody removes what expires: it stays with who wrote it last.
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

impl Slot {
    fn read(tx: &dyn Tx, scope: &str, key: &str) -> Result<Slot> {
        let stored = tx.row::<Entry>(&Key::Entry(scope.to_owned(), key.to_owned()))?;
        let tombstone = match stored {
            Some(_) => None,
            None => tx.row::<Tombstone>(&Key::Tombstone(scope.to_owned(), key.to_owned()))?,
        };
        let last = match (&stored, &tombstone) {
            (Some(entry), _) => Last { version: entry.version, revision: Some(entry.revision) },
            (None, Some(grave)) => Last { version: grave.version, revision: Some(grave.revision) },
            (None, None) => Last::default(),
        };
        Ok(Slot { current: stored.clone(), stored, tombstone, last, changed: false })
    }
}

impl Removal {
    fn event_type(self) -> EventType {
        match self {
            Removal::Expired => EventType::EntryExpired,
            _ => EventType::EntryDeleted,
        }
    }

    fn op(self) -> &'static str {
        match self {
            Removal::Deleted => "delete",
            Removal::Expired => "expire",
            Removal::SessionEnded | Removal::SessionStale => "release",
        }
    }

    fn told(self, author: &str, entry: &Entry) -> String {
        let Entry { scope, key, .. } = entry;
        let what = named(scope, key);
        match (self, scope.as_str()) {
            (Removal::Deleted, _) => format!("Agent \"{author}\" deleted {what}"),
            (Removal::Expired, LOCKS) => format!("Lock \"{key}\" expired"),
            (Removal::Expired, FILES) => format!("File reservation {} expired", reserved(entry)),
            (Removal::Expired, _) => format!("{what} expired"),
            (_, LOCKS) => format!("Lock \"{key}\" of agent \"{author}\" released ({})", self.why()),
            (_, FILES) => {
                format!(
                    "File reservation {} of agent \"{author}\" released ({})",
                    reserved(entry),
                    self.why()
                )
            }
            _ => format!("{what} of agent \"{author}\" removed ({})", self.why()),
        }
    }

    fn why(self) -> &'static str {
        match self {
            Removal::SessionStale => "marked stale",
            _ => "session ended",
        }
    }
}

/// A reservation by its pattern.
fn reserved(entry: &Entry) -> String {
    format!("\"{}\"", pattern_of(entry).unwrap_or_else(|| entry.key.clone()))
}

/// A key, with its scope where that is not the usual one.
pub(super) fn named(scope: &str, key: &str) -> String {
    match scope {
        DEFAULT_SCOPE => format!("\"{key}\""),
        scope => format!("\"{key}\" in scope \"{scope}\""),
    }
}

pub(super) fn about(scope: &str, op: &str) -> Map<String, serde_json::Value> {
    let mut map = Map::new();
    map.insert("op".to_owned(), json!(op));
    map.insert("scope".to_owned(), json!(scope));
    map
}

/// Since when an entry hangs on its session.
pub(crate) fn held_since(tx: &dyn Tx, entry: &Entry) -> Result<Timestamp> {
    match entry.fence {
        Some(fence) if fence == entry.revision => Ok(entry.updated_at),
        // Retention may have removed the version in which its session took it.
        Some(fence) => {
            tx.prefetch(&[Prefetch::Version(fence)])?;
            Ok(tx.version(fence)?.map_or(entry.created_at, |taken| taken.entry.updated_at))
        }
        None => Ok(entry.created_at),
    }
}

/// The refusal of whoever wants to change what hangs on the session of another.
pub(crate) fn held(tx: &dyn Tx, entry: &Entry) -> Result<Error> {
    let session = entry.session_id.clone().unwrap_or_default();
    let holder = Key::Agent(session.clone());
    let fence = entry.fence.unwrap_or(entry.revision);
    tx.prefetch(&[Prefetch::Row(holder.clone()), Prefetch::Version(fence)])?;
    let holder = tx.peek_row::<Agent>(&holder)?;
    let name = holder.map_or_else(|| entry.created_by.clone(), |agent| agent.agent_name);
    let since = held_since(tx, entry)?;
    let (what, hint) = match entry.scope.as_str() {
        LOCKS => (
            format!("lock {}", entry.key),
            "wait for it, as with --wait 1m, or see who holds what: blackboard lock list",
        ),
        FILES => {
            (format!("the reservation of {}", reserved(entry)), "see who holds what: blackboard file list")
        }
        _ => (named(&entry.scope, &entry.key), "it is free again when its session ends or deletes it"),
    };
    let mut refusal = Refusal::new(Code::Held, format!("{what} is held by {name} since {since}"))
        .hint(hint)
        .held_by(session, name, Some(since))
        .detail("revision", entry.revision.get());
    if let Some(fence) = entry.fence {
        refusal = refusal.detail("fence", fence.get());
    }
    Ok(refusal.into())
}

fn no_session_for_lease() -> Error {
    Refusal::new(Code::NoSession, "an entry with a lease needs a session to hang on")
        .hint("name one with --session ID, or start with: blackboard agent register")
        .into()
}

/// Refuses an ordinary write into a scope that has verbs of its own.
pub(super) fn refuse_reserved(scope: &str) -> Result<()> {
    let (what, command) = match scope {
        LOCKS => ("locks", "blackboard lock"),
        FILES => ("file reservations", "blackboard file"),
        _ => return Ok(()),
    };
    Err(Refusal::new(Code::InvalidValue, format!("the scope \"{scope}\" is kept for {what}"))
        .hint(format!("use `{command}`, or another scope"))
        .into())
}

/// The page that has the event with this id alone.
fn page_at(revision: Revision) -> Page<'static> {
    Page { until: revision, ..Page::after(revision.previous(), 1) }
}

/// What verbs need to know beside.
impl Draft<'_> {
    /// The time of the commit.
    pub(crate) fn now(&self) -> Timestamp {
        self.tx.now()
    }

    /// The session that acts, for what can't be done without one.
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

    /// The board's revision before the commit.
    pub(super) fn revision(&self) -> Result<Revision> {
        self.tx.revision()
    }

    /// The place that its next event will have in the commit.
    pub(super) fn next_event(&self) -> usize {
        self.changes.events.len()
    }

    /// The newest version of a key, also of one that was removed.
    pub(super) fn newest_version(&mut self, scope: &str, key: &str) -> Result<Option<Revision>> {
        Ok(self.slot(scope, key)?.last.revision)
    }

    /// A version of an entry.
    pub(super) fn version(&self, revision: Revision) -> Result<Option<EntryVersion>> {
        self.tx.prefetch(&[Prefetch::Version(revision), Prefetch::Events(page_at(revision))])?;
        self.tx.version(revision)
    }

    /// The event with this id, unless it was pruned.
    pub(super) fn event(&self, revision: Revision) -> Result<Option<Event>> {
        Ok(self.tx.events(&page_at(revision))?.into_iter().find(|event| event.id == revision))
    }

    /// Every call whose answer is remembered.
    pub(super) fn remembered_calls(&self) -> Result<Vec<Operation>> {
        self.tx.rows(&Range::operations())
    }

    /// What stands in a range, without values.
    pub(crate) fn heads(&self, range: &Range) -> Result<Vec<EntryHead>> {
        self.tx.heads(range, usize::MAX)
    }

    /// Whether an entry is there that nobody sees any more.
    pub(super) fn is_expired(&mut self, scope: &str, key: &str) -> Result<bool> {
        let now = self.tx.now();
        Ok(self.slot(scope, key)?.current.as_ref().is_some_and(|entry| entry.is_expired(now)))
    }

    /// Adds an event about more than one entry, made from the author and its session.
    pub(super) fn tell(&mut self, event: impl FnOnce(&str, Option<&str>) -> NewEvent) -> Revision {
        let session = self.agent.as_ref().map(|agent| agent.session_id.as_str());
        let event = event(&self.author, session);
        self.changes.event(event)
    }
}
