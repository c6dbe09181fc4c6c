//! The write-ahead log (WAL) is kept between commands, and stays small.

use std::fs::File;
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::crowd::{end_of, kill, wait_until};
use crate::machine::can_trace;
use crate::scale::{Chance, progress, size};
use crate::scratch::Output;
use crate::test_board::TestBoard;

const LIMIT: u64 = 2 * 1024 * 1024;

/// More bytes than the WAL keeps between two commits of a process that stays open.
const LARGE: usize = 6_000_000;

#[test]
fn wal_stays_small_after_many_commands() {
    let commands = size(300, 10_000);
    let board = TestBoard::new();
    let session = board.session("Ivy");
    let mut largest = 0;
    for index in 0..commands / 5 {
        let item = format!("item-{index}");
        board.run(["work", "create", &item, "--title", "Work"]).success();
        board.run(["work", "claim", &item, "--session", &session]).success();
        board.run(["agent", "heartbeat", "--session", &session, "--progress", "half"]).success();
        board.run(["observe", "--session", &session]).success();
        board.run(["work", "complete", &item, "--session", &session]).success();
        largest = largest.max(log_length(&board));
        progress("wal, commands", (index + 1) * 5, commands);
    }
    println!("wal: {largest} bytes at most in {commands} commands");
    assert!(largest <= LIMIT, "{largest} bytes");
    board.assert_sound();
}

#[test]
fn readers_alone_keep_the_wal_small() {
    let readers = size(500, 2_000);
    let board = TestBoard::new();
    let sessions = board.sessions("agent", readers);
    board
        .run(["work", "create", "item", "--title", "Folds back what preparing the board has written"])
        .success();
    for session in &sessions {
        // Each stores a cursor, which is the only thing that is ever written here.
        board.run(["observe", "--session", session]).success();
    }
    let length = log_length(&board);
    println!("wal: {length} bytes after {readers} readers that stored a cursor each");
    assert!(length <= LIMIT, "{length} bytes");
}

fn log_length(board: &TestBoard) -> u64 {
    std::fs::symlink_metadata(board.beside("-wal")).map_or(0, |metadata| metadata.len())
}

#[test]
fn the_wal_is_short_again_after_one_large_commit() {
    let board = TestBoard::new();
    let mut writer = Writer::new(&board, 1);
    writer.commit(LARGE);
    // The command of the commit may have checkpointed it; one more command certainly does.
    board.run(["list"]).success();
    assert!(log_length(&board) <= LIMIT, "{} bytes", log_length(&board));
    for _ in 0..3 {
        writer.commit(10);
        assert!(log_length(&board) <= LIMIT, "{} bytes", log_length(&board));
    }
    board.assert_sound();
}

#[test]
fn the_wal_is_short_again_after_a_stuck_reader() {
    let board = TestBoard::new();
    let mut writer = Writer::new(&board, 2);
    let reader = stuck_reader(&board);
    for _ in 0..60 {
        writer.commit(60_000);
    }
    assert!(log_length(&board) > LIMIT, "the reader keeps the WAL as it is");
    drop(reader);
    board.run(["list"]).success();
    assert!(log_length(&board) <= LIMIT, "{} bytes", log_length(&board));
    board.assert_sound();
}

/// A hook has 300 ms, and a checkpoint of this takes longer on many disks.
const TOO_LONG_FOR_A_HOOK: u64 = 220_000_000;

#[test]
fn hooks_alone_make_a_long_wal_short_again() {
    let board = TestBoard::new();
    board.run(["write", "first", "0"]).success();
    make_wal_long(&board);
    let mut sessions = 0;
    wait_until("a short WAL", || {
        sessions += 1;
        // Other hooks may read the WAL at each try of the process: then the next hook starts another one.
        let _ = set_last_start(&board, A_MINUTE_AGO);
        let brief = hook(&board, &format!("agent-{sessions}"), |_| {});
        assert!(brief.contains("additionalContext"), "{brief}");
        (log_length(&board) <= LIMIT).then_some(())
    });
    println!("wal: short after {sessions} hooks");
    board.assert_sound();
}

#[test]
fn a_hook_does_not_checkpoint_a_long_wal_itself() {
    if !can_trace("what a hook writes") {
        return;
    }
    let board = TestBoard::new();
    board.run(["write", "first", "0"]).success();
    make_wal_long(&board);
    let trace = board.path().join("trace");
    // Without the processes and threads that it starts: its answer comes from the first thread.
    let wrapper = ["-qq", "-o", trace.to_str().unwrap(), "-P", board.database().to_str().unwrap()];
    let wrapper = [&wrapper[..], &["-e", "trace=pwrite64"]].concat();
    let brief = hook(&board, "agent", |command| *command = wrapped_in("strace", &wrapper, command));
    assert!(brief.contains("additionalContext"), "{brief}");
    let trace = std::fs::read_to_string(&trace).unwrap();
    assert!(!trace.contains("pwrite64"), "{} writes to the database", trace.lines().count());
}

/// Opening a board reads its WAL, which takes longer than a hook has if the WAL is very long.
#[test]
fn a_hook_that_cannot_read_a_long_wal_in_time_makes_it_short() {
    if !can_trace("a slow disk") {
        return;
    }
    let board = TestBoard::new();
    board.run(["write", "first", "0"]).success();
    make_wal_long(&board);
    let wal = board.beside("-wal");
    let wrapper = ["-qq", "-o", "/dev/null", "-P", wal.to_str().unwrap()];
    let wrapper = [&wrapper[..], &["-e", "inject=pread64:delay_enter=3s:when=1"]].concat();
    // A machine under load may not start the other process within the 200 ms that are left for it; then the next hook does.
    wait_until("a hook that starts the other process", || {
        let brief = hook(&board, "agent", |command| {
            command.env("BLACKBOARD_HOOK_DEADLINE", "2000");
            *command = wrapped_in("strace", &wrapper, command);
        });
        assert_eq!(brief, "");
        // A hook may end before it has noted what it started.
        (maintained_by(&board).is_some() || log_length(&board) <= LIMIT).then_some(())
    });
    wait_until("a short WAL", || (log_length(&board) <= LIMIT).then_some(()));
    board.assert_sound();
}

/// Which process a hook has started last to maintain the board.
fn maintained_by(board: &TestBoard) -> Option<String> {
    std::fs::read_to_string(board.beside("-maintenance")).ok().filter(|text| text.ends_with('\n'))
}

/// Longer ago than a hook waits before it starts another process.
const A_MINUTE_AGO: Duration = Duration::from_secs(61);

/// Shorter ago than that.
const NOW: Duration = Duration::ZERO;

/// Sets when a hook last started a process, however long the test has taken since then.
fn set_last_start(board: &TestBoard, ago: Duration) -> io::Result<()> {
    let sidecar = File::options().write(true).open(board.beside("-maintenance"))?;
    sidecar.set_modified(SystemTime::now() - ago)
}

#[test]
fn hooks_start_one_process_a_minute_while_a_reader_keeps_the_wal_long() {
    let board = TestBoard::new();
    board.run(["write", "first", "0"]).success();
    let _reader = make_wal_long_and_read(&board);
    let start = |session: &str| {
        let brief = hook(&board, session, |_| {});
        assert!(brief.contains("additionalContext"), "{brief}");
        maintained_by(&board)
    };
    let first = start("agent-0");
    assert!(first.is_some(), "no process was started");
    for number in 1..4 {
        set_last_start(&board, NOW).unwrap();
        assert_eq!(start(&format!("agent-{number}")), first, "a moment later");
    }
    let sidecar = File::options().write(true).open(board.beside("-maintenance")).unwrap();
    // The process has ended once this lock is free.
    wait_until("the end of the process", || sidecar.try_lock().ok());
    set_last_start(&board, A_MINUTE_AGO).unwrap();
    assert_eq!(start("agent-4"), first, "a process has the lock");
    sidecar.unlock().unwrap();
    set_last_start(&board, NOW).unwrap();
    assert_eq!(start("agent-5"), first, "a moment later, and no process has the lock");
    set_last_start(&board, A_MINUTE_AGO).unwrap();
    let second = start("agent-6");
    assert!(second.is_some() && second != first, "a minute later, and no process has the lock");
    wait_until("the end of the process", || sidecar.try_lock().ok());
    assert!(log_length(&board) > LIMIT, "the reader keeps the WAL as it is");
    board.assert_sound();
}

#[test]
fn maintenance_for_hooks_neither_sweeps_nor_prunes() {
    let board = TestBoard::new();
    let session = board.session("Ivy");
    board.json(&["agent", "heartbeat", "--session", &session]);
    board.tamper(
        "UPDATE agents SET pid = NULL, process = NULL;
         UPDATE heartbeats SET timestamp = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-8 days');
         INSERT INTO heartbeats (session_id, timestamp)
             SELECT session_id, strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-9 days') FROM heartbeats;",
    );
    board.make_all_heartbeats_old();
    drop(make_wal_long_and_read(&board));
    let count = |rows: &str| board.number(&format!("SELECT count(*) FROM {rows}"));
    let counts = || (count("agents WHERE status = 'active'"), count("heartbeats"));
    let before = counts();
    assert_eq!(before.0, 1);
    let output = board.run(["sweep", "--maintain-only"]).success();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("", ""));
    assert!(log_length(&board) <= LIMIT, "{} bytes", log_length(&board));
    assert_eq!(counts(), before);
    assert!(!board.run(["sweep", "--help"]).success().stdout.contains("maintain"), "it is for hooks only");
}

/// Makes a long WAL, as the writers beside a stuck reader do, and ends the reader.
fn make_wal_long(board: &TestBoard) {
    drop(make_wal_long_and_read(board));
    assert!(log_length(board) >= TOO_LONG_FOR_A_HOOK);
}

/// The same, with the reader that keeps the WAL as it is.
fn make_wal_long_and_read(board: &TestBoard) -> Connection {
    let reader = stuck_reader(board);
    board.tamper("CREATE TABLE rubbish (bytes BLOB)");
    while log_length(board) < TOO_LONG_FOR_A_HOOK {
        board.tamper("INSERT INTO rubbish VALUES (zeroblob(20000000))");
    }
    // A board refuses foreign tables.
    board.tamper("DROP TABLE rubbish");
    reader
}

/// What the start of a session answers.
fn hook(board: &TestBoard, session: &str, change: impl FnOnce(&mut Command)) -> String {
    let mut command = board.command(["hook", "claude"]);
    change(&mut command);
    let call = json!({"session_id": session, "hook_event_name": "SessionStart", "cwd": board.path()});
    Output::fed(&mut command, call.to_string()).success().stdout
}

/// A command that another program runs.
fn wrapped_in(program: &str, arguments: &[&str], inner: &Command) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).arg(inner.get_program()).args(inner.get_args()).env_clear();
    if let Some(directory) = inner.get_current_dir() {
        command.current_dir(directory);
    }
    for (name, value) in inner.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command
}

/// With random commit sizes, stuck readers, and long-lived processes that end or are killed: two commands after the last of
/// them the WAL is short, and a write costs what it costs on a new board.
#[test]
fn two_commands_make_the_wal_short_whatever_happened_before() {
    let traces = can_trace("what a write costs");
    let usual = if traces { usual_cost_of_a_write() } else { 0 };
    let cases = size(6, 100);
    for case in 0..cases {
        let board = TestBoard::new();
        board.session("Ivy");
        let mut writer = Writer::new(&board, case);
        let (mut reader, mut server) = (None, None);
        for _ in 0..4 + writer.chance.below(8) {
            writer.step(&mut reader, &mut server);
        }
        let largest = log_length(&board);
        drop(reader);
        if let Some(server) = server {
            server.end(writer.chance.below(2) == 0);
        }
        for _ in 0..2 {
            let commands: [&[&str]; 4] =
                [&["list"], &["write", "probe", "1"], &["status"], &["observe", "--since", "1h"]];
            board.run(commands[writer.chance.below(4)]).success();
        }
        let length = log_length(&board);
        println!("wal: case {case}: {largest} bytes, then {length}: {:?}", writer.done);
        assert!(length <= LIMIT, "case {case}: {length} bytes after {:?}", writer.done);
        if traces {
            let cost = cost_of_a_write(&board);
            // A page more for each level that a tree has grown by, and each page is two calls.
            assert!(
                cost <= usual + 24,
                "case {case}: {cost} calls, {usual} on a new board: {:?}",
                writer.done
            );
        }
        board.assert_sound();
        progress("wal, cases", case + 1, cases);
    }
}

/// Writes random sizes to a board.
struct Writer<'a> {
    board: &'a TestBoard,
    chance: Chance,
    commits: usize,
    /// What was done, for the message of a failure.
    done: Vec<String>,
}

impl<'a> Writer<'a> {
    fn new(board: &'a TestBoard, seed: usize) -> Writer<'a> {
        board.run(["write", "first", "0"]).success();
        Writer { board, chance: Chance::new(seed), commits: 0, done: Vec::new() }
    }

    fn step(&mut self, reader: &mut Option<Connection>, server: &mut Option<LongLived<'a>>) {
        match self.chance.below(8) {
            0 | 1 => {
                let sixths = 1 + self.chance.below(6);
                self.commit(LARGE / 6 * sixths);
            }
            2 | 3 => (0..=self.chance.below(6)).for_each(|_| self.commit(60_000)),
            4 => {
                self.done.push("a reader begins".to_owned());
                reader.get_or_insert_with(|| stuck_reader(self.board));
            }
            5 => {
                self.done.push("a reader ends".to_owned());
                *reader = None;
            }
            6 => {
                if let Some(server) = server.take() {
                    let by_force = self.chance.below(2) == 0;
                    self.done.push(format!("a server ends, killed: {by_force}"));
                    server.end(by_force);
                }
            }
            _ => {
                let (count, bytes) = (1 + self.chance.below(8), 1 + self.chance.below(900_000));
                self.done.push(format!("a server writes {count} times {bytes} bytes"));
                let server = server.get_or_insert_with(|| LongLived::start(self.board));
                (0..count).for_each(|_| server.write(bytes));
            }
        }
    }

    /// One command that commits values of this size in total.
    fn commit(&mut self, bytes: usize) {
        self.commits += 1;
        self.done.push(format!("a command writes {bytes} bytes"));
        // A value has its own limit.
        let part = bytes.min(900_000);
        let writes: Vec<Value> = (0..bytes.div_ceil(part))
            .map(|index| json!({"write": {"key": format!("k:{index}"), "value": "x".repeat(part)}}))
            .collect();
        self.board.fed(&["txn"], &json!({"then": writes}).to_string()).success();
    }
}

/// A reader that has begun and does not end. Its transaction lasts until it is dropped.
fn stuck_reader(board: &TestBoard) -> Connection {
    let reader = board.sql();
    reader.execute_batch("BEGIN; SELECT count(*) FROM events").unwrap();
    reader
}

/// A process that keeps the board open and writes: the MCP server.
struct LongLived<'a> {
    board: &'a TestBoard,
    server: Child,
    writes: usize,
}

impl<'a> LongLived<'a> {
    fn start(board: &'a TestBoard) -> LongLived<'a> {
        let mut command = board.command(["mcp"]);
        let server = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = LongLived { board, server: server.spawn().unwrap(), writes: 0 };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "probe", "version": "1"},
        });
        server.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}));
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    fn send(&mut self, message: &Value) {
        let input = self.server.stdin.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
    }

    /// Writes, and waits until it is on the board.
    fn write(&mut self, bytes: usize) {
        self.writes += 1;
        let key = format!("server:{}:{}", self.server.id(), self.writes);
        let call = json!({"name": "entry_write", "arguments": {"key": key, "value": "x".repeat(bytes)}});
        self.send(&json!({"jsonrpc": "2.0", "id": self.writes, "method": "tools/call", "params": call}));
        let connection = self.board.sql();
        let written = || {
            let sql = "SELECT count(*) FROM entries WHERE key = ?1";
            connection.query_row(sql, [&key], |row| row.get::<_, i64>(0)).unwrap() > 0
        };
        wait_until("what the server writes", || written().then_some(()));
    }

    fn end(mut self, by_force: bool) {
        if by_force {
            kill(self.server.id());
        }
        drop(self.server.stdin.take());
        end_of(self.server);
    }
}

/// How many pages a write reads and writes at most on a new board, in the course of a WAL.
fn usual_cost_of_a_write() -> usize {
    let board = TestBoard::new();
    board.session("Ivy");
    board.run(["write", "probe", "0"]).success();
    // Enough writes for the WAL to become as long as it may be between two commands.
    (0..60).map(|_| cost_of_a_write(&board)).max().unwrap()
}

/// How often a write reads and writes the files of the board.
fn cost_of_a_write(board: &TestBoard) -> usize {
    let (log, trace) = (board.beside("-wal"), board.path().join("trace"));
    let (log, output) = (log.to_str().unwrap(), trace.to_str().unwrap());
    let database = board.database().to_str().unwrap();
    let wrapper = ["strace", "-f", "-qq", "-o", output, "-P", log, "-P", database];
    let wrapper = [&wrapper[..], &["-e", "trace=pread64,pwrite64"]].concat();
    let ended = board.wrapped(&wrapper, &["write", "probe", "1"]);
    assert!(ended.status.success(), "{ended:?}");
    std::fs::read_to_string(&trace).unwrap().lines().count()
}
