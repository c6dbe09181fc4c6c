//! Waiting for events: one thread and one connection for all waiting threads of a store.
//!
//! The thread blocks on the stream from the last known revision on, so that no event is missed between two reads. It
//! starts with the first wait and ends when no thread waits any more. While it cannot reach the server, waiting threads
//! look for themselves, so that a lost wake-up costs at most a quarter of a second.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::Inner;
use super::connection::Connection;
use super::faults::{self, Trouble};
use super::resp::{Reply, Request};
use crate::error::Result;
use crate::revision::Revision;

/// How long the server blocks at most. Then the listener checks that the board still exists.
const BLOCK: Duration = Duration::from_secs(1);

/// How much longer than that the answer may take.
const GRACE: Duration = Duration::from_secs(1);

/// How long the listener believes that its server is still the primary. A demoted one also ends its wait.
const BELIEF: Duration = Duration::from_secs(5);

/// How long a thread sleeps between two checks while the listener has no connection.
const CHECK: Duration = Duration::from_millis(250);

/// How long the listener goes on when no thread waits: a follower waits again soon.
const LINGER: Duration = Duration::from_secs(2);

/// What waiting threads and the listener share.
#[derive(Default)]
pub(super) struct Listening {
    state: Mutex<ListenerState>,
    changed: Condvar,
}

#[derive(Default)]
struct ListenerState {
    /// The last known revision.
    known: Revision,
    waiting: usize,
    last_wait: Option<Instant>,
    runs: bool,
    /// Whether the listener blocks on the stream, so that waiting threads need not look for themselves.
    listens: bool,
    /// How often it failed. After each failure, waiting threads look for themselves once.
    failures: u64,
}

impl Listening {
    fn state(&self) -> MutexGuard<'_, ListenerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes waiting threads, if there is a new event.
    fn tell(&self, revision: Revision) {
        let mut state = self.state();
        if state.known < revision {
            state.known = revision;
            self.changed.notify_all();
        }
    }

    fn set_listens(&self, listens: bool) {
        let mut state = self.state();
        if state.listens != listens {
            state.listens = listens;
            self.changed.notify_all();
        }
    }

    fn note_failure(&self) {
        let mut state = self.state();
        state.listens = false;
        state.failures += 1;
        self.changed.notify_all();
    }

    /// Whether the listener may end. Then it has ended: the next wait starts another one.
    fn ends(&self) -> bool {
        let mut state = self.state();
        let is_unused = state.waiting == 0 && state.last_wait.is_none_or(|last| last.elapsed() > LINGER);
        if is_unused {
            (state.runs, state.listens) = (false, false);
        }
        is_unused
    }
}

impl Inner {
    pub(super) fn wait(self: &Arc<Inner>, after: Revision, timeout: Duration) -> Result<Revision> {
        let end = Instant::now().checked_add(timeout);
        // A listener that blocks on the stream knows of every later event. Otherwise, and in the end, this thread asks.
        let mut is_informed = !timeout.is_zero() && self.listening.state().listens;
        loop {
            if !std::mem::take(&mut is_informed) {
                let now = self.revision()?;
                self.listening.tell(now);
                if now > after || end.is_some_and(|end| Instant::now() >= end) {
                    return Ok(now);
                }
            }
            self.start_listener();
            if let Some(revision) = self.sleep(after, end) {
                return Ok(revision);
            }
        }
    }

    /// Sleeps until the listener knows a later revision. Otherwise until the end, or until it is time for a check.
    fn sleep(&self, after: Revision, end: Option<Instant>) -> Option<Revision> {
        let listening = &self.listening;
        let mut state = listening.state();
        state.waiting += 1;
        let (mut check, failures) = (None, state.failures);
        let revision = loop {
            if state.known > after {
                break Some(state.known);
            }
            let now = Instant::now();
            let is_over = end.is_some_and(|end| now >= end) || check.is_some_and(|check| now >= check);
            if is_over || state.failures != failures {
                break None;
            }
            // Without a listener this thread looks for itself.
            check = if state.listens { None } else { Some(check.unwrap_or(now + CHECK)) };
            let wakes_at = [end, check].into_iter().flatten().min();
            state = match wakes_at {
                Some(wakes_at) => {
                    let left = wakes_at.saturating_duration_since(now);
                    listening.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => listening.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        };
        state.waiting -= 1;
        state.last_wait = Some(Instant::now());
        revision
    }

    fn start_listener(self: &Arc<Inner>) {
        let mut state = self.listening.state();
        if state.runs {
            return;
        }
        let inner = Arc::clone(self);
        let started = thread::Builder::new().name("listener".to_owned()).spawn(move || inner.listen());
        // Without a thread, waiting threads look for themselves.
        state.runs = started.is_ok();
    }

    fn listen(&self) {
        let mut pause = Duration::from_millis(10);
        while !self.listening.ends() {
            let listened = self.pool.connect(Instant::now() + GRACE).and_then(|mut connection| {
                pause = Duration::from_millis(10);
                // A server that is demoted closes the connections that wait, and no others.
                self.listen_on(&mut connection).inspect_err(|_| self.pool.replace_all())
            });
            if let Err(trouble) = listened {
                self.pool.learn(&trouble);
                self.listening.note_failure();
                thread::sleep(pause);
                pause = (pause * 2).min(BLOCK);
            }
        }
    }

    /// Listens on a connection until no thread waits any more.
    fn listen_on(&self, connection: &mut Connection) -> Result<(), Trouble> {
        while !self.listening.ends() {
            // A replica would answer, and may not know of new events.
            connection.check(&self.pool.address, BELIEF, Instant::now() + GRACE)?;
            let known = self.listening.state().known;
            self.listening.set_listens(true);
            let mut request = Request::default();
            let (block, id) = (BLOCK.as_millis().to_string(), known.to_string());
            request.command(&[
                b"XREAD",
                b"COUNT",
                b"1",
                b"BLOCK",
                block.as_bytes(),
                b"STREAMS",
                &self.keys.log,
                id.as_bytes(),
            ]);
            // The newest revision, and whether the board is still there.
            request.command(&[b"HGET", &self.keys.rows, super::layout::STATE]);
            let replies = connection.exchange(&request, Instant::now() + BLOCK + GRACE);
            let replies =
                replies.map_err(|broken| faults::of_connection(&self.pool.address, broken.error))?;
            for reply in &replies {
                if let Reply::Error(text) = reply {
                    return Err(faults::of_reply(&self.pool.address, text));
                }
            }
            match replies.get(1) {
                Some(Reply::Bytes(stored)) => {
                    let state = self.read_state(stored).map_err(Trouble::Final)?;
                    self.listening.tell(state.revision);
                }
                // Waiting threads look for themselves, and report it.
                _ => return Err(Trouble::Final(faults::gone(&self.pool.address))),
            }
        }
        Ok(())
    }
}
