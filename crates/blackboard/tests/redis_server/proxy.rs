//! Connections that break at every point of a commit: it is applied once, or its outcome is reported as unknown.

use std::io::{Read, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use blackboard::Code;
use blackboard::store::redis::RedisOptions;
use testkit::redis::RedisServer;

use crate::{log, open, try_open, value, write};

/// What a request contains that changes an entry.
const COMMIT: &[u8] = b"entry_written";

/// What happens to the next commit.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
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
}

#[derive(Default)]
struct Plan {
    next: Option<Fault>,
    refuses: bool,
    /// The last commit.
    commit: Vec<u8>,
    connections: Vec<UnixStream>,
}

/// A proxy in front of a server.
struct Proxy {
    directory: tempfile::TempDir,
    plan: Arc<Mutex<Plan>>,
}

impl Proxy {
    fn before(server: &RedisServer) -> Proxy {
        let (directory, plan) = (testkit::tempdir().unwrap(), Arc::new(Mutex::new(Plan::default())));
        let listener = UnixListener::bind(directory.path().join("socket")).unwrap();
        let (socket, of_all) = (server.socket(), Arc::clone(&plan));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if of_all.lock().unwrap().refuses {
                    continue;
                }
                let Ok(server) = UnixStream::connect(&socket) else { continue };
                of_all.lock().unwrap().connections.push(client.try_clone().unwrap());
                let plan = Arc::clone(&of_all);
                thread::spawn(move || forward(client, server, &plan));
            }
        });
        Proxy { directory, plan }
    }

    fn url(&self) -> String {
        format!("redis+unix://{}/socket?board=a", self.directory.path().display())
    }

    fn fail_next(&self, fault: Fault) {
        self.plan.lock().unwrap().next = Some(fault);
    }

    /// Cuts all connections that are open.
    fn cut_all(&self) {
        for connection in self.plan.lock().unwrap().connections.drain(..) {
            let _ = connection.shutdown(std::net::Shutdown::Both);
        }
    }

    /// Whether the fault has happened.
    fn has_failed(&self) -> bool {
        self.plan.lock().unwrap().next.is_none()
    }
}

/// Forwards requests and replies, one after the other: a client waits for each reply.
fn forward(mut client: UnixStream, mut server: UnixStream, plan: &Mutex<Plan>) {
    let mut buffer = vec![0; 1 << 20];
    server.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let (mut replies_to, mut replies_from) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    // The number of bytes of replies that still arrive.
    let left = Arc::new(Mutex::new(usize::MAX));
    let of_replies = Arc::clone(&left);
    let replies = thread::spawn(move || {
        let mut buffer = vec![0; 1 << 20];
        while let Ok(count) = replies_from.read(&mut buffer) {
            let mut left = of_replies.lock().unwrap();
            let passed = count.min(*left);
            if count == 0 || replies_to.write_all(&buffer[..passed]).is_err() {
                break;
            }
            if *left != usize::MAX {
                *left -= passed;
                if *left == 0 {
                    break;
                }
            }
        }
        let _ = replies_to.shutdown(std::net::Shutdown::Both);
    });
    while let Ok(count) = client.read(&mut buffer) {
        let request = &buffer[..count];
        let is_commit = request.windows(COMMIT.len()).any(|part| part == COMMIT);
        let fault = if is_commit { plan.lock().unwrap().next.take() } else { None };
        if is_commit {
            plan.lock().unwrap().commit = request.to_vec();
        }
        match fault {
            None => {}
            Some(Fault::CutRequest(bytes)) => {
                let _ = server.write_all(&request[..bytes.min(count)]);
                break;
            }
            Some(Fault::CutReply(bytes)) => *left.lock().unwrap() = bytes,
            Some(Fault::SwallowRequest) => {
                park(&client);
                break;
            }
            Some(Fault::SwallowReply) => {
                *left.lock().unwrap() = 0;
                let _ = server.write_all(request);
                park(&client);
                break;
            }
            Some(Fault::CutReplyAndRefuse) => {
                plan.lock().unwrap().refuses = true;
                *left.lock().unwrap() = 0;
            }
        }
        if count == 0 || server.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = server.shutdown(std::net::Shutdown::Both);
    let _ = client.shutdown(std::net::Shutdown::Both);
    let _ = replies.join();
}

/// Reads until the client gives up, and answers nothing.
fn park(client: &UnixStream) {
    let mut buffer = [0; 1024];
    while matches!((&mut &*client).read(&mut buffer), Ok(count) if count > 0) {}
}

fn options() -> RedisOptions {
    RedisOptions {
        patience: Duration::from_secs(30),
        reply_limit: Duration::from_millis(500),
        ..RedisOptions::default()
    }
}

#[test]
fn commit_is_applied_once_wherever_its_connection_breaks() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let proxy = Proxy::before(&server);
    let board = try_open(&proxy.url(), &options()).unwrap();
    let requests = [0, 1, 5, 50, 200, 500, 900, 1200, 1400].map(Fault::CutRequest);
    let replies = [0, 1, 4, 9, 12, 15].map(Fault::CutReply);
    let swallowed = [Fault::SwallowRequest, Fault::SwallowReply];
    let faults = requests.into_iter().chain(replies).chain(swallowed);
    let mut count = 0;
    for fault in faults {
        proxy.fail_next(fault);
        board.scope("team").increment("x", 1).unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        assert!(proxy.has_failed(), "{fault:?}");
        count += 1;
        assert_eq!(value(&board, "x"), Some(count), "{fault:?}");
    }
    assert_eq!(i64::try_from(log(&board).len()).unwrap(), count, "one event each");
}

#[test]
fn commit_whose_answer_never_comes_is_reported_as_unknown() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let proxy = Proxy::before(&server);
    let options = RedisOptions { patience: Duration::from_millis(500), ..options() };
    let board = try_open(&proxy.url(), &options).unwrap();
    write(&board, "x", 1).unwrap();
    proxy.fail_next(Fault::CutReplyAndRefuse);
    let error = write(&board, "x", 2).unwrap_err();
    assert_eq!((error.code(), error.code().exit_code()), (Code::OutcomeUnknown, 1), "{error}");
    assert_eq!(value(&open(&server.url("a")), "x"), Some(2), "it was applied");
}

#[test]
fn change_that_was_never_sent_is_not_reported_as_unknown() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let proxy = Proxy::before(&server);
    let options = RedisOptions { patience: Duration::from_millis(500), ..options() };
    let board = try_open(&proxy.url(), &options).unwrap();
    proxy.plan.lock().unwrap().refuses = true;
    proxy.cut_all();
    assert_eq!(write(&board, "x", 1).unwrap_err().code(), Code::ServerUnavailable);
    assert_eq!(try_open(&proxy.url(), &options).err().unwrap().code(), Code::ServerUnavailable);
    assert_eq!(value(&open(&server.url("a")), "x"), None);
}

#[test]
fn commit_that_arrives_again_later_is_not_applied_again() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let proxy = Proxy::before(&server);
    let board = try_open(&proxy.url(), &options()).unwrap();
    let replay = |request: &[u8]| {
        let mut stream = UnixStream::connect(server.socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request).unwrap();
        let mut reply = [0; 1024];
        let count = stream.read(&mut reply).unwrap();
        String::from_utf8_lossy(&reply[..count]).into_owned()
    };
    board.scope("team").increment("x", 1).unwrap();
    let first = proxy.plan.lock().unwrap().commit.clone();
    assert!(replay(&first).contains("ok"), "the answer that was lost");
    assert_eq!(value(&board, "x"), Some(1));
    board.scope("team").increment("x", 1).unwrap();
    let answer = replay(&first);
    assert!(answer.contains("conflict") || answer.contains("old"), "{answer}");
    assert_eq!((value(&board, "x"), log(&board).len()), (Some(2), 2));
}

#[test]
fn waiting_thread_misses_nothing_when_its_connection_is_cut() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let proxy = Proxy::before(&server);
    let (board, other) = (try_open(&proxy.url(), &options()).unwrap(), open(&server.url("a")));
    let mut seen = write(&other, "x", 0).unwrap();
    for round in 1..6 {
        let written = thread::scope(|scope| {
            let waiting = scope.spawn(|| board.wait(seen, Duration::from_mins(2)).unwrap());
            proxy.cut_all();
            let written = write(&other, "x", round).unwrap();
            assert_eq!(waiting.join().unwrap(), written);
            written
        });
        seen = written;
    }
}
