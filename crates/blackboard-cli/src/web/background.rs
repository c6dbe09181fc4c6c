//! The server as a background process: registering, finding, starting and stopping it.
//!
//! A small private file beside the board (`local.db-serve`) contains the PID, the URL and the token of its server. The
//! server holds a lock on that file while it runs. So each board has at most one server, and the file of a killed
//! server is ignored. `serve --stop` ends only the process that the file identifies: a reused PID belongs to a
//! different process.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use blackboard::clock::{Clock, SystemClock, Timestamp};
use blackboard::process::{Liveness, ProcessIdentity, Processes, SystemProcesses};
use blackboard::store::{Sidecar, Sidecars};
use blackboard::{Code, Error, Fault, Refusal, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::access::Secret;
use crate::context::Context;
use crate::disk::own_file;
use crate::hints;
use crate::location::without_password;

/// The maximum number of bytes read from the file: more than any server writes.
const MOST_BYTES: u64 = 4096;

/// How long to wait for a server to answer after its start.
const TO_START: Duration = Duration::from_secs(30);

/// How long to wait for a server to stop, and the interval of the checks.
const TO_STOP: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

/// How often to retry if the file disappears while it is opened.
const TRIES: usize = 10;

/// A running server.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Registration", into = "Registration")]
pub struct Running {
    /// Its URL without the token, for messages that others may read.
    pub address: String,
    /// The token that requests need; `None` if every request is answered.
    token: Option<Secret>,
    /// Its port.
    pub port: u16,
    /// Its process.
    pub pid: u32,
    /// The identity of that process, in case the PID is reused.
    process: Option<String>,
    /// When it started.
    pub started_at: Timestamp,
}

/// A server as stored in its file and in JSON output. It has no `Debug`, because its URL contains the token.
#[derive(Serialize, Deserialize)]
struct Registration {
    url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<Secret>,
    port: u16,
    pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<String>,
    started_at: Timestamp,
}

impl From<Registration> for Running {
    fn from(registration: Registration) -> Running {
        let Registration { url, token, port, pid, process, started_at } = registration;
        let address = url.split_once("/?").map_or(url.as_str(), |(address, _)| address).to_owned();
        Running { address, token, port, pid, process, started_at }
    }
}

impl From<Running> for Registration {
    fn from(running: Running) -> Registration {
        let url = running.url();
        let Running { token, port, pid, process, started_at, .. } = running;
        Registration { url, token, port, pid, process, started_at }
    }
}

impl Running {
    /// This process, which listens at that address.
    pub fn here(address: SocketAddr, token: Option<Secret>) -> Running {
        let pid = std::process::id();
        let process = SystemProcesses::default().mark(pid).map(|mark| mark.to_string());
        let (port, address) = (address.port(), format!("http://{address}"));
        Running { address, token, port, pid, process, started_at: SystemClock.now() }
    }

    /// The URL to open, with the token.
    pub fn url(&self) -> String {
        match &self.token {
            Some(token) => format!("{}/?token={}", self.address, token.as_str()),
            None => self.address.clone(),
        }
    }

    /// Whether its URL contains a token.
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    fn liveness(&self) -> Liveness {
        let mark: Option<ProcessIdentity> = self.process.as_deref().and_then(|mark| mark.parse().ok());
        match mark {
            Some(mark) => SystemProcesses::default().liveness(self.pid, Some(&mark)),
            // Without the identity, the PID may belong to any process.
            None => Liveness::Unknown,
        }
    }
}

/// The server of the board with these sidecars, if one is running.
pub fn find(board: &dyn Sidecars) -> Option<Running> {
    let mut file = own_file(&board.path(Sidecar::ServerRegistration), false).ok()?;
    let running = read(&mut file)?;
    match running.liveness() {
        Liveness::Alive => Some(running),
        Liveness::Dead => None,
        Liveness::Unknown => is_locked(&file).then_some(running),
    }
}

/// The registration that this process holds.
struct Held {
    file: File,
    path: PathBuf,
    /// The page that redirects a browser to the server, if one was opened.
    page: PathBuf,
}

/// The registration as the server of a board, held until this value is dropped.
pub struct ServerRegistration {
    /// `None` if the file cannot exist. Other processes then cannot find this server.
    held: Option<Held>,
    /// Why other processes cannot find it, unless the directory does not exist yet.
    unknown: Option<Error>,
}

impl ServerRegistration {
    /// Registers this process. Refuses if another process is registered.
    pub fn take(board: &dyn Sidecars) -> Result<ServerRegistration> {
        let path = board.path(Sidecar::ServerRegistration);
        let page = board.path(Sidecar::DashboardLink);
        for _ in 0..TRIES {
            let mut file = match own_file(&path, true) {
                Ok(file) => file,
                // The directory of a board that does not exist may be missing too. Showing a board must not create
                // anything.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(ServerRegistration { held: None, unknown: None });
                }
                Err(error) => return Ok(ServerRegistration::without(&path, error)),
            };
            match file.try_lock() {
                // The previous server has just deleted it.
                Ok(()) if !is_at(&file, &path) => {}
                // Another user may already have the file open. The token goes into a new file.
                Ok(()) if !is_private(&file) => {
                    if let Err(error) = fs::remove_file(&path) {
                        return Ok(ServerRegistration::without(&path, error));
                    }
                }
                Ok(()) => {
                    // A killed server's data must not be mistaken for this server's.
                    return Ok(match file.set_len(0) {
                        Ok(()) => ServerRegistration { held: Some(Held { file, path, page }), unknown: None },
                        Err(error) => ServerRegistration::without(&path, error),
                    });
                }
                Err(TryLockError::WouldBlock) => return Err(runs_already(read(&mut file).as_ref())),
                Err(TryLockError::Error(error)) => return Ok(ServerRegistration::without(&path, error)),
            }
        }
        Ok(ServerRegistration::without(&path, io::Error::other("it disappears whenever it is opened")))
    }

    /// Writes the registered server into the file.
    pub fn publish(&mut self, running: &Running) {
        if let Some(Held { file, path, .. }) = &mut self.held {
            let written = serde_json::to_vec(running)
                .map_err(io::Error::other)
                .and_then(|text| file.rewind().and_then(|()| file.write_all(&text)));
            if let Err(error) = written {
                self.unknown = Some(not_found_by(path, error));
            }
        }
    }

    /// Whether other processes can find this server.
    pub fn is_found(&self) -> bool {
        self.held.as_ref().is_some_and(|held| is_at(&held.file, &held.path))
    }

    /// Why other processes cannot find this server. They could then neither stop it nor avoid a second one.
    pub fn take_problem(&mut self) -> Option<Error> {
        self.unknown.take()
    }

    fn without(path: &Path, error: io::Error) -> ServerRegistration {
        ServerRegistration { held: None, unknown: Some(not_found_by(path, error)) }
    }
}

fn not_found_by(path: &Path, error: io::Error) -> Error {
    let message = format!("cannot write {}, which registers the server", path.display());
    Fault::new(Code::Io, message).because(error).hint("check what is at that path, and remove it").into()
}

impl Drop for ServerRegistration {
    fn drop(&mut self) {
        if let Some(Held { file, path, page }) = self.held.take() {
            if is_at(&file, &path) {
                let _ = fs::remove_file(page);
                let _ = fs::remove_file(&path);
            }
            let _ = file.unlock();
        }
    }
}

/// Starts a server that outlives this process, with the same arguments, and waits until it answers.
pub fn start_in_background(context: &Context, port: u16, token: bool) -> Result<Running> {
    let board = context.resolve()?.engine.sidecars();
    if let Some(running) = find(board) {
        return Err(runs_already(Some(&running)));
    }
    let fault = |error: io::Error| -> Error {
        Fault::new(Code::Io, "the server could not be started in the background").because(error).into()
    };
    // Otherwise `serve --stop` would not find it.
    board.create_directory().map_err(fault)?;
    let mut command = Command::new(std::env::current_exe().map_err(fault)?);
    command.args(["serve", "--json", "--detached", "--port", &port.to_string()]);
    if !token {
        command.arg("--no-token");
    }
    if let Some(db) = context.db() {
        // The arguments of a process are visible to all users, and a URL may contain a password.
        match db.to_str().filter(|name| *without_password(name) != **name) {
            Some(url) => command.env("BLACKBOARD_DB", url),
            None => command.arg("--db").arg(db),
        };
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let line = first_line(command.spawn().map_err(fault)?, TO_START)?;
    match serde_json::from_str::<Running>(&line) {
        Ok(running) => Ok(running),
        Err(_) => Err(as_it_said(&line)),
    }
}

/// The first line of a server's output; empty if it ends without one. A server that prints none in time is killed.
fn first_line(mut server: Child, limit: Duration) -> Result<String> {
    let (sender, lines) = channel();
    let output = server.stdout.take();
    std::thread::spawn(move || {
        let mut line = String::new();
        if let Some(output) = output {
            let _ = BufReader::new(output.take(MOST_BYTES)).read_line(&mut line);
        }
        let _ = sender.send(line);
    });
    lines.recv_timeout(limit).map_err(|_| {
        let _ = server.kill();
        let _ = server.wait();
        Refusal::new(Code::TimedOut, format!("the server did not answer within {} s", limit.as_secs()))
            .hint(hints::command("run it in the foreground, to see why: ", "serve"))
            .into()
    })
}

/// Leaves the terminal and the process group that it was started from, so that it survives them.
pub fn detach() {
    #[cfg(unix)]
    {
        let _ = rustix::process::setsid();
    }
}

/// Asks the server of this board to stop, and waits until it has.
pub fn stop(board: &dyn Sidecars) -> Result<Running> {
    let running = find(board).ok_or_else(|| -> Error {
        Refusal::new(Code::NotRunning, "no dashboard of this board is running")
            .hint(hints::command("start one: ", "serve --background"))
            .into()
    })?;
    ask_to_end(&running)?;
    let until = Instant::now() + TO_STOP;
    while running.liveness() == Liveness::Alive {
        if Instant::now() > until {
            let message = format!("the dashboard (PID {}) did not end in time", running.pid);
            return Err(Refusal::new(Code::TimedOut, message)
                .hint(format!("kill it: kill -9 {}", running.pid))
                .into());
        }
        std::thread::sleep(LOOK);
    }
    Ok(running)
}

#[cfg(unix)]
fn ask_to_end(running: &Running) -> Result<()> {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = i32::try_from(running.pid).ok().and_then(Pid::from_raw);
    let is_known = running.liveness() == Liveness::Alive;
    let Some(pid) = pid.filter(|_| is_known) else { return Err(unknown(running)) };
    kill_process(pid, Signal::TERM).map_err(|error| {
        let message = format!("the dashboard (PID {}) could not be asked to end", running.pid);
        Fault::new(Code::Io, message).because(error).into()
    })
}

#[cfg(not(unix))]
fn ask_to_end(running: &Running) -> Result<()> {
    Err(unknown(running))
}

/// Only a process that is known to be the server is ever killed.
fn unknown(running: &Running) -> Error {
    let message = format!("cannot determine whether PID {} is the dashboard", running.pid);
    Refusal::new(Code::NotRunning, message).hint("stop it in the terminal where it was started").into()
}

fn runs_already(running: Option<&Running>) -> Error {
    let Some(running) = running else {
        return Refusal::new(Code::AlreadyRunning, "another dashboard of this board is just starting").into();
    };
    // Errors end up in logs, which should not contain the token.
    let (address, pid) = (running.address.as_str(), running.pid);
    let message = format!("this board already has a dashboard at {address} (PID {pid})");
    Refusal::new(Code::AlreadyRunning, message)
        .hint(hints::command("print the address to open: ", "serve --status"))
        .detail("url", address)
        .detail("pid", pid)
        .into()
}

/// The error that a background server has reported.
fn as_it_said(line: &str) -> Error {
    let said: Map<String, Value> = serde_json::from_str(line).unwrap_or_default();
    let text = |name: &str| said.get(name).and_then(Value::as_str);
    let code = text("code").and_then(|name| Code::ALL.iter().copied().find(|code| code.as_str() == name));
    let (Some(code), Some(message)) = (code, text("error")) else {
        return Fault::new(Code::Internal, "the server in the background ended without an error message")
            .into();
    };
    let mut refusal = Refusal::new(code, message);
    refusal.hint = text("hint").map(|hint| hint.to_owned().into());
    for name in ["url", "pid", "port"] {
        if let Some(value) = said.get(name) {
            refusal.details.insert(name.to_owned(), value.clone());
        }
    }
    refusal.into()
}

fn read(file: &mut File) -> Option<Running> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(MOST_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

fn is_locked(file: &File) -> bool {
    match file.try_lock() {
        Ok(()) => {
            let _ = file.unlock();
            false
        }
        Err(error) => matches!(error, TryLockError::WouldBlock),
    }
}

/// Whether no other user can read the file.
#[cfg(unix)]
fn is_private(file: &File) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|metadata| metadata.permissions().mode().trailing_zeros() >= 6)
}

/// On this system, the permissions of the directory in the user's profile decide who can read the file.
#[cfg(not(unix))]
fn is_private(_file: &File) -> bool {
    true
}

/// Whether the file is still the one of this name.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let named = fs::symlink_metadata(path).map(identity).ok();
    named.is_some() && named == file.metadata().map(identity).ok()
}

#[cfg(not(unix))]
fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use blackboard::store::SidecarDirectory;

    use super::*;

    #[cfg(unix)]
    #[test]
    fn server_that_prints_nothing_is_killed_and_reported() {
        testkit::limit_test();
        let server =
            |script: &str| Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let hanging = server("exec sleep 600");
        let pid = hanging.id();
        let refused = first_line(hanging, Duration::from_millis(1)).unwrap_err();
        assert_eq!(refused.code(), Code::TimedOut);
        assert!(!testkit::process::runs(pid));
        assert_eq!(first_line(server("echo '{}'; exec cat"), testkit::patience()).unwrap(), "{}\n");
        assert_eq!(first_line(server("exit 1"), testkit::patience()).unwrap(), "");
    }

    #[test]
    fn debug_output_of_a_server_has_no_token() {
        let token = Secret::random().unwrap();
        let running = Running::here(SocketAddr::from(([127, 0, 0, 1], 3141)), Some(token.clone()));
        assert!(!format!("{running:?}").contains(token.as_str()), "{running:?}");
        let text = serde_json::to_string(&running).unwrap();
        let read: Running = serde_json::from_str(&text).unwrap();
        assert_eq!(read.address, "http://127.0.0.1:3141");
        assert_eq!(read.url(), format!("http://127.0.0.1:3141/?token={}", token.as_str()));
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }

    #[test]
    fn starting_server_is_not_mistaken_for_a_killed_one() {
        let scratch = testkit::tempdir().unwrap();
        let board = SidecarDirectory::new(scratch.path());
        let killed = Running::here(SocketAddr::from(([127, 0, 0, 1], 3141)), None);
        fs::write(board.path(Sidecar::ServerRegistration), serde_json::to_vec(&killed).unwrap()).unwrap();
        let _starting = ServerRegistration::take(&board).unwrap();
        let refused = ServerRegistration::take(&board).err().unwrap();
        assert_eq!(refused.code(), Code::AlreadyRunning);
        assert_eq!(refused.to_string(), "another dashboard of this board is just starting");
    }
}
