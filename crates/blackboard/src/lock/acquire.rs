//! `lock acquire`: acquires a lock for one session, at once or when it is free.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::{Lock, Locks, Stored};
use crate::agent::{Agent, Register, existing as existing_agent, label};
use crate::board::Board;
use crate::duration::waited;
use crate::entry::{
    Actor, Entry, EntryEditor, EventWording, LOCKS, Value, Write, check_known_key, check_ttl, held, visible,
};
use crate::error::{AgeKind, Code, Error, Fault, Refusal, Result};
use crate::follow::{Check, Sweeping, Wait, Wake};
use crate::hint::Hint;
use crate::revision::{Pending, Revision};
use crate::store::{CallLimit, Changes, Key, Prefetch};
use crate::text::{Cleaner, Kind, TextChanges};

/// The lock to acquire.
#[derive(Clone, Debug, Default)]
pub struct Acquire {
    /// Its name.
    pub name: String,
    /// The session that acquires it. Empty if `register` has one.
    pub session: String,
    /// A new session to acquire it for. The session is registered in the commit that acquires the lock, so that a refusal
    /// leaves none behind.
    pub register: Option<Register>,
    /// The time to live. Without it the session holds the lock until it releases it or ends.
    pub ttl: Option<Duration>,
    /// A note.
    pub note: Option<String>,
    /// Also refuses if the session itself holds the lock, so that programs that share a session exclude each other.
    pub refuse_own: bool,
}

impl Acquire {
    /// A lock until the session releases it or ends.
    pub fn of(name: &str, session: &str) -> Acquire {
        Acquire { name: name.to_owned(), session: session.to_owned(), ..Acquire::default() }
    }

    /// A lock for a session that is registered in the same commit.
    pub fn registering(name: &str, register: Register) -> Acquire {
        Acquire { name: name.to_owned(), register: Some(register), ..Acquire::default() }
    }

    /// The session that exists already and acts.
    fn caller(&self) -> Option<&str> {
        self.register.is_none().then_some(&self.session)
    }
}

/// A lock that the session holds now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Acquired {
    /// The lock.
    #[serde(flatten)]
    pub lock: Lock,
    /// Whether this call acquired it.
    pub acquired: bool,
    /// Whether the session held it already.
    pub already_held: bool,
    /// The changes to the note, and to the text of a session that this call registered.
    #[serde(flatten)]
    pub text: TextChanges,
}

impl Pending for Acquired {
    fn resolve(&mut self, first: Revision) {
        self.lock.resolve(first);
    }
}

impl Locks<'_> {
    /// Acquires a lock. If the session holds it already, nothing changes, except that a given time to live begins
    /// again.
    ///
    /// ```
    /// # use blackboard::{Board, Code, agent::Register, lock::Acquire};
    /// # let board = Board::memory();
    /// let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// let oak = board.agents().register(&Register::named("Oak"))?.agent.session_id;
    ///
    /// let taken = board.locks().acquire(&Acquire::of("deploy", &ivy))?;
    /// assert!(taken.acquired);
    /// let again = board.locks().acquire(&Acquire::of("deploy", &ivy))?;
    /// assert_eq!((again.already_held, again.lock.fence), (true, taken.lock.fence));
    /// let refused = board.locks().acquire(&Acquire::of("deploy", &oak)).unwrap_err();
    /// assert_eq!(refused.code(), Code::Held);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn acquire(&self, acquire: &Acquire) -> Result<Acquired> {
        self.attempt(acquire, &mut Revision::default())
    }

    /// Attempts to acquire a lock. If the attempt is refused because a session holds it, sets `held_at` to the revision of
    /// that state.
    fn attempt(self, acquire: &Acquire, held_at: &mut Revision) -> Result<Acquired> {
        check_known_key(LOCKS, &acquire.name)?;
        let rules = &self.board.settings().text;
        rules.check_unaltered([&*acquire.name])?;
        let mut cleaner = Cleaner::new(rules);
        let note = cleaner.maybe("note", Kind::Field, acquire.note.as_ref())?;
        let note = note.filter(|note| !note.is_empty());
        let text = cleaner.changes();
        check_ttl(acquire.ttl)?;
        let registration =
            acquire.register.as_ref().map(|new| self.board.agents().registration(new)).transpose()?;
        let mut prefetch = vec![Prefetch::Entry(LOCKS, &acquire.name), Prefetch::Revision];
        let callers = if let Some(new) = &registration {
            prefetch.extend(new.prefetch(self.board));
            new.callers()
        } else {
            prefetch.push(Prefetch::Row(Key::Agent(acquire.session.clone())));
            vec![acquire.session.as_str()]
        };
        self.board.commit_as(&callers, "lock acquire", &prefetch, |tx| {
            let mut changed_text = TextChanges::default();
            let mut editor = match &registration {
                Some(new) => {
                    let (changes, registered) = new.changes(self.board, tx)?;
                    changed_text = registered.text;
                    EntryEditor::after_registration(self.board, tx, registered.agent, changes)
                }
                None => EntryEditor::new(self.board, tx, &Actor::session(&acquire.session))?,
            };
            let agent = editor.session()?;
            let current = editor.entry(LOCKS, &acquire.name)?;
            match decide(&agent, current, acquire.refuse_own)? {
                Verdict::Keeps(entry) => {
                    let mut lock = Lock::of(tx, &entry)?;
                    if acquire.ttl.is_some() {
                        let write =
                            Write { ttl: acquire.ttl, merge: true, ..Write::new(&acquire.name, entry.value) };
                        let summary =
                            format!("Agent \"{}\" renewed lock \"{}\"", agent.agent_name, acquire.name);
                        lock.expires_at =
                            editor.write(LOCKS, &write, EventWording::InWords(summary))?.expires_at;
                    }
                    Ok((
                        editor.finish()?,
                        Acquired { lock, acquired: false, already_held: true, text: changed_text },
                    ))
                }
                Verdict::Refused(entry) => {
                    *held_at = tx.revision()?;
                    Err(held(tx, &entry)?)
                }
                Verdict::AlreadyHeld(entry) => {
                    *held_at = tx.revision()?;
                    Err(already_held_error(&agent, &Lock::of(tx, &entry)?))
                }
                Verdict::Takes => {
                    let value = Value::of(&Stored { note: note.clone() })?;
                    let write = Write { ttl: acquire.ttl, lease: true, ..Write::new(&acquire.name, value) };
                    let summary =
                        format!("Agent \"{}\" acquired lock \"{}\"", agent.agent_name, acquire.name);
                    let written = editor.write(LOCKS, &write, EventWording::InWords(summary))?;
                    let lock = Lock {
                        name: acquire.name.clone(),
                        fence: written.revision,
                        session_id: agent.session_id,
                        agent_name: agent.agent_name,
                        since: editor.now(),
                        note: note.clone(),
                        expires_at: written.expires_at,
                    };
                    changed_text.extend(&text);
                    Ok((
                        editor.finish()?,
                        Acquired { lock, acquired: true, already_held: false, text: changed_text },
                    ))
                }
            }
        })
    }

    /// Acquires a lock as soon as it is free, if that is within `timeout`. Of several waiting sessions any may be the
    /// next. While it waits it sweeps automatically, releases the lock of a holder whose process is gone, and keeps
    /// the session alive.
    ///
    /// ```
    /// use std::time::Duration;
    /// # use blackboard::{Board, Code, agent::Register, lock::{Acquire, Release}};
    ///
    /// # let board = Board::memory();
    /// # let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// # let oak = board.agents().register(&Register::named("Oak"))?.agent.session_id;
    /// board.locks().acquire(&Acquire::of("deploy", &ivy))?;
    /// let too_late = board.locks().acquire_waiting(&Acquire::of("deploy", &oak), Duration::from_millis(10));
    /// assert_eq!(too_late.unwrap_err().code(), Code::TimedOut);
    ///
    /// let others = board.clone();
    /// let other = std::thread::spawn(move || others.locks().release(&Release::of("deploy", &ivy)));
    /// assert!(board.locks().acquire_waiting(&Acquire::of("deploy", &oak), Duration::from_mins(1))?.acquired);
    /// # other.join().unwrap()?;
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn acquire_waiting(&self, acquire: &Acquire, timeout: Duration) -> Result<Acquired> {
        // Only a `false` here ends the wait without an answer.
        let taken = self.acquire_waiting_while(acquire, timeout, || true)?;
        taken.ok_or_else(|| Fault::new(Code::Internal, "a wait ended without a reason").into())
    }

    /// As [`Locks::acquire_waiting`], as long as `go_on` returns `true`. It is called about once a second; after a
    /// `false` the answer is `None`.
    ///
    /// ```
    /// use std::time::Duration;
    /// # use blackboard::{Board, agent::Register, lock::Acquire};
    ///
    /// # let board = Board::memory();
    /// # let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// # let oak = board.agents().register(&Register::named("Oak"))?.agent.session_id;
    /// board.locks().acquire(&Acquire::of("deploy", &ivy))?;
    /// let request = Acquire::of("deploy", &oak);
    /// assert_eq!(board.locks().acquire_waiting_while(&request, Duration::from_secs(60), || false)?, None);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn acquire_waiting_while(
        &self,
        acquire: &Acquire,
        timeout: Duration,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<Option<Acquired>> {
        let _limit = CallLimit::after(timeout);
        let mut waiting = LockWait::new();
        let wait = Wait { timeout, tick: LockWait::TICK, sweep: Sweeping::For(acquire.caller()), stop: None };
        let ended = self.board.check_until(&wait, |wake| {
            Ok(match waiting.check(self.board, acquire, wake)? {
                Check::Done(acquired) => Check::Done(Some(acquired)),
                Check::After(seen) if go_on() => Check::After(seen),
                Check::After(_) => Check::Done(None),
            })
        })?;
        match ended {
            Some(ended) => Ok(ended),
            None => {
                self.acquire(acquire).map(Some).map_err(|error| into_timeout(error, &acquire.name, timeout))
            }
        }
    }

    /// Whether an attempt can succeed now: the lock is free, or held by the session itself. With `check_process`, also if
    /// the holder's process is gone: then the attempt sweeps that session. Only reads, so that a caller that waits costs
    /// other writers nothing.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register, lock::Acquire};
    /// # let board = Board::memory();
    /// # let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// # let oak = board.agents().register(&Register::named("Oak"))?.agent.session_id;
    /// let request = Acquire::of("deploy", &oak);
    /// assert!(board.locks().can_acquire(&request, true)?);
    /// board.locks().acquire(&Acquire::of("deploy", &ivy))?;
    /// assert!(!board.locks().can_acquire(&request, true)?);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn can_acquire(&self, acquire: &Acquire, check_process: bool) -> Result<bool> {
        let key = Key::Entry(LOCKS.to_owned(), acquire.name.clone());
        self.board.read(&[Prefetch::Row(key.clone())], |tx| {
            let Some(lock) = visible(tx, &key)? else { return Ok(true) };
            let Some(holder) = lock.session_id else { return Ok(false) };
            if acquire.caller() == Some(&*holder) {
                return Ok(!acquire.refuse_own);
            }
            if !check_process {
                return Ok(false);
            }
            let holder = Key::Agent(holder);
            tx.prefetch(&[Prefetch::Row(holder.clone())])?;
            let holder = tx.row::<Agent>(&holder)?;
            Ok(holder.is_some_and(|holder| self.board.is_gone_and_quiet(&holder, tx.now())))
        })
    }

    /// Records that a waiting session is alive. A session that ended meanwhile is refused.
    fn note_that_it_waits(self, session: &str) -> Result<()> {
        self.board.commit("lock wait", &[Prefetch::Row(Key::Agent(session.to_owned()))], |tx| {
            let agent = existing_agent(tx, session)?;
            agent.must_be_live()?;
            let mut changes = Changes::new();
            self.board.agents().record_activity(&agent, tx.now(), &mut changes);
            Ok((changes, ()))
        })
    }
}

/// A wait for a lock, one check at a time. [`Locks::acquire_waiting`] waits with it; a program that sleeps by itself makes
/// the checks when its [`Pace`](crate::follow::Pace) says so.
///
/// ```
/// # use blackboard::{Board, agent::Register};
/// use blackboard::follow::{Check, Wake};
/// use blackboard::lock::{Acquire, LockWait, Release};
///
/// # let board = Board::memory();
/// # let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
/// # let oak = board.agents().register(&Register::named("Oak"))?.agent.session_id;
/// board.locks().acquire(&Acquire::of("deploy", &ivy))?;
/// let (request, mut wait) = (Acquire::of("deploy", &oak), LockWait::new());
/// let Check::After(seen) = wait.check(&board, &request, Wake::First)? else { panic!("Ivy holds it") };
///
/// board.locks().release(&Release::of("deploy", &ivy))?;
/// assert!(board.revision()? > seen);
/// let checked = wait.check(&board, &request, Wake::Changed(board.revision()?))?;
/// assert!(matches!(checked, Check::Done(acquired) if acquired.acquired));
/// # Ok::<(), blackboard::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LockWait {
    /// A commit after this revision ends the sleep, so that no release before or during an attempt is missed.
    seen: Revision,
    process_checked: Instant,
    heartbeat_sent: Instant,
}

impl Default for LockWait {
    fn default() -> LockWait {
        LockWait::new()
    }
}

impl LockWait {
    /// How often a call that waits checks whether the holder's process is gone, which no event reports.
    pub const TICK: Duration = Duration::from_secs(1);

    /// A wait that begins now.
    pub fn new() -> LockWait {
        let now = Instant::now();
        LockWait { seen: Revision::ZERO, process_checked: now, heartbeat_sent: now }
    }

    /// Checks once, and acquires the lock if it can be acquired. The session counts as alive while it waits.
    pub fn check(&mut self, board: &Board, acquire: &Acquire, wake: Wake) -> Result<Check<Acquired>> {
        let locks = board.locks();
        match wake {
            Wake::Changed(revision) => self.seen = revision,
            // The first attempt sets it.
            Wake::First | Wake::Unchanged => {}
        }
        if let Some(session) = acquire.caller()
            && self.heartbeat_sent.elapsed() >= board.agents().activity_interval()
        {
            self.heartbeat_sent = Instant::now();
            locks.note_that_it_waits(session)?;
        }
        let check_process = wake == Wake::Unchanged || self.process_checked.elapsed() >= LockWait::TICK;
        if check_process {
            self.process_checked = Instant::now();
        }
        // A read costs other processes nothing; an attempt takes the write lock.
        if wake == Wake::First || locks.can_acquire(acquire, check_process)? {
            let mut held_at = self.seen;
            match locks.attempt(acquire, &mut held_at) {
                Err(error) if error.code() == Code::Held => self.seen = held_at,
                done => return done.map(Check::Done),
            }
        }
        Ok(Check::After(self.seen))
    }
}

/// The decision on a request.
#[derive(Debug)]
enum Verdict {
    /// The session acquires the lock.
    Takes,
    /// The session holds the lock already.
    Keeps(Entry),
    /// Another session holds the lock.
    Refused(Entry),
    /// The session holds the lock already, which the request excludes.
    AlreadyHeld(Entry),
}

/// Decides whether this session gets a lock with this current entry.
fn decide(agent: &Agent, current: Option<Entry>, refuse_own: bool) -> Result<Verdict> {
    agent.must_be_live()?;
    let Some(entry) = current else { return Ok(Verdict::Takes) };
    let is_own = entry.session_id.as_ref() == Some(&agent.session_id);
    Ok(match (is_own, refuse_own) {
        (true, false) => Verdict::Keeps(entry),
        (true, true) => Verdict::AlreadyHeld(entry),
        (false, _) => Verdict::Refused(entry),
    })
}

fn already_held_error(agent: &Agent, lock: &Lock) -> Error {
    let Lock { name, fence, since, .. } = lock;
    let message = format!("this session already holds lock {name}");
    Refusal::new(Code::Held, message)
        .age(AgeKind::Held, Some(*since), "")
        .hint(Hint::ReleaseLock(name.clone()))
        .held_by(agent.session_id.clone(), agent.agent_name.clone(), Some(*since))
        .detail("fence", fence.get())
        .into()
}

/// The refusal of a call after its timeout. If the holder's process is gone, its hint stays: waiting longer or asking
/// the holder would not help.
fn into_timeout(error: Error, name: &str, timeout: Duration) -> Error {
    match error {
        Error::Refusal(held) if held.code == Code::Held => {
            let detail =
                |name: &str| held.details.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
            let holder = label(detail("held_by_name"), detail("held_by"));
            let waited = waited(timeout);
            let message = format!("timed out after {waited}: lock {name} is still held by {holder}");
            let mut refusal =
                Refusal::new(Code::TimedOut, message).age(AgeKind::Held, held.age.map(|age| age.moment), "");
            refusal.hint = if held.holder_is_gone() { held.hint } else { Some(Hint::WaitLongerForLock) };
            refusal.details = held.details;
            refusal.into()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::AgentStatus;
    use crate::clock::Timestamp;
    use crate::store::conformance::{an_agent, an_entry};

    #[test]
    fn changed_text_of_a_registered_session_is_reported_with_the_lock() {
        testkit::limit_test();
        let board = Board::memory();
        let register = Register { work: Some("long ".repeat(400)), ..Register::named("Ivy") };
        let note = Some("a <b>note</b>".to_owned());
        let acquire = Acquire { note, ..Acquire::registering("deploy", register.clone()) };
        let text = board.locks().acquire(&acquire).unwrap().text;
        let registered = board.agents().register(&register).unwrap().text;
        assert!(!registered.is_empty());
        assert_eq!((text.shortened, text.filtered), (registered.shortened, vec!["note".to_owned()]));
    }

    #[test]
    fn lock_decision_depends_on_agent_and_holder() {
        use AgentStatus::{Active, Completed, Idle, Stale};
        for (agent, holder, refuse_own, expected) in [
            (Active, None, false, Ok("takes")),
            (Active, None, true, Ok("takes")),
            (Idle, None, false, Ok("takes")),
            (Active, Some("me"), false, Ok("keeps")),
            (Active, Some("me"), true, Ok("refused by itself")),
            (Active, Some("other"), false, Ok("refused")),
            (Active, Some("other"), true, Ok("refused")),
            (Stale, None, false, Err(Code::SessionStale)),
            (Stale, Some("me"), false, Err(Code::SessionStale)),
            (Completed, None, false, Err(Code::SessionEnded)),
            (Completed, Some("other"), true, Err(Code::SessionEnded)),
        ] {
            let me = Agent { status: agent, ..an_agent("me") };
            let current = holder
                .map(|holder| Entry { session_id: Some(holder.to_owned()), ..an_entry(LOCKS, "deploy") });
            let outcome = decide(&me, current, refuse_own)
                .map(|verdict| match verdict {
                    Verdict::Takes => "takes",
                    Verdict::Keeps(_) => "keeps",
                    Verdict::Refused(_) => "refused",
                    Verdict::AlreadyHeld(_) => "refused by itself",
                })
                .map_err(|error| error.code());
            assert_eq!(outcome, expected, "{agent} agent, lock of {holder:?}, refuse_own {refuse_own}");
        }
    }

    #[test]
    fn lock_timeout_names_the_holder() {
        // The name of a lock may look like the message about it.
        let name = "a is held by b";
        for (timeout, waited) in [(Duration::from_secs(30), "30s"), (Duration::from_millis(500), "500ms")] {
            let held = Refusal::new(Code::Held, format!("lock {name} is held by Ivy (84a674b5)"))
                .age(AgeKind::Held, Some(Timestamp::EPOCH), "")
                .held_by("84a674b5-9206", "Ivy", Some(Timestamp::EPOCH));
            let told = into_timeout(held.into(), name, timeout);
            assert_eq!(told.code(), Code::TimedOut);
            let expected = format!("timed out after {waited}: lock {name} is still held by Ivy (84a674b5)");
            assert_eq!(told.to_string(), expected);
            assert_eq!(told.age().map(|age| age.at), Some(expected.len()));
            assert_eq!(told.details().unwrap()["held_by_name"], "Ivy");
        }
        let other = Refusal::new(Code::SessionStale, "gone");
        assert_eq!(into_timeout(other.into(), name, Duration::ZERO).code(), Code::SessionStale);
    }
}
