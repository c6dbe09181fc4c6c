//! Thresholds that were passed.

use super::*;

const CONFIG: &str = r#"{"providers": {"a": {
    "windows": {"5h": {"budget": 1000}},
    "reservation": {"agents": {"maxPerAgent": 300}},
    "warnAt": [0.5, 0.8]
}}}"#;

/// Records tokens of a session on the board "b".
fn record(stage: &Stage, id: &str, session: Option<&str>, input: u64) {
    let record = Record {
        board: Some("b".to_owned()),
        session: session.map(str::to_owned),
        agent: session.map(|session| format!("agent-{session}")),
        ..Record::new(id, "a", stage.now(), Usage { input, ..Usage::default() })
    };
    stage.ledger.record(&[record]).unwrap();
}

/// What is reported now: the share of a window, or a session.
fn taken(stage: &Stage) -> Vec<String> {
    let crossings = stage.ledger.take_crossings("b").unwrap().into_iter();
    let described = crossings.map(|crossing| match crossing {
        Crossing::Window { window, threshold, sessions, .. } => {
            let names: Vec<_> = sessions.into_iter().map(|one| one.session).collect();
            format!("{} {threshold} {}", window.window, names.join(","))
        }
        Crossing::Session { session, used, cap, .. } => format!("{} {used}/{cap}", session.agent),
    });
    described.collect()
}

#[test]
fn a_threshold_is_reported_once_until_the_window_falls_below_it() {
    testkit::limit_test();
    let stage = Stage::new(CONFIG);
    record(&stage, "1", None, 499);
    assert!(taken(&stage).is_empty());
    record(&stage, "2", Some("s"), 1);
    assert_eq!(taken(&stage), ["5h 0.5 s"]);
    record(&stage, "3", None, 100);
    assert!(taken(&stage).is_empty());
    record(&stage, "4", None, 200);
    assert_eq!(taken(&stage), ["5h 0.8 s"]);
    assert!(taken(&stage).is_empty());
    stage.advance(6 * 60);
    assert!(taken(&stage).is_empty(), "the window is empty");
    assert_eq!(stage.rows("SELECT count(*) FROM notices"), 0);
    record(&stage, "5", None, 900);
    assert_eq!(taken(&stage), ["5h 0.8 "], "one warning, with the largest threshold");
    assert!(taken(&stage).is_empty());
}

#[test]
fn a_window_that_rises_and_falls_by_a_little_is_reported_once() {
    testkit::limit_test();
    let stage = Stage::new(CONFIG);
    record(&stage, "1", None, 30);
    stage.advance(60);
    record(&stage, "2", None, 480);
    assert_eq!(taken(&stage), ["5h 0.5 "]);
    stage.advance(5 * 60 - 58);
    assert!(taken(&stage).is_empty(), "the first message has left the window");
    record(&stage, "3", None, 30);
    assert!(taken(&stage).is_empty(), "it is reported already");
    assert_eq!(stage.rows("SELECT count(*) FROM notices"), 1);
}

#[test]
fn a_session_is_reported_once_when_it_passes_its_cap() {
    testkit::limit_test();
    let stage = Stage::new(CONFIG);
    record(&stage, "1", Some("s"), 299);
    record(&stage, "2", Some("t"), 10);
    assert!(taken(&stage).is_empty());
    record(&stage, "3", Some("s"), 1);
    assert_eq!(taken(&stage), ["agent-s 300/300"]);
    record(&stage, "4", Some("s"), 1);
    assert!(taken(&stage).is_empty());
    assert!(stage.ledger.take_crossings("other board").unwrap().is_empty());
}

#[test]
fn a_stricter_project_does_not_repeat_what_others_have_reported() {
    testkit::limit_test();
    let mut stage = Stage::new(CONFIG);
    record(&stage, "1", None, 600);
    assert_eq!(taken(&stage).len(), 1);
    let stricter = CONFIG.replace("1000", "650");
    for expected in [1, 0] {
        stage.reopen(&stricter);
        assert_eq!(taken(&stage).len(), expected);
        stage.reopen(CONFIG);
        assert_eq!(taken(&stage).len(), 0);
    }
}

#[test]
fn agents_are_warned_when_they_have_used_what_the_operator_leaves_to_them() {
    testkit::limit_test();
    let stage = Stage::new(
        r#"{"providers": {"a": {"windows": {"5h": {"budget": 1000}}, "reservation": {"operator": 400},
            "warnAt": [0.8]}}}"#,
    );
    record(&stage, "1", Some("s"), 599);
    assert!(taken(&stage).is_empty());
    record(&stage, "2", Some("s"), 1);
    assert_eq!(taken(&stage), ["5h 0.6 s"]);
    record(&stage, "3", Some("s"), 100);
    assert!(taken(&stage).is_empty());
    record(&stage, "4", Some("s"), 100);
    assert_eq!(taken(&stage), ["5h 0.8 s"]);
    assert!(taken(&stage).is_empty());
    // A window with a budget that is all for the operator has no such share.
    let all = Stage::new(
        r#"{"providers": {"a": {"windows": {"5h": {"budget": 1000}}, "reservation": {"operator": 999}}}}"#,
    );
    record(&all, "1", None, 1);
    assert_eq!(taken(&all), ["5h 0.001 "]);
}

#[test]
fn one_of_many_threads_gets_a_crossing() {
    testkit::limit_test();
    let stage = Stage::new(CONFIG);
    record(&stage, "1", None, 900);
    let taken: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope
                    .spawn(|| open(&stage.directory, &stage.clock, CONFIG).take_crossings("b").unwrap().len())
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(taken, 1);
}
