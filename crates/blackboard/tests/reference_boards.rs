//! Boards of ivy-blackboard are upgraded completely, or left unchanged: a database of each of its schema versions, with
//! rows in every table.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blackboard::agent::{AgentFilter, AgentStatus, Register};
use blackboard::clock::{Clock, FixedClock, Timestamp};
use blackboard::event::Since;
use blackboard::store::sqlite::{KeptInMetadata, Sqlite, SqliteOptions, Upgraded};
use blackboard::work::{Claim, Complete, Status};
use blackboard::{Board, Code};
use rusqlite::config::DbConfig;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};
use testkit::reference::{self, VERSIONS};

const IVY: &str = "11111111-aaaa-4aaa-8aaa-000000000001";

/// The tables that both programs have, and their keys.
const TABLES: [(&str, &str); 5] = [
    ("projects", "project_id"),
    ("agents", "session_id"),
    ("work_items", "item_id"),
    ("heartbeats", "id"),
    ("events", "id"),
];

/// A database file at its own path.
struct Database {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    _directory: tempfile::TempDir,
}

impl Database {
    fn new(sql: &str) -> Database {
        let directory = testkit::tempdir().unwrap();
        let path = directory.path().join("local.db");
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        for file in fs::read_dir(directory.path()).unwrap() {
            fs::set_permissions(file.unwrap().path(), fs::Permissions::from_mode(0o600)).unwrap();
        }
        let clock = Arc::new(FixedClock::at("2026-02-03T12:00:10Z").unwrap());
        Database { path, clock, _directory: directory }
    }

    fn of_version(version: u32) -> Database {
        Database::new(&reference::database(version))
    }

    /// The same in the journal mode of other programs.
    fn with_rollback_journal(sql: &str) -> Database {
        let database = Database::new(sql);
        let connection = Connection::open(&database.path).unwrap();
        let mode: String =
            connection.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get(0)).unwrap();
        assert_eq!(mode, "delete");
        drop(connection);
        database
    }

    fn upgrade(&self) -> blackboard::Result<Option<Upgraded>> {
        Sqlite::upgrade(&self.path, &self.clock, &SqliteOptions::default())
    }

    fn open(&self) -> blackboard::Result<Board> {
        let store = Sqlite::open(&self.path, self.clock.clone(), &SqliteOptions::default())?;
        Ok(Board::on(Arc::new(store), self.clock.clone()))
    }

    /// The files beside the database, by name.
    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let files = fs::read_dir(self.path.parent().unwrap()).unwrap().map(|file| file.unwrap().path());
        files
            .map(|file| (file.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&file).unwrap()))
            .collect()
    }
}

/// A row: its columns by name.
type Row = BTreeMap<String, Value>;

fn rows(file: &Path, sql: &str) -> Vec<Row> {
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let mut statement = connection.prepare(sql).unwrap();
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut found = Vec::new();
    let mut rows = statement.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let value = |(place, name): (usize, &String)| (name.clone(), row.get(place).unwrap());
        found.push(columns.iter().enumerate().map(value).collect());
    }
    found
}

fn text(row: &Row, column: &str) -> Option<String> {
    match row.get(column) {
        None | Some(Value::Null) => None,
        Some(Value::Text(text)) => Some(text.clone()),
        Some(Value::Integer(number)) => Some(number.to_string()),
        Some(other) => panic!("{column} is {other:?}"),
    }
}

/// The metadata of a row, as an object.
fn metadata(row: &Row) -> serde_json::Value {
    text(row, "metadata").map_or(serde_json::Value::Null, |text| serde_json::from_str(&text).unwrap())
}

/// What the rows of a table became: the upgraded row, what its metadata keeps, and the ids that block it.
struct UpgradedRow<'a> {
    row: &'a Row,
    kept: &'a serde_json::Value,
    blockers: &'a [String],
}

/// Finds every value of a row of the copy in what it became: in its column, in metadata, or among its dependencies.
#[track_caller]
fn assert_has(row: &Row, upgraded: &UpgradedRow<'_>, table: &str) {
    let UpgradedRow { row: upgraded, kept, blockers } = *upgraded;
    let own = &metadata(upgraded)["blackboard"];
    for column in row.keys() {
        let Some(value) = text(row, column) else { continue };
        let stored = text(upgraded, column);
        let [kept_json, own_json] = [kept, own].map(|object| object[column].to_string());
        let is_kept = kept[column].as_str() == Some(&value) || kept_json == value;
        let is_own = own[column].as_str().is_some_and(|own| own == value || same_time(own, &value))
            || own_json == value;
        let is_there = match column.as_str() {
            "metadata" if table == "heartbeats" => {
                is_kept
                    || serde_json::from_str(&value)
                        .is_ok_and(|value: serde_json::Value| kept[column] == value)
            }
            "metadata" if !is_kept => {
                let before: serde_json::Value = serde_json::from_str(&value).unwrap();
                before.as_object().unwrap().iter().all(|(name, value)| metadata(upgraded)[name] == *value)
            }
            "depends_on" | "blocked_by" => {
                is_kept || value.split(',').all(|id| blockers.iter().any(|blocker| blocker == id.trim()))
            }
            "failure_count" if value == "0" => true,
            _ => {
                let is_same_time = || stored.as_ref().is_some_and(|stored| same_time(stored, &value));
                stored.as_ref() == Some(&value) || is_kept || is_own || is_same_time()
            }
        };
        assert!(is_there, "{table}.{column} = {value} is missing in {upgraded:?}, {kept}");
    }
}

/// Finds every row of the copy, with all of its values, in the upgraded database.
#[track_caller]
fn assert_nothing_is_missing(database: &Database, copy: &Path) {
    let all = |file: &Path, table: &str| rows(file, &format!("SELECT * FROM {table}"));
    let upgraded_agents = all(&database.path, "agents");
    let dependencies = all(&database.path, "work_dependencies");
    for (table, key) in TABLES {
        let after = all(&database.path, table);
        for row in all(copy, table) {
            let id = text(&row, key).unwrap();
            let same = after.iter().find(|other| other[key] == row[key]);
            let same = same.unwrap_or_else(|| panic!("{table} {id} is missing"));
            // A heartbeat has no metadata here: its agent has it.
            let kept = if table == "heartbeats" {
                let agent = upgraded_agents.iter().find(|agent| agent["session_id"] == row["session_id"]);
                let beats = metadata(agent.unwrap())["heartbeats"].clone();
                let beat = beats
                    .as_array()
                    .into_iter()
                    .flatten()
                    .find(|beat| beat["id"].as_i64() == id.parse().ok());
                beat.cloned().unwrap_or_default()
            } else {
                metadata(same)["ivy_blackboard"].clone()
            };
            let blockers: Vec<String> = dependencies
                .iter()
                .filter(|dependency| table == "work_items" && dependency["item_id"] == row[key])
                .filter_map(|dependency| text(dependency, "blocked_by"))
                .collect();
            assert_has(&row, &UpgradedRow { row: same, kept: &kept, blockers: &blockers }, table);
        }
    }
    let projects = all(&database.path, "projects");
    let features = rows(copy, "SELECT name FROM sqlite_schema WHERE name = 'specflow_features'");
    for feature in features.iter().flat_map(|_| all(copy, "specflow_features")) {
        let project = projects.iter().find(|project| project["project_id"] == feature["project_id"]);
        let kept = metadata(project.unwrap())["specflow_features"].clone();
        let is_same = |kept: &serde_json::Value| {
            feature.iter().all(|(column, value)| match value {
                Value::Integer(number) => kept[column] == *number,
                _ => kept[column].as_str() == text(&feature, column).as_deref(),
            })
        };
        assert!(kept.as_array().unwrap().iter().any(is_same), "{feature:?} is missing in {kept}");
    }
}

/// Whether the second one is the first in the form without milliseconds.
fn same_time(stored: &str, before: &str) -> bool {
    stored.strip_suffix(".000Z") == Some(&before.replace(' ', "T"))
}

#[test]
fn every_row_of_every_version_is_upgraded() {
    for version in VERSIONS {
        let database = Database::of_version(version);
        let refused = database.open().map(drop).unwrap_err();
        assert_eq!(refused.code(), Code::UpgradeNeeded, "{refused}");
        let before = content(&database.path);
        let upgraded = database.upgrade().unwrap().unwrap();
        assert_eq!(upgraded.from_version, version);
        let copy = &upgraded.copy;
        assert!(copy.ends_with(format!("local.db.before-blackboard-{version}")), "{copy:?}");
        assert_eq!(fs::metadata(copy).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(content(copy), before, "the copy of version {version}");
        assert_nothing_is_missing(&database, copy);
        let counts = &upgraded.rows;
        let counts = [counts.projects, counts.agents, counts.work_items, counts.heartbeats, counts.events];
        for ((table, _), count) in TABLES.into_iter().zip(counts) {
            let [before, after] =
                [copy, &database.path].map(|file| rows(file, &format!("SELECT * FROM {table}")));
            let added = usize::from(table == "projects" && version >= 6);
            assert_eq!(after.len(), before.len() + added, "{table} of version {version}");
            assert_eq!(after.len() as u64, count, "{table} of version {version}");
        }
        assert_eq!(database.upgrade().unwrap(), None, "it is upgraded once");
    }
}

/// The statements of the schema, and all rows of all tables.
fn content(file: &Path) -> BTreeMap<String, Vec<Row>> {
    const SCHEMA: &str = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name";
    let schema = rows(file, SCHEMA);
    let tables = schema.iter().filter(|object| object["type"] == Value::Text("table".to_owned()));
    let names: Vec<String> = tables.filter_map(|table| text(table, "name")).collect();
    let content = names.into_iter().map(|name| {
        let all = rows(file, &format!("SELECT * FROM {name}"));
        (name, all)
    });
    content.chain([("sqlite_schema".to_owned(), schema.clone())]).collect()
}

#[test]
fn the_copy_of_every_version_works_as_before_the_upgrade() {
    testkit::limit_test();
    for version in VERSIONS {
        let database = Database::of_version(version);
        let copy = database.upgrade().unwrap().unwrap().copy;
        // As the documentation says: it gets the old name.
        let old = Database::new("");
        fs::copy(&copy, &old.path).unwrap();
        let program = Connection::open(&old.path).unwrap();
        program
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON;
                INSERT INTO agents (session_id, agent_name, started_at, last_seen_at)
                VALUES ('new', 'New', '2026-02-03T12:00:00.000Z', '2026-02-03T12:00:00.000Z');
                INSERT INTO heartbeats (session_id, timestamp) VALUES ('new', '2026-02-03T12:00:00.000Z');
                INSERT INTO events (timestamp, event_type, actor_id, summary)
                VALUES ('2026-02-03T12:00:00.000Z', 'agent_registered', 'new', 'x');
                UPDATE work_items SET status = 'claimed', claimed_by = 'new' WHERE item_id = 'free';
                DELETE FROM heartbeats WHERE session_id = 'new'",
            )
            .unwrap();
        let known = program.query_row("SELECT max(version) FROM schema_version", [], |row| row.get(0));
        assert_eq!(known, Ok(version));
        let event = program.query_row("SELECT max(id) FROM events", [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(event, if version == 1 { 31 } else { 32 }, "ids continue");
        drop(program);
        make_private(&old);
        assert_eq!(old.upgrade().unwrap().unwrap().rows.agents, 5, "version {version}");
    }
}

fn make_private(database: &Database) {
    for file in fs::read_dir(database.path.parent().unwrap()).unwrap() {
        fs::set_permissions(file.unwrap().path(), fs::Permissions::from_mode(0o600)).unwrap();
    }
}

#[test]
fn what_has_no_column_is_kept_and_listed() {
    testkit::limit_test();
    let sql = format!(
        "PRAGMA foreign_keys = OFF;
        ALTER TABLE heartbeats ADD COLUMN mood TEXT;
        ALTER TABLE events ADD COLUMN weight REAL;
        INSERT INTO heartbeats (id, session_id, timestamp, progress, mood, metadata, work_item_id) VALUES
            (50, '{IVY}', '2026-02-03T11:00:00.000Z', 'third', 'fine', '{{\"big\": 12345678901234567890123}}', '78'),
            (51, '{IVY}', '2026-02-03T11:00:00.000250Z', NULL, NULL, '1],[2', NULL),
            (52, '{IVY}', '2026-02-03T13:00:00+01:00', NULL, NULL, x'ff', NULL);
        INSERT INTO work_items (item_id, title, source, created_at, failure_count, depends_on, blocked_by, metadata)
        VALUES ('many', x'ff41', 'local', '2026-02-01T09:21:00.000Z', 'many', 'free, gone', 'gone', NULL),
            ('less', 'Less', 'local', '2026-02-01T09:21:00.000Z', -1, NULL, '', '{{\"blackboard\": {{\"on_hold\": 7}}}}'),
            ('half', 'Half', 'local', '2026-02-01T09:21:00.000Z', 2.5, NULL, NULL, '{{\"ivy_blackboard\": 1}}');
        INSERT INTO events (timestamp, event_type, summary, weight) VALUES
            ('2026-02-05T00:00:00.123456Z', 'x', 'x', 9e999);
        UPDATE agents SET metadata = '{{\"heartbeats\": \"mine\", \"size\": 1.0}}' WHERE session_id = '{IVY}';"
    );
    let database = Database::new(&format!("{} {sql}", reference::database(9)));
    let upgraded = database.upgrade().unwrap().unwrap();
    let one = |sql: &str| rows(&database.path, sql).remove(0);
    let item = |id: &str| one(&format!("SELECT * FROM work_items WHERE item_id = '{id}'"));
    let kept = |id: &str| metadata(&item(id))["ivy_blackboard"].clone();
    assert_eq!(kept("many")["failure_count"], "many");
    assert_eq!(kept("many")["title"]["hex"], "ff41");
    assert_eq!(
        (&kept("many")["depends_on"], &kept("many")["blocked_by"]),
        (&"free, gone".into(), &"gone".into())
    );
    assert_eq!((&kept("less")["failure_count"], &kept("half")["failure_count"]), (&(-1).into(), &2.5.into()));
    assert_eq!(kept("less")["metadata"], r#"{"blackboard": {"on_hold": 7}}"#);
    assert_eq!(kept("half")["metadata"], r#"{"ivy_blackboard": 1}"#);
    let event = one("SELECT * FROM events ORDER BY id DESC LIMIT 1");
    let event = metadata(&event)["ivy_blackboard"].clone();
    assert_eq!(
        (&event["weight"], &event["timestamp"]),
        (&"inf".into(), &"2026-02-05T00:00:00.123456Z".into())
    );
    let agent = one(&format!("SELECT * FROM agents WHERE session_id = '{IVY}'"));
    assert_eq!(metadata(&agent)["ivy_blackboard"]["metadata"], r#"{"heartbeats": "mine", "size": 1.0}"#);
    assert_eq!(metadata(&agent)["size"], 1.0);
    assert!(text(&agent, "metadata").unwrap().contains("12345678901234567890123"), "{agent:?}");
    let beats = metadata(&agent)["heartbeats"].clone();
    let beat = |id: i64| beats.as_array().unwrap().iter().find(|beat| beat["id"] == id).unwrap().clone();
    assert_eq!((&beat(50)["mood"], &beat(50)["work_item_id"]), (&"fine".into(), &"78".into()));
    // They have the same millisecond as another one.
    assert_eq!(beat(4)["timestamp"], "2026-02-03T11:00:00.000Z");
    assert_eq!(beat(50)["timestamp"], "2026-02-03T11:00:00.000Z");
    assert_eq!(
        (&beat(51)["timestamp"], &beat(51)["metadata"]),
        (&"2026-02-03T11:00:00.000250Z".into(), &"1],[2".into())
    );
    assert_eq!(beat(52)["timestamp"], "2026-02-03T13:00:00+01:00");
    assert_eq!(beat(52)["metadata"]["hex"], "ff");
    for (what, count) in [
        ("agents.metadata", 2),
        ("events.timestamp", 1),
        ("events.weight", 1),
        ("heartbeats.metadata", 4),
        ("heartbeats.mood", 1),
        ("heartbeats.timestamp", 5),
        ("heartbeats.work_item_id", 1),
        ("work_items.failure_count", 3),
        ("work_items.metadata", 2),
        ("work_items.title", 1),
    ] {
        let listed = upgraded.kept_in_metadata.iter().find(|kept| kept.what == what);
        assert_eq!(listed.map(|kept| kept.rows), Some(count), "{what}");
    }
    let board = database.open().unwrap();
    for id in ["many", "less", "half"] {
        assert_eq!(board.work().status(id).unwrap().hold.failure_count, 0);
    }
    board.export().unwrap();
}

#[test]
fn upgraded_board_works_as_any_other() {
    for version in VERSIONS {
        let database = Database::of_version(version);
        database.upgrade().unwrap().unwrap();
        let board = database.open().unwrap();
        let filter = AgentFilter { statuses: AgentStatus::ALL.to_vec(), project: None };
        let agents = board.agents().list(&filter).unwrap();
        assert_eq!(agents.len(), 4);
        let item = board.work().status("gh:owner/pai#78").unwrap();
        assert!(item.item.is_held_by(IVY) && item.item.claimed_by_name.as_deref() == Some("Ivy"));
        assert_eq!(item.item.fence.unwrap().get(), 21, "the event of its claim");
        let fence = item.item.fence;
        let stuck = board.work().status("stuck").unwrap();
        assert_eq!(
            (stuck.item.status, &*stuck.open_blockers),
            (Status::Blocked, &["gh:owner/pai#78".to_owned()][..])
        );
        let complete = Complete { fence, ..Complete::of("gh:owner/pai#78", IVY) };
        let completed = board.work().complete(&complete).unwrap();
        let unblocked: &[&str] = if version >= 8 { &["later", "stuck"] } else { &["stuck"] };
        assert_eq!(completed.unblocked, unblocked, "version {version}");
        let paused = board.work().status("paused").unwrap();
        assert_eq!((paused.item.status, paused.hold.on_hold.as_deref()), (Status::Blocked, Some("blocked")));
        let oak = board.agents().register(&Register::named("Oak")).unwrap().agent.session_id;
        for (item, since) in [("paused", 1), ("asked", 5), ("broken", 7), ("hopeless", 7)] {
            if version >= since {
                let refused = board.work().claim(&Claim::of(item, &oak)).unwrap_err();
                assert_eq!(refused.code(), Code::WorkBlocked, "{item}");
                let unblocked = board.work().unblock(item, &[], Some(&oak)).unwrap();
                assert!(unblocked.unblocked, "{item}");
            }
        }
        let claimed = board.work().claim(&Claim::of("free", &oak)).unwrap();
        assert!(claimed.item.fence.unwrap().get() > 31);
        board.export().unwrap();
        board.prune().unwrap();
    }
}

#[test]
fn event_ids_keep_their_values_and_gaps() {
    let database = Database::of_version(9);
    database.upgrade().unwrap().unwrap();
    let board = database.open().unwrap();
    let log = board.events().observe(&Since::Revision(blackboard::Revision::new(4)), &[]).unwrap();
    let mut ids = Vec::new();
    let mut after = log.after;
    while let Some(batch) = board.events().next(&log, after, 3).unwrap() {
        ids.extend(batch.events.iter().map(|event| event.id.get()));
        after = batch.last;
    }
    assert_eq!(ids, [5, 6, 9, 10, 11, 20, 21, 30, 31]);
    assert_eq!(board.status().unwrap().events_kept, 9);
}

#[test]
fn failures_and_features_are_kept() {
    let database = Database::of_version(9);
    let upgraded = database.upgrade().unwrap().unwrap();
    let board = database.open().unwrap();
    let hopeless = board.work().status("hopeless").unwrap();
    assert_eq!(
        (hopeless.hold.failure_count, hopeless.hold.failure_reason.as_deref()),
        (3, Some("Failed 3 times: red"))
    );
    assert_eq!(
        hopeless.hold.failed_at.map(|time| time.to_string()).as_deref(),
        Some("2026-02-03T09:30:00.000Z")
    );
    assert_eq!(board.work().status("later").unwrap().depends_on.as_deref(), Some("finished,gh:owner/pai#78"));
    let projects = board.projects().list().unwrap();
    let of = |id: &str| projects.iter().find(|listed| listed.project.project_id == id).unwrap();
    let features = of("pai").project.metadata.as_ref().unwrap().to_map()["specflow_features"].clone();
    assert_eq!((&features[0]["feature_id"], &features[0]["depends_on"]), (&"F-1".into(), &"F-2".into()));
    let other = of("never-registered").project.metadata.as_ref().unwrap().to_map();
    assert_eq!(other["specflow_features"][0]["title"], "Import");
    let delegate = board.agents().show("22222222-aaaa-4aaa-8aaa-000000000002").unwrap().agent;
    assert_eq!(delegate.metadata.unwrap().to_map()["heartbeats"][0]["metadata"]["tokens"], 1200);
    for what in [
        "agents.pid",
        "heartbeats.metadata",
        "specflow_features",
        "work_items.depends_on",
        "work_items.status",
    ] {
        assert!(upgraded.kept_in_metadata.iter().any(|kept| kept.what == what), "{what} is not listed");
    }
    assert!(
        upgraded.kept_in_metadata.contains(&KeptInMetadata { what: "specflow_features".to_owned(), rows: 2 })
    );
}

#[test]
fn statements_of_the_other_program_fail_after_the_upgrade() {
    for version in [1, 9] {
        let database = Database::of_version(version);
        let running = Connection::open(&database.path).unwrap();
        running.execute_batch("PRAGMA foreign_keys = ON").unwrap();
        assert_eq!(running.query_row("SELECT count(*) FROM agents", [], |row| row.get::<_, i64>(0)), Ok(4));
        database.upgrade().unwrap().unwrap();
        let before = rows(&database.path, "SELECT * FROM work_items");
        // A new process of it refuses a version that it does not know.
        let known: i64 =
            running.query_row("SELECT max(version) FROM schema_version", [], |row| row.get(0)).unwrap();
        assert!(known > 9);
        for statement in [
            "UPDATE agents SET last_seen_at = '2026-02-03T13:00:00.000Z'",
            "UPDATE work_items SET status = 'claimed' WHERE item_id = 'free'",
            "DELETE FROM heartbeats WHERE timestamp < '2030'",
            "INSERT INTO heartbeats (session_id, timestamp) VALUES ('11111111-aaaa-4aaa-8aaa-000000000001', '2026')",
            "INSERT INTO events (timestamp, event_type, summary) VALUES ('2026', 'work_created', 'x')",
            "INSERT INTO projects (project_id, display_name, registered_at) VALUES ('x', 'x', '2026')",
            "INSERT INTO work_items (item_id, title, source, created_at) VALUES ('x', 'x', 'local', '2026')",
            "DELETE FROM work_items",
        ] {
            assert!(running.execute_batch(statement).is_err(), "{statement}");
        }
        assert_eq!(rows(&database.path, "SELECT * FROM work_items"), before);
        database.open().unwrap().work().claim(&Claim::of("free", IVY)).unwrap();
    }
}

#[test]
fn what_is_not_of_that_program_is_refused_and_unchanged() {
    testkit::limit_test();
    for (statement, code) in [
        ("CREATE TRIGGER mine AFTER INSERT ON events BEGIN DELETE FROM agents; END", Code::ForeignDatabase),
        ("CREATE VIEW mine AS SELECT * FROM agents", Code::ForeignDatabase),
        ("CREATE TABLE mine (x)", Code::ForeignDatabase),
        ("DROP TABLE heartbeats", Code::ForeignDatabase),
        ("UPDATE schema_version SET version = 10 WHERE version = 9", Code::NewerSchema),
        ("DELETE FROM schema_version", Code::ForeignDatabase),
        ("UPDATE events SET id = -1 WHERE id = 5", Code::Corrupt),
        // It has no value here either, and then two agents have the same id.
        (
            "INSERT INTO agents (session_id, agent_name, started_at, last_seen_at)
            VALUES (NULL, 'x', '', ''), (NULL, 'x', '', '')",
            Code::Internal,
        ),
    ] {
        let sql = format!("{} {statement};", reference::database(9));
        for database in [Database::new(&sql), Database::with_rollback_journal(&sql)] {
            let before = database.files();
            assert_eq!(before.keys().collect::<Vec<_>>(), ["local.db"]);
            let refused = database.upgrade().unwrap_err();
            assert_eq!(refused.code(), code, "{statement}: {refused}");
            let after = database.files();
            assert_eq!(after.keys().collect::<Vec<_>>(), ["local.db"], "{statement}");
            assert!(after == before, "{statement}: the file has changed");
        }
    }
}

#[test]
fn a_refused_upgrade_changes_no_file_beside_the_database() {
    testkit::limit_test();
    let newer =
        format!("{} UPDATE schema_version SET version = 10 WHERE version = 9;", reference::database(9));
    let options = SqliteOptions { owns_directory: true, ..SqliteOptions::default() };
    for database in [Database::new(&newer), Database::with_rollback_journal(&newer)] {
        let before = database.files();
        let refused = Sqlite::upgrade(&database.path, &database.clock, &options).unwrap_err();
        assert_eq!(refused.code(), Code::NewerSchema);
        assert!(database.files() == before, "{:?}", database.files().keys());
    }
    // With what a process of the other program left in the WAL.
    let database = Database::new(&newer);
    let writer = Connection::open(&database.path).unwrap();
    writer.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
    writer.execute_batch("DELETE FROM heartbeats").unwrap();
    drop(writer);
    make_private(&database);
    let content = || {
        let mut files = database.files();
        // The index of the WAL also has the locks of readers.
        files.remove("local.db-shm");
        files
    };
    let before = content();
    assert!(!before["local.db-wal"].is_empty());
    assert_eq!(database.upgrade().unwrap_err().code(), Code::NewerSchema);
    assert!(content() == before, "the database or its WAL has changed");
}

#[test]
fn a_board_with_a_rollback_journal_is_upgraded() {
    testkit::limit_test();
    for version in VERSIONS {
        let database = Database::with_rollback_journal(&reference::database(version));
        let before = content(&database.path);
        let upgraded = database.upgrade().unwrap().unwrap();
        assert_eq!(content(&upgraded.copy), before);
        assert_nothing_is_missing(&database, &upgraded.copy);
        database.open().unwrap().agents().register(&Register::named("Oak")).unwrap();
        assert_eq!(
            rows(&database.path, "PRAGMA journal_mode")[0]["journal_mode"],
            Value::Text("wal".to_owned())
        );
    }
}

#[test]
fn a_copy_with_other_content_is_never_replaced() {
    let database = Database::of_version(3);
    let copy = database.path.with_file_name("local.db.before-blackboard-3");
    fs::write(&copy, "mine").unwrap();
    // As a killed upgrade leaves it.
    let unfinished = database.path.with_file_name("local.db.before-blackboard-3-new");
    fs::write(&unfinished, "half").unwrap();
    let upgraded = database.upgrade().unwrap().unwrap();
    assert_eq!(fs::read(&copy).unwrap(), b"mine");
    assert!(upgraded.copy.ends_with("local.db.before-blackboard-3.2"), "{:?}", upgraded.copy);
    assert!(!unfinished.exists());
}

#[test]
fn an_upgrade_that_is_only_in_the_wal_is_recognized() {
    let database = Database::of_version(9);
    // A reader keeps the checkpoint from moving the upgrade into the file.
    let reader = Connection::open(&database.path).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    assert_eq!(reader.query_row("SELECT count(*) FROM agents", [], |row| row.get::<_, i64>(0)), Ok(4));
    database.upgrade().unwrap().unwrap();
    let header = fs::read(&database.path).unwrap();
    assert_eq!(header[68..72], [0; 4], "the file itself still has the old header");
    let board = database.open().unwrap();
    board.agents().register(&Register::named("Oak")).unwrap();
    assert_eq!(database.upgrade().unwrap(), None);
    drop(reader);
}

#[test]
fn an_upgrade_whose_commit_is_written_but_not_finished_is_waited_for() {
    testkit::limit_test();
    // A board with a WAL, and a connection that has its index open, as a process that is upgrading it has.
    let database = Database::of_version(9);
    let wal = database.path.with_file_name("local.db-wal");
    let other = Connection::open(&database.path).unwrap();
    other.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
    other.execute_batch("PRAGMA journal_mode = WAL; DELETE FROM heartbeats").unwrap();
    let count =
        |of: &Connection| of.query_row("SELECT count(*) FROM heartbeats", [], |row| row.get::<_, i64>(0));
    assert_eq!(count(&other), Ok(0));
    // The same board elsewhere, with an upgrade that a reader keeps in the WAL.
    let upgraded = Database::of_version(9);
    for name in ["local.db", "local.db-wal"] {
        fs::copy(database.path.with_file_name(name), upgraded.path.with_file_name(name)).unwrap();
    }
    let reader = Connection::open(&upgraded.path).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    assert_eq!(count(&reader), Ok(0));
    upgraded.upgrade().unwrap().unwrap();
    // Frames of a commit that SQLite does not show yet.
    let frames = fs::read(upgraded.path.with_file_name("local.db-wal")).unwrap();
    assert!(frames.starts_with(&fs::read(&wal).unwrap()) && frames.len() > fs::read(&wal).unwrap().len());
    std::io::Write::write_all(&mut fs::OpenOptions::new().write(true).open(&wal).unwrap(), &frames).unwrap();
    for path in [&wal, &database.path.with_file_name("local.db-shm")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    assert_eq!(database.open().map(drop).unwrap_err().code(), Code::UpgradeNeeded);
    // Once no process has the old index, SQLite reads the WAL again, and shows it.
    drop(other);
    assert_eq!(database.upgrade().unwrap(), None);
    database.open().unwrap();
}

#[test]
fn a_board_that_is_only_in_its_wal_is_recognized_and_upgraded() {
    let database = Database::new("");
    fs::remove_file(&database.path).unwrap();
    let made = database.path.with_file_name("made.db");
    let writer = Connection::open(&made).unwrap();
    writer.execute_batch(&reference::database(4)).unwrap();
    // As a process leaves it that ends without closing the database.
    for ending in ["", "-wal"] {
        let (from, to) =
            (format!("{}{ending}", made.display()), format!("{}{ending}", database.path.display()));
        fs::copy(from, &to).unwrap();
        fs::set_permissions(&to, fs::Permissions::from_mode(0o600)).unwrap();
    }
    assert_eq!(fs::metadata(&database.path).unwrap().len(), 4096, "it has no table");
    assert_eq!(database.open().map(drop).unwrap_err().code(), Code::UpgradeNeeded);
    assert_eq!(database.upgrade().unwrap().unwrap().rows.work_items, 6);
}

#[test]
fn empty_boards_are_upgraded() {
    for version in VERSIONS {
        let database = Database::new(&reference::tables(version));
        let upgraded = database.upgrade().unwrap().unwrap();
        assert_eq!((upgraded.rows.events, upgraded.kept_in_metadata.len()), (0, 0));
        let board = database.open().unwrap();
        board.agents().register(&Register::named("Oak")).unwrap();
    }
}

#[test]
fn hostile_rows_are_kept() {
    let sql = "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON;
        INSERT INTO agents (session_id, agent_name, parent_id, status, started_at, last_seen_at, metadata)
        VALUES ('odd', 'Odd', 'missing', 'asleep', 'yesterday', '2026-02-03 10:00:00', x'ff00');
        INSERT INTO work_items (item_id, title, source, status, priority, claimed_by, project_id, created_at, depends_on)
        VALUES ('odd', 'Odd', 'x', 'sleeping', 'P9', 'missing', 'nowhere', 'never', 'odd,odd,,free');
        INSERT INTO heartbeats (session_id, timestamp, work_item_id) VALUES ('missing', '2026', 'x'), ('odd', 'x', 'y');
        INSERT INTO events (timestamp, event_type, target_type, target_id, summary, metadata)
        VALUES ('never', '', 'moon', 'x', '', '[1'), ('2026-02-05T00:00:00.000Z', 'work_claimed', 'work_item', 'odd', 'x', '7');";
    let database = Database::new(&format!("{} {sql}", reference::database(9)));
    let upgraded = database.upgrade().unwrap().unwrap();
    assert_eq!((upgraded.rows.agents, upgraded.rows.work_items, upgraded.rows.events), (5, 12, 11));
    let board = database.open().unwrap();
    let agent = board.agents().show("odd").unwrap().agent;
    assert_eq!(agent.last_seen_at, "2026-02-03T10:00:00Z".parse::<Timestamp>().unwrap());
    let kept = agent.metadata.unwrap().to_map()["ivy_blackboard"].clone();
    assert_eq!((&kept["parent_id"], &kept["status"]), (&"missing".into(), &"asleep".into()));
    assert_eq!(kept["started_at"], "yesterday");
    let item = board.work().status("odd").unwrap().item;
    assert_eq!((item.status, item.claimed_by), (Status::Blocked, None), "it depends on an open item");
    let kept = item.metadata.unwrap().to_map()["ivy_blackboard"].clone();
    for (column, value) in
        [("status", "sleeping"), ("priority", "P9"), ("claimed_by", "missing"), ("project_id", "nowhere")]
    {
        assert_eq!(kept[column], value, "{column}");
    }
    board.export().unwrap();
}
