//! One winner among many processes that claim at the same time.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::Value;

use crate::crowd::at_once;
use crate::test_board::TestBoard;

testkit::on_each_engine![
    one_of_64_processes_claims_an_item_and_63_get_its_holder,
    each_of_50_items_goes_to_one_of_64_processes_and_a_follower_sees_every_claim_in_order,
    one_of_32_processes_creates_and_claims_a_new_item,
];

fn one_of_64_processes_claims_an_item_and_63_get_its_holder() {
    let board = TestBoard::new();
    let sessions = board.sessions("agent", 64);
    board.items(1);

    let answers = at_once(sessions.len(), |index| {
        board.run(["work", "claim", "item-0", "--json", "--session", &sessions[index]])
    });

    let winners: Vec<_> = (0..sessions.len()).filter(|&index| answers[index].code == 0).collect();
    let [winner] = winners[..] else { panic!("{} winners", winners.len()) };
    let claimed = answers[winner].json();
    assert_eq!(claimed["claimed"], true);
    for (_, answer) in answers.iter().enumerate().filter(|(index, _)| *index != winner) {
        assert_eq!((answer.code, answer.stderr.as_str()), (4, ""), "{answer:?}");
        let refusal = answer.json();
        assert_eq!(refusal["code"], "already_claimed");
        assert_eq!(refusal["held_by"], sessions[winner].as_str());
        assert_eq!(refusal["held_by_name"], format!("agent-{winner}"));
        assert_eq!(refusal["since"], claimed["claimed_at"]);
        assert_eq!(refusal["fence"], claimed["fence"]);
    }
    assert_eq!(board.count_of("work_claimed"), 1);
    board.assert_sound();
}

fn each_of_50_items_goes_to_one_of_64_processes_and_a_follower_sees_every_claim_in_order() {
    let board = TestBoard::new();
    let sessions = board.sessions("agent", 64);
    let watcher = board.session("watcher");
    board.items(50);
    let before = board.log().last().unwrap().id;

    let over = AtomicBool::new(false);
    let (fences, seen) = thread::scope(|scope| {
        let watching = scope.spawn(|| watch(&board, &watcher, &over));
        let fences = at_once(sessions.len(), |index| claim_until_nothing_is_left(&board, &sessions[index]));
        over.store(true, Ordering::SeqCst);
        (fences, watching.join().unwrap())
    });

    for own in &fences {
        assert!(own.is_sorted_by(|earlier, later| earlier.1 < later.1), "ids only grow: {own:?}");
    }
    let claimed: Vec<_> = fences.into_iter().flatten().collect();
    let items: BTreeSet<_> = claimed.iter().map(|(item, _)| item).collect();
    assert_eq!((claimed.len(), items.len()), (50, 50), "each item once");
    assert_eq!(board.count_of("work_claimed"), 50);
    for (item, fence) in &claimed {
        let line = board.log().into_iter().find(|line| line.id == *fence).unwrap();
        assert_eq!((line.event_type.as_str(), line.target.as_ref()), ("work_claimed", Some(item)));
    }
    // The observer ran during the claims, so an id that became visible after a later one would be missing.
    let seen: Vec<_> = seen.into_iter().filter(|id| *id > before).collect();
    let all: Vec<_> = board.log().into_iter().map(|line| line.id).filter(|id| *id > before).collect();
    assert_eq!(seen, all);
    board.assert_sound();
}

/// Claims until nothing is left, and returns the claimed items with their fence tokens in order.
fn claim_until_nothing_is_left(board: &TestBoard, session: &str) -> Vec<(String, i64)> {
    let mut fences = Vec::new();
    loop {
        let answer = board.run(["work", "claim", "--next", "--json", "--session", session]);
        let claimed = answer.json();
        if answer.code == 3 {
            assert_eq!(claimed["code"], "nothing_available");
            return fences;
        }
        assert_eq!(answer.code, 0, "{answer:?}");
        fences.push((claimed["item_id"].as_str().unwrap().to_owned(), claimed["fence"].as_i64().unwrap()));
    }
}

/// Observes until the end, and returns the ids in the order of arrival. If the cursor cannot be stored because another
/// process is writing, the same events are shown again: an id may come twice, but never late.
fn watch(board: &TestBoard, session: &str, over: &AtomicBool) -> Vec<i64> {
    let mut seen: Vec<i64> = Vec::new();
    loop {
        let last_look = over.load(Ordering::SeqCst);
        let answer = board.json(&["observe", "--session", session]);
        let ids = answer["items"].as_array().unwrap().iter().map(|event| event["id"].as_i64().unwrap());
        for id in ids {
            if seen.last().is_none_or(|last| id > *last) {
                seen.push(id);
            } else {
                assert!(seen.contains(&id), "{id} appeared after {:?}", seen.last());
            }
        }
        if last_look {
            return seen;
        }
    }
}

fn one_of_32_processes_creates_and_claims_a_new_item() {
    let board = TestBoard::new();
    let sessions = board.sessions("agent", 32);
    let answers = at_once(sessions.len(), |index| {
        let title = format!("As agent {index} sees it");
        board.run([
            "work",
            "claim",
            "--id",
            "new",
            "--title",
            &title,
            "--json",
            "--session",
            &sessions[index],
        ])
    });
    let codes: Vec<_> = answers.iter().map(|answer| answer.code).collect();
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == 4).count(), 31, "{codes:?}");
    let created: Vec<Value> = answers.iter().map(|answer| answer.json()["created"].clone()).collect();
    assert_eq!(created.iter().filter(|created| **created == true).count(), 1);
    assert_eq!((board.count_of("work_created"), board.count_of("work_claimed")), (1, 1));
    board.assert_sound();
}
