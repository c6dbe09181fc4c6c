//! A session that was marked stale and comes back cannot disturb the session that took over.

use serde_json::Value;

use crate::test_board::TestBoard;

testkit::on_each_engine![
    heartbeat_makes_a_swept_session_active_and_reports_what_it_lost,
    a_stale_session_can_neither_claim_nor_complete,
    late_complete_is_refused_after_another_session_claimed_the_item,
    old_fence_is_refused_after_the_same_session_claimed_again,
    an_old_fence_is_refused_on_every_path_that_changes_an_entry,
];

/// A board on which Ivy claimed an item, sent no heartbeat, and was swept.
struct Swept {
    board: TestBoard,
    ivy: String,
    fence: String,
}

fn swept() -> Swept {
    let board = TestBoard::new();
    let ivy = board.session("Ivy");
    board.items(2);
    let claimed = board.json(&["work", "claim", "item-0", "--session", &ivy]);
    board.json(&["work", "claim", "item-1", "--session", &ivy]);
    board.forget_processes();
    board.make_all_heartbeats_old();
    let swept = board.json(&["sweep"]);
    assert_eq!(swept["staleAgents"][0]["sessionId"], ivy.as_str());
    assert_eq!(swept["staleAgents"][0]["releasedItems"], serde_json::json!(["item-0", "item-1"]));
    let fence = claimed["fence"].to_string();
    Swept { board, ivy, fence }
}

fn heartbeat_makes_a_swept_session_active_and_reports_what_it_lost() {
    let Swept { board, ivy, .. } = swept();
    let beat = board.json(&["agent", "heartbeat", "--session", &ivy]);
    assert_eq!((&beat["recovered"], &beat["status"]), (&true.into(), &"active".into()));
    assert_eq!(beat["lost"], serde_json::json!(["item-0", "item-1"]));
    assert_eq!(board.count_of("agent_recovered"), 1);
    let beat = board.json(&["agent", "heartbeat", "--session", &ivy]);
    assert_eq!((&beat["recovered"], &beat["lost"]), (&false.into(), &serde_json::json!([])));
    board.assert_sound();
}

fn a_stale_session_can_neither_claim_nor_complete() {
    let Swept { board, ivy, fence } = swept();
    assert_eq!(board.refusal(4, &["work", "claim", "item-0", "--session", &ivy])["code"], "session_stale");
    let fences: [&[&str]; 2] = [&[], &["--fence", &fence]];
    for with_fence in fences {
        let call = [&["work", "complete", "item-0", "--session", &ivy], with_fence].concat();
        board.refusal(4, &call);
    }
    assert_eq!(board.count_of("work_completed"), 0);
    board.assert_sound();
}

fn late_complete_is_refused_after_another_session_claimed_the_item() {
    let Swept { board, ivy, fence } = swept();
    let oak = board.session("Oak");
    let taken = board.json(&["work", "claim", "item-0", "--session", &oak]);
    assert!(taken["fence"].as_i64() > fence.parse().ok(), "a fence only grows");
    board.json(&["agent", "heartbeat", "--session", &ivy]);

    for verb in ["complete", "release"] {
        let refusal = board.refusal(4, &["work", verb, "item-0", "--session", &ivy]);
        assert_eq!((&refusal["code"], &refusal["held_by"]), (&"not_holder".into(), &oak.as_str().into()));
        board.refusal(4, &["work", verb, "item-0", "--fence", &fence, "--session", &ivy]);
    }
    // With the new fence token, it still does not hold the item.
    let fence = taken["fence"].to_string();
    board.refusal(4, &["work", "complete", "item-0", "--fence", &fence, "--session", &ivy]);
    board.json(&["work", "complete", "item-0", "--fence", &fence, "--session", &oak]);
    board.assert_sound();
}

fn old_fence_is_refused_after_the_same_session_claimed_again() {
    let Swept { board, ivy, fence } = swept();
    board.json(&["agent", "heartbeat", "--session", &ivy]);
    let again = board.json(&["work", "claim", "item-0", "--session", &ivy]);
    for verb in ["complete", "release"] {
        let refusal = board.refusal(4, &["work", verb, "item-0", "--fence", &fence, "--session", &ivy]);
        assert_eq!((&refusal["code"], &refusal["fence"]), (&"stale_fence".into(), &again["fence"]));
    }
    board.json(&["work", "complete", "item-0", "--fence", &again["fence"].to_string(), "--session", &ivy]);
    board.assert_sound();
}

/// Every way to change an entry; the transaction does some of each.
const CHANGES: &[&[&str]] = &[
    &["write", "result", "\"by Ivy\""],
    &["write", "new", "1", "--if-absent"],
    &["append", "list", "1"],
    &["increment", "count"],
    &["txn", "--file", "change.json"],
    &["delete", "result"],
    &["clear", "*"],
    &["purge", "result"],
];

fn an_old_fence_is_refused_on_every_path_that_changes_an_entry() {
    let Swept { board, ivy, fence } = swept();
    let change = r#"{"then": [{"write": {"key": "result", "value": 1}}, {"delete": {"key": "list"}}]}"#;
    std::fs::write(board.path().join("change.json"), change).unwrap();
    for (key, value) in [("result", "\"by Oak\""), ("list", "[0]"), ("count", "0")] {
        board.json(&["write", key, value]);
    }
    let stale = format!("work:item-0={fence}");
    let is_refused = |by: &[&str], held_at: &Value| {
        let (events, before) = (board.log().len(), board.json(&["snapshot"]));
        for call in CHANGES {
            let refusal = board.refusal(4, &[call, &["--fence", &stale][..], by].concat());
            assert_eq!((&refusal["code"], &refusal["fence"]), (&"stale_fence".into(), held_at), "{call:?}");
        }
        assert_eq!((board.log().len(), board.json(&["snapshot"])), (events, before), "nothing was changed");
    };
    // No session holds it, another session holds it, and the same session holds it again with another fence.
    is_refused(&[], &Value::Null);
    let oak = board.session("Oak");
    let taken = board.json(&["work", "claim", "item-0", "--session", &oak]);
    board.json(&["agent", "heartbeat", "--session", &ivy]);
    is_refused(&["--session", &ivy], &taken["fence"]);
    is_refused(&[], &taken["fence"]);
    board.json(&["work", "release", "item-0", "--session", &oak]);
    let again = board.json(&["work", "claim", "item-0", "--session", &ivy]);
    is_refused(&["--session", &ivy], &again["fence"]);

    let current = format!("work:item-0={}", again["fence"]);
    for call in CHANGES {
        board.json(&[call, &["--fence", &current, "--session", &ivy][..]].concat());
    }
    // If several fence tokens are given, all must be current.
    let both = ["write", "result", "1", "--fence", &current, "--fence", &stale];
    assert_eq!(board.refusal(4, &both)["code"], "stale_fence");
    board.json(&["work", "complete", "item-0", "--session", &ivy]);
    assert_eq!(board.refusal(4, &["write", "late", "1", "--fence", &current])["code"], "stale_fence");
    board.assert_sound();
}
