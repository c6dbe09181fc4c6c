//! Old boards can be opened: a database file of every released schema, with data in it.
//!
//! `fixtures/schema-N.db` was written by the version of this program whose schema was N, by the code below:
//!
//! ```text
//! BLACKBOARD_WRITE_FIXTURE=1 cargo test -p blackboard --test old_boards
//! ```
//!
//! It writes only the file of the current schema, and only if the file does not exist: a released file never changes
//! again. After a new migration, run it once and commit the new file.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use blackboard::agent::{AgentStatus, CheckIn, Heartbeat, HeartbeatRow, Register};
use blackboard::clock::FixedClock;
use blackboard::entry::{Actor, Query, Value, Write};
use blackboard::event::Since;
use blackboard::file::{Check, Edited, FileActivity, FileFilter, Reserve};
use blackboard::id::CountingIds;
use blackboard::lock::{Acquire, Release};
use blackboard::page::MapScope;
use blackboard::process::FakeProcesses;
use blackboard::project::RegisterProject;
use blackboard::protocol::DefineProtocol;
use blackboard::scope::{CreateScope, Policies, ValueRules};
use blackboard::store::sqlite::{SCHEMA_VERSION, Sqlite, SqliteOptions};
use blackboard::store::{Range, Store};
use blackboard::sweep::Sweep;
use blackboard::work::{Block, Claim, Complete, Create, Priority, Status};
use blackboard::{Board, Code, Metadata, Revision};
use rusqlite::Connection;

const SESSIONS: [&str; 4] = [
    "00000000-0000-0000-0000-000000000001",
    "00000000-0000-0000-0000-000000000002",
    "00000000-0000-0000-0000-000000000003",
    "00000000-0000-0000-0000-000000000004",
];

fn fixture(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/schema-{version}.db"))
}

struct Opened {
    board: Board,
    clock: Arc<FixedClock>,
    path: PathBuf,
    _directory: tempfile::TempDir,
}

/// A board at its own path, from the file of an old version or empty.
fn opened(version: Option<u32>) -> Opened {
    let directory = testkit::tempdir().unwrap();
    let path = directory.path().join("local.db");
    if let Some(version) = version {
        fs::write(&path, fs::read(fixture(version)).unwrap()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let clock = Arc::new(FixedClock::at("2026-02-03T15:30:00Z").unwrap());
    let store = Sqlite::open(&path, clock.clone(), &SqliteOptions::default()).unwrap();
    let processes = Arc::new(FakeProcesses::default());
    processes.start(4711);
    let board = Board::on(Arc::new(store), clock.clone())
        .with_processes(processes)
        .with_ids(Arc::new(CountingIds::default()));
    Opened { board, clock, path, _directory: directory }
}

/// Adds rows to every table, in every state.
fn fill(board: &Board, clock: &FixedClock) {
    let pass = |seconds| clock.advance(Duration::from_secs(seconds));
    board
        .projects()
        .register(&RegisterProject {
            path: Some("/src/pai".to_owned()),
            repo: Some("owner/pai".to_owned()),
            ..RegisterProject::new("pai", "PAI Collab")
        })
        .unwrap();
    let ivy = Register {
        project: Some("pai".to_owned()),
        work: Some("Design the schema".to_owned()),
        pid: Some(4711),
        metadata: Some(Metadata::parse(r#"{"model": "large"}"#).unwrap()),
        ..Register::named("Ivy")
    };
    let [ivy_id, delegate, done, lost] = SESSIONS;
    board.agents().register(&ivy).unwrap();
    let delegate_of_ivy =
        Register { parent: Some(ivy_id.to_owned()), pid: Some(4711), ..Register::default() };
    assert_eq!(board.agents().register(&delegate_of_ivy).unwrap().agent.session_id, delegate);
    board.agents().register(&Register::named("Done")).unwrap();
    board.agents().register(&Register::named("Lost")).unwrap();
    board
        .work()
        .create(&Create {
            description: Some("Tables,\nindexes".to_owned()),
            project: Some("pai".to_owned()),
            source: Some("github".to_owned()),
            source_ref: Some("https://github.com/owner/pai/issues/78".to_owned()),
            priority: Some(Priority::P1),
            metadata: Some(Metadata::parse(r#"{"size": 3}"#).unwrap()),
            ..Create::new("gh:owner/pai#78", "Design SQL schema")
        })
        .unwrap();
    for id in ["finished", "dropped", "free"] {
        board.work().create(&Create::new(id, &format!("Title of {id}"))).unwrap();
    }
    let waiting = Create {
        blocked_by: vec!["gh:owner/pai#78".to_owned(), "later".to_owned()],
        ..Create::new("waiting", "Waits")
    };
    board.work().create(&waiting).unwrap();
    pass(10);
    board.work().claim(&Claim::of("gh:owner/pai#78", ivy_id)).unwrap();
    board.work().claim(&Claim::of("finished", done)).unwrap();
    board.work().claim(&Claim::of("dropped", lost)).unwrap();
    let block = Block { id: "dropped".to_owned(), blocked_by: vec!["free".to_owned()], ..Block::default() };
    board.work().block(&block).unwrap();
    let summary = Some("Done".to_owned());
    board.work().complete(&Complete { summary, ..Complete::of("finished", done) }).unwrap();
    board.agents().deregister(done).unwrap();
    board.events().advance(ivy_id, "observe", Revision::new(7)).unwrap();
    pass(301);
    let beat = remembered_beat(ivy_id);
    board.agents().heartbeat(&beat).unwrap();
    board
        .agents()
        .heartbeat(&Heartbeat { status: Some(AgentStatus::Idle), ..Heartbeat::of(delegate) })
        .unwrap();
    board.sweep(&Sweep::default()).unwrap();
    fill_with_entries(board, clock);
    fill_with_edits(board);
    fill_with_protocols(board);
    fill_with_policies(board);
    fill_with_pages(board);
    board.prune().unwrap();
}

/// Entries in every state, since schema 2, after the 21 events of the ledger.
fn fill_with_entries(board: &Board, clock: &FixedClock) {
    let [ivy, ..] = SESSIONS;
    let json = |text: &str| Value::parse(text, 1024).unwrap();
    let team = board.scope("team").acting_as(Actor::session(ivy));
    let first = Write {
        tags: vec!["finance".to_owned(), "q4".to_owned()],
        metadata: Some(Metadata::parse(r#"{"z": 1.0, "a": 1}"#).unwrap()),
        ..Write::new("result:q4", json(ODD_VALUE))
    };
    team.write(&first).unwrap();
    team.write(&Write { value: json("null"), ..first }).unwrap();
    board.scope("team").write(&Write::new("gone", json("1"))).unwrap();
    board.scope("team").delete("gone").unwrap();
    let short =
        |key: &str, seconds| Write { ttl: Some(Duration::from_secs(seconds)), ..Write::new(key, json("1")) };
    board.scope("default").write_batch(&[short("expired", 1), short("later", 86_400)]).unwrap();
    clock.advance(Duration::from_secs(1));
    assert_eq!(board.sweep(&Sweep::default()).unwrap().entries_expired, 1);
    team.write(&Write { lease: true, ..Write::new("held", json("1")) }).unwrap();
    let counted = Actor { operation: Some("op-2".to_owned()), ..Actor::default() };
    board.scope("team").acting_as(counted).increment("counter", 2).unwrap();
    let note = Some("release 2".to_owned());
    board.locks().acquire(&Acquire { note, ..Acquire::of("deploy", ivy) }).unwrap();
    board.files().reserve(&Reserve::of("/src/pai", &["src/**"], ivy)).unwrap();
}

/// Edited files, since schema 3. They have no events. The cursor of the session that got updates moves.
fn fill_with_edits(board: &Board) {
    let [ivy, ..] = SESSIONS;
    let edited = Edited {
        worktree: "/src/pai".to_owned(),
        paths: vec!["README.md".to_owned()],
        tool: Some("Edit".to_owned()),
        denied: false,
    };
    assert!(board.agents().check_in(&CheckIn { edited: Some(edited), ..CheckIn::of(ivy) }).unwrap().wrote);
}

/// A protocol, since schema 7.
fn fill_with_protocols(board: &Board) {
    let define = DefineProtocol {
        value_schema: Some("{\"type\": \"object\"}".to_owned()),
        ..DefineProtocol::new("review", "review:{repo}:{id}")
    };
    board.protocols().define(&define).unwrap();
}

/// A mapped scope with a page, since schema 10, and their events.
fn fill_with_pages(board: &Board) {
    assert_eq!(board.pages().map(&MapScope::of("team")).unwrap().pages, 2);
}

/// A scope with policies, since schema 8, and its event.
fn fill_with_policies(board: &Board) {
    board.scopes().create(&CreateScope::new("cache", cache_policies())).unwrap();
}

fn cache_policies() -> Policies {
    Policies {
        ttl: Some(Duration::from_hours(1)),
        max_entries: Some(100),
        validation: ValueRules::new(vec!["count.*=int".parse().unwrap()]),
        ..Policies::default()
    }
}

/// A repeated heartbeat on a board that remembers it.
fn remembered_beat(session: &str) -> Heartbeat {
    Heartbeat {
        progress: Some("Schema done".to_owned()),
        work_item: Some("gh:owner/pai#78".to_owned()),
        operation: Some("op-1".to_owned()),
        ..Heartbeat::of(session)
    }
}

/// A value that has to be returned unchanged.
const ODD_VALUE: &str =
    "{\"z\": 1.0, \"a\": [1e999,\n123456789012345678901234567890], \"\u{e9}\": \"\u{2028}\"}";

#[test]
fn board_of_every_schema_opens_with_its_data() {
    if std::env::var_os("BLACKBOARD_WRITE_FIXTURE").is_some() && !fixture(SCHEMA_VERSION).exists() {
        let Opened { board, clock, path, _directory } = opened(None);
        fill(&board, &clock);
        drop(board);
        let connection = Connection::open(&path).unwrap();
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        drop(connection);
        fs::copy(&path, fixture(SCHEMA_VERSION)).unwrap();
    }
    for version in 1..=SCHEMA_VERSION {
        shows_what_was_in_it(version);
    }
}

fn shows_what_was_in_it(version: u32) {
    let Opened { board, path, _directory, .. } = opened(Some(version));
    let [ivy, ..] = SESSIONS;
    shows_the_agents_that_were_in_it(&board, version);

    let work = |id: &str| board.work().status(id).unwrap();
    for (id, status, holder) in [
        ("gh:owner/pai#78", Status::Claimed, Some("Ivy")),
        ("finished", Status::Completed, Some("Done")),
        ("dropped", Status::Blocked, None),
        ("free", Status::Available, None),
        ("waiting", Status::Blocked, None),
    ] {
        let item = work(id).item;
        assert_eq!(
            (item.status, item.claimed_by_name.as_deref()),
            (status, holder),
            "{id}, schema {version}"
        );
    }
    let item = work("gh:owner/pai#78");
    assert_eq!((item.item.priority, item.item.source.as_str()), (Priority::P1, "github"));
    assert_eq!(item.item.description.as_deref(), Some("Tables,\nindexes"));
    assert_eq!(item.dependents, ["waiting"]);
    assert_eq!(work("waiting").open_blockers, ["gh:owner/pai#78", "later"]);
    assert_eq!(board.projects().status("pai").unwrap().project.remote_repo.as_deref(), Some("owner/pai"));

    let since = Since::Cursor { session: ivy.to_owned(), reader: "observe".to_owned() };
    let observation = board.events().observe(&since, &[]).unwrap();
    let until = Revision::new(match version {
        1 => 21,
        2..7 => 32,
        7 => 33,
        8 | 9 => 34,
        _ => 37,
    });
    if version >= 8 {
        assert_eq!(board.scopes().show("cache").unwrap().policies, cache_policies());
    }
    if version >= 10 {
        let listed = board.pages().list(Some("team")).unwrap();
        assert_eq!((listed.pages.len(), listed.behind()), (2, 0));
        let page = board.pages().show(&listed.pages[0].id).unwrap();
        assert_eq!(page.entries.len() as u64, listed.pages[0].entries);
    }
    assert_eq!((observation.after, observation.until), (Revision::new(7), until));
    let events = board.events().next(&observation, Revision::ZERO, 1000).unwrap().unwrap().events;
    assert_eq!(events.last().unwrap().id, until);
    assert_eq!(events.len(), usize::try_from(until.get()).unwrap());
    assert_eq!(events[0].summary, "Project \"PAI Collab\" registered");
    let newest = "Released 1 work item(s) from stale agent \"Lost\": Title of dropped";
    assert_eq!(events[20].summary, newest);

    // The board continues: the call is remembered, and a new event gets the next id.
    assert_eq!(
        board.agents().heartbeat(&remembered_beat(ivy)).unwrap().progress.as_deref(),
        Some("Schema done")
    );
    let fence = item.item.fence;
    let completed =
        board.work().complete(&Complete { fence, ..Complete::of("gh:owner/pai#78", ivy) }).unwrap();
    assert_eq!(completed.item.revision, until.next());
    assert_eq!(completed.item.summary, None);
    let works_on = if version >= 4 { "Design the schema" } else { "nothing that was kept" };
    let shown = board.agents().show(ivy).unwrap().agent;
    assert_eq!(shown.current_work.as_deref().unwrap_or("nothing that was kept"), works_on);
    if version >= 4 {
        assert_eq!(board.work().status("finished").unwrap().item.summary.as_deref(), Some("Done"));
    }
    if version >= 2 {
        shows_the_entries_that_were_in_it(&board);
    }
    if version >= 3 {
        shows_the_edits_that_were_in_it(&board);
    }
    if version >= 7 {
        let parsed = board.protocols().parse("review", "review:pai:7").unwrap();
        assert_eq!(parsed.values["repo"], "pai");
        let refused = board.protocols().check("review:pai:7", Some(&Value::null())).unwrap_err();
        assert_eq!(refused.code(), Code::ProtocolMismatch);
    }
    takes_edits(&board);
    takes_entries(&board);
    drop(board);
    let connection = Connection::open(&path).unwrap();
    let check: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
    let heartbeat = "SELECT count(*) FROM heartbeats WHERE session_id = ?1 AND progress = 'Schema done' \
                     AND work_item_id = 'gh:owner/pai#78'";
    let heartbeats: u32 = connection.query_row(heartbeat, [ivy], |row| row.get(0)).unwrap();
    assert_eq!(heartbeats, 1, "schema {version}");
    let migrated: u32 =
        connection.query_row("SELECT max(version) FROM schema_version", [], |row| row.get(0)).unwrap();
    assert_eq!(migrated, SCHEMA_VERSION);
}

fn shows_the_agents_that_were_in_it(board: &Board, version: u32) {
    let [ivy, delegate, done, lost] = SESSIONS;
    let show = |session: &str| board.agents().show(session).unwrap();
    for (session, name, status) in [
        (ivy, "Ivy", AgentStatus::Active),
        (delegate, "Ivy (delegate)", AgentStatus::Idle),
        (done, "Done", AgentStatus::Completed),
        (lost, "Lost", AgentStatus::Stale),
    ] {
        let agent = show(session).agent;
        assert_eq!((agent.agent_name.as_str(), agent.status), (name, status), "schema {version}");
    }
    let agent = show(ivy).agent;
    assert_eq!((agent.pid, agent.project.as_deref()), (Some(4711), Some("pai")));
    assert_eq!(agent.current_work.as_deref(), Some("Design SQL schema"));
    assert_eq!(agent.metadata.unwrap().as_str(), r#"{"model": "large"}"#);
    assert_eq!(show(delegate).parent_name.as_deref(), Some("Ivy"));
    assert!(show(delegate).agent.shares_process);
}

fn shows_the_entries_that_were_in_it(board: &Board) {
    let [ivy, _, done, _] = SESSIONS;
    let team = board.scope("team");
    let entry = team.entry("result:q4").unwrap().unwrap();
    assert_eq!((entry.version, entry.value.as_str(), entry.updated_by.as_str()), (2, "null", "Ivy"));
    assert_eq!(
        (entry.revision, entry.tags),
        (Revision::new(23), vec!["finance".to_owned(), "q4".to_owned()])
    );
    assert_eq!(entry.metadata.unwrap().as_str(), r#"{"z": 1.0, "a": 1}"#);
    let before = team.entry_as_of("result:q4", Revision::new(22)).unwrap().unwrap();
    assert_eq!(before.value.as_str(), ODD_VALUE);
    let tagged = Query { tags: vec!["q4".to_owned()], ..Query::default() };
    assert_eq!(team.query(&tagged).unwrap().entries.len(), 1);
    let history = team.history("gone", 9).unwrap().versions;
    assert_eq!(history.iter().map(|version| version.removed).collect::<Vec<_>>(), [true, false]);
    let listed = board.scope("default").list(&Query::default()).unwrap();
    assert_eq!(listed.iter().map(|listed| listed.key.as_str()).collect::<Vec<_>>(), ["later"]);
    assert!(listed[0].expires_at.is_some());
    let refused = team.delete("held").unwrap_err();
    assert_eq!((refused.code(), &refused.details().unwrap()["held_by"]), (Code::Held, &ivy.into()));
    let again = Actor { operation: Some("op-2".to_owned()), ..Actor::default() };
    assert_eq!(team.clone().acting_as(again).increment("counter", 2).unwrap().version, 1);
    assert_eq!(team.read("counter").unwrap().unwrap().as_str(), "2");
    let lock = &board.locks().list().unwrap()[0];
    assert_eq!((lock.name.as_str(), lock.agent_name.as_str()), ("deploy", "Ivy"));
    assert_eq!((lock.fence, lock.note.as_deref()), (Revision::new(31), Some("release 2")));
    assert_eq!(board.files().list(&FileFilter::default()).unwrap()[0].pattern, "src/**");
    // The versions of a removed key continue.
    assert_eq!(team.write(&Write::new("gone", Value::null())).unwrap().version, 2);
    assert_eq!(
        team.acting_as(Actor::session(done)).entry("held").unwrap().unwrap().session_id.as_deref(),
        Some(ivy)
    );
}

fn shows_the_edits_that_were_in_it(board: &Board) {
    let others = board.files().conflicts(&Check::of("/src/pai", &["README.md"], None)).unwrap();
    assert_eq!((others.len(), &*others[0].agent_name), (1, "Ivy"));
    assert_eq!(others[0].activity, FileActivity::Edited { tool: Some("Edit".to_owned()) });
}

/// After the migration, edits can be stored.
fn takes_edits(board: &Board) {
    let [_, delegate, ..] = SESSIONS;
    let edited =
        Edited { worktree: "/src/pai".to_owned(), paths: vec!["new.md".to_owned()], ..Edited::default() };
    board.agents().check_in(&CheckIn { edited: Some(edited), ..CheckIn::of(delegate) }).unwrap();
    let others = board.files().conflicts(&Check::of("/src/pai", &["new.md"], None)).unwrap();
    assert_eq!(others[0].session_id, delegate);
}

/// After the migration, entries can be stored.
fn takes_entries(board: &Board) {
    let [ivy, ..] = SESSIONS;
    let scope = board.scope("new").acting_as(Actor::session(ivy));
    let tagged = Write { tags: vec!["t".to_owned()], ..Write::new("a", Value::null()) };
    assert_eq!(scope.write(&tagged).unwrap().version, 1);
    assert_eq!(scope.write(&tagged).unwrap().version, 2);
    let leased = scope.write(&Write { lease: true, ..Write::new("b", Value::null()) }).unwrap();
    assert_eq!(leased.fence, Some(leased.revision));
    board.transaction(|tx| tx.scope("new").delete("a")).unwrap();
    assert_eq!(scope.history("a", 9).unwrap().versions.len(), 3);
    let ended = board.agents().deregister(ivy).unwrap();
    assert!(ended.leases.iter().any(|lease| lease.scope == "new" && lease.key == "b"));
    assert!(scope.list(&Query::default()).unwrap().is_empty());
}

#[test]
fn old_board_opened_for_reading_is_not_migrated() {
    let directory = testkit::tempdir().unwrap();
    let path = directory.path().join("local.db");
    let old = fs::read(fixture(1)).unwrap();
    fs::write(&path, &old).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let clock = Arc::new(FixedClock::at("2026-02-03T15:30:00Z").unwrap());
    let refused = Sqlite::open_to_read(&path, clock, &SqliteOptions::default()).err().unwrap();
    assert_eq!(refused.code(), Code::ReadOnly);
    assert_eq!(refused.hint(), Some(&blackboard::Hint::UpgradeBoard));
    assert!(fs::read(&path).unwrap() == old);
}

/// A name that earlier versions accepted, and that is refused for new entries.
const OLD_NAME: &str = "käse 👩\u{200d}💻";

#[test]
fn names_that_earlier_versions_accepted_can_still_be_used_and_not_created() {
    let Opened { board, path, _directory, .. } = opened(None);
    let session = board.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
    board.scope("team").write(&Write::new("name", Value::of(&1).unwrap())).unwrap();
    board.locks().acquire(&Acquire::of("name", &session)).unwrap();
    board.work().create(&Create::new("name", "An item")).unwrap();
    let connection = Connection::open(&path).unwrap();
    for (table, column) in [
        ("entries", "key"),
        ("entry_versions", "key"),
        ("entries", "scope"),
        ("entry_versions", "scope"),
        ("work_items", "item_id"),
    ] {
        let sql = format!("UPDATE {table} SET {column} = ?1 WHERE {column} = 'name' OR {column} = 'team'");
        connection.execute(&sql, [OLD_NAME]).unwrap();
    }
    drop(connection);

    let scope = board.scope(OLD_NAME);
    assert_eq!(scope.read(OLD_NAME).unwrap(), Some(Value::of(&1).unwrap()));
    assert_eq!(scope.read_batch(&[OLD_NAME]).unwrap().len(), 1);
    assert_eq!(
        scope.query(&Query { prefix: Some("käse".to_owned()), ..Query::default() }).unwrap().entries.len(),
        1
    );
    assert_eq!(scope.write(&Write::new(OLD_NAME, Value::of(&2).unwrap())).unwrap().version, 2);
    assert_eq!(scope.history(OLD_NAME, 10).unwrap().versions.len(), 2);
    scope.write(&Write::new("new key in an old scope", Value::null())).unwrap();
    scope.delete(OLD_NAME).unwrap();
    scope.write(&Write::new(OLD_NAME, Value::null())).unwrap();
    assert!(scope.purge(OLD_NAME).unwrap().versions > 0);
    assert!(board.locks().release(&Release::of(OLD_NAME, &session)).unwrap().released);
    assert!(board.locks().acquire(&Acquire::of(OLD_NAME, &session)).unwrap().acquired);
    board.work().claim(&Claim::of(OLD_NAME, &session)).unwrap();
    board.work().complete(&Complete::of(OLD_NAME, &session)).unwrap();

    let other = "b\u{200d}c";
    let refused = |code: Code| assert_eq!(code, Code::InvalidValue);
    refused(scope.write(&Write::new(other, Value::null())).unwrap_err().code());
    refused(scope.append(other, &Value::null()).unwrap_err().code());
    refused(scope.read(other).unwrap_err().code());
    refused(scope.delete(other).unwrap_err().code());
    refused(board.scope(other).write(&Write::new("a", Value::null())).unwrap_err().code());
    refused(board.locks().acquire(&Acquire::of(other, &session)).unwrap_err().code());
    refused(board.work().create(&Create::new(other, "An item")).unwrap_err().code());
    refused(board.projects().register(&RegisterProject::new(other, "A project")).unwrap_err().code());
}

#[test]
fn old_heartbeats_become_rows_and_the_last_of_equal_ones_stays() {
    let directory = testkit::tempdir().unwrap();
    let path = directory.path().join("local.db");
    fs::write(&path, fs::read(fixture(4)).unwrap()).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let connection = Connection::open(&path).unwrap();
    let [ivy, ..] = SESSIONS;
    let moment = "2026-02-03T15:00:00.000Z";
    connection.execute("DELETE FROM heartbeats", []).unwrap();
    for progress in ["first", "second"] {
        connection
            .execute(
                "INSERT INTO heartbeats (session_id, timestamp, progress, work_item_id) VALUES (?1, ?2, ?3, 'finished')",
                [ivy, moment, progress],
            )
            .unwrap();
    }
    connection.close().unwrap();
    let clock = Arc::new(FixedClock::at("2026-02-03T15:30:00Z").unwrap());
    let store = Arc::new(Sqlite::open(&path, clock.clone(), &SqliteOptions::default()).unwrap());
    let mut rows = Vec::new();
    store
        .read(&[], &mut |tx| {
            rows = tx.range(&Range::heartbeats_of(ivy))?;
            Ok(())
        })
        .unwrap();
    let kept = HeartbeatRow {
        session_id: ivy.to_owned(),
        timestamp: moment.parse().unwrap(),
        progress: Some("second".to_owned()),
        work_item_id: Some("finished".to_owned()),
    };
    assert_eq!(rows, [kept.into()]);
    // An item that a heartbeat names can be deleted, and the heartbeat stays.
    let board = Board::on(store, clock);
    board.work().delete("finished", false, None).unwrap();
    let connection = Connection::open(&path).unwrap();
    let left = "SELECT count(*) FROM heartbeats WHERE work_item_id IS NULL AND progress = 'second'";
    assert_eq!(connection.query_row(left, [], |row| row.get::<_, u32>(0)).unwrap(), 1);
}

/// Earlier versions accepted white space at the ends of keys, scopes and lock names, not in the ids of work items.
#[test]
fn names_with_white_space_at_their_ends_can_still_be_used_and_not_created() {
    let old = " name ";
    let Opened { board, path, _directory, .. } = opened(None);
    let session = board.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
    board.scope("team").write(&Write::new("name", Value::of(&1).unwrap())).unwrap();
    board.locks().acquire(&Acquire::of("name", &session)).unwrap();
    let connection = Connection::open(&path).unwrap();
    for table in ["entries", "entry_versions"] {
        connection.execute(&format!("UPDATE {table} SET key = ?1 WHERE key = 'name'"), [old]).unwrap();
        connection.execute(&format!("UPDATE {table} SET scope = ?1 WHERE scope = 'team'"), [old]).unwrap();
    }
    drop(connection);

    let scope = board.scope(old);
    assert_eq!(scope.read(old).unwrap(), Some(Value::of(&1).unwrap()));
    assert_eq!(scope.write(&Write::new(old, Value::of(&2).unwrap())).unwrap().version, 2);
    assert_eq!(scope.history(old, 10).unwrap().versions.len(), 2);
    scope.delete(old).unwrap();
    assert!(board.locks().release(&Release::of(old, &session)).unwrap().released);

    let refused = |code: Code| assert_eq!(code, Code::InvalidValue);
    for new in [" new", "new ", "new\u{3000}"] {
        refused(board.scope("default").write(&Write::new(new, Value::null())).unwrap_err().code());
        refused(board.scope(new).write(&Write::new("a", Value::null())).unwrap_err().code());
        refused(board.locks().acquire(&Acquire::of(new, &session)).unwrap_err().code());
        refused(board.work().create(&Create::new(new, "An item")).unwrap_err().code());
    }
}

#[test]
fn oldest_kept_revision_of_an_old_board_is_stored() {
    let directory = testkit::tempdir().unwrap();
    let path = directory.path().join("local.db");
    fs::write(&path, fs::read(fixture(5)).unwrap()).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let connection = Connection::open(&path).unwrap();
    connection.execute("DELETE FROM events WHERE id <= 7", []).unwrap();
    connection.close().unwrap();
    let clock = Arc::new(FixedClock::at("2026-02-03T15:30:00Z").unwrap());
    let store = Sqlite::open(&path, clock.clone(), &SqliteOptions::default()).unwrap();
    let mut floor = Revision::ZERO;
    store
        .read(&[], &mut |tx| {
            floor = tx.floor()?;
            Ok(())
        })
        .unwrap();
    assert_eq!(floor, Revision::new(7));
    let connection = Connection::open(&path).unwrap();
    let stored = "SELECT value FROM marks WHERE name = 'floor'";
    assert_eq!(connection.query_row(stored, [], |row| row.get::<_, String>(0)).unwrap(), "7");
}
