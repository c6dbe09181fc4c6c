//! [`Board`]: a store, a clock, processes and settings, and the handles to everything on it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::agent::Agents;
use crate::clock::{Clock, SystemClock, Timestamp};
use crate::entry::{Actor, Scope};
use crate::error::{Code, Error, Fault, Refusal, Result};
use crate::event::{Event, Events, NewEvent};
use crate::file::Files;
use crate::fingerprint::Fingerprint;
use crate::hint::{CheckedSubject, Hint};
use crate::id::{Ids, RandomIds};
use crate::lock::Locks;
use crate::memory::Memories;
use crate::page::Pages;
use crate::process::{Processes, SystemProcesses};
use crate::project::Projects;
use crate::protocol::Protocols;
use crate::revision::{Pending, Revision};
use crate::scope::{CallerSource, Scopes, SharedPolicies};
use crate::settings::Settings;
use crate::store::sqlite::{Sqlite, SqliteOptions};
use crate::store::{
    Changes, Commit, Committed, Key, Memory, OnBusy, Prefetch, Range, RememberedCall, Row, Store, Tx,
};
use crate::sweep::{DeferredSweep, Due, SweepSchedule, Swept};
use crate::unreadable::{ReadableTx, UnreadableObserver, UnreadableRow, naming_row, naming_row_in};
use crate::work::Work;

/// Separates the verb from the fingerprint of the request in a remembered call.
const ASKED: char = '#';

/// How many gone holders one call may sweep.
const MOST_GONE_HOLDERS: usize = 100;

/// The callback for results of automatic sweeps.
type SweepObserver = Arc<dyn Fn(&Swept) + Send + Sync>;

/// The callback for committed events.
type CommitObserver = Arc<dyn Fn(&[Event]) + Send + Sync>;

/// One board. Cheap to clone, and safe to share between threads.
///
/// ```
/// use blackboard::{Board, agent::Register, work::{Claim, Create}};
///
/// let board = Board::memory();
/// let ivy = board.agents().register(&Register::named("Ivy"))?;
/// board.work().create(&Create::new("design-schema", "Design SQL schema"))?;
/// let claimed = board.work().claim(&Claim::of("design-schema", &ivy.agent.session_id))?;
/// assert!(claimed.claimed);
/// # Ok::<(), blackboard::Error>(())
/// ```
#[derive(Clone)]
pub struct Board {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    processes: Arc<dyn Processes>,
    ids: Arc<dyn Ids>,
    settings: Arc<Settings>,
    schedule: Arc<SweepSchedule>,
    deferred_sweep: Arc<DeferredSweep>,
    sweep_observer: Option<SweepObserver>,
    unreadable_observer: Option<UnreadableObserver>,
    commit_observer: Option<CommitObserver>,
    /// The policies of this program.
    policies: Arc<SharedPolicies>,
    caller: Option<Arc<CallerSource>>,
}

impl Board {
    /// A separate board in memory, which exists as long as the value.
    pub fn memory() -> Board {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        Board::on(Arc::new(Memory::new(clock.clone())), clock)
    }

    /// The board in a SQLite file, which is created if it does not exist.
    ///
    /// The file's write-ahead log is checkpointed from time to time, after a commit and when the last clone of the
    /// board is dropped. A caller that wants to choose the moment calls [`Board::maintain`].
    pub fn open(path: &Path) -> Result<Board> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let store = Sqlite::open(path, clock.clone(), &SqliteOptions::default())?;
        Ok(Board::on(Arc::new(store), clock))
    }

    /// The board on any store. The clock is the one that the store uses.
    pub fn on(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Board {
        Board {
            store,
            clock,
            processes: Arc::new(SystemProcesses::default()),
            ids: Arc::new(RandomIds),
            settings: Arc::new(Settings::default()),
            schedule: Arc::default(),
            deferred_sweep: Arc::default(),
            sweep_observer: None,
            unreadable_observer: None,
            commit_observer: None,
            policies: Arc::default(),
            caller: None,
        }
    }

    /// The same board with other settings.
    #[must_use]
    pub fn with_settings(mut self, settings: Settings) -> Board {
        self.settings = Arc::new(settings);
        self
    }

    /// The same board with an observer for automatic sweeps. The observer is called with the result of every one that
    /// marked an agent stale or had to skip one. Such sweeps run at the start of a command, while a call waits, and
    /// after a refusal because of a gone session.
    #[must_use]
    pub fn with_sweep_observer(mut self, observer: impl Fn(&Swept) + Send + Sync + 'static) -> Board {
        self.sweep_observer = Some(Arc::new(observer));
        self
    }

    /// The same board with an observer for rows that cannot be read because another program wrote them. Lists omit
    /// such rows and call the observer with each of them. Without an observer they fail. The observer may be called
    /// more than once with one row.
    ///
    /// ```
    /// # use std::sync::{Arc, Mutex};
    /// # use blackboard::{Board, work::WorkFilter};
    /// let left_out = Arc::new(Mutex::new(Vec::new()));
    /// let rows = Arc::clone(&left_out);
    /// let board = Board::memory().with_unreadable_observer(move |row| rows.lock().unwrap().push(row.clone()));
    /// board.work().list(&WorkFilter::default())?;
    /// assert!(left_out.lock().unwrap().is_empty());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    #[must_use]
    pub fn with_unreadable_observer(
        mut self,
        observer: impl Fn(&UnreadableRow) + Send + Sync + 'static,
    ) -> Board {
        self.unreadable_observer = Some(Arc::new(observer));
        self
    }

    /// The same board with an observer for the events that this value and its clones commit, also in automatic sweeps. It is
    /// called after each commit that has events, before the call returns, so it has to be quick. An event of an entry
    /// comes without the change of the entry, which [`Events::next`] reads.
    ///
    /// ```
    /// # use std::sync::{Arc, Mutex};
    /// # use blackboard::{Board, work::Create};
    /// let committed = Arc::new(Mutex::new(Vec::new()));
    /// let events = Arc::clone(&committed);
    /// let board = Board::memory().with_commit_observer(move |new| events.lock().unwrap().extend_from_slice(new));
    /// board.work().create(&Create::new("design-schema", "Design SQL schema"))?;
    /// assert_eq!(committed.lock().unwrap()[0].event_type.as_str(), "work_created");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    #[must_use]
    pub fn with_commit_observer(mut self, observer: impl Fn(&[Event]) + Send + Sync + 'static) -> Board {
        self.commit_observer = Some(Arc::new(observer));
        self
    }

    /// The same board for a caller: everything that is read or changed without another author or session is for this one.
    /// Scopes that restrict their callers show and accept only what they allow it. Without a caller, the board is that of
    /// the operator, who may do everything. The identity is what the caller says: this is no protection against a program
    /// that says another one.
    ///
    /// ```
    /// # use blackboard::{Board, Code, entry::{Actor, Value, Write}, scope::{AccessRule, AccessRules, CreateScope, Effect, Policies}};
    /// # let board = Board::memory();
    /// let access = AccessRules::new(vec![AccessRule::parse(Effect::Allow, "ivy:read")?]);
    /// board.scopes().create(&CreateScope::new("plans", Policies { access, ..Policies::default() }))?;
    /// board.scope("plans").write(&Write::new("a", Value::of(&1)?))?;
    /// let oak = board.with_caller(Actor::author("oak"));
    /// assert_eq!(oak.scope("plans").read("a").unwrap_err().code(), Code::NotAllowed);
    /// assert!(oak.scope("plans").acting_as(Actor::author("ivy")).read("a")?.is_some());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    #[must_use]
    pub fn with_caller(&self, caller: Actor) -> Board {
        Board { caller: Some(Arc::new(CallerSource::known(caller))), ..self.clone() }
    }

    /// As [`Board::with_caller`], for a caller that is searched for once, when the policies of a scope depend on it. The
    /// search runs outside of every transaction. If it fails, the call fails with its error.
    #[must_use]
    pub fn with_caller_search(
        &self,
        find: impl Fn(&Board) -> Result<Actor> + Send + Sync + 'static,
    ) -> Board {
        Board { caller: Some(Arc::new(CallerSource::searched_for(find))), ..self.clone() }
    }

    pub(crate) fn caller(&self) -> Option<&CallerSource> {
        self.caller.as_deref()
    }

    /// Searches for the caller, if a call failed because it is not known. Other errors are returned.
    fn identify(&self, error: Error) -> Result<()> {
        match self.caller() {
            Some(caller) => caller.resolve(self, error),
            None => Err(error),
        }
    }

    /// The same board with another view of processes, for tests.
    #[must_use]
    pub fn with_processes(mut self, processes: Arc<dyn Processes>) -> Board {
        self.processes = processes;
        self
    }

    /// The same board with another source of session ids, for tests.
    #[must_use]
    pub fn with_ids(mut self, ids: Arc<dyn Ids>) -> Board {
        self.ids = ids;
        self
    }

    /// The agents of the board.
    pub fn agents(&self) -> Agents<'_> {
        Agents { board: self }
    }

    /// The projects of the board.
    pub fn projects(&self) -> Projects<'_> {
        Projects { board: self }
    }

    /// The protocols of the board, and the built-in ones.
    pub fn protocols(&self) -> Protocols<'_> {
        Protocols { board: self }
    }

    /// The work items of the board.
    pub fn work(&self) -> Work<'_> {
        Work { board: self }
    }

    /// The event log of the board.
    pub fn events(&self) -> Events<'_> {
        Events { board: self }
    }

    /// The entries of a scope.
    pub fn scope(&self, name: &str) -> Scope<'_> {
        Scope { board: self, name: name.to_owned(), actor: Actor::default() }
    }

    /// The scopes of the board, and their policies.
    pub fn scopes(&self) -> Scopes<'_> {
        Scopes { board: self }
    }

    /// The pages of mapped scopes.
    pub fn pages(&self) -> Pages<'_> {
        Pages { board: self }
    }

    /// The memory of the board: levels of records.
    pub fn memories(&self) -> Memories<'_> {
        Memories { board: self }
    }

    /// The locks of the board.
    pub fn locks(&self) -> Locks<'_> {
        Locks { board: self }
    }

    /// The file reservations and edits of the board.
    pub fn files(&self) -> Files<'_> {
        Files { board: self }
    }

    /// The settings of the board.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The board's clock.
    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// The view of processes.
    pub fn processes(&self) -> &dyn Processes {
        &*self.processes
    }

    /// Waits until this process or another one commits an event after the revision `after`, or until the timeout.
    /// Returns the revision that the board has then.
    ///
    /// A follower reads the event log to its end, waits for later events, and reads on.
    ///
    /// ```
    /// use std::time::Duration;
    /// use blackboard::{Board, work::Create};
    ///
    /// let board = Board::memory();
    /// let seen = board.revision()?;
    /// let others = board.clone();
    /// let other = std::thread::spawn(move || others.work().create(&Create::new("design-schema", "Design SQL schema")));
    /// let revision = board.wait(seen, Duration::from_secs(60))?;
    /// assert!(revision > seen);
    /// assert_eq!(board.wait(revision, Duration::ZERO)?, revision);
    /// # other.join().unwrap()?;
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn wait(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        self.store.wait(after, timeout)
    }

    /// Refuses if the file at the board's path is not the one that was opened: it was deleted or replaced, and other
    /// processes use another board. Changes to such a file are always refused; this check is for readers.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("local.db");
    /// let board = blackboard::Board::open(&path)?;
    /// board.check_still_there()?;
    /// std::fs::remove_file(&path)?;
    /// assert!(board.check_still_there().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check_still_there(&self) -> Result<()> {
        self.store.check_still_there()
    }

    /// Whether every call does that, so that a caller need not check first: on a server, a check is a round trip.
    ///
    /// ```
    /// # let board = blackboard::Board::memory();
    /// assert!(!board.always_checks_still_there());
    /// ```
    pub fn always_checks_still_there(&self) -> bool {
        self.store.always_checks_still_there()
    }

    /// The board's revision: that of its last event.
    ///
    /// ```
    /// # use blackboard::{Board, Revision, work::Create};
    /// # let board = Board::memory();
    /// assert_eq!(board.revision()?, Revision::ZERO);
    /// board.work().create(&Create::new("design-schema", "Design SQL schema"))?;
    /// assert_eq!(board.revision()?, Revision::new(1));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn revision(&self) -> Result<Revision> {
        self.read(&[Prefetch::Revision], |tx| tx.revision())
    }

    /// Does maintenance that can wait until the answer is printed. Never waits, never fails.
    pub fn maintain(&self) {
        self.store.maintain();
    }

    pub(crate) fn ids(&self) -> &dyn Ids {
        &*self.ids
    }

    pub(crate) fn shared_policies(&self) -> &SharedPolicies {
        &self.policies
    }

    pub(crate) fn schedule(&self) -> &SweepSchedule {
        &self.schedule
    }

    pub(crate) fn deferred_sweep(&self) -> &DeferredSweep {
        &self.deferred_sweep
    }

    /// The same board, without a part in the deferred sweeps of its clones.
    pub(crate) fn with_own_deferred_sweep(mut self) -> Board {
        self.deferred_sweep = Arc::default();
        self
    }

    /// Calls the observer with an automatic sweep, if it marked or skipped an agent.
    pub(crate) fn report_sweep(&self, swept: &Swept) {
        let nothing = swept.stale_agents.is_empty() && swept.skipped_agents.is_empty();
        if let Some(observer) = self.sweep_observer.as_ref().filter(|_| !nothing) {
            observer(swept);
        }
    }

    pub(crate) fn unreadable_observer(&self) -> Option<&UnreadableObserver> {
        self.unreadable_observer.as_ref()
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Reads one state of the board.
    pub(crate) fn read<T>(
        &self,
        prefetch: &[Prefetch<'_>],
        mut f: impl FnMut(&dyn Tx) -> Result<T>,
    ) -> Result<T> {
        let mut answer = None;
        loop {
            let read = self.sweep_and_read(prefetch, &mut |tx| {
                answer = Some(f(tx)?);
                Ok(())
            });
            match read {
                Ok(()) => return answer.ok_or_else(nothing_ran),
                Err(error) => self.identify(error)?,
            }
        }
    }

    /// As [`Board::read`], for a verb that lists rows: unreadable rows are omitted and reported, if the board has an
    /// observer for them. Rows that `prefetch` names by their key are still errors.
    pub(crate) fn read_list<T>(
        &self,
        prefetch: &[Prefetch<'_>],
        mut f: impl FnMut(&dyn Tx) -> Result<T>,
    ) -> Result<T> {
        match (self.read(prefetch, &mut f), self.unreadable_observer()) {
            (Err(error), Some(observer)) if error.is_unreadable_row() => {
                let named = prefetch
                    .iter()
                    .filter_map(|one| if let Prefetch::Row(key) = one { Some(key) } else { None });
                let named: Vec<&Key> = named.collect();
                self.read(prefetch, |tx| f(&ReadableTx { tx, named: &named, observer }))
            }
            (answer, _) => answer,
        }
    }

    /// Reads, after the automatic sweep that this call begins with, if there is one.
    fn sweep_and_read(
        &self,
        prefetch: &[Prefetch<'_>],
        f: &mut dyn FnMut(&dyn Tx) -> Result<()>,
    ) -> Result<()> {
        let Some(probes) = self.take_sweep_probes() else { return self.store().read(prefetch, f) };
        let mut due = Due::default();
        self.store().read(&probes.with(prefetch), &mut |tx| {
            due = probes.due(tx);
            if due.is_any() { Ok(()) } else { f(tx) }
        })?;
        if due.is_any() {
            self.sweep_due(&probes, due);
            self.store().read(prefetch, f)?;
        }
        Ok(())
    }

    /// Commits what `f` returns, and returns its answer with the assigned revisions.
    pub(crate) fn commit<T: Pending>(
        &self,
        name: &'static str,
        prefetch: &[Prefetch<'_>],
        f: impl FnMut(&dyn Tx) -> Result<(Changes, T)>,
    ) -> Result<T> {
        self.commit_as(&[], name, prefetch, f)
    }

    /// As [`Board::commit`], for a verb that acts for a session: a refusal because of a holding never sweeps one of
    /// the `callers`.
    pub(crate) fn commit_as<T: Pending>(
        &self,
        callers: &[&str],
        name: &'static str,
        prefetch: &[Prefetch<'_>],
        f: impl FnMut(&dyn Tx) -> Result<(Changes, T)>,
    ) -> Result<T> {
        let committed = self.commit_with(Commit { name, prefetch, on_busy: OnBusy::Wait, callers }, f);
        committed.map_err(|error| match CheckedSubject::of(name, prefetch) {
            // Such a call has no idempotency key.
            Some(subject) if error.code() == Code::OutcomeUnknown => {
                error.with_hint(Hint::CheckWhetherDone(subject))
            }
            _ => error,
        })
    }

    /// As [`Board::commit`], but fails with `busy` at once if another writer is active.
    pub(crate) fn try_commit<T: Pending>(
        &self,
        name: &'static str,
        prefetch: &[Prefetch<'_>],
        f: impl FnMut(&dyn Tx) -> Result<(Changes, T)>,
    ) -> Result<T> {
        self.commit_with(Commit { name, prefetch, on_busy: OnBusy::Fail, callers: &[] }, f)
    }

    /// As [`Board::commit`] or [`Board::try_commit`], depending on `on_busy`.
    pub(crate) fn commit_with_on_busy<T: Pending>(
        &self,
        on_busy: OnBusy,
        name: &'static str,
        prefetch: &[Prefetch<'_>],
        f: impl FnMut(&dyn Tx) -> Result<(Changes, T)>,
    ) -> Result<T> {
        let committed = self.commit_with(Commit { name, prefetch, on_busy, callers: &[] }, f);
        committed.map_err(|error| match error.code() {
            Code::OutcomeUnknown => error.with_hint("repeat the call: it changes nothing twice".into()),
            _ => error,
        })
    }

    /// As [`Board::commit`], with an idempotency key: the same request with the same key gets the same answer, and
    /// nothing happens twice. Another request with the same key is refused.
    pub(crate) fn commit_once<T: Pending + Serialize + DeserializeOwned>(
        &self,
        operation: Option<&str>,
        caller: Option<&str>,
        name: &'static str,
        asked: impl FnOnce() -> Fingerprint,
        prefetch: &[Prefetch<'_>],
        f: impl FnMut(&dyn Tx) -> Result<(Changes, T)>,
    ) -> Result<T> {
        self.commit_once_if(|_, _| Ok(()), operation, caller, name, asked, prefetch, f)
    }

    /// The same for an answer that not every caller may get: `allowed` refuses to repeat it.
    #[expect(clippy::too_many_arguments, reason = "those of `commit_once`, and one")]
    pub(crate) fn commit_once_if<T: Pending + Serialize + DeserializeOwned>(
        &self,
        allowed: impl Fn(&dyn Tx, &T) -> Result<()>,
        operation: Option<&str>,
        caller: Option<&str>,
        name: &'static str,
        asked: impl FnOnce() -> Fingerprint,
        prefetch: &[Prefetch<'_>],
        mut f: impl FnMut(&dyn Tx) -> Result<(Changes, T)>,
    ) -> Result<T> {
        let callers = caller.as_slice();
        let Some(operation) = operation else {
            return self.commit_with(Commit { name, prefetch, on_busy: OnBusy::Wait, callers }, f);
        };
        crate::text::check_known_id("operation", operation)?;
        crate::agent::refuse_name_of_tasks(operation)?;
        self.settings.text.check_unaltered([operation])?;
        let key = Key::RememberedCall(operation.to_owned());
        let asked = asked();
        let prefetch: Vec<_> = prefetch.iter().cloned().chain([Prefetch::Row(key.clone())]).collect();
        self.commit_with(Commit { name, prefetch: &prefetch, on_busy: OnBusy::Wait, callers }, |tx| {
            if let Some(known) = tx.row::<RememberedCall>(&key)? {
                let answer = known.answer(name, asked)?;
                allowed(tx, &answer)?;
                return Ok((Changes::new(), answer));
            }
            crate::text::check_id("operation", operation)?;
            let (mut changes, answer) = f(tx)?;
            changes.put(RememberedCall {
                operation_id: operation.to_owned(),
                verb: format!("{name}{ASKED}{asked}"),
                answer: serde_json::to_string(&answer)
                    .map_err(|error| Fault::new(Code::Internal, "an answer is not JSON").because(error))?,
                revision: Revision::of_event(0),
                created_at: tx.now(),
            });
            Ok((changes, answer))
        })
    }

    /// Commits. If the commit is refused because of a session whose process is gone, sweeps that session and retries,
    /// once for each such session.
    fn commit_with<T: Pending>(
        &self,
        commit: Commit<'_>,
        mut f: impl FnMut(&dyn Tx) -> Result<(Changes, T)>,
    ) -> Result<T> {
        let mut answer = None;
        // Each holder is a reason for one retry, so a holder that never releases cannot keep the call here.
        let mut gone_holders = BTreeSet::new();
        let committed = loop {
            let committed = self.sweep_and_commit(&commit, &mut |tx| {
                let (changes, value) = f(tx)?;
                answer = Some(value);
                Ok(changes)
            });
            match committed {
                Err(error) if error.code() == Code::NoSession => self.identify(error)?,
                Err(refused) if gone_holders.len() < MOST_GONE_HOLDERS => {
                    let holder = self.sweep_gone_holder(refused, &commit, &gone_holders)?;
                    gone_holders.insert(holder);
                }
                committed => break committed?,
            }
        };
        let mut answer = answer.ok_or_else(nothing_ran)?;
        answer.resolve(committed.first);
        Ok(answer)
    }

    /// Commits, after the automatic sweep that this call begins with, if there is one.
    fn sweep_and_commit(
        &self,
        commit: &Commit<'_>,
        f: &mut dyn FnMut(&dyn Tx) -> Result<Changes>,
    ) -> Result<Committed> {
        let Some(probes) = self.take_sweep_probes() else { return self.store_commit(commit, f) };
        if self.store().has_writer_lock() {
            // A check under the lock would need the lock twice if something is due.
            self.sweep_by(&probes);
            return self.store_commit(commit, f);
        }
        let mut due = Due::default();
        let prefetch = probes.with(commit.prefetch);
        let committed = self.store_commit(&Commit { prefetch: &prefetch, ..*commit }, &mut |tx| {
            due = probes.due(tx);
            if due.is_any() { Ok(Changes::new()) } else { f(tx) }
        });
        if due.is_any() {
            self.sweep_due(&probes, due);
            return self.store_commit(commit, f);
        }
        committed
    }

    /// Commits, and reports the events to the observer, if there is one.
    fn store_commit(
        &self,
        commit: &Commit<'_>,
        f: &mut dyn FnMut(&dyn Tx) -> Result<Changes>,
    ) -> Result<Committed> {
        let Some(observer) = &self.commit_observer else { return self.store().commit(commit, f) };
        // The last run is the one that is committed.
        let mut last: (Vec<NewEvent>, Timestamp) = (Vec::new(), Timestamp::EPOCH);
        let committed = self.store().commit(commit, &mut |tx| {
            let changes = f(tx)?;
            last = (changes.events.clone(), tx.now());
            Ok(changes)
        })?;
        let (events, now) = last;
        if !events.is_empty() {
            let ids = (0..).map(|index| {
                let mut id = Revision::of_event(index);
                id.resolve(committed.first);
                id
            });
            let events: Vec<Event> =
                events.into_iter().zip(ids).map(|(event, id)| event.at(id, committed.first, now)).collect();
            observer(&events);
        }
        Ok(committed)
    }
}

impl RememberedCall {
    /// The remembered answer, if the verb and the request are the same.
    fn answer<T: Pending + DeserializeOwned>(&self, verb: &str, asked: Fingerprint) -> Result<T> {
        // Older programs did not remember the request.
        let (known, asked_before) = match self.verb.split_once(ASKED) {
            Some((known, asked_before)) => (known, Some(asked_before)),
            None => (self.verb.as_str(), None),
        };
        let other = match asked_before {
            _ if known != verb => known,
            Some(before) if before != asked.to_string() => "another call",
            _ => "",
        };
        if !other.is_empty() {
            let message = format!("idempotency key {} was already used for {other}", self.operation_id);
            return Err(Refusal::new(Code::InvalidValue, message).hint(Hint::NewIdempotencyKey).into());
        }
        let mut answer: T = serde_json::from_str(&self.answer).map_err(|error| {
            Fault::new(Code::Corrupt, "a remembered answer cannot be read").because(error)
        })?;
        answer.resolve(self.revision);
        Ok(answer)
    }
}

impl dyn Tx + '_ {
    /// The row with this key, as its type.
    pub(crate) fn row<T: TryFrom<Row>>(&self, key: &Key) -> Result<Option<T>> {
        self.get(key).map_err(|error| naming_row(key, error))?.map(typed).transpose()
    }

    /// The row with this key, as its type, for information only: see [`Tx::peek`].
    pub(crate) fn peek_row<T: TryFrom<Row>>(&self, key: &Key) -> Result<Option<T>> {
        self.peek(key)?.map(typed).transpose()
    }

    /// All rows of a range, as their type.
    pub(crate) fn rows<T: TryFrom<Row>>(&self, range: &Range) -> Result<Vec<T>> {
        let rows = self.range(range).map_err(|error| naming_row_in(self, range, usize::MAX, error))?;
        rows.into_iter().map(typed).collect()
    }

    /// The first rows of a range, as their type, perhaps outdated.
    pub(crate) fn candidate_rows<T: TryFrom<Row>>(&self, range: &Range, limit: usize) -> Result<Vec<T>> {
        let rows = self.candidates(range, limit).map_err(|error| naming_row_in(self, range, limit, error))?;
        rows.into_iter().map(typed).collect()
    }
}

fn typed<T: TryFrom<Row>>(row: Row) -> Result<T> {
    T::try_from(row).map_err(|_| {
        Fault::new(Code::Internal, "the store returned a row of another kind than was asked for").into()
    })
}

fn nothing_ran() -> crate::Error {
    Fault::new(Code::Internal, "the store did not run the transaction").into()
}
