//! A proxy in front of a Redis server. Its connections break where a test wants it.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::redis::RedisServer;
use crate::scale::Chance;

/// The most bytes of one request, of one reply, and of a connection that can be replayed.
const LARGEST: usize = 1 << 20;

/// How long a server may be silent on a connection.
const SILENCE: Duration = Duration::from_secs(20);

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Only this many bytes of it arrive, then both sides are closed.
    CutRequest(usize),
    /// It arrives, but only this many bytes of the reply.
    CutReply(usize),
    /// It arrives, and then nothing more on this connection, which stays open.
    SwallowReply,
    /// It does not arrive, and the connection stays open.
    SwallowRequest,
    /// It arrives, and no connection works from then on.
    CutReplyAndRefuse,
    /// It arrives later.
    DelayRequest(Duration),
    /// Its reply arrives later.
    DelayReply(Duration),
    /// The client gives up before it arrives, and then it does. The other side is closed.
    DelayRequestPastItsClient,
    /// It arrives when the test says so ([`Proxy::deliver_held`]). Its connection is cut, and no connection works until the
    /// test says so ([`Proxy::accept`]).
    HoldRequest,
    /// The server sees the end of the connection before it.
    HalfCloseBefore,
    /// The server sees the end of the connection after it.
    HalfCloseAfter,
    /// The client sees the end of the connection, and it arrives.
    HalfCloseReply,
    /// All requests of the connection arrive again on another one, before it.
    ReplayBefore,
    /// All requests of the connection arrive again on another one, together with it, and its own connection is cut.
    ReplayInstead,
}

/// Which requests a fault is for, by their content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Those that change an entry.
    Commit,
    /// Those that add an event of this type.
    Event(&'static str),
    /// Those that wait for events.
    Listen,
}

impl Target {
    fn matches(self, request: &[u8]) -> bool {
        let parts: &[&[u8]] = match self {
            Target::Commit => &[b"entry_written", b"entry_deleted"],
            Target::Event(name) => &[name.as_bytes()],
            Target::Listen => &[b"XREAD"],
        };
        parts.iter().any(|part| request.windows(part.len()).any(|window| window == *part))
    }
}

#[derive(Default)]
struct Plan {
    next: Option<(Target, Fault)>,
    /// What happens to every commit.
    every: Option<Fault>,
    /// Random faults of commits, one of so many.
    random: Option<(Chance, usize)>,
    faults: usize,
    refuses: bool,
    commit: Vec<u8>,
    held: Vec<u8>,
    connections: Vec<UnixStream>,
}

impl Plan {
    /// The fault of a request.
    fn fault_of(&mut self, request: &[u8]) -> Option<Fault> {
        let is_commit = Target::Commit.matches(request);
        if is_commit {
            self.commit = request.to_vec();
        }
        let planned = self.next.take_if(|(target, _)| target.matches(request)).map(|(_, fault)| fault);
        let fault = planned.or(self.every.filter(|_| is_commit)).or_else(|| {
            let (chance, of) = self.random.as_mut().filter(|_| is_commit)?;
            (chance.below(*of) == 0).then(|| FAULTS[chance.below(FAULTS.len())])
        });
        self.faults += usize::from(fault.is_some());
        fault
    }
}

/// The faults that happen at random.
const FAULTS: [Fault; 12] = [
    Fault::CutRequest(0),
    Fault::CutRequest(700),
    Fault::CutReply(0),
    Fault::CutReply(5),
    Fault::SwallowReply,
    Fault::DelayRequest(Duration::from_millis(40)),
    Fault::DelayReply(Duration::from_millis(40)),
    Fault::HalfCloseBefore,
    Fault::HalfCloseAfter,
    Fault::HalfCloseReply,
    Fault::ReplayBefore,
    Fault::ReplayInstead,
];

/// A proxy in front of a server.
pub struct Proxy {
    directory: TempDir,
    socket: PathBuf,
    plan: Arc<Mutex<Plan>>,
}

impl Proxy {
    /// Starts it.
    pub fn before(server: &RedisServer) -> Proxy {
        let (directory, plan) = (tempfile::tempdir().unwrap(), Arc::new(Mutex::new(Plan::default())));
        let listener = UnixListener::bind(directory.path().join("socket")).unwrap();
        let (socket, of_all) = (server.socket(), Arc::clone(&plan));
        let proxy = Proxy { directory, socket: socket.clone(), plan };
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if of_all.lock().unwrap().refuses {
                    continue;
                }
                let Ok(server) = UnixStream::connect(&socket) else { continue };
                of_all.lock().unwrap().connections.push(client.try_clone().unwrap());
                let forwarding = Forwarding::new(client, server, socket.clone(), Arc::clone(&of_all));
                thread::spawn(move || forwarding.run());
            }
        });
        proxy
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap()
    }

    /// The address of a board behind it.
    pub fn url(&self, board: &str) -> String {
        format!("redis+unix://{}/socket?board={board}", self.directory.path().display())
    }

    /// Breaks the next commit.
    pub fn fail_next(&self, fault: Fault) {
        self.fail_next_of(Target::Commit, fault);
    }

    /// Breaks the next request of this kind.
    pub fn fail_next_of(&self, target: Target, fault: Fault) {
        self.plan().next = Some((target, fault));
    }

    /// Breaks every commit from now on.
    pub fn fail_all(&self, fault: Fault) {
        self.plan().every = Some(fault);
    }

    /// Breaks one of so many commits from now on, each in a random way.
    pub fn fail_at_random(&self, seed: usize, one_of: usize) {
        self.plan().random = Some((Chance::new(seed), one_of));
    }

    /// Whether the next fault has happened.
    pub fn has_failed(&self) -> bool {
        self.plan().next.is_none()
    }

    /// How many faults have happened.
    pub fn faults(&self) -> usize {
        self.plan().faults
    }

    /// The last commit, as it was sent.
    pub fn last_commit(&self) -> Vec<u8> {
        self.plan().commit.clone()
    }

    /// Accepts no connection any more.
    pub fn refuse(&self) {
        self.plan().refuses = true;
    }

    /// Accepts connections again.
    pub fn accept(&self) {
        self.plan().refuses = false;
    }

    /// Lets the request arrive that was held back, and returns what the server answers.
    pub fn deliver_held(&self) -> String {
        self.deliver(&self.plan().held.clone())
    }

    /// Lets a request arrive on a connection of its own, and returns what the server answers.
    pub fn deliver(&self, request: &[u8]) -> String {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(SILENCE)).unwrap();
        stream.write_all(request).unwrap();
        let mut reply = [0; 1024];
        let count = stream.read(&mut reply).unwrap();
        String::from_utf8_lossy(&reply[..count]).into_owned()
    }

    /// Cuts all connections that are open.
    pub fn cut_all(&self) {
        for connection in self.plan().connections.drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

/// What happens to the replies of a connection.
struct Replies {
    /// The number of bytes that still arrive.
    left: usize,
    /// Whether none arrives, and the connection stays open.
    swallowed: bool,
    /// How much later the next one arrives.
    delay: Duration,
}

/// One connection.
struct Forwarding {
    client: UnixStream,
    server: UnixStream,
    socket: PathBuf,
    plan: Arc<Mutex<Plan>>,
    replies: Arc<Mutex<Replies>>,
    /// Everything that the client has sent; nothing more if it is too much.
    sent: Vec<u8>,
}

impl Forwarding {
    fn new(client: UnixStream, server: UnixStream, socket: PathBuf, plan: Arc<Mutex<Plan>>) -> Forwarding {
        server.set_read_timeout(Some(SILENCE)).unwrap();
        let replies =
            Arc::new(Mutex::new(Replies { left: usize::MAX, swallowed: false, delay: Duration::ZERO }));
        Forwarding { client, server, socket, plan, replies, sent: Vec::new() }
    }

    /// Forwards requests and replies until the connection ends.
    fn run(mut self) {
        let (to, from) = (self.client.try_clone().unwrap(), self.server.try_clone().unwrap());
        let of_replies = Arc::clone(&self.replies);
        let replies = thread::spawn(move || forward_replies(from, to, &of_replies));
        let mut buffer = vec![0; LARGEST];
        while let Ok(count @ 1..) = self.client.read(&mut buffer) {
            if self.sent.len() + count <= LARGEST {
                self.sent.extend_from_slice(&buffer[..count]);
            }
            if !self.forward(&buffer[..count]) {
                break;
            }
        }
        let _ = self.server.shutdown(Shutdown::Both);
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = replies.join();
    }

    /// Forwards a request, or does what its fault is. Returns whether the connection goes on.
    fn forward(&mut self, request: &[u8]) -> bool {
        let fault = self.plan.lock().unwrap().fault_of(request);
        let set_left = |left| self.replies.lock().unwrap().left = left;
        match fault {
            None => {}
            Some(Fault::CutRequest(bytes)) => {
                let _ = self.server.write_all(&request[..bytes.min(request.len())]);
                return false;
            }
            Some(Fault::CutReply(bytes)) => set_left(bytes),
            Some(Fault::SwallowRequest) => {
                wait_for_end(&self.client);
                return false;
            }
            Some(Fault::SwallowReply) => {
                self.replies.lock().unwrap().swallowed = true;
                let _ = self.server.write_all(request);
                wait_for_end(&self.client);
                return false;
            }
            Some(Fault::CutReplyAndRefuse) => {
                self.plan.lock().unwrap().refuses = true;
                set_left(0);
            }
            Some(Fault::DelayRequest(delay)) => thread::sleep(delay),
            Some(Fault::DelayReply(delay)) => self.replies.lock().unwrap().delay = delay,
            Some(Fault::DelayRequestPastItsClient) => {
                wait_for_end(&self.client);
                set_left(0);
                let _ = self.server.write_all(request);
                let _ = self.server.shutdown(Shutdown::Write);
                return false;
            }
            Some(Fault::HoldRequest) => {
                let mut plan = self.plan.lock().unwrap();
                (plan.held, plan.refuses) = (request.to_vec(), true);
                return false;
            }
            Some(Fault::HalfCloseBefore) => {
                let _ = self.server.shutdown(Shutdown::Write);
                wait_for_end(&self.client);
                return false;
            }
            Some(Fault::HalfCloseAfter) => {
                let _ = self.server.write_all(request);
                let _ = self.server.shutdown(Shutdown::Write);
                wait_for_end(&self.client);
                return false;
            }
            Some(Fault::HalfCloseReply) => {
                let _ = self.client.shutdown(Shutdown::Write);
            }
            Some(Fault::ReplayBefore) => self.replay(),
            Some(Fault::ReplayInstead) => {
                self.replay();
                return false;
            }
        }
        self.server.write_all(request).is_ok()
    }

    /// Sends everything again on another connection, and waits until the server has read it.
    fn replay(&self) {
        let Ok(mut stream) = UnixStream::connect(&self.socket) else { return };
        stream.set_read_timeout(Some(SILENCE)).unwrap();
        let _ = stream.write_all(&self.sent);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
}

fn forward_replies(mut from: UnixStream, mut to: UnixStream, replies: &Mutex<Replies>) {
    let mut buffer = vec![0; LARGEST];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let delay = std::mem::take(&mut replies.lock().unwrap().delay);
        thread::sleep(delay);
        let mut replies = replies.lock().unwrap();
        if replies.swallowed {
            continue;
        }
        let passed = count.min(replies.left);
        if to.write_all(&buffer[..passed]).is_err() {
            break;
        }
        if replies.left != usize::MAX {
            replies.left -= passed;
            if replies.left == 0 {
                break;
            }
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// Reads until the client gives up, and answers nothing.
fn wait_for_end(client: &UnixStream) {
    let mut buffer = [0; 1024];
    while matches!((&mut &*client).read(&mut buffer), Ok(count) if count > 0) {}
}
