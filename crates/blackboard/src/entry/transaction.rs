//! `board.transaction(…)`: the caller's code reads and writes several keys atomically.
//!
//! The code runs without a lock, on every engine. What it reads is remembered with its revision; what it writes is
//! buffered. One commit then checks that every read is still valid, including absent keys and query results, and
//! applies the writes. If not, the code runs again. Its reads may be of different revisions, so an error that it
//! returns counts only if the reads are valid.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use super::rules::{Circumstances, LastVersion, check_not_reserved, decide};
use super::wording::conflict;
use super::write::check_count;
use super::{
    Actor, Entry, EntryEditor, EventWording, Query, Value, Write, check_known_key, check_known_scope, visible,
};
use crate::board::Board;
use crate::error::{Code, Error, Refusal, Result};
use crate::hint::Hint;
use crate::revision::Revision;
use crate::scope::{AccessOperation, Guard, policies_of, prefetch_all_policies, prefetch_policies};
use crate::store::{Changes, Key, Prefetch, Tx};

/// How often the code runs before the conflict is returned.
const MAX_RUNS: u32 = 200;

/// The longest pause between two runs.
const LONGEST_PAUSE: Duration = Duration::from_millis(64);

/// A transaction under way.
pub struct Transaction<'a> {
    board: &'a Board,
    actor: Actor,
    /// The author's name, once it was looked up.
    author: Option<String>,
    /// The first read of each key.
    read: BTreeMap<ScopedKey, Option<Entry>>,
    /// The entries under writes that did not read them. The transaction depends on one only after it reads the entry.
    covered: BTreeMap<ScopedKey, Option<Entry>>,
    /// The keys that it changed and may not read.
    unreadable: BTreeSet<ScopedKey>,
    found: Vec<FoundBefore>,
    /// The writes and deletes, in order.
    steps: Vec<Step>,
    /// The state of its keys after the steps.
    own: BTreeMap<ScopedKey, Option<Entry>>,
    /// The default times to live of the scopes that it writes. The commit applies those that are valid then.
    default_ttls: BTreeMap<String, Option<Duration>>,
}

type ScopedKey = (String, String);

/// A query, and what it found.
struct FoundBefore {
    scope: String,
    query: Query,
    /// The matches, by key.
    entries: Vec<(String, Revision)>,
    /// The revision of the board at that time.
    at: Revision,
}

enum Step {
    Write(String, Write),
    Delete(String, String),
}

/// The entries of one scope, inside a transaction.
pub struct TransactionScope<'t, 'a> {
    transaction: &'t mut Transaction<'a>,
    name: String,
}

impl Board {
    /// Runs `f` until its reads are still valid when its writes are applied, at most 200 times; then the conflict is
    /// returned. Nothing is visible and no event is written unless it succeeds.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Value, Write}};
    /// # let board = Board::memory();
    /// let count = board.transaction(|tx| {
    ///     let mut scope = tx.scope("team-1");
    ///     let count = scope.read("counter")?.map_or(Ok(0), |value| value.to::<u64>())? + 1;
    ///     scope.write(&Write::new("counter", Value::of(&count)?))?;
    ///     Ok(count)
    /// })?;
    /// assert_eq!(count, 1);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn transaction<T>(&self, mut f: impl FnMut(&mut Transaction<'_>) -> Result<T>) -> Result<T> {
        let mut run = 1;
        loop {
            match self.run_transaction(&mut f) {
                Ran::Lost(_) if run < MAX_RUNS => {
                    std::thread::sleep(pause(run));
                    run += 1;
                }
                Ran::Lost(conflict) => return Err(conflict),
                Ran::Done(outcome) => return outcome,
            }
        }
    }

    /// Runs `f` once. Returns `conflict` if another writer changed what it had read, with the key and both revisions.
    ///
    /// ```
    /// # use blackboard::{Board, Code, entry::{Value, Write}};
    /// # let board = Board::memory();
    /// let refused = board.try_transaction(|tx| {
    ///     let seen = tx.scope("team-1").read("a")?;
    ///     // Another writer is faster.
    ///     board.scope("team-1").write(&Write::new("a", Value::of("theirs")?))?;
    ///     tx.scope("team-1").write(&Write::new("a", Value::of("mine")?))
    /// });
    /// assert_eq!(refused.unwrap_err().code(), Code::Conflict);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn try_transaction<T>(&self, f: impl FnOnce(&mut Transaction<'_>) -> Result<T>) -> Result<T> {
        match self.run_transaction(f) {
            Ran::Lost(conflict) => Err(conflict),
            Ran::Done(outcome) => outcome,
        }
    }

    fn run_transaction<T>(&self, f: impl FnOnce(&mut Transaction<'_>) -> Result<T>) -> Ran<T> {
        let mut transaction = Transaction {
            board: self,
            actor: Actor::default(),
            author: None,
            read: BTreeMap::new(),
            covered: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            found: Vec::new(),
            steps: Vec::new(),
            own: BTreeMap::new(),
            default_ttls: BTreeMap::new(),
        };
        let outcome = f(&mut transaction);
        let committed = match &outcome {
            Ok(_) => transaction.commit(),
            // Code that read inconsistent state may have failed for that reason alone.
            Err(_) => transaction
                .prefetch()
                .and_then(|prefetch| self.read(&prefetch, |tx| transaction.what_changed(tx))),
        };
        match committed {
            Ok(Some(conflict)) => Ran::Lost(conflict),
            Ok(None) => Ran::Done(outcome),
            Err(refused) => Ran::Done(Err(refused)),
        }
    }
}

/// The result of one run.
enum Ran<T> {
    /// The reads are valid, so its outcome counts.
    Done(Result<T>),
    /// Another writer changed what it had read.
    Lost(Error),
}

impl<'a> Transaction<'a> {
    /// Sets the actor and its fence tokens. An idempotency key is refused: the reads already tell whether it
    /// happened.
    pub fn acting_as(&mut self, actor: Actor) -> Result<()> {
        if actor.operation.is_some() {
            return Err(Refusal::new(Code::InvalidValue, "a transaction takes no operation id")
                .hint("look in the transaction whether it happened, or use `Board::txn`")
                .into());
        }
        self.author = None;
        self.actor = actor;
        Ok(())
    }

    /// The entries of a scope.
    pub fn scope(&mut self, name: &str) -> TransactionScope<'_, 'a> {
        TransactionScope { transaction: self, name: name.to_owned() }
    }

    /// Applies the steps. Returns the conflict if a read is no longer valid.
    fn commit(&self) -> Result<Option<Error>> {
        let actor = self.board.checked_actor(&self.actor)?;
        if self.steps.is_empty() && actor.fences.is_empty() {
            return self.board.read(&self.prefetch()?, |tx| self.what_changed(tx));
        }
        let mut lost = None;
        let committed = self.board.commit_as(
            actor.session.as_deref().as_slice(),
            "transaction",
            &self.prefetch()?,
            |tx| {
                lost = self.what_changed(tx)?;
                if lost.is_some() {
                    return Ok((Changes::new(), ()));
                }
                let mut editor = EntryEditor::new(self.board, tx, &actor)?;
                for step in &self.steps {
                    match step {
                        Step::Write(scope, write) => {
                            drop(editor.write(scope, write, EventWording::AsEntry)?);
                        }
                        Step::Delete(scope, key) => drop(editor.delete(scope, key, EventWording::AsEntry)?),
                    }
                }
                Ok((editor.finish()?, ()))
            },
        );
        committed.map(|()| lost)
    }

    /// What the commit reads, except for what depends on the results of the queries.
    fn prefetch(&self) -> Result<Vec<Prefetch<'_>>> {
        let places = self.read.keys().chain(self.own.keys());
        let places = places.map(|(scope, key)| Prefetch::Entry(scope, key));
        let changed = self.steps.iter().map(|step| match step {
            Step::Write(scope, _) | Step::Delete(scope, _) => scope.as_str(),
        });
        let found = self.found.iter().map(|found| found.scope.as_str());
        let found = Guard::prefetch(self.board, &self.actor, found);
        let policies = prefetch_all_policies(changed).chain(found);
        let mut prefetch: Vec<_> = places.chain(self.actor.prefetch()).chain(policies).collect();
        for FoundBefore { scope, query, .. } in &self.found {
            prefetch.extend(query.checked(scope)?.prefetch_by_key(scope));
        }
        Ok(prefetch)
    }

    /// The first read that is no longer valid.
    fn what_changed(&self, tx: &dyn Tx) -> Result<Option<Error>> {
        let guard = Guard::new(self.board, tx, &self.actor);
        for ((scope, key), seen) in &self.read {
            let current = visible(tx, &Key::Entry(scope.clone(), key.clone()))?;
            if current.as_ref().map(|entry| entry.revision) != seen.as_ref().map(|entry| entry.revision) {
                let expected = seen.as_ref().map_or(Revision::ZERO, |entry| entry.revision);
                return Ok(Some(conflict(scope, key, expected, current.as_ref())));
            }
        }
        for FoundBefore { scope, query, entries, at } in &self.found {
            let found = query.checked(scope)?.heads_since(tx, &guard, scope, entries, *at)?;
            if let Some(changed) = first_difference(entries, &found) {
                return Ok(Some(changed_query(scope, changed, entries, &found)));
            }
        }
        Ok(None)
    }

    /// Reads the entry under a change of this transaction, if the caller may make it. The change does not show the entry, so the
    /// caller need not be allowed to read it: later reads of the key are then refused.
    fn changed_entry(&mut self, place: &ScopedKey, right: AccessOperation) -> Result<Option<Entry>> {
        let (scope, key) = place;
        let (board, actor) = (self.board, &self.actor);
        let row = Key::Entry(scope.clone(), key.clone());
        let mut prefetch = Guard::prefetch(board, actor, [scope.as_str()]);
        prefetch.push(Prefetch::Row(row.clone()));
        let (entry, is_readable) = board.read(&prefetch, |tx| {
            let guard = Guard::new(board, tx, actor);
            guard.check(right, scope, key)?;
            Ok((visible(tx, &row)?, guard.may_read(scope, key)?))
        })?;
        if !is_readable {
            self.unreadable.insert(place.clone());
        }
        Ok(entry)
    }

    /// Refuses to read a key that the transaction has changed, if the caller may not read it.
    fn check_readable(&self, place: &ScopedKey) -> Result<()> {
        if !self.unreadable.contains(place) {
            return Ok(());
        }
        let prefetch = Guard::prefetch(self.board, &self.actor, [place.0.as_str()]);
        self.board.read(&prefetch, |tx| {
            Guard::new(self.board, tx, &self.actor).check(AccessOperation::Read, &place.0, &place.1)
        })
    }

    /// Records a read of the entry under the transaction's own write: what it shows has to be valid at the commit.
    fn record_covered_read(&mut self, place: &ScopedKey) {
        if let Some(covered) = self.covered.remove(place) {
            self.read.insert(place.clone(), covered);
        }
    }

    /// The author's name, and the default time to live of a scope.
    fn author_and_ttl(&mut self, scope: &str) -> Result<(String, Option<Duration>)> {
        if let (Some(author), Some(ttl)) = (&self.author, self.default_ttls.get(scope)) {
            return Ok((author.clone(), *ttl));
        }
        let actor = Actor { fences: Vec::new(), ..self.board.checked_actor(&self.actor)? };
        let prefetch: Vec<_> = actor.prefetch().chain(prefetch_policies(scope)).collect();
        let (author, ttl) = self.board.read(&prefetch, |tx| {
            let author = EntryEditor::new(self.board, tx, &actor)?.author;
            Ok((author, policies_of(tx, scope)?.and_then(|row| row.policies.ttl)))
        })?;
        self.default_ttls.insert(scope.to_owned(), ttl);
        Ok((self.author.insert(author).clone(), ttl))
    }

    fn check_space(&self) -> Result<()> {
        check_count(self.steps.len() + 1)
    }
}

impl TransactionScope<'_, '_> {
    /// The value of a key, with the changes of this transaction.
    pub fn read(&mut self, key: &str) -> Result<Option<Value>> {
        Ok(self.current(key)?.map(|entry| entry.value))
    }

    /// The entry, with the changes of this transaction. An entry that it wrote itself has the revision zero. Its
    /// version continues from the visible entry, not from a removed one.
    pub fn entry(&mut self, key: &str) -> Result<Option<Entry>> {
        self.transaction.record_covered_read(&(self.name.clone(), key.to_owned()));
        self.current(key)
    }

    fn current(&mut self, key: &str) -> Result<Option<Entry>> {
        check_known_scope(&self.name)?;
        check_known_key(&self.name, key)?;
        let place = (self.name.clone(), key.to_owned());
        self.transaction.check_readable(&place)?;
        if let Some(own) = self.transaction.own.get(&place) {
            return Ok(own.clone());
        }
        if let Some(seen) = self.transaction.read.get(&place) {
            return Ok(seen.clone());
        }
        let board = self.transaction.board;
        let row = Key::Entry(place.0.clone(), place.1.clone());
        let actor = &self.transaction.actor;
        let mut prefetch = Guard::prefetch(board, actor, [place.0.as_str()]);
        prefetch.push(Prefetch::Row(row.clone()));
        let entry = board.read(&prefetch, |tx| {
            Guard::new(board, tx, actor).check(AccessOperation::Read, &place.0, &place.1)?;
            visible(tx, &row)
        })?;
        self.transaction.read.insert(place, entry.clone());
        Ok(entry)
    }

    /// Writes an entry when the transaction commits. Its conditions are checked then.
    pub fn write(&mut self, write: &Write) -> Result<()> {
        check_known_scope(&self.name)?;
        check_not_reserved(&self.name)?;
        self.transaction.check_space()?;
        let board = self.transaction.board;
        let write = write.checked(&self.name, board.settings())?;
        let place = (self.name.clone(), write.key.clone());
        let known = self.transaction.own.get(&place).or_else(|| self.transaction.read.get(&place));
        let before = if let Some(known) = known {
            known.clone()
        } else {
            // The caller did not read the entry: a write that does not depend on it cannot conflict over it.
            let covered = self.transaction.changed_entry(&place, AccessOperation::Write)?;
            self.transaction.covered.insert(place.clone(), covered.clone());
            covered
        };
        // The conditions are checked by the commit.
        let unconditional = Write { if_absent: false, if_revision: None, ..write.clone() };
        let (author, default_ttl) = self.transaction.author_and_ttl(&self.name)?;
        let circumstances = Circumstances {
            scope: &self.name,
            author: &author,
            session: self.transaction.actor.session.as_deref(),
            last: LastVersion {
                version: before.as_ref().map_or(0, |before| before.version),
                revision: before.as_ref().map(|before| before.revision),
            },
            revision: Revision::ZERO,
            now: board.clock().now(),
            default_ttl,
        };
        let entry = decide(&unconditional, before.as_ref(), &circumstances)?;
        self.transaction.own.insert(place, Some(entry));
        self.transaction.steps.push(Step::Write(self.name.clone(), write));
        Ok(())
    }

    /// Deletes an entry when the transaction commits. Returns whether it exists.
    pub fn delete(&mut self, key: &str) -> Result<bool> {
        check_known_scope(&self.name)?;
        check_known_key(&self.name, key)?;
        check_not_reserved(&self.name)?;
        self.transaction.check_space()?;
        let place = (self.name.clone(), key.to_owned());
        let known = self.transaction.own.get(&place).or_else(|| self.transaction.read.get(&place));
        let exists = if let Some(known) = known {
            known.is_some()
        } else {
            // Whether it exists is what the caller learns, and has to be valid at the commit.
            let entry = self.transaction.changed_entry(&place, AccessOperation::Delete)?;
            self.transaction.read.entry(place.clone()).or_insert(entry).is_some()
        };
        if !exists {
            return Ok(false);
        }
        self.transaction.own.insert(place, None);
        self.transaction.steps.push(Step::Delete(self.name.clone(), key.to_owned()));
        Ok(true)
    }

    /// Finds entries, with the changes of this transaction. The commit also checks that no match was added or
    /// removed.
    pub fn query(&mut self, query: &Query) -> Result<Vec<Entry>> {
        // The end of a page depends on the transaction's own writes, so everything is found first.
        let whole = Query { limit: Some(usize::MAX), offset: 0, after: None, ..query.clone() };
        let checked = whole.checked(&self.name)?;
        let name = &self.name;
        let transaction = &mut *self.transaction;
        let mut prefetch = checked.prefetch(name);
        prefetch.extend(Guard::prefetch(transaction.board, &transaction.actor, [name.as_str()]));
        let found = transaction.board.read(&prefetch, |tx| {
            let guard = Guard::new(transaction.board, tx, &transaction.actor);
            guard.check_scope(name)?;
            checked.page(tx, &guard, name)
        })?;
        let (mut entries, at) = (found.entries, found.revision);
        transaction.found.push(FoundBefore {
            scope: name.clone(),
            query: whole,
            entries: heads_of(&entries),
            at,
        });
        entries.retain(|entry| !transaction.own.contains_key(&(name.clone(), entry.key.clone())));
        let own = transaction.own.iter().filter(|((scope, _), _)| scope == name);
        // What the caller may not read is left out, also if the transaction wrote it.
        let own = own.filter(|(place, _)| !transaction.unreadable.contains(place));
        let own: Vec<_> =
            own.filter_map(|(_, entry)| entry.clone()).filter(|entry| checked.fits(entry)).collect();
        for entry in &own {
            transaction.record_covered_read(&(name.clone(), entry.key.clone()));
        }
        entries.extend(own);
        Ok(query.checked(&self.name)?.part_of(entries))
    }
}

fn heads_of(entries: &[Entry]) -> Vec<(String, Revision)> {
    let mut heads: Vec<_> = entries.iter().map(|entry| (entry.key.clone(), entry.revision)).collect();
    heads.sort();
    heads
}

/// The first key, in order, that differs between the lists.
fn first_difference<'l>(
    before: &'l [(String, Revision)],
    after: &'l [(String, Revision)],
) -> Option<&'l str> {
    let place = (0..before.len().max(after.len())).find(|&place| before.get(place) != after.get(place))?;
    let keys = [before.get(place), after.get(place)].into_iter().flatten().map(|(key, _)| key.as_str());
    keys.min()
}

fn changed_query(
    scope: &str,
    key: &str,
    before: &[(String, Revision)],
    after: &[(String, Revision)],
) -> Error {
    let revision = |heads: &[(String, Revision)]| {
        heads.iter().find(|(known, _)| known == key).map_or(0, |(_, revision)| revision.get())
    };
    Refusal::new(Code::Conflict, format!("{key} was added, changed or removed among what a query had found"))
        .hint(Hint::ReadAndRetry { scope: scope.to_owned(), key: key.to_owned() })
        .detail("scope", scope)
        .detail("key", key)
        .detail("expected", revision(before))
        .detail("revision", revision(after))
        .into()
}

/// Longer with each run, and random, so that two conflicting transactions differ.
fn pause(run: u32) -> Duration {
    let longest = LONGEST_PAUSE.min(Duration::from_micros(50 << run.min(12)));
    let random = RandomState::new().build_hasher().finish();
    let micros = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX).max(1);
    Duration::from_micros(random % micros)
}
