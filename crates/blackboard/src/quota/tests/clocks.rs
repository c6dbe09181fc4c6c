use super::*;

const HOUR: u64 = 60;

#[test]
fn a_clock_that_is_ahead_for_a_while_changes_nothing_for_good() {
    let stage = Stage::with_windows(&[("5h", 1_000), ("7d", 10_000)]);
    let now = stage.now();
    stage.record("before", now, 100);
    stage.clock.set("2030-01-01T00:00:00Z".parse().unwrap());
    stage.record("ahead", stage.now(), 10);
    stage.advance(HOUR);
    assert_eq!(stage.record("before", now, 100).duplicates, 1, "its id is still known");
    stage.clock.set(now.plus(Duration::from_mins(5)));
    assert_eq!(stage.record("before", now, 100).duplicates, 1);
    assert_eq!(stage.record("after", stage.now(), 1).recorded, 1);
    assert_eq!((stage.used(0), stage.used(1)), (111, 111), "usage in the future is in every window");
    // Once the clock goes on without a jump, it is moved to the present, and leaves the windows from there.
    stage.advance(7 * HOUR);
    stage.record("settled", stage.now(), 1);
    assert_eq!((stage.used(0), stage.used(1)), (11, 112));
    stage.advance(6 * HOUR);
    assert_eq!((stage.used(0), stage.used(1)), (0, 112));
    assert_eq!(stage.rows("SELECT sum(input) FROM buckets"), 112);
}

#[test]
fn a_clock_that_is_behind_for_a_while_loses_nothing() {
    let stage = Stage::with_windows(&[("5h", 1_000)]);
    let now = stage.now();
    stage.record("before", now, 100);
    stage.clock.set("2020-01-01T00:00:00Z".parse().unwrap());
    assert_eq!(stage.used(0), 100, "usage in the future is in the window");
    assert_eq!(stage.record("true time", now, 10).recorded, 1, "the platform may have another clock");
    stage.clock.set(now.plus(Duration::from_mins(1)));
    assert_eq!(stage.used(0), 110);
    assert_eq!(stage.record("before", now, 100).duplicates, 1);
}

#[test]
fn a_clock_that_was_ahead_for_long_counts_new_messages_again_and_old_ones_never_twice() {
    let stage = Stage::with_windows(&[("5h", 1_000), ("7d", 10_000)]);
    let now = stage.now();
    stage.record("before", now, 100);
    stage.clock.set("2030-01-01T00:00:00Z".parse().unwrap());
    for _ in 0..50 {
        stage.record(&format!("ahead {}", stage.now()), stage.now(), 1);
        stage.advance(HOUR);
    }
    assert_eq!(stage.rows("SELECT count(*) FROM seen WHERE minute < 31000000"), 0, "old ids are gone");
    stage.clock.set(now.plus(Duration::from_mins(1)));
    for hour in 0..9 {
        assert_eq!(stage.record("before", now, 100).recorded, 0);
        let id = format!("corrected {hour}");
        assert_eq!(stage.record(&id, stage.now(), 1_000).recorded, 1, "what is new counts at once");
        assert_eq!(stage.record(&id, stage.now(), 1_000).duplicates, 1);
        assert_eq!(stage.rows("SELECT coalesce(sum(input), 0) / 1000 FROM buckets"), hour + 1);
        stage.advance(HOUR);
    }
    assert_eq!(stage.record("new", stage.now(), 7).recorded, 1);
    assert_eq!(stage.record("new", stage.now(), 7).duplicates, 1);
    assert_eq!(stage.used(1), 9_057, "what was older than 400 days by that clock is gone");
}

#[test]
fn a_message_of_the_future_counts_as_one_of_now() {
    let stage = Stage::with_windows(&[("5h", 1_000)]);
    stage.record("m", "2031-01-01T00:00:00Z".parse().unwrap(), 100);
    assert_eq!(stage.used(0), 100);
    stage.advance(6 * HOUR);
    assert_eq!(stage.used(0), 0);
}

#[test]
fn usage_in_the_future_frees_up_soon_after_the_clock_is_settled() {
    testkit::limit_test();
    let stage = Stage::with_windows(&[("5h", 1_000)]);
    stage.record("first", stage.now(), 1);
    // After a pause of days, the ledger does not know yet whether its clock is right.
    stage.advance(3 * 24 * HOUR);
    stage.record("future", "2031-01-01T00:00:00Z".parse().unwrap(), 900);
    let window = stage.ledger.status().unwrap().providers[0].windows[0].clone();
    let latest = stage.now().plus(Duration::from_hours(11)).plus(Duration::from_mins(1));
    assert_eq!((window.used, window.frees_at), (900, Some(latest)));
    assert_eq!(stage.ledger.check(&TokenRequest::new("a", 200)).unwrap().fits_at, Some(latest));
    stage.advance(6 * HOUR);
    stage.record("settled", stage.now(), 1);
    stage.clock.set(latest.minus(Duration::from_mins(1)));
    assert_eq!(stage.used(0), 901);
    stage.clock.set(latest);
    assert_eq!(stage.used(0), 0);
}

#[test]
fn reservations_of_a_clock_that_was_ahead_hold_nothing() {
    let stage = Stage::with_windows(&[("5h", 1_000)]);
    let now = stage.now();
    stage.clock.set("2030-01-01T00:00:00Z".parse().unwrap());
    assert!(
        stage.ledger.reserve(&TokenRequest::new("a", 1_000), Duration::from_hours(1)).unwrap().check.fits
    );
    stage.clock.set(now);
    assert!(stage.ledger.check(&TokenRequest::new("a", 1_000)).unwrap().fits);
}
