//! Imports of work items that are killed, and that run beside agents and each other.

use std::fmt::Write as _;
use std::fs;

use blackboard::work::{Claim, ExportItems, Status, WorkFilter};
use testkit::process::wait_for;

use crate::crowd::{at_once, wait_until};
use crate::scale::size;
use crate::test_board::TestBoard;

testkit::on_each_engine![
    a_killed_import_is_completed_by_a_repeated_one,
    concurrent_imports_create_each_item_once_beside_claims,
];

/// A file with so many items, each blocked by the one before it.
fn items(count: usize) -> String {
    let mut lines = String::new();
    for number in 0..count {
        let blocker = number.checked_sub(1).map(|before| format!("\"item-{before}\"")).unwrap_or_default();
        let description = "Text of an issue. ".repeat(20);
        writeln!(
            lines,
            "{{\"id\":\"item-{number}\",\"title\":\"Item {number}\",\"description\":\"{description}\",\"blocked_by\":[{blocker}]}}"
        )
        .unwrap();
    }
    lines
}

/// How many items the board has, after a check that each of them is complete.
fn complete_items(board: &TestBoard) -> usize {
    let all = WorkFilter { statuses: Status::ALL.to_vec(), ..WorkFilter::default() };
    let items = board.library().work().list(&all).unwrap();
    for listed in &items {
        let number: usize = listed.item.item_id.strip_prefix("item-").unwrap().parse().unwrap();
        assert_eq!(
            (listed.item.title.clone(), listed.open_blockers.len()),
            (format!("Item {number}"), number.min(1))
        );
    }
    items.len()
}

fn a_killed_import_is_completed_by_a_repeated_one() {
    let board = TestBoard::new();
    board.session("Ivy");
    let count = size(3_000, 30_000);
    fs::write(board.path().join("items.jsonl"), items(count)).unwrap();
    let file = board.path().join("items.jsonl");
    let call = ["work", "import", "--from", "jsonl", file.to_str().unwrap(), "--json"];
    let mut child = board.start(call);
    wait_until("the first commit", || {
        let items = board.library().work().export(&ExportItems::default()).unwrap();
        (!items.is_empty()).then_some(())
    });
    child.kill().unwrap();
    wait_for(&mut child);
    // It may have ended before it was killed. What is there is complete, and in complete batches.
    let there = complete_items(&board);
    assert!(there == count || there.is_multiple_of(500), "{there}");
    let report = board.json(&call);
    assert_eq!(report["created"], count - there, "{}", report["problems"]);
    assert_eq!(complete_items(&board), count);
    let events = board.count_of("work_created");
    assert_eq!(board.json(&call)["unchanged"], count);
    assert_eq!((board.count_of("work_created"), events), (count, count));
}

fn concurrent_imports_create_each_item_once_beside_claims() {
    let board = TestBoard::new();
    let ivy = board.session("Ivy");
    let count = size(600, 5_000);
    let file = board.path().join("items.jsonl");
    fs::write(&file, items(count)).unwrap();
    let call = ["work", "import", "--from", "jsonl", file.to_str().unwrap(), "--json"];
    at_once(5, |number| {
        if number == 0 {
            let library = board.library();
            let claim = || library.work().claim(&Claim::of("item-0", &ivy)).ok();
            wait_until("the first item", claim);
        } else {
            board.json(&call);
        }
    });
    assert_eq!(board.count_of("work_created"), count);
    let item = board.library().work().status("item-0").unwrap().item;
    assert!(item.is_held_by(&ivy));
    assert_eq!(complete_items(&board), count);
}
