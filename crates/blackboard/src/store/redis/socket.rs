//! A socket whose every wait ends at a deadline: TCP, with or without TLS, or a Unix socket.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::address::Host;
use super::tls;

/// A connected socket.
pub(super) enum Socket {
    Plain(TimedStream),
    Encrypted(Box<tls::Stream>),
}

impl Socket {
    /// Connects to a host. `certificates` is the file of the certificates to trust; the system's if there is none.
    pub(super) fn tcp(
        host: &Host,
        encrypted: bool,
        certificates: Option<&Path>,
        deadline: Instant,
    ) -> io::Result<Socket> {
        let stream = connect_tcp(host, deadline)?;
        if encrypted {
            Ok(Socket::Encrypted(Box::new(tls::connect(stream, &host.name, certificates)?)))
        } else {
            Ok(Socket::Plain(stream))
        }
    }

    /// Whether a host expects TLS.
    pub(super) fn expects_tls(host: &Host, deadline: Instant) -> bool {
        connect_tcp(host, deadline).is_ok_and(|stream| tls::is_used(stream, &host.name))
    }

    /// Whether a host answers a command without TLS.
    pub(super) fn answers_without_tls(host: &Host, deadline: Instant) -> bool {
        let mut first = [0];
        let asked = connect_tcp(host, deadline).and_then(|mut stream| {
            stream.write_all(b"*1\r\n$4\r\nPING\r\n")?;
            stream.read_exact(&mut first)
        });
        asked.is_ok() && matches!(first, [b'+' | b'-'])
    }

    /// Connects to the Unix socket at a path.
    #[cfg(unix)]
    pub(super) fn unix(path: &Path, deadline: Instant) -> io::Result<Socket> {
        let stream = Stream::Unix(connect_unix(path, deadline)?);
        Ok(Socket::Plain(TimedStream::new(stream, deadline)))
    }

    /// Connects to the Unix socket at a path.
    #[cfg(not(unix))]
    pub(super) fn unix(_path: &Path, _deadline: Instant) -> io::Result<Socket> {
        Err(io::Error::new(ErrorKind::Unsupported, "this system has no Unix sockets"))
    }

    /// Sends all bytes. An error means that the last byte was not sent, except over TLS, where it may have been.
    pub(super) fn send(&mut self, bytes: &[u8], deadline: Instant) -> io::Result<()> {
        match self {
            Socket::Plain(stream) => {
                stream.deadline = deadline;
                stream.write_all(bytes)
            }
            Socket::Encrypted(stream) => {
                stream.sock.deadline = deadline;
                stream.write_all(bytes)?;
                stream.flush()
            }
        }
    }

    /// Whether an error of [`Socket::send`] proves that the last byte was not sent.
    pub(super) fn reports_unsent(&self) -> bool {
        matches!(self, Socket::Plain(_))
    }

    /// Whether there is nothing to read, and the other side has not closed it. Does not wait.
    #[cfg(unix)]
    pub(super) fn is_quiet(&self) -> bool {
        use rustix::io::Errno;
        use rustix::net::{RecvFlags, recv};
        let stream = match self {
            Socket::Plain(stream) => &stream.stream,
            Socket::Encrypted(stream) => &stream.sock.stream,
        };
        let (mut byte, flags) = ([0], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        let received = match stream {
            Stream::Tcp(stream) => recv(stream, &mut byte, flags).map(drop),
            Stream::Unix(stream) => recv(stream, &mut byte, flags).map(drop),
        };
        received == Err(Errno::AGAIN)
    }

    /// Whether there is nothing to read, which this system cannot tell.
    #[cfg(not(unix))]
    pub(super) fn is_quiet(&self) -> bool {
        false
    }

    /// Reads the next bytes; none at the end.
    pub(super) fn receive(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
        match self {
            Socket::Plain(stream) => {
                stream.deadline = deadline;
                stream.read(buffer)
            }
            Socket::Encrypted(stream) => {
                stream.sock.deadline = deadline;
                stream.read(buffer)
            }
        }
    }
}

/// A stream that waits until its deadline at most, whatever arrives meanwhile.
pub(super) struct TimedStream {
    stream: Stream,
    pub(super) deadline: Instant,
    /// How long the system waits in a read and in a write, if that was set.
    read_limit: Option<Duration>,
    write_limit: Option<Duration>,
}

impl TimedStream {
    fn new(stream: Stream, deadline: Instant) -> TimedStream {
        TimedStream { stream, deadline, read_limit: None, write_limit: None }
    }
}

/// The limit to set for a wait that ends at a deadline; `None` if the one that is set is short enough. Setting it is a
/// system call, so it is shorter than it could be, and suffices for later waits, too. A wait that ends too early is
/// repeated.
fn limit_to_set(set: Option<Duration>, deadline: Instant) -> io::Result<Option<Duration>> {
    const EXACT: Duration = Duration::from_millis(100);
    let left = time_left(deadline)?;
    if set.is_some_and(|set| set <= left) {
        return Ok(None);
    }
    Ok(Some(if left > EXACT { left / 2 } else { left }))
}

/// Whether a wait has ended at the limit that is set, before its deadline.
fn is_early(error: &io::Error, deadline: Instant) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) && time_left(deadline).is_ok()
}

enum Stream {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl Read for TimedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(limit) = limit_to_set(self.read_limit, self.deadline)? {
                match &self.stream {
                    Stream::Tcp(stream) => stream.set_read_timeout(Some(limit))?,
                    #[cfg(unix)]
                    Stream::Unix(stream) => stream.set_read_timeout(Some(limit))?,
                }
                self.read_limit = Some(limit);
            }
            let read = match &mut self.stream {
                Stream::Tcp(stream) => stream.read(buffer),
                #[cfg(unix)]
                Stream::Unix(stream) => stream.read(buffer),
            };
            match read {
                Err(error) if is_early(&error, self.deadline) => self.read_limit = None,
                read => return read.map_err(timed_out),
            }
        }
    }
}

impl Write for TimedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            if let Some(limit) = limit_to_set(self.write_limit, self.deadline)? {
                match &self.stream {
                    Stream::Tcp(stream) => stream.set_write_timeout(Some(limit))?,
                    #[cfg(unix)]
                    Stream::Unix(stream) => stream.set_write_timeout(Some(limit))?,
                }
                self.write_limit = Some(limit);
            }
            let written = match &mut self.stream {
                Stream::Tcp(stream) => stream.write(bytes),
                #[cfg(unix)]
                Stream::Unix(stream) => stream.write(bytes),
            };
            match written {
                Err(error) if is_early(&error, self.deadline) => self.write_limit = None,
                written => return written.map_err(timed_out),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A socket reports a timeout in one of two ways.
fn timed_out(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => no_time_left(),
        _ => error,
    }
}

fn no_time_left() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "the server did not answer in time")
}

fn time_left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(no_time_left()) } else { Ok(left) }
}

fn connect_tcp(host: &Host, deadline: Instant) -> io::Result<TimedStream> {
    let addresses = in_order(host, addresses(host, deadline)?);
    let (stream, address) = connect_to_one(&addresses, deadline)?;
    if addresses.len() > 1 {
        answered().insert((host.name.clone(), host.port), address);
    }
    Ok(TimedStream::new(Stream::Tcp(stream), deadline))
}

/// The addresses of a host, the one that has answered before first.
fn in_order(host: &Host, mut addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let answered = answered().get(&(host.name.clone(), host.port)).copied();
    addresses.sort_by_key(|address| Some(*address) != answered);
    addresses
}

/// Connects to the first of these addresses that answers. One that does not leaves time for the others.
fn connect_to_one(addresses: &[SocketAddr], deadline: Instant) -> io::Result<(TcpStream, SocketAddr)> {
    let mut last = io::Error::new(ErrorKind::NotFound, "the host has no address");
    for (number, address) in addresses.iter().enumerate() {
        let others = u32::try_from(addresses.len() - number).unwrap_or(u32::MAX);
        let share = (time_left(deadline)? / others).max(Duration::from_millis(1));
        match TcpStream::connect_timeout(address, share) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok((stream, *address));
            }
            Err(error) => last = timed_out(error),
        }
    }
    Err(last)
}

/// The addresses that have answered, of hosts with several.
fn answered() -> MutexGuard<'static, HashMap<(String, u16), SocketAddr>> {
    static ANSWERED: LazyLock<Mutex<HashMap<(String, u16), SocketAddr>>> = LazyLock::new(Mutex::default);
    ANSWERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The addresses of a host. The resolver of the system has its own limits, which may be longer than ours, so it runs in
/// another thread.
fn addresses(host: &Host, deadline: Instant) -> io::Result<Vec<SocketAddr>> {
    static PENDING: LazyLock<Resolutions> = LazyLock::new(Resolutions::default);
    if let Ok(address) = host.name.parse() {
        return Ok(vec![SocketAddr::new(address, host.port)]);
    }
    let resolve = |name: &str, port| (name, port).to_socket_addrs().map(Iterator::collect);
    PENDING.resolve(host, deadline, resolve)
}

/// Resolutions that have not ended. A caller that gives up leaves its thread behind, so there is one for each host at
/// most: later callers wait for the same.
#[derive(Default)]
struct Resolutions {
    pending: Mutex<HashMap<(String, u16), Arc<Resolution>>>,
}

/// A resolution, and its answer when it has one: addresses, or the text of an error.
#[derive(Default)]
struct Resolution {
    answer: Mutex<Option<Result<Vec<SocketAddr>, String>>>,
    ended: Condvar,
}

impl Resolutions {
    fn resolve(
        &'static self,
        host: &Host,
        deadline: Instant,
        resolve: impl FnOnce(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + 'static,
    ) -> io::Result<Vec<SocketAddr>> {
        let key = (host.name.clone(), host.port);
        let mut pending = self.pending();
        let resolution = if let Some(resolution) = pending.get(&key) {
            Arc::clone(resolution)
        } else {
            let resolution = Arc::new(Resolution::default());
            let (of_thread, key) = (Arc::clone(&resolution), key.clone());
            thread::Builder::new().name("resolver".to_owned()).spawn(move || {
                let answer = resolve(&key.0, key.1).map_err(|error| error.to_string());
                self.pending().remove(&key);
                *of_thread.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
                of_thread.ended.notify_all();
            })?;
            pending.insert((host.name.clone(), host.port), Arc::clone(&resolution));
            resolution
        };
        drop(pending);
        resolution.wait(deadline)
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<(String, u16), Arc<Resolution>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Resolution {
    fn wait(&self, deadline: Instant) -> io::Result<Vec<SocketAddr>> {
        let answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.ended.wait_timeout_while(answer, time_left(deadline)?, |answer| answer.is_none());
        match &*waited.unwrap_or_else(PoisonError::into_inner).0 {
            Some(Ok(addresses)) => Ok(addresses.clone()),
            // The standard library does not tell an unknown host from a resolver that does not answer.
            Some(Err(text)) => Err(io::Error::new(ErrorKind::NotFound, text.clone())),
            None => Err(no_time_left()),
        }
    }
}

/// Connects to a Unix socket. The standard library has no limit for this: it waits while the queue of a server that
/// accepts no connection is full.
#[cfg(target_os = "linux")]
fn connect_unix(path: &Path, deadline: Instant) -> io::Result<UnixStream> {
    use rustix::io::Errno;
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
    const PAUSE: Duration = Duration::from_millis(5);
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let address = SocketAddrUnix::new(path)?;
    loop {
        match connect(&socket, &address) {
            Ok(()) => break,
            Err(Errno::AGAIN) => thread::sleep(time_left(deadline)?.min(PAUSE)),
            Err(error) => return Err(error.into()),
        }
    }
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Connects to a Unix socket, in another thread because the standard library has no limit for this.
#[cfg(all(unix, not(target_os = "linux")))]
fn connect_unix(path: &Path, deadline: Instant) -> io::Result<UnixStream> {
    let (path, (sender, receiver)) = (path.to_owned(), std::sync::mpsc::channel());
    thread::Builder::new().name("connects".to_owned()).spawn(move || {
        // The caller may have given up.
        let _ = sender.send(UnixStream::connect(path));
    })?;
    receiver.recv_timeout(time_left(deadline)?).unwrap_or_else(|_| Err(no_time_left()))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rustix::net::{AddressFamily, SocketAddrV4, SocketType, bind, getsockname, listen, socket};

    use super::*;

    /// An address that does not answer, because its queue of connections is full, and what keeps it so.
    fn silent_address() -> (SocketAddr, Vec<TcpStream>, rustix::fd::OwnedFd) {
        let listener = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&listener, &SocketAddrV4::new([127, 0, 0, 1].into(), 0)).unwrap();
        listen(&listener, 0).unwrap();
        let address: SocketAddrV4 = getsockname(&listener).unwrap().try_into().unwrap();
        let mut waiting = Vec::new();
        while let Ok(stream) = TcpStream::connect_timeout(&address.into(), testkit::patience() / 30) {
            waiting.push(stream);
            assert!(waiting.len() < 100, "a queue that is never full");
        }
        (address.into(), waiting, listener)
    }

    #[test]
    fn address_that_does_not_answer_leaves_time_for_the_next_one() {
        testkit::limit_test();
        let (silent, _waiting, _listener) = silent_address();
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let server = listener.local_addr().unwrap();
        let limit = testkit::patience() / 10;
        let (_, address) = connect_to_one(&[silent, server], Instant::now() + limit).unwrap();
        assert_eq!(address, server);
        let error = connect_to_one(&[silent], Instant::now() + limit / 30).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        assert_eq!(connect_to_one(&[], Instant::now() + limit).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn limit_of_a_wait_is_set_only_if_it_gets_shorter() {
        testkit::limit_test();
        let to_set = |set: Option<u64>, left: Duration| {
            limit_to_set(set.map(Duration::from_millis), Instant::now() + left).unwrap()
        };
        let minute = Duration::from_mins(1);
        assert!(to_set(None, minute).is_some_and(|limit| limit <= minute / 2));
        assert_eq!(to_set(Some(20_000), minute), None);
        assert!(to_set(Some(90_000), minute).is_some());
        assert!(limit_to_set(None, Instant::now()).is_err());
    }

    #[test]
    fn read_ends_at_its_deadline_and_not_at_the_limit_that_is_set() {
        testkit::limit_test();
        let (one, _other) = UnixStream::pair().unwrap();
        let began = Instant::now();
        let mut stream = TimedStream::new(Stream::Unix(one), began + Duration::from_millis(300));
        for limit in [300, 700].map(Duration::from_millis) {
            stream.deadline = began + limit;
            assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::TimedOut);
            assert!(began.elapsed() >= limit, "{:?}", began.elapsed());
        }
    }

    #[test]
    fn address_that_has_answered_is_tried_first() {
        testkit::limit_test();
        let host = Host { name: "localhost".to_owned(), port: 1 };
        let found = addresses(&host, Instant::now() + testkit::patience()).unwrap();
        let (listener, name) = (TcpListener::bind(("127.0.0.1", 0)).unwrap(), "two-addresses.invalid");
        let server = listener.local_addr().unwrap();
        let host = Host { name: name.to_owned(), port: server.port() };
        assert_eq!(in_order(&host, vec![found[0], server]), [found[0], server]);
        answered().insert((host.name.clone(), host.port), server);
        assert_eq!(in_order(&host, vec![found[0], server]), [server, found[0]]);
    }

    #[test]
    fn callers_that_gave_up_leave_one_resolution_of_a_host_behind() {
        static PENDING: LazyLock<Resolutions> = LazyLock::new(Resolutions::default);
        testkit::limit_test();
        let (started, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new((Mutex::new(false), Condvar::new())));
        let host = Host { name: "slow".to_owned(), port: 7 };
        let address: SocketAddr = ([127, 0, 0, 1], 7).into();
        let resolve = |limit: Duration| {
            let (started, gate) = (Arc::clone(&started), Arc::clone(&gate));
            PENDING.resolve(&host, Instant::now() + limit, move |_, _| {
                started.fetch_add(1, Ordering::Relaxed);
                let (is_open, opened) = &*gate;
                drop(opened.wait_while(is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
                Ok(vec![address])
            })
        };
        for _ in 0..20 {
            assert_eq!(resolve(Duration::from_millis(1)).unwrap_err().kind(), ErrorKind::TimedOut);
        }
        *gate.0.lock().unwrap() = true;
        gate.1.notify_all();
        // The last of these callers may begin a second one.
        assert_eq!(resolve(testkit::patience()).unwrap(), [address]);
        assert!(started.load(Ordering::Relaxed) <= 2, "{started:?}");
    }
}
