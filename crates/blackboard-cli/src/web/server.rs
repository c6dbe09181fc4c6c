//! The listening socket, connections and their limits, shutdown.
//!
//! A connection that does not send its request within ten seconds is closed, and so is one that does not read the
//! response. The number of connections is limited. When all are in use, a new one replaces the oldest that has not sent
//! a request with the token: every user of the machine can connect, and idle connections must not block the dashboard.
//! If there is none, the new connection is closed.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::OsStr;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener as StdListener};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as TaskContext, Poll, ready};
use std::time::Duration;

use blackboard::store::Sidecars;
use blackboard::{Code, Fault, Refusal, Result};
use hyper::StatusCode;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Sleep, sleep, timeout};

use super::access::{Access, Secret};
use super::background::{Running, ServerRegistration};
use super::clients::Streams;
use super::feed::Feed;
use super::route::{self, Shared};
use crate::context::warn;
use crate::hints::{self, GivenOptions};
use crate::open::ResolvedBoard;
use crate::quota::QuotaReader;

/// How long a request may take to arrive, and how long a connection may be idle between requests.
const TO_ASK: Duration = Duration::from_secs(10);

/// How long a client may leave sent data unread.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum number of connections.
const CONNECTIONS: usize = 4096;

/// The number of file descriptors reserved for everything else.
const OTHER_FILES: usize = 64;

/// The backlog of connections that were not accepted yet.
const BACKLOG: u32 = 1024;

/// The maximum number of headers of a request, and their maximum size in bytes.
const HEADERS: usize = 64;
const HEAD_BYTES: usize = 16 * 1024;

/// The number of threads that read the board: as many as it keeps connections.
const THREADS: usize = 4;

/// How often the server checks that it is still the registered one.
const LOOK: Duration = Duration::from_secs(1);

/// How long a shutdown waits for open connections.
const TO_LEAVE: Duration = Duration::from_secs(2);

/// How long a replaced connection may take to close.
const TO_CLOSE: Duration = Duration::from_secs(1);

/// How many of the next ports are tried to suggest a free one.
const NEAR: u16 = 50;

/// The options of a server.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The address, which is an address of this machine.
    pub host: IpAddr,
    /// The port; 0 lets the system choose one.
    pub port: u16,
    /// Whether to refuse to run if other processes could not find the server, because it runs in the background.
    pub to_be_found: bool,
    /// Whether requests need the token.
    pub token: bool,
}

/// What the page shows besides the board.
struct Page {
    program: String,
    quota: Option<Arc<QuotaReader>>,
}

/// A server that listens but does not answer yet.
pub struct Listening {
    runtime: Runtime,
    listener: TcpListener,
    running: Running,
    access: Access,
    board: ResolvedBoard,
    claim: ServerRegistration,
    /// Completes when this process is asked to stop.
    asked_to_end: AskedToEnd,
    /// The beginning of a command for this board.
    program: String,
    /// The token quota, if it is configured.
    quota: Option<QuotaReader>,
}

impl Listening {
    /// Binds the port. Refuses if the board has another server, or if the port is in use. If other processes could not
    /// find the server, it refuses or warns. `is_named` means that commands for this board need `--db`.
    pub fn bind(board: ResolvedBoard, is_named: bool, options: Options) -> Result<Listening> {
        let mut claim = ServerRegistration::take(board.engine.sidecars())?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(THREADS)
            .build()
            .map_err(|error| Fault::new(Code::Io, "the server could not be started").because(error))?;
        let wanted = SocketAddr::new(options.host, options.port);
        let listener =
            runtime.block_on(async { listen(wanted) }).map_err(|error| not_bound(wanted, error))?;
        let address = listener.local_addr().map_err(|error| {
            Fault::new(Code::Io, "cannot determine the port of the server").because(error)
        })?;
        let token = options.token.then(Secret::random).transpose()?;
        let access = Access::new(address.port(), token.clone(), is_named)?;
        let running = Running::here(address, token);
        // Before the server can be found: a process that finds it may stop it at once.
        let asked_to_end = runtime.block_on(async { signals::asked_to_end() })?;
        claim.publish(&running);
        if let Some(problem) = claim.take_problem() {
            if options.to_be_found {
                return Err(problem);
            }
            warn(&format!("serve --status and --stop will not find this server: {problem}"));
        }
        // The page is not in the directory that a relative path was for.
        let name = is_named.then(|| board.engine.name());
        let given = GivenOptions { db: name.as_deref().map(OsStr::new), session: None };
        let program = given.program().into_owned();
        let quota = None;
        Ok(Listening { runtime, listener, running, access, board, claim, asked_to_end, program, quota })
    }

    /// The same server, which also shows this quota.
    #[must_use]
    pub fn with_quota(self, quota: Option<QuotaReader>) -> Listening {
        Listening { quota, ..self }
    }

    /// The server's registration data.
    pub fn running(&self) -> Running {
        self.running.clone()
    }

    /// Serves until this process is asked to stop.
    pub fn run(self) -> Result<()> {
        let Listening { runtime, listener, running, access, board, mut claim, asked_to_end, program, quota } =
            self;
        let page = Page { program, quota: quota.map(Arc::new) };
        let engine = Arc::clone(&board.engine);
        let (feed, thread) = Feed::start(board)?;
        runtime.block_on(async {
            tokio::select! {
                () = serve(listener, Arc::clone(&feed), access, asked_to_end, page) => {}
                () = watch_registration(&mut claim, engine.sidecars(), &running) => {}
            }
        });
        feed.stop();
        // Requests that are still reading the board no longer have a client.
        runtime.shutdown_background();
        let _ = thread.join();
        drop(claim);
        Ok(())
    }
}

/// Returns when another server is registered for the board. If the registration file is missing, because the directory
/// was replaced or created only now, writes it again.
async fn watch_registration(claim: &mut ServerRegistration, board: &dyn Sidecars, running: &Running) {
    loop {
        sleep(LOOK).await;
        if claim.is_found() {
            continue;
        }
        match ServerRegistration::take(board) {
            Ok(mut new_claim) => {
                new_claim.publish(running);
                *claim = new_claim;
            }
            Err(_) => return,
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // On other systems, this option would let two servers use the same port.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn not_bound(wanted: SocketAddr, error: io::Error) -> blackboard::Error {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            let hint = match free_port_near(wanted) {
                Some(port) => {
                    hints::command(format!("port {port} is free: "), format!("serve --port {port}"))
                }
                None => hints::command("let the system choose one: ", "serve --port 0"),
            };
            let message = format!("port {} is in use", wanted.port());
            Refusal::new(Code::PortTaken, message).hint(hint).detail("port", wanted.port()).into()
        }
        io::ErrorKind::PermissionDenied => {
            let message = format!("this user may not listen on port {}", wanted.port());
            Refusal::new(Code::PortTaken, message).hint("choose one above 1023 with --port").into()
        }
        _ => Fault::new(Code::Io, format!("cannot listen on {wanted}")).because(error).into(),
    }
}

/// A port that is free at this moment.
fn free_port_near(taken: SocketAddr) -> Option<u16> {
    let near = (1..=NEAR).filter_map(|step| taken.port().checked_add(step));
    near.into_iter().find(|port| StdListener::bind((taken.ip(), *port)).is_ok())
}

/// Accepts connections until this process is asked to stop.
async fn serve(
    listener: TcpListener,
    feed: Arc<Feed>,
    access: Access,
    mut asked_to_end: AskedToEnd,
    Page { program, quota }: Page,
) {
    let most = CONNECTIONS.min(open_files().saturating_sub(OTHER_FILES)).max(1);
    let places = Arc::new(Semaphore::new(most));
    let streams = Streams::new(most);
    let shared = Arc::new(Shared { feed: Arc::clone(&feed), access, streams, program, quota });
    let newcomers = Arc::new(NewConnections::default());
    let (ending, ended) = watch::channel(false);
    loop {
        tokio::select! {
            () = &mut asked_to_end => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let Some(place) = place_for_another(&places, &newcomers).await else { continue };
                    let talk = talk(stream, Arc::clone(&shared), ended.clone(), newcomers.add());
                    tokio::spawn(async move {
                        talk.await;
                        drop(place);
                    });
                }
                // The client is gone, or no file descriptor is left. Open connections continue.
                Err(_) => sleep(Duration::from_millis(20)).await,
            },
        }
    }
    drop(listener);
    let _ = ending.send(true);
    feed.stop();
    let all = u32::try_from(most).unwrap_or(u32::MAX);
    let _ = timeout(TO_LEAVE, places.acquire_many(all)).await;
}

/// A permit for one more connection. If necessary, the oldest unauthenticated one is closed for it.
async fn place_for_another(
    places: &Arc<Semaphore>,
    newcomers: &NewConnections,
) -> Option<OwnedSemaphorePermit> {
    if let Ok(place) = Arc::clone(places).try_acquire_owned() {
        return Some(place);
    }
    if !newcomers.close_oldest() {
        return None;
    }
    timeout(TO_CLOSE, Arc::clone(places).acquire_owned()).await.ok()?.ok()
}

/// The connections that have not sent an admitted request yet, by age.
#[derive(Default)]
struct NewConnections(Mutex<Newcomers>);

#[derive(Default)]
struct Newcomers {
    next: u64,
    by_number: BTreeMap<u64, Arc<Notify>>,
}

impl NewConnections {
    fn add(self: &Arc<Self>) -> NewConnection {
        let close = Arc::new(Notify::new());
        let mut newcomers = self.lock();
        let number = newcomers.next;
        newcomers.next += 1;
        newcomers.by_number.insert(number, Arc::clone(&close));
        drop(newcomers);
        NewConnection { all: Arc::clone(self), number, close }
    }

    /// Asks the oldest to close; `false` if there is none.
    fn close_oldest(&self) -> bool {
        let oldest = self.lock().by_number.pop_first();
        oldest.is_some_and(|(_, close)| {
            close.notify_one();
            true
        })
    }

    fn lock(&self) -> MutexGuard<'_, Newcomers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of them, until this value is dropped.
struct NewConnection {
    all: Arc<NewConnections>,
    number: u64,
    close: Arc<Notify>,
}

impl NewConnection {
    /// Records that the server answered a request: another connection no longer replaces this one.
    fn admit(&self) {
        self.all.lock().by_number.remove(&self.number);
    }
}

impl Drop for NewConnection {
    fn drop(&mut self) {
        self.admit();
    }
}

/// Serves one client.
async fn talk(
    stream: TcpStream,
    shared: Arc<Shared>,
    mut ended: watch::Receiver<bool>,
    newcomer: NewConnection,
) {
    let close = Arc::clone(&newcomer.close);
    let newcomer = Arc::new(newcomer);
    // Events are small and should arrive at once.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let (shared, newcomer) = (Arc::clone(&shared), Arc::clone(&newcomer));
        async move {
            let reply = route::answer(request.into_parts().0, shared).await;
            if !matches!(reply.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
                newcomer.admit();
            }
            Ok::<_, Infallible>(reply)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(TO_ASK)
        .max_headers(HEADERS)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(WriteTimeout { stream, waiting: None }), service);
    let mut connection = pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => {}
        () = close.notified() => {}
        () = async { drop(ended.wait_for(|ended| *ended).await) } => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// The maximum number of open files, raised to what the system allows.
#[cfg(unix)]
fn open_files() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = (CONNECTIONS + OTHER_FILES) as u64;
    let wanted = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if current.is_some_and(|current| current < wanted) {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
    let allowed = getrlimit(Resource::Nofile).current;
    allowed.map_or(usize::MAX, |allowed| usize::try_from(allowed).unwrap_or(usize::MAX))
}

#[cfg(not(unix))]
fn open_files() -> usize {
    usize::MAX
}

/// A connection that fails if the client reads nothing for too long.
struct WriteTimeout {
    stream: TcpStream,
    /// Runs while the client reads nothing.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl WriteTimeout {
    fn poll_or_timeout<T>(
        &mut self,
        context: &mut TaskContext<'_>,
        sent: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if sent.is_ready() {
            self.waiting = None;
            return sent;
        }
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(WRITE_TIMEOUT)));
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for WriteTimeout {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut TaskContext<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for WriteTimeout {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut TaskContext<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let sent = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.poll_or_timeout(context, sent)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut TaskContext<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let sent = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.poll_or_timeout(context, sent)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Completes when this process is asked to stop.
type AskedToEnd = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The signals that ask this process to stop.
mod signals {
    use blackboard::{Code, Fault, Result};

    use super::AskedToEnd;

    /// Catches the signals. They are caught when this returns, not only when the future is polled. A hangup that is
    /// already ignored, for example by `nohup`, stays ignored.
    #[cfg(unix)]
    pub(super) fn asked_to_end() -> Result<AskedToEnd> {
        use tokio::signal::unix::{SignalKind, signal};
        let fault = |error| Fault::new(Code::Io, "signals cannot be caught").because(error);
        let mut terminate = signal(SignalKind::terminate()).map_err(fault)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(fault)?;
        let hang_up = (!crate::child::ignores_hangup()).then(|| signal(SignalKind::hangup()));
        let mut hang_up = hang_up.transpose().map_err(fault)?;
        Ok(Box::pin(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                Some(()) = async { hang_up.as_mut()?.recv().await } => {}
            }
        }))
    }

    #[cfg(windows)]
    pub(super) fn asked_to_end() -> Result<AskedToEnd> {
        let mut ctrl_c = tokio::signal::windows::ctrl_c()
            .map_err(|error| Fault::new(Code::Io, "signals cannot be caught").because(error))?;
        Ok(Box::pin(async move { drop(ctrl_c.recv().await) }))
    }

    #[cfg(not(any(unix, windows)))]
    pub(super) fn asked_to_end() -> Result<AskedToEnd> {
        let _ = |error: std::io::Error| Fault::new(Code::Io, "signals cannot be caught").because(error);
        Ok(Box::pin(std::future::pending()))
    }
}
