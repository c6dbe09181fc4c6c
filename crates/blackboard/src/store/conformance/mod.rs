//! Tests of the contract of engines: every verb gives the same answers on every engine.
//!
//! A test here is a function of a `Fixture`. Its file lists it once in `on_every_engine!`, which runs it on every
//! engine of this crate. A new engine is one line there, and one constructor of `Fixture`.
//!
//! With the feature `conformance`, an engine of another crate runs the same suite: see [`tests`], and
//! `examples/engine.rs`.

#![expect(
    clippy::assigning_clones,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "this is a suite of tests, also where another crate runs it"
)]
#![cfg_attr(not(test), expect(clippy::wildcard_imports, reason = "each file uses most of what is here"))]

mod access;
mod access_paths;
mod agents;
#[cfg(test)]
pub(crate) mod announced;
mod brief;
mod callers;
mod calls;
mod check_ins;
mod claims;
pub(crate) mod commits;
mod comparisons;
mod current_work;
mod custom_policies;
mod dashboard;
mod dependencies;
mod edits;
mod ended_scopes;
mod entries;
mod entry_history;
mod entry_limits;
mod entry_queries;
mod expiry;
mod fences;
mod files;
mod gone_holders;
mod heartbeats;
mod imports;
mod items;
mod leases;
mod locks;
mod log;
mod memory;
mod optimism;
mod overview;
mod pages;
mod past_scopes;
mod projects;
mod protocols;
mod prune;
mod purge;
mod ranges;
#[cfg(test)]
mod round_trips;
mod scope_batches;
mod scopes;
mod subscriptions;
mod sweep;
mod sweep_clock;
mod text;
mod trackers;
mod transactions;
mod wait;
mod wait_for_item;
mod wait_for_key;
mod waiting_sweeps;
mod watched;
mod writers;

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[cfg(test)]
use testkit::{patience, wait_until};

#[cfg(test)]
use self::announced::{Announced, RoundTrips};
#[cfg(test)]
use super::Memory;
#[cfg(all(test, unix, feature = "redis"))]
use super::redis::{Address, Redis, RedisOptions};
#[cfg(test)]
use super::sqlite::{Sqlite, SqliteOptions};
use super::{Commit, Committed, OnBusy, Page, Range, Row, Store};
use crate::agent::{Agent, AgentStatus, Heartbeat, HeartbeatRecorded, Register, newcomer};
use crate::clock::{Clock, FixedClock, Timestamp};
use crate::entry::{Actor, Entry, Scope, Value, Write, Written};
use crate::error::{Code, Result};
use crate::event::{Event, EventType, NewEvent, TargetType};
use crate::id::CountingIds;
use crate::process::FakeProcesses;
use crate::revision::Revision;
use crate::settings::Settings;
use crate::store::Changes;
use crate::sweep::{Sweep, Swept};
use crate::work::{Claim, Claimed, Complete, Create, Priority, Release, Status, WorkItem, blank_item};
use crate::{Board, Metadata};

/// The engines. Each line makes a module of tests in every file of the suite.
macro_rules! on_every_engine {
    ($($test:ident),+ $(,)?) => {
        /// The tests of this file.
        pub(super) const TESTS: &[crate::store::conformance::Test] =
            &[$(crate::store::conformance::Test { name: concat!(module_path!(), "::", stringify!($test)), run: $test }),+];

        on_every_engine!(@ on_memory = memory: $($test),+);
        on_every_engine!(@ on_memory_running_twice = memory_running_twice: $($test),+);
        on_every_engine!(@ on_memory_with_gaps = memory_with_gaps: $($test),+);
        on_every_engine!(@ on_announced_memory = announced_memory: $($test),+);
        on_every_engine!(@ on_sqlite = sqlite: $($test),+);
        on_every_engine!(@ on_sqlite_with_gaps = sqlite_with_gaps: $($test),+);
        #[cfg(feature = "redis")]
        on_every_engine!(@skipping on_redis = redis: $($test),+);
        #[cfg(feature = "redis")]
        on_every_engine!(@skipping on_redis_running_twice = redis_running_twice: $($test),+);
        #[cfg(feature = "redis")]
        on_every_engine!(@skipping on_redis_with_gaps = redis_with_gaps: $($test),+);
        #[cfg(feature = "redis")]
        on_every_engine!(@skipping on_redis_cluster = redis_cluster: $($test),+);
    };
    // An engine whose server this machine may lack.
    (@skipping $engine:ident = $constructor:ident: $($test:ident),+) => {
        #[cfg(all(test, unix))]
        mod $engine {
            $(#[test]
            fn $test() {
                if let Some(fixture) = crate::store::conformance::Fixture::$constructor() {
                    super::$test(&fixture);
                }
            })+
        }
    };
    (@ $engine:ident = $constructor:ident: $($test:ident),+) => {
        #[cfg(test)]
        mod $engine {
            $(#[test]
            fn $test() {
                super::$test(&crate::store::conformance::Fixture::$constructor());
            })+
        }
    };
}
use on_every_engine;

/// The tests of every file.
const FILES: &[&[Test]] = &[
    access::TESTS,
    access_paths::TESTS,
    agents::TESTS,
    check_ins::TESTS,
    brief::TESTS,
    callers::TESTS,
    calls::TESTS,
    claims::TESTS,
    commits::TESTS,
    comparisons::TESTS,
    current_work::TESTS,
    custom_policies::TESTS,
    dashboard::TESTS,
    dependencies::TESTS,
    edits::TESTS,
    ended_scopes::TESTS,
    entries::TESTS,
    entry_history::TESTS,
    entry_limits::TESTS,
    entry_queries::TESTS,
    expiry::TESTS,
    fences::TESTS,
    files::TESTS,
    gone_holders::TESTS,
    heartbeats::TESTS,
    imports::TESTS,
    items::TESTS,
    leases::TESTS,
    locks::TESTS,
    log::TESTS,
    memory::TESTS,
    optimism::TESTS,
    overview::TESTS,
    pages::TESTS,
    past_scopes::TESTS,
    projects::TESTS,
    protocols::TESTS,
    prune::TESTS,
    purge::TESTS,
    ranges::TESTS,
    scope_batches::TESTS,
    scopes::TESTS,
    subscriptions::TESTS,
    sweep::TESTS,
    sweep_clock::TESTS,
    text::TESTS,
    trackers::TESTS,
    transactions::TESTS,
    wait::TESTS,
    wait_for_item::TESTS,
    wait_for_key::TESTS,
    waiting_sweeps::TESTS,
    writers::TESTS,
];

/// One test of the suite.
pub struct Test {
    /// Its name.
    pub name: &'static str,
    run: fn(&Fixture),
}

impl Test {
    /// Runs it on a new board. Panics if the engine breaks the contract. The engine has to use the clock.
    pub fn run(&self, engine: impl FnOnce(Arc<dyn Clock>) -> Arc<dyn Store>) {
        (self.run)(&Fixture::on(|clock| (engine(clock), None)));
    }
}

/// Every test of the suite, each for a board of its own.
pub fn tests() -> impl Iterator<Item = &'static Test> {
    FILES.iter().copied().flatten()
}

/// An empty board on one engine, with time, processes and ids set by the test.
pub(crate) struct Fixture {
    pub(crate) board: Board,
    /// The same engine, without a layer that checks the reads of verbs: for direct reads and commits of a test.
    engine: Arc<dyn Store>,
    pub(crate) clock: Arc<FixedClock>,
    pub(crate) processes: Arc<FakeProcesses>,
    revisions: Mutex<Revisions>,
    /// The directory of an engine that needs one, removed at the end.
    _directory: Option<Box<dyn Any + Send + Sync>>,
}

/// The ids of all events so far, including pruned ones.
#[derive(Default)]
struct Revisions {
    known: Vec<Revision>,
    /// Whether events were pruned before the fixture recorded their ids, so that numbers no longer mean anything.
    incomplete: bool,
}

fn board_on(store: Arc<dyn Store>, clock: &Arc<FixedClock>, processes: &Arc<FakeProcesses>) -> Board {
    Board::on(store, clock.clone())
        .with_processes(processes.clone())
        .with_ids(Arc::new(CountingIds::default()))
}

impl Fixture {
    #[cfg(test)]
    pub(crate) fn memory() -> Fixture {
        Fixture::on(|clock| (Arc::new(Memory::new(clock)), None))
    }

    #[cfg(test)]
    pub(crate) fn memory_running_twice() -> Fixture {
        Fixture::on(|clock| (Arc::new(Memory::new(clock).running_everything_twice()), None))
    }

    #[cfg(test)]
    pub(crate) fn memory_with_gaps() -> Fixture {
        Fixture::on(|clock| (Arc::new(Memory::new(clock).skipping_revisions()), None))
    }

    /// A memory engine that refuses reads that were not announced.
    #[cfg(test)]
    pub(crate) fn announced_memory() -> Fixture {
        Fixture::announced().0
    }

    /// The same, with the count of its round trips.
    #[cfg(test)]
    fn announced() -> (Fixture, Arc<RoundTrips>) {
        let fixture = Fixture::memory();
        let announced = Announced::new(fixture.engine.clone());
        let round_trips = announced.round_trips();
        let board = board_on(Arc::new(announced), &fixture.clock, &fixture.processes);
        (Fixture { board, ..fixture }, round_trips)
    }

    #[cfg(test)]
    pub(crate) fn sqlite() -> Fixture {
        Fixture::on_sqlite(|store| store)
    }

    #[cfg(test)]
    pub(crate) fn sqlite_with_gaps() -> Fixture {
        Fixture::on_sqlite(Sqlite::skipping_revisions)
    }

    #[cfg(test)]
    fn on_sqlite(change: impl FnOnce(Sqlite) -> Sqlite) -> Fixture {
        Fixture::on(|clock| {
            let directory = testkit::tempdir().unwrap();
            let path = directory.path().join("local.db");
            let store = Sqlite::open(&path, clock, &SqliteOptions::default()).unwrap();
            (Arc::new(change(store)), Some(Box::new(directory)))
        })
    }

    #[cfg(all(test, unix, feature = "redis"))]
    pub(crate) fn redis() -> Option<Fixture> {
        Fixture::on_redis(testkit::redis::shared_redis(), |store| store)
    }

    /// A board on a cluster. The server of its address need not be the one that has it.
    #[cfg(all(test, unix, feature = "redis"))]
    pub(crate) fn redis_cluster() -> Option<Fixture> {
        Fixture::on_redis(testkit::redis_cluster::shared_cluster(), |store| store)
    }

    #[cfg(all(test, unix, feature = "redis"))]
    pub(crate) fn redis_running_twice() -> Option<Fixture> {
        Fixture::on_redis(testkit::redis::shared_redis(), Redis::running_everything_twice)
    }

    #[cfg(all(test, unix, feature = "redis"))]
    pub(crate) fn redis_with_gaps() -> Option<Fixture> {
        Fixture::on_redis(testkit::redis::shared_redis(), Redis::skipping_revisions)
    }

    /// `None` if this machine has no server.
    #[cfg(all(test, unix, feature = "redis"))]
    fn on_redis(url: Option<String>, change: impl FnOnce(Redis) -> Redis) -> Option<Fixture> {
        testkit::limit_test();
        let address: Address = url?.parse().unwrap();
        Some(Fixture::on(|clock| {
            // A long limit, because the test machine may have two cores and other work.
            let (patience, reply_limit) = (Duration::from_mins(1), Duration::from_secs(30));
            let options =
                RedisOptions { patience, reply_limit, fixed_clock: Some(clock), ..RedisOptions::default() };
            (Arc::new(change(Redis::open(address, &options).unwrap())), None)
        }))
    }

    fn on(
        engine: impl FnOnce(Arc<dyn Clock>) -> (Arc<dyn Store>, Option<Box<dyn Any + Send + Sync>>),
    ) -> Fixture {
        #[cfg(test)]
        testkit::limit_test();
        let clock = Arc::new(FixedClock::at("2026-02-03T15:30:00Z").unwrap());
        let processes = Arc::new(FakeProcesses::default());
        let (store, directory) = engine(clock.clone());
        let board = board_on(store.clone(), &clock, &processes);
        Fixture { board, engine: store, clock, processes, revisions: Mutex::default(), _directory: directory }
    }

    fn with_settings(&self, change: impl FnOnce(&mut Settings)) -> Board {
        let mut settings = Settings::default();
        change(&mut settings);
        self.board.clone().with_settings(settings)
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    fn pass_days(&self, days: u64) {
        self.pass(days * 86_400);
    }

    fn session(&self, name: &str) -> String {
        self.register(&Register::named(name)).session_id
    }

    /// A session with this PID.
    fn session_of_process(&self, name: &str, pid: u32) -> String {
        self.processes.start(pid);
        self.register(&Register { pid: Some(pid), ..Register::named(name) }).session_id
    }

    fn register(&self, request: &Register) -> Agent {
        self.board.agents().register(request).unwrap().agent
    }

    fn beat(&self, session: &str) -> HeartbeatRecorded {
        self.board.agents().heartbeat(&Heartbeat::of(session)).unwrap()
    }

    /// Sets the heartbeat of a session to a moment that its clock has not reached, as before the clock was set back.
    fn set_heartbeat_ahead(&self, session: &str, seconds: u64) {
        let ahead = self.now().plus(Duration::from_secs(seconds));
        let agent = self.agent(session);
        self.put(&[Agent { last_seen_at: ahead, last_beat_at: ahead, ..agent }.into()]);
    }

    /// How many heartbeats of a session are kept.
    fn heartbeats(&self, session: &str) -> u64 {
        self.read(|tx| tx.count(&Range::heartbeats_of(session))).unwrap()
    }

    fn agent(&self, session: &str) -> Agent {
        self.board.agents().show(session).unwrap().agent
    }

    fn item(&self, id: &str) -> WorkItem {
        self.board.work().create(&Create::new(id, &format!("Title of {id}"))).unwrap().item
    }

    fn blocked_item(&self, id: &str, blockers: &[&str]) -> WorkItem {
        let create = Create { blocked_by: owned(blockers), ..Create::new(id, &format!("Title of {id}")) };
        self.board.work().create(&create).unwrap().item
    }

    fn claim(&self, id: &str, session: &str) -> Claimed {
        self.board.work().claim(&Claim::of(id, session)).unwrap()
    }

    fn release(&self, id: &str, session: &str) {
        assert!(self.board.work().release(&Release::of(id, session)).unwrap().released);
    }

    fn complete(&self, id: &str, session: &str) {
        self.board.work().complete(&Complete::of(id, session)).unwrap();
    }

    /// An item in this state, held or completed by `holder` where the state has one.
    fn item_that_is(&self, id: &str, status: Status, holder: &str) -> WorkItem {
        match status {
            Status::Available => drop(self.item(id)),
            Status::Blocked => drop(self.blocked_item(id, &["what does not exist"])),
            Status::Claimed | Status::Completed => {
                self.item(id);
                self.claim(id, holder);
            }
        }
        if status == Status::Completed {
            self.complete(id, holder);
        }
        self.work(id)
    }

    fn work(&self, id: &str) -> WorkItem {
        self.board.work().status(id).unwrap().item
    }

    /// The entries of the scope that most tests are about.
    fn scope(&self) -> Scope<'_> {
        self.board.scope("team")
    }

    /// The same on behalf of a session.
    fn scope_of(&self, session: &str) -> Scope<'_> {
        self.scope().acting_as(Actor::session(session))
    }

    fn write(&self, key: &str, value: &str) -> Written {
        self.scope().write(&a_write(key, value)).unwrap()
    }

    fn entry(&self, key: &str) -> Option<Entry> {
        self.scope().entry(key).unwrap()
    }

    /// The value of a key, as its text.
    fn value(&self, key: &str) -> Option<String> {
        self.scope().read(key).unwrap().map(|value| value.as_str().to_owned())
    }

    fn sweep(&self) -> Swept {
        self.board.sweep(&Sweep::default()).unwrap()
    }

    fn revision(&self) -> Revision {
        self.board.revision().unwrap()
    }

    /// The id of the event with this number, the first one being 1. On most engines it is the number. Beyond the end
    /// it is an id that no event has yet.
    fn id(&self, number: i64) -> Revision {
        let revisions = &self.complete_revisions().known;
        let last = revisions.last().copied().unwrap_or_default();
        match usize::try_from(number) {
            Ok(0) => Revision::ZERO,
            Ok(number) if number <= revisions.len() => revisions[number - 1],
            Ok(number) => Revision::new(last.get() + i64::try_from(number - revisions.len()).unwrap()),
            Err(_) => Revision::new(number),
        }
    }

    /// The number of the event with this id. If no event has the id, the number of the last event before it.
    fn number(&self, revision: Revision) -> i64 {
        let revisions = &self.complete_revisions().known;
        i64::try_from(revisions.partition_point(|known| *known <= revision)).unwrap()
    }

    fn complete_revisions(&self) -> MutexGuard<'_, Revisions> {
        let revisions = self.note_revisions();
        assert!(!revisions.incomplete, "call `note_revisions` before events are pruned");
        revisions
    }

    /// Records the ids of new events.
    fn note_revisions(&self) -> MutexGuard<'_, Revisions> {
        let mut revisions = self.revisions.lock().unwrap_or_else(PoisonError::into_inner);
        let last = revisions.known.last().copied().unwrap_or_default();
        let page = Page::after(last, usize::MAX);
        let (floor, new) = self.read(|tx| Ok((tx.floor()?, tx.events(&page)?))).unwrap();
        revisions.incomplete |= floor > last;
        revisions.known.extend(new.iter().map(|event| event.id));
        revisions
    }

    /// The complete event log.
    fn events(&self) -> Vec<Event> {
        self.events_after(Revision::ZERO)
    }

    fn events_after(&self, revision: Revision) -> Vec<Event> {
        self.read(|tx| tx.events(&Page::after(revision, usize::MAX))).unwrap()
    }

    /// The types of the events that `f` adds.
    fn events_of<T>(&self, f: impl FnOnce() -> T) -> (T, Vec<EventType>) {
        let before = self.revision();
        let answer = f();
        (answer, self.events_after(before).into_iter().map(|event| event.event_type).collect())
    }

    /// Reads one state of the board, without the verbs.
    fn read<T>(&self, mut f: impl FnMut(&dyn super::Tx) -> Result<T>) -> Result<T> {
        let mut answer = None;
        self.engine.read(&[], &mut |tx| {
            answer = Some(f(tx)?);
            Ok(())
        })?;
        Ok(answer.unwrap())
    }

    /// How often the engine runs the function of a read. A test switch runs it twice.
    fn runs_of_a_read(&self) -> usize {
        let mut runs = 0;
        self.read(|_| {
            runs += 1;
            Ok(())
        })
        .unwrap();
        runs
    }

    /// Commits what `f` returns, without the verbs.
    fn commit(&self, mut f: impl FnMut(&dyn super::Tx) -> Result<Changes>) -> Result<Committed> {
        drop(self.note_revisions());
        let commit = Commit { name: "test", prefetch: &[], on_busy: OnBusy::Wait, callers: &[] };
        self.engine.commit(&commit, &mut f)
    }

    /// Removes the event log up to and including this revision, as retention does.
    fn trim(&self, until: Revision) {
        let trimmed = self.commit(|tx| {
            let mut changes = Changes::new();
            crate::prune::cut_log(tx, until, &mut changes)?;
            Ok(changes)
        });
        trimmed.unwrap();
    }

    /// Puts rows, with one event each.
    fn put(&self, rows: &[Row]) -> Committed {
        self.commit(|tx| {
            let mut changes = Changes::new();
            for row in rows {
                tx.get(&row.key())?;
                changes.put(row.clone());
                changes.event(an_event());
            }
            Ok(changes)
        })
        .unwrap()
    }
}

/// How long a test waits for a state.
#[cfg(not(test))]
fn patience() -> Duration {
    Duration::from_secs(30)
}

/// Calls `look` until it returns something.
#[cfg(not(test))]
fn wait_until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = std::time::Instant::now() + patience();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(std::time::Instant::now() < end, "not seen within {} s: {what}", patience().as_secs());
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn json(text: &str) -> Value {
    Value::parse(text, usize::MAX).unwrap()
}

fn a_write(key: &str, value: &str) -> Write {
    Write::new(key, json(value))
}

/// The code of an expected error.
fn code<T: std::fmt::Debug>(outcome: Result<T>) -> Code {
    outcome.unwrap_err().code()
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::EPOCH.plus(Duration::from_secs(seconds))
}

fn an_event() -> NewEvent {
    NewEvent::new(EventType::AgentUpdated, TargetType::Agent, "other", "Something happened")
}

/// The metadata of an event.
fn metadata(event: &Event) -> serde_json::Value {
    let text = event.metadata.as_ref().map_or("null", Metadata::as_str);
    serde_json::from_str(text).unwrap()
}

/// A row as an engine stores it.
pub(crate) fn an_agent(session: &str) -> Agent {
    Agent { agent_name: "Other".to_owned(), ..newcomer(session, at(1)) }
}

/// A row as an engine stores it.
pub(crate) fn an_item(id: &str) -> WorkItem {
    blank_item(&Create::new(id, "Something to do"), at(1))
}

/// A row as an engine stores it.
pub(crate) fn an_entry(scope: &str, key: &str) -> Entry {
    Entry {
        scope: scope.to_owned(),
        key: key.to_owned(),
        value: Value::null(),
        version: 1,
        revision: Revision::new(7),
        created_at: at(1),
        created_by: "Other".to_owned(),
        updated_at: at(1),
        updated_by: "Other".to_owned(),
        expires_at: None,
        tags: Vec::new(),
        metadata: None,
        session_id: None,
        fence: None,
    }
}
