//! A generator of hostile boards: text that the filter would never store, in every text column of every table.
//!
//! The columns come from the schema itself, so that a new one is covered without a change here. A hostile board on a server
//! is a copy of one in a file.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use blackboard::event::{Batch, EventType};
use blackboard::follow::{Follow, Start};
use blackboard::{Board, Revision};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::scratch::{Output, Scratch};

/// Everything that moves a cursor, forges a row, changes the text direction, is invisible, or is markup.
pub const PAYLOAD: &str = "\u{1b}]0;pwn\u{7}\u{1b}[2J\u{1b}[31m\nFORGED row\r\nFORGED row\u{8}\u{7f}\u{9b}31m\u{85}FORGED\u{2028}FORGED\
     \u{202e}bidi\u{2066}\u{200f}\u{61c}\u{200b}zero\u{feff}\u{fe0f}\u{ad}\u{34f}\u{3164}\u{2800}\u{180b}\u{e0041}\u{e0100}\
     \u{200d}\u{200d}\u{200c}<script>alert(1)</script><img src=x onerror=alert(1)> **bold** ```js {{x}} ${y} ";

/// Marks strings in JSON columns that can be replaced without making the columns unreadable.
const MARKER: &str = "MARKER";

/// Columns that identify and connect rows, and words that the program itself searches for.
const IDENTITIES: &[&str] = &[
    "session_id",
    "parent_id",
    "actor_id",
    "target_id",
    "target_type",
    "event_type",
    "claimed_by",
    "owner",
    "reader",
    "item_id",
    "work_item_id",
    "blocked_by",
    "project_id",
    "project",
    "scope",
    "key",
    "tag",
    "operation_id",
    "verb",
    "name",
    "worktree",
    "path",
];

/// How much of a board is hostile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Everything, including what connects rows: much of it is found only in lists.
    Everything,
    /// Every column except those that connect rows, so that each row can be read by its id.
    AllButIdentities,
}

/// A text column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its table.
    pub table: String,
    /// Its name.
    pub name: String,
}

/// How hostile text is put into a column so that the board can still be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Before the existing text.
    InFront,
    /// Inside the existing JSON.
    InJson,
}

/// Boards made from one file.
pub struct Generator {
    template: Vec<u8>,
    columns: Vec<(Column, Option<Way>)>,
}

impl Generator {
    /// The generator of this process.
    pub fn shared() -> &'static Generator {
        static GENERATOR: OnceLock<Generator> = OnceLock::new();
        GENERATOR.get_or_init(Generator::new)
    }

    /// Fills a board, and determines what each of its columns can contain.
    fn new() -> Generator {
        let template = template();
        let columns = {
            let scratch = file_with(&template);
            text_columns(&Connection::open(scratch.database()).unwrap())
        };
        let columns = columns.into_iter().map(|column| {
            let way =
                [Way::InFront, Way::InJson].into_iter().find(|&way| is_readable(&template, &column, way));
            (column, way)
        });
        let columns: Vec<_> = columns.collect();
        let free = columns.iter().filter(|(_, way)| way.is_some()).count();
        assert!(free > 40, "most columns may hold any text, not {free} of {}", columns.len());
        Generator { template, columns }
    }

    /// A board on which all of these columns are hostile.
    pub fn board(&self, extent: Extent, payload: &str) -> Scratch {
        let scratch = scratch_with(&self.template);
        let connection = past_all_checks(&scratch);
        for (column, way) in &self.columns {
            let is_kept = extent == Extent::AllButIdentities && IDENTITIES.contains(&column.name.as_str());
            if let (Some(way), false) = (way, is_kept) {
                put(&connection, column, *way, payload);
            }
        }
        drop(connection);
        if let Some(board) = scratch.served() {
            board.load(&scratch.database());
            remove(&scratch);
        }
        scratch
    }

    /// One board for each column that cannot contain arbitrary text: times, statuses, and others that are checked when
    /// read. A server has some of them in another form: these are left out there.
    pub fn damaged_boards(&self, payload: &str) -> Vec<(Column, Scratch)> {
        let strict = self.columns.iter().filter(|(_, way)| way.is_none());
        let boards = strict.filter_map(|(column, _)| {
            let scratch = scratch_with(&self.template);
            if let Some(board) = scratch.served() {
                board.load(&scratch.database());
                remove(&scratch);
                return board
                    .put_in_front(&column.table, &column.name, payload)
                    .then_some((column.clone(), scratch));
            }
            put(&past_all_checks(&scratch), column, Way::InFront, payload);
            Some((column.clone(), scratch))
        });
        boards.collect()
    }
}

/// Fails unless a text is harmless to a terminal and to a reader of its lines.
#[track_caller]
pub fn assert_harmless(text: &str, context: &str) {
    let is_hostile = |character: char| {
        let is_own = character == '\n' || character.is_ascii_graphic() || character == ' ';
        !is_own && PAYLOAD.contains(character)
    };
    assert_eq!(text.find(is_hostile), None, "{context}: {text:?}");
    let forged = text.lines().find(|line| line.trim_start().starts_with("FORGED"));
    assert_eq!(forged, None, "{context}: {text}");
}

/// Every text column of every table of the board.
fn text_columns(connection: &Connection) -> Vec<Column> {
    let mut statement = connection
        .prepare(
            "SELECT tables.name, columns.name FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns \
             WHERE tables.type = 'table' AND columns.type = 'TEXT' ORDER BY 1, 2",
        )
        .unwrap();
    let columns =
        statement.query_map([], |row| Ok(Column { table: row.get(0)?, name: row.get(1)? })).unwrap();
    columns.map(Result::unwrap).collect()
}

fn put(connection: &Connection, column: &Column, way: Way, payload: &str) {
    let Column { table, name } = column;
    let in_json = Value::from(payload).to_string();
    let (sql, text) = match way {
        Way::InFront => {
            (format!("UPDATE {table} SET {name} = ?1 || {name} WHERE {name} IS NOT NULL"), payload)
        }
        Way::InJson => (
            format!("UPDATE {table} SET {name} = replace({name}, '{MARKER}', ?1) WHERE {name} IS NOT NULL"),
            &in_json[1..in_json.len() - 1],
        ),
    };
    let changed = connection.execute(&sql, [text]).unwrap();
    assert!(changed > 0, "the template has something in {column:?}");
}

/// Whether the board can be read with hostile text in this column.
fn is_readable(template: &[u8], column: &Column, way: Way) -> bool {
    // Rows that are not exported are read by other commands, which also parse times.
    if column.name.ends_with("_at") || column.name == "timestamp" {
        return false;
    }
    // A page that cannot be read is packed again, so that no command fails, but it cannot be copied.
    if column.table == "pages" && column.name == "content" {
        return false;
    }
    let scratch = file_with(template);
    let before = all_of(&scratch, column);
    put(&past_all_checks(&scratch), column, way, PAYLOAD);
    if way == Way::InJson && all_of(&scratch, column) == before {
        return false;
    }
    let board = Board::open(&scratch.database()).unwrap();
    let everything = Follow { start: Start::Revision(Revision::ZERO), ..Follow::default() };
    let log = board.follow(&everything).and_then(|mut log| log.next_batch(usize::MAX, Duration::ZERO));
    let is_read =
        |batch: Batch| batch.events.iter().all(|event| event.event_type.as_str() != EventType::UNREADABLE);
    board.export().is_ok() && log.is_ok_and(|batch| batch.is_none_or(is_read))
}

fn all_of(scratch: &Scratch, column: &Column) -> Vec<Option<String>> {
    let connection = Connection::open(scratch.database()).unwrap();
    let mut statement = connection.prepare(&format!("SELECT {} FROM {}", column.name, column.table)).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn past_all_checks(scratch: &Scratch) -> Connection {
    let connection = Connection::open(scratch.database()).unwrap();
    connection.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON").unwrap();
    connection
}

/// A directory with a copy of the board, and a place for it on the engine of the test.
fn scratch_with(template: &[u8]) -> Scratch {
    let scratch = Scratch::new();
    write(&scratch.database(), template);
    scratch
}

/// A directory with a copy of the board.
fn file_with(template: &[u8]) -> Scratch {
    let scratch = Scratch::in_a_file();
    write(&scratch.database(), template);
    scratch
}

fn write(database: &Path, template: &[u8]) {
    let directory = database.parent().unwrap();
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).unwrap();
    fs::write(database, template).unwrap();
    fs::set_permissions(database, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Removes the file of a board that was copied to a server.
fn remove(scratch: &Scratch) {
    fs::remove_dir_all(scratch.database().parent().unwrap()).unwrap();
}

/// The file of a board with a value in every text column.
fn template() -> Vec<u8> {
    let scratch = Scratch::in_a_file();
    let metadata = json!({ "text": MARKER }).to_string();
    let marked = ["--metadata", &metadata];
    let calls: &[&[&str]] = &[
        &["project", "register", "pai", "--name", "PAI", "--path", "/src/pai", "--repo", "o/r"],
        &["project", "register", "pai"],
        &[
            "agent",
            "register",
            "--name",
            "Ivy",
            "--session-hint",
            "ivy",
            "--project",
            "pai",
            "--work",
            "Review",
        ],
        &["agent", "register", "--name", "Helper", "--session-hint", "helper", "--parent", "ivy"],
        &["agent", "register", "--name", "Oak", "--session-hint", "oak"],
        &["agent", "register", "--name", "Gone", "--session-hint", "gone"],
        &["agent", "deregister", "gone"],
        &[
            "work",
            "create",
            "open",
            "--title",
            "Open",
            "--description",
            "Lines\nof text",
            "--source-ref",
            "o/r#7",
        ],
        &["work", "claim", "held", "--title", "Held", "--project", "pai", "--session", "ivy"],
        &["work", "create", "waits", "--title", "Waits", "--blocked-by", "held"],
        &["work", "block", "open", "--blocked-by", "later", "--reason", MARKER],
        &["work", "claim", "done", "--title", "Done", "--session", "ivy"],
        &["work", "complete", "done", "--summary", "Done", "--session", "ivy"],
        &[
            "agent",
            "heartbeat",
            "--session",
            "ivy",
            "--progress",
            "Half",
            "--work-item",
            "held",
            "--op",
            "op",
        ],
        &["write", "fact", "[\"MARKER\"]", "--agent", "analyst", "--tag", "a", "--tag", MARKER],
        &["write", "fact", "{\"MARKER\":\"MARKER\"}", "--agent", "analyst", "--ttl", "1d", "--tag", MARKER],
        &["scope", "create", "cache", "--ttl", "1h", "--max-entries", "9", "--validate", "MARKER*=int"],
        &[
            "protocol",
            "define",
            "review",
            "review:{id}",
            "--summary",
            MARKER,
            "--schema",
            "{\"type\":\"object\"}",
        ],
        &["page", "map", "default"],
        &["write", "gone", "1"],
        &["delete", "gone"],
        &["write", "leased", "\"MARKER\"", "--lease", "--session", "ivy"],
        &["lock", "acquire", "deploy", "--note", MARKER, "--session", "ivy"],
        &["file", "reserve", "src/", "--note", MARKER, "--session", "ivy"],
        &["observe", "--session", "ivy"],
    ];
    for call in calls {
        let takes_metadata = matches!(call[..2], ["project" | "agent", "register"] | ["work", "create"])
            || call.starts_with(&["write", "fact"]);
        let more: &[&str] = if takes_metadata { &marked } else { &[] };
        scratch.run(call.iter().chain(more)).success();
    }
    let edit = json!({"tool_name": "Edit", "tool_input": {"file_path": "notes.md"}});
    hook(&scratch, "PostToolUse", "ivy", edit);
    let database = scratch.database();
    let connection = Connection::open(&database).unwrap();
    for Column { table, name } in text_columns(&connection) {
        let count = |condition: &str| -> i64 {
            let sql = format!("SELECT count(*) FROM {table} WHERE {condition}");
            connection.query_row(&sql, [], |row| row.get(0)).unwrap()
        };
        assert!(count("1") > 0, "the template has rows in {table}");
        if count(&format!("{name} IS NOT NULL")) == 0 {
            connection
                .execute(&format!("UPDATE {table} SET {name} = '2026-02-03T15:30:00.000Z'"), [])
                .unwrap();
        }
    }
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    fs::read(database).unwrap()
}

/// Calls a hook of Claude Code, and returns its answer.
pub fn hook(scratch: &Scratch, event: &str, session: &str, more: Value) -> String {
    let mut call =
        json!({"cwd": scratch.path().to_str().unwrap(), "session_id": session, "hook_event_name": event});
    let Value::Object(more) = more else { panic!("{more} is an object") };
    call.as_object_mut().unwrap().extend(more);
    let output = Output::fed(&mut scratch.command(["hook", "claude"]), call.to_string());
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    output.stdout
}
