//! Rows that cannot be read are skipped and reported, and the others are still swept or pruned.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;

use super::Scratch;
use crate::Board;
use crate::agent::{Heartbeat, Register};
use crate::entry::{Actor, Operation, Txn, Value, Write};
use crate::follow::{Follow, Start};
use crate::revision::Revision;
use crate::scope::{CreateScope, Policies, Visibility};
use crate::store::conformance::announced::Announced;
use crate::store::{Cursor, Key, Prefetch, Range};
use crate::sweep::Sweep;
use crate::work::{Claim, Create};

/// Changes the file without the program.
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
    board.scope("team").acting_as(Actor::session(&session)).write(&leased).unwrap();
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
        // A row without a readable key cannot be named.
        let is_row_named = skipped.error.starts_with("row ") && skipped.hint.is_some();
        assert_eq!(is_row_named, what != "its session", "{what}: {skipped:?}");
        if let ("an entry that it holds", Some(hint)) = (what, &skipped.hint) {
            assert_eq!(skipped.error, "row team/bad of entries cannot be read: column value: it is not JSON");
            let statement = hint.split_once("sqlite3: ").unwrap().1;
            tamper(&scratch, &statement.replace('…', "'null'"));
            let healed = board.sweep(&Sweep { dry_run: true, ..Sweep::default() }).unwrap();
            assert_eq!(names(&healed.stale_agents), ["bad", "good"], "the statement of the hint corrects it");
            tamper(&scratch, sql);
        }

        let automatic = board.try_sweep(None);
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
fn unreadable_rows_take_no_write_lock() {
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
    // A sweep that waits for the lock would stop there, and would not reach the rows.
    let swept = board.try_sweep(None);
    assert_eq!((swept.skipped_agents.len(), swept.skipped_entries.len()), (1, 1), "{swept:?}");
}

#[test]
fn unreadable_agents_do_not_hide_later_ones() {
    let scratch = Scratch::new();
    let (_, board) = scratch.board();
    an_agent_that_holds(&board, "bad");
    // More than an automatic sweep checks, half of them because of their own row.
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
    let swept = board.try_sweep(None);
    assert_eq!(names(&swept.stale_agents), ["a", "b", "c"]);
    assert_eq!(swept.skipped_agents.len(), 1201);
    assert_eq!(board.sweep(&Sweep::default()).unwrap().skipped_agents.len(), 1201);
}

#[test]
fn unreadable_expired_entries_do_not_hide_later_ones() {
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
    let swept = board.try_sweep(None);
    assert_eq!((swept.entries_expired, swept.skipped_entries.len()), (1, 150));
    assert_eq!((swept.skipped_entries[0].scope.as_str(), &*swept.skipped_entries[0].key), ("team", "bad-0"));
    let swept = board.sweep(&Sweep::default()).unwrap();
    assert_eq!((swept.entries_expired, swept.skipped_entries.len()), (0, 150));
}

#[test]
fn unreadable_heartbeats_do_not_block_pruning_of_others() {
    let scratch = Scratch::new();
    let (_, board) = scratch.board();
    let session = board.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
    for _ in 0..4 {
        scratch.clock.advance(Duration::from_secs(1));
        board.agents().heartbeat(&Heartbeat::of(&session)).unwrap();
    }
    scratch.clock.advance(Duration::from_hours(24 * 8));
    board.agents().heartbeat(&Heartbeat::of(&session)).unwrap();
    tamper(
        &scratch,
        "UPDATE heartbeats SET timestamp = 'never' WHERE id = 1; UPDATE heartbeats SET timestamp = x'00' WHERE id = 2",
    );
    assert_eq!(board.sweep(&Sweep { dry_run: true, ..Sweep::default() }).unwrap().heartbeats_pruned, 2);
    assert_eq!(board.sweep(&Sweep::default()).unwrap().heartbeats_pruned, 2);
    assert_eq!(board.read(&[], |tx| tx.count(&Range::heartbeats_of(&session))).unwrap(), 3);
    assert!(!board.prune().unwrap().more);
}

/// An agent that sent some heartbeats and ended, with one heartbeat that this SQL has damaged.
fn an_ended_agent_with_heartbeats(scratch: &Scratch, board: &Board, damage: Option<&str>) -> String {
    let session = board.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
    for _ in 0..3 {
        scratch.clock.advance(Duration::from_secs(1));
        board.agents().heartbeat(&Heartbeat::of(&session)).unwrap();
    }
    board.agents().deregister(&session).unwrap();
    if let Some(damage) = damage {
        tamper(
            scratch,
            &format!(
                "UPDATE heartbeats SET {damage} WHERE id = \
                 (SELECT min(id) FROM heartbeats WHERE session_id = '{session}')"
            ),
        );
    }
    session
}

#[test]
fn ended_agent_is_pruned_with_an_unreadable_heartbeat() {
    let scratch = Scratch::new();
    let (_, board) = scratch.board();
    let session = an_ended_agent_with_heartbeats(&scratch, &board, Some("progress = x'ff00'"));
    let read = board.read(&[], |tx| tx.range(&Range::heartbeats_of(&session)));
    assert!(read.is_err_and(|error| error.is_unreadable_row()));
    scratch.clock.advance(Duration::from_hours(25));
    let pruned = board.prune().unwrap();
    assert_eq!((pruned.agents, pruned.skipped_agents.len()), (1, 0));
    assert_eq!(board.agents().get(&session).unwrap(), None);
}

#[test]
fn agents_whose_heartbeats_have_no_readable_time_stay_are_reported_and_hide_no_others() {
    for damage in ["timestamp = 'never'", "timestamp = ''", "timestamp = x'00'"] {
        let scratch = Scratch::new();
        let (_, board) = scratch.board();
        let bad: Vec<_> = (0..25)
            .map(|_| {
                scratch.clock.advance(Duration::from_secs(1));
                an_ended_agent_with_heartbeats(&scratch, &board, Some(damage))
            })
            .collect();
        let good = an_ended_agent_with_heartbeats(&scratch, &board, None);
        scratch.clock.advance(Duration::from_hours(25));
        let pruned = board.prune().unwrap();
        let is_reported = |skipped: &[crate::sweep::SkippedAgent]| {
            let mut sessions: Vec<_> = skipped.iter().map(|agent| agent.session_id.clone()).collect();
            sessions.sort();
            sessions.dedup();
            let mut expected = bad.clone();
            expected.sort();
            let is_named = |agent: &crate::sweep::SkippedAgent| agent.agent_name.as_deref() == Some("Ivy");
            sessions == expected && skipped.iter().all(is_named)
        };
        assert!(is_reported(&pruned.skipped_agents), "{damage}: {pruned:?}");
        assert_eq!((pruned.agents, pruned.more), (1, false), "{damage}");
        assert_eq!(board.agents().get(&good).unwrap(), None, "{damage}");
        assert!(board.agents().get(&bad[0]).unwrap().is_some(), "{damage}");
        // A week later the readable heartbeats are pruned, and the dry run counts no others.
        scratch.clock.advance(Duration::from_hours(24 * 7));
        let readable = 2 * bad.len() as u64;
        let dry = board.sweep(&Sweep { dry_run: true, ..Sweep::default() }).unwrap();
        assert_eq!(dry.heartbeats_pruned, readable, "{damage}");
        assert!(is_reported(&dry.skipped_agents), "{damage}: {dry:?}");
        let swept = board.sweep(&Sweep::default()).unwrap();
        assert_eq!(
            (swept.heartbeats_pruned, &swept.skipped_agents),
            (readable, &dry.skipped_agents),
            "{damage}"
        );
    }
}

/// A board with old events, and a cursor that no reader moves and that has missed some of them.
fn a_board_with_old_events(scratch: &Scratch) -> Board {
    let (_, board) = scratch.board();
    for name in ["bad", "left behind"] {
        let start = Start::Cursor { name: name.to_owned(), new_after: Some(Revision::ZERO) };
        board.follow(&Follow { start, ..Follow::default() }).unwrap();
    }
    for key in ["a", "b", "c"] {
        board.scope("team").write(&Write::new(key, Value::null())).unwrap();
    }
    scratch.clock.advance(Duration::from_hours(24 * 31));
    board.scope("team").write(&Write::new("d", Value::null())).unwrap();
    board
}

#[test]
fn rows_that_cannot_be_read_do_not_stop_retention() {
    for (what, sql) in [
        ("a version", "UPDATE entry_versions SET updated_at = 'never' WHERE key = 'a'"),
        ("the newest version", "UPDATE entry_versions SET value = '{' WHERE key = 'd'"),
        ("a cursor", "UPDATE cursors SET updated_at = 'never' WHERE reader = 'bad'"),
        ("the name of a cursor", "UPDATE cursors SET reader = x'ff00' WHERE reader = 'bad'"),
        ("the bookkeeping row", "INSERT INTO marks (name, value) VALUES ('prune', x'ff00')"),
    ] {
        let scratch = Scratch::new();
        let board = a_board_with_old_events(&scratch);
        tamper(&scratch, sql);
        let pruned = board.prune().unwrap();
        assert_eq!((pruned.events, pruned.more), (3, false), "{what}");
        // The bookkeeping row can be read again: no further batch is due.
        scratch.clock.advance(Duration::from_secs(1));
        assert_eq!(board.prune().unwrap().events, 0, "{what}");
        let mark = board.read(&[], |tx| tx.get(&Key::BookkeepingRow("prune".into()))).unwrap();
        assert!(mark.is_some(), "{what}");
        // The cursor has missed events now, and is removed. One that cannot be read stays.
        scratch.clock.advance(Duration::from_hours(1));
        board.prune().unwrap();
        let cursors = board.read(&[], |tx| tx.count(&Range::cursors_of(Cursor::OWNERLESS))).unwrap();
        assert_eq!(cursors, u64::from(what.ends_with("cursor")), "{what}");
    }
}

#[test]
fn a_clock_row_that_cannot_be_read_stops_no_sweep_and_is_replaced() {
    let scratch = Scratch::new();
    let (_, board) = scratch.board();
    let name = format!("clock:{}", board.processes().host());
    let damage = &format!("INSERT OR REPLACE INTO marks (name, value) VALUES ('{name}', x'ff00')");
    an_agent_that_holds(&board, "a");
    scratch.clock.advance(Duration::from_mins(5));
    tamper(&scratch, damage);
    assert_eq!(names(&board.try_sweep(None).stale_agents), ["a"]);
    an_agent_that_holds(&board, "b");
    let clock = Key::BookkeepingRow(name.into());
    assert!(board.read(&[], |tx| tx.get(&clock)).unwrap().is_some(), "the registration has replaced it");
    scratch.clock.advance(Duration::from_mins(5));
    tamper(&scratch, damage);
    let dry = board.sweep(&Sweep { dry_run: true, ..Sweep::default() }).unwrap();
    assert_eq!(names(&dry.stale_agents), ["b"]);
    assert_eq!(names(&board.sweep(&Sweep::default()).unwrap().stale_agents), ["b"]);
}

/// How many versions a key has in the file, readable or not.
fn count_versions(scratch: &Scratch, key: &str) -> i64 {
    let connection = Connection::open(scratch.path()).unwrap();
    let sql = "SELECT count(*) FROM entry_versions WHERE key = ?1";
    connection.query_row(sql, [key], |row| row.get(0)).unwrap()
}

#[test]
fn a_key_with_versions_that_cannot_be_read_is_purged() {
    for (what, condition, damage) in [
        ("the newest", "version = 3", "updated_at = 'never'"),
        ("one in the middle", "version = 2", "value = '{'"),
        ("the oldest", "version = 1", "metadata = '{'"),
        ("all", "true", "value = x'ff00'"),
        ("their names", "version > 1", "scope = x'ff00'"),
        ("the link to those before", "version = 3", "previous = 'x'"),
        ("a link to itself", "version = 3", "previous = revision"),
        ("a link that leads forward", "version = 1", "previous = revision + 1"),
    ] {
        for delete in [false, true] {
            let scratch = Scratch::new();
            let (_, board) = scratch.board();
            let scope = board.scope("team");
            for value in ["1", "2", "3"] {
                let tags = vec!["leaked".to_owned()];
                scope.write(&Write { tags, ..Write::new("token", Value::of(value).unwrap()) }).unwrap();
            }
            scope.write(&Write::new("token-2", Value::null())).unwrap();
            let versions = 3 + usize::from(delete);
            if delete {
                scope.delete("token").unwrap();
            }
            tamper(
                &scratch,
                &format!("UPDATE entry_versions SET {damage} WHERE key = 'token' AND {condition}"),
            );
            assert_eq!(scope.plan_purge("token").unwrap().versions, versions, "{what}, {delete}");
            let purged = scope.purge("token").unwrap();
            assert_eq!((purged.versions, purged.scrubbed), (versions, true), "{what}, {delete}");
            assert_eq!(count_versions(&scratch, "token"), 1, "{what}, {delete}: only that of the purge");
            assert_eq!(scope.read("token").unwrap(), None, "{what}, {delete}");
            let tagged = crate::entry::Query { tags: vec!["leaked".to_owned()], ..Default::default() };
            assert!(scope.list(&tagged).unwrap().is_empty(), "{what}, {delete}");
            assert!(scope.read("token-2").unwrap().is_some(), "{what}, {delete}");
            // The key can be used again, and no version number is used twice.
            let written = scope.write(&Write::new("token", Value::null())).unwrap();
            assert!(written.version > 3, "{what}, {delete}: {written:?}");
        }
    }
}

#[test]
fn remembered_answers_that_cannot_be_read_stop_no_purge_and_are_removed() {
    let scratch = Scratch::new();
    let (_, board) = scratch.board();
    let scope = board.scope("team");
    scope.write(&Write::new("token", Value::of("s3cret").unwrap())).unwrap();
    let read = Operation::Read { scope: "team".to_owned(), key: "token".to_owned() };
    let txn = Txn { then: vec![read], ..Txn::default() };
    for operation in ["bad", "good"] {
        let by = Actor { operation: Some(operation.to_owned()), ..Actor::default() };
        board.txn(&txn, &by).unwrap();
    }
    tamper(&scratch, "UPDATE operations SET created_at = 'never' WHERE operation_id = 'bad'");
    assert_eq!(scope.plan_purge("token").unwrap().answers, 2);
    let purged = scope.purge("token").unwrap();
    assert_eq!((purged.versions, purged.answers, purged.scrubbed), (1, 2, true));
    let connection = Connection::open(scratch.path()).unwrap();
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM operations WHERE answer LIKE '%s3cret%'"), 0);
    assert_eq!(count("SELECT count(*) FROM operations"), 1, "the one that can be read is remembered");
}

#[test]
fn remembered_answers_are_read_together_also_if_one_cannot_be_read() {
    let scratch = Scratch::new();
    let (store, _) = scratch.board();
    let store = Announced::new(store);
    let round_trips = store.round_trips();
    let board = Board::on(Arc::new(store), scratch.clock.clone());
    let scope = board.scope("team");
    scope.write(&Write::new("token", Value::null())).unwrap();
    let remember = |operation: &str| {
        let by = Actor { operation: Some(operation.to_owned()), ..Actor::default() };
        board.txn(&Txn::default(), &by).unwrap();
    };
    let reads = || {
        round_trips.take();
        scope.plan_purge("token").unwrap();
        round_trips.take().0
    };
    remember("bad");
    tamper(&scratch, "UPDATE operations SET created_at = 'never'");
    let of_one = reads();
    for operation in ["a", "b", "c"] {
        remember(operation);
    }
    assert_eq!(reads(), of_one);
}

#[test]
fn an_agent_that_cannot_be_read_frees_no_name_but_its_own() {
    let scratch = Scratch::new();
    let (_, board) = scratch.board();
    let nameless = |hint: &str| Register {
        name_base: Some("claude".to_owned()),
        session_hint: Some(hint.to_owned()),
        ..Register::default()
    };
    let free = board.agents().register(&nameless("1")).unwrap().agent;
    board.agents().deregister(&free.session_id).unwrap();
    board.agents().register(&Register::named(&free.agent_name)).unwrap();
    let bad = board.agents().register(&Register::named("bad")).unwrap().agent.session_id;
    tamper(&scratch, &format!("UPDATE agents SET started_at = 'x' WHERE session_id = '{bad}'"));
    let again = board.agents().register(&nameless("1")).unwrap().agent;
    assert_eq!(again.session_id, free.session_id);
    assert_ne!(again.agent_name, free.agent_name, "another session has this name");
}

#[test]
fn an_ended_scope_with_an_unreadable_row_is_skipped_and_the_others_are_deleted() {
    for (what, damage, repair) in [
        (
            "an entry",
            "UPDATE entry_versions SET value = '{' WHERE key = 'bad'",
            "UPDATE entry_versions SET value = 'null' WHERE key = 'bad'",
        ),
        (
            "its policies",
            "UPDATE scopes SET created_at = 'x' WHERE scope = 'bad'",
            "UPDATE scopes SET created_at = updated_at WHERE scope = 'bad'",
        ),
    ] {
        let scratch = Scratch::new();
        let (_, board) = scratch.board();
        let session = board.agents().register(&Register::named("Ivy")).unwrap().agent.session_id;
        for name in ["bad", "good"] {
            let policies = Policies { visibility: Visibility::Local, ..Policies::default() };
            let create = CreateScope { session: Some(session.clone()), ..CreateScope::new(name, policies) };
            board.scopes().create(&create).unwrap();
            let scope = board.scope(name).acting_as(Actor::session(&session));
            scope.write(&Write::new(name, Value::null())).unwrap();
        }
        tamper(&scratch, damage);
        board.agents().deregister(&session).unwrap();
        let has_entries = |scope| {
            let range = Range::entries(scope, "");
            board.read(&[Prefetch::Any(range.clone())], |tx| tx.any(&range)).unwrap()
        };
        assert_eq!((has_entries("bad"), has_entries("good")), (true, false), "{what}");
        for swept in [board.try_sweep(None), board.sweep(&Sweep::default()).unwrap()] {
            let [skipped] = &swept.skipped_scopes[..] else { panic!("{what}: {swept:?}") };
            assert_eq!(skipped.scope, "bad", "{what}: {swept:?}");
        }
        tamper(&scratch, repair);
        let swept = board.sweep(&Sweep::default()).unwrap();
        assert_eq!((swept.deleted_scopes, swept.skipped_scopes), (vec!["bad".to_owned()], Vec::new()));
        assert!(!has_entries("bad"), "{what}");
    }
}

#[test]
fn an_unreadable_list_of_ended_scopes_is_reported() {
    let scratch = Scratch::new();
    let (_, board) = scratch.board();
    tamper(&scratch, "INSERT INTO marks (name, value) VALUES ('ended-scopes:session:x', x'ff00')");
    for swept in [board.try_sweep(None), board.sweep(&Sweep::default()).unwrap()] {
        let [skipped] = &swept.skipped_scopes[..] else { panic!("{swept:?}") };
        assert_eq!(skipped.scope, "");
    }
}
