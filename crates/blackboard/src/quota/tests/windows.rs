use proptest::prelude::*;

use super::*;

/// Seconds of the windows under test.
const WINDOWS: [(&str, u64); 4] = [("10m", 600), ("5h", 18_000), ("3d", 259_200), ("7d", 604_800)];

#[test]
fn a_record_leaves_the_window_with_the_end_of_its_minute() {
    let stage = Stage::with_windows(&[("10m", 100)]);
    stage.clock.advance(Duration::from_secs(30));
    stage.record("m", stage.now(), 40);
    let frees_at = stage.ledger.status().unwrap().providers[0].windows[0].frees_at;
    assert_eq!(frees_at, Some("2026-02-03T15:41:00Z".parse().unwrap()));
    stage.advance(10);
    assert_eq!(stage.used(0), 40, "it is in a bucket that is partly inside");
    stage.clock.set("2026-02-03T15:40:59.999Z".parse().unwrap());
    assert_eq!(stage.used(0), 40);
    stage.clock.set("2026-02-03T15:41:00Z".parse().unwrap());
    assert_eq!(stage.used(0), 0);
}

#[test]
fn the_forecast_takes_leaving_usage_into_account() {
    let stage = Stage::with_windows(&[("1h", 1_000)]);
    stage.record("old", stage.now(), 500);
    stage.advance(59);
    stage.record("new", stage.now(), 50);
    let window = stage.ledger.status().unwrap().providers[0].windows[0].clone();
    // 10 tokens per minute; 450 left, and 500 more after 2 minutes: 95 minutes, which is longer than the window.
    assert_eq!((window.used, window.used_up_at), (550, None));
    stage.record("more", stage.now(), 400);
    let window = stage.ledger.status().unwrap().providers[0].windows[0].clone();
    // 90 per minute, 50 left: before the old usage leaves.
    assert_eq!(window.used_up_at, Some(stage.now().plus(Duration::from_millis(50 * 60_000 / 90))));
    assert_eq!(window.warning, Some(0.8));
}

#[test]
fn a_reported_limit_overrides_the_sum_until_it_resets() {
    let stage = Stage::with_windows(&[("5h", 1_000), ("7d", 10_000)]);
    stage.record("m", stage.now(), 900);
    stage.advance(2);
    let resets_at = stage.now().plus(Duration::from_mins(30));
    let limit = ReportedLimit {
        provider: "a".to_owned(),
        window_minutes: 300,
        used_percent: 42.5,
        resets_at,
        reported_at: stage.now(),
    };
    assert_eq!(stage.ledger.report(std::slice::from_ref(&limit)).unwrap(), 1);
    let older = ReportedLimit {
        used_percent: 1.0,
        reported_at: stage.now().minus(Duration::from_mins(1)),
        ..limit.clone()
    };
    assert_eq!(stage.ledger.report(&[older]).unwrap(), 0, "the newest report of the account counts");
    let windows = stage.ledger.status().unwrap().providers[0].windows.clone();
    assert_eq!((windows[0].used, windows[0].frees_at), (425, Some(resets_at)));
    assert_eq!(windows[0].reported.as_ref(), Some(&limit));
    assert_eq!((windows[1].used, &windows[1].reported), (900, &None));
    stage.advance(1);
    stage.record("later", stage.now(), 100);
    assert_eq!(stage.used(0), 525, "what was used since the report is added");
    let check = stage.ledger.check(&TokenRequest::new("a", 476)).unwrap();
    assert!(!check.fits);
    stage.advance(29);
    assert_eq!(stage.used(0), 1_000, "the limit was reset, and the sum counts again");
    for wrong in [
        ReportedLimit { used_percent: -1.0, ..limit.clone() },
        ReportedLimit { used_percent: f64::NAN, ..limit.clone() },
        ReportedLimit { window_minutes: 0, ..limit.clone() },
        ReportedLimit { provider: "b".to_owned(), ..limit.clone() },
        ReportedLimit { resets_at: stage.now().plus(Duration::from_hours(7)), ..limit },
    ] {
        assert!(stage.ledger.report(&[wrong]).is_err());
    }
}

#[test]
fn usage_in_the_minute_of_a_report_counts_and_earlier_usage_does_not() {
    testkit::limit_test();
    let stage = Stage::with_windows(&[("5h", 1_000)]);
    stage.clock.advance(Duration::from_secs(30));
    stage.record("a minute before", stage.now().minus(Duration::from_secs(31)), 1);
    let limit = |reported_at| ReportedLimit {
        provider: "a".to_owned(),
        window_minutes: 300,
        used_percent: 50.0,
        resets_at: stage.now().plus(Duration::from_hours(1)),
        reported_at,
    };
    stage.ledger.report(&[limit(stage.now())]).unwrap();
    assert_eq!(stage.used(0), 500);
    stage.clock.advance(Duration::from_secs(10));
    stage.record("in the same minute", stage.now(), 20);
    stage.advance(1);
    stage.record("later", stage.now(), 300);
    assert_eq!(stage.used(0), 820, "nothing after the report is lost");
    // A report at the first moment of a minute.
    stage.clock.set("2026-02-03T15:35:00Z".parse().unwrap());
    stage.ledger.report(&[limit(stage.now())]).unwrap();
    assert_eq!(stage.used(0), 500);
    stage.record("at that moment", stage.now(), 7);
    assert_eq!(stage.used(0), 507);
}

#[test]
fn windows_that_a_platform_reports_as_a_little_shorter_are_the_configured_ones() {
    testkit::limit_test();
    let stage = Stage::with_windows(&[("5h", 1_000), ("7d", 10_000)]);
    let report = |window_minutes, used_percent| {
        let limit = ReportedLimit {
            provider: "a".to_owned(),
            window_minutes,
            used_percent,
            resets_at: stage.now().plus(Duration::from_hours(1)),
            reported_at: stage.now(),
        };
        stage.ledger.report(&[limit]).unwrap();
        (stage.used(0), stage.used(1))
    };
    assert_eq!(report(299, 10.0), (100, 0));
    assert_eq!(report(10_079, 20.0), (100, 2_000));
    stage.advance(1);
    assert_eq!(report(300, 30.0), (300, 2_000), "the newest report counts");
    stage.advance(1);
    assert_eq!(report(299, 40.0), (400, 2_000));
    assert_eq!(report(296, 50.0), (400, 2_000), "another window");
    let limit = |window_minutes, resets_at| ReportedLimit {
        provider: "a".to_owned(),
        window_minutes,
        used_percent: 1.0,
        resets_at,
        reported_at: stage.now(),
    };
    let later = stage.now().plus(Duration::from_mins(1));
    for (limit, expected) in [
        (limit(299, later), true),
        (limit(296, later), false),
        (limit(300, stage.now()), false),
        (ReportedLimit { provider: "b".to_owned(), ..limit(300, later) }, false),
    ] {
        assert_eq!(stage.ledger.replaces_a_sum(&limit), expected, "{limit:?}");
    }
}

#[test]
fn a_longer_window_in_a_changed_configuration_counts_what_was_folded() {
    let mut stage = Stage::with_windows(&[("5h", 1_000_000)]);
    for hour in 0..48_u64 {
        stage.record(&hour.to_string(), stage.now(), 1 << (hour % 16));
        stage.advance(60);
    }
    stage.reopen(
        r#"{"providers": {"a": {"windows": {"5h": {"budget": 1}, "3d": {"budget": 1000000}}}, "b": {}}}"#,
    );
    assert_eq!(stage.used(1), 3 * 65_535);
    assert_eq!(stage.ledger.status().unwrap().providers.len(), 2);
}

/// A step of a random history.
#[derive(Clone, Debug)]
enum Event {
    /// Time passes, in seconds.
    Pass(u64),
    /// A message that ended this many seconds ago used tokens.
    Use(u64, u64),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let pass = prop_oneof![0..90_u64, 0..7_200_u64, 0..100_000_u64].prop_map(Event::Pass);
    let used = (prop_oneof![0..5_u64, 0..4_000_u64, 0..90_000_u64], 1..1_000_u64)
        .prop_map(|(ago, tokens)| Event::Use(ago, tokens));
    prop::collection::vec(prop_oneof![pass, used], 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// A window has everything that a naive sum has, and at most what the next longer period has.
    #[test]
    fn windows_have_at_least_the_naive_sum_and_at_most_one_bucket_more(events in events()) {
        testkit::limit_test();
        let stage = Stage::with_windows(&WINDOWS.map(|(name, _)| (name, 1_000_000_000)));
        let mut known: Vec<(i64, u64)> = Vec::new();
        for (number, event) in events.iter().enumerate() {
            match *event {
                Event::Pass(seconds) => stage.clock.advance(Duration::from_secs(seconds)),
                Event::Use(ago, tokens) => {
                    let at = stage.now().minus(Duration::from_secs(ago));
                    prop_assert_eq!(stage.record(&number.to_string(), at, tokens).recorded, 1);
                    known.push((at.millis(), tokens));
                }
            }
            let since = |millis: i64| -> u64 {
                known.iter().filter(|(at, _)| *at > millis).map(|(_, tokens)| tokens).sum()
            };
            for (place, (name, seconds)) in WINDOWS.into_iter().enumerate() {
                let start = stage.now().millis() - seconds.cast_signed() * 1_000;
                // Windows of up to a day are counted in minutes, longer ones in hours.
                let bucket = if seconds <= 86_400 { 60_000 } else { 3_600_000 };
                let used = stage.used(place);
                prop_assert!(since(start) <= used, "{}: {} counts too little", name, used);
                prop_assert!(used <= since(start - bucket - 1), "{}: {} counts too much", name, used);
            }
        }
        let total: u64 = known.iter().map(|(_, tokens)| tokens).sum();
        prop_assert_eq!(stage.rows("SELECT coalesce(sum(input), 0) FROM buckets"), total.cast_signed());
    }
}
