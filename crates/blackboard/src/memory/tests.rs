//! A month of traffic with a fixed clock, in which processes are killed at any commit: no record is lost.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::*;
use crate::agent::Register;
use crate::clock::{Clock, FixedClock};
use crate::entry::Actor;
use crate::error::{Code, Fault, Result};
use crate::revision::Revision;
use crate::search::IndexLocation;
use crate::store::sqlite::{Sqlite, SqliteOptions};
use crate::store::{Changes, Commit, Committed, Memory as MemoryStore, Prefetch, Store, Tx};
use crate::sweep::Sweep;

/// An engine whose process is killed at some of its commits, before or after they happened.
struct Killed {
    store: Arc<dyn Store>,
    random: AtomicU64,
    /// Of so many commits, one is the last of its process.
    every: AtomicU64,
}

impl Killed {
    fn new(store: Arc<dyn Store>) -> Killed {
        Killed { store, random: AtomicU64::new(7), every: AtomicU64::new(u64::MAX) }
    }

    fn random(&self) -> u64 {
        let next =
            self.random.load(Ordering::Relaxed).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.random.store(next, Ordering::Relaxed);
        next >> 33
    }

    fn kill() -> crate::Error {
        Fault::new(Code::Io, "killed").into()
    }
}

impl Store for Killed {
    fn read(&self, prefetch: &[Prefetch<'_>], f: &mut dyn FnMut(&dyn Tx) -> Result<()>) -> Result<()> {
        self.store.read(prefetch, f)
    }

    fn commit(
        &self,
        commit: &Commit<'_>,
        f: &mut dyn FnMut(&dyn Tx) -> Result<Changes>,
    ) -> Result<Committed> {
        let chance = self.random();
        let every = self.every.load(Ordering::Relaxed);
        if every != u64::MAX && chance.is_multiple_of(2 * every) {
            return Err(Killed::kill());
        }
        let committed = self.store.commit(commit, f)?;
        if every != u64::MAX && chance % (2 * every) == 1 {
            return Err(Killed::kill());
        }
        Ok(committed)
    }

    fn wait(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        self.store.wait(after, timeout)
    }

    fn has_writer_lock(&self) -> bool {
        self.store.has_writer_lock()
    }

    fn check_still_there(&self) -> Result<()> {
        self.store.check_still_there()
    }

    fn size(&self) -> Result<u64> {
        self.store.size()
    }

    fn scrub(&self) -> Result<Vec<String>> {
        self.store.scrub()
    }
}

/// A summary, and the records that it was written for.
type Summaries = Vec<(String, Vec<String>)>;

/// The records that are in a level, or that a summary in a level replaces, directly or through another summary.
fn known(board: &Board, summaries: &Summaries) -> BTreeSet<String> {
    let all = Recall { limit: Some(1_000_000), ..Recall::default() };
    let recalled = board.memories().recall(&all, &IndexLocation::Memory).unwrap();
    assert!(recalled.incomplete.is_empty());
    let mut known: BTreeSet<_> = recalled.records.into_iter().map(|record| record.key).collect();
    // The newest summary may replace older ones.
    for (summary, sources) in summaries.iter().rev() {
        if known.contains(summary) {
            known.extend(sources.iter().cloned());
        }
    }
    known
}

fn no_record_is_lost_in_a_month(days: u64, open: impl FnOnce(Arc<dyn Clock>) -> Arc<dyn Store>) {
    let clock = Arc::new(FixedClock::at("2026-01-01T00:00:00.000Z").unwrap());
    let killed = Arc::new(Killed::new(open(clock.clone())));
    let board = Board::on(killed.clone(), clock.clone());
    board.memories().define_seed(None).unwrap();
    let mut expected = BTreeSet::new();
    let mut sessions: Vec<String> = Vec::new();
    let mut kills = 0;
    let mut summaries = Summaries::new();
    // 16 steps a day, each by a process that may be killed.
    for step in 0..days * 16 {
        clock.advance(Duration::from_mins(killed.random() % 180));
        killed.every.store(6, Ordering::Relaxed);
        let who = sessions.get(usize::try_from(killed.random()).unwrap() % sessions.len().max(1)).cloned();
        let outcome = match killed.random() % 10 {
            0 => board.agents().register(&Register::named(&format!("a{step}"))).map(|registered| {
                sessions.push(registered.agent.session_id);
            }),
            1 => who.map_or(Ok(()), |who| board.agents().deregister(&who).map(drop)),
            2 => board.sweep(&Sweep::default()).map(drop),
            3 => board.memories().drain(&Drain::default()).map(drop),
            4 => summarize(&board, &mut summaries),
            _ => {
                let remember = Remember {
                    relevance: Some(Relevance::nearest(f64::from(u32::try_from(step % 11).unwrap()) / 10.0)),
                    tags: [["semantic"], ["skill"], ["action"], ["note"]][usize::try_from(step % 4).unwrap()]
                        .map(str::to_owned)
                        .to_vec(),
                    actor: Actor { session: who, ..Actor::default() },
                    ..Remember::text(&format!("step {step}"))
                };
                board.memories().remember(&remember).map(|remembered| {
                    expected.insert(remembered.key);
                })
            }
        };
        killed.every.store(u64::MAX, Ordering::Relaxed);
        if let Err(error) = outcome {
            kills += usize::from(error.code() == Code::Io);
        }
        if step % 64 == 0 {
            let known = known(&board, &summaries);
            let lost: Vec<_> = expected.difference(&known).collect();
            assert!(lost.is_empty(), "after step {step}: {lost:?}");
        }
    }
    assert!(kills > 10 && expected.len() > 100, "{kills} kills, {} records", expected.len());
    // After the last kill, a sweep and a drain complete what was begun.
    board.sweep(&Sweep::default()).unwrap();
    clock.advance(Duration::from_hours(1));
    board.memories().drain(&Drain::default()).unwrap();
    let known = known(&board, &summaries);
    assert_eq!(expected.difference(&known).collect::<Vec<_>>(), Vec::<&String>::new());
    let map = board.memories().map().unwrap();
    let working = map.levels.iter().find(|level| level.level == WORKING).unwrap();
    assert_eq!(working.records, 0, "working memory is empty when nothing is remembered");
}

/// What an agent does with a batch.
fn summarize(board: &Board, summaries: &mut Summaries) -> Result<()> {
    let pending = board.memories().pending(None)?;
    let Some(batch) = pending.batches.into_iter().next() else { return Ok(()) };
    let summary = format!("summary at {}", pending.revision);
    let of: Vec<_> = batch.records.into_iter().map(|record| record.key).collect();
    let key = super::record::key_of(&crate::entry::Value::of(&summary)?);
    summaries.push((key, of.clone()));
    let (level, into, at) = (batch.level, Some(batch.into), Some(pending.revision));
    board.memories().compact(&Compact { level, into, summary, of, at, ..Compact::default() }).map(drop)
}

#[test]
fn no_record_is_lost_in_a_month_with_kills_in_memory() {
    testkit::limit_test();
    no_record_is_lost_in_a_month(30, |clock| Arc::new(MemoryStore::new(clock)));
}

#[test]
fn no_record_is_lost_in_a_month_with_kills_in_a_file() {
    let directory = testkit::tempdir().unwrap();
    let path = directory.path().join("local.db");
    no_record_is_lost_in_a_month(30, |clock| {
        Arc::new(Sqlite::open(&path, clock, &SqliteOptions::default()).unwrap())
    });
}
