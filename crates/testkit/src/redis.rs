//! Real Redis servers, each in a temporary directory.
//!
//! A test that needs its own server, to stop it or to change its settings, has a [`RedisServer`]. Other tests share one
//! per process, each with a board of its own: [`SharedBoard`].

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
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

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
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
    SharedBoard::new().map(|board| board.url())
}

/// How many databases the shared server has: more than the tests of a process have boards.
const DATABASES: u64 = 10_000;

/// A board on the server that the tests of this process share, in a database of its own.
pub struct SharedBoard {
    socket: PathBuf,
    name: String,
    database: u64,
}

impl SharedBoard {
    /// A new board, which the first call creates; `None` if this machine has no server.
    #[track_caller]
    pub fn new() -> Option<SharedBoard> {
        static SOCKET: OnceLock<PathBuf> = OnceLock::new();
        static BOARDS: AtomicU64 = AtomicU64::new(0);
        if skip_without_redis() {
            return None;
        }
        let settings = ["--appendonly", "yes", "--appendfsync", "no", "--databases", &DATABASES.to_string()];
        let settings = settings.map(str::to_owned).to_vec();
        // As on a server of a user, without the cost of a disk.
        let socket = SOCKET.get_or_init(|| start_for_all_tests(settings));
        let number = BOARDS.fetch_add(1, Ordering::Relaxed);
        Some(SharedBoard {
            socket: socket.clone(),
            name: format!("test-{number}"),
            database: number % DATABASES,
        })
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("redis+unix://{}?db={}&board={}", self.socket.display(), self.database, self.name)
    }

    /// The directory of the server, with its append-only file.
    pub fn directory(&self) -> PathBuf {
        self.socket.parent().unwrap().to_owned()
    }

    /// Whether a process blocks on the event log, and so waits for something on this board.
    pub fn is_followed(&self) -> bool {
        let clients = command(&self.socket, &["CLIENT", "LIST", "TYPE", "normal"]).unwrap();
        let database = format!(" db={} ", self.database);
        clients.lines().any(|client| client.contains(&database) && client.contains(" cmd=xread "))
    }

    /// Makes every entry with a time to live expire, as if time had passed.
    pub fn let_time_pass(&self) {
        let reply = self.command(&["EVAL", EXPIRE, "2", &self.key("rows"), &self.key("index")]);
        assert_eq!(reply, "+OK\r\n");
    }

    /// Lets other users of the machine connect to the server.
    pub fn allow_other_users(&self) {
        for (path, mode) in [(self.socket.parent().unwrap(), 0o711), (&*self.socket, 0o777)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
    }

    /// Copies the board, as it is, to a place without one.
    pub fn copy_to(&self, other: &SharedBoard) {
        let database = other.database.to_string();
        for key in ["rows", "index", "log"] {
            let copied = self.command(&["COPY", &self.key(key), &other.key(key), "DB", &database]);
            assert_eq!(copied, ":1\r\n");
        }
    }

    /// Deletes the board.
    pub fn delete(&self) {
        self.command(&["DEL", &self.key("rows"), &self.key("index"), &self.key("log")]);
    }

    pub(crate) fn key(&self, name: &str) -> String {
        format!("bb:{{{}}}:{name}", self.name)
    }

    /// Sends a command to the database of the board.
    pub(crate) fn command(&self, arguments: &[&str]) -> String {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(patience())).unwrap();
        let selected = ask(&mut stream, &["SELECT", &self.database.to_string()]).unwrap();
        assert_eq!(selected, "+OK\r\n");
        ask(&mut stream, arguments).unwrap()
    }
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

/// Changes the expiry of every entry that has one: in its row, in its version, and in the index. `layout.rs` and
/// `bytes.rs` of the engine describe the bytes.
const EXPIRE: &str = r"
local rows, index = KEYS[1], KEYS[2]
local PAST, TEXT = 1577836800000, '2020-01-01T00:00:00.000Z'
local function bytes(number)
  local text = ''
  for _ = 1, 8 do
    text = string.char(number % 256) .. text
    number = math.floor(number / 256)
  end
  return string.char(string.byte(text) + 128) .. string.sub(text, 2)
end
local all = redis.call('HGETALL', rows)
for i = 1, #all, 2 do
  local field, value = all[i], all[i + 1]
  if string.sub(field, 1, 2) == 're' and string.sub(value, 9, 9) == 'e' then
    local at = string.find(value, '\0', 10, true)
    local revision, expiry = string.sub(value, 10, at - 1), tonumber(string.sub(value, at + 1))
    if expiry then
      redis.call('HSET', rows, field, string.sub(value, 1, at) .. string.format('%.0f', PAST))
      local version = redis.call('HGET', rows, 'v' .. revision)
      local header = string.find(version, '\0', 1, true)
      local cells = cjson.decode(string.sub(version, header + 1))
      cells[13] = TEXT
      redis.call('HSET', rows, 'v' .. revision, string.sub(version, 1, header) .. cjson.encode(cells))
      local before = 'W' .. bytes(expiry)
      for _, place in ipairs(redis.call('ZRANGEBYLEX', index, '[' .. before, '(X')) do
        if string.sub(place, 1, 9) == before and string.sub(place, -2 - #field, -3) == field then
          redis.call('ZREM', index, place)
          redis.call('ZADD', index, 0, 'W' .. bytes(PAST) .. string.sub(place, 10))
        end
      end
    end
  end
end
return redis.status_reply('OK')
";

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

/// Sends one command. A text is returned completely; of any other long reply, perhaps only its start.
pub fn ask(mut stream: impl Read + Write, arguments: &[&str]) -> std::io::Result<String> {
    let mut request = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        write!(request, "${}\r\n{argument}\r\n", argument.len()).unwrap();
    }
    stream.write_all(&request)?;
    let (mut reply, mut part) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        let count = stream.read(&mut part)?;
        reply.extend(&part[..count]);
        if count == 0 || is_complete(&reply) {
            return Ok(String::from_utf8_lossy(&reply).into_owned());
        }
    }
}

/// Whether the start of a reply is all of it, as far as that is easy to see.
fn is_complete(reply: &[u8]) -> bool {
    let Some(text) = reply.strip_prefix(b"$") else { return true };
    let end = text.windows(2).position(|bytes| bytes == b"\r\n");
    let length = end.and_then(|end| std::str::from_utf8(&text[..end]).ok()?.parse::<usize>().ok());
    end.is_some_and(|end| length.is_none_or(|length| text.len() >= end + 2 + length + 2))
}
