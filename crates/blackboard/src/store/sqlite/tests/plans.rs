//! Queries that have to use an index, and never scan a table.

use std::ops::Bound;
use std::time::Duration;

use rusqlite::Connection;

use super::Scratch;
use crate::clock::{Clock, Timestamp};
use crate::entry::Query;
use crate::revision::Revision;
use crate::store::sqlite::ranges::{self, Select};
use crate::store::sqlite::{cells, gaps};
use crate::store::{Key, Range};
use crate::work::{Priority, Status, WorkItem};

fn plan(connection: &Connection, sql: &str) -> String {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let nothing = vec![rusqlite::types::Null; statement.parameter_count()];
    let lines =
        statement.query_map(rusqlite::params_from_iter(nothing), |row| row.get::<_, String>(3)).unwrap();
    lines.map(std::result::Result::unwrap).collect::<Vec<_>>().join("; ")
}

#[test]
fn frequent_queries_use_an_index() {
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
        (Range::heartbeats_of("session"), "heartbeats_key (session_id=?)"),
        (Range::heartbeats_of("session").before(moment), "heartbeats_key (session_id=? AND timestamp<?)"),
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
}

#[test]
fn complete_ranges_of_agents_and_work_are_read_without_sorting() {
    let scratch = Scratch::new();
    let store = scratch.open().unwrap();
    let connection = store.take().unwrap();
    let moment = scratch.clock.now();
    for range in [
        Range::live_agents(),
        Range::live_agents_seen_until(moment),
        Range::work_queue(Status::Available),
        Range::work_queue_of(Status::Available, Priority::P1),
        Range::newest_work(Status::Available, Priority::P1),
        Range::completed_since(moment),
        Range::last_completed(),
    ] {
        let plan = plan(&connection, &ranges::statement(Select::AllRows, &range));
        assert!(plan.contains(" USING INDEX ") && !plan.contains("B-TREE"), "{:?}: {plan}", range.index);
    }
}

#[test]
fn event_gap_queries_use_an_index() {
    let scratch = Scratch::new();
    let store = scratch.open().unwrap();
    let connection = store.take().unwrap();
    for (sql, index) in [
        (gaps::LAST_BEFORE, "INTEGER PRIMARY KEY"),
        (gaps::FIRST_AFTER, "INTEGER PRIMARY KEY"),
        (gaps::OF_ORDINAL, "sqlite_autoindex_event_gaps_1"),
    ] {
        let plan = plan(&connection, sql);
        assert!(plan.starts_with("SEARCH") && plan.contains(index) && !plan.contains("B-TREE"), "{plan}");
    }
}

/// Indexes without one in the file: only `purge` and retention, once an hour, read them. Retention keeps their tables
/// small (a day of operations and edits, a week of agents), and an index in the file would cost every write.
const SCANNED: &[&str] = &["agents.ENDED", "operations.OLDEST", "file_edits.OLDEST"];

#[test]
fn every_declared_index_has_an_index_in_the_file() {
    let scratch = Scratch::new();
    let store = scratch.open().unwrap();
    let connection = store.take().unwrap();
    let mut scanned = Vec::new();
    for index in crate::store::TABLES.iter().flat_map(|table| table.indexes) {
        let value = || crate::store::record::IndexValue::from("x");
        let range = Range {
            partition: index.partition.iter().map(|_| value()).collect(),
            until: Bound::Excluded(vec![value()]),
            ..Range::all(index)
        };
        let plan = plan(&connection, &ranges::statement(Select::Keys, &range));
        if !plan.contains(" USING ") {
            scanned.push(index.name);
        }
    }
    assert_eq!(scanned, SCANNED);
}

#[test]
fn statements_of_every_table_fit_the_schema() {
    let scratch = Scratch::new();
    let store = scratch.open().unwrap();
    let connection = store.take().unwrap();
    let tables = crate::store::TABLES.iter().flat_map(|table| [table.sql.select, table.sql.insert]);
    for sql in tables.chain([cells::INSERT_EVENT, cells::INSERT_VERSION, cells::VERSION_QUERY]) {
        connection.prepare(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    // Versions are read without the names of their columns, and versions and events are written without them.
    let columns = |sql: &str| {
        let statement = connection.prepare(sql).unwrap();
        statement.column_names().collect::<Vec<_>>().join(", ")
    };
    assert_eq!(columns(cells::VERSION_QUERY), crate::entry::EntryVersion::COLUMNS);
    assert_eq!(columns("SELECT * FROM events"), crate::event::Event::COLUMNS);
}

/// The ranges of entries that commands read, with the index that has them in their order.
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
        (Range::oldest_entries("team"), "entries_newest (scope=?)"),
        (
            Range::oldest_entries("team").before(Revision::new(50_000)),
            "entries_newest (scope=? AND revision<?)",
        ),
        (Range::least_used_entries("team"), "entries_least_used (scope=? AND access_count>?)"),
        (Range::entries_expired_at(moment), "entries_expiring (expires_at>? AND expires_at<?)"),
        (Range::leased_by("session"), "entries_leased (session_id=?)"),
    ]
}

#[test]
fn entry_queries_use_an_index_in_their_order() {
    let scratch = Scratch::new();
    let store = scratch.open().unwrap();
    let connection = store.take().unwrap();
    for (range, index) in ranges_of_entries(scratch.clock.now()) {
        for select in [Select::Heads, Select::Rows, Select::Any, Select::Keys] {
            let sql = ranges::statement(select, &range);
            let plan = plan(&connection, &sql);
            // Any index that begins with the scope can answer whether the scope has an entry.
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

/// Entries as a hundred thousand writes leave them, without the time that the writes would take.
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
             INSERT INTO entries
                 SELECT scope, key, revision, expires_at, session_id, iif(session_id IS NULL, version, NULL)
                 FROM entry_versions;
             {numbers} INSERT INTO entry_tags SELECT 'team', 'often', printf('k:%06d', n) FROM numbers;
             {numbers} INSERT INTO entry_tags SELECT 'team', 'rare', printf('k:%06d', n) FROM numbers WHERE {rare};
             INSERT INTO events (id, timestamp, event_type, summary, commit_id)
                 VALUES (100000, '{expires}', 'entry_written', '', 100000);
             COMMIT"
        ))
        .unwrap();
}

#[test]
fn query_among_a_hundred_thousand_entries_reads_only_matches() {
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
            // About thirty steps for each row, and not for each entry.
            let steps = status(StatementStatus::VmStep);
            assert!(steps < 3_000, "{steps} steps for {sql}");
        }
    }
    store.put_back(connection);
    let query = Query { tags: vec!["rare".to_owned()], prefix: Some("k:09".to_owned()), ..Query::default() };
    let found = board.scope("team").query(&query);
    // The program reads what the statements wrote: five entries have the prefix, and have expired by now.
    assert!(found.unwrap().entries.is_empty());
    scratch.clock.set(moment.minus(Duration::from_secs(1)));
    assert_eq!(board.scope("team").query(&query).unwrap().entries.len(), 5);
}
