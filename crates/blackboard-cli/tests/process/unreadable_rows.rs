//! Rows that cannot be read stop neither `sweep` nor the sweep of other commands.

use serde_json::json;

use crate::test_board::TestBoard;

/// Two agents without a process that hold an item each and have not sent a heartbeat for an hour. The item of the first one
/// cannot be read.
fn a_bad_agent_and_a_good_one(board: &TestBoard) -> [String; 2] {
    let sessions = board.sessions("agent", 2);
    board.items(2);
    for (index, session) in sessions.iter().enumerate() {
        board.json(&["work", "claim", &format!("item-{index}"), "--session", session]);
    }
    board.tamper("UPDATE agents SET pid = NULL, process = NULL");
    board.tamper("UPDATE work_items SET claimed_at = 'yesterday' WHERE item_id = 'item-0'");
    board.silence_everybody();
    sessions.try_into().unwrap()
}

#[test]
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
        assert!(skipped["error"].as_str().unwrap().contains("work_items"), "{answer}");
    }
    assert_eq!([board.status_of(&bad), board.status_of(&good)], ["active", "stale"]);
    let shown = board.run(["sweep"]).success();
    assert!(shown.stdout.contains(&format!("  Skipped: session {bad} (agent-0): ")), "{shown:?}");
}

#[test]
fn every_other_command_sweeps_the_others_and_notes_the_one_that_it_skips() {
    let board = TestBoard::new();
    let [bad, good] = a_bad_agent_and_a_good_one(&board);
    let shown = board.run(["agent", "list"]).success();
    assert!(shown.stderr.contains("marked \"agent-1\" stale"), "{shown:?}");
    assert!(shown.stderr.contains("1 stale agent could not be swept"), "{shown:?}");
    assert_eq!([board.status_of(&bad), board.status_of(&good)], ["active", "stale"]);
    let answer = board.run(["agent", "list", "--json"]).success();
    assert_eq!(answer.stderr, "");
}

#[test]
fn a_heartbeat_dated_next_year_does_not_keep_older_ones() {
    let board = TestBoard::new();
    let session = board.session("Ivy");
    board.json(&["agent", "heartbeat", "--session", &session]);
    let time = |offset: &str| format!("strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '{offset}')");
    board.tamper(&format!(
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

#[test]
fn a_dry_run_reports_expired_entries() {
    let board = TestBoard::new();
    board.json(&["write", "note", "1", "--ttl", "1h"]);
    board.tamper("UPDATE entries SET expires_at = '2026-01-01T00:00:00.000Z'");
    board.tamper("UPDATE entry_versions SET expires_at = '2026-01-01T00:00:00.000Z'");
    assert_eq!(board.json(&["sweep", "--dry-run"])["entriesExpired"], 1);
    let shown = board.run(["sweep", "--dry-run"]).success();
    assert!(shown.stdout.contains("  Would expire: 1 entry"), "{shown:?}");
    assert_eq!(board.json(&["sweep"])["entriesExpired"], 1);
}
