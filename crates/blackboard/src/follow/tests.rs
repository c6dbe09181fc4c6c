//! The loop of calls that wait, and when a follower stores its cursor.

use super::*;
use crate::agent::Register;
use crate::work::Create;

fn wait(timeout: Duration) -> Wait<'static> {
    Wait { timeout, tick: SLICE, sweep: Sweeping::Never, stop: None }
}

#[test]
fn waiting_call_checks_at_once_and_once_more_at_its_timeout() {
    testkit::limit_test();
    let board = Board::memory();
    for (timeout, expected) in
        [(Duration::ZERO, &[Wake::First][..]), (Duration::from_millis(1), &[Wake::First, Wake::Unchanged])]
    {
        let mut wakes = Vec::new();
        let answer = board.check_until::<()>(&wait(timeout), |wake| {
            wakes.push(wake);
            Ok(Check::After(Revision::ZERO))
        });
        assert_eq!(answer.unwrap(), None);
        assert_eq!(wakes, expected, "{timeout:?}");
    }
}

#[test]
fn commit_during_a_check_prevents_the_sleep() {
    testkit::limit_test();
    let board = Board::memory();
    let answer = board.check_until(&wait(Duration::MAX), |wake| {
        Ok(match wake {
            Wake::Changed(revision) => Check::Done(revision),
            Wake::First | Wake::Unchanged => {
                let seen = board.revision()?;
                board.work().create(&crate::work::Create::new("x", "X"))?;
                Check::After(seen)
            }
        })
    });
    assert_eq!(answer.unwrap(), Some(Revision::new(1)));
}

#[test]
fn a_call_that_is_stopped_makes_no_check() {
    testkit::limit_test();
    let stop = StopHandle::default();
    stop.stop();
    let wait = Wait { stop: Some(&stop), ..wait(Duration::MAX) };
    let answer = Board::memory().check_until::<()>(&wait, |_| panic!("it is stopped"));
    assert_eq!(answer.unwrap(), None);
}

const CURSOR: &str = "mirror";

/// Follows work items at a named cursor.
fn follower_of_work(board: &Board) -> Follower {
    let types = vec!["work_created".parse().unwrap()];
    let filters = vec![Filter { types, ..Filter::default() }];
    board.follow(&Follow { filters, start: Start::cursor(CURSOR), ..Follow::default() }).unwrap()
}

/// Where a follower that starts now would continue.
fn stored(board: &Board) -> Revision {
    board.follow(&Follow { start: Start::cursor(CURSOR), ..Follow::default() }).unwrap().position()
}

/// Lets a follower wait until its timeout, as if its cursor had been stored long ago.
fn be_idle_for_long(follower: &mut Follower) {
    let cursor = follower.cursor.as_mut().unwrap();
    cursor.stored_at = cursor.stored_at.checked_sub(LONG_BEHIND).unwrap();
    assert_eq!(follower.next_batch(10, Duration::from_millis(1)).unwrap().map(|batch| batch.last), None);
}

#[test]
fn an_idle_follower_stores_its_cursor_behind_unwanted_events() {
    testkit::limit_test();
    let board = Board::memory();
    let mut follower = follower_of_work(&board);
    board.agents().register(&Register::named("Ivy")).unwrap();
    assert!(follower.next_batch(10, Duration::from_millis(1)).unwrap().is_none());
    assert_eq!(stored(&board), Revision::ZERO, "not for every event that it does not want");
    be_idle_for_long(&mut follower);
    assert_eq!(stored(&board), board.revision().unwrap());
}

#[test]
fn an_idle_follower_stores_no_cursor_behind_a_batch_that_was_not_acknowledged() {
    testkit::limit_test();
    let board = Board::memory();
    let mut follower = follower_of_work(&board);
    board.work().create(&Create::new("x", "X")).unwrap();
    let batch = follower.next_batch(10, Duration::ZERO).unwrap().unwrap();
    board.agents().register(&Register::named("Ivy")).unwrap();
    be_idle_for_long(&mut follower);
    assert_eq!(stored(&board), Revision::ZERO);
    follower.acknowledge(batch.last).unwrap();
    assert_eq!(stored(&board), batch.last);
    be_idle_for_long(&mut follower);
    assert_eq!(stored(&board), board.revision().unwrap());
}

#[test]
fn idle_follower_stores_a_cursor_that_failed_because_the_board_was_busy() {
    let scratch = testkit::tempdir().unwrap();
    let path = scratch.path().join("local.db");
    let board = Board::open(&path).unwrap();
    let mut follower = follower_of_work(&board);
    board.work().create(&Create::new("x", "X")).unwrap();
    let batch = follower.next_batch(10, Duration::ZERO).unwrap().unwrap();
    let writer = rusqlite::Connection::open(&path).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    follower.acknowledge(batch.last).unwrap();
    assert_eq!(stored(&board), Revision::ZERO, "it does not wait for the other writer");
    writer.execute_batch("ROLLBACK").unwrap();
    be_idle_for_long(&mut follower);
    assert_eq!(stored(&board), batch.last);
}
