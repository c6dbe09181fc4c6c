use super::*;
use crate::error::Code;

const DAY_AND_WEEK: &[(&str, u64)] = &[("1d", 1_000_000), ("7d", 1_000_000)];

#[test]
fn a_message_is_counted_once() {
    let stage = Stage::with_windows(&[("5h", 1_000)]);
    let now = stage.now();
    assert_eq!(stage.record("m1", now, 7), Recorded { recorded: 1, ..Recorded::default() });
    assert_eq!(stage.record("m1", now, 7), Recorded { duplicates: 1, ..Recorded::default() });
    // A fork of a session repeats the lines of its parent at a later time.
    assert_eq!(stage.record("m1", now.plus(Duration::from_mins(9)), 7).duplicates, 1);
    assert_eq!(stage.record("m2", now, 5).recorded, 1);
    assert_eq!(stage.used(0), 12);
}

#[test]
fn the_largest_numbers_of_a_message_count_in_any_order() {
    let lines = [(11, 1), (11, 57), (9, 60), (11, 57)];
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
        let stage = Stage::with_windows(&[("5h", 1_000)]);
        let at = stage.now();
        let request = TokenRequest {
            board: Some("b".into()),
            session: Some("s".into()),
            ..TokenRequest::new("a", 100)
        };
        stage.ledger.reserve(&request, Duration::from_hours(24)).unwrap();
        for (number, line) in order.into_iter().enumerate() {
            let (input, output) = lines[line];
            let usage = Usage { input, output, ..Usage::default() };
            let record = Record {
                board: Some("b".into()),
                session: Some("s".into()),
                item: Some("i".into()),
                ..Record::new("m", "a", at, usage)
            };
            // A fork of the session repeats the line.
            let session = if number == 3 { "fork" } else { "s" };
            let recorded =
                stage.ledger.record(&[Record { session: Some(session.into()), ..record }]).unwrap();
            assert_eq!(recorded.recorded, u64::from(number == 0));
            stage.advance(5);
        }
        assert_eq!((stage.used(0), stage.rows("SELECT sum(requests) FROM buckets")), (71, 1), "{order:?}");
        assert_eq!(stage.ledger.used_by_items("b", &["i"]).unwrap(), [71]);
        assert_eq!(stage.ledger.reservations().unwrap()[0].left, 29);
        assert_eq!(stage.ledger.status().unwrap().providers[0].agents.len(), 1, "all is of one session");
    }
    // After an hour they are final.
    let stage = Stage::with_windows(&[("5h", 1_000)]);
    let at = stage.now();
    stage.record("m", at, 7);
    stage.advance(61);
    stage.record("other", stage.now(), 1);
    assert_eq!(stage.record("m", at, 9).duplicates, 1);
    assert_eq!((stage.used(0), stage.rows("SELECT count(*) FROM newest")), (8, 1));
}

#[test]
fn caches_count_with_their_factors_and_are_shown_separately() {
    let usage = Usage { input: 11, cache_write: 101, cache_read: 1001, output: 50, reasoning: 7 };
    for (factors, expected) in [
        ("", 11 + 101 + 101 + 50 + 7),
        (r#""cacheReadFactor": 0, "cacheWriteFactor": 1.25, "#, 11 + 127 + 50 + 7),
        (r#""cacheReadFactor": 1, "#, 11 + 101 + 1001 + 50 + 7),
    ] {
        let stage = Stage::new(&format!(
            r#"{{{factors} "providers": {{"a": {{"windows": {{"5h": {{"budget": 10000}}}}}}}}}}"#
        ));
        stage.ledger.record(&[Record::new("m", "a", stage.now(), usage)]).unwrap();
        let status = stage.ledger.status().unwrap();
        let window = &status.providers[0].windows[0];
        assert_eq!((window.used, window.usage), (expected, usage), "{factors}");
    }
}

#[test]
fn a_record_that_is_older_than_the_kept_ids_is_skipped() {
    let stage = Stage::with_windows(DAY_AND_WEEK);
    let old = stage.now().minus(Duration::from_hours(24 * 9));
    assert_eq!(stage.record("old", old, 1).skipped, 1);
    assert_eq!(stage.record("late", stage.now().minus(Duration::from_hours(24 * 7 + 23)), 1).recorded, 1);
    // The same message, long after.
    assert_eq!(stage.record("m", stage.now(), 5).recorded, 1);
    let at = stage.now();
    for _ in 0..20 {
        stage.advance(60 * 12);
        stage.record(&stage.now().to_string(), stage.now(), 0);
    }
    assert_eq!(stage.record("m", at, 5).skipped, 1);
}

#[test]
fn folding_keeps_the_sums_and_removes_ids() {
    let stage = Stage::with_windows(DAY_AND_WEEK);
    let mut expected = 0;
    for hour in 0..24 * 30_u64 {
        let usage = Usage { input: hour, cache_read: 3, ..Usage::default() };
        let of = Record {
            session: Some(format!("s{}", hour % 7)),
            board: Some("b".to_owned()),
            item: Some("i".to_owned()),
            ..Record::new(format!("m{hour}"), "a", stage.now(), usage)
        };
        stage.ledger.record(&[of]).unwrap();
        expected += hour;
        stage.advance(60);
    }
    assert_eq!(stage.rows("SELECT sum(input) FROM buckets"), i64::try_from(expected).unwrap());
    assert_eq!(stage.rows("SELECT sum(requests) FROM buckets"), 24 * 30);
    assert_eq!(stage.rows("SELECT sum(cache_read) FROM buckets"), 3 * 24 * 30);
    assert_eq!(stage.ledger.used_by_items("b", &["i"]).unwrap(), [expected + 216]);
    assert!(stage.rows("SELECT count(*) FROM seen") < 24 * 10, "ids of more than 9 days are gone");
    assert!(stage.rows("SELECT count(*) FROM buckets") < 24 * 10 + 30);
    assert_eq!(stage.rows("SELECT count(DISTINCT width) FROM buckets"), 3);
    assert_eq!(
        stage.rows(
            "SELECT count(*) FROM buckets JOIN sources ON id = source WHERE width = 1440 AND session <> ''"
        ),
        0
    );
}

#[test]
fn days_and_items_are_kept_for_400_days() {
    testkit::limit_test();
    let stage = Stage::with_windows(DAY_AND_WEEK);
    let start = stage.now();
    let usage = Usage { input: 7, ..Usage::default() };
    let of = Record { item: Some("i".to_owned()), ..Record::new("first", "a", start, usage) };
    stage.ledger.record(&[of]).unwrap();
    for (days, expected) in [(10, 7), (399, 7), (402, 0)] {
        // After a long pause, the ledger removes nothing for 6 hours.
        for hours in [0, 7] {
            stage.clock.set(start.plus(Duration::from_hours(days * 24 + hours)));
            stage.record(&format!("{days} {hours}"), stage.now(), 0);
        }
        assert_eq!(stage.rows("SELECT sum(input) FROM buckets"), expected, "{days}");
        let of_items = stage.ledger.used_by_items("", &["i"]).unwrap();
        assert_eq!(of_items, [expected.unsigned_abs()], "{days}");
    }
}

#[test]
fn the_points_of_a_history_have_all_that_was_recorded() {
    testkit::limit_test();
    // The ledger keeps minutes for 2 hours, and hours for 2 days.
    let stage = Stage::with_windows(&[("1h", 1_000_000)]);
    for half_hour in 0..40_u32 {
        stage.record(&half_hour.to_string(), stage.now(), 1);
        stage.advance(30);
    }
    stage.record("now", stage.now(), 1);
    // Some of it is in hours already.
    assert!(stage.rows("SELECT count(*) FROM buckets WHERE width = 60") > 0);
    for hours in [1, 2, 3, 5, 20, 24, 48, 72, 100] {
        let length = Duration::from_hours(hours);
        let (since, step) = (stage.now().minus(length), stage.ledger.history_step(length));
        let points = stage.ledger.history("a", since, step).unwrap();
        let expected: u64 = points.iter().map(|point| point.tokens).sum();
        let recorded = 41.min(2 * hours + 1);
        // The first step begins before that moment.
        assert!((recorded..=41).contains(&expected), "{hours}: {expected} of {recorded}");
        assert!(hours < 20 || expected == 41, "{hours}: {expected}");
        let expected = match hours {
            0..=2 => Step::FiveMinutes,
            3..=48 => Step::Hour,
            _ => Step::Day,
        };
        assert_eq!(step, expected, "{hours}");
    }
    // A step that is shorter than the buckets of the ledger.
    let points = stage.ledger.history("a", stage.now().minus(Duration::from_hours(20)), Step::FiveMinutes);
    assert_eq!(points.unwrap().iter().map(|point| point.tokens).sum::<u64>(), 41);
}

#[test]
fn invalid_records_are_refused_and_nothing_is_recorded() {
    let stage = Stage::with_windows(&[("5h", 1_000)]);
    let valid = Record::new("m", "a", stage.now(), Usage { input: 1, ..Usage::default() });
    let long = "x".repeat(501);
    for invalid in [
        Record { id: String::new(), ..valid.clone() },
        Record { id: long.clone(), ..valid.clone() },
        Record { model: "a\u{1b}[31m".to_owned(), ..valid.clone() },
        Record { session: Some("a\nb".to_owned()), ..valid.clone() },
        Record { item: Some(long), ..valid.clone() },
        Record { usage: Usage { output: u64::MAX, ..Usage::default() }, ..valid.clone() },
        Record { usage: Usage { input: 20_000_000, output: 1, ..Usage::default() }, ..valid.clone() },
    ] {
        let refused = stage.ledger.record(&[valid.clone(), invalid]).unwrap_err();
        assert_eq!(refused.code(), Code::InvalidValue, "{refused}");
    }
    assert_eq!(stage.rows("SELECT count(*) FROM buckets"), 0);
    let largest = Usage { input: 20_000_000, ..Usage::default() };
    assert_eq!(stage.ledger.record(&[Record { usage: largest, ..valid }]).unwrap().recorded, 1);
}

#[test]
fn a_session_is_one_row_with_its_newest_name() {
    testkit::limit_test();
    let stage = Stage::with_windows(&[("5h", 1_000)]);
    for (id, session, agent) in [
        ("1", Some("s1"), None),
        ("2", Some("s1"), Some("Sage")),
        ("3", Some("s1"), Some("Ivy")),
        ("4", Some("s1"), None),
        ("5", None, Some("by hand")),
        ("6", None, None),
    ] {
        let usage = Usage { input: 10, ..Usage::default() };
        let record = Record {
            board: Some("b".to_owned()),
            session: session.map(str::to_owned),
            agent: agent.map(str::to_owned),
            item: Some(format!("item {id}")),
            ..Record::new(id, "a", stage.now(), usage)
        };
        stage.ledger.record(&[record]).unwrap();
    }
    let provider = stage.ledger.status().unwrap().providers.remove(0);
    let agents: Vec<_> =
        provider.agents.iter().map(|one| (one.session.as_str(), one.agent.as_str(), one.tokens)).collect();
    assert_eq!(agents, [("s1", "Ivy", 40), ("", "", 10), ("", "by hand", 10)]);
}

#[test]
fn usage_is_shown_by_session_and_work_item() {
    let stage = Stage::with_windows(&[("5h", 1_000)]);
    for (id, session, item, input) in [
        ("1", "s1", Some("x"), 5),
        ("2", "s1", Some("y"), 6),
        ("3", "s2", Some("x"), 20),
        ("4", "s1", None, 1),
    ] {
        let usage = Usage { input, ..Usage::default() };
        stage
            .ledger
            .record(&[Record {
                board: Some("b".to_owned()),
                session: Some(session.to_owned()),
                agent: Some(format!("name of {session}")),
                item: item.map(str::to_owned),
                ..Record::new(id, "a", stage.now(), usage)
            }])
            .unwrap();
    }
    let status = stage.ledger.status().unwrap();
    let provider = &status.providers[0];
    let agents: Vec<_> = provider.agents.iter().map(|one| (one.agent.as_str(), one.tokens)).collect();
    assert_eq!(agents, [("name of s2", 20), ("name of s1", 12)]);
    let items: Vec<_> = provider.items.iter().map(|one| (one.item.as_str(), one.tokens)).collect();
    assert_eq!(items, [("x", 25), ("y", 6)]);
    assert_eq!(provider.load.active_agents, 2);
    assert_eq!((provider.load.tokens_per_minute, provider.load.requests_per_minute), (7, 1));
}

#[test]
fn the_status_of_a_board_names_nothing_of_other_boards() {
    testkit::limit_test();
    let stage = Stage::with_windows(&[("5h", 1_000)]);
    let record = |id: &str, board: Option<&str>, item: Option<&str>, input: u64| {
        let usage = Usage { input, ..Usage::default() };
        let record = Record {
            board: board.map(str::to_owned),
            session: Some(format!("session of {id}")),
            item: item.map(str::to_owned),
            ..Record::new(id, "a", stage.now(), usage)
        };
        stage.ledger.record(&[record]).unwrap();
    };
    record("own", Some("/here"), Some("x"), 100);
    record("other", Some("/there"), Some("secret"), 20);
    record("other without an item", Some("/there"), None, 3);
    record("unknown", None, None, 4);
    for (board, tokens) in [("/here", 50), ("/there", 7)] {
        let session = Some(format!("session on {board}"));
        let request =
            TokenRequest { board: Some(board.to_owned()), session, ..TokenRequest::new("a", tokens) };
        stage.ledger.reserve(&request, Duration::from_mins(5)).unwrap();
    }

    let all = stage.ledger.status().unwrap().providers.remove(0);
    assert_eq!((all.agents.len(), all.items.len(), all.reservations.len()), (4, 2, 2));
    assert_eq!(all.other_boards, None);
    let here = stage.ledger.status_of_board("/here").unwrap().providers.remove(0);
    assert_eq!(here.windows, all.windows, "windows are those of all boards");
    assert_eq!(here.load, all.load);
    assert_eq!((here.agents.len(), here.items.len(), here.reservations.len()), (1, 1, 1));
    assert_eq!(here.other_boards, Some(OtherBoards { tokens: 27, items: 20, reserved: 7 }));
    let text = serde_json::to_string(&here).unwrap();
    assert!(!text.contains("there") && !text.contains("secret"), "{text}");
}

/// 5,000 messages a day by 20 agents, each with its own session and 3 work items a day.
#[test]
fn a_year_of_heavy_use_stays_below_5_mb() {
    const YEAR_OF_ITEMS: &str = "WITH RECURSIVE days (day) AS (SELECT 1 UNION ALL SELECT day + 1 FROM days WHERE day < 365),
        numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < 60)
        INSERT INTO items SELECT '/home/ivy/projects/alpha/.blackboard/local.db', 'task-' || day || '-' || number, 29000000,
        80, 99999, 999999, 9999999, 99999, 9999 FROM days, numbers";
    const YEAR_OF_DAYS: &str = "WITH RECURSIVE days (day) AS (SELECT 1 UNION ALL SELECT day + 1 FROM days WHERE day < 365)
        INSERT INTO buckets SELECT 1440, day * 1440, 1, 5000, 9999999, 99999999, 999999999, 9999999, 999999 FROM days";
    let stage = Stage::with_windows(&[("5h", 1_000_000_000), ("7d", 1_000_000_000)]);
    // Old days are small, and all are alike: the last weeks decide. A year of items and days is added as rows.
    for day in 0..12_u32 {
        let mut records = Vec::new();
        for number in 0..5_000_u32 {
            let agent = number % 20;
            let at = stage.now().plus(Duration::from_secs(u64::from(number) * 7));
            let usage =
                Usage { input: 1_234, cache_write: 9_876, cache_read: 123_456, output: 777, reasoning: 55 };
            records.push(Record {
                model: "claude-opus-4-8".to_owned(),
                board: Some("/home/ivy/projects/alpha/.blackboard/local.db".to_owned()),
                session: Some(format!("84a674b5-1c94-4e3f-b4a8-{day:04}0000{agent:04}")),
                agent: Some(format!("claude-{agent:04}")),
                item: Some(format!("task-{day}-{agent}-{}", number / 1_700)),
                ..Record::new(format!("msg_{day}_{number}"), "a", at, usage)
            });
        }
        stage.advance(10 * 60);
        stage.ledger.record(&records).unwrap();
        stage.advance(14 * 60);
    }
    let month = stage.now();
    stage.record("last", month, 1);
    stage
        .ledger
        .write(|connection| {
            connection.execute(YEAR_OF_ITEMS, [])?;
            connection.execute(YEAR_OF_DAYS, [])
        })
        .unwrap();
    let pages = stage.rows("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size");
    assert!(pages < 5_000_000, "{pages}");
}

#[test]
fn messages_of_a_model_without_a_provider_are_counted_apart_and_once() {
    let config =
        r#"{"providers": {"a": {"windows": {"5h": {"budget": 1000}}}}, "models": {"claude-*": "a"}}"#;
    let mut stage = Stage::new(config);
    let now = stage.now();
    let message = |id: &str, model: &str| UncountedMessage { id: id.into(), model: model.into(), at: now };
    let messages =
        [message("1", "gpt-9"), message("1", "gpt-9"), message("2", "gpt-9"), message("3", "b\u{7}")];
    assert_eq!(stage.ledger.note_uncounted(&messages).unwrap(), 2);
    assert_eq!(stage.ledger.note_uncounted(&messages).unwrap(), 0);
    assert_eq!(stage.ledger.newly_counted_models().unwrap(), [""; 0]);
    let expected = UncountedModel { model: "gpt-9".into(), messages: 2 };
    assert_eq!(stage.ledger.status().unwrap().uncounted, [expected]);
    assert_eq!(stage.used(0), 0);
    // The same message can be recorded when its model has a provider.
    stage.reopen(&config.replace("claude-*", "gpt-*"));
    assert_eq!(stage.record("1", now, 5).recorded, 1);
    assert_eq!(stage.ledger.status().unwrap().uncounted, []);
    let models = stage.ledger.newly_counted_models().unwrap();
    assert_eq!(models, ["gpt-9"]);
    stage.ledger.forget_uncounted(&models).unwrap();
    assert_eq!(stage.ledger.newly_counted_models().unwrap(), [""; 0]);
    stage.reopen(config);
    for number in 0..300 {
        stage.ledger.note_uncounted(&[message(&format!("m{number}"), &format!("model-{number}"))]).unwrap();
    }
    assert_eq!(stage.ledger.status().unwrap().uncounted.len(), 200, "names of models are bounded");
}
