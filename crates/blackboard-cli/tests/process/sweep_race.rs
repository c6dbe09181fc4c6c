//! A heartbeat that races the sweep wins, two sweeps mark once, and every command sweeps.

use crate::crowd::at_once;
use crate::scale::{progress, size};
use crate::test_board::TestBoard;

testkit::on_each_engine![
    concurrent_sweeps_mark_each_stale_agent_once,
    an_agent_is_never_stale_after_its_heartbeat_succeeded,
    a_command_that_is_refused_before_its_first_read_sweeps_too,
];

fn concurrent_sweeps_mark_each_stale_agent_once() {
    let board = TestBoard::new();
    let sessions = board.sessions("agent", 20);
    board.items(20);
    for (index, session) in sessions.iter().enumerate() {
        board.json(&["work", "claim", &format!("item-{index}"), "--session", session]);
    }
    // Readers and writers sweep automatically: none may do so before they all start.
    board.forget_processes();
    board.make_all_heartbeats_old();
    let answers = at_once(8, |_| board.json(&["sweep"]));

    let mut marked: Vec<_> = answers
        .iter()
        .flat_map(|answer| answer["staleAgents"].as_array().unwrap())
        .map(|agent| agent["sessionId"].as_str().unwrap())
        .collect();
    marked.sort_unstable();
    let mut expected: Vec<_> = sessions.iter().map(String::as_str).collect();
    expected.sort_unstable();
    assert_eq!(marked, expected, "each one is reported by one sweep");
    assert_eq!((board.count_of("agent_stale"), board.count_of("stale_locks_released")), (20, 20));
    board.assert_sound();
}

fn an_agent_is_never_stale_after_its_heartbeat_succeeded() {
    let rounds = size(60, 10_000);
    let board = TestBoard::new();
    let session = board.session("Ivy");
    board.items(1);
    board.forget_processes();
    let mut recovered = 0;
    for round in 1..=rounds {
        board.json(&["work", "claim", "item-0", "--session", &session]);
        board.make_all_heartbeats_old();
        let answers = at_once(2, |index| match index {
            // Alternates who starts first.
            _ if index == round % 2 => board.json(&["sweep"]),
            _ => board.json(&["agent", "heartbeat", "--session", &session]),
        });
        let (sweep, beat) = (&answers[round % 2], &answers[1 - round % 2]);
        // A sweep that saw the heartbeat does not mark the agent; one that did not see it came before.
        assert_eq!(beat["recovered"] == true, sweep["staleAgents"][0].is_object(), "{sweep} {beat}");
        assert_eq!(board.status_of(&session), "active", "round {round}");
        let lost = usize::from(beat["recovered"] == true);
        assert_eq!(beat["lost"].as_array().unwrap().len(), lost);
        recovered += lost;
        progress("sweep-race, rounds", round, rounds);
    }
    println!("sweep-race: {rounds} rounds, the sweep came first in {recovered}");
    assert_eq!((board.count_of("agent_stale"), board.count_of("agent_recovered")), (recovered, recovered));
    board.assert_sound();
}

fn a_command_that_is_refused_before_its_first_read_sweeps_too() {
    let board = TestBoard::new();
    let session = board.session("Ivy");
    board.forget_processes();
    board.make_all_heartbeats_old();
    // Locks have their own verbs, so this is refused before the board is read.
    let refused = board.run(["write", "--scope", "locks", "deploy", "1"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    let note = refused.stderr.find("marked Ivy (");
    assert!(note.is_some() && note < refused.stderr.find("error:"), "{refused:?}");
    assert_eq!(board.status_of(&session), "stale");
}
