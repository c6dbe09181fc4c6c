//! Steps on entries: every verb, and transactions with a concurrent writer.

use std::fmt::Debug;
use std::time::Duration;

use blackboard::entry::{
    Actor, Comparison, Entry, Expected, FenceToken, Import, Keep, Operation, Order, Query, Scope,
    Transaction, Txn, Value, Write,
};
use blackboard::lock::{Acquire, Release};
use blackboard::swarm::FileEntry;
use blackboard::{Board, Metadata, Result, Revision};
use proptest::option;
use proptest::prelude::*;

use crate::pages::{self, PageStep, page_step};
use crate::revisions::Revisions;
use crate::scopes::{self, ScopeStep, scope_step};
use crate::world::session;

/// One step on entries.
#[derive(Clone, Debug)]
pub enum EntryStep {
    Write(Whose, Place, Written),
    Batch(Whose, usize, Vec<(usize, Written)>),
    Delete(Whose, Place, Option<At>),
    Clear(Whose, usize, usize),
    Purge(Whose, Place),
    Append(Whose, Place),
    Increment(Whose, Place, i64),
    Import { by: Whose, scope: usize, entries: Vec<Imported>, keep: usize, dry_run: bool },
    Txn(Whose, Vec<(Place, Tested)>, Vec<Done>, Option<Vec<Done>>),
    Transaction(Whose, Vec<Inside>),
    Look(Whose, Place, Asked, u8),
    Scope(usize, ScopeStep),
    Page(usize, PageStep),
    Acquire { who: u8, lock: usize, ttl: Option<u64> },
    Release { who: u8, lock: usize, last: bool },
}

/// A scope and a key.
pub type Place = (usize, usize);

/// The actor of a step.
#[derive(Clone, Debug)]
pub struct Whose {
    who: Option<u8>,
    author: Option<usize>,
    /// The last fence token of this item.
    fence: Option<u8>,
    /// The current fence token of this lock.
    lock: Option<usize>,
    operation: Option<u8>,
}

/// A write.
#[derive(Clone, Debug)]
pub struct Written {
    value: usize,
    tags: Vec<usize>,
    ttl: Option<u64>,
    metadata: Option<usize>,
    merge: bool,
    lease: bool,
    if_absent: bool,
    if_revision: Option<At>,
}

/// An entry of a file.
#[derive(Clone, Debug)]
pub struct Imported {
    /// Its scope, if the file names one.
    scope: Option<usize>,
    key: usize,
    value: usize,
    author: Option<usize>,
    /// How many seconds ago it was written.
    age: Option<u64>,
    ttl: Option<u64>,
    tags: Option<Vec<usize>>,
    metadata: Option<usize>,
    is_leased: bool,
}

/// The revision that a caller expects.
#[derive(Clone, Debug)]
pub enum At {
    Current,
    Zero,
    Number(i64),
}

/// The condition of a comparison.
#[derive(Clone, Debug)]
pub enum Tested {
    Exists(bool),
    Revision(At),
    Version(u64),
    Value(usize),
}

/// The operation of a comparison.
#[derive(Clone, Debug)]
pub enum Done {
    Write(Place, Written),
    Delete(Place),
    Read(Place),
}

/// A step inside a transaction.
#[derive(Clone, Debug)]
pub enum Inside {
    Read(Place),
    Write(Place, Written),
    Delete(Place),
    Query(usize, Asked),
    /// Another writer acts meanwhile.
    Meanwhile(Box<EntryStep>),
    Fail,
}

/// A query.
#[derive(Clone, Debug)]
pub struct Asked {
    pattern: Option<usize>,
    prefix: Option<usize>,
    tags: Vec<usize>,
    author: Option<usize>,
    since: Option<u64>,
    by_key: bool,
    limit: usize,
    offset: usize,
}

pub const SCOPES: [&str; 2] = ["default", "team 1"];
pub const KEYS: [&str; 6] = ["a", "a:b", "a:\u{d7ff}", "a:\u{10ffff}z", "b", "\u{e9} x"];
pub const LOCKS: [&str; 2] = ["deploy", "a:b"];
pub const TAGS: [&str; 3] = ["t", "t2", "\u{e9}"];
const PATTERNS: [&str; 6] = ["*", "a*", "a:?", "?", "[!a]*", "a:b"];
const PREFIXES: [&str; 4] = ["a", "a:", "a:\u{d7ff}", "c"];
const VALUES: [&str; 6] = ["null", "1", "[]", r#"{"z": 1.0, "a": 1e999}"#, "\"\u{2028}\"", "[1,\n 2]"];
const AUTHORS: [&str; 2] = ["analyst", "cli"];
const METADATA: [&str; 4] = [
    r#"{"b": 12345678901234567890123, "a": 1.0}"#,
    r#"{"a": 2}"#,
    r#"{"access_count": 1}"#,
    r#"{"access_count": 2}"#,
];
const KEEP: [Keep; 3] = [Keep::Ours, Keep::Theirs, Keep::Newest];
pub fn entry_step() -> BoxedStrategy<EntryStep> {
    prop_oneof![
        4 => simple(),
        2 => (by(), prop::collection::vec(inside(), 1..6)).prop_map(|(by, steps)| EntryStep::Transaction(by, steps)),
    ]
    .boxed()
}

fn simple() -> BoxedStrategy<EntryStep> {
    let comparisons = prop::collection::vec((place(), tested()), 0..3);
    let operations = || prop::collection::vec(done(), 0..4);
    prop_oneof![
        6 => (by(), place(), written()).prop_map(|(by, at, what)| EntryStep::Write(by, at, what)),
        2 => (by(), scope(), prop::collection::vec((key(), written()), 0..4))
            .prop_map(|(by, scope, writes)| EntryStep::Batch(by, scope, writes)),
        2 => (by(), place(), option::weighted(0.3, at())).prop_map(|(by, key, at)| EntryStep::Delete(by, key, at)),
        1 => (by(), scope(), 0..PATTERNS.len()).prop_map(|(by, scope, what)| EntryStep::Clear(by, scope, what)),
        1 => (by(), place()).prop_map(|(by, at)| EntryStep::Purge(by, at)),
        1 => (by(), place()).prop_map(|(by, at)| EntryStep::Append(by, at)),
        1 => (by(), place(), -2..3_i64).prop_map(|(by, at, number)| EntryStep::Increment(by, at, number)),
        2 => import(),
        2 => (by(), comparisons, operations(), option::of(operations()))
            .prop_map(|(by, comparisons, then, otherwise)| EntryStep::Txn(by, comparisons, then, otherwise)),
        2 => (0..4_u8, 0..LOCKS.len(), option::weighted(0.3, prop::sample::select(vec![1, 60, 3600])))
            .prop_map(|(who, lock, ttl)| EntryStep::Acquire { who, lock, ttl }),
        1 => (0..4_u8, 0..LOCKS.len(), any::<bool>())
            .prop_map(|(who, lock, last)| EntryStep::Release { who, lock, last }),
        2 => (scope(), scope_step()).prop_map(|(scope, step)| EntryStep::Scope(scope, step)),
        3 => (scope(), page_step()).prop_map(|(scope, step)| EntryStep::Page(scope, step)),
        2 => (operator(), place(), asked(), 0..=255_u8)
            .prop_map(|(by, at, asked, when)| EntryStep::Look(by, at, asked, when)),
        2 => (by(), place(), asked(), 0..=255_u8)
            .prop_map(|(by, at, asked, when)| EntryStep::Look(by, at, asked, when)),
    ]
    .boxed()
}

fn import() -> BoxedStrategy<EntryStep> {
    let seconds = || prop::sample::select(vec![1, 60, 3600, 2 * 86_400]);
    let entry =
        (
            (option::weighted(0.2, scope()), key(), 0..VALUES.len()),
            option::of(0..AUTHORS.len()),
            (option::of(seconds()), option::weighted(0.3, seconds())),
            option::weighted(0.3, tags()),
            option::weighted(0.5, 0..METADATA.len()),
            prop::bool::weighted(0.1),
        )
            .prop_map(|((scope, key, value), author, (age, ttl), tags, metadata, is_leased)| {
                Imported { scope, key, value, author, age, ttl, tags, metadata, is_leased }
            });
    (by(), scope(), prop::collection::vec(entry, 0..6), 0..KEEP.len(), prop::bool::weighted(0.2))
        .prop_map(|(by, scope, entries, keep, dry_run)| EntryStep::Import {
            by,
            scope,
            entries,
            keep,
            dry_run,
        })
        .boxed()
}

fn scope() -> std::ops::Range<usize> {
    0..SCOPES.len()
}

fn key() -> std::ops::Range<usize> {
    0..KEYS.len()
}

fn place() -> impl Strategy<Value = Place> {
    (scope(), key())
}

fn tags() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..TAGS.len(), 0..3)
}

/// No session and no author, so every scope can be read.
fn operator() -> BoxedStrategy<Whose> {
    Just(Whose { who: None, author: None, fence: None, lock: None, operation: None }).boxed()
}

fn by() -> BoxedStrategy<Whose> {
    (
        option::of(0..4_u8),
        option::weighted(0.2, 0..2_usize),
        option::weighted(0.1, 0..5_u8),
        option::weighted(0.1, 0..LOCKS.len()),
        option::weighted(0.1, 3..6_u8),
    )
        .prop_map(|(who, author, fence, lock, operation)| Whose { who, author, fence, lock, operation })
        .boxed()
}

fn at() -> impl Strategy<Value = At> {
    prop_oneof![3 => Just(At::Current), 1 => Just(At::Zero), 1 => (0..30_i64).prop_map(At::Number)]
}

fn written() -> BoxedStrategy<Written> {
    let ttl = prop::sample::select(vec![1, 60, 3600, 2 * 86_400]);
    (
        0..VALUES.len(),
        tags(),
        option::weighted(0.3, ttl),
        option::weighted(0.3, 0..METADATA.len()),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.1),
        option::weighted(0.2, at()),
    )
        .prop_map(|(value, tags, ttl, metadata, merge, lease, if_absent, if_revision)| Written {
            value,
            tags,
            ttl,
            metadata,
            merge,
            lease,
            if_absent,
            if_revision,
        })
        .boxed()
}

fn tested() -> BoxedStrategy<Tested> {
    prop_oneof![
        2 => any::<bool>().prop_map(Tested::Exists),
        2 => at().prop_map(Tested::Revision),
        1 => (0..4_u64).prop_map(Tested::Version),
        1 => (0..VALUES.len()).prop_map(Tested::Value),
    ]
    .boxed()
}

fn done() -> BoxedStrategy<Done> {
    prop_oneof![
        2 => (place(), written()).prop_map(|(at, what)| Done::Write(at, what)),
        1 => place().prop_map(Done::Delete),
        1 => place().prop_map(Done::Read),
    ]
    .boxed()
}

fn inside() -> BoxedStrategy<Inside> {
    prop_oneof![
        3 => place().prop_map(Inside::Read),
        4 => (place(), written()).prop_map(|(at, what)| Inside::Write(at, what)),
        2 => place().prop_map(Inside::Delete),
        2 => (scope(), asked()).prop_map(|(scope, asked)| Inside::Query(scope, asked)),
        1 => simple().prop_map(|step| Inside::Meanwhile(Box::new(step))),
        1 => Just(Inside::Fail),
    ]
    .boxed()
}

fn asked() -> BoxedStrategy<Asked> {
    (
        option::of(0..PATTERNS.len()),
        option::weighted(0.3, 0..PREFIXES.len()),
        tags(),
        option::weighted(0.2, 0..2_usize),
        option::weighted(0.3, prop::sample::select(vec![0, 60, 3600, 3 * 86_400])),
        any::<bool>(),
        0..4_usize,
        prop_oneof![3 => Just(0_usize), 1 => Just(1_usize)],
    )
        .prop_map(|(pattern, prefix, tags, author, since, by_key, limit, offset)| Asked {
            pattern,
            prefix,
            tags,
            author,
            since,
            by_key,
            limit,
            offset,
        })
        .boxed()
}

/// A board for steps, and the fence tokens of claims.
pub struct Taking<'a> {
    pub board: &'a Board,
    pub revisions: &'a Revisions,
    pub fence: &'a dyn Fn(u8) -> Option<FenceToken>,
}

impl Taking<'_> {
    /// Takes a step, and returns its complete answer as text.
    pub fn take(&self, step: &EntryStep) -> Result<String> {
        match step {
            EntryStep::Write(by, at, what) => {
                self.scope(at.0, by).write(&self.write(*at, what)).map(|answer| shown(&answer))
            }
            EntryStep::Batch(by, scope, writes) => {
                let writes: Vec<_> =
                    writes.iter().map(|(key, what)| self.write((*scope, *key), what)).collect();
                self.scope(*scope, by).write_batch(&writes).map(|answer| shown(&answer))
            }
            EntryStep::Delete(by, at, None) => {
                self.scope(at.0, by).delete(name(at.1)).map(|answer| shown(&answer))
            }
            EntryStep::Delete(by, at, Some(expected)) => self
                .scope(at.0, by)
                .delete_if_revision(name(at.1), self.revision(*at, expected))
                .map(|answer| shown(&answer)),
            EntryStep::Clear(by, scope, pattern) => {
                self.scope(*scope, by).clear(PATTERNS[*pattern]).map(|answer| shown(&answer))
            }
            EntryStep::Purge(by, at) => self.scope(at.0, by).purge(name(at.1)).map(|answer| shown(&answer)),
            EntryStep::Append(by, at) => {
                self.scope(at.0, by).append(name(at.1), &Value::of(&7)?).map(|answer| shown(&answer))
            }
            EntryStep::Increment(by, at, number) => {
                self.scope(at.0, by).increment(name(at.1), *number).map(|answer| shown(&answer))
            }
            EntryStep::Import { by, scope, entries, keep, dry_run } => {
                let entries: Vec<_> = entries.iter().map(|entry| self.file_entry(entry)).collect();
                let import = Import { keep: KEEP[*keep], dry_run: *dry_run, ..Import::default() };
                self.scope(*scope, by).import(&entries, &import).map(|answer| shown(&answer))
            }
            EntryStep::Txn(by, comparisons, then, otherwise) => {
                let operations =
                    |list: &Vec<Done>| list.iter().map(|done| self.operation(done)).collect::<Vec<_>>();
                let txn = Txn {
                    comparisons: comparisons
                        .iter()
                        .map(|(at, tested)| self.comparison(*at, tested))
                        .collect(),
                    then: operations(then),
                    otherwise: otherwise.as_ref().map(operations),
                };
                self.board.txn(&txn, &self.by(by)).map(|answer| shown(&answer))
            }
            EntryStep::Transaction(by, steps) => Ok(self.transaction(by, steps)),
            EntryStep::Look(by, at, asked, when) => self.look(by, *at, asked, *when),
            EntryStep::Scope(scope, step) => scopes::take(self.board, SCOPES[*scope], step),
            EntryStep::Page(scope, step) => pages::take(self.board, SCOPES[*scope], step),
            EntryStep::Acquire { who, lock, ttl } => {
                let ttl = ttl.map(Duration::from_secs);
                let acquire = Acquire { ttl, ..Acquire::of(LOCKS[*lock], &session(*who)) };
                self.board.locks().acquire(&acquire).map(|answer| shown(&answer))
            }
            EntryStep::Release { who, lock, last } => {
                let fence = self.lock(*lock).filter(|_| *last);
                let release = Release { fence, ..Release::of(LOCKS[*lock], &session(*who)) };
                self.board.locks().release(&release).map(|answer| shown(&answer))
            }
        }
    }

    fn transaction(&self, by: &Whose, steps: &[Inside]) -> String {
        let mut seen = Vec::new();
        let outcome = self.board.try_transaction(|tx| {
            tx.acting_as(self.by(by))?;
            for step in steps {
                seen.push(self.inside(tx, step)?);
            }
            Ok(())
        });
        // The reads have to be the same on every engine, also if the transaction failed.
        shown(&(seen, outcome.map_err(|error| (error.code(), error.to_string()))))
    }

    fn inside(&self, tx: &mut Transaction<'_>, step: &Inside) -> Result<String> {
        match step {
            Inside::Read(at) => tx.scope(SCOPES[at.0]).entry(name(at.1)).map(|entry| shown(&entry)),
            Inside::Write(at, what) => {
                let write = self.write(*at, what);
                tx.scope(SCOPES[at.0]).write(&write).map(|()| String::new())
            }
            Inside::Delete(at) => tx.scope(SCOPES[at.0]).delete(name(at.1)).map(|gone| shown(&gone)),
            Inside::Query(scope, asked) => {
                tx.scope(SCOPES[*scope]).query(&self.query(asked)).map(|found| shown(&found))
            }
            Inside::Meanwhile(step) => {
                Ok(self.take(step).unwrap_or_else(|error| format!("{}: {error}", error.code())))
            }
            Inside::Fail => Err(blackboard::Error::invalid("it changed its mind")),
        }
    }

    /// All verbs that only read.
    fn look(&self, by: &Whose, at: Place, asked: &Asked, when: u8) -> Result<String> {
        let scope = self.scope(at.0, by);
        let key = name(at.1);
        let query = self.query(asked);
        let newest = self.board.status()?.revision;
        let then = self.revisions.id(self.revisions.number(newest) * i64::from(when) / 255);
        let mut pages = Vec::new();
        let mut next = Query { limit: Some(asked.limit.max(1)), ..query.clone() };
        loop {
            let page = scope.query(&next)?;
            next.after.clone_from(&page.next);
            next.offset = 0;
            pages.push(page);
            if next.after.is_none() {
                break;
            }
        }
        let as_of = scope.entry_as_of(key, then).map_err(|error| (error.code(), error.to_string()));
        Ok(shown(&(
            (scope.read(key)?, scope.entry(key)?, scope.read_batch(&KEYS)?),
            (scope.history(key, 3)?, scope.history(key, 100)?, as_of),
            (scope.query(&query)?, pages),
            (scope.list(&query)?, scope.snapshot(&query)?),
        )))
    }

    fn scope(&self, scope: usize, by: &Whose) -> Scope<'_> {
        self.board.scope(SCOPES[scope]).acting_as(self.by(by))
    }

    fn by(&self, by: &Whose) -> Actor {
        Actor {
            author: by.author.map(|author| AUTHORS[author].to_owned()),
            session: by.who.map(session),
            fences: by.fence.and_then(self.fence).into_iter().chain(self.lock_fence(by.lock)).collect(),
            operation: by.operation.map(|number| format!("op{number}")),
        }
    }

    /// The fence token of a lock.
    fn lock(&self, lock: usize) -> Option<Revision> {
        let locks = self.board.locks().list().unwrap();
        locks.into_iter().find(|held| held.name == LOCKS[lock]).map(|held| held.fence)
    }

    fn lock_fence(&self, lock: Option<usize>) -> Option<FenceToken> {
        let lock = lock?;
        let fence = self.lock(lock).unwrap_or_else(|| self.revisions.id(1));
        Some(FenceToken::Lock { name: LOCKS[lock].to_owned(), fence })
    }

    fn write(&self, at: Place, what: &Written) -> Write {
        Write {
            tags: tag_names(&what.tags),
            ttl: what.ttl.map(Duration::from_secs),
            metadata: what.metadata.map(|which| Metadata::parse(METADATA[which]).unwrap()),
            merge: what.merge,
            if_absent: what.if_absent,
            if_revision: what.if_revision.as_ref().map(|expected| self.revision(at, expected)),
            lease: what.lease,
            ..Write::new(name(at.1), value(what.value))
        }
    }

    fn file_entry(&self, entry: &Imported) -> FileEntry {
        let before = |age: u64| self.board.clock().now().minus(Duration::from_secs(age));
        FileEntry {
            scope: entry.scope.map(|scope| SCOPES[scope].to_owned()),
            author: entry.author.map(|author| AUTHORS[author].to_owned()),
            timestamp: entry.age.map(before),
            ttl: entry.ttl.map(Duration::from_secs),
            tags: entry.tags.as_deref().map(tag_names),
            metadata: entry.metadata.map(|which| Metadata::parse(METADATA[which]).unwrap()),
            is_leased: entry.is_leased,
            ..FileEntry::new(name(entry.key), value(entry.value))
        }
    }

    fn revision(&self, at: Place, expected: &At) -> Revision {
        match expected {
            At::Current => {
                let entry = self.board.scope(SCOPES[at.0]).entry(name(at.1)).unwrap();
                entry.map_or(Revision::ZERO, |entry: Entry| entry.revision)
            }
            At::Zero => Revision::ZERO,
            At::Number(number) => self.revisions.id(*number),
        }
    }

    fn comparison(&self, at: Place, tested: &Tested) -> Comparison {
        let test = match tested {
            Tested::Exists(exists) => Expected::Exists(*exists),
            Tested::Revision(expected) => Expected::Revision(self.revision(at, expected)),
            Tested::Version(version) => Expected::Version(*version),
            Tested::Value(which) => Expected::Value(value(*which)),
        };
        Comparison { scope: SCOPES[at.0].to_owned(), key: name(at.1).to_owned(), expected: test }
    }

    fn operation(&self, done: &Done) -> Operation {
        let (Done::Write(at, _) | Done::Delete(at) | Done::Read(at)) = done;
        let (scope, key) = (SCOPES[at.0].to_owned(), name(at.1).to_owned());
        match done {
            Done::Write(at, what) => Operation::Write { scope, write: self.write(*at, what) },
            Done::Delete(_) => Operation::Delete { scope, key },
            Done::Read(_) => Operation::Read { scope, key },
        }
    }

    fn query(&self, asked: &Asked) -> Query {
        Query {
            pattern: asked.pattern.map(|which| PATTERNS[which].to_owned()),
            prefix: asked.prefix.map(|which| PREFIXES[which].to_owned()),
            tags: tag_names(&asked.tags),
            author: asked.author.map(|author| AUTHORS[author].to_owned()),
            updated_since: asked.since.map(|ago| self.board.clock().now().minus(Duration::from_secs(ago))),
            order: if asked.by_key { Order::Key } else { Order::Newest },
            limit: Some(asked.limit),
            offset: asked.offset,
            ..Query::default()
        }
    }
}

fn name(key: usize) -> &'static str {
    KEYS[key]
}

fn value(which: usize) -> Value {
    Value::parse(VALUES[which], 1024).unwrap()
}

fn tag_names(tags: &[usize]) -> Vec<String> {
    tags.iter().map(|tag| TAGS[*tag].to_owned()).collect()
}

fn shown(answer: &impl Debug) -> String {
    format!("{answer:?}")
}
