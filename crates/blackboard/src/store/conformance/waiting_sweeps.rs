//! Every waiting call keeps sweeping: an agent whose process ends during the wait is marked stale, although no other
//! call is made.

use super::*;
use crate::entry::WaitFor;
use crate::follow::{Follow, Start};
use crate::lock::{Acquire, Release};

on_every_engine![
    a_follower_keeps_sweeping,
    wait_for_a_key_keeps_sweeping_under_concurrent_writes,
    a_wait_for_a_lock_keeps_sweeping,
    a_wait_finds_a_heartbeat_ahead_of_the_clock,
    a_subscription_keeps_sweeping_while_it_waits,
    a_subscription_keeps_sweeping_while_events_arrive,
    a_wait_never_marks_its_own_session,
    a_subscription_never_marks_its_own_session,
    a_plain_wait_changes_nothing,
];

const LONG: Duration = Duration::from_mins(2);

/// Runs `wait` on a thread, lets an agent miss its threshold meanwhile, and waits until that agent is stale. Then
/// `end` ends the wait.
fn marks_while_waiting(fixture: &Fixture, wait: impl FnOnce() + Send, end: impl FnOnce()) {
    let dead = fixture.session_of_process("dead", 10);
    fixture.processes.end(10);
    // The sweep at the start of a command finds nothing.
    assert_eq!(fixture.board.try_sweep(None), Swept::default());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(wait);
        // Ends the wait if the test fails, too.
        let end = AtEnd(Some(end));
        fixture.pass(300);
        wait_until("the agent is stale", || {
            assert!(!waiting.is_finished(), "the wait ended early");
            (fixture.agent(&dead).status == AgentStatus::Stale).then_some(())
        });
        drop(end);
        waiting.join().unwrap();
    });
}

/// Calls something when it is dropped.
struct AtEnd<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|end| end());
    }
}

fn a_follower_keeps_sweeping(fixture: &Fixture) {
    let until = |fixture: &Fixture| {
        let mut follower = fixture.board.follow(&Follow::default()).unwrap();
        while fixture.entry("end").is_none() {
            follower.next_batch(1, LONG).unwrap();
        }
    };
    marks_while_waiting(fixture, || until(fixture), || drop(fixture.write("end", "1")));
}

fn wait_for_a_key_keeps_sweeping_under_concurrent_writes(fixture: &Fixture) {
    let wait = WaitFor { timeout: Some(LONG), after: None };
    std::thread::scope(|scope| {
        let (done, is_done) = std::sync::mpsc::channel::<()>();
        scope.spawn(move || {
            let began = std::time::Instant::now();
            // Ends by itself if the rest of the test failed.
            while is_done.recv_timeout(Duration::from_millis(1)).is_err() && began.elapsed() < LONG {
                fixture.write("other", "1");
            }
        });
        marks_while_waiting(
            fixture,
            || drop(fixture.scope().wait("end", &wait).unwrap()),
            || drop(fixture.write("end", "1")),
        );
        let _ = done.send(());
    });
}

fn a_wait_for_a_lock_keeps_sweeping(fixture: &Fixture) {
    let (ivy, oak) = (fixture.session_of_process("Ivy", 11), fixture.session_of_process("Oak", 12));
    let locks = fixture.board.locks();
    locks.acquire(&Acquire::of("deploy", &ivy)).unwrap();
    marks_while_waiting(
        fixture,
        || drop(fixture.board.locks().acquire_waiting(&Acquire::of("deploy", &oak), LONG).unwrap()),
        || drop(locks.release(&Release::of("deploy", &ivy)).unwrap()),
    );
}

fn a_wait_finds_a_heartbeat_ahead_of_the_clock(fixture: &Fixture) {
    let gone = fixture.session_of_process("gone", 10);
    fixture.processes.end(10);
    fixture.set_heartbeat_ahead(&gone, 3600);
    let wait = WaitFor { timeout: Some(LONG), after: None };
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| fixture.scope().wait("end", &wait).unwrap());
        wait_until("the agent is stale", || {
            (fixture.agent(&gone).status == AgentStatus::Stale).then_some(())
        });
        fixture.write("end", "1");
        waiting.join().unwrap();
    });
}

fn subscribe(fixture: &Fixture) -> crate::event::Subscription {
    fixture.board.subscribe(&Follow::default()).unwrap()
}

fn a_subscription_keeps_sweeping_while_it_waits(fixture: &Fixture) {
    let mut subscription = subscribe(fixture);
    let stop = subscription.stop_handle();
    marks_while_waiting(fixture, move || while subscription.next().is_some() {}, || stop.stop());
}

fn a_subscription_keeps_sweeping_while_events_arrive(fixture: &Fixture) {
    let mut subscription = subscribe(fixture);
    let stop = subscription.stop_handle();
    // It never has to sleep: each event that it reads causes the next one.
    let read = move || {
        fixture.write("other", "1");
        while subscription.next().is_some() {
            fixture.write("other", "1");
        }
    };
    marks_while_waiting(fixture, read, || stop.stop());
}

fn a_wait_never_marks_its_own_session(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    let oak = fixture.session("Oak");
    fixture.pass(300);
    let wait = WaitFor { timeout: Some(LONG), after: None };
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| fixture.scope().acting_as(Actor::session(&ivy)).wait("end", &wait));
        let end = AtEnd(Some(|| drop(fixture.write("end", "1"))));
        wait_until("the other agent is stale", || {
            (fixture.agent(&oak).status == AgentStatus::Stale).then_some(())
        });
        drop(end);
        waiting.join().unwrap().unwrap();
    });
    assert_eq!(fixture.agent(&ivy).status, AgentStatus::Active);
}

fn a_subscription_never_marks_its_own_session(fixture: &Fixture) {
    let starts = [Start::Now, Start::Revision(fixture.revision()), Start::cursor("mirror")];
    for start in starts {
        let (ivy, oak) = (fixture.session("Ivy"), fixture.session("Oak"));
        fixture.pass(300);
        let follow = Follow { start: start.clone(), caller: Some(ivy.clone()), ..Follow::default() };
        let mut subscription = fixture.board.subscribe(&follow).unwrap();
        loop {
            let event = subscription.next_within(LONG).expect("the sweep of the subscription").unwrap();
            if event.event_type == EventType::AgentStale && event.target_id.as_ref() == Some(&oak) {
                break;
            }
        }
        assert_eq!(fixture.agent(&ivy).status, AgentStatus::Active, "{start:?}");
        fixture.board.agents().deregister(&ivy).unwrap();
    }
}

fn a_plain_wait_changes_nothing(fixture: &Fixture) {
    fixture.session("Ivy");
    fixture.pass(300);
    let seen = fixture.revision();
    assert_eq!(fixture.board.wait(seen, Duration::from_millis(1)).unwrap(), seen);
    let mut follower = fixture.board.follow(&Follow::default()).unwrap();
    assert_eq!(follower.next_batch(1, Duration::ZERO).unwrap(), None, "there is no wait");
    let mut reader = fixture.board.follow(&Follow { without_sweep: true, ..Follow::default() }).unwrap();
    assert_eq!(reader.next_batch(1, Duration::from_millis(1)).unwrap(), None);
    assert_eq!(fixture.revision(), seen, "a follower without a sweep changes nothing");
    assert!(follower.next_batch(1, LONG).unwrap().is_some());
}
