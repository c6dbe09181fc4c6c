//! Waiting for a new event: a sleep that is never longer than necessary.

use std::path::{Path, PathBuf};
use std::thread::{self, ScopedJoinHandle};

use super::*;

on_every_engine![
    wait_returns_at_once_if_the_board_is_ahead,
    wait_with_zero_timeout_returns_the_revision,
    wait_times_out_if_nothing_happens,
    commit_of_another_writer_ends_a_wait,
    commit_without_events_does_not_end_a_wait,
    refusal_does_not_end_a_wait,
    commit_wakes_every_waiting_thread,
    reader_that_alternates_reads_and_waits_sees_every_event,
];

/// So long that a test that reaches it has failed.
const LONG: Duration = Duration::from_mins(2);

/// So short that a test may wait for its end.
const SHORT: Duration = Duration::from_millis(20);

fn wait(fixture: &Fixture, after: i64, timeout: Duration) -> i64 {
    fixture.number(fixture.board.wait(fixture.id(after), timeout).unwrap())
}

/// A thread that waits for an event.
struct WaitingThread<'scope> {
    handle: ScopedJoinHandle<'scope, Revision>,
    fixture: &'scope Fixture,
    /// Where the system shows its state. Another system than Linux does not show it.
    task: Option<PathBuf>,
}

impl<'scope> WaitingThread<'scope> {
    /// Starts to wait for the event after this number.
    fn start<'env>(
        scope: &'scope thread::Scope<'scope, 'env>,
        fixture: &'scope Fixture,
        after: i64,
    ) -> WaitingThread<'scope> {
        let (after, (sender, receiver)) = (fixture.id(after), std::sync::mpsc::channel());
        let handle = scope.spawn(move || {
            sender.send(std::fs::read_link("/proc/thread-self").ok()).unwrap();
            fixture.board.wait(after, LONG).unwrap()
        });
        let task = receiver.recv().unwrap().map(|task| Path::new("/proc").join(task));
        WaitingThread { handle, fixture, task }
    }

    /// Returns when the thread sleeps, or has ended. A commit makes a thread runnable if it wakes it, so a thread that
    /// sleeps after a commit goes on waiting.
    fn settle(&self) {
        let Some(task) = &self.task else { return };
        wait_until("a thread that sleeps", || {
            let state = std::fs::read_to_string(task.join("stat")).unwrap_or_default();
            // The name, which is in parentheses, comes before the state.
            let sleeps = state.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('S'));
            (sleeps || self.handle.is_finished()).then_some(())
        });
    }

    /// The number of the event that ended the wait.
    fn end(self) -> i64 {
        self.fixture.number(self.handle.join().unwrap())
    }
}

fn wait_returns_at_once_if_the_board_is_ahead(fixture: &Fixture) {
    fixture.put(&[an_item("x").into(), an_item("y").into()]);
    assert_eq!(wait(fixture, 0, Duration::MAX), 2);
    assert_eq!(wait(fixture, 1, Duration::MAX), 2);
    fixture.put(&[an_item("z").into()]);
    assert_eq!(wait(fixture, 0, Duration::MAX), 3, "the revision is that of now");
}

fn wait_with_zero_timeout_returns_the_revision(fixture: &Fixture) {
    assert_eq!(wait(fixture, 0, Duration::ZERO), 0);
    fixture.put(&[an_item("x").into()]);
    assert_eq!(wait(fixture, 0, Duration::ZERO), 1);
    assert_eq!(wait(fixture, 1, Duration::ZERO), 1);
    assert_eq!(wait(fixture, 100, Duration::ZERO), 1);
}

fn wait_times_out_if_nothing_happens(fixture: &Fixture) {
    fixture.put(&[an_item("x").into()]);
    let began = std::time::Instant::now();
    assert_eq!(wait(fixture, 1, SHORT), 1);
    assert_eq!(wait(fixture, 100, SHORT), 1, "ahead of the board there is nothing to see");
    assert!(began.elapsed() >= 2 * SHORT, "no wait woke for nothing");
}

fn commit_of_another_writer_ends_a_wait(fixture: &Fixture) {
    for round in 0..20 {
        std::thread::scope(|scope| {
            let waiting = WaitingThread::start(scope, fixture, round);
            // In every other round the commit may come before the sleep.
            if round % 2 == 0 {
                waiting.settle();
            }
            fixture.put(&[an_item("x").into()]);
            assert_eq!(waiting.end(), round + 1);
        });
    }
}

fn commit_without_events_does_not_end_a_wait(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    for _ in 0..20 {
        let before = fixture.number(fixture.revision());
        std::thread::scope(|scope| {
            let waiting = WaitingThread::start(scope, fixture, before);
            waiting.settle();
            fixture.beat(&session);
            waiting.settle();
            fixture.put(&[an_item("x").into()]);
            assert_eq!(waiting.end(), before + 1);
        });
    }
}

fn refusal_does_not_end_a_wait(fixture: &Fixture) {
    for round in 0..20 {
        std::thread::scope(|scope| {
            let waiting = WaitingThread::start(scope, fixture, round);
            waiting.settle();
            let refused = fixture.commit(|_| Err(crate::Error::invalid("no")));
            assert_eq!(code(refused), Code::InvalidValue);
            waiting.settle();
            fixture.put(&[an_item("x").into()]);
            assert_eq!(waiting.end(), round + 1);
        });
    }
}

fn commit_wakes_every_waiting_thread(fixture: &Fixture) {
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..32).map(|_| WaitingThread::start(scope, fixture, 0)).collect();
        waiting.iter().for_each(WaitingThread::settle);
        fixture.put(&[an_item("x").into()]);
        for waiting in waiting {
            assert_eq!(waiting.end(), 1);
        }
    });
}

fn reader_that_alternates_reads_and_waits_sees_every_event(fixture: &Fixture) {
    const COMMITS: i64 = 100;
    std::thread::scope(|scope| {
        let following = scope.spawn(|| {
            let mut seen = Vec::new();
            while seen.len() < 2 * usize::try_from(COMMITS).unwrap() {
                let last = seen.last().copied().unwrap_or(Revision::ZERO);
                assert!(fixture.board.wait(last, LONG).unwrap() > last, "the time is over");
                seen.extend(fixture.events_after(last).iter().map(|event| event.id));
            }
            seen
        });
        for _ in 0..COMMITS {
            fixture.put(&[an_item("x").into(), an_item("y").into()]);
        }
        let expected: Vec<_> = (1..=2 * COMMITS).map(|number| fixture.id(number)).collect();
        assert_eq!(following.join().unwrap(), expected);
    });
}
