//! Nothing acknowledged is lost, nothing happens twice: processes that claim and are killed at any moment.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::crowd::{at_once, end_of, kill};
use crate::scale::{Chance, progress, size};
use crate::test_board::TestBoard;

/// How many of a hundred claims are killed.
const KILLED: usize = 30;

#[test]
fn crash_claims() {
    let (workers, claims) = (size(40, 200), size(10, 50));
    let board = TestBoard::new();
    let sessions = board.sessions("agent", workers);
    board.items(workers * claims);

    let answers = at_once(workers, |worker| {
        let mut chance = Chance::new(worker);
        let mut answers = Vec::new();
        for round in 0..claims {
            // Half of them take what comes next, half go for the same items as everybody else.
            let item = format!("item-{}", chance.below(workers * claims));
            let what = if chance.below(2) == 0 { "--next" } else { &item };
            answers.extend(claim_and_perhaps_die(&board, &sessions[worker], what, &mut chance));
            if worker == 0 {
                progress("crash-claims, rounds of the first worker", round + 1, claims);
            }
        }
        answers
    });

    board.assert_sound();
    let mut log = BTreeMap::new();
    for line in board.log().into_iter().filter(|line| line.event_type == "work_claimed") {
        log.insert(line.id, (line.target.unwrap(), line.actor.unwrap()));
    }
    let mut acknowledged = 0;
    for (worker, claimed) in
        answers.iter().enumerate().flat_map(|(worker, own)| own.iter().map(move |one| (worker, one)))
    {
        let fence = claimed["fence"].as_i64().unwrap();
        let expected = (claimed["item_id"].as_str().unwrap().to_owned(), sessions[worker].clone());
        assert_eq!(log.get(&fence), Some(&expected), "acknowledged and lost: {claimed}");
        acknowledged += 1;
    }
    println!(
        "crash-claims: {} calls, {acknowledged} acknowledged, {} on the board",
        workers * claims,
        log.len()
    );
    assert!(acknowledged > 0 && log.len() >= acknowledged / 2, "the test has shown something");
    assert_eq!(
        board.number("SELECT count(*) FROM work_items WHERE status = 'claimed'"),
        i64::try_from(log.len()).unwrap(),
        "one event for each claim"
    );
}

/// Returns what the process answered, if it lived long enough to answer that it has the item.
fn claim_and_perhaps_die(board: &TestBoard, session: &str, what: &str, chance: &mut Chance) -> Option<Value> {
    let child = board.start(["work", "claim", what, "--json", "--session", session]);
    if chance.below(100) < KILLED {
        thread::sleep(Duration::from_micros(chance.below(60_000) as u64));
        kill(child.id());
    }
    let ended = end_of(child);
    assert_eq!(ended.stderr, "", "nobody is told about locks: {ended:?}");
    if let Some(code) = ended.status.code() {
        assert!([0, 3, 4].contains(&code), "{ended:?}");
    }
    // A whole line is an answer, also if its process was killed before it could exit.
    let answer: Value = ended.stdout.ends_with('\n').then(|| serde_json::from_str(&ended.stdout).unwrap())?;
    (answer["ok"] == true).then_some(answer)
}
