//! One connection to a server. It is never used again after a failure or an unexpected reply: its next reply would be
//! that of another request.

use std::io;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::address::{Address, Host, Server};
use super::clock::ServerTime;
use super::faults::{self, ServerError};
use super::layout;
use super::resp::{Reply, ReplyReader, Request};
use super::socket::Socket;

/// The oldest version of the server: it has script flags, and replicates effects instead of scripts.
const MIN_VERSION: u64 = 7;

/// How much of a replication id is kept.
const SHORT_ID: usize = 16;

/// A connection to the primary of a board.
pub(super) struct Connection {
    socket: Socket,
    replies: ReplyReader,
    /// The run of the server: another one after each restart and each promotion.
    pub(super) run: String,
    /// When it was checked that the server is a primary.
    pub(super) checked_at: Instant,
    /// Where the outcome of its last commit is.
    pub(super) slot: CommitSlot,
    /// The content of its slot, if it is known.
    pub(super) outcome: Option<Vec<u8>>,
    /// The time of the server when it was opened.
    pub(super) time: ServerTime,
    /// Whether the cluster is moving the board to this server, which then expects each command to be announced.
    pub(super) asks: bool,
    /// How often the pool had learned that the primary is another server.
    pub(super) epoch: u64,
}

/// Where the outcomes of a connection, and of those that replace it, are stored: each commit replaces the one before.
#[derive(Clone, Copy)]
pub(super) struct CommitSlot {
    /// One of all numbers, at random, so that a board stores no more outcomes than that.
    pub(super) number: u16,
    /// Two connections may have the same number.
    owner: [u8; 4],
    commits: u32,
}

impl CommitSlot {
    fn new() -> CommitSlot {
        let random = Uuid::new_v4().into_bytes();
        let [high, low, a, b, .., c, d] = random;
        CommitSlot { number: u16::from_be_bytes([high, low]), owner: [a, b, c, d], commits: 0 }
    }

    /// The id of the next commit: random, then the owner, then a number that grows. So the server knows a copy of an
    /// older commit that arrives late.
    pub(super) fn next_id(&mut self) -> [u8; layout::COMMIT_ID] {
        self.commits = self.commits.wrapping_add(1);
        let mut id = Uuid::new_v4().into_bytes();
        id[layout::STAMP..layout::STAMP + 4].copy_from_slice(&self.owner);
        id[layout::STAMP + 4..].copy_from_slice(&self.commits.to_be_bytes());
        id
    }
}

/// The connection broke.
pub(super) struct BrokenConnection {
    /// Whether the server may have a complete command of the request.
    pub(super) may_have_arrived: bool,
    pub(super) error: io::Error,
    /// The error that the server sent before.
    pub(super) said: Option<String>,
}

impl Connection {
    /// Connects to the server that has the board: at `moved`, if another server has named it.
    pub(super) fn open(
        address: &Address,
        moved: Option<&Host>,
        deadline: Instant,
    ) -> Result<Connection, ServerError> {
        let certificates = address.certificates.as_deref();
        let tcp = |host: &Host, tls| Socket::tcp(host, tls, certificates, deadline);
        let socket = match (&address.server, moved) {
            (Server::Tcp { tls, .. } | Server::Sentinels { tls, .. }, Some(host))
            | (Server::Tcp { host, tls }, None) => tcp(host, *tls),
            (Server::Unix(path), _) => Socket::unix(path, deadline),
            (Server::Sentinels { sentinels, service, tls }, None) => {
                return by_sentinels(address, sentinels, service, *tls, deadline);
            }
        };
        Connection::on(address, socket, deadline)
    }

    /// Logs in on a new socket.
    fn on(
        address: &Address,
        socket: io::Result<Socket>,
        deadline: Instant,
    ) -> Result<Connection, ServerError> {
        let socket = socket.map_err(|error| faults::of_connection(address, error))?;
        let mut connection = Connection::new(socket);
        connection.log_in(address, deadline)?;
        Ok(connection)
    }

    fn new(socket: Socket) -> Connection {
        Connection {
            socket,
            replies: ReplyReader::default(),
            run: String::new(),
            checked_at: Instant::now(),
            slot: CommitSlot::new(),
            outcome: None,
            time: ServerTime::EPOCH,
            asks: false,
            epoch: 0,
        }
    }

    fn log_in(&mut self, address: &Address, deadline: Instant) -> Result<(), ServerError> {
        let mut request = Request::default();
        match (&address.user, &address.password) {
            (None, Some(password)) => drop(request.command(&[b"AUTH", password.as_bytes()])),
            (Some(user), password) => {
                let password = password.as_deref().unwrap_or_default();
                request.command(&[b"AUTH", user.as_bytes(), password.as_bytes()]);
            }
            (None, None) => {}
        }
        let has_login = request.commands() > 0;
        if address.database != 0 {
            request.command(&[b"SELECT", address.database.to_string().as_bytes()]);
        }
        request.command(&[b"TIME"]).command(&[b"INFO", b"server", b"replication"]);
        let replies =
            self.exchange(&request, deadline).map_err(|broken| faults::of_login(address, broken))?;
        if let Some(Reply::Error(text)) = replies.first().filter(|_| has_login) {
            return Err(faults::of_refused_login(address, text));
        }
        if let Some(Reply::Error(text)) = replies.iter().find(|reply| matches!(reply, Reply::Error(_))) {
            return Err(faults::of_reply(address, text));
        }
        let Some(Reply::Bytes(info)) = replies.last() else {
            return Err(ServerError::Final(faults::odd_reply(address)));
        };
        let info = String::from_utf8_lossy(info);
        self.learn(address, &info)?;
        self.time = replies
            .iter()
            .rev()
            .nth(1)
            .and_then(read_time)
            .ok_or_else(|| ServerError::Final(faults::odd(address, "no time")))?;
        Ok(())
    }

    /// Checks again that the server is the primary, and which run it is, if the last check is older than `interval`.
    /// Nothing closes a connection when an operator changes the role of a server.
    pub(super) fn check(
        &mut self,
        address: &Address,
        interval: Duration,
        deadline: Instant,
    ) -> Result<(), ServerError> {
        if self.checked_at.elapsed() < interval {
            return Ok(());
        }
        let mut request = Request::default();
        request.command(&[b"INFO", b"server", b"replication"]);
        let replies = self.exchange(&request, deadline);
        match replies.map_err(|broken| faults::of_connection(address, broken.error))?.first() {
            Some(Reply::Bytes(info)) => self.learn(address, &String::from_utf8_lossy(info)),
            Some(Reply::Error(text)) => Err(faults::of_reply(address, text)),
            _ => Err(ServerError::Final(faults::odd_reply(address))),
        }
    }

    /// Notes what the server tells of itself.
    fn learn(&mut self, address: &Address, info: &str) -> Result<(), ServerError> {
        let version = info_field(info, "redis_version").unwrap_or_default();
        let major = version.split('.').next().and_then(|major| major.parse::<u64>().ok());
        let run = info_field(info, "run_id").filter(|run| is_word(run));
        let (Some(major), Some(run)) = (major, run) else {
            return Err(ServerError::Final(faults::odd(address, "no version or no run id")));
        };
        if major < MIN_VERSION {
            return Err(faults::too_old(address, version));
        }
        if info_field(info, "role").is_some_and(|role| role != "master") {
            return Err(faults::replica(address));
        }
        // A process may be a replica for a while: its replication id tells. See docs/decisions/0021.
        let history = info_field(info, "master_replid").filter(|id| is_word(id)).unwrap_or_default();
        self.run = format!("{run}.{}", &history[..history.len().min(SHORT_ID)]);
        self.checked_at = Instant::now();
        Ok(())
    }

    /// Sends a request and reads its replies. After an error the connection is useless.
    pub(super) fn exchange(
        &mut self,
        request: &Request,
        deadline: Instant,
    ) -> Result<Vec<Reply>, BrokenConnection> {
        if !self.asks {
            return self.exchange_exactly(request, deadline);
        }
        let (asking, is_added) = request.asking();
        let replies = self.exchange_exactly(&asking, deadline)?;
        let (mut list, mut refused) = (Vec::with_capacity(request.commands()), None);
        for (reply, is_added) in replies.into_iter().zip(is_added) {
            match reply {
                // The server denies this user `ASKING`: that is the reason why the next command fails.
                Reply::Error(_) if is_added => refused = Some(reply),
                _ if is_added => {}
                reply => list.push(refused.take().unwrap_or(reply)),
            }
        }
        Ok(list)
    }

    fn exchange_exactly(
        &mut self,
        request: &Request,
        deadline: Instant,
    ) -> Result<Vec<Reply>, BrokenConnection> {
        self.send(request, deadline)?;
        self.receive(request.commands(), deadline)
    }

    /// Whether nothing has arrived since the last reply, not even the end of the connection.
    pub(super) fn is_open(&self) -> bool {
        self.replies.is_empty() && self.socket.is_quiet()
    }

    /// Sends a request. Its replies come next, before any other request is sent.
    pub(super) fn send(&mut self, request: &Request, deadline: Instant) -> Result<(), BrokenConnection> {
        let Err(error) = self.socket.send(request.bytes(), deadline) else { return Ok(()) };
        let (socket, replies) = (&mut self.socket, &mut self.replies);
        let said = match replies.read(&mut |buffer| socket.receive(buffer, deadline)) {
            Ok(Reply::Error(text)) => Some(text),
            _ => None,
        };
        // Of several commands the first ones may be complete.
        let may_have_arrived = !self.socket.reports_unsent() || request.commands() > 1;
        Err(BrokenConnection { may_have_arrived, error, said })
    }

    /// Waits until a reply begins to arrive, until the deadline at most. Nothing is lost by waiting again.
    pub(super) fn has_reply(&mut self, deadline: Instant) -> Result<bool, BrokenConnection> {
        let (socket, replies) = (&mut self.socket, &mut self.replies);
        match replies.begin(&mut |buffer| socket.receive(buffer, deadline)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(false),
            Err(error) => Err(BrokenConnection { may_have_arrived: true, error, said: None }),
        }
    }

    /// Reads this many replies, which are all that the server owes.
    pub(super) fn receive(
        &mut self,
        count: usize,
        deadline: Instant,
    ) -> Result<Vec<Reply>, BrokenConnection> {
        let (socket, replies) = (&mut self.socket, &mut self.replies);
        let mut fill = |buffer: &mut [u8]| socket.receive(buffer, deadline);
        let mut list = Vec::with_capacity(count);
        for _ in 0..count {
            match replies.read(&mut fill) {
                Ok(reply) => list.push(reply),
                Err(error) => {
                    let said = list.into_iter().find_map(|reply| match reply {
                        Reply::Error(text) => Some(text),
                        _ => None,
                    });
                    return Err(BrokenConnection { may_have_arrived: true, error, said });
                }
            }
        }
        if !replies.is_empty() {
            let error = io::Error::new(io::ErrorKind::InvalidData, "the server sent more than was asked for");
            return Err(BrokenConnection { may_have_arrived: true, error, said: None });
        }
        Ok(list)
    }
}

/// The value of a line of `INFO`.
pub(super) fn info_field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}

/// The time of a reply to `TIME`: seconds and microseconds.
pub(super) fn read_time(reply: &Reply) -> Option<ServerTime> {
    let Reply::List(parts) = reply else { return None };
    let [Reply::Bytes(seconds), Reply::Bytes(micros)] = &parts[..] else { return None };
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<i64>().ok();
    Some(ServerTime::from_micros(number(seconds)?.checked_mul(1_000_000)?.checked_add(number(micros)?)?))
}

/// Whether a run id can be part of the board's state, which is separated by spaces.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Connects to the primary of a service: the first server that a sentinel names and that is a primary. A sentinel may
/// not know of a failover yet, so the next one is asked if the server does not answer or is a replica.
fn by_sentinels(
    address: &Address,
    sentinels: &[Host],
    service: &str,
    tls: bool,
    deadline: Instant,
) -> Result<Connection, ServerError> {
    let certificates = address.certificates.as_deref();
    let mut last = None;
    for (number, sentinel) in sentinels.iter().enumerate() {
        // One sentinel that does not answer leaves time for the others.
        let now = Instant::now();
        let share =
            deadline.saturating_duration_since(now) / u32::try_from(sentinels.len() - number).unwrap_or(1);
        let limit = now + share;
        let connection = ask_sentinel(address, sentinel, service, tls, limit)
            .and_then(|host| Connection::on(address, Socket::tcp(&host, tls, certificates, limit), limit));
        match connection {
            Ok(connection) => return Ok(connection),
            // One that may work soon is a better reason to try again than one that does not know the service.
            Err(error) if matches!(last, None | Some(ServerError::Final(_))) => last = Some(error),
            Err(_) => {}
        }
    }
    Err(last.unwrap_or_else(|| ServerError::Final(faults::odd_reply(address))))
}

fn ask_sentinel(
    address: &Address,
    sentinel: &Host,
    service: &str,
    tls: bool,
    deadline: Instant,
) -> Result<Host, ServerError> {
    let failed = |error| faults::of_connection(address, error);
    let socket = Socket::tcp(sentinel, tls, address.certificates.as_deref(), deadline).map_err(failed)?;
    let mut connection = Connection::new(socket);
    let mut request = Request::default();
    if let Some(password) = &address.sentinel_password {
        request.command(&[b"AUTH", password.as_bytes()]);
    }
    request.command(&[b"SENTINEL", b"get-master-addr-by-name", service.as_bytes()]);
    let replies =
        connection.exchange(&request, deadline).map_err(|broken| faults::of_login(address, broken))?;
    if let [Reply::Error(text), _] = &replies[..] {
        return Err(faults::of_refused_sentinel_login(address, text));
    }
    match replies.last() {
        Some(Reply::List(parts)) => match &parts[..] {
            [Reply::Bytes(name), Reply::Bytes(port)] => {
                let port = std::str::from_utf8(port).ok().and_then(|port| port.parse().ok());
                let name = String::from_utf8(name.clone()).ok();
                match (name, port) {
                    (Some(name), Some(port)) => Ok(Host { name, port }),
                    _ => Err(ServerError::Final(faults::odd_reply(address))),
                }
            }
            _ => Err(ServerError::Final(faults::odd_reply(address))),
        },
        Some(Reply::Nil) => Err(faults::no_sentinel(address, "its sentinel does not know the service")),
        Some(Reply::Error(text)) => Err(faults::of_sentinel(address, text)),
        _ => Err(ServerError::Final(faults::odd_reply(address))),
    }
}
