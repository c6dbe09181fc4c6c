//! One connection to a server. It is never used again after a failure or an unexpected reply: its next reply would be
//! that of another request.

use std::io;
use std::time::Instant;

use uuid::Uuid;

use super::address::{Address, Host, Server};
use super::faults::{self, Trouble};
use super::resp::{Reply, ReplyReader, Request};
use super::socket::Socket;
use crate::clock::Timestamp;

/// The oldest version of the server: it has script flags, and replicates effects instead of scripts.
const MIN_VERSION: u64 = 7;

/// How many outcomes a board stores. Each connection has one of these slots.
const SLOTS: u128 = 1 << 16;

/// A connection to the primary of a board.
pub(super) struct Connection {
    socket: Socket,
    replies: ReplyReader,
    /// The process of the server: another one after each restart.
    pub(super) run: String,
    /// The number of the slot with the outcome of its last commit.
    pub(super) slot: u16,
    /// The content of that slot, if it is known.
    pub(super) outcome: Option<Vec<u8>>,
    /// The time of the server when it was opened.
    pub(super) time: Timestamp,
}

/// The connection broke.
pub(super) struct Broken {
    /// Whether the last byte of the request may have left.
    pub(super) may_have_arrived: bool,
    pub(super) error: io::Error,
}

impl Connection {
    /// Connects to the server that has the board: at `moved`, if another server has named it.
    pub(super) fn open(
        address: &Address,
        moved: Option<&Host>,
        deadline: Instant,
    ) -> Result<Connection, Trouble> {
        let certificates = address.certificates.as_deref();
        let tcp = |host: &Host, tls| Socket::tcp(host, tls, certificates, deadline);
        let socket = match (&address.server, moved) {
            (Server::Tcp { tls, .. } | Server::Sentinels { tls, .. }, Some(host))
            | (Server::Tcp { host, tls }, None) => tcp(host, *tls),
            (Server::Unix(path), _) => Socket::unix(path, deadline),
            (Server::Sentinels { sentinels, service, tls }, None) => {
                tcp(&find_primary(address, sentinels, service, *tls, deadline)?, *tls)
            }
        };
        let socket = socket.map_err(|error| faults::of_connection(address, error))?;
        let slot = u16::try_from(Uuid::new_v4().as_u128() % SLOTS).unwrap_or(0);
        let replies = ReplyReader::default();
        let mut connection =
            Connection { socket, replies, run: String::new(), slot, outcome: None, time: Timestamp::EPOCH };
        connection.log_in(address, deadline)?;
        Ok(connection)
    }

    fn log_in(&mut self, address: &Address, deadline: Instant) -> Result<(), Trouble> {
        let mut request = Request::default();
        match (&address.user, &address.password) {
            (None, Some(password)) => drop(request.command(&[b"AUTH", password.as_bytes()])),
            (Some(user), password) => {
                let password = password.as_deref().unwrap_or_default();
                request.command(&[b"AUTH", user.as_bytes(), password.as_bytes()]);
            }
            (None, None) => {}
        }
        if address.database != 0 {
            request.command(&[b"SELECT", address.database.to_string().as_bytes()]);
        }
        request.command(&[b"TIME"]).command(&[b"INFO", b"server", b"replication"]);
        let replies = self.exchange(&request, deadline).map_err(|broken| {
            // A server of another kind may close the connection, or send what is no reply.
            faults::of_connection(address, broken.error)
        })?;
        // A failed login makes the other replies fail, too, so the first error is the reason.
        if let Some(Reply::Error(text)) = replies.iter().find(|reply| matches!(reply, Reply::Error(_))) {
            return Err(faults::of_reply(address, text));
        }
        let Some(Reply::Bytes(info)) = replies.last() else {
            return Err(Trouble::Final(faults::odd_reply(address)));
        };
        let info = String::from_utf8_lossy(info);
        let version = info_field(&info, "redis_version").unwrap_or_default();
        let major = version.split('.').next().and_then(|major| major.parse::<u64>().ok());
        let run = info_field(&info, "run_id").filter(|run| is_word(run));
        let (Some(major), Some(run)) = (major, run) else {
            return Err(Trouble::Final(faults::odd(address, "no version or no run id")));
        };
        if major < MIN_VERSION {
            return Err(faults::too_old(address, version));
        }
        if info_field(&info, "role").is_some_and(|role| role != "master") {
            return Err(faults::replica(address));
        }
        run.clone_into(&mut self.run);
        self.time = replies
            .iter()
            .rev()
            .nth(1)
            .and_then(read_time)
            .ok_or_else(|| Trouble::Final(faults::odd(address, "no time")))?;
        Ok(())
    }

    /// Sends a request and reads its replies. After an error the connection is useless.
    pub(super) fn exchange(&mut self, request: &Request, deadline: Instant) -> Result<Vec<Reply>, Broken> {
        if let Err(error) = self.socket.send(request.bytes(), deadline) {
            return Err(Broken { may_have_arrived: !self.socket.reports_unsent(), error });
        }
        let (socket, replies) = (&mut self.socket, &mut self.replies);
        let mut fill = |buffer: &mut [u8]| socket.receive(buffer, deadline);
        let mut list = Vec::with_capacity(request.commands());
        for _ in 0..request.commands() {
            match replies.read(&mut fill) {
                Ok(reply) => list.push(reply),
                Err(error) => return Err(Broken { may_have_arrived: true, error }),
            }
        }
        if !replies.is_empty() {
            let error = io::Error::new(io::ErrorKind::InvalidData, "the server sent more than was asked for");
            return Err(Broken { may_have_arrived: true, error });
        }
        Ok(list)
    }
}

/// The value of a line of `INFO`.
pub(super) fn info_field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}

/// The time of a reply to `TIME`: seconds and microseconds.
pub(super) fn read_time(reply: &Reply) -> Option<Timestamp> {
    let Reply::List(parts) = reply else { return None };
    let [Reply::Bytes(seconds), Reply::Bytes(micros)] = &parts[..] else { return None };
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<i64>().ok();
    Some(Timestamp::from_millis(number(seconds)?.checked_mul(1000)?.checked_add(number(micros)? / 1000)?))
}

/// Whether a run id can be part of the board's state, which is separated by spaces.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Asks the sentinels for the primary of a service, one after the other.
fn find_primary(
    address: &Address,
    sentinels: &[Host],
    service: &str,
    tls: bool,
    deadline: Instant,
) -> Result<Host, Trouble> {
    let mut last = None;
    for (number, sentinel) in sentinels.iter().enumerate() {
        // One sentinel that does not answer leaves time for the others.
        let now = Instant::now();
        let share =
            deadline.saturating_duration_since(now) / u32::try_from(sentinels.len() - number).unwrap_or(1);
        match ask_sentinel(address, sentinel, service, tls, now + share) {
            Ok(host) => return Ok(host),
            Err(trouble) => last = Some(trouble),
        }
    }
    Err(last.unwrap_or_else(|| Trouble::Final(faults::odd_reply(address))))
}

fn ask_sentinel(
    address: &Address,
    sentinel: &Host,
    service: &str,
    tls: bool,
    deadline: Instant,
) -> Result<Host, Trouble> {
    let failed = |error| faults::of_connection(address, error);
    let socket = Socket::tcp(sentinel, tls, address.certificates.as_deref(), deadline).map_err(failed)?;
    let replies = ReplyReader::default();
    let mut connection =
        Connection { socket, replies, run: String::new(), slot: 0, outcome: None, time: Timestamp::EPOCH };
    let mut request = Request::default();
    request.command(&[b"SENTINEL", b"get-master-addr-by-name", service.as_bytes()]);
    let replies = connection.exchange(&request, deadline).map_err(|broken| failed(broken.error))?;
    match replies.first() {
        Some(Reply::List(parts)) => match &parts[..] {
            [Reply::Bytes(name), Reply::Bytes(port)] => {
                let port = std::str::from_utf8(port).ok().and_then(|port| port.parse().ok());
                let name = String::from_utf8(name.clone()).ok();
                match (name, port) {
                    (Some(name), Some(port)) => Ok(Host { name, port }),
                    _ => Err(Trouble::Final(faults::odd_reply(address))),
                }
            }
            _ => Err(Trouble::Final(faults::odd_reply(address))),
        },
        Some(Reply::Nil) => Err(Trouble::Final(faults::odd(address, "no server of this service"))),
        Some(Reply::Error(text)) => Err(faults::of_reply(address, text)),
        _ => Err(Trouble::Final(faults::odd_reply(address))),
    }
}
