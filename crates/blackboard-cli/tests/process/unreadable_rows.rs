//! Rows that cannot be read stop neither `sweep`, nor the sweep of other commands, nor lists.

use serde_json::json;

use crate::scratch::with_dying_process;
use crate::test_board::TestBoard;

testkit::on_each_engine![
    sweep_reports_the_agent_that_it_skips_and_sweeps_the_others,
    skipped_agent_whose_process_has_ended_gets_no_advice_that_cannot_help,
    every_other_command_sweeps_the_others_and_notes_the_one_that_it_skips,
    a_heartbeat_dated_next_year_does_not_keep_older_ones,
    a_dry_run_reports_expired_entries,
    lists_show_what_can_be_read_and_report_the_rest,
    an_answer_without_unreadable_rows_has_no_such_field,
    an_export_has_what_can_be_read_and_says_what_is_missing,
    a_row_that_is_asked_for_by_its_id_is_an_error_with_the_fix,
    an_event_that_cannot_be_read_stops_no_reader_and_no_writer,
    a_clock_row_that_cannot_be_read_stops_no_sweep,
    a_purge_erases_rows_that_cannot_be_read,
    hooks_leave_out_rows_that_cannot_be_read_and_note_them_in_their_log,
];

/// Two agents without a process that hold an item each and have not sent a heartbeat for an hour. The item of the first one
/// cannot be read.
fn a_bad_agent_and_a_good_one(board: &TestBoard) -> [String; 2] {
    let sessions = board.sessions("agent", 2);
    board.items(2);
    for (index, session) in sessions.iter().enumerate() {
        board.json(&["work", "claim", &format!("item-{index}"), "--session", session]);
    }
    board.forget_processes();
    board.make_all_heartbeats_old();
    board.set_value("work_items", "claimed_at", "yesterday", ("item_id", "item-0"));
    sessions.try_into().unwrap()
}

/// The statement that corrects the item.
const FIX: &str = "UPDATE work_items SET claimed_at = … WHERE item_id = 'item-0'";

fn sweep_reports_the_agent_that_it_skips_and_sweeps_the_others() {
    let board = TestBoard::new();
    let [bad, good] = a_bad_agent_and_a_good_one(&board);
    let dry = board.json(&["sweep", "--dry-run"]);
    let swept = board.json(&["sweep"]);
    for answer in [&dry, &swept] {
        assert_eq!(answer["staleAgents"][0]["sessionId"], good.as_str(), "{answer}");
        assert_eq!(answer["staleAgents"].as_array().unwrap().len(), 1, "{answer}");
        let skipped = &answer["skippedAgents"][0];
        assert_eq!((&skipped["sessionId"], &skipped["agentName"]), (&json!(bad), &json!("agent-0")));
        let error = skipped["error"].as_str().unwrap();
        assert!(
            error.starts_with("row item-0 of work_items cannot be read: column claimed_at: "),
            "{answer}"
        );
        assert!(skipped["hint"].as_str().unwrap().ends_with(FIX), "{answer}");
    }
    assert_eq!([board.status_of(&bad), board.status_of(&good)], ["active", "stale"]);
    let shown = board.run(["sweep"]).success();
    let skipped = format!("  Skipped: agent-0 ({}): row item-0 of work_items cannot be read", &bad[..8]);
    assert!(shown.stdout.contains(&skipped) && shown.stdout.contains(FIX), "{shown:?}");
    let refused = board.run(["agent", "deregister", "--session", &bad]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("error: row item-0 of work_items cannot be read: "), "{refused:?}");
    assert!(refused.stderr.contains(FIX), "{refused:?}");
}

fn skipped_agent_whose_process_has_ended_gets_no_advice_that_cannot_help() {
    let board = TestBoard::new();
    let ivy = with_dying_process(|pid| board.json(&["agent", "register", "--name", "Ivy", "--pid", pid]));
    let ivy = ivy["session_id"].as_str().unwrap();
    board.json(&["work", "claim", "item", "--title", "Item", "--session", ivy]);
    assert!(board.run(["sweep"]).success().stdout.contains("  Gone: 1 agent "), "it can be read");
    board.set_value("work_items", "claimed_at", "yesterday", ("item_id", "item"));
    for call in [&["sweep", "--threshold", "0"][..], &["sweep", "--threshold", "0", "--dry-run"]] {
        let shown = board.run(call).success().stdout;
        assert!(shown.contains(&format!("  Skipped: Ivy ({}): ", &ivy[..8])), "{shown}");
        assert!(!shown.contains("Gone:") && !shown.contains("To release"), "{shown}");
    }
}

fn every_other_command_sweeps_the_others_and_notes_the_one_that_it_skips() {
    let board = TestBoard::new();
    let [bad, good] = a_bad_agent_and_a_good_one(&board);
    let shown = board.run(["agent", "list"]).success();
    assert!(shown.stderr.contains("marked agent-1 ("), "{shown:?}");
    let skipped = "1 stale agent cannot be swept: its rows cannot be read; see: blackboard sweep\n";
    assert!(shown.stderr.contains(skipped), "{shown:?}");
    assert_eq!([board.status_of(&bad), board.status_of(&good)], ["active", "stale"]);
    let answer = board.run(["agent", "list", "--json"]).success();
    assert_eq!(answer.stderr, "");
}

fn a_heartbeat_dated_next_year_does_not_keep_older_ones() {
    let board = TestBoard::new();
    let session = board.session("Ivy");
    board.json(&["agent", "heartbeat", "--session", &session]);
    let time = |offset: &str| format!("strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '{offset}')");
    board.rewrite(&format!(
        "UPDATE heartbeats SET timestamp = {};
         WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 847)
         INSERT INTO heartbeats (session_id, timestamp)
         SELECT '{session}', strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-8 days', -n || ' seconds') FROM number;",
        time("+1 year")
    ));
    let dry = board.json(&["sweep", "--dry-run"]);
    assert_eq!(dry["heartbeatsPruned"], 847);
    let shown = board.run(["sweep", "--dry-run"]).success();
    assert!(shown.stdout.contains("  Would prune: 847 heartbeat records older than 7 days"), "{shown:?}");
    assert_eq!(board.json(&["sweep"])["heartbeatsPruned"], 847);
    assert_eq!(board.number("SELECT count(*) FROM heartbeats"), 1);
}

fn a_dry_run_reports_expired_entries() {
    let board = TestBoard::new();
    board.json(&["write", "note", "1", "--ttl", "1h"]);
    board.let_time_pass();
    assert_eq!(board.json(&["sweep", "--dry-run"])["entriesExpired"], 1);
    let shown = board.run(["sweep", "--dry-run"]).success();
    assert!(shown.stdout.contains("  Would expire: 1 entry"), "{shown:?}");
    assert_eq!(board.json(&["sweep"])["entriesExpired"], 1);
}

/// A board on which one row of each kind cannot be read, and the session that can.
fn a_board_with_bad_rows() -> (TestBoard, String) {
    let board = TestBoard::new();
    let [bad, good]: [String; 2] = board.sessions("agent", 2).try_into().unwrap();
    board.json(&["project", "register", "pai", "--name", "PAI"]);
    board.json(&["project", "register", "bad", "--name", "Bad"]);
    for id in ["bad", "fine", "next"] {
        board.json(&["work", "create", id, "--title", id, "--project", "pai"]);
    }
    board.json(&[
        "work",
        "create",
        "waiting",
        "--title",
        "W",
        "--project",
        "pai",
        "--blocked-by",
        "bad,later",
    ]);
    for key in ["bad", "fine"] {
        board.json(&["write", key, "1"]);
    }
    for name in ["bad", "fine"] {
        board.json(&["lock", "acquire", name, "--session", &good]);
    }
    board.set_value("work_items", "created_at", "yesterday", ("item_id", "bad"));
    board.set_value("agents", "started_at", "never", ("session_id", &bad));
    board.set_value("projects", "registered_at", "never", ("project_id", "bad"));
    board.set_value("entry_versions", "updated_at", "never", ("key", "bad"));
    (board, good)
}

/// The ids of the rows that an answer left out.
fn left_out(answer: &serde_json::Value) -> Vec<&str> {
    let rows = answer["unreadable"].as_array().map(Vec::as_slice).unwrap_or_default();
    rows.iter().map(|row| row["id"].as_str().unwrap()).collect()
}

fn lists_show_what_can_be_read_and_report_the_rest() {
    let (board, good) = a_board_with_bad_rows();
    let agents = board.json(&["agent", "list", "--all"]);
    assert_eq!(agents["items"][0]["session_id"], good.as_str(), "{agents}");
    assert_eq!((&agents["count"], left_out(&agents).len()), (&json!(1), 1), "{agents}");
    for (call, shown, ids) in [
        (&["work", "list"][..], 3, &["bad"][..]),
        // A project counts its work items.
        (&["project", "list"], 1, &["bad", "bad"]),
        (&["lock", "list"], 1, &["locks/bad"]),
        (&["query", "*"], 1, &["default/bad"]),
        (&["list", "--long"], 1, &["default/bad"]),
    ] {
        let answer = board.json(call);
        let without_agents: Vec<_> = left_out(&answer).into_iter().filter(|id| id.len() < 36).collect();
        assert_eq!((&answer["count"], &without_agents[..]), (&json!(shown), ids), "{call:?}: {answer}");
        let human = board.run(call).success();
        assert!(human.stderr.contains(&format!("note: left out row {} of ", ids[0])), "{call:?}: {human:?}");
    }
    for call in [&["project", "status", "pai"][..], &["status"], &["agent", "show", &good]] {
        let answer = board.json(call);
        assert!(!left_out(&answer).is_empty(), "{call:?}: {answer}");
    }
    let waiting = board.json(&["work", "status", "waiting"]);
    assert_eq!(
        (&waiting["open_blockers"], &waiting["missing_blockers"]),
        (&json!(["bad", "later"]), &json!(["later"]))
    );
    assert_eq!(left_out(&waiting), ["bad"]);
    // The reason names the column.
    let row = &board.json(&["work", "list"])["unreadable"][0];
    assert_eq!(row["table"], "work_items");
    assert!(row["reason"].as_str().unwrap().starts_with("column created_at: "), "{row}");
    // Items that can be read are claimed anyway.
    assert_eq!(board.json(&["work", "claim", "--next", "--session", &good])["item_id"], "fine");
}

fn an_answer_without_unreadable_rows_has_no_such_field() {
    let board = TestBoard::new();
    board.items(2);
    assert_eq!(board.json(&["work", "list"]).get("unreadable"), None);
    assert_eq!(board.run(["work", "list"]).success().stderr, "");
}

fn an_export_has_what_can_be_read_and_says_what_is_missing() {
    let (board, _) = a_board_with_bad_rows();
    let file = board.path().join("export.json");
    let file = file.to_str().unwrap();
    let saved = board.run(["export", "--output", file]).success();
    // Two of them are versions that the event log refers to.
    assert!(saved.stdout.ends_with(" without 7 rows that cannot be read)\n"), "{saved:?}");
    assert_eq!(left_out(&board.json(&["export", "--output", file])).len(), 7);
    let written: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!((written["work_items"].as_array().unwrap().len(), left_out(&written).len()), (3, 7));
    // The envelope is complete before the log is read; a note reports the rest.
    let printed = board.run(["export", "--json"]).success();
    assert_eq!((left_out(&printed.json()).len(), printed.stderr.lines().count()), (5, 2), "{printed:?}");
}

fn a_row_that_is_asked_for_by_its_id_is_an_error_with_the_fix() {
    let (board, good) = a_board_with_bad_rows();
    for call in [&["work", "status", "bad"][..], &["work", "claim", "bad", "--session", &good]] {
        let refused = board.run(call);
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(
            refused.stderr.contains("error: row bad of work_items cannot be read: column created_at: "),
            "{refused:?}"
        );
        assert!(
            refused.stderr.contains("UPDATE work_items SET created_at = … WHERE item_id = 'bad'"),
            "{refused:?}"
        );
    }
    // The hint's command fixes it.
    board.set_value("work_items", "created_at", "2026-01-01T00:00:00.000Z", ("item_id", "bad"));
    assert_eq!(board.json(&["work", "status", "bad"])["item_id"], "bad");
    assert_eq!(board.json(&["work", "list"]).get("unreadable"), None);
}

fn an_event_that_cannot_be_read_stops_no_reader_and_no_writer() {
    let board = TestBoard::new();
    let session = board.session("Ivy");
    board.items(2);
    board.scratch().damage_event(2, "metadata");
    board.scratch().damage_event(3, "timestamp");
    board.json(&["write", "after", "1"]);
    let events = board.json(&["observe", "--session", &session]);
    let types: Vec<_> =
        events["items"].as_array().unwrap().iter().map(|event| &event["event_type"]).collect();
    assert_eq!(types, ["unreadable", "unreadable", "entry_written"]);
    let summary = events["items"][1]["summary"].as_str().unwrap();
    // A server has the time in the header of an event.
    let reason = if board.is_served() { "a stored row cannot be read" } else { "column timestamp: " };
    assert!(summary.starts_with("This event cannot be read: ") && summary.contains(reason), "{summary}");
    assert_eq!(board.json(&["observe", "--session", &session])["count"], 0, "the cursor is behind them");
    assert_eq!(board.json(&["work", "status", "item-1"])["item_id"], "item-1");
}

fn a_clock_row_that_cannot_be_read_stops_no_sweep() {
    let board = TestBoard::new();
    let [first, second]: [String; 2] = board.sessions("agent", 2).try_into().unwrap();
    board.forget_processes();
    board.make_all_heartbeats_old();
    // One agent after the other: the first is swept by another command.
    board.change_agents(|agent, now| {
        if agent.session_id == second {
            agent.last_seen_at = now;
        }
    });
    board.damage_clock_readings();
    let shown = board.run(["agent", "list"]).success();
    assert!(shown.stderr.contains("marked agent-0 ("), "{shown:?}");
    board.make_all_heartbeats_old();
    assert_eq!(board.json(&["sweep"])["staleAgents"][0]["sessionId"], second.as_str());
    assert_eq!([board.status_of(&first), board.status_of(&second)], ["stale", "stale"]);
}

fn a_purge_erases_rows_that_cannot_be_read() {
    let board = TestBoard::new();
    board.json(&["write", "token", "\"s3cret\""]);
    board.json(&["write", "token", "\"s3cret again\""]);
    let read = json!({"then": [{"read": {"key": "token"}}]}).to_string();
    board.fed(&["txn", "--op", "read-it"], &read).success();
    board.set_value("entry_versions", "updated_at", "never", ("value", "\"s3cret again\""));
    board.set_value("operations", "created_at", "never", ("operation_id", "read-it"));
    assert_eq!(board.run(["read", "token"]).code, 1);
    let purged = board.json(&["purge", "token"]);
    assert_eq!((&purged["versions"], &purged["answers"]), (&json!(2), &json!(1)), "{purged}");
    assert_eq!(purged["scrubbed"], true, "{purged}");
    for table in ["entry_versions WHERE value", "operations WHERE answer", "events WHERE summary"] {
        assert_eq!(board.number(&format!("SELECT count(*) FROM {table} LIKE '%s3cret%'")), 0, "{table}");
    }
}

fn hooks_leave_out_rows_that_cannot_be_read_and_note_them_in_their_log() {
    let board = TestBoard::new();
    let hook = |session: &str, event: &str| {
        let call = json!({"session_id": session, "hook_event_name": event, "cwd": board.path(), "tool_name": "Bash"});
        board.fed(&["hook", "claude"], &call.to_string()).success().stdout
    };
    assert!(hook("first", "SessionStart").contains("additionalContext"));
    let bad = board.session("bad");
    board.json(&["project", "register", "bad", "--name", "Bad"]);
    board.items(2);
    board.set_value("agents", "started_at", "never", ("session_id", &bad));
    board.set_value("projects", "registered_at", "never", ("project_id", "bad"));
    board.set_value("work_items", "created_at", "never", ("item_id", "item-0"));
    let told = hook("first", "PostToolUse");
    assert!(told.contains("work_created item-1"), "{told}");
    let started = hook("second", "SessionStart");
    assert!(started.contains("additionalContext"), "{started}");
    // Its start was missed.
    let attended = hook("third", "PostToolUse");
    assert!(attended.contains("additionalContext"), "{attended}");
    let log = std::fs::read_to_string(board.scratch().sidecar("hook.log")).unwrap();
    for row in [format!("row {bad} of agents"), "row bad of projects".to_owned()] {
        assert!(log.contains(&row), "{log}");
    }
    assert!(!log.contains("corrupt"), "{log}");
}
