//! A directory in which the real program runs, isolated from the settings of the machine.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use blackboard::agent::Agent;
use blackboard::clock::{Clock, SystemClock, Timestamp};
use blackboard::store::redis::{Redis, RedisOptions};
use blackboard::store::sqlite::{Sqlite, SqliteOptions};
use blackboard::store::{Changes, Commit, OnBusy, Range, Row, Store, Tx};
use blackboard::{Board, Revision};
use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

use crate::engine::Engine;
use crate::process::{RunToEnd as _, wait_for};
use crate::redis::SharedBoard;
use crate::tables::tables_of;
use crate::{patience, wait_until};

/// The program. Cargo builds it for the tests of its package, and passes its path to them.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let program = std::env::var_os("CARGO_BIN_EXE_blackboard");
        program.expect("`cargo test` or `cargo nextest` runs the tests of the program").into()
    })
}

/// A temporary directory that is the home and working directory of every call, and a board on the engine of the test.
pub struct Scratch {
    directory: TempDir,
    /// The board in a file, relative to the directory.
    file: PathBuf,
    /// Whether calls are told where the file is.
    names_file: bool,
    /// The board on a server.
    served: Option<SharedBoard>,
}

/// The result of a call.
#[derive(Debug)]
pub struct Output {
    /// The exit code.
    pub code: i32,
    /// What it printed on stdout.
    pub stdout: String,
    /// What it printed on stderr.
    pub stderr: String,
}

impl Scratch {
    /// An empty directory, and no board.
    #[expect(clippy::new_without_default, reason = "a test asks for its fixture by name")]
    pub fn new() -> Scratch {
        Scratch::of(".pai/blackboard/local.db", false)
    }

    /// The same with a board that is not in the home of boards, if it is in a file.
    pub fn with_file(file: &str) -> Scratch {
        Scratch::of(file, true)
    }

    /// The same with a board in a file, on every engine.
    pub(crate) fn in_a_file() -> Scratch {
        Scratch {
            directory: crate::tempdir().unwrap(),
            file: ".pai/blackboard/local.db".into(),
            names_file: false,
            served: None,
        }
    }

    fn of(file: &str, names_file: bool) -> Scratch {
        let directory = crate::tempdir().unwrap();
        let served = match Engine::of_this_test() {
            Engine::Sqlite => None,
            Engine::Redis => Some(SharedBoard::new().expect("a test without a server was skipped")),
        };
        Scratch { directory, file: file.into(), names_file, served }
    }

    /// The directory; home and working directory of every call.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The file of the board that a call uses by default, if it is in one.
    pub fn database(&self) -> PathBuf {
        self.path().join(&self.file)
    }

    /// Whether the board is on a server.
    pub fn is_served(&self) -> bool {
        self.served.is_some()
    }

    /// The board on a server, if it is on one.
    pub(crate) fn served(&self) -> Option<&SharedBoard> {
        self.served.as_ref()
    }

    /// The location of the board, as an option or a variable names it.
    pub fn location(&self) -> String {
        match &self.served {
            Some(board) => board.url(),
            None => self.database().display().to_string(),
        }
    }

    /// The directory with every byte of the board: that of its file, or that of its server.
    pub fn files(&self) -> PathBuf {
        let directory = self.served.as_ref().map(SharedBoard::directory);
        directory.unwrap_or_else(|| self.database().parent().unwrap().to_owned())
    }

    /// A file in the home of boards.
    pub fn home_file(&self, name: &str) -> PathBuf {
        self.path().join(".pai/blackboard").join(name)
    }

    /// A file that programs keep for the board. On a server it is in the only directory of such files in this home,
    /// which the first call creates.
    pub fn sidecar(&self, name: &str) -> PathBuf {
        if self.served.is_none() {
            return self.database().with_file_name(name);
        }
        let remote = self.path().join(".pai/blackboard/remote");
        let found = std::fs::read_dir(&remote).ok().and_then(|mut boards| boards.next());
        found.map_or_else(|| remote.join("none"), |board| board.unwrap().path()).join(name)
    }

    /// The file by which a dashboard of the board is found.
    pub fn registration(&self) -> PathBuf {
        match self.served {
            Some(_) => self.sidecar("serve"),
            None => PathBuf::from(format!("{}-serve", self.database().display())),
        }
    }

    /// The board for the library, which prepares it faster than a process for each step could.
    pub fn board(&self) -> Board {
        let (store, clock) = self.store();
        Board::on(store, clock)
    }

    /// The same with a clock of the test.
    pub fn board_at(&self, clock: Arc<dyn Clock>) -> Board {
        Board::on(self.open(Some(clock.clone())).0, clock)
    }

    /// Its store, and the clock of the store.
    pub fn store(&self) -> (Arc<dyn Store>, Arc<dyn Clock>) {
        self.open(None)
    }

    fn open(&self, fixed_clock: Option<Arc<dyn Clock>>) -> (Arc<dyn Store>, Arc<dyn Clock>) {
        let Some(board) = &self.served else {
            let clock = fixed_clock.unwrap_or_else(|| Arc::new(SystemClock));
            let store = Sqlite::open(&self.database(), clock.clone(), &SqliteOptions::default());
            return (Arc::new(store.unwrap()), clock);
        };
        // A long limit, because the test machine may have two cores and other work.
        let options = RedisOptions {
            patience: 2 * patience(),
            reply_limit: patience(),
            fixed_clock,
            ..RedisOptions::default()
        };
        let store = Redis::open(board.url().parse().unwrap(), &options).unwrap();
        let clock = store.clock();
        (Arc::new(store), clock)
    }

    /// Copies the board of another directory, if it is on a server.
    pub fn copy_served_board(&self, other: &Scratch) {
        if let (Some(board), Some(other)) = (&self.served, &other.served) {
            other.copy_to(board);
        }
    }

    /// Lets other users of the machine reach the board, if it is on a server. A file belongs to its user.
    pub fn allow_other_users(&self) {
        if let Some(board) = &self.served {
            board.allow_other_users();
        }
    }

    /// Lets commands accept another board of the same name on the server.
    pub(crate) fn forget_known_board(&self) {
        let _ = std::fs::remove_file(self.sidecar("board"));
    }

    /// Deletes the board from its server, or with everything that is in its directory. A waiting process may create a
    /// file there meanwhile.
    pub fn delete_board(&self) {
        if let Some(board) = &self.served {
            return board.delete();
        }
        let directory = self.database().parent().unwrap().to_owned();
        while let Err(error) = std::fs::remove_dir_all(&directory) {
            assert_eq!(error.kind(), std::io::ErrorKind::DirectoryNotEmpty);
        }
    }

    /// The board as tables, to look at it with SQL: those of its file, or a copy of a board on a server.
    pub fn tables(&self) -> Connection {
        if self.served.is_some() {
            return tables_of(&*self.store().0).unwrap();
        }
        let connection = Connection::open(self.database()).unwrap();
        connection.busy_timeout(patience()).unwrap();
        connection
    }

    /// Commits changes without the verbs.
    pub fn change(&self, mut change: impl FnMut(&dyn Tx, &mut Changes) -> blackboard::Result<()>) {
        let commit = Commit { name: "test", prefetch: &[], on_busy: OnBusy::Wait, callers: &[] };
        let changed = self.store().0.commit(&commit, &mut |tx| {
            let mut changes = Changes::new();
            change(tx, &mut changes)?;
            Ok(changes)
        });
        changed.unwrap();
    }

    /// Changes every row of a range without the verbs. `change` gets the time of the board.
    pub fn change_rows<T: TryFrom<Row> + Into<Row>>(
        &self,
        range: &Range,
        change: impl Fn(&mut T, Timestamp),
    ) {
        self.change(|tx, changes| {
            for row in tx.range(range)? {
                let mut row = T::try_from(row).ok().expect("a range has rows of one table");
                change(&mut row, tx.now());
                changes.put(row);
            }
            Ok(())
        });
    }

    /// Changes every session without the verbs.
    pub fn change_agents(&self, change: impl Fn(&mut Agent, Timestamp)) {
        self.change_rows(&Range::agents(), change);
    }

    /// Removes the event log up to and including a revision, and these versions of entries, as retention does.
    pub fn prune(&self, until: i64, versions: &[i64]) {
        self.change(|_, changes| {
            changes.trim_events = Some(Revision::new(until));
            changes.remove_versions = versions.iter().copied().map(Revision::new).collect();
            Ok(())
        });
    }

    /// Makes all sessions sessions without a known process.
    pub fn forget_processes(&self) {
        self.change_agents(|agent, _| (agent.pid, agent.process) = (None, None));
    }

    /// Makes the last heartbeat of every session this old. `seen` is when others last saw its process running.
    pub fn set_heartbeats(&self, age: Duration, seen: Duration) {
        self.change_agents(|agent, now| {
            (agent.last_beat_at, agent.last_seen_at) = (now.minus(age), now.minus(seen));
        });
    }

    /// Makes every entry with a TTL expire.
    pub fn let_time_pass(&self) {
        match &self.served {
            Some(board) => board.let_time_pass(),
            None => let_time_pass(&self.tables()),
        }
    }

    /// Waits until a process has waited for something on the board, which comes after the sweep at its start. It creates
    /// the file that it sleeps on, where there is one. On a server it blocks on the event log.
    #[track_caller]
    pub fn wait_until_followed(&self) {
        let mut name = self.database().into_os_string();
        if cfg!(target_os = "linux") {
            name.push("-wake");
        }
        let file = PathBuf::from(name);
        wait_until("a process that waits", || match &self.served {
            Some(board) => board.is_followed().then_some(()),
            None => file.exists().then_some(()),
        });
    }

    /// Runs the program to its end.
    #[track_caller]
    pub fn run(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
        Output::of(self.command(arguments).run_to_end())
    }

    /// Runs a call that must succeed, and returns its JSON.
    #[track_caller]
    pub fn json(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Value {
        let arguments = arguments.into_iter().map(|argument| argument.as_ref().to_owned());
        self.run(arguments.chain([OsString::from("--json")])).success().json()
    }

    /// The command that runs the program, for tests that change its environment or pipes.
    pub fn command(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(program());
        command.args(arguments);
        self.furnish(command)
    }

    /// A shell with the same environment, in which `blackboard` is the program.
    pub fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        self.furnish(command)
    }

    /// Runs a call that must succeed, with a terminal of this width as its standard output, and returns what the
    /// terminal shows.
    #[track_caller]
    pub fn on_terminal(
        &self,
        columns: u16,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> String {
        show_on_terminal(columns, self.command(arguments))
    }

    /// Everything below the directory: paths, modes and contents, to check that nothing was changed.
    pub fn contents(&self) -> Vec<(PathBuf, u32, Vec<u8>)> {
        let mut found = Vec::new();
        let mut waiting = vec![self.path().to_owned()];
        while let Some(path) = waiting.pop() {
            let metadata = std::fs::symlink_metadata(&path).unwrap();
            let content = if metadata.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
            if metadata.is_dir() {
                waiting.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
            found.push((path, metadata.permissions().mode(), content));
        }
        found.sort();
        found
    }

    /// An environment with only this directory and the program. Sessions belong to this process, which runs as long as the test:
    /// an agent that runs the tests does not affect them.
    fn furnish(&self, mut command: Command) -> Command {
        let programs = program().parent().unwrap().as_os_str().to_owned();
        let mut path = programs;
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        command.current_dir(self.path()).stdin(Stdio::null()).env_clear();
        command
            .env("HOME", self.path())
            // The time zone of the machine must not affect local times.
            .env("TZ", "UTC")
            .env("PATH", path)
            .env("BLACKBOARD_PID", std::process::id().to_string())
            // A hook that exceeds its time limit prints nothing. Most tests need its answer on a slow machine, too.
            .env("BLACKBOARD_HOOK_DEADLINE", "60000");
        if self.names_file || self.served.is_some() {
            command.env("BLACKBOARD_DB", self.location());
        }
        // On a busy machine the server of all tests takes longer than commands usually wait.
        if self.served.is_some() && patience() > Duration::from_secs(45) {
            command.env("BLACKBOARD_REDIS_TIMEOUT", (patience() / 3).as_secs().to_string());
        }
        command
    }
}

impl Output {
    /// From what the operating system returns; the text has to be UTF-8.
    pub fn of(output: std::process::Output) -> Output {
        Output {
            code: output.status.code().expect("ended by itself"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs a command to its end, with this standard input. It may stop reading early.
    #[track_caller]
    pub fn fed(command: &mut Command, input: impl Into<Vec<u8>>) -> Output {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (mut pipe, input) = (child.stdin.take().unwrap(), input.into());
        // In a thread, because a pipe that is not read fills up.
        std::thread::spawn(move || pipe.write_all(&input));
        Output::of(child.run_to_end())
    }

    /// The answer as JSON: exactly one line.
    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "one line of JSON, not {self:?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The same, from a call that succeeded.
    #[track_caller]
    #[expect(clippy::return_self_not_must_use, reason = "often nothing but the success matters")]
    pub fn success(self) -> Output {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }

    /// The JSON of a call that was refused with this code.
    #[track_caller]
    pub fn refused(&self, code: blackboard::Code) -> Value {
        let json = self.json();
        assert_eq!(
            (self.code, json["ok"].as_bool(), json["code"].as_str()),
            (i32::from(code.exit_code()), Some(false), Some(code.as_str())),
            "{self:?}"
        );
        json
    }
}

/// Runs a command that has to succeed, with a terminal of this width as its standard output, and returns what the terminal
/// shows.
#[track_caller]
pub fn show_on_terminal(columns: u16, mut command: Command) -> String {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let mut terminal = File::from(openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap());
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let size = rustix::termios::Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(&terminal, size).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let other_end = File::options().read(true).write(true).open(&name).unwrap();
    command.env("NO_COLOR", "1").stdout(other_end).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    // A terminal ends only when no process has its other side open.
    drop(command);
    let reader = std::thread::spawn(move || {
        let (mut shown, mut buffer) = (Vec::new(), [0; 4096]);
        // Linux reports the end as an error.
        while let Ok(count @ 1..) = terminal.read(&mut buffer) {
            shown.extend_from_slice(&buffer[..count]);
        }
        shown
    });
    let ended = Output::of(child.run_to_end()).success();
    assert_eq!(ended.stderr, "");
    String::from_utf8(reader.join().unwrap()).unwrap().replace("\r\n", "\n")
}

/// A call with more options: before `--`, because everything after it belongs to another program.
pub fn with_options<T: PartialEq<str>>(mut call: Vec<T>, options: impl IntoIterator<Item = T>) -> Vec<T> {
    let end = call.iter().position(|word| *word == *"--").unwrap_or(call.len());
    call.splice(end..end, options);
    call
}

/// Every command of the program, from its help text.
pub fn commands() -> Vec<String> {
    let help = Scratch::new().run(["help", "--all"]).success().stdout;
    let commands: Vec<_> =
        help.lines().filter_map(|line| Some(line.split_once("  ")?.0.to_owned())).collect();
    assert!(commands.len() > 20, "the help text lists the commands: {help}");
    commands
}

/// Makes every entry with a TTL expire, as if time had passed without any command.
pub fn let_time_pass(board: &Connection) {
    let past = "SET expires_at = '2020-01-01T00:00:00.000Z' WHERE expires_at IS NOT NULL";
    let sql = format!("BEGIN IMMEDIATE; UPDATE entries {past}; UPDATE entry_versions {past}; COMMIT");
    board.execute_batch(&sql).unwrap();
}

/// Calls `register` with the PID of a process that runs meanwhile and has ended when this returns.
pub fn with_dying_process<T>(register: impl FnOnce(&str) -> T) -> T {
    // The process ends with its input, even if the test fails.
    let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let registered = register(&child.id().to_string());
    drop(child.stdin.take());
    wait_for(&mut child);
    registered
}

/// The PID of a process that does not exist, and never will: no system gives a number this large.
pub const MISSING_PROCESS: u32 = i32::MAX.cast_unsigned();
