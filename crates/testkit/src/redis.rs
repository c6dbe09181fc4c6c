//! Real Redis servers, each in a temporary directory.
//!
//! A test that needs its own server, to stop it or to change its settings, has a [`RedisServer`]. Other tests share one
//! per process, each with a board of its own: [`shared_redis`].

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::process::{signal, wait_for};
use crate::{limit_test, patience, skip, wait_until};

/// The programs that are servers, the preferred one first. A variable names another one.
const PROGRAMS: [&str; 2] = ["redis-server", "valkey-server"];
const VARIABLE: &str = "BLACKBOARD_TEST_REDIS";

/// The server to start; `None` if this machine has none.
pub fn redis_program() -> Option<PathBuf> {
    let named = std::env::var_os(VARIABLE).map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut installed = PROGRAMS.iter().flat_map(|name| directories.iter().map(move |dir| dir.join(name)));
    named.or_else(|| installed.find(|program| program.is_file()))
}

/// Reports that a test is skipped because this machine has no server.
#[track_caller]
pub fn skip_without_redis() -> bool {
    let is_missing = redis_program().is_none();
    if is_missing {
        skip("a board on a Redis server", "redis-server");
    }
    is_missing
}

/// A server of one test. It ends with this value.
pub struct RedisServer {
    directory: TempDir,
    child: Child,
    settings: Vec<String>,
    port: Option<u16>,
}

impl RedisServer {
    /// Starts a server with these settings, each a name and its value; `None` if this machine has none.
    #[track_caller]
    pub fn start(settings: &[(&str, &str)]) -> Option<RedisServer> {
        limit_test();
        if skip_without_redis() {
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let settings = options(settings);
        let child = start(directory.path(), &settings);
        Some(RedisServer { directory, child, settings, port: None })
    }

    /// The same with a configuration file, whose settings come before these.
    #[track_caller]
    pub fn start_with_file(file: &Path, settings: &[(&str, &str)]) -> Option<RedisServer> {
        limit_test();
        if skip_without_redis() {
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let mut own = vec![file.display().to_string()];
        own.extend(options(settings));
        let child = start(directory.path(), &own);
        Some(RedisServer { directory, child, settings: own, port: None })
    }

    /// The same with a port on this machine, for other servers.
    #[track_caller]
    pub fn start_with_port(settings: &[(&str, &str)]) -> Option<RedisServer> {
        let port = free_port();
        let text = port.to_string();
        let own = [("port", text.as_str()), ("bind", "127.0.0.1")];
        let mut server = RedisServer::start(&[&own, settings].concat())?;
        server.port = Some(port);
        Some(server)
    }

    /// The port of a server that has one.
    pub fn port(&self) -> u16 {
        self.port.unwrap()
    }

    /// Its Unix socket.
    pub fn socket(&self) -> PathBuf {
        socket_in(self.directory.path())
    }

    /// The directory of its files.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The address of a board on it.
    pub fn url(&self, board: &str) -> String {
        url_of(&self.socket(), board)
    }

    /// Kills it, as a crash does.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        wait_for(&mut self.child);
    }

    /// Starts it again with its data.
    pub fn start_again(&mut self) {
        let _ = fs::remove_file(self.socket());
        self.child = start(self.directory.path(), &self.settings);
    }

    /// Sends it a signal.
    pub fn signal(&self, which: Signal) {
        signal(self.child.id(), which);
    }

    /// Sends a command, and returns the raw reply.
    pub fn command(&self, arguments: &[&str]) -> String {
        command(&self.socket(), arguments).unwrap()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        wait_for(&mut self.child);
    }
}

/// The address of a new board on the server that the tests of this process share; `None` if this machine has none.
#[track_caller]
pub fn shared_redis() -> Option<String> {
    static SOCKET: OnceLock<PathBuf> = OnceLock::new();
    static BOARDS: AtomicU64 = AtomicU64::new(0);
    if skip_without_redis() {
        return None;
    }
    let socket = SOCKET.get_or_init(|| start_for_all_tests(Vec::new()));
    Some(url_of(socket, &format!("test-{}", BOARDS.fetch_add(1, Ordering::Relaxed))))
}

/// Starts a server that ends with this process, and returns its socket.
pub(crate) fn start_for_all_tests(settings: Vec<String>) -> PathBuf {
    // The processes of a test end with its thread, so another thread starts this one and never ends.
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::Builder::new()
        .name("main".to_owned())
        .spawn(move || {
            let directory = tempfile::tempdir().unwrap().keep();
            let child = start_until_we_end(&directory, &settings);
            sender.send(socket_in(&directory)).unwrap();
            let _child = child;
            loop {
                thread::park();
            }
        })
        .unwrap();
    receiver.recv_timeout(2 * patience()).unwrap()
}

fn socket_in(directory: &Path) -> PathBuf {
    directory.join("socket")
}

fn url_of(socket: &Path, board: &str) -> String {
    format!("redis+unix://{}?board={board}", socket.display())
}

fn arguments(directory: &Path) -> Vec<String> {
    let text = |path: &Path| path.display().to_string();
    let socket = text(&socket_in(directory));
    let defaults = [
        ["--port", "0"],
        ["--unixsocket", &socket],
        ["--dir", &text(directory)],
        ["--logfile", &text(&directory.join("log"))],
        ["--save", ""],
        ["--enable-debug-command", "yes"],
    ];
    defaults.as_flattened().iter().map(|argument| (*argument).to_owned()).collect()
}

fn options(settings: &[(&str, &str)]) -> Vec<String> {
    settings.iter().flat_map(|(name, value)| [format!("--{name}"), (*value).to_owned()]).collect()
}

fn start(directory: &Path, settings: &[String]) -> Child {
    let program = redis_program().unwrap();
    // A configuration file is the first argument.
    let file = settings.iter().take_while(|setting| !setting.starts_with("--")).take(1).count();
    let (file, settings) = settings.split_at(file);
    let mut command = Command::new(program);
    command.args(file).args(arguments(directory)).args(settings);
    let child = command.stdout(Stdio::null()).spawn().unwrap();
    wait_until_ready(directory);
    child
}

/// Starts a server that ends when this process ends, however that happens: its shell waits for the end of a pipe.
fn start_until_we_end(directory: &Path, settings: &[String]) -> Child {
    const SCRIPT: &str = r#""$@" & server=$!; read -r _; kill -9 $server; rm -rf "$DIRECTORY""#;
    let child = Command::new("sh")
        .args(["-c", SCRIPT, "sh"])
        .arg(redis_program().unwrap())
        .args(arguments(directory))
        .args(settings)
        .env("DIRECTORY", directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    wait_until_ready(directory);
    child.unwrap()
}

fn wait_until_ready(directory: &Path) {
    let socket = socket_in(directory);
    wait_until("a Redis server that answers", || {
        let reply = command(&socket, &["PING"]).ok()?;
        // A server that loads its data answers with an error.
        (reply.starts_with("+PONG") || reply.starts_with("-NOAUTH")).then_some(())
    });
}

/// A port that no process uses now.
pub fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// Sends one command on a new connection.
pub(crate) fn command(socket: &Path, arguments: &[&str]) -> std::io::Result<String> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    ask(stream, arguments)
}

/// Sends one command. The reply is short, or only its start is returned.
pub fn ask(mut stream: impl Read + Write, arguments: &[&str]) -> std::io::Result<String> {
    let mut request = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        write!(request, "${}\r\n{argument}\r\n", argument.len()).unwrap();
    }
    stream.write_all(&request)?;
    let mut reply = vec![0; 1 << 16];
    let count = stream.read(&mut reply)?;
    Ok(String::from_utf8_lossy(&reply[..count]).into_owned())
}
