//! Waiting for a key: already there, arrives later, times out.

use super::*;
use crate::entry::{Entry, Value, WaitFor, Write};

on_every_engine![
    wait_returns_an_existing_key_at_once,
    wait_ends_when_the_key_is_written,
    wait_for_an_unwritten_key_times_out,
    wait_after_a_revision_ignores_older_writes,
    wait_ignores_expired_keys_and_other_scopes,
    write_around_the_start_of_a_wait_is_never_missed,
    wait_for_an_invalid_key_is_refused,
    wait_after_a_future_revision_is_refused,
];

const LONG: WaitFor = WaitFor { timeout: Some(Duration::from_mins(2)), after: None };
const SHORT: WaitFor = WaitFor { timeout: Some(Duration::from_millis(20)), after: None };

fn write(fixture: &Fixture, key: &str, value: i64) -> Revision {
    fixture.board.scope("team").write(&Write::new(key, Value::of(&value).unwrap())).unwrap().revision
}

fn wait(fixture: &Fixture, key: &str, wait: WaitFor) -> Result<Entry> {
    fixture.board.scope("team").wait(key, &wait)
}

fn wait_returns_an_existing_key_at_once(fixture: &Fixture) {
    let revision = write(fixture, "a", 1);
    for timeout in [None, Some(Duration::ZERO), Some(Duration::MAX)] {
        let entry = wait(fixture, "a", WaitFor { timeout, after: None }).unwrap();
        assert_eq!((entry.revision, entry.value), (revision, Value::of(&1).unwrap()));
    }
}

fn wait_ends_when_the_key_is_written(fixture: &Fixture) {
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| wait(fixture, "a", LONG).unwrap());
        for key in ["b", "c", "a", "d"] {
            write(fixture, key, 1);
        }
        assert_eq!(waiting.join().unwrap().key, "a");
    });
}

fn wait_for_an_unwritten_key_times_out(fixture: &Fixture) {
    write(fixture, "b", 1);
    assert_eq!(code(wait(fixture, "a", SHORT)), Code::TimedOut);
    assert_eq!(
        code(wait(fixture, "a", WaitFor { timeout: Some(Duration::ZERO), after: None })),
        Code::TimedOut
    );
}

fn wait_after_a_revision_ignores_older_writes(fixture: &Fixture) {
    let first = write(fixture, "a", 1);
    let after = |revision, wait: WaitFor| WaitFor { after: Some(revision), ..wait };
    assert_eq!(wait(fixture, "a", after(first.previous(), SHORT)).unwrap().revision, first);
    assert_eq!(code(wait(fixture, "a", after(first, SHORT))), Code::TimedOut);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| wait(fixture, "a", after(first, LONG)).unwrap());
        write(fixture, "b", 1);
        let second = write(fixture, "a", 2);
        assert_eq!(waiting.join().unwrap().revision, second);
    });
}

fn wait_ignores_expired_keys_and_other_scopes(fixture: &Fixture) {
    let scope = fixture.board.scope("team");
    let short_lived = Write { ttl: Some(Duration::from_secs(1)), ..Write::new("a", Value::null()) };
    scope.write(&short_lived).unwrap();
    assert!(wait(fixture, "a", SHORT).is_ok());
    fixture.pass(1);
    assert_eq!(code(wait(fixture, "a", SHORT)), Code::TimedOut);
    assert_eq!(code(fixture.board.scope("other").wait("a", &SHORT)), Code::TimedOut);
}

fn write_around_the_start_of_a_wait_is_never_missed(fixture: &Fixture) {
    std::thread::scope(|scope| {
        let (start, started) = std::sync::mpsc::sync_channel::<i64>(0);
        scope.spawn(move || {
            for round in started {
                write(fixture, "a", round);
            }
        });
        let mut seen = None;
        for round in 0..200 {
            start.send(round).unwrap();
            let entry = wait(fixture, "a", WaitFor { after: seen, ..LONG }).unwrap();
            assert_eq!(entry.value, Value::of(&round).unwrap());
            seen = Some(entry.revision);
        }
        drop(start);
    });
}

fn wait_for_an_invalid_key_is_refused(fixture: &Fixture) {
    for key in ["", "task:*", "team:a"] {
        assert_eq!(code(wait(fixture, key, LONG)), Code::InvalidValue, "{key}");
    }
}

fn wait_after_a_future_revision_is_refused(fixture: &Fixture) {
    let wait = WaitFor { after: Some(fixture.revision().next()), ..WaitFor::default() };
    assert_eq!(code(fixture.board.scope("team").wait("key", &wait)), Code::CursorAhead);
}
