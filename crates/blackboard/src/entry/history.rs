//! `history` and `as of`: earlier versions of a key.
//!
//! Both answer from the oldest kept revision on. For an earlier revision they fail with `compacted`.

use std::collections::BTreeMap;

use super::{Entry, EntryVersion, Scope, Tombstone};
use crate::error::{Code, Error, Refusal, Result};
use crate::event::Event;
use crate::revision::Revision;
use crate::scope::AccessOperation;
use crate::store::{Key, Page, Prefetch, Tx};

/// The versions of a key.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// The newest first, with removals.
    pub versions: Vec<EntryVersion>,
    /// The events of the removals among them, by their revisions. They say how an entry was removed and when. An event
    /// that was pruned is not here.
    pub removals: BTreeMap<Revision, Event>,
    /// Whether there are older versions that can be read.
    pub more: bool,
    /// Whether older versions were pruned.
    pub compacted: bool,
}

impl Scope<'_> {
    /// The versions of a key that are kept, at most `limit` of them, the newest first.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Value, Write}};
    /// # let board = Board::memory();
    /// let scope = board.scope("team-1");
    /// scope.write(&Write::new("a", Value::of(&1)?))?;
    /// scope.write(&Write::new("a", Value::of(&2)?))?;
    /// let values: Vec<_> =
    ///     scope.history("a", 10)?.versions.into_iter().map(|version| version.entry.value).collect();
    /// assert_eq!(values, [Value::of(&2)?, Value::of(&1)?]);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn history(&self, key: &str, limit: usize) -> Result<History> {
        self.history_within(key, limit, usize::MAX)
    }

    /// The same, ending with the version whose value and metadata make it `most_bytes`.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Value, Write}};
    /// # let board = Board::memory();
    /// let scope = board.scope("team-1");
    /// for _ in 0..3 {
    ///     scope.write(&Write::new("a", Value::of("12345678")?))?;
    /// }
    /// assert_eq!(scope.history_within("a", 10, 15)?.versions.len(), 2);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn history_within(&self, key: &str, limit: usize, most_bytes: usize) -> Result<History> {
        self.reading_chain(key, |tx, newest, is_shown| {
            let (mut versions, mut bytes) = (Vec::new(), 0_usize);
            let mut next = newest.filter(is_shown);
            while let Some(revision) = next.filter(|_| versions.len() < limit && bytes < most_bytes) {
                let Some(version) = announced_version(tx, revision)? else { break };
                next = version.previous.filter(is_shown);
                bytes = bytes.saturating_add(version.entry.bytes());
                versions.push(version);
            }
            let oldest = versions.last().and_then(|version: &EntryVersion| version.previous);
            let oldest = oldest.filter(is_shown);
            let (more, compacted) = match oldest {
                Some(older) => {
                    let is_kept = announced_version(tx, older)?.is_some();
                    (is_kept, !is_kept)
                }
                None => (false, false),
            };
            let removals = removals(tx, &versions)?;
            Ok(History { versions, removals, more, compacted })
        })
    }

    /// The entry at a revision of the board: from its write until the event that removed it.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Value, Write}};
    /// # let board = Board::memory();
    /// let scope = board.scope("team-1");
    /// let first = scope.write(&Write::new("a", Value::of(&1)?))?;
    /// scope.delete("a")?;
    /// assert_eq!(scope.entry_as_of("a", first.revision)?.unwrap().value, Value::of(&1)?);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn entry_as_of(&self, key: &str, revision: Revision) -> Result<Option<Entry>> {
        self.reading_chain(key, |tx, newest, is_shown| {
            let (floor, current) = (tx.floor()?, tx.revision()?);
            if revision > current {
                let message = format!("revision {revision} is in the future: the board is at {current}");
                return Err(Refusal::new(Code::CursorAhead, message)
                    .detail("revision", current.get())
                    .into());
            }
            if revision < floor {
                return Err(compacted(revision, floor));
            }
            let mut next = newest.filter(is_shown);
            while let Some(candidate) = next {
                let Some(version) = announced_version(tx, candidate)? else { return Ok(None) };
                if candidate <= revision {
                    return Ok((!version.removed).then_some(version.entry));
                }
                if version.is_purge() {
                    return Err(purged(key, candidate));
                }
                next = version.previous.filter(is_shown);
            }
            Ok(None)
        })
    }

    /// Reads from the newest version of a key on. The last argument of `f` is whether the caller may see a version.
    fn reading_chain<T>(
        &self,
        key: &str,
        mut f: impl FnMut(&dyn Tx, Option<Revision>, &dyn Fn(&Revision) -> bool) -> Result<T>,
    ) -> Result<T> {
        self.check_known(key)?;
        let entry = Key::Entry(self.name.clone(), key.to_owned());
        let tombstone = Key::Tombstone(self.name.clone(), key.to_owned());
        let prefetch = vec![Prefetch::Entry(&self.name, key), Prefetch::Revision];
        self.read_guarded(prefetch, |tx, guard| {
            guard.check(AccessOperation::Read, &self.name, key)?;
            let newest = match tx.row::<Entry>(&entry)? {
                Some(entry) => Some(entry.revision),
                None => tx.row::<Tombstone>(&tombstone)?.map(|tombstone| tombstone.revision),
            };
            if newest.is_none() {
                self.check_new(key)?;
            }
            let hidden_until = guard.hidden_until(&self.name)?;
            f(tx, newest, &|revision: &Revision| Some(*revision) > hidden_until)
        })
    }
}

/// A version of a key. The version before it is known only then, so each is a round trip of its own.
fn announced_version(tx: &dyn Tx, revision: Revision) -> Result<Option<EntryVersion>> {
    tx.prefetch(&[Prefetch::Version(revision)])?;
    tx.version(revision)
}

/// The events of the versions that are removals, all of them announced together.
fn removals(tx: &dyn Tx, versions: &[EntryVersion]) -> Result<BTreeMap<Revision, Event>> {
    let removed = versions.iter().filter(|version| version.removed).map(|version| version.entry.revision);
    let pages: Vec<_> = removed
        .map(|revision| Page { after: revision.previous(), until: revision, types: &[], limit: 1 })
        .collect();
    if pages.is_empty() {
        return Ok(BTreeMap::new());
    }
    tx.prefetch(&pages.iter().map(|page| Prefetch::Events(*page)).collect::<Vec<_>>())?;
    let mut events = BTreeMap::new();
    for page in &pages {
        events.extend(tx.events(page)?.into_iter().map(|event| (event.id, event)));
    }
    Ok(events)
}

/// The requested revision has not happened yet.
pub(super) fn in_the_future(revision: Revision, current: Revision) -> Error {
    let message = format!("revision {revision} is in the future: the board is at {current}");
    Refusal::new(Code::CursorAhead, message).detail("revision", current.get()).into()
}

/// The requested revision was erased by a purge.
fn purged(key: &str, revision: Revision) -> Error {
    let message = format!("what {key} was before revision {revision} is unknown: the key was purged then");
    Refusal::new(Code::Compacted, message).detail("purged_at", revision.get()).into()
}

/// The requested revision is before the oldest kept one.
pub(crate) fn compacted(revision: Revision, floor: Revision) -> Error {
    Refusal::new(
        Code::Compacted,
        format!("revision {revision} has been pruned; the oldest kept revision is {floor}"),
    )
    .hint("see sweep.pruneEventsAfterDays in docs/configuration.md")
    .detail("floor", floor.get())
    .into()
}
