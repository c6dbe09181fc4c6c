//! Waiting for a new event: a sleep that is never longer than necessary.

use super::*;

on_every_engine![
    a_wait_is_over_at_once_if_the_board_is_ahead,
    a_wait_without_time_is_a_look_at_the_revision,
    a_wait_is_over_with_its_time_if_nothing_happens,
    a_commit_of_somebody_else_ends_a_wait,
    a_commit_without_events_is_nothing_to_wait_for,
    a_refusal_is_nothing_to_wait_for,
    everybody_who_waits_is_told,
    who_reads_and_waits_in_turns_sees_every_event,
];

/// So long that a test that reaches it has failed.
const LONG: Duration = Duration::from_mins(2);

/// So short that a test may wait for its end.
const SHORT: Duration = Duration::from_millis(20);

fn wait(fixture: &Fixture, after: i64, timeout: Duration) -> i64 {
    fixture.number(fixture.board.wait(fixture.id(after), timeout).unwrap())
}

fn a_wait_is_over_at_once_if_the_board_is_ahead(fixture: &Fixture) {
    fixture.put(&[an_item("x").into(), an_item("y").into()]);
    assert_eq!(wait(fixture, 0, Duration::MAX), 2);
    assert_eq!(wait(fixture, 1, Duration::MAX), 2);
    fixture.put(&[an_item("z").into()]);
    assert_eq!(wait(fixture, 0, Duration::MAX), 3, "the revision is that of now");
}

fn a_wait_without_time_is_a_look_at_the_revision(fixture: &Fixture) {
    assert_eq!(wait(fixture, 0, Duration::ZERO), 0);
    fixture.put(&[an_item("x").into()]);
    assert_eq!(wait(fixture, 0, Duration::ZERO), 1);
    assert_eq!(wait(fixture, 1, Duration::ZERO), 1);
    assert_eq!(wait(fixture, 100, Duration::ZERO), 1);
}

fn a_wait_is_over_with_its_time_if_nothing_happens(fixture: &Fixture) {
    fixture.put(&[an_item("x").into()]);
    let began = std::time::Instant::now();
    assert_eq!(wait(fixture, 1, SHORT), 1);
    assert_eq!(wait(fixture, 100, SHORT), 1, "ahead of the board there is nothing to see");
    assert!(began.elapsed() >= 2 * SHORT, "nobody was woken for nothing");
}

fn a_commit_of_somebody_else_ends_a_wait(fixture: &Fixture) {
    for round in 0..20 {
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| wait(fixture, round, LONG));
            fixture.put(&[an_item("x").into()]);
            assert_eq!(waiting.join().unwrap(), round + 1);
        });
    }
}

fn a_commit_without_events_is_nothing_to_wait_for(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    // The wait may begin before or after the commit without events. It ends with the commit that has an event.
    for _ in 0..20 {
        let before = fixture.number(fixture.revision());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| wait(fixture, before, LONG));
            fixture.beat(&session);
            fixture.put(&[an_item("x").into()]);
            assert_eq!(waiting.join().unwrap(), before + 1);
        });
    }
}

fn a_refusal_is_nothing_to_wait_for(fixture: &Fixture) {
    for round in 0..20 {
        std::thread::scope(|scope| {
            let waiting = scope.spawn(move || wait(fixture, round, LONG));
            let refused = fixture.commit(|_| Err(crate::Error::invalid("no")));
            assert_eq!(code(refused), Code::InvalidValue);
            fixture.put(&[an_item("x").into()]);
            assert_eq!(waiting.join().unwrap(), round + 1);
        });
    }
}

fn everybody_who_waits_is_told(fixture: &Fixture) {
    let ready = std::sync::Barrier::new(33);
    std::thread::scope(|scope| {
        let ready = &ready;
        let waiting: Vec<_> = (0..32)
            .map(|_| {
                scope.spawn(move || {
                    ready.wait();
                    wait(fixture, 0, LONG)
                })
            })
            .collect();
        ready.wait();
        fixture.put(&[an_item("x").into()]);
        for waiting in waiting {
            assert_eq!(waiting.join().unwrap(), 1);
        }
    });
}

fn who_reads_and_waits_in_turns_sees_every_event(fixture: &Fixture) {
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
