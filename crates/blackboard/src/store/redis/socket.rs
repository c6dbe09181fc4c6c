//! A socket whose every wait ends at a deadline: TCP, with or without TLS, or a Unix socket.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc;
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
        Ok(Socket::Plain(TimedStream { stream, deadline }))
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
}

enum Stream {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl Read for TimedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = Some(time_left(self.deadline)?);
        let read = match &mut self.stream {
            Stream::Tcp(stream) => stream.set_read_timeout(left).and_then(|()| stream.read(buffer)),
            #[cfg(unix)]
            Stream::Unix(stream) => stream.set_read_timeout(left).and_then(|()| stream.read(buffer)),
        };
        read.map_err(timed_out)
    }
}

impl Write for TimedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = Some(time_left(self.deadline)?);
        let written = match &mut self.stream {
            Stream::Tcp(stream) => stream.set_write_timeout(left).and_then(|()| stream.write(bytes)),
            #[cfg(unix)]
            Stream::Unix(stream) => stream.set_write_timeout(left).and_then(|()| stream.write(bytes)),
        };
        written.map_err(timed_out)
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
    let mut last = io::Error::new(ErrorKind::NotFound, "the host has no address");
    for address in addresses(host, deadline)? {
        match TcpStream::connect_timeout(&address, time_left(deadline)?) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(TimedStream { stream: Stream::Tcp(stream), deadline });
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The addresses of a host. The resolver of the system has its own limits, which may be longer than ours, so it runs in
/// another thread.
fn addresses(host: &Host, deadline: Instant) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.name.parse() {
        return Ok(vec![SocketAddr::new(address, host.port)]);
    }
    let (sender, receiver) = mpsc::channel();
    let (name, port) = (host.name.clone(), host.port);
    thread::Builder::new().name("resolver".to_owned()).spawn(move || {
        let found = (name.as_str(), port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
        // The caller may have given up.
        let _ = sender.send(found);
    })?;
    let found = receiver.recv_timeout(time_left(deadline)?).unwrap_or_else(|_| Err(no_time_left()));
    found.map_err(|error| match error.kind() {
        ErrorKind::TimedOut => error,
        // The resolver itself is not reached.
        _ if error.to_string().contains("Temporary failure") => error,
        _ => io::Error::new(ErrorKind::NotFound, error),
    })
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

#[cfg(all(unix, not(target_os = "linux")))]
fn connect_unix(path: &Path, _deadline: Instant) -> io::Result<UnixStream> {
    UnixStream::connect(path)
}
