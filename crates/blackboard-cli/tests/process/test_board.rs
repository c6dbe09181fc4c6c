//! A separate board for each test, and checks that hold for every board.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use blackboard::agent::{Agent, Register};
use blackboard::clock::Timestamp;
use blackboard::event::Event;
use blackboard::store::{BookkeepingRow, Page, Range, Store};
use blackboard::work::Create;
use blackboard::{Board, Metadata, Revision};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use serde_json::Value;

use crate::crowd::{Ended, end_of};
use crate::entry_checks::assert_entries_sound;
use crate::scratch::{Output, Scratch};

/// A board that no other test sees, on the engine of the test.
pub struct TestBoard {
    scratch: Scratch,
    database: PathBuf,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub id: i64,
    pub commit: i64,
    pub event_type: String,
    pub actor: Option<String>,
    pub target: Option<String>,
    pub metadata: Value,
}

impl Line {
    fn of(event: Event) -> Line {
        let metadata = event.metadata.as_ref().map(Metadata::as_str);
        Line {
            id: event.id.get(),
            commit: event.commit_id.get(),
            event_type: event.event_type.to_string(),
            actor: event.actor_id,
            target: event.target_id,
            metadata: metadata.map_or(Value::Null, |text| serde_json::from_str(text).unwrap()),
        }
    }
}

impl TestBoard {
    /// A location for a board that does not exist yet.
    pub fn new() -> TestBoard {
        let scratch = Scratch::with_file("board/local.db");
        TestBoard { database: scratch.database(), scratch }
    }

    /// The directory of this test.
    pub fn path(&self) -> &Path {
        self.scratch.path()
    }

    /// The database file, of a board that is in one.
    pub fn database(&self) -> &Path {
        &self.database
    }

    /// Whether the board is on a server, and not in a file.
    pub fn is_served(&self) -> bool {
        self.scratch.is_served()
    }

    /// Writes the home configuration.
    pub fn configure(&self, json: &str) {
        let home = self.path().join(".pai/blackboard");
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(home.join("config.json"), json).unwrap();
    }

    /// A file next to the database.
    pub fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.database.clone().into_os_string();
        name.push(ending);
        name.into()
    }

    /// The program as it would be run on this board.
    pub fn command(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        self.scratch.command(arguments)
    }

    /// A shell in which `blackboard` is the program, on this board.
    pub fn shell(&self, line: &str) -> Command {
        self.scratch.shell(line)
    }

    /// Runs the program to its end; it ends by itself.
    #[track_caller]
    pub fn run(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
        let ended = end_of(self.start(arguments));
        let code = ended.status.code().unwrap_or_else(|| panic!("ended by a signal: {ended:?}"));
        Output { code, stdout: ended.stdout, stderr: ended.stderr }
    }

    /// Runs the program with this on its standard input. It may stop reading when it has seen enough.
    #[track_caller]
    pub fn fed(&self, arguments: &[&str], input: &str) -> Output {
        Output::fed(&mut self.command(arguments), input)
    }

    /// The answer of a call that succeeds.
    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        self.run(arguments.iter().chain(&["--json"])).success().json()
    }

    /// The refusal of a call that ends with this exit code, as an object.
    #[track_caller]
    pub fn refusal(&self, code: i32, arguments: &[&str]) -> Value {
        let output = self.run(arguments.iter().chain(&["--json"]));
        assert_eq!(output.code, code, "{output:?}");
        output.json()
    }

    /// Starts the program.
    pub fn start(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs another program that runs this one: `{wrapper…} blackboard {arguments…}`.
    pub fn wrapped(&self, wrapper: &[&str], arguments: &[&str]) -> Ended {
        end_of(self.start_wrapped(wrapper, arguments))
    }

    /// Starts another program that runs this one.
    pub fn start_wrapped(&self, wrapper: &[&str], arguments: &[&str]) -> Child {
        let inner = self.command(arguments);
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).arg(inner.get_program()).args(inner.get_args());
        command.env_clear().current_dir(self.path()).stdin(Stdio::null());
        for (name, value) in inner.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The same board for the library, which prepares it faster than a process for each step could.
    pub fn library(&self) -> Board {
        self.scratch.board()
    }

    /// Its store, to look at the board often.
    pub fn store(&self) -> Arc<dyn Store> {
        self.scratch.store().0
    }

    /// Registers a session of this process, which is running.
    pub fn session(&self, name: &str) -> String {
        self.sessions(name, 1).remove(0)
    }

    /// Registers some of them: `name-0`, `name-1` and so on.
    pub fn sessions(&self, name: &str, count: usize) -> Vec<String> {
        let board = self.library();
        let register = |index| {
            let name = if count == 1 { name.to_owned() } else { format!("{name}-{index}") };
            let request = Register { pid: Some(std::process::id()), ..Register::named(&name) };
            board.agents().register(&request).unwrap().agent.session_id
        };
        (0..count).map(register).collect()
    }

    /// Creates work items: `item-0`, `item-1` and so on.
    pub fn items(&self, count: usize) {
        let board = self.library();
        for index in 0..count {
            board.work().create(&Create::new(&format!("item-{index}"), &format!("Item {index}"))).unwrap();
        }
    }

    /// A connection for the test's own SQL, of a board that is in a file.
    pub fn sql(&self) -> Connection {
        assert!(!self.is_served(), "a board on a server has no tables of its own");
        let connection = self.tables();
        // As in the program: closing the connection must not checkpoint the WAL.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
        connection
    }

    /// The board as tables, to look at it.
    pub fn tables(&self) -> Connection {
        self.scratch.tables()
    }

    /// Changes the database without the program.
    pub fn tamper(&self, sql: &str) {
        self.sql().execute_batch(sql).unwrap();
    }

    /// Changes the board with SQL, without the program. On a server it is another board afterwards.
    pub fn rewrite(&self, sql: &str) {
        self.scratch.rewrite(sql);
    }

    /// Puts a value that no command writes into a column, where another column has a value.
    #[track_caller]
    pub fn set_value(&self, table: &str, column: &str, value: impl Into<Value>, found: (&str, &str)) {
        self.scratch.set_value(table, column, &value.into(), found);
    }

    /// Makes the clock reading of every machine unreadable.
    pub fn damage_clock_readings(&self) {
        if !self.is_served() {
            return self.tamper("UPDATE marks SET value = x'ff00' WHERE name LIKE 'clock:%'");
        }
        let readings = Range::bookkeeping_rows("clock:");
        self.scratch
            .change_rows(&readings, |row: &mut BookkeepingRow, _| "\u{ff}".clone_into(&mut row.value));
    }

    /// Its directory and program, for what only they have.
    pub fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// Changes every session without the program. `change` gets the time of the board.
    pub fn change_agents(&self, change: impl Fn(&mut Agent, Timestamp)) {
        self.scratch.change_agents(change);
    }

    /// Makes all sessions sessions without a known process.
    pub fn forget_processes(&self) {
        self.scratch.forget_processes();
    }

    /// Makes every entry with a TTL expire, as if time had passed without any command.
    pub fn let_time_pass(&self) {
        self.scratch.let_time_pass();
    }

    /// Lets other users of the machine reach the board, if it is on a server.
    pub fn allow_other_users(&self) {
        self.scratch.allow_other_users();
    }

    /// Waits until a process waits for something on the board.
    #[track_caller]
    pub fn wait_until_followed(&self) {
        self.scratch.wait_until_followed();
    }

    /// One number of the board as tables.
    pub fn number(&self, sql: &str) -> i64 {
        self.tables().query_row(sql, [], |row| row.get(0)).unwrap()
    }

    /// Makes the last heartbeat of every agent come a moment ago, also if the next call takes long: it is as far ahead of the
    /// clock as a heartbeat may be. The session counts as without a heartbeat 40 s from now.
    pub fn make_all_heartbeats_recent(&self) {
        self.change_agents(|agent, now| {
            (agent.last_beat_at, agent.last_seen_at) = (now.plus(Duration::from_secs(30)), now);
        });
    }

    /// Makes the last heartbeat of every agent come eleven seconds ago. Its session was seen just now by others, so that no
    /// threshold is reached.
    pub fn make_all_heartbeats_eleven_seconds_old(&self) {
        self.scratch.set_heartbeats(Duration::from_secs(11), Duration::ZERO);
    }

    /// Makes the last heartbeat of every agent an hour old.
    pub fn make_all_heartbeats_old(&self) {
        self.scratch.set_heartbeats(Duration::from_hours(1), Duration::from_hours(1));
    }

    /// The status of a session on the board.
    pub fn status_of(&self, session: &str) -> String {
        let sql = "SELECT status FROM agents WHERE session_id = ?1";
        self.tables().query_row(sql, [session], |row| row.get(0)).unwrap()
    }

    /// How many heartbeats are kept.
    pub fn heartbeats(&self) -> i64 {
        self.number("SELECT count(*) FROM heartbeats")
    }

    /// The complete event log.
    pub fn log(&self) -> Vec<Line> {
        if self.is_served() {
            return self.log_of_the_engine();
        }
        let sql = "SELECT id, commit_id, event_type, actor_id, target_id, metadata FROM events ORDER BY id";
        let connection = self.sql();
        let mut statement = connection.prepare(sql).unwrap();
        let lines = statement.query_map([], |row| {
            let metadata: Option<String> = row.get(5)?;
            Ok(Line {
                id: row.get(0)?,
                commit: row.get(1)?,
                event_type: row.get(2)?,
                actor: row.get(3)?,
                target: row.get(4)?,
                metadata: metadata.map_or(Value::Null, |text| serde_json::from_str(&text).unwrap()),
            })
        });
        lines.unwrap().map(Result::unwrap).collect()
    }

    fn log_of_the_engine(&self) -> Vec<Line> {
        let mut events = Vec::new();
        let page = Page::after(Revision::ZERO, usize::MAX);
        let read = self.store().read(&[], &mut |tx| {
            events = tx.events(&page)?;
            Ok(())
        });
        read.unwrap();
        events.into_iter().map(Line::of).collect()
    }

    /// How many events of a type there are.
    pub fn count_of(&self, event_type: &str) -> usize {
        self.log().iter().filter(|line| line.event_type == event_type).count()
    }

    /// Checks what always holds: a file is complete, ids grow and have no gaps inside a commit, no item was claimed while
    /// another session held it, and tables and entries agree with the event log.
    #[track_caller]
    pub fn assert_sound(&self) {
        let tables = self.tables();
        let integrity: String = tables.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(integrity, "ok");
        let broken = "SELECT count(*) FROM pragma_foreign_key_check";
        assert_eq!(tables.query_row(broken, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
        let log = self.log();
        for pair in log.windows(2) {
            assert!(pair[1].id > pair[0].id, "ids only grow: {pair:?}");
            if pair[1].commit == pair[0].commit {
                assert_eq!(pair[1].id, pair[0].id + 1, "ids of one commit have a gap: {pair:?}");
            } else {
                assert_eq!(pair[1].commit, pair[1].id, "a commit is torn apart: {pair:?}");
            }
        }
        assert_eq!(held_by_table(&tables), held_by_log(&log), "the tables say what the log says");
        assert_entries_sound(&tables);
    }
}

/// The holder and the fence token of each item, by the table of items.
fn held_by_table(connection: &Connection) -> BTreeMap<String, (String, i64)> {
    let sql = "SELECT item_id, claimed_by, fence FROM work_items WHERE claimed_by IS NOT NULL \
               AND status <> 'completed'";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))));
    rows.unwrap().map(Result::unwrap).collect()
}

/// The same by the event log, which must not contradict itself.
fn held_by_log(log: &[Line]) -> BTreeMap<String, (String, i64)> {
    let mut held = BTreeMap::new();
    for line in log {
        let target = line.target.clone().unwrap_or_default();
        match line.event_type.as_str() {
            "work_claimed" => {
                let before = held.insert(target, (line.actor.clone().unwrap(), line.id));
                assert_eq!(before, None, "claimed while a session held it: {line:?}");
            }
            "work_released" | "work_completed" => {
                assert!(held.remove(&target).is_some(), "no session held it: {line:?}");
            }
            "stale_locks_released" => {
                for item in line.metadata["items"].as_array().unwrap() {
                    let (holder, fence) = held.remove(item["item_id"].as_str().unwrap()).unwrap();
                    assert_eq!((holder, item["fence"].as_i64()), (target.clone(), Some(fence)), "{line:?}");
                }
            }
            _ => {}
        }
    }
    held
}
