//! Waiting for a work item: has the status, gets it later, times out, does not exist.

use super::*;
use crate::work::WaitForItem;

on_every_engine![
    a_wait_returns_at_once_if_the_item_has_the_status,
    a_wait_returns_when_the_item_is_completed,
    a_wait_returns_when_a_stale_holder_loses_the_item,
    a_wait_for_an_item_times_out_with_its_status,
    a_wait_for_a_missing_or_deleted_item_is_refused,
];

const LONG: Option<Duration> = Some(Duration::from_mins(2));

fn wait_for(fixture: &Fixture, id: &str, statuses: &[Status], timeout: Option<Duration>) -> Result<WorkItem> {
    let statuses = statuses.to_vec();
    fixture.board.work().wait(&WaitForItem { statuses, timeout, ..WaitForItem::completed(id) })
}

fn a_wait_returns_at_once_if_the_item_has_the_status(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    for status in Status::ALL {
        let item = fixture.item_that_is(status.as_str(), *status, &ivy);
        for timeout in [None, Some(Duration::ZERO), Some(Duration::MAX)] {
            assert_eq!(wait_for(fixture, status.as_str(), &[*status], timeout).unwrap(), item);
        }
        assert_eq!(wait_for(fixture, status.as_str(), Status::ALL, None).unwrap(), item);
    }
    assert_eq!(wait_for(fixture, "completed", &[], None).unwrap().status, Status::Completed);
}

fn a_wait_returns_when_the_item_is_completed(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    fixture.item("x");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| wait_for(fixture, "x", &[], LONG).unwrap());
        fixture.claim("x", &ivy);
        fixture.item("y");
        fixture.complete("x", &ivy);
        assert_eq!(waiting.join().unwrap(), fixture.work("x"));
    });
}

fn a_wait_returns_when_a_stale_holder_loses_the_item(fixture: &Fixture) {
    let dead = fixture.session_of_process("dead", 10);
    fixture.item("x");
    fixture.claim("x", &dead);
    fixture.processes.end(10);
    // Nothing is due at the start of the wait.
    assert_eq!(fixture.board.try_sweep(None), Swept::default());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| wait_for(fixture, "x", &[Status::Available], LONG).unwrap());
        // No other call is made: the wait itself sweeps.
        fixture.pass(300);
        assert_eq!(waiting.join().unwrap().claimed_by, None);
    });
}

fn a_wait_for_an_item_times_out_with_its_status(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    fixture.item("x");
    for (timeout, waited) in [(Duration::ZERO, "0s"), (Duration::from_millis(20), "20ms")] {
        let refused = wait_for(fixture, "x", &[], Some(timeout)).unwrap_err();
        assert_eq!(refused.code(), Code::TimedOut);
        let expected = format!("timed out after {waited}: work item x is still available");
        assert_eq!(refused.to_string(), expected);
    }
    fixture.claim("x", &ivy);
    let refused = wait_for(fixture, "x", &[Status::Blocked], Some(Duration::ZERO)).unwrap_err();
    let details = refused.details().unwrap();
    assert_eq!((&details["held_by"], &details["held_by_name"]), (&ivy.into(), &"Ivy".into()));
}

fn a_wait_for_a_missing_or_deleted_item_is_refused(fixture: &Fixture) {
    assert_eq!(code(wait_for(fixture, "x", &[], LONG)), Code::WorkNotFound);
    fixture.item("x");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| code(wait_for(fixture, "x", &[], LONG)));
        fixture.board.work().delete("x", false, None).unwrap();
        assert_eq!(waiting.join().unwrap(), Code::WorkNotFound);
    });
}
