//! A session that was taken for dead and comes back can't harm whoever took over.

use crate::test_board::TestBoard;

/// A board on which Ivy claimed an item, fell silent, and was swept.
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
    board.tamper("UPDATE agents SET pid = NULL, process = NULL");
    board.silence_everybody();
    let swept = board.json(&["sweep"]);
    assert_eq!(swept["staleAgents"][0]["sessionId"], ivy.as_str());
    assert_eq!(swept["staleAgents"][0]["releasedItems"], serde_json::json!(["item-0", "item-1"]));
    let fence = claimed["fence"].to_string();
    Swept { board, ivy, fence }
}

#[test]
fn a_swept_session_is_revived_by_its_heartbeat_and_told_what_it_lost() {
    let Swept { board, ivy, .. } = swept();
    let beat = board.json(&["agent", "heartbeat", "--session", &ivy]);
    assert_eq!((&beat["recovered"], &beat["status"]), (&true.into(), &"active".into()));
    assert_eq!(beat["lost"], serde_json::json!(["item-0", "item-1"]));
    assert_eq!(board.count_of("agent_recovered"), 1);
    let beat = board.json(&["agent", "heartbeat", "--session", &ivy]);
    assert_eq!((&beat["recovered"], &beat["lost"]), (&false.into(), &serde_json::json!([])));
    board.assert_sound();
}

#[test]
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

#[test]
fn a_late_complete_is_refused_after_somebody_else_took_over() {
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
    // It knows the new fence, and still does not hold the item.
    let fence = taken["fence"].to_string();
    board.refusal(4, &["work", "complete", "item-0", "--fence", &fence, "--session", &ivy]);
    board.json(&["work", "complete", "item-0", "--fence", &fence, "--session", &oak]);
    board.assert_sound();
}

#[test]
fn an_old_fence_is_refused_after_the_same_session_claimed_anew() {
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
