//! The loop of calls that wait, and the schedule of their sweeps.

use super::*;

#[test]
fn a_schedule_asks_one_caller_per_interval() {
    let schedule = SweepSchedule::default();
    assert_eq!(schedule.due_in(), Duration::ZERO);
    assert!(schedule.take_turn());
    *schedule.last() = Some(Instant::now() + SWEEP_INTERVAL);
    assert!(!schedule.take_turn());
    *schedule.last() = Instant::now().checked_sub(SWEEP_INTERVAL);
    assert!(schedule.take_turn());
}

fn wait(timeout: Duration) -> Wait<'static> {
    Wait { timeout, tick: SLICE, sweep: Sweeping::Never, stop: None }
}

#[test]
fn a_call_that_waits_checks_at_once_and_once_more_when_its_time_is_over() {
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
fn a_commit_during_a_check_keeps_the_sleep_from_beginning() {
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
    let stop = StopHandle::default();
    stop.stop();
    let wait = Wait { stop: Some(&stop), ..wait(Duration::MAX) };
    let answer = Board::memory().check_until::<()>(&wait, |_| panic!("it is stopped"));
    assert_eq!(answer.unwrap(), None);
}
