//! Retention: commands that write prune old rows in bounded batches, at most hourly; readers never do. That readers write no
//! byte is checked on a file.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use blackboard::agent::Heartbeat;
use blackboard::store::{BookkeepingRow, Range};
use serde_json::Value;
use testkit::process::RunToEnd as _;
use testkit::wait_until;

use crate::test_board::TestBoard;

testkit::on_each_engine![
    commands_that_write_prune_in_bounded_batches_until_nothing_is_due,
    commands_that_are_refused_or_lose_their_reader_prune_too,
    newest_event_stays_and_ids_continue_after_it,
    completed_item_keeps_the_name_of_a_pruned_agent,
    readers_prune_nothing,
    old_previous_values_are_pruned_and_current_ones_stay,
    small_log_limit_prunes_large_previous_values,
];

/// How many rows one command may remove from one table.
const BATCH: i64 = 2_000;

/// The number of rows that retention may prune.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rows {
    events: i64,
    heartbeats: i64,
    agents: i64,
    operations: i64,
}

fn rows(board: &TestBoard) -> Rows {
    let count = |table| board.number(&format!("SELECT count(*) FROM {table}"));
    Rows {
        events: count("events"),
        heartbeats: count("heartbeats"),
        agents: count("agents"),
        operations: count("operations"),
    }
}

/// A board where 3,000 events and as many heartbeats of a live agent, 30 completed agents, and one of them with 3,000
/// heartbeats of its own, and 3,000 remembered operations, are older than they may become.
fn old_board() -> (TestBoard, String) {
    let board = TestBoard::new();
    let busy = board.session("Busy");
    let library = board.library();
    let mut done = board.sessions("done", 29);
    done.push(busy);
    let ivy = board.session("Ivy");
    for _ in 0..3_000 {
        library
            .agents()
            .heartbeat(&Heartbeat { progress: Some("half".to_owned()), ..Heartbeat::of(&ivy) })
            .unwrap();
    }
    for session in &done {
        library.agents().deregister(session).unwrap();
    }
    library.maintain();
    drop(library);
    // Before all heartbeats of the loop above, which takes minutes on a busy machine: two may not be of one millisecond.
    board.rewrite(
        "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 3000) \
         INSERT INTO heartbeats (session_id, timestamp) \
         SELECT session_id, strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-1 day', -n || ' minutes') FROM agents, numbers \
         WHERE agent_name IN ('Busy', 'Ivy')",
    );
    board.rewrite(
        "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 3000) \
         INSERT INTO operations (operation_id, verb, answer, revision, created_at) \
         SELECT 'op-' || n, 'agent heartbeat', '{}', 1, '2020-01-01T00:00:00.000Z' FROM numbers",
    );
    age(&board);
    (board, ivy)
}

/// Makes everything 40 days older, except the times of live agents.
fn age(board: &TestBoard) {
    let older = |column| format!("{column} = strftime('%Y-%m-%dT%H:%M:%fZ', {column}, '-40 days')");
    board.rewrite(&format!(
        "UPDATE events SET {}; UPDATE heartbeats SET {}; UPDATE agents SET {} WHERE ended_at IS NOT NULL",
        older("timestamp"),
        older("timestamp"),
        older("ended_at")
    ));
}

/// Makes pruning due again.
fn let_an_hour_pass(board: &TestBoard) {
    board.scratch().change_rows(&Range::bookkeeping_rows("prune"), |row: &mut BookkeepingRow, now| {
        let mut value: Value = serde_json::from_str(&row.value).unwrap();
        value["due_at"] = now.minus(Duration::from_secs(1)).to_string().into();
        row.value = value.to_string();
    });
}

fn write(board: &TestBoard, session: &str) {
    // This command writes nothing itself, so pruning is the only change.
    board.run(["work", "release", "item-0", "--session", session]).success();
}

fn commands_that_write_prune_in_bounded_batches_until_nothing_is_due() {
    let (board, ivy) = old_board();
    board.items(1);
    let mut commands = 0;
    loop {
        let before = rows(&board);
        write(&board, &ivy);
        let after = rows(&board);
        for (what, removed) in [
            ("events", before.events - after.events),
            ("heartbeats", before.heartbeats - after.heartbeats),
            ("agents", before.agents - after.agents),
            ("operations", before.operations - after.operations),
        ] {
            assert!((0..=BATCH).contains(&removed), "{removed} {what} in command {commands}");
        }
        board.assert_sound();
        commands += 1;
        assert!(commands < 40, "there is an end to it");
        if before == after {
            break;
        }
    }
    let left = rows(&board);
    assert_eq!((left.heartbeats, left.agents, left.operations), (0, 1, 0), "{left:?}");
    assert_eq!(board.number("SELECT min(timestamp) > strftime('%Y', 'now', '-30 days') FROM events"), 1);

    // Nothing was due: no command checks again for an hour.
    board.run(["agent", "heartbeat", "--session", &ivy, "--progress", "more"]).success();
    age(&board);
    let before = rows(&board);
    write(&board, &ivy);
    assert_eq!(rows(&board), before, "not yet");
    let_an_hour_pass(&board);
    write(&board, &ivy);
    let after = rows(&board);
    assert!(after.events < before.events && after.events >= 1, "{before:?} {after:?}");
}

fn commands_that_are_refused_or_lose_their_reader_prune_too() {
    let board = TestBoard::new();
    let ivy = board.session("Ivy");
    let refused: &[&str] = &["work", "claim", "none", "--session", &ivy];
    let unheard: &[&str] = &["work", "create", "new", "--title", "New"];
    for (call, code) in [(refused, 3), (unheard, 0)] {
        for _ in 0..10 {
            board.run(["agent", "heartbeat", "--session", &ivy, "--progress", "half"]).success();
        }
        age(&board);
        let_an_hour_pass(&board);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = board.command(call).stdout(writer).stderr(Stdio::piped()).spawn().unwrap().run_to_end();
        assert_eq!(ended.status.code(), Some(code), "{ended:?}");
        assert!(rows(&board).events <= 2, "{call:?}: {:?}", rows(&board));
    }
}

fn newest_event_stays_and_ids_continue_after_it() {
    let board = TestBoard::new();
    let ivy = board.session("Ivy");
    board.items(10);
    age(&board);
    let newest = board.log().last().unwrap().id;
    for _ in 0..3 {
        write(&board, &ivy);
    }
    assert_eq!(board.log().iter().map(|line| line.id).collect::<Vec<_>>(), [newest]);
    let claimed = board.json(&["work", "claim", "item-0", "--session", &ivy]);
    assert_eq!(claimed["fence"], newest + 1);
}

fn completed_item_keeps_the_name_of_a_pruned_agent() {
    let board = TestBoard::new();
    let (ivy, oak) = (board.session("Ivy"), board.session("Oak"));
    board.items(1);
    board.json(&["work", "claim", "item-0", "--session", &oak]);
    board.json(&["work", "complete", "item-0", "--session", &oak]);
    board.json(&["agent", "deregister", "--session", &oak]);
    age(&board);
    let_an_hour_pass(&board);
    board.run(["agent", "heartbeat", "--session", &ivy]).success();
    assert_eq!(board.number("SELECT count(*) FROM agents"), 1);
    let done_by = "SELECT count(*) FROM work_items WHERE claimed_by IS NULL AND claimed_by_name = 'Oak'";
    assert_eq!(board.number(done_by), 1);
}

fn readers_prune_nothing() {
    let (board, ivy) = old_board();
    let before = rows(&board);
    if !board.is_served() {
        board.tamper("PRAGMA wal_checkpoint(TRUNCATE)");
    }
    // A server has no files of its own: the rows are compared below.
    let read = |file: &Path| fs::read(file).unwrap_or_default();
    let files = || (read(board.database()), read(&board.beside("-wal")));
    let bytes = files();
    for call in [
        &["agent", "list", "--all"][..],
        &["agent", "show", &ivy],
        &["observe", "--since", "1h"],
        &["observe", "--session", &ivy, "--peek"],
        &["work", "list"],
        &["project", "list"],
        &["status"],
        &["export"],
        &["sweep", "--dry-run"],
        &["list"],
        &["snapshot"],
        &["query"],
    ] {
        board.run(call).success();
        assert!(files() == bytes, "{call:?} has written");
    }
    // A cursor is written, and that is all.
    board.run(["observe", "--session", &ivy]).success();
    assert_eq!(rows(&board), before);
}

fn old_previous_values_are_pruned_and_current_ones_stay() {
    let board = TestBoard::new();
    let ivy = board.session("Ivy");
    let first = board.json(&["write", "fact", "1", "--tag", "x"])["revision"].to_string();
    board.json(&["write", "fact", "2", "--tag", "x"]);
    board.json(&["write", "untouched", "\"since then\""]);
    board.json(&["write", "removed", "1"]);
    board.json(&["delete", "removed"]);
    age(&board);
    let current = board.json(&["write", "fact", "3", "--tag", "x"])["revision"].to_string();
    let before = board.json(&["snapshot"]);
    assert_eq!(board.run(["read", "fact", "--value", "--as-of", &first]).success().stdout, "1\n");

    let_an_hour_pass(&board);
    board.run(["agent", "heartbeat", "--session", &ivy]).success();
    assert_eq!(board.json(&["snapshot"]), before, "what is current stays, however old it is");
    assert_eq!(board.json(&["list", "--tag", "x"]), serde_json::json!(["fact"]));
    let refusal = board.refusal(4, &["read", "fact", "--as-of", &first]);
    assert_eq!(refusal["code"], "compacted", "{refusal}");
    let floor = refusal["floor"].to_string();
    // From the oldest kept revision on, every answer is right.
    assert_eq!(board.run(["read", "fact", "--value", "--as-of", &floor]).success().stdout, "2\n");
    assert_eq!(
        board.run(["read", "untouched", "--value", "--as-of", &floor]).success().stdout,
        "\"since then\"\n"
    );
    assert_eq!(board.run(["read", "removed", "--as-of", &floor]).code, 3);
    assert_eq!(board.run(["read", "fact", "--value", "--as-of", &current]).success().stdout, "3\n");
    let history = board.json(&["history", "fact"]);
    assert_eq!((&history["count"], &history["compacted"]), (&2.into(), &true.into()), "{history}");
    assert_eq!(board.run(["history", "removed"]).code, 3, "it has no history");
    // After one more write, the second value can be pruned too.
    assert_eq!(board.json(&["write", "fact", "4"])["version"], 4);
    board.assert_sound();
}

fn small_log_limit_prunes_large_previous_values() {
    let board = TestBoard::new();
    board.configure(r#"{"database": {"maxLogMb": 1}}"#);
    let value = |number: usize| format!("\"{number}{}\"", "x".repeat(100_000));
    board.json(&["write", "fact", "\"small, and older than all of them\""]);
    let mut first = None;
    for number in 0..60 {
        let written = board.fed(&["write", "large", "-", "--json"], &value(number)).success().json();
        first.get_or_insert(written["revision"].to_string());
        let_an_hour_pass(&board);
    }
    // A command on a busy machine may leave the pruning to the next one that writes.
    let kept = || board.number("SELECT sum(length(value)) FROM entry_versions");
    wait_until("the log has its size", || {
        let is_small = kept() <= 2_000_000;
        if !is_small {
            board.json(&["write", "other", "1"]);
            let_an_hour_pass(&board);
        }
        is_small.then_some(())
    });
    assert!(
        board.number("SELECT count(*) FROM entry_versions WHERE key = 'large'") > 1,
        "no more than needed"
    );
    assert_eq!(board.run(["read", "large", "--value"]).success().stdout, format!("{}\n", value(59)));
    assert_eq!(board.json(&["read", "large"])["version"], 60);
    board.run(["read", "fact"]).success();
    let refusal = board.refusal(4, &["read", "large", "--as-of", &first.unwrap()]);
    assert_eq!(refusal["code"], "compacted");
    board.assert_sound();
}
