//! The connections of one store, and retries with a limit.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::address::{Address, Host, Server};
use super::clock::ServerClock;
use super::connection::{BrokenConnection, CommitSlot, Connection};
use super::faults::{self, ServerError};
use super::layout;
use super::resp::{Reply, Request};
use crate::error::{Error, Result};

/// How many unused connections are kept.
const MAX_IDLE: usize = 8;

/// The first pause before another attempt, and the longest.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(4);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// How long a call believes that the server of its connection is still the same primary.
const ROLE_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// How long a call tries to connect, if the server did not answer an earlier call of this process.
const SHORT_PATIENCE: Duration = Duration::from_secs(1);

/// How long that is remembered.
const SILENCE_IS_REMEMBERED: Duration = Duration::from_mins(1);

/// The addresses of servers that did not answer a call, and when. A process with many calls waits for such a server
/// only once. It is shared by all stores of the process, because a store that cannot be opened does not exist.
fn silent_servers() -> MutexGuard<'static, BTreeMap<String, Instant>> {
    static SERVERS: Mutex<BTreeMap<String, Instant>> = Mutex::new(BTreeMap::new());
    SERVERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long a call waits before a person is told.
const SILENCE: Duration = Duration::from_secs(1);

/// Gets a text about a server that calls wait for, once for each store.
#[derive(Clone)]
pub struct WaitObserver(Arc<dyn Fn(&str) + Send + Sync>);

impl WaitObserver {
    /// An observer that calls this function.
    pub fn new(observe: impl Fn(&str) + Send + Sync + 'static) -> WaitObserver {
        WaitObserver(Arc::new(observe))
    }
}

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
    /// What is told that calls wait, until it was.
    observer: Mutex<Option<WaitObserver>>,
}

impl Pool {
    pub(super) fn new(address: Address, reply_limit: Duration) -> Pool {
        Pool {
            address,
            clock: Arc::new(ServerClock::new()),
            reply_limit,
            idle: Mutex::default(),
            moved: Mutex::default(),
            epoch: AtomicU64::default(),
            observer: Mutex::default(),
        }
    }

    /// The same with an observer of waits.
    pub(super) fn observed_by(self, observer: Option<WaitObserver>) -> Pool {
        Pool { observer: Mutex::new(observer), ..self }
    }

    /// Tells a person who waits why, once.
    fn report_waiting(&self, error: &ServerError) {
        let observer = self.observer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let (Some(WaitObserver(observe)), Some(reason)) = (observer, error.reason_to_wait(&self.address)) {
            observe(&reason);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn moved(&self) -> MutexGuard<'_, Option<Host>> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new connection.
    pub(super) fn connect(&self, deadline: Instant) -> Result<Connection, ServerError> {
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
    fn connect_asking(&self, host: &Host, deadline: Instant) -> Result<Connection, ServerError> {
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

    /// Whether its server is still believed to be the primary.
    pub(super) fn is_current(&self, connection: &Connection) -> bool {
        connection.epoch == self.epoch()
    }

    fn put_back(&self, connection: Connection) {
        let mut idle = self.idle();
        // When the board has moved, its server need not be asked.
        if idle.len() < MAX_IDLE && !connection.asks && self.is_current(&connection) {
            idle.push(connection);
        }
    }

    /// Lets unused connections have this slot.
    #[cfg(test)]
    pub(super) fn use_slot(&self, number: u16) {
        for connection in self.idle().iter_mut() {
            (connection.slot.number, connection.outcome) = (number, None);
        }
    }

    /// Considers a failure: which server has the board now, and whether other connections are useless.
    pub(super) fn learn(&self, error: &ServerError) {
        if let ServerError::Temporary { moved, elsewhere: true, .. } = error {
            let moved = moved.as_ref().map(|host| self.complete(host));
            *self.moved() = moved;
            self.replace_all();
        }
    }

    /// A server that another one has named. Without a name it is another port of the same host.
    fn complete(&self, named: &Host) -> Host {
        let known = if named.name.is_empty() { self.moved().clone() } else { None };
        let name = match (known, &self.address.server) {
            (Some(host), _) => host.name,
            (None, Server::Tcp { host, .. }) if named.name.is_empty() => host.name.clone(),
            _ => named.name.clone(),
        };
        Host { name, port: named.port }
    }

    /// Until when a call that begins now tries to connect.
    fn connect_by(&self, deadline: Instant) -> Instant {
        let failed_at = silent_servers().get(&self.address.to_string()).copied();
        match failed_at {
            Some(at) if at.elapsed() < SILENCE_IS_REMEMBERED => deadline.min(Instant::now() + SHORT_PATIENCE),
            _ => deadline,
        }
    }

    /// Remembers whether the server answers.
    fn note_answer(&self, answers: bool) {
        let mut servers = silent_servers();
        if !answers {
            servers.insert(self.address.to_string(), Instant::now());
        } else if !servers.is_empty() {
            servers.remove(&self.address.to_string());
        }
    }

    /// Lets no connection that is open be used again.
    pub(super) fn replace_all(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.idle().clear();
    }
}

/// A connection for one call, which replaces it after a failure. Every wait of the call ends at its deadline.
pub(super) struct ServerCall<'a> {
    pool: &'a Pool,
    connection: Option<Connection>,
    /// Whether the connection may have been closed while it was unused.
    was_idle: bool,
    /// The server to which the cluster is moving the board, for the next connection.
    asked: Option<Host>,
    /// The slot of the call's commits. A replaced connection continues with it.
    slot: Option<CommitSlot>,
    /// Until when it tries to connect for the first time.
    connect_by: Instant,
    pub(super) started: Instant,
    pub(super) deadline: Instant,
}

impl<'a> ServerCall<'a> {
    pub(super) fn new(pool: &'a Pool, deadline: Instant) -> ServerCall<'a> {
        let connection = pool.idle().pop();
        let was_idle = connection.is_some();
        let slot = connection.as_ref().map(|connection| connection.slot);
        let connect_by = pool.connect_by(deadline);
        let started = Instant::now();
        ServerCall { pool, connection, was_idle, asked: None, slot, connect_by, started, deadline }
    }

    /// The connection, a new one if there is none.
    pub(super) fn connection(&mut self) -> Result<&mut Connection, ServerError> {
        if self.connection.as_ref().is_none_or(|connection| !self.pool.is_current(connection)) {
            let mut connection = match self.asked.take() {
                Some(host) => self.pool.connect_asking(&host, self.connect_by)?,
                None => self.pool.connect(self.connect_by)?,
            };
            self.pool.note_answer(true);
            self.connect_by = self.deadline;
            self.was_idle = false;
            connection.slot = *self.slot.get_or_insert(connection.slot);
            self.connection = Some(connection);
        }
        let limit = self.pool.limit(self.deadline);
        if let Some(connection) = &mut self.connection
            && let Err(error) = connection.check(&self.pool.address, ROLE_CHECK_INTERVAL, limit)
        {
            self.connection = None;
            return Err(error);
        }
        self.connection.as_mut().ok_or_else(|| ServerError::Final(faults::odd_reply(&self.pool.address)))
    }

    /// The id of the call's next commit.
    pub(super) fn next_commit_id(&mut self) -> Result<[u8; layout::COMMIT_ID]> {
        let known = self.slot;
        let mut slot = if let Some(slot) = known {
            slot
        } else {
            self.retry(|call| call.connection().map(|connection| connection.slot))?
        };
        let id = slot.next_id();
        self.slot = Some(slot);
        if let Some(connection) = &mut self.connection {
            connection.slot = slot;
        }
        Ok(id)
    }

    /// The content of the slot of its connection, if it is known, and the connection can be used without a check.
    pub(super) fn known_outcome(&self) -> Option<&[u8]> {
        let connection = self.connection.as_ref().filter(|connection| self.pool.is_current(connection))?;
        if connection.checked_at.elapsed() >= ROLE_CHECK_INTERVAL || !connection.is_open() {
            return None;
        }
        connection.outcome.as_deref()
    }

    /// The run of the server of its connection.
    pub(super) fn known_run(&self) -> Option<&str> {
        Some(&self.connection.as_ref()?.run)
    }

    /// Records the content of the slot of its connection.
    pub(super) fn set_outcome(&mut self, outcome: Vec<u8>) {
        if let Some(connection) = &mut self.connection {
            connection.outcome = Some(outcome);
        }
    }

    /// How long the reply to a request that is sent now may take.
    pub(super) fn reply_limit(&self) -> Duration {
        self.pool.limit(self.deadline).saturating_duration_since(Instant::now())
    }

    /// One exchange. A broken connection is dropped.
    pub(super) fn exchange(&mut self, request: &Request) -> Result<Vec<Reply>, BrokenConnection> {
        let limit = self.pool.limit(self.deadline);
        let Some(connection) = &mut self.connection else {
            let error = std::io::ErrorKind::NotConnected.into();
            return Err(BrokenConnection { may_have_arrived: false, error, said: None });
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
        mut attempt: impl FnMut(&mut ServerCall<'a>) -> Result<T, ServerError>,
    ) -> Result<T> {
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match attempt(self) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            pause = self.pause_after(error, pause)?;
        }
    }

    /// Considers a failure and waits before the next attempt. Returns the next pause, or the error if there is no time
    /// for another attempt.
    pub(super) fn pause_after(&mut self, error: ServerError, pause: Duration) -> Result<Duration> {
        self.pool.learn(&error);
        if matches!(error, ServerError::Temporary { elsewhere: true, .. }) {
            self.connection = None;
        }
        if let ServerError::Asks { host, .. } = &error {
            (self.connection, self.asked) = (None, Some(self.pool.complete(host)));
        }
        // A connection that was closed while it was unused is no sign of a problem.
        if std::mem::take(&mut self.was_idle) && self.connection.is_none() {
            self.pool.idle().clear();
            return Ok(pause);
        }
        let pause_now = jitter(pause);
        let is_final = matches!(error, ServerError::Final(_));
        if is_final || Instant::now() + pause_now >= self.deadline.min(self.connect_by) {
            if !is_final && self.connection.is_none() {
                self.pool.note_answer(false);
            }
            return Err(self.fail(error));
        }
        if self.started.elapsed() + pause_now >= SILENCE {
            self.pool.report_waiting(&error);
        }
        thread::sleep(pause_now);
        Ok((pause * 2).min(LONGEST_PAUSE))
    }

    /// The error of a failure, after which the connection is not used again.
    pub(super) fn fail(&mut self, error: ServerError) -> Error {
        self.connection = None;
        error.into_error(&self.pool.address)
    }
}

impl Drop for ServerCall<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.put_back(connection);
        }
    }
}

/// Between half of a pause and all of it, so that clients do not try again at the same moment.
pub(super) fn jitter(pause: Duration) -> Duration {
    let random = u32::from(Uuid::new_v4().as_bytes()[0]);
    pause / 2 + pause * random / 512
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirection_without_a_host_leads_to_another_port_of_the_same_host() {
        let address: Address = "redis://10.0.0.1:7000".parse().unwrap();
        let pool = Pool::new(address.clone(), Duration::from_secs(1));
        let moved = |reply: &str| {
            pool.learn(&faults::of_reply(&address, reply));
            let host = pool.moved().clone().unwrap();
            (host.name, host.port)
        };
        assert_eq!(moved("MOVED 3999 :6381"), ("10.0.0.1".to_owned(), 6381));
        assert_eq!(moved("MOVED 3999 10.0.0.2:6382"), ("10.0.0.2".to_owned(), 6382));
        assert_eq!(moved("MOVED 3999 :6383"), ("10.0.0.2".to_owned(), 6383));
        let ServerError::Asks { host, .. } = faults::of_reply(&address, "ASK 3999 :6384") else { panic!() };
        let host = pool.complete(&host);
        assert_eq!((host.name.as_str(), host.port), ("10.0.0.2", 6384));
    }
}
