//! The connections of one store, and retries with a limit.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::address::{Address, Host};
use super::clock::ServerClock;
use super::connection::{Broken, CommitSlot, Connection};
use super::faults::{self, Trouble};
use super::layout;
use super::resp::{Reply, Request};
use crate::error::{Error, Result};

/// How many unused connections are kept.
const MAX_IDLE: usize = 8;

/// The first pause before another attempt, and the longest.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(4);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// How long a call believes that the server of its connection is still the same primary.
const BELIEF: Duration = Duration::from_millis(100);

/// The connections to the server of a board.
pub(super) struct Pool {
    pub(super) address: Address,
    pub(super) clock: Arc<ServerClock>,
    /// The longest wait for a reply.
    reply_limit: Duration,
    idle: Mutex<Vec<Connection>>,
    /// The server that has the board, if the one of the address has named another.
    moved: Mutex<Option<Host>>,
    /// How often it was learned that the primary is another server. Connections from before are useless.
    epoch: AtomicU64,
}

impl Pool {
    pub(super) fn new(address: Address, reply_limit: Duration) -> Pool {
        let clock = Arc::new(ServerClock::new());
        let (idle, moved, epoch) = (Mutex::default(), Mutex::default(), AtomicU64::default());
        Pool { address, clock, reply_limit, idle, moved, epoch }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn moved(&self) -> MutexGuard<'_, Option<Host>> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new connection.
    pub(super) fn connect(&self, deadline: Instant) -> Result<Connection, Trouble> {
        let (moved, epoch) = (self.moved().clone(), self.epoch());
        let mut connection = Connection::open(&self.address, moved.as_ref(), self.limit(deadline));
        match &mut connection {
            Ok(connection) => {
                connection.epoch = epoch;
                self.clock.set(connection.time);
            }
            // The server that was named may be gone. The one of the address knows where the board is now.
            Err(_) => *self.moved() = None,
        }
        connection
    }

    /// A new connection to a server to which the cluster is moving the board.
    fn connect_asking(&self, host: &Host, deadline: Instant) -> Result<Connection, Trouble> {
        let epoch = self.epoch();
        let mut connection = Connection::open(&self.address, Some(host), self.limit(deadline))?;
        self.clock.set(connection.time);
        (connection.asks, connection.epoch) = (true, epoch);
        Ok(connection)
    }

    /// The end of one exchange.
    pub(super) fn limit(&self, deadline: Instant) -> Instant {
        deadline.min(Instant::now() + self.reply_limit)
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    fn put_back(&self, connection: Connection) {
        let mut idle = self.idle();
        // When the board has moved, its server need not be asked.
        if idle.len() < MAX_IDLE && !connection.asks && connection.epoch == self.epoch() {
            idle.push(connection);
        }
    }

    /// Considers a failure: which server has the board now, and whether other connections are useless.
    pub(super) fn learn(&self, trouble: &Trouble) {
        if let Trouble::Temporary { moved, elsewhere: true, .. } = trouble {
            self.moved().clone_from(moved);
            self.replace_all();
        }
    }

    /// Lets no connection that is open be used again.
    pub(super) fn replace_all(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.idle().clear();
    }
}

/// A connection for one call, which replaces it after a failure. Every wait of the call ends at its deadline.
pub(super) struct Lease<'a> {
    pool: &'a Pool,
    connection: Option<Connection>,
    /// Whether the connection may have been closed while it was unused.
    was_idle: bool,
    /// The server to which the cluster is moving the board, for the next connection.
    asked: Option<Host>,
    /// The slot of the call's commits. A replaced connection continues with it.
    slot: Option<CommitSlot>,
    pub(super) deadline: Instant,
}

impl<'a> Lease<'a> {
    pub(super) fn new(pool: &'a Pool, deadline: Instant) -> Lease<'a> {
        let connection = pool.idle().pop();
        let was_idle = connection.is_some();
        let slot = connection.as_ref().map(|connection| connection.slot);
        Lease { pool, connection, was_idle, asked: None, slot, deadline }
    }

    /// The connection, a new one if there is none.
    pub(super) fn connection(&mut self) -> Result<&mut Connection, Trouble> {
        if self.connection.as_ref().is_none_or(|connection| connection.epoch != self.pool.epoch()) {
            let mut connection = match self.asked.take() {
                Some(host) => self.pool.connect_asking(&host, self.deadline)?,
                None => self.pool.connect(self.deadline)?,
            };
            self.was_idle = false;
            connection.slot = *self.slot.get_or_insert(connection.slot);
            self.connection = Some(connection);
        }
        let limit = self.pool.limit(self.deadline);
        if let Some(connection) = &mut self.connection
            && let Err(trouble) = connection.check(&self.pool.address, BELIEF, limit)
        {
            self.connection = None;
            return Err(trouble);
        }
        self.connection.as_mut().ok_or_else(|| Trouble::Final(faults::odd_reply(&self.pool.address)))
    }

    /// The id of the call's next commit.
    pub(super) fn next_commit_id(&mut self) -> Result<[u8; layout::COMMIT_ID]> {
        let known = self.slot;
        let mut slot = if let Some(slot) = known {
            slot
        } else {
            self.retry(|lease| lease.connection().map(|connection| connection.slot))?
        };
        let id = slot.next_id();
        self.slot = Some(slot);
        if let Some(connection) = &mut self.connection {
            connection.slot = slot;
        }
        Ok(id)
    }

    /// One exchange. A broken connection is dropped.
    pub(super) fn exchange(&mut self, request: &Request) -> Result<Vec<Reply>, Broken> {
        let limit = self.pool.limit(self.deadline);
        let Some(connection) = &mut self.connection else {
            let error = std::io::ErrorKind::NotConnected.into();
            return Err(Broken { may_have_arrived: false, error });
        };
        let replies = connection.exchange(request, limit);
        if replies.is_err() {
            self.connection = None;
        }
        replies
    }

    /// Runs `attempt` until it succeeds, fails finally, or the deadline has passed. An attempt must have no effect
    /// that a second one repeats.
    pub(super) fn retry<T>(
        &mut self,
        mut attempt: impl FnMut(&mut Lease<'a>) -> Result<T, Trouble>,
    ) -> Result<T> {
        let mut pause = FIRST_PAUSE;
        loop {
            let trouble = match attempt(self) {
                Ok(answer) => return Ok(answer),
                Err(trouble) => trouble,
            };
            pause = self.pause_after(trouble, pause)?;
        }
    }

    /// Considers a failure and waits before the next attempt. Returns the next pause, or the error if there is no time
    /// for another attempt.
    pub(super) fn pause_after(&mut self, trouble: Trouble, pause: Duration) -> Result<Duration> {
        self.pool.learn(&trouble);
        if matches!(trouble, Trouble::Temporary { elsewhere: true, .. }) {
            self.connection = None;
        }
        if let Trouble::Asks { host, .. } = &trouble {
            (self.connection, self.asked) = (None, Some(host.clone()));
        }
        // A connection that was closed while it was unused is no sign of a problem.
        if std::mem::take(&mut self.was_idle) && self.connection.is_none() {
            self.pool.idle().clear();
            return Ok(pause);
        }
        let pause_now = jitter(pause);
        let is_final = matches!(trouble, Trouble::Final(_));
        if is_final || Instant::now() + pause_now >= self.deadline {
            return Err(self.fail(trouble));
        }
        thread::sleep(pause_now);
        Ok((pause * 2).min(LONGEST_PAUSE))
    }

    /// The error of a failure, after which the connection is not used again.
    pub(super) fn fail(&mut self, trouble: Trouble) -> Error {
        self.connection = None;
        trouble.into_error(&self.pool.address)
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.put_back(connection);
        }
    }
}

/// Between half of a pause and all of it, so that clients do not try again at the same moment.
fn jitter(pause: Duration) -> Duration {
    let random = u32::from(Uuid::new_v4().as_bytes()[0]);
    pause / 2 + pause * random / 512
}
