//! What only SQLite can get wrong inside: its plans, its connections, its commits, its migrations.

use std::ops::Bound;
use std::sync::Arc;

use rusqlite::Connection;
use tempfile::TempDir;

use super::ranges::Select;
use super::*;
use crate::Board;
use crate::agent::{Beat, Register};
use crate::clock::{FixedClock, Timestamp};
use crate::entry::{By, Query, Value, Write};
use crate::error::Code;
use crate::store::{Key, Range};
use crate::sweep::Sweep;
use crate::work::{Claim, Create, Priority, Status, WorkItem};

struct Scratch {
    directory: TempDir,
    clock: Arc<FixedClock>,
}

impl Scratch {
    fn new() -> Scratch {
        let clock = FixedClock::at("2026-02-03T15:30:00Z").unwrap();
        Scratch { directory: testkit::tempdir().unwrap(), clock: Arc::new(clock) }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("local.db")
    }

    fn open(&self) -> Result<Sqlite> {
        Sqlite::open(&self.path(), self.clock.clone(), &SqliteOptions::default())
    }

    fn board(&self) -> (Arc<Sqlite>, Board) {
        let store = Arc::new(self.open().unwrap());
        (store.clone(), Board::on(store, self.clock.clone()))
    }
}

fn plan(connection: &Connection, sql: &str) -> String {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let nothing = vec![rusqlite::types::Null; statement.parameter_count()];
    let lines =
        statement.query_map(rusqlite::params_from_iter(nothing), |row| row.get::<_, String>(3)).unwrap();
    lines.map(std::result::Result::unwrap).collect::<Vec<_>>().join("; ")
}

#[test]
fn what_commands_do_all_the_time_is_found_by_an_index() {
    let scratch = Scratch::new();
    let store = scratch.open().unwrap();
    let connection = store.take().unwrap();
    let moment = scratch.clock.now();
    let next_page = Range {
        until: Bound::Excluded(vec![moment.into(), "item".into()]),
        ..Range::newest_work(Status::Available, Priority::P1)
    };
    for (range, index) in [
        (Range::live_agents(), "agents_live"),
        (Range::live_agents_seen_until(moment), "agents_live"),
        (Range::work_queue(Status::Available), "work_items_queue"),
        (Range::newest_work(Status::Available, Priority::P1), "work_items_queue (status=? AND priority=?)"),
        (next_page, "work_items_queue (status=? AND priority=? AND created_at<?)"),
        (Range::claimed_by("session"), "work_items_claimed"),
        (Range::held_by("session"), "work_items_claimed"),
        (Range::completed_since(moment), "work_items_completed"),
        (Range::last_completed(), "work_items_completed"),
        (Range::last_completed().before(moment), "work_items_completed"),
        (Range::delegates_of("session"), "agents_parent"),
        (Range::agents_with_prefix("prefix"), "sqlite_autoindex_agents_1"),
        (Range::blockers_of("item"), "PRIMARY KEY"),
        (Range::dependents_of("item"), "work_dependencies_blocked_by"),
        (Range::cursors_of("session"), "PRIMARY KEY"),
    ] {
        let plan = plan(&connection, &ranges::statement(Select::Rows, &range));
        assert!(plan.contains(index), "{:?}: {plan}", range.index);
        if range.index == WorkItem::QUEUE {
            assert!(
                !plan.contains("B-TREE FOR ORDER BY"),
                "the head of the queue is found without sorting: {plan}"
            );
        }
    }
    let plan = plan(&connection, txn::MISSING_BLOCKERS);
    assert!(plan.contains("work_dependencies_blocked_by") && !plan.contains("B-TREE"), "{plan}");
}

/// The ranges that commands read of entries, with the index that has them in their order.
fn ranges_of_entries(moment: Timestamp) -> Vec<(Range, &'static str)> {
    vec![
        (Range::entries("team", ""), "entries USING PRIMARY KEY (scope=?)"),
        (Range::entries("team", "k:000"), "entries USING PRIMARY KEY (scope=? AND key>? AND key<?)"),
        (
            Range::entries("team", "k:").after("k:050000"),
            "entries USING PRIMARY KEY (scope=? AND key>? AND key<?)",
        ),
        (Range::entries_tagged("team", "rare", ""), "entry_tags USING PRIMARY KEY (scope=? AND tag=?)"),
        (
            Range::entries_tagged("team", "often", "k:000").after("k:000010"),
            "entry_tags USING PRIMARY KEY (scope=? AND tag=? AND key>? AND key<?)",
        ),
        (Range::newest_entries("team", None), "entries_newest (scope=?)"),
        (
            Range::newest_entries("team", Some(Revision::new(50_000))),
            "entries_newest (scope=? AND revision<?)",
        ),
        (Range::entries_expired_at(moment), "entries_expiring (expires_at>? AND expires_at<?)"),
        (Range::leased_by("session"), "entries_leased (session_id=?)"),
    ]
}

#[test]
fn entries_are_found_by_an_index_that_has_them_in_their_order() {
    let scratch = Scratch::new();
    let store = scratch.open().unwrap();
    let connection = store.take().unwrap();
    for (range, index) in ranges_of_entries(scratch.clock.now()) {
        for select in [Select::Heads, Select::Rows, Select::Any, Select::Keys] {
            let sql = ranges::statement(select, &range);
            let plan = plan(&connection, &sql);
            // Whether there is any entry of a scope may be asked of any index that begins with the scope.
            let is_right = plan.contains(index) || (select == Select::Any && plan.contains("(scope=?)"));
            assert!(plan.starts_with("SEARCH") && is_right, "{sql}: {plan}");
            assert!(!plan.contains("SCAN") && !plan.contains("B-TREE"), "{sql}: {plan}");
        }
        let heads = plan(&connection, &ranges::statement(Select::Heads, &range));
        assert!(!heads.contains("entry_versions"), "no value is read for a head: {heads}");
    }
    for key in [Key::Entry(String::new(), String::new()), Key::Tombstone(String::new(), String::new())] {
        let plan = plan(&connection, key.table().sql.select);
        assert!(plan.starts_with("SEARCH") && !plan.contains("SCAN"), "{plan}");
    }
    let version = plan(&connection, cells::VERSION_QUERY);
    assert_eq!(version, "SEARCH entry_versions USING INTEGER PRIMARY KEY (rowid=?)");
}

/// Entries as a hundred thousand writes leave them, without the time that those would take.
fn hundred_thousand_entries(connection: &Connection, expires: &str) {
    let numbers =
        "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 100000)";
    let rare = "n % 2000 = 0";
    connection
        .execute_batch(&format!(
            "BEGIN;
             {numbers} INSERT INTO entry_versions (revision, scope, key, version, value, created_at, created_by,
                 updated_at, updated_by, expires_at, tags, session_id, fence)
                 SELECT n, 'team', printf('k:%06d', n), 1, '1', '{expires}', 'a', '{expires}', 'a',
                 iif({rare}, '{expires}', NULL), iif({rare}, '[\"often\",\"rare\"]', '[\"often\"]'),
                 iif({rare}, 'session', NULL), iif({rare}, n, NULL) FROM numbers;
             INSERT INTO entries SELECT scope, key, revision, expires_at, session_id FROM entry_versions;
             {numbers} INSERT INTO entry_tags SELECT 'team', 'often', printf('k:%06d', n) FROM numbers;
             {numbers} INSERT INTO entry_tags SELECT 'team', 'rare', printf('k:%06d', n) FROM numbers WHERE {rare};
             INSERT INTO events (id, timestamp, event_type, summary, commit_id)
                 VALUES (100000, '{expires}', 'entry_written', '', 100000);
             COMMIT"
        ))
        .unwrap();
}

#[test]
fn among_a_hundred_thousand_entries_only_those_that_are_asked_for_are_looked_at() {
    use rusqlite::StatementStatus;
    let scratch = Scratch::new();
    let (store, board) = scratch.board();
    let moment = scratch.clock.now();
    hundred_thousand_entries(&Connection::open(scratch.path()).unwrap(), &moment.to_string());
    let connection = store.take().unwrap();
    for (range, _) in ranges_of_entries(moment) {
        for sql in [Select::Heads, Select::Rows].map(|select| ranges::statement(select, &range)) {
            let mut statement = connection.prepare(&sql).unwrap();
            let mut rows = statement.query(ranges::parameters(&range, Some(50))).unwrap();
            let mut count = 0;
            while rows.next().unwrap().is_some() {
                count += 1;
            }
            drop(rows);
            assert_eq!(count, 50, "{range:?}");
            let status = |what| statement.get_status(what);
            assert_eq!(status(StatementStatus::FullscanStep), 0, "{sql}");
            assert_eq!(status(StatementStatus::Sort), 0, "{sql}");
            // About thirty for each row, and not for each entry.
            let steps = status(StatementStatus::VmStep);
            assert!(steps < 3_000, "{steps} steps for {sql}");
        }
    }
    store.put_back(connection);
    let query = Query { tags: vec!["rare".to_owned()], prefix: Some("k:09".to_owned()), ..Query::default() };
    let found = board.scope("team").query(&query);
    // What the statements wrote is what the program reads: five have the prefix, and have expired by now.
    assert!(found.unwrap().entries.is_empty());
    scratch.clock.set(moment.minus(Duration::from_secs(1)));
    assert_eq!(board.scope("team").query(&query).unwrap().entries.len(), 5);
}

#[test]
fn a_commit_that_fails_leaves_nothing() {
    let scratch = Scratch::new();
    let (store, board) = scratch.board();
    let session = board.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
    board.work().create(&Create::new("x", "X")).unwrap();
    let before = board.export().unwrap();
    // The next commit is turned back by SQLite itself, after every statement has run.
    let mut connection = store.take().unwrap();
    connection.commit_hook(Some(|| true)).unwrap();
    store.put_back(connection);
    let failed = board.work().claim(&Claim::of("x", &session)).unwrap_err();
    assert_eq!(failed.code(), Code::Internal);
    assert_eq!(board.export().unwrap(), before);
    // The connection that failed is not used again.
    let claimed = board.work().claim(&Claim::of("x", &session)).unwrap();
    assert_eq!(claimed.item.fence, Some(before.revision.next()));
}

#[test]
fn a_refusal_keeps_its_connection() {
    let scratch = Scratch::new();
    let (store, board) = scratch.board();
    assert_eq!(store.lock_idle().len(), 1);
    assert!(board.work().claim(&Claim::of("x", "nobody")).is_err());
    assert_eq!(store.lock_idle().len(), 1);
    board.work().create(&Create::new("x", "X")).unwrap();
}

#[test]
fn the_write_ahead_log_is_folded_back_once_it_is_long() {
    let scratch = Scratch::new();
    let (_, board) = scratch.board();
    let wal = sidecars::beside(&scratch.path(), "-wal");
    let length = || std::fs::metadata(&wal).unwrap().len();
    let mut longest = 0;
    for number in 0..600 {
        board.work().create(&Create::new(&format!("item-{number}"), "Something")).unwrap();
        longest = longest.max(length());
        board.settle();
    }
    assert!(longest < 2 * 1024 * 1024, "{longest} bytes");
    assert!(length() < 300 * 4200, "{} bytes are left", length());
    assert_eq!(board.export().unwrap().work_items.len(), 600);
}

#[test]
fn who_never_settles_has_a_log_of_limited_length_too() {
    let scratch = Scratch::new();
    let (store, board) = scratch.board();
    let wal = sidecars::beside(&scratch.path(), "-wal");
    let length = || std::fs::metadata(&wal).unwrap().len();
    let mut longest = 0;
    for number in 0..400 {
        board.work().create(&Create::new(&format!("item-{number}"), "Something")).unwrap();
        longest = longest.max(length());
    }
    let frame = 4_096 + 24;
    let most = u64::from(FRAMES_BETWEEN_COMMITS + 50) * frame;
    assert!(longest > u64::from(FRAMES_BETWEEN_COMMITS / 2) * frame && longest < most, "{longest} bytes");
    let items = (400..).map(|number| Create::new(&format!("item-{number}"), "Something"));
    for item in items.take_while(|_| length() <= u64::from(FRAMES_KEPT + 50) * frame) {
        board.work().create(&item).unwrap();
    }
    drop((store, board));
    assert_eq!(length(), 0, "nothing is left to the next one");
}

#[test]
fn a_reader_who_stays_keeps_no_writer_from_committing() {
    let scratch = Scratch::new();
    let (store, board) = scratch.board();
    store
        .read(&[], &mut |tx| {
            let before = tx.revision()?;
            for number in 0..400 {
                board.work().create(&Create::new(&format!("item-{number}"), "Something")).unwrap();
            }
            let (frames, allowed) = (&store.frames, &store.frames_allowed);
            let tried = allowed.load(Ordering::Relaxed) > FRAMES_BETWEEN_COMMITS;
            assert!(tried && frames.load(Ordering::Relaxed) > FRAMES_BETWEEN_COMMITS);
            assert_eq!(tx.revision()?, before);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_reader_does_not_keep_the_log_from_being_used() {
    let scratch = Scratch::new();
    let (store, board) = scratch.board();
    board.work().create(&Create::new("x", "X")).unwrap();
    store
        .read(&[], &mut |tx| {
            // A write and a checkpoint go on while somebody reads, who sees what he saw.
            let before = tx.revision()?;
            board.work().create(&Create::new("y", "Y")).unwrap();
            board.settle();
            assert_eq!(tx.revision()?, before);
            assert!(tx.get(&Key::WorkItem("y".to_owned()))?.is_none());
            Ok(())
        })
        .unwrap();
    assert!(board.work().status("y").is_ok());
}

/// A board of this program whose schema is older than the first: nothing has run on it.
fn unmigrated(path: &Path) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(&format!("PRAGMA application_id = {}; VACUUM", schema::APPLICATION_ID)).unwrap();
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
    connection.close().unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}

#[test]
fn of_many_that_open_an_older_board_one_migrates() {
    let scratch = Scratch::new();
    unmigrated(&scratch.path());
    let start = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (scratch, start) = (&scratch, &start);
            scope.spawn(move || {
                start.wait();
                let board = scratch.board().1;
                board.work().create(&Create::new(&format!("item-{number}"), "X")).unwrap();
            });
        }
    });
    let board = scratch.board().1;
    assert_eq!(board.export().unwrap().work_items.len(), 8);
    let versions: u32 = Connection::open(scratch.path())
        .unwrap()
        .query_row("SELECT count(*) FROM schema_version", [], |row| row.get(0))
        .unwrap();
    assert_eq!(versions, SCHEMA_VERSION);
}

#[test]
fn a_migration_waits_for_whoever_writes() {
    let scratch = Scratch::new();
    unmigrated(&scratch.path());
    let writer = Connection::open(scratch.path()).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::thread::scope(|scope| {
        let opening = scope.spawn(|| scratch.open().map(drop));
        // Whoever finds somebody at work says so beside the database before he waits.
        let sidecar = sidecars::beside(&scratch.path(), "-lock");
        testkit::wait_until("a writer that waits", || {
            assert!(!opening.is_finished(), "it did not wait");
            std::fs::metadata(&sidecar).is_ok_and(|metadata| metadata.len() > 0).then_some(())
        });
        writer.execute_batch("ROLLBACK").unwrap();
        opening.join().unwrap().unwrap();
    });
}

#[test]
fn a_schema_that_became_newer_is_not_written_to() {
    let scratch = Scratch::new();
    let (_, board) = scratch.board();
    board.work().create(&Create::new("x", "X")).unwrap();
    let newer = Connection::open(scratch.path()).unwrap();
    newer.execute_batch(&format!("PRAGMA user_version = {}", SCHEMA_VERSION + 1)).unwrap();
    let refused = board.work().create(&Create::new("y", "Y")).unwrap_err();
    assert_eq!(refused.code(), Code::NewerSchema);
    let items: u32 = newer.query_row("SELECT count(*) FROM work_items", [], |row| row.get(0)).unwrap();
    assert_eq!(items, 1);
}

/// Somebody at the head of the queue, who does nothing.
fn head_of_the_queue(scratch: &Scratch) -> std::fs::File {
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).open(sidecars::beside(&scratch.path(), "-lock")).unwrap();
    file.lock().unwrap();
    file.set_len(1).unwrap();
    file
}

#[test]
fn who_has_no_patience_does_not_pass_those_in_line() {
    let scratch = Scratch::new();
    let (store, _) = scratch.board();
    let commit = Commit { name: "test", prefetch: &[], patience: Patience::Never, callers: &[] };
    let try_now = || store.commit(&commit, &mut |_| Ok(Changes::default()));
    assert!(try_now().is_ok(), "nobody is there");
    let head = head_of_the_queue(&scratch);
    assert_eq!(try_now().unwrap_err().code(), Code::Busy);
    drop(head);
    assert!(try_now().is_ok(), "the line is gone");
    let sidecar = std::fs::metadata(sidecars::beside(&scratch.path(), "-lock")).unwrap();
    assert_eq!(sidecar.len(), 0, "and so is the hint at it");
}

#[test]
fn one_at_the_head_who_was_stopped_holds_up_nobody_for_good() {
    let scratch = Scratch::new();
    let (_, board) = scratch.board();
    let head = head_of_the_queue(&scratch);
    board.work().create(&Create::new("x", "X")).unwrap();
    drop(head);
    board.work().create(&Create::new("y", "Y")).unwrap();
}

#[test]
fn nothing_is_acknowledged_on_a_board_that_was_replaced() {
    let scratch = Scratch::new();
    let (_, board) = scratch.board();
    let ivy = board.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
    board.work().create(&Create::new("x", "X")).unwrap();
    std::fs::rename(scratch.path(), scratch.directory.path().join("moved.db")).unwrap();
    let claim = || board.work().claim(&Claim::of("x", &ivy)).unwrap_err().code();
    assert_eq!(claim(), Code::Io, "it is gone");
    drop(scratch.open().unwrap());
    assert_eq!(claim(), Code::Io, "there is another one");
    assert_eq!(board.work().create(&Create::new("x", "Y")).unwrap_err().code(), Code::Io, "nor refused");
    assert!(board.check_still_there().is_err());
}

#[test]
fn connections_of_one_board_are_to_one_file() {
    let scratch = Scratch::new();
    let store = scratch.open().unwrap();
    let first = store.take().unwrap();
    std::fs::rename(scratch.path(), scratch.directory.path().join("moved.db")).unwrap();
    drop(scratch.open().unwrap());
    assert_eq!(store.take().map(|_| ()).unwrap_err().code(), Code::Io);
    drop(first);
}

#[test]
fn whoever_waits_for_a_board_that_was_replaced_is_told() {
    let scratch = Scratch::new();
    let (_, board) = scratch.board();
    let revision = board.agents().register(&Register::named("Ivy")).unwrap().agent.revision;
    let moment = Duration::from_millis(1);
    assert_eq!(board.wait(revision, moment).unwrap(), revision);
    std::fs::rename(scratch.path(), scratch.directory.path().join("moved.db")).unwrap();
    assert_eq!(board.wait(revision, moment).unwrap_err().code(), Code::Io);
    drop(scratch.open().unwrap());
    assert_eq!(board.wait(revision, moment).unwrap_err().code(), Code::Io);
}

/// Changes the file behind the program's back.
fn tamper(scratch: &Scratch, sql: &str) {
    let connection = Connection::open(scratch.path()).unwrap();
    connection.execute_batch(&format!("PRAGMA foreign_keys = OFF; {sql}")).unwrap();
}

/// Registers an agent without a process that holds an item and a leased entry, each with the agent's name.
fn an_agent_that_holds(board: &Board, name: &str) -> String {
    let session = board.agents().register(&Register::named(name)).unwrap().agent.session_id;
    board.work().create(&Create::new(name, name)).unwrap();
    board.work().claim(&Claim::of(name, &session)).unwrap();
    let leased = Write { lease: true, ..Write::new(name, Value::null()) };
    board.scope("team").by(By::session(&session)).write(&leased).unwrap();
    session
}

/// The names of stale agents, sorted: agents seen in the same millisecond come in the order of their random ids.
fn names(stale: &[crate::sweep::StaleAgent]) -> Vec<&str> {
    let mut names: Vec<_> = stale.iter().map(|agent| agent.agent_name.as_str()).collect();
    names.sort_unstable();
    names
}

#[test]
fn an_agent_whose_rows_cannot_be_read_is_skipped_and_the_others_are_swept() {
    for (what, sql, is_named) in [
        ("an item that it holds", "UPDATE work_items SET claimed_at = 'x' WHERE item_id = 'bad'", true),
        ("an entry that it holds", "UPDATE entry_versions SET value = '{' WHERE key = 'bad'", true),
        ("its start", "UPDATE agents SET started_at = 'x' WHERE agent_name = 'bad'", false),
        ("its metadata", "UPDATE agents SET metadata = '{' WHERE agent_name = 'bad'", false),
        ("its session", "UPDATE agents SET session_id = x'ff00' WHERE agent_name = 'bad'", false),
    ] {
        let scratch = Scratch::new();
        let (_, board) = scratch.board();
        let bad = an_agent_that_holds(&board, "bad");
        an_agent_that_holds(&board, "good");
        scratch.clock.advance(Duration::from_mins(5));
        tamper(&scratch, sql);

        let dry = board.sweep(&Sweep { dry_run: true, ..Sweep::default() }).unwrap();
        assert_eq!(names(&dry.stale_agents), ["good"], "{what}");
        let [skipped] = &dry.skipped_agents[..] else { panic!("{what}: {dry:?}") };
        assert_eq!(skipped.agent_name.as_deref(), is_named.then_some("bad"), "{what}");
        let expected = if what == "its session" { "" } else { bad.as_str() };
        assert_eq!(skipped.session_id, expected, "{what}");
        assert!(!skipped.error.is_empty(), "{what}");

        let automatic = board.sweep_in_passing(None);
        assert_eq!(automatic.skipped_agents, dry.skipped_agents, "{what}");
        assert_eq!(names(&automatic.stale_agents), ["good"], "{what}");
        let swept = board.sweep(&Sweep::default()).unwrap();
        assert_eq!(swept.skipped_agents, dry.skipped_agents, "{what}");
        assert_eq!(names(&swept.stale_agents), [""; 0], "{what}");
        // Nothing of it was changed: once it can be read again, it is swept completely.
        if what == "an item that it holds" {
            tamper(&scratch, "UPDATE work_items SET claimed_at = NULL WHERE item_id = 'bad'");
            let healed = board.sweep(&Sweep::default()).unwrap();
            assert_eq!(names(&healed.stale_agents), ["bad"]);
            assert_eq!((healed.stale_agents[0].released_items.len(), healed.skipped_agents.len()), (1, 0));
            assert_eq!(healed.stale_agents[0].released_leases.len(), 1);
        }
    }
}

#[test]
fn rows_that_cannot_be_read_take_no_write_lock_from_others() {
    let scratch = Scratch::new();
    let (_, board) = scratch.board();
    an_agent_that_holds(&board, "bad");
    let ttl = Some(Duration::from_secs(1));
    board.scope("team").write(&Write { ttl, ..Write::new("expired", Value::null()) }).unwrap();
    scratch.clock.advance(Duration::from_mins(5));
    tamper(
        &scratch,
        "UPDATE work_items SET claimed_at = 'x' WHERE item_id = 'bad';
         UPDATE entry_versions SET value = '{' WHERE key = 'expired'",
    );
    let other = Connection::open(scratch.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // A sweep that asked for the lock would stop there, and would know nothing of the rows.
    let swept = board.sweep_in_passing(None);
    assert_eq!((swept.skipped_agents.len(), swept.skipped_entries.len()), (1, 1), "{swept:?}");
}

#[test]
fn agents_that_cannot_be_read_do_not_hide_those_behind_them() {
    let scratch = Scratch::new();
    let (_, board) = scratch.board();
    an_agent_that_holds(&board, "bad");
    // More than an automatic sweep looks at, half of them because of their own row.
    tamper(
        &scratch,
        "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 1200)
         INSERT INTO agents SELECT 'copy-' || n, 'copy ' || n, pid, parent_id, project, current_work, status,
             started_at, last_seen_at, iif(n % 2, '{', metadata), last_beat_at, ended_at, progress, process,
             shares_process, joined_revision, revision, own_work FROM agents, number;
         INSERT INTO work_items SELECT 'of-' || session_id, project_id, title, description, source, source_ref,
             'claimed', work_items.priority, session_id, 'x', completed_at, blocked_by, created_at, NULL,
             agent_name, fence, work_items.revision, summary FROM work_items, agents
             WHERE session_id LIKE 'copy-%';
         UPDATE work_items SET claimed_at = 'x'",
    );
    scratch.clock.advance(Duration::from_secs(1));
    for name in ["a", "b", "c"] {
        an_agent_that_holds(&board, name);
    }
    scratch.clock.advance(Duration::from_mins(5));
    let swept = board.sweep_in_passing(None);
    assert_eq!(names(&swept.stale_agents), ["a", "b", "c"]);
    assert_eq!(swept.skipped_agents.len(), 1201);
    assert_eq!(board.sweep(&Sweep::default()).unwrap().skipped_agents.len(), 1201);
}

#[test]
fn expired_entries_that_cannot_be_read_do_not_hide_those_behind_them() {
    let scratch = Scratch::new();
    let (_, board) = scratch.board();
    let write = |key: &str, seconds| {
        let ttl = Some(Duration::from_secs(seconds));
        board.scope("team").write(&Write { ttl, ..Write::new(key, Value::null()) }).unwrap();
    };
    for number in 0..150 {
        write(&format!("bad-{number}"), 1);
    }
    write("good", 2);
    scratch.clock.advance(Duration::from_secs(2));
    tamper(&scratch, "UPDATE entry_versions SET value = '{' WHERE key LIKE 'bad-%'");
    let dry = board.sweep(&Sweep { dry_run: true, ..Sweep::default() }).unwrap();
    assert_eq!((dry.entries_expired, dry.skipped_entries.len()), (1, 150));
    let swept = board.sweep_in_passing(None);
    assert_eq!((swept.entries_expired, swept.skipped_entries.len()), (1, 150));
    assert_eq!((swept.skipped_entries[0].scope.as_str(), &*swept.skipped_entries[0].key), ("team", "bad-0"));
    let swept = board.sweep(&Sweep::default()).unwrap();
    assert_eq!((swept.entries_expired, swept.skipped_entries.len()), (0, 150));
}

#[test]
fn heartbeats_whose_time_cannot_be_read_keep_no_other_from_being_pruned() {
    let scratch = Scratch::new();
    let (_, board) = scratch.board();
    let session = board.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
    for _ in 0..4 {
        scratch.clock.advance(Duration::from_secs(1));
        board.agents().heartbeat(&Beat::of(&session)).unwrap();
    }
    scratch.clock.advance(Duration::from_hours(24 * 8));
    board.agents().heartbeat(&Beat::of(&session)).unwrap();
    tamper(
        &scratch,
        "UPDATE heartbeats SET timestamp = 'never' WHERE id = 1; UPDATE heartbeats SET timestamp = x'00' WHERE id = 2",
    );
    assert_eq!(board.sweep(&Sweep { dry_run: true, ..Sweep::default() }).unwrap().heartbeats_pruned, 2);
    assert_eq!(board.sweep(&Sweep::default()).unwrap().heartbeats_pruned, 2);
    assert_eq!(board.read(&[], |tx| tx.count(&Range::heartbeats_of(&session))).unwrap(), 3);
    assert!(!board.prune().unwrap().more);
}
